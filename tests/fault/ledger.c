#include "tests/fault/ledger.h"

#include "tests/fault/disk_file.h"
#include "worker/schedule/shares.h"

#include <inttypes.h>
#include <stdlib.h>

#define PUSHES_A_STREAM 4u /* many streams: marks of several sectors */

#define AGAIN_MAX 40u /* pushes that are sent again */

#define PULLED 2000u /* rows of a request: divides DP_LEDGER_ROWS */

static uint64_t key_of(uint32_t number, uint64_t row)
{
    return row * DP_LEDGER_CLIENTS + number;
}

static uint64_t row_of(uint32_t number, uint64_t n, uint32_t i)
{
    return i == 0 ? 0 : 1 + dp_disk_draw(n << 8 | number, i) % (DP_LEDGER_ROWS - 1);
}

enum dp_status dp_ledger_open(const struct dp_cluster *cluster, uint32_t number, uint32_t wait_ms,
                              struct dp_client **client, struct dp_client_table **table, struct dp_error *err)
{
    char endpoint[DP_HOST_MAX + 32], name[32];
    const char *const shards[] = {endpoint};
    struct dp_table_spec spec = {.name = "ledger", .dim = DP_LEDGER_DIM};
    spec.optimizer = dp_optimizer_defaults(DP_OPT_SGD);
    dp_cluster_shard_endpoint(cluster, 0, endpoint, sizeof endpoint);
    (void)snprintf(name, sizeof name, "ledger %" PRIu32, number);
    struct dp_client_options options = {
        .name = name, .cluster = cluster->id, .shards = shards, .shard_count = 1, .retry_ms = 200};
    enum dp_status st = dp_client_open(&options, client, err);
    return st == DP_OK ? dp_client_table(*client, &spec, wait_ms, table, err) : st;
}

enum dp_status dp_ledger_push(struct dp_client *client, struct dp_client_table *table, uint32_t number,
                              uint64_t n, struct dp_ticket *out, struct dp_error *err)
{
    uint64_t key[DP_LEDGER_KEYS];
    float gradient[DP_LEDGER_KEYS * DP_LEDGER_DIM];
    struct dp_keys *keys;
    for (uint32_t i = 0; i < DP_LEDGER_KEYS; i++)
        key[i] = key_of(number, row_of(number, n, i));
    for (uint32_t i = 0; i < DP_LEDGER_KEYS * DP_LEDGER_DIM; i++)
        gradient[i] = -1;
    enum dp_status st = dp_keys_new(&keys, err);
    if (st != DP_OK)
        return st;
    st = dp_keys_set(keys, key, DP_LEDGER_KEYS, err);
    if (st == DP_OK) {
        struct dp_push_part part = {.table = table, .keys = keys, .gradients = gradient};
        struct dp_push_options options = {.rate = 1,
                                          .stream =
                                              dp_push_stream(1 + number, (uint32_t)(n / PUSHES_A_STREAM)),
                                          .number = n % PUSHES_A_STREAM};
        st = dp_client_push(client, &options, &part, 1, DP_LEDGER_WAIT_MS, out, err);
    }
    dp_keys_free(&keys);
    return st;
}

enum dp_status dp_ledger_check(struct dp_client *client, struct dp_client_table *table, uint32_t number,
                               uint64_t acked, uint64_t sent, uint64_t *m, struct dp_error *err)
{
    uint64_t *key = calloc(DP_LEDGER_ROWS, sizeof *key);
    float *weights = calloc((size_t)DP_LEDGER_ROWS * DP_LEDGER_DIM, sizeof *weights);
    uint32_t *sum = calloc(DP_LEDGER_ROWS, sizeof *sum);
    DP_ASSERT(key && weights && sum);
    for (uint64_t row = 0; row < DP_LEDGER_ROWS; row++)
        key[row] = key_of(number, row);
    enum dp_status st = DP_OK;
    for (uint32_t at = 0; st == DP_OK && at < DP_LEDGER_ROWS; at += PULLED) /* a part of the row cache each */
        st = dp_client_pull_rows(client, table, key + at, PULLED, weights + (size_t)at * DP_LEDGER_DIM,
                                 DP_LEDGER_WAIT_MS, err);
    if (st != DP_OK)
        goto done;
    *m = weights[0] >= 0 && weights[0] < 1e6f ? (uint64_t)weights[0] : UINT64_MAX;
    if (*m < acked || *m > sent) {
        st = dp_fail(err, DP_CORRUPT,
                     "client %" PRIu32 ": the rows have %g pushes; %" PRIu64 " were acknowledged, %" PRIu64
                     " were sent",
                     number, (double)weights[0], acked, sent);
        goto done;
    }
    for (uint64_t n = 0; n < *m; n++)
        for (uint32_t i = 0; i < DP_LEDGER_KEYS; i++)
            sum[row_of(number, n, i)]++;
    for (size_t at = 0; st == DP_OK && at < (size_t)DP_LEDGER_ROWS * DP_LEDGER_DIM; at++)
        if (weights[at] != (float)sum[at / DP_LEDGER_DIM])
            st = dp_fail(err, DP_CORRUPT,
                         "client %" PRIu32 ": row %zu column %zu is %g after %" PRIu64 " pushes (%" PRIu64
                         " acknowledged, %" PRIu64 " sent), which make %" PRIu32,
                         number, at / DP_LEDGER_DIM, at % DP_LEDGER_DIM, (double)weights[at], *m, acked, sent,
                         sum[at / DP_LEDGER_DIM]);
done:
    free(sum);
    free(weights);
    free(key);
    return st;
}

/* Pushes from a few below m on, up to sent. One that is known is below m. */
static enum dp_status send_again(struct dp_client *client, struct dp_client_table *table, uint32_t number,
                                 uint64_t m, uint64_t sent, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    uint64_t from = m > 3 ? m - 3 : 0;
    from = sent - from > AGAIN_MAX ? sent - AGAIN_MAX : from;
    for (uint64_t n = from; st == DP_OK && n < sent; n++) {
        struct dp_ticket ticket;
        struct dp_outcome outcome = {0};
        st = dp_ledger_push(client, table, number, n, &ticket, err);
        if (st == DP_OK)
            st = dp_client_wait(client, &ticket, DP_LEDGER_WAIT_MS, &outcome, err);
        if (st == DP_OK && outcome.repeated && n >= m)
            st = dp_fail(err, DP_CORRUPT,
                         "client %" PRIu32 ": push %" PRIu64 " is known, the rows have %" PRIu64, number, n,
                         m);
    }
    return st;
}

enum dp_status dp_ledger_settle(const struct dp_cluster *cluster, uint32_t number, uint64_t acked,
                                uint64_t sent, struct dp_error *err)
{
    struct dp_client *client = NULL;
    struct dp_client_table *table;
    uint64_t m = 0;
    enum dp_status st = dp_ledger_open(cluster, number, DP_LEDGER_WAIT_MS, &client, &table, err);
    if (st == DP_OK)
        st = dp_ledger_check(client, table, number, acked, sent, &m, err);
    if (st == DP_OK)
        st = send_again(client, table, number, m, sent, err);
    if (st == DP_OK)
        st = dp_ledger_check(client, table, number, sent, sent, &m, err);
    dp_client_close(&client);
    return st;
}
