#include "worker/coordinate/decision.h"

#include "common/base/json.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum dp_status dp_decision_init(struct dp_decision *d, uint32_t epochs, uint32_t workers,
                                struct dp_error *err)
{
    *d = (struct dp_decision){.workers = workers, .epochs = epochs, .from = 1};
    DP_ASSERT(workers > 0);
    d->figures = calloc(epochs ? epochs : 1, sizeof *d->figures);
    return d->figures ? DP_OK
                      : dp_fail(err, DP_NOMEM, "no memory for the metrics of %" PRIu32 " epochs", epochs);
}

void dp_decision_clear(struct dp_decision *d)
{
    free(d->figures);
    *d = (struct dp_decision){0};
}

static void check(const struct dp_decision *d)
{
    const struct dp_early_stop *s = &d->state;
    DP_ASSERT(s->best_epoch <= s->epoch && s->kept <= s->epoch && s->epoch <= d->epochs);
    DP_ASSERT(d->resting <= s->epoch + 1 && d->decider < d->workers);
}

static char *text_of(const struct dp_decision *d)
{
    const struct dp_early_stop *s = &d->state;
    const struct dp_tested test[] = {d->test_kept, d->test_last};
    bool tested = d->test_kept.known || d->test_last.known;
    json_t *root =
        json_pack("{s:I,s:I,s:I,s:I,s:I,s:I,s:I,s:o*,s:o}", "resting", (json_int_t)d->resting, "decider",
                  (json_int_t)d->decider, "epoch", (json_int_t)s->epoch, "why", (json_int_t)s->why,
                  "best_epoch", (json_int_t)s->best_epoch, "kept", (json_int_t)s->kept, "from",
                  (json_int_t)d->from, "test", tested ? dp_tested_json(test, 2) : NULL, "figures",
                  dp_tested_json(d->figures + d->from - 1, d->state.epoch + 1 - d->from));
    dp_json_set_real(root, "value", s->value);
    dp_json_set_real(root, "best", s->best);
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}

char *dp_decision_pack(struct dp_decision *d)
{
    check(d);
    char *text;
    while ((text = text_of(d)) && strlen(text) > DP_DECISION_BYTES) {
        free(text);
        DP_ASSERT(d->from <= d->state.epoch);
        /* Several at once: one epoch at a time would format the value again for each. */
        d->from += (d->state.epoch + 1 - d->from) / 16 + 1;
    }
    return text;
}

static bool read_decision(const json_t *root, struct dp_decision *out)
{
    struct dp_early_stop *s = &out->state;
    json_int_t decider, epoch, resting, why, best, kept, from, known = s->epoch, epochs = out->epochs;
    if (json_unpack((json_t *)(uintptr_t)root, "{s:I,s:I,s:I,s:I,s:I,s:I,s:I}", "decider", &decider, "epoch",
                    &epoch, "resting", &resting, "why", &why, "best_epoch", &best, "kept", &kept, "from",
                    &from) != 0 ||
        decider < 0 || decider >= out->workers || epoch < 0 || epoch > epochs || resting < 0 ||
        resting > (epoch < epochs ? epoch + 1 : epochs) || why < 0 || why > DP_EARLY_STOP_PATIENCE ||
        best < 0 || best > epoch || kept < 0 || kept > epoch || from < 1 || from > epoch + 1)
        return false;
    out->decider = (uint32_t)decider;
    out->resting = (uint32_t)resting;
    out->from = (uint32_t)from;
    s->epoch = (uint32_t)epoch;
    s->best_epoch = (uint32_t)best;
    s->kept = (uint32_t)kept;
    s->why = (enum dp_early_stop_why)why;
    s->value = dp_json_get_real(root, "value");
    s->best = dp_json_get_real(root, "best");
    memset(out->figures, 0, (size_t)known * sizeof *out->figures);
    struct dp_tested test[2] = {0};
    const json_t *tested = json_object_get(root, "test");
    if (tested && !dp_tested_read(tested, 2, test))
        return false;
    out->test_kept = test[0];
    out->test_last = test[1];
    return dp_tested_read(json_object_get(root, "figures"), s->epoch + 1 - out->from,
                          out->figures + out->from - 1);
}

enum dp_status dp_decision_unpack(const void *bytes, size_t size, struct dp_decision *out,
                                  struct dp_error *err)
{
    json_t *root = json_loadb(bytes, size, 0, NULL);
    bool good = root && read_decision(root, out);
    json_decref(root);
    if (!good)
        return dp_fail(
            err, DP_DATA,
            "the decisions of this run on the first server (%zu bytes) are not those of %" PRIu32
            " epochs and %" PRIu32
            " workers: do all workers have the same version and cluster file? If so, another program set "
            "them: train further under a higher run number (downpour run --continue, or training.run)",
            size, out->epochs, out->workers);
    check(out);
    return DP_OK;
}
