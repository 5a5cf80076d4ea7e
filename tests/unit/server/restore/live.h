/* Live: a shard on RocksDB and a real journal, as a server has it, but without a socket: requests in, answers out.
 *     live_open -> live_table, live_push, live_value ... -> live_close
 * Failure   The test fails. Every wait ends after LIVE_WAIT_MS with a failed test. */
#ifndef DP_TESTS_UNIT_SERVER_RESTORE_LIVE_H
#define DP_TESTS_UNIT_SERVER_RESTORE_LIVE_H

#include "server/shard/shard.h"
#include "server/store/store_id.h"

#define LIVE_WAIT_MS 30000u
#define LIVE_CLUSTER 7u
#define LIVE_STREAM  dp_stream_of_run(1, 0)

struct live {
    struct dp_store store;
    struct dp_store_id id;
    struct dp_disk disk;
    struct dp_shard *shard;
    struct dp_range range;
    uint64_t sequence, next_id;
    struct dp_reply reply; /* the last one; values: of a pull */
    float value[256];
    bool answered;
};

enum live_end { LIVE_CLEAN, LIVE_KILLED };

/* directory: of the shard. It must open. */
struct live *live_open(const char *directory, uint32_t index, uint32_t shards);
void live_close(struct live **live, enum live_end end);

void live_table(struct live *live, const struct dp_table_spec *spec);
/* The user's keys first .. first + count - 1 that are of this shard, each with this gradient; the push comes to it even if there is
 * none. Returns whether it was applied before. */
bool live_push(struct live *live, const struct dp_table_spec *spec, uint64_t first, uint32_t count,
               uint64_t number, float gradient);
/* The same to several tables at once, up to a NULL. */
bool live_push_tables(struct live *live, const struct dp_table_spec *const *specs, uint64_t first,
                      uint32_t count, uint64_t number, float gradient);
/* The first weight of a key that is of this shard. */
float live_value(struct live *live, const struct dp_table_spec *spec, uint64_t key);

#endif
