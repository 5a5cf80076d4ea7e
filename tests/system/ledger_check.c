/* Witnesses say which unanswered pushes were applied where -> sums and orders are known -> compared with the rows. */
#include "tests/system/ledger.h"

#include "common/model/init.h"
#include "common/model/mix.h"
#include "common/model/optimizer.h"
#include "common/model/range.h"
#include "common/model/row.h"
#include "tests/lib/process.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PULL_MS   (60000u * DP_PATIENCE)
#define PULL_ROWS 512u

_Static_assert(DP_LEDGER_ROWS % PULL_ROWS == 0, "none is left over");

struct check {
    struct dp_client *client;
    uint32_t shards;
    struct dp_client_table *table[DP_LEDGER_TABLES];
    struct dp_table_spec spec[DP_LEDGER_TABLES];
    uint32_t *expected; /* [DP_LEDGER_ROWS] */
    struct dp_ledger_sums *sums;
    char *text;
    size_t size, used;
    bool good;
};

static DP_PRINTF(2, 3) void say(struct check *check, const char *format, ...)
{
    va_list args;
    va_start(args, format);
    check->good = false;
    if (check->used + 1 < check->size) {
        int len = vsnprintf(check->text + check->used, check->size - check->used, format, args);
        check->used += len > 0 ? (size_t)len : 0;
    }
    va_end(args);
}

static bool pull(struct check *check, enum dp_ledger_table table, const uint64_t *keys, size_t n, float *rows)
{
    struct dp_error err = {0};
    if (dp_client_pull_rows(check->client, check->table[table], keys, n, rows, PULL_MS, &err) == DP_OK)
        return true;
    say(check, "pull: %s\n", err.text);
    return false;
}

/* Of the unanswered ones, how many the shard applied: in order, so the first ones. Each slot has one at most. */
static uint64_t applied_on(struct check *check, const struct dp_ledger_account *account, uint32_t shard)
{
    uint64_t key[DP_LEDGER_SLOTS], from = account->acked + 1, last = account->acked;
    float value[DP_LEDGER_SLOTS];
    for (uint32_t i = 0; i < DP_LEDGER_SLOTS; i++)
        key[i] = dp_ledger_witness(account->life, i, shard, check->shards);
    if (!pull(check, DP_LEDGER_WITNESS, key, DP_LEDGER_SLOTS, value))
        return last;
    for (uint64_t n = from; n < from + DP_LEDGER_SLOTS; n++) {
        uint64_t slot = n % DP_LEDGER_SLOTS;
        /* Of 1..m those with this rest: (m + SLOTS - slot) / SLOTS, and 0 is no number. */
        uint64_t acked = (account->acked + DP_LEDGER_SLOTS - slot) / DP_LEDGER_SLOTS - (slot == 0);
        double more = (double)value[slot] - (double)acked;
        bool may = n <= account->sent;
        if (more != 0 && !(may && more == 1))
            say(check,
                "client %u, life %u, shard %u, slot %u: %.1f pushes there, %" PRIu64
                " acknowledged, %d unanswered (push %" PRIu64 ")\n",
                account->life.client, account->life.life, shard, (unsigned)slot, (double)value[slot], acked,
                may, n);
        if (more == 1 && n != last + 1)
            say(check, "client %u, life %u, shard %u: push %" PRIu64 " was applied, %" PRIu64 " was not\n",
                account->life.client, account->life.life, shard, n, last + 1);
        if (more == 1)
            last = n;
    }
    return last;
}

static void check_order(struct check *check, const struct dp_ledger_account *account, uint32_t shard,
                        uint64_t last)
{
    const struct dp_table_spec *spec = &check->spec[DP_LEDGER_ORDER];
    struct dp_optimizer *adam = NULL;
    uint64_t key = dp_ledger_order(account->life, shard, check->shards);
    float row[64], pulled[DP_LEDGER_ORDER_DIM], gradient[DP_LEDGER_ORDER_DIM];
    DP_ASSERT(dp_row_bytes(spec) <= sizeof row && dp_optimizer_new(spec, DP_FORM_BEST, &adam, NULL) == DP_OK);
    dp_init_row(spec, key, row);
    for (uint64_t n = 1; n <= last; n++) {
        dp_ledger_order_gradient(account->life, n, gradient);
        dp_optimizer_apply(adam, row, gradient, 1);
    }
    if (pull(check, DP_LEDGER_ORDER, &key, 1, pulled) &&
        memcmp(pulled, dp_row_weights(row), sizeof pulled) != 0)
        say(check, "client %u, life %u, shard %u: %" PRIu64 " pushes were not applied in their order\n",
            account->life.client, account->life.life, shard, last);
    dp_optimizer_free(&adam);
}

static void check_life(struct check *check, const struct dp_ledger_account *account)
{
    uint64_t last[DP_LEDGER_SLOTS], key[DP_LEDGER_TOUCHED], greatest = 0;
    DP_ASSERT(check->shards <= DP_LEDGER_SLOTS);
    if (account->sent > account->acked + DP_LEDGER_SLOTS)
        say(check, "client %u: over %u pushes were under way\n", account->life.client, DP_LEDGER_SLOTS);
    for (uint32_t shard = 0; shard < check->shards; shard++) {
        last[shard] = applied_on(check, account, shard);
        check_order(check, account, shard, last[shard]);
        greatest = last[shard] > greatest ? last[shard] : greatest;
    }
    for (uint64_t n = 1; n <= greatest; n++) {
        dp_ledger_touched(account->life, n, key);
        for (uint32_t i = 0; i < DP_LEDGER_TOUCHED; i++)
            check->expected[key[i]] += n <= last[dp_shard_of(dp_mix(key[i]), check->shards)];
    }
    check->sums->pushes += account->sent;
    check->sums->acked += account->acked;
    check->sums->unanswered += account->sent - account->acked;
    check->sums->applied_unanswered += greatest - account->acked;
    check->sums->resent += account->resent;
    check->sums->repeated += account->repeated;
}

/* Few at a time: the servers' caches may be small. */
static bool check_some(struct check *check, uint32_t first)
{
    uint64_t key[PULL_ROWS];
    float row[PULL_ROWS][DP_LEDGER_DIM];
    for (uint32_t i = 0; i < PULL_ROWS; i++)
        key[i] = first + i;
    if (!pull(check, DP_LEDGER_SUMS, key, PULL_ROWS, row[0]))
        return false;
    for (uint32_t i = 0; i < PULL_ROWS; i++) {
        uint32_t c = 0, expected = check->expected[first + i];
        while (c < DP_LEDGER_DIM && row[i][c] == (float)expected)
            c++;
        if (c < DP_LEDGER_DIM)
            say(check, "row %u, column %u: %.1f, the pushes applied make it %u\n", first + i, c,
                (double)row[i][c], expected);
    }
    return true;
}

static void check_sums(struct check *check)
{
    bool pulled = true;
    for (uint32_t first = 0; first < DP_LEDGER_ROWS && pulled; first += PULL_ROWS)
        pulled = check_some(check, first);
}

bool dp_ledger_check(struct dp_client *client, const struct dp_ledger_account *accounts, uint32_t count,
                     struct dp_ledger_sums *sums, char *text, size_t size)
{
    struct check check = {.client = client,
                          .shards = dp_client_shards(client),
                          .expected = calloc(DP_LEDGER_ROWS, sizeof *check.expected),
                          .sums = sums,
                          .text = text,
                          .size = size,
                          .good = true};
    struct dp_error err = {0};
    DP_ASSERT(check.expected && size > 0);
    *sums = (struct dp_ledger_sums){0};
    text[0] = '\0';
    dp_ledger_specs(check.spec);
    for (uint32_t i = 0; i < DP_LEDGER_TABLES && check.good; i++)
        if (dp_client_table(client, &check.spec[i], PULL_MS, &check.table[i], &err) != DP_OK)
            say(&check, "%s\n", err.text);
    for (uint32_t i = 0; i < count && check.good; i++)
        check_life(&check, &accounts[i]);
    if (check.good)
        check_sums(&check);
    free(check.expected);
    return check.good;
}
