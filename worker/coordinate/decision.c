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

static void set_number(json_t *root, const char *key, uint32_t value)
{
    (void)json_object_set_new(root, key, json_integer(value));
}

static char *text_of(const struct dp_decision *d)
{
    const struct dp_early_stop *s = &d->state;
    json_t *root = json_object();
    set_number(root, "resting", d->resting);
    set_number(root, "decider", d->decider);
    set_number(root, "epoch", s->epoch);
    set_number(root, "why", s->why);
    dp_json_set_real(root, "value", s->value);
    dp_json_set_real(root, "best", s->best);
    set_number(root, "best_epoch", s->best_epoch);
    set_number(root, "kept", s->kept);
    set_number(root, "from", d->from);
    const struct dp_tested test[] = {d->test_kept, d->test_last};
    if (d->test_kept.known || d->test_last.known)
        (void)json_object_set_new(root, "test", dp_tested_json(test, 2));
    json_t *figures = dp_tested_json(d->figures + d->from - 1, d->state.epoch + 1 - d->from);
    char *text = json_object_set_new(root, "figures", figures) == 0 ? json_dumps(root, JSON_COMPACT) : NULL;
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

static bool number(const json_t *root, const char *key, uint32_t most, uint32_t *out)
{
    const json_t *value = json_object_get(root, key);
    json_int_t n = json_integer_value(value);
    *out = (uint32_t)n;
    return json_is_integer(value) && n >= 0 && n <= most;
}

static bool read_decision(const json_t *root, struct dp_decision *out)
{
    struct dp_early_stop *s = &out->state;
    uint32_t epochs = out->epochs, known = s->epoch, why;
    if (!number(root, "decider", out->workers - 1, &out->decider) ||
        !number(root, "epoch", epochs, &s->epoch) ||
        !number(root, "resting", s->epoch < epochs ? s->epoch + 1 : epochs, &out->resting) ||
        !number(root, "why", DP_EARLY_STOP_PATIENCE, &why) ||
        !number(root, "best_epoch", s->epoch, &s->best_epoch) || !number(root, "kept", s->epoch, &s->kept) ||
        !number(root, "from", s->epoch + 1, &out->from) || out->from == 0)
        return false;
    s->why = (enum dp_early_stop_why)why;
    s->value = dp_json_get_real(root, "value");
    s->best = dp_json_get_real(root, "best");
    memset(out->figures, 0, known * sizeof *out->figures);
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
