/* Disk: appends the journaled bytes of a push to a file and syncs them. This is the limit that the disk
 * sets.
 *     start -> loads -> stop
 * Promise   Each request appends the bytes of the real request's record, and is done when a second thread's
 *           fdatasync covers it: one sync covers all waiting requests, as in the journal. The file was
 *           written before (as a recycled segment); nothing is checked, looked up or answered.
 * Thread    One, and the syncing thread inside. */
#ifndef DP_BENCH_BENCH_DISK_H
#define DP_BENCH_BENCH_DISK_H

#include "deploy/bench/bench_raw.h"

struct dp_bench_disk;

/* directory: for the file. bytes_max: of one request. */
enum dp_status dp_bench_disk_start(const char *directory, size_t bytes_max, struct dp_bench_disk **out,
                                   struct dp_error *err);
void dp_bench_disk_stop(struct dp_bench_disk **disk); /* removes the file; accepts NULL inside */
/* A load of requests with these shapes in turn, valid until the next call. */
struct dp_load dp_bench_disk_load(struct dp_bench_disk *disk, const struct dp_raw_shape *shapes,
                                  uint32_t count);

#endif
