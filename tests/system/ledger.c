#include "tests/system/ledger.h"

#include "common/model/mix.h"
#include "common/model/range.h"
#include "tests/lib/process.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

_Static_assert((DP_LEDGER_ROWS & (DP_LEDGER_ROWS - 1)) == 0, "an odd stride meets each row once");

void dp_ledger_specs(struct dp_table_spec spec[DP_LEDGER_TABLES])
{
    static const char *const name[DP_LEDGER_TABLES] = {"ledger", "witness", "order"};
    static const uint32_t dim[DP_LEDGER_TABLES] = {DP_LEDGER_DIM, 1, DP_LEDGER_ORDER_DIM};
    for (uint32_t i = 0; i < DP_LEDGER_TABLES; i++) {
        spec[i] = (struct dp_table_spec){.dim = dim[i], .seed = 1};
        memcpy(spec[i].name, name[i], strlen(name[i]) + 1);
        spec[i].optimizer = dp_optimizer_defaults(i == DP_LEDGER_ORDER ? DP_OPT_ADAM : DP_OPT_SGD);
    }
    /* A short memory makes much of the order. */
    spec[DP_LEDGER_ORDER].optimizer.beta1 = 0.5f;
    spec[DP_LEDGER_ORDER].optimizer.beta2 = 0.75f;
}

static uint64_t mixed_of(struct dp_ledger_life life, uint64_t number)
{
    return dp_mix(dp_mix((uint64_t)life.client << 32 | life.life) + number);
}

void dp_ledger_touched(struct dp_ledger_life life, uint64_t number, uint64_t key[DP_LEDGER_TOUCHED])
{
    uint64_t random = mixed_of(life, number), stride = random >> 32 | 1;
    for (uint32_t i = 0; i < DP_LEDGER_TOUCHED; i++)
        key[i] = (random + i * stride) % DP_LEDGER_ROWS;
}

/* The first key from here on that lies on the shard: there are 1,024 to choose from. */
static uint64_t on_shard(uint64_t key, uint32_t shard, uint32_t shards)
{
    while (dp_shard_of(dp_mix(key), shards) != shard)
        key++;
    return key;
}

uint64_t dp_ledger_witness(struct dp_ledger_life life, uint64_t number, uint32_t shard, uint32_t shards)
{
    uint64_t place = (number % DP_LEDGER_SLOTS) * shards + shard;
    return on_shard((uint64_t)life.client << 48 | (uint64_t)life.life << 24 | place << 10, shard, shards);
}

uint64_t dp_ledger_order(struct dp_ledger_life life, uint32_t shard, uint32_t shards)
{
    return dp_ledger_witness(life, 0, shard, shards);
}

void dp_ledger_order_gradient(struct dp_ledger_life life, uint64_t number,
                              float gradient[DP_LEDGER_ORDER_DIM])
{
    uint64_t random = mixed_of(life, ~number);
    for (uint32_t i = 0; i < DP_LEDGER_ORDER_DIM; i++)
        gradient[i] = (float)(int)(random >> 16 * i & 0xffff) - 32767.5f;
}

void dp_ledger_write(int fd, enum dp_ledger_kind kind, uint32_t life, uint64_t number)
{
    const struct dp_ledger_record record = {.kind = kind, .life = life, .number = number};
    DP_ASSERT(write(fd, &record, sizeof record) == (ssize_t)sizeof record);
}

static bool take(struct dp_ledger_account *account, const struct dp_ledger_record *record)
{
    if (record->kind == DP_LEDGER_SENT && record->number <= account->sent + 1) {
        account->resent += record->number <= account->sent;
        account->sent = record->number > account->sent ? record->number : account->sent;
        return record->number > account->acked;
    }
    bool acked = record->kind == DP_LEDGER_ACKED || record->kind == DP_LEDGER_REPEATED;
    account->repeated += record->kind == DP_LEDGER_REPEATED;
    account->acked++;
    return acked && record->number == account->acked && record->number <= account->sent;
}

bool dp_ledger_read(const char *path, uint32_t client, struct dp_ledger_account **accounts, uint32_t *count)
{
    size_t size = 0;
    uint32_t first = *count;
    char *bytes = dp_process_slurp(path, &size);
    if (!bytes)
        return true; /* it was killed before it did anything */
    bool good = size % sizeof(struct dp_ledger_record) == 0;
    for (size_t at = 0; good && at < size; at += sizeof(struct dp_ledger_record)) {
        struct dp_ledger_record record;
        memcpy(&record, bytes + at, sizeof record);
        if (*count == first || (*accounts)[*count - 1].life.life != record.life) {
            struct dp_ledger_account *more = realloc(*accounts, (*count + 1) * sizeof **accounts);
            DP_ASSERT(more);
            *accounts = more;
            more[(*count)++] = (struct dp_ledger_account){.life = {.client = client, .life = record.life}};
        }
        good = take(&(*accounts)[*count - 1], &record);
    }
    free(bytes);
    return good;
}
