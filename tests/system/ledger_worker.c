/* downpour-worker whose pushes also write the ledger of a training (train_ledger.h): the same program, the
 * same flags, linked with dp_client_push and dp_client_close wrapped.
 * Exact     SGD adds rate * (1 / rate): 1 in f32 (and in bf16) where the rate is a power of two; another rate
 *           is refused.
 */
#include "tests/system/train_ledger.h"

#include "common/base/deadline.h"
#include "common/model/stream.h"
#include "worker/compute/graph.h"
#include "worker/worker.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

void __real_dp_client_close(struct dp_client **client);
void __wrap_dp_client_close(struct dp_client **client);
enum dp_status __real_dp_client_push(struct dp_client *client, const struct dp_push_options *options,
                                     const struct dp_push_part *parts, uint32_t count, uint32_t timeout_ms,
                                     struct dp_ticket *out, struct dp_error *err);
enum dp_status __wrap_dp_client_push(struct dp_client *client, const struct dp_push_options *options,
                                     const struct dp_push_part *parts, uint32_t count, uint32_t timeout_ms,
                                     struct dp_ticket *out, struct dp_error *err);

/* Of the one training of this process. */
static struct {
    /* The table's: a worker that acts for another has two clients, and one that comes back has one after the
     * other. */
    const struct dp_client *client;
    struct dp_client_table *table;
    struct dp_keys *keys;
    uint64_t mixed[DP_TRAIN_LEDGER_PLACES]; /* ascending, as the places do */
    float gradient[DP_TRAIN_LEDGER_PLACES];
} ledger;

void __wrap_dp_client_close(struct dp_client **client)
{
    if (*client == ledger.client)
        ledger.client = NULL;
    __real_dp_client_close(client);
}

static enum dp_status ledger_open(struct dp_client *client, uint32_t timeout_ms, struct dp_error *err)
{
    const struct dp_table_spec spec = dp_train_ledger_spec();
    const uint64_t end_ms = dp_now_ms() + 10 * (uint64_t)timeout_ms; /* as the worker's own retry policy */
    enum dp_status st = ledger.keys ? DP_OK : dp_keys_new(&ledger.keys, err);
    if (dp_client_shards(client) > DP_TRAIN_LEDGER_PLACES)
        return dp_fail(err, DP_ARGUMENT, "the ledger has rows on %u shards at most", DP_TRAIN_LEDGER_PLACES);
    if (st != DP_OK)
        return st;
    do
        st = dp_client_table(client, &spec, timeout_ms, &ledger.table, err);
    while ((st == DP_TIMEOUT || st == DP_UNAVAILABLE) && dp_now_ms() < end_ms);
    ledger.client = st == DP_OK ? client : NULL;
    return st;
}

enum dp_status __wrap_dp_client_push(struct dp_client *client, const struct dp_push_options *options,
                                     const struct dp_push_part *parts, uint32_t count, uint32_t timeout_ms,
                                     struct dp_ticket *out, struct dp_error *err)
{
    struct dp_push_part all[DP_GRAPH_PARAMETERS_MAX + 1];
    uint32_t epoch = dp_stream_epoch(options->stream);
    int exponent;
    if (count == 0) /* an empty step */
        return __real_dp_client_push(client, options, parts, count, timeout_ms, out, err);
    enum dp_status st = ledger.client == client ? DP_OK : ledger_open(client, timeout_ms, err);
    if (st != DP_OK)
        return st;
    if (frexpf(options->rate, &exponent) != 0.5f)
        return dp_fail(err, DP_ARGUMENT, "the rate %g is no power of two: the ledger would not be exact",
                       (double)options->rate);
    if (epoch > UINT16_MAX || options->number > UINT32_MAX)
        return dp_fail(err, DP_ARGUMENT, "the ledger has rows for 2^16 epochs of 2^32 pushes");
    for (uint32_t i = 0; i < DP_TRAIN_LEDGER_PLACES; i++) {
        ledger.mixed[i] = dp_train_ledger_row(i, epoch, options->number);
        ledger.gradient[i] = -1.0f / options->rate;
    }
    memcpy(all, parts, count * sizeof *parts);
    all[count] =
        (struct dp_push_part){.table = ledger.table, .keys = ledger.keys, .gradients = ledger.gradient};
    st = dp_keys_lend(ledger.keys, ledger.mixed, DP_TRAIN_LEDGER_PLACES, err);
    return st == DP_OK ? __real_dp_client_push(client, options, all, count + 1, timeout_ms, out, err) : st;
}

int main(int argc, char **argv)
{
    int code = dp_worker_main(argc, argv);
    dp_keys_free(&ledger.keys);
    return code;
}
