#include "server/control/register_values.h"

#include "common/base/bytes.h"
#include "common/base/json.h"
#include "common/model/stream.h"
#include "common/wire/view.h"

#include <inttypes.h>
#include <string.h>

/* What a cluster file allows (common/config/fields.c). */
#define WORKERS_MAX DP_WORKERS_MAX
#define EPOCHS_MAX  1000000u

/* A version that an older build accepted and that no reader understands: nothing can follow from it. */
static enum dp_status refuse_after(struct dp_error *err)
{
    char why[sizeof err->text];
    memcpy(why, err->text, sizeof why);
    return dp_fail(
        err, DP_INVALID,
        "the version before cannot be read (%.200s): train under a higher run number (training.run)", why);
}

/* ---- run/N/view: common/wire/view.h */

static enum dp_status check_step(const char *what, uint32_t rank, uint64_t step, struct dp_error *err)
{
    if (step <= UINT64_MAX / 2)
        return DP_OK;
    return dp_fail(err, DP_INVALID, "worker %" PRIu32 ": %s is step %" PRIu64 ", which no run comes to", rank,
                   what, step);
}

/* The first version: all are there from the first step on, and one has joined. */
static enum dp_status check_first_view(const struct dp_view *view, struct dp_error *err)
{
    uint32_t joined = 0;
    for (uint32_t rank = 0; rank < view->members; rank++) {
        const struct dp_member *member = &view->member[rank];
        joined += member->incarnation != 0;
        if (member->until != UINT64_MAX || member->from != view->first_step || member->missed != 0)
            return dp_fail(err, DP_INVALID,
                           "worker %" PRIu32 " has left or missed steps in the first view of a run", rank);
    }
    if (joined != 1)
        return dp_fail(err, DP_INVALID, "%" PRIu32 " workers joined with the first view of a run, expected 1",
                       joined);
    return check_step("the first step", 0, view->first_step, err);
}

/* A seat as the client library changes it (common/client/member.c). */
static enum dp_status check_seat(const struct dp_member *was, const struct dp_member *is, uint32_t rank,
                                 struct dp_error *err)
{
    bool left = was->until != UINT64_MAX, moves = is->from != was->from;
    uint64_t first = left ? was->until : was->from; /* of the steps that it missed, if it returns */
    if (is->incarnation == 0)
        return dp_fail(err, DP_INVALID, "worker %" PRIu32 ": incarnation 0 is no process", rank);
    if (moves && (is->from < was->from || is->from < first || is->until != UINT64_MAX))
        return dp_fail(err, DP_INVALID,
                       "worker %" PRIu32 ": it returns from step %" PRIu64 " on, expected %" PRIu64
                       " or later and no end",
                       rank, is->from, first);
    if (is->missed != was->missed + (moves ? is->from - first : 0))
        return dp_fail(err, DP_INVALID, "worker %" PRIu32 ": missed %" PRIu64 " steps, after %" PRIu64, rank,
                       is->missed, was->missed);
    if (!moves && is->until != was->until && (left || is->until < is->from))
        return dp_fail(err, DP_INVALID,
                       "worker %" PRIu32 ": leaves before step %" PRIu64 ", it takes part from %" PRIu64
                       " on and left before %" PRIu64,
                       rank, is->until, was->from, was->until);
    enum dp_status st = check_step("its first", rank, is->from, err);
    return st == DP_OK && is->until != UINT64_MAX ? check_step("its end", rank, is->until, err) : st;
}

static enum dp_status check_next_view(const struct dp_view *was, const struct dp_view *is,
                                      struct dp_error *err)
{
    uint32_t changed = 0;
    if (is->mode != was->mode || is->slack != was->slack || is->members != was->members ||
        is->first_step != was->first_step)
        return dp_fail(err, DP_INVALID, "mode, slack, members and first_step do not change within a run");
    for (uint32_t rank = 0; rank < is->members; rank++) {
        const struct dp_member *a = &was->member[rank], *b = &is->member[rank];
        if (a->incarnation == b->incarnation && a->until == b->until && a->from == b->from &&
            a->missed == b->missed)
            continue;
        if (++changed > 1)
            return dp_fail(err, DP_INVALID, "more than one worker changes, worker %" PRIu32 " included",
                           rank);
        if (check_seat(a, b, rank, err) != DP_OK)
            return err->status;
    }
    return DP_OK;
}

enum dp_status dp_control_values_check_view(const struct dp_control_names_rules *rules,
                                            const struct dp_control_names_set *set, uint32_t run,
                                            struct dp_error *err)
{
    struct dp_view was = {0}, is = {0};
    (void)rules;
    enum dp_status st = dp_view_unpack(set->bytes, set->size, &is, err);
    if (st == DP_OK && (is.run != run || is.number != set->expected + 1))
        st =
            dp_fail(err, DP_INVALID, "run %" PRIu32 ", number %" PRIu64 ", expected %" PRIu32 " and %" PRIu64,
                    is.run, is.number, run, set->expected + 1);
    if (st == DP_OK && set->expected == 0)
        st = check_first_view(&is, err);
    if (st == DP_OK && set->expected > 0) {
        st = dp_view_unpack(set->before, set->before_size, &was, err);
        st = st == DP_INVALID ? refuse_after(err) : st;
        if (st == DP_OK)
            st = check_next_view(&was, &is, err);
    }
    dp_view_clear(&was);
    dp_view_clear(&is);
    return st;
}

/* ---- run/N/plan: worker/coordinate/training_plan.h */

struct plan {
    const char *text;
    size_t text_bytes; /* without the final 0 */
    const char *slots; /* of 8 bytes, not aligned */
    uint32_t workers;
    bool begun;
};

static enum dp_status read_plan(const void *bytes, size_t size, struct plan *plan, struct dp_error *err)
{
    const char *text = bytes, *end = size ? memchr(bytes, '\0', size) : NULL;
    size_t rest = end ? size - (size_t)(end - text) - 1 : 0;
    /* The text may have control characters: a CSV file's columns are named in it. */
    if (!end || end == text)
        return dp_fail(err, DP_INVALID, "its settings are no text that ends with a 0 byte");
    if (rest % 8 != 1 || rest / 8 == 0 || rest / 8 > WORKERS_MAX || (unsigned char)end[rest] > 1)
        return dp_fail(
            err, DP_INVALID,
            "%zu bytes after its settings, expected 8 for each of up to %u workers and a last one of 0 or 1",
            rest, WORKERS_MAX);
    *plan = (struct plan){.text = text,
                          .text_bytes = (size_t)(end - text),
                          .slots = end + 1,
                          .workers = (uint32_t)(rest / 8),
                          .begun = end[rest] == 1};
    return DP_OK;
}

/* A value of an older build may have no slots, and no byte after them. */
static bool read_earlier_plan(const struct dp_control_names_set *set, struct plan *plan)
{
    const char *text = set->before, *end = set->before_size ? memchr(text, '\0', set->before_size) : NULL;
    *plan = (struct plan){.text = text, .text_bytes = end ? (size_t)(end - text) : set->before_size};
    if (plan->text_bytes == 0)
        return false;
    size_t rest = end ? set->before_size - plan->text_bytes - 1 : 0;
    plan->slots = end ? end + 1 : NULL;
    plan->workers = (uint32_t)(rest / 8);
    plan->begun = rest % 8 != 0 && end[rest] != 0;
    return true;
}

static uint64_t slot(const struct plan *plan, uint32_t worker)
{
    return worker < plan->workers ? dp_load_u64le(plan->slots + (size_t)8 * worker) : 0;
}

enum dp_status dp_control_values_check_plan(const struct dp_control_names_rules *rules,
                                            const struct dp_control_names_set *set, uint32_t run,
                                            struct dp_error *err)
{
    struct plan was = {0}, is = {0};
    uint32_t changed = 0;
    (void)rules;
    (void)run;
    if (read_plan(set->bytes, set->size, &is, err) != DP_OK)
        return err->status;
    /* A plan that cannot be read binds no worker: it is replaced. */
    bool follows = set->expected > 0 && read_earlier_plan(set, &was);
    bool same = follows && was.text_bytes == is.text_bytes && memcmp(was.text, is.text, is.text_bytes) == 0;
    if (follows && was.begun && !same)
        return dp_fail(err, DP_INVALID,
                       "a worker has begun by other settings, which stay: use a higher run number");
    if (is.begun != (same && was.begun) && !(same && is.begun))
        return dp_fail(err, DP_INVALID,
                       "begun: %d, expected %d: a plan is set before it is begun, and stays begun", is.begun,
                       same && was.begun);
    if (same && was.workers > 0 && is.workers != was.workers)
        return dp_fail(err, DP_INVALID, "%" PRIu32 " workers, expected %" PRIu32, is.workers, was.workers);
    for (uint32_t w = 0; w < is.workers; w++)
        changed += slot(&is, w) != (same ? slot(&was, w) : 0);
    if (changed > 1)
        return dp_fail(err, DP_INVALID, "%" PRIu32 " workers join at once, expected 1", changed);
    return DP_OK;
}

/* ---- run/N/verdict: worker/coordinate/decision.h */

struct verdict {
    uint32_t resting, decider, epoch, why, best_epoch, kept, from;
};

static bool number(const json_t *root, const char *key, uint32_t most, uint32_t *out, struct dp_error *err)
{
    const json_t *value = json_object_get(root, key);
    json_int_t n = json_integer_value(value);
    *out = 0;
    if (!json_is_integer(value) || n < 0 || n > most) {
        (void)dp_fail(err, DP_INVALID, "\"%s\": expected a number from 0 to %" PRIu32, key, most);
        return false;
    }
    *out = (uint32_t)n;
    return true;
}

/* worker/telemetry/tested.h: for each epoch null, or a list of 8 that begins with a count. */
static enum dp_status check_figures(const json_t *root, const char *key, uint32_t most, struct dp_error *err)
{
    const json_t *figures = json_object_get(root, key);
    if (!json_is_array(figures) || json_array_size(figures) > most)
        return dp_fail(err, DP_INVALID, "\"%s\": expected a list of at most %" PRIu32 " epochs", key, most);
    for (size_t i = 0; i < json_array_size(figures); i++) {
        const json_t *row = json_array_get(figures, i);
        if (!json_is_null(row) && (json_array_size(row) != 8 || !json_is_integer(json_array_get(row, 0))))
            return dp_fail(err, DP_INVALID, "\"%s\": entry %zu is no list of 8 that begins with a count", key,
                           i);
    }
    return DP_OK;
}

static enum dp_status take_verdict(const json_t *root, struct verdict *out, struct dp_error *err)
{
    if (!number(root, "epoch", EPOCHS_MAX, &out->epoch, err) ||
        !number(root, "decider", WORKERS_MAX - 1, &out->decider, err) ||
        !number(root, "resting", out->epoch + 1, &out->resting, err) ||
        !number(root, "why", 2, &out->why, err) ||
        !number(root, "best_epoch", out->epoch, &out->best_epoch, err) ||
        !number(root, "kept", out->epoch, &out->kept, err) ||
        !number(root, "from", out->epoch + 1, &out->from, err))
        return err->status;
    if (out->from == 0)
        return dp_fail(err, DP_INVALID, "\"from\": 0, epochs are counted from 1");
    enum dp_status st = check_figures(root, "figures", out->epoch + 1 - out->from, err);
    return st == DP_OK && json_object_get(root, "test") ? check_figures(root, "test", 2, err) : st;
}

static enum dp_status read_verdict(const void *bytes, size_t size, struct verdict *out, struct dp_error *err)
{
    json_t *root = json_loadb(bytes, size, 0, NULL);
    *out = (struct verdict){0};
    enum dp_status st =
        root ? take_verdict(root, out, err) : dp_fail(err, DP_INVALID, "%zu bytes are no JSON", size);
    json_decref(root);
    return st;
}

/* An earlier version trained these epochs and judged none. */
static bool passes_over(const struct verdict *was, const struct verdict *is)
{
    return was->resting == 0 && is->resting == 0 && is->epoch >= was->epoch && is->why == 0 &&
           is->best_epoch == 0 && is->kept == 0 && is->from == is->epoch + 1;
}

enum dp_status dp_control_values_check_verdict(const struct dp_control_names_rules *rules,
                                               const struct dp_control_names_set *set, uint32_t run,
                                               struct dp_error *err)
{
    struct verdict was = {.from = 1}, is = {0};
    (void)rules;
    (void)run;
    if (read_verdict(set->bytes, set->size, &is, err) != DP_OK)
        return err->status;
    if (set->expected > 0 && read_verdict(set->before, set->before_size, &was, err) != DP_OK)
        return refuse_after(err);
    if (passes_over(&was, &is))
        return DP_OK;
    bool judges = is.epoch == was.epoch + 1;
    if (!judges && is.epoch != was.epoch)
        return dp_fail(err, DP_INVALID, "\"epoch\": %" PRIu32 ", after %" PRIu32, is.epoch, was.epoch);
    if (judges && (was.why != 0 || was.resting != is.epoch))
        return dp_fail(err, DP_INVALID, "\"epoch\": %" PRIu32 " is judged, but %s", is.epoch,
                       was.why != 0 ? "the training has stopped" : "not all workers have ended it");
    if (is.resting < was.resting || (judges && is.resting != was.resting))
        return dp_fail(err, DP_INVALID, "\"resting\": %" PRIu32 ", after %" PRIu32, is.resting, was.resting);
    if (!judges && (is.why != was.why || is.best_epoch != was.best_epoch || is.kept != was.kept))
        return dp_fail(err, DP_INVALID,
                       "\"why\", \"best_epoch\" and \"kept\" change only as an epoch is judged");
    if (is.best_epoch < was.best_epoch || is.from < was.from)
        return dp_fail(err, DP_INVALID,
                       "\"best_epoch\" and \"from\": %" PRIu32 " and %" PRIu32 ", after %" PRIu32
                       " and %" PRIu32,
                       is.best_epoch, is.from, was.best_epoch, was.from);
    return DP_OK;
}

/* ---- runs: worker/coordinate/run_number.h */

struct last_run {
    uint32_t run, first_epoch, epochs;
    bool done;
};

static enum dp_status read_runs(const void *bytes, size_t size, struct last_run *out, struct dp_error *err)
{
    json_t *root = json_loadb(bytes, size, 0, NULL);
    *out = (struct last_run){.done = json_is_true(json_object_get(root, "done"))};
    bool good = number(root, "run", INT32_MAX, &out->run, err) &&
                number(root, "first_epoch", INT32_MAX, &out->first_epoch, err) &&
                number(root, "epochs", INT32_MAX - out->first_epoch, &out->epochs, err);
    json_decref(root);
    if (good && out->run == 0)
        return dp_fail(err, DP_INVALID, "\"run\": 0, runs are counted from 1");
    return good ? DP_OK : DP_INVALID;
}

uint32_t dp_control_values_last_run(const void *bytes, size_t size, bool *done)
{
    struct last_run last;
    bool good = read_runs(bytes, size, &last, NULL) == DP_OK;
    if (done)
        *done = good && last.done;
    return good ? last.run : 0;
}

enum dp_status dp_control_values_check_runs(const struct dp_control_names_set *set, uint32_t *run,
                                            struct dp_error *err)
{
    struct last_run was = {0}, is;
    enum dp_status st = read_runs(set->bytes, set->size, &is, err);
    *run = is.run;
    if (st != DP_OK)
        return st;
    if (set->expected > 0 && read_runs(set->before, set->before_size, &was, err) != DP_OK)
        return refuse_after(err);
    bool ends = is.run == was.run && is.first_epoch == was.first_epoch && is.done;
    if (is.run <= was.run && !ends)
        return dp_fail(err, DP_INVALID, "\"run\": %" PRIu32 ", after %" PRIu32, is.run, was.run);
    return DP_OK;
}
