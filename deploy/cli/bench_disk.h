/* Disk: a push's journaled bytes, appended to a file and synced bare: what the disk alone allows.
 *     start -> loads -> stop
 * Promise   Each request is one append of the bytes of the real request's record, done when a second thread's fdatasync
 *           covers it: all that waits is one sync, as in the journal. The file was written before (a recycled segment);
 *           nothing is checked, looked up or answered.
 * Thread    One, and the syncing one inside.                                                               */
#ifndef DP_CLI_BENCH_DISK_H
#define DP_CLI_BENCH_DISK_H

#include "deploy/cli/bench_raw.h"

struct dp_bench_disk;

/* In this directory. bytes_max: of one request. */
DP_MUST_USE
enum dp_status dp_bench_disk_start(const char *directory, size_t bytes_max, struct dp_bench_disk **out,
                                   struct dp_error *err);
void dp_bench_disk_stop(struct dp_bench_disk **disk); /* removes the file; accepts NULL inside */
/* Requests of the shapes in turn. Until the next call of this. */
struct dp_load dp_bench_disk_load(struct dp_bench_disk *disk, const struct dp_raw_shape *shapes,
                                  uint32_t count);

#endif
