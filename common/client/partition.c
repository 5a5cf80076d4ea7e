#include "common/client/partition.h"

#include "common/model/range.h"

#include <inttypes.h>
#include <string.h>

enum dp_status dp_partition_add(struct dp_partition *partition, const struct dp_client *client,
                                const struct dp_client_table *table, const struct dp_keys *keys,
                                struct dp_error *err)
{
    if (partition->count == DP_SECTIONS_MAX)
        return dp_fail(err, DP_ARGUMENT, "more than %u parts in one request", DP_SECTIONS_MAX);
    if (!table || !keys)
        return dp_fail(err, DP_ARGUMENT, "part %" PRIu32 " has no %s", partition->count,
                       table ? "keys" : "table");
    if (table->client != client)
        return dp_fail(err, DP_ARGUMENT, "part %" PRIu32 ": table '%s' belongs to another client",
                       partition->count, table->spec.name);
    for (uint32_t i = 0; i < partition->count; i++) {
        if (partition->part[i].table == table)
            return dp_fail(err, DP_ARGUMENT, "table '%s' is in two parts of one request: merge them",
                           table->spec.name);
    }
    partition->part[partition->count++] = (struct dp_partition_part){.table = table, .keys = keys};
    return DP_OK;
}

enum dp_status dp_partition_block(struct dp_partition_part *part, size_t value_bytes, struct dp_error *err)
{
    size_t rows = part->keys->distinct;
    size_t row_bytes = value_bytes * part->table->spec.dim; /* at most 4 * 2^16; rows: under 2^32 */
    part->values_at = (rows * sizeof(uint64_t) + 63) / 64 * 64;
    part->block = dp_block_new(part->values_at + rows * row_bytes);
    if (!part->block)
        return dp_fail(err, DP_NOMEM, "no memory for %zu rows of table '%s'", rows, part->table->spec.name);
    if (rows > 0)
        memcpy(dp_block_bytes(part->block), part->keys->mixed, rows * sizeof(uint64_t));
    return DP_OK;
}

static enum dp_status check_size(const struct dp_partition_part *part, size_t rows, size_t row_bytes,
                                 struct dp_error *err)
{
    if (rows > DP_ROWS_MAX || rows * row_bytes > DP_FRAME_BYTES_MAX)
        return dp_fail(err, DP_ARGUMENT,
                       "%zu rows of table '%s' for one shard: at most %u rows and %u bytes of values in one "
                       "request; cut it into several",
                       rows, part->table->spec.name, DP_ROWS_MAX, DP_FRAME_BYTES_MAX);
    return DP_OK;
}

static enum dp_status cut_shard(struct dp_partition *partition, struct dp_client *client, uint32_t shard,
                                struct dp_shard_request *to_shard, struct dp_error *err)
{
    struct dp_range range = dp_range_of_shard(shard, client->shards);
    bool push = to_shard->request.kind == DP_REQUEST_PUSH;
    for (uint32_t i = 0; i < partition->count; i++) {
        struct dp_partition_part *part = &partition->part[i];
        size_t row_bytes = dp_value_bytes(client->type) * part->table->spec.dim;
        size_t from = part->given;
        size_t end = dp_keys_end(part->keys, from, range.last);
        size_t rows = end - from;
        part->given = end;
        if (rows == 0)
            continue;
        enum dp_status st = check_size(part, rows, row_bytes, err);
        if (st != DP_OK)
            return st;
        uint32_t n = to_shard->request.sections++;
        to_shard->slice[n] = (struct dp_slice){.part = i, .from = from};
        to_shard->request.section[n] =
            (struct dp_section){.table = part->table->id, .rows = (uint32_t)rows, .type = client->type};
        dp_shard_request_add(to_shard, part->block, from * sizeof(uint64_t), rows * sizeof(uint64_t));
        if (push)
            dp_shard_request_add(to_shard, part->block, part->values_at + from * row_bytes, rows * row_bytes);
        else
            to_shard->answer_bytes += rows * row_bytes;
    }
    to_shard->bytes += to_shard->answer_bytes;
    return DP_OK;
}

enum dp_status dp_partition_cut(struct dp_partition *partition, struct dp_client *client,
                                enum dp_request_kind kind, bool all, struct dp_error *err)
{
    bool push = kind == DP_REQUEST_PUSH;
    for (uint32_t shard = 0; shard < client->shards; shard++) {
        struct dp_shard_request *to_shard =
            dp_shard_request_new(kind, push ? DP_REPLY_PUSHED : DP_REPLY_PULLED);
        if (!to_shard)
            return dp_fail(err, DP_NOMEM, "no memory for a request");
        client->draft[shard] = to_shard;
        enum dp_status st = cut_shard(partition, client, shard, to_shard, err);
        if (st != DP_OK)
            return st;
        if (!all && to_shard->request.sections == 0)
            dp_shard_request_free(&client->draft[shard]);
    }
    return DP_OK;
}

void dp_partition_clear(struct dp_partition *partition)
{
    for (uint32_t i = 0; i < partition->count; i++)
        dp_block_drop(&partition->part[i].block);
    partition->count = 0;
}
