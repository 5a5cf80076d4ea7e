/* Partition: the tables' parts of one pull or push, cut into a shard request a shard. Keys ascend in mixed order and a
 * shard owns an interval of it, so its share of a part is a slice, and its frames are ranges of one block. */
#ifndef DP_CLIENT_PARTITION_H
#define DP_CLIENT_PARTITION_H

#include "common/client/client_inner.h"
#include "common/client/keys_inner.h"

struct dp_partition_part {
    const struct dp_client_table *table;
    const struct dp_keys *keys;
    struct dp_block *block; /* keys u64[distinct], then from values_at: a push's values */
    size_t values_at;
    size_t given; /* rows that the shards before this one took */
};

struct dp_partition {
    uint32_t count;
    struct dp_partition_part part[DP_SECTIONS_MAX];
};

/* DP_ARGUMENT, naming the part, unless the part can stand in a request; adds it. */
enum dp_status dp_partition_add(struct dp_partition *partition, const struct dp_client *client,
                                const struct dp_client_table *table, const struct dp_keys *keys,
                                struct dp_error *err);
/* The part's block, with its keys and room for `value_bytes` a row. */
enum dp_status dp_partition_block(struct dp_partition_part *part, size_t value_bytes, struct dp_error *err);
/* Fills the client's draft: a shard request for each shard that owns rows, or (all) for each shard. */
enum dp_status dp_partition_cut(struct dp_partition *partition, struct dp_client *client,
                                enum dp_request_kind kind, bool all, struct dp_error *err);
void dp_partition_clear(struct dp_partition *partition);

#endif
