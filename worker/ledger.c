#include "worker/ledger.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

struct dp_ledger {
    struct dp_client_table *table;
    struct dp_keys *keys;
    uint32_t shards;
    uint64_t *mixed; /* [shards], ascending as the shards do */
    float *gradient; /* [shards] */
};

enum dp_status dp_ledger_open(struct dp_job *job, struct dp_ledger **out, struct dp_error *err)
{
    struct dp_table_spec spec = {.dim = 1, .optimizer = {.kind = DP_OPT_SGD}};
    (void)snprintf(spec.name, sizeof spec.name, DP_LEDGER_TABLE);
    *out = NULL;
    struct dp_ledger *ledger = calloc(1, sizeof *ledger);
    if (!ledger)
        return dp_fail(err, DP_NOMEM, "no memory for a ledger");
    ledger->shards = job->shards;
    ledger->mixed = calloc(job->shards, sizeof *ledger->mixed);
    ledger->gradient = calloc(job->shards, sizeof *ledger->gradient);
    enum dp_status st = ledger->mixed && ledger->gradient
                            ? dp_keys_new(&ledger->keys, err)
                            : dp_fail(err, DP_NOMEM, "no memory for a ledger of %u shards", job->shards);
    if (st == DP_OK)
        st = dp_job_table(job, &spec, &ledger->table, err);
    if (st != DP_OK)
        dp_ledger_close(&ledger);
    *out = ledger;
    return st;
}

void dp_ledger_close(struct dp_ledger **ledger)
{
    struct dp_ledger *l = *ledger;
    *ledger = NULL;
    if (!l)
        return;
    dp_keys_free(&l->keys);
    free(l->mixed);
    free(l->gradient);
    free(l);
}

enum dp_status dp_ledger_part(struct dp_ledger *ledger, uint32_t epoch, uint64_t number, float rate,
                              struct dp_push_part *out, struct dp_error *err)
{
    int exponent;
    if (frexpf(rate, &exponent) != 0.5f)
        return dp_fail(err, DP_ARGUMENT,
                       "--ledger: the rate is %g now, it must be a power of two (0.0078125), without decay "
                       "and warm-up",
                       (double)rate);
    if (epoch > UINT16_MAX || number > UINT32_MAX)
        return dp_fail(err, DP_ARGUMENT, "--ledger: has rows for 2^16 epochs of 2^32 pushes");
    for (uint32_t s = 0; s < ledger->shards; s++) {
        ledger->mixed[s] = dp_ledger_row(s, ledger->shards, epoch, number);
        ledger->gradient[s] = -1.0f / rate;
    }
    *out = (struct dp_push_part){.table = ledger->table, .keys = ledger->keys, .gradients = ledger->gradient};
    return dp_keys_lend(ledger->keys, ledger->mixed, ledger->shards, err);
}
