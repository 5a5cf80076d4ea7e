/* Bare: rows of a store read by RocksDB alone, beside the server that writes it: a yardstick for benches.
 *     open -> read, ... -> close
 * Promise   Opened read-only with the server's settings: it shows the rows that were there at open, and changes no file.
 * Thread    read: any number at a time, each with scratch of its own. Memory: the handle, until close.       */
#ifndef DP_TESTS_BENCH_BARE_H
#define DP_TESTS_BENCH_BARE_H

#include "server/store/store.h"

#define DP_BARE_KEYS_MAX 512u /* of one question, as a server's reader asks */

struct dp_bare;
struct dp_bare_scratch;

/* directory: a shard's. DP_IO, DP_CORRUPT: RocksDB's. */
enum dp_status dp_bare_open(const char *directory, struct dp_bare **out, struct dp_error *err);
void dp_bare_close(struct dp_bare **bare);         /* accepts NULL inside */
struct dp_bare_scratch *dp_bare_scratch_new(void); /* NULL: out of memory; freed with free() */
/* One batched MultiGet of n sorted keys. The rows are looked at, not copied. *missing: grows by those that have none. */
enum dp_status dp_bare_read(const struct dp_bare *bare, struct dp_bare_scratch *scratch,
                            const struct dp_store_key *keys, uint32_t n, uint64_t *missing,
                            struct dp_error *err);
/* All rows of a store that nobody has open, in the order of their keys: an iterator beside SstFileWriter, each file of 64 MB and synced.
 * to: a directory. *rows: grows by their number. */
enum dp_status dp_bare_scan(const char *directory, const char *to, uint64_t *rows, struct dp_error *err);

#endif
