/* downpour-worker whose pushes also write the ledger of a training (train_ledger.h): the same program, the same flags.
 * Exact     SGD adds rate * (1 / rate): 1 in f32 (and in bf16) where the rate is a power of two; another rate is refused.
 */
#include "tests/system/train_ledger.h"

#include "worker/worker.h"

#include <math.h>
#include <stdlib.h>

/* Of the one training of this process. */
static struct {
    /* The table's: a worker that acts for another has two clients, and one that comes back has one after the other. */
    const struct dp_client *client;
    uint64_t process;
    struct dp_client_table *table;
    struct dp_keys *keys;
    uint64_t mixed[DP_TRAIN_LEDGER_PLACES]; /* ascending, as the places do */
    float gradient[DP_TRAIN_LEDGER_PLACES];
} ledger;

static enum dp_status ledger_open(struct dp_job *job, struct dp_error *err)
{
    const struct dp_table_spec spec = dp_train_ledger_spec();
    if (ledger.keys) {
        ledger.client = job->client;
        ledger.process = job->process;
        return dp_job_table(job, &spec, &ledger.table, err);
    }
    if (job->shards > DP_TRAIN_LEDGER_PLACES)
        return dp_fail(err, DP_ARGUMENT, "the ledger has rows on %u shards at most", DP_TRAIN_LEDGER_PLACES);
    enum dp_status st = dp_keys_new(&ledger.keys, err);
    return st == DP_OK ? ledger_open(job, err) : st;
}

static enum dp_status add_one(struct dp_job *job, uint32_t epoch, const struct dp_push_options *push,
                              struct dp_push_part *out, struct dp_error *err)
{
    int exponent;
    bool is_open = ledger.client == job->client && ledger.process == job->process;
    enum dp_status st = is_open ? DP_OK : ledger_open(job, err);
    if (st != DP_OK)
        return st;
    if (frexpf(push->rate, &exponent) != 0.5f)
        return dp_fail(err, DP_ARGUMENT, "the rate %g is no power of two: the ledger would not be exact",
                       (double)push->rate);
    if (epoch > UINT16_MAX || push->number > UINT32_MAX)
        return dp_fail(err, DP_ARGUMENT, "the ledger has rows for 2^16 epochs of 2^32 pushes");
    for (uint32_t i = 0; i < DP_TRAIN_LEDGER_PLACES; i++) {
        ledger.mixed[i] = dp_train_ledger_row(i, epoch, push->number);
        ledger.gradient[i] = -1.0f / push->rate;
    }
    *out = (struct dp_push_part){.table = ledger.table, .keys = ledger.keys, .gradients = ledger.gradient};
    return dp_keys_lend(ledger.keys, ledger.mixed, DP_TRAIN_LEDGER_PLACES, err);
}

int main(int argc, char **argv)
{
    const struct dp_push_extra extra = {.part = add_one};
    int code = dp_worker_main(argc, argv, &extra);
    dp_keys_free(&ledger.keys);
    return code;
}
