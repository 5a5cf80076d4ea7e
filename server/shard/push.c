/* Push: gradients into rows, all of a request or nothing, once for each (stream, number).
 *     member may push? -> check values -> stream admitted? -> (stream, number) seen? -> find the rows, room for new ones
 *     (misses.c, room.c) -> new rows -> append to the journal -> apply -> remember the number -> hold the answer until it is
 *     durable                                                                        (this order, always)
 * Why       A push that is refused for good has used up its number. Otherwise its stream would stall, or it
 *           could take effect after later pushes. Room before rows: nothing is half applied. A new row
 *           without an applied push equals no row, so a failure leaves nothing visible. Rows never hold a
 *           push that the journal's order does not know.
 * Again     A push that waits is tried again from the top. Its values, tables and stream are checked once
 *           (waiting->checked); its number and its rows are looked up each time, since other requests may
 *           have changed them. */
#include "server/modes/step_rules.h"
#include "server/shard/requests.h"
#include "server/shard/sections.h"
#include "server/shard/shard_state.h"

#include "server/cache/apply.h"

#include <float.h>
#include <inttypes.h>
#include <math.h>

static enum dp_status check_values(struct dp_shard *shard, const struct dp_section *section,
                                   const struct dp_cached_table *table, struct dp_error *err)
{
    size_t values = (size_t)section->rows * table->spec.dim;
    if (section->value_bytes != values * dp_value_bytes(section->type))
        return dp_fail(err, DP_INVALID,
                       "push to table '%s': %zu bytes of values for %" PRIu32 " rows of %" PRIu32
                       " (expected %zu)",
                       table->spec.name, section->value_bytes, section->rows, table->spec.dim,
                       values * dp_value_bytes(section->type));
    bool finite = section->type == DP_F32 ? dp_all_finite_f32(section->values, values)
                                          : dp_all_finite_bf16(section->values, values);
    if (!finite) {
        DP_COUNT(&shard->base.counters, pushes_not_finite, 1);
        return dp_fail(err, DP_NOT_FINITE,
                       "push to table '%s' holds a NaN or infinite gradient: nothing was applied",
                       table->spec.name);
    }
    return DP_OK;
}

static enum dp_status find_room(struct dp_shard *shard, const struct dp_request *request,
                                struct dp_error *err)
{
    struct dp_wait wait = {.reason = DP_WAIT_STREAMS, .subject = request->stream};
    const uint64_t now_ns = dp_shard_now(&shard->base);
    switch (dp_push_ids_reserve(shard->ids, request->stream, request->number, &now_ns)) {
    case DP_PUSH_ROOM:
        return DP_OK;
    case DP_PUSH_NO_MEMORY:
        return dp_fail(err, DP_NOMEM, "shard %" PRIu32 ": push ids", shard->base.index);
    case DP_PUSH_TOO_FAR:
        wait.reason = DP_WAIT_GAP;
        return dp_fail_wait(
            err, DP_AGAIN, wait,
            "push %" PRIu64 " of stream %016" PRIx64
            " is %u or more ahead of one that is missing, and so are those of %u streams already",
            request->number, request->stream, DP_PUSH_NARROW, DP_PUSH_WIDE_MAX);
    case DP_PUSH_TOO_MANY:
        break;
    }
    return dp_fail_wait(err, DP_AGAIN, wait,
                        "stream %016" PRIx64 " is new, and shard %" PRIu32
                        " has taken as many new ones as it may at once",
                        request->stream, shard->base.index);
}

/* What the consistency mode says to a push that is new by its id. REFUSED: why in err. */
static enum dp_step_verdict ask_rules(struct dp_shard *shard, struct dp_waiting *waiting,
                                      struct dp_error *err)
{
    const struct dp_step_rules *rules = dp_step_rules_of(&shard->steps);
    return rules->may_push ? rules->may_push(shard, waiting, err) : DP_STEP_GO;
}

/* Refuses a push. For good (its contents, or a row that is damaged): its number is used up, so that its stream does
 * not stall on it and it cannot take effect after later pushes; when it is sent again it hears the
 * same. One of a stream that no client was given uses up nothing; nor does one of a synchronous step, which is closed
 * only with a push of this member: its steps keep the order. A lack of this server refuses no push for good
 * (dp_shard_refuse). */
enum dp_done dp_shard_refuse_push(struct dp_shard *shard, struct dp_waiting *waiting, struct dp_error *err)
{
    const struct dp_request *request = &waiting->request;
    struct dp_error ignored = {0};
    enum dp_status before, why = err->status;
    err->wait = dp_wait_answered(err);
    err->status = dp_status_answered(why);
    bool in_step = request->member.given && dp_steps_is_by_step(&shard->steps);
    bool for_good = dp_status_class((int)err->status) != DP_CLASS_RETRY && request->stream != 0 && !in_step &&
                    dp_admission_check(&shard->admission, request->stream, &ignored) == DP_OK;
    if (!for_good)
        return DP_DONE_REFUSED;
    if (dp_push_ids_look(shard->ids, request->stream, request->number, &before) == DP_PUSH_NEW) {
        enum dp_appended appended = DP_APPEND_REFUSED;
        struct dp_record record;
        dp_journaling_describe(&record, DP_RECORD_PUSH, request);
        record.refused = why;
        if (find_room(shard, request, &ignored) == DP_OK && ask_rules(shard, waiting, &ignored) == DP_STEP_GO)
            appended = dp_journaling_append(&shard->journaling, &record, request, &ignored);
        if (appended == DP_APPENDED) {
            dp_push_ids_add(shard->ids, request->stream, request->number, why);
        } else { /* it cannot be remembered now: later it is refused again, for good */
            err->status = DP_AGAIN;
            err->wait = dp_wait_answered(&ignored);
        }
    }
    if (err->status == DP_AGAIN || dp_journaling_lost(&shard->journaling, err))
        return DP_DONE_REFUSED;
    dp_push_replies_hold(&shard->push_replies, waiting, NULL, err);
    return DP_DONE;
}

enum looked { LOOKED_NEW, LOOKED_REPEATED, LOOKED_REFUSED };

/* REPEATED: it was applied before. REFUSED: why in err. */
static enum looked look_id(struct dp_shard *shard, const struct dp_request *request, struct dp_error *err)
{
    enum dp_status before = DP_OK;
    switch (dp_push_ids_look(shard->ids, request->stream, request->number, &before)) {
    case DP_PUSH_NEW:
        return find_room(shard, request, err) == DP_OK ? LOOKED_NEW : LOOKED_REFUSED;
    case DP_PUSH_REPEATED:
        dp_push_ids_use(shard->ids, request->stream);
        return LOOKED_REPEATED;
    case DP_PUSH_REFUSED:
        dp_push_ids_use(shard->ids, request->stream);
        (void)dp_fail(err, before, "push %" PRIu64 " of stream %016" PRIx64 " %s: %s", request->number,
                      request->stream, before == DP_PARTIAL ? "counts as done" : "was refused before",
                      dp_status_text((int)before));
        return LOOKED_REFUSED;
    case DP_PUSH_ABOVE:
        dp_push_ids_use(shard->ids, request->stream);
        (void)dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_GAP, .subject = request->stream},
                           "push %" PRIu64 " of stream %016" PRIx64
                           " is over %u ahead of a push that has not arrived: its worker is down or far "
                           "behind. Use fewer pushes an epoch (--batch, --push-every)",
                           request->number, request->stream, DP_PUSH_WINDOW);
        return LOOKED_REFUSED;
    case DP_PUSH_TOO_OLD:
        break;
    }
    (void)dp_admission_too_old(&shard->admission, request->stream, err);
    return LOOKED_REFUSED;
}

/* Appends the push and applies it, at pushed->rate: rows never hold a push that the journal's order does not know. NO_ROOM,
 * REFUSED: why in err. */
static enum dp_appended append(struct dp_shard *shard, const struct dp_waiting *waiting,
                               struct dp_pushed *pushed, struct dp_error *err)
{
    const struct dp_request *request = &waiting->request;
    const struct dp_lookup_section *looked = waiting->lookup.section;
    uint32_t *rows = shard->misses.rows;
    struct dp_record record;
    dp_journaling_describe(&record, DP_RECORD_PUSH, request);
    record.rate = pushed->rate;
    for (uint32_t s = 0; s < request->sections; rows += request->section[s++].rows) {
        record.dims[s] = looked[s].table->spec.dim;
        if (dp_apply_make_rows(&shard->base, &request->section[s], looked[s].table, rows) != DP_OK) {
            (void)dp_fail(err, DP_NOMEM, "shard %" PRIu32 ": no memory for new rows of table '%s'",
                          shard->base.index, looked[s].table->spec.name);
            return DP_APPEND_REFUSED;
        }
    }
    enum dp_appended appended = dp_journaling_append(&shard->journaling, &record, request, err);
    if (appended != DP_APPENDED)
        return appended;
    uint64_t seen = request->measured ? request->pulled_lsn : UINT64_MAX;
    rows = shard->misses.rows;
    for (uint32_t s = 0; s < request->sections; rows += request->section[s++].rows) {
        struct dp_applied applied = dp_apply(&request->section[s], looked[s].table, rows, pushed->rate,
                                             shard->journaling.lsn, seen, shard->scratch);
        pushed->changed_rows += applied.changed;
        DP_COUNT(&shard->base.counters, rows_bounded, applied.bounded);
        pushed->rows += request->measured ? request->section[s].rows : 0;
        DP_COUNT(&shard->base.counters, push_rows, request->section[s].rows);
    }
    return DP_APPENDED;
}

/* Applies it, or does as the mode says. BEHIND: it must wait for the disk. */
static enum dp_appended put(struct dp_shard *shard, struct dp_waiting *waiting, enum dp_step_verdict verdict,
                            struct dp_pushed *pushed, struct dp_error *err)
{
    enum dp_appended appended = verdict == DP_STEP_GO
                                    ? append(shard, waiting, pushed, err)
                                    : dp_step_rules_of(&shard->steps)->at_push(shard, waiting, verdict, err);
    if (appended != DP_APPEND_BEHIND || dp_journaling_may_wait(&shard->journaling))
        return appended;
    err->status = DP_AGAIN;
    return DP_APPEND_REFUSED;
}

/* What of a push can be said before its rows are looked at, and does not change while it waits. */
static enum dp_status check(struct dp_shard *shard, struct dp_waiting *waiting, struct dp_error *err)
{
    const struct dp_request *request = &waiting->request;
    if (waiting->checked)
        return DP_OK;
    if (request->stream == 0)
        return dp_fail(err, DP_INVALID, "push: stream 0 belongs to no client");
    enum dp_status st = dp_admission_check(&shard->admission, request->stream, err);
    if (st == DP_OK)
        st = dp_sections_check(&shard->base, &shard->tables, waiting, err);
    for (uint32_t s = 0; s < request->sections && st == DP_OK; s++)
        st = check_values(shard, &request->section[s], waiting->lookup.section[s].table, err);
    waiting->checked = st == DP_OK;
    return st;
}

static enum dp_done repeated(struct dp_shard *shard, const struct dp_waiting *waiting, struct dp_error *err)
{
    if (dp_journaling_lost(&shard->journaling, err))
        return DP_DONE_REFUSED;
    DP_COUNT(&shard->base.counters, pushes_repeated, 1);
    /* Applied by this process or the one before it: this member has its push of that step. */
    if (waiting->request.member.given && !dp_steps_is_by_step(&shard->steps))
        dp_steps_pushed(&shard->steps, waiting->request.member.rank, waiting->request.member.step);
    dp_push_replies_hold(&shard->push_replies, waiting, &(struct dp_pushed){.repeated = true}, NULL);
    return DP_DONE;
}

/* How stale it is, and the rate at which it is applied: nothing that applying it changes. */
static void measure(const struct dp_shard *shard, const struct dp_request *push, struct dp_pushed *out)
{
    *out = (struct dp_pushed){.rate = push->rate};
    uint64_t applied = dp_shard_applied(shard);
    if (push->measured && push->pulled_at <= applied)
        out->staleness = applied - push->pulled_at;
    if (push->by_staleness && out->staleness > 1)
        out->rate = fmaxf(push->rate / (float)out->staleness, FLT_MIN);
}

/* A push that was taken (not repeated); of one that was dropped only that. */
static void count(struct dp_shard *shard, const struct dp_request *push, const struct dp_pushed *pushed)
{
    struct dp_counters *counters = &shard->base.counters;
    struct dp_histogram *histogram = shard->histogram;
    if (pushed->dropped) {
        DP_COUNT(counters, pushes_dropped, 1);
        return;
    }
    DP_COUNT(counters, pushes, 1);
    if (pushed->rate > 0) /* else the close of its step applies it */
        DP_COUNT(counters, examples, push->examples);
    if (push->measured) {
        dp_histogram_add(&histogram[DP_MEASURE_STALENESS], (double)pushed->staleness);
        DP_COUNT(counters, staleness_sum, pushed->staleness);
        DP_COUNT(counters, staleness_pushes, 1);
    }
    if (pushed->rows > 0) {
        dp_histogram_add(&histogram[DP_MEASURE_CHANGED], (double)pushed->changed_rows / pushed->rows);
        DP_COUNT(counters, measured_rows, pushed->rows);
        DP_COUNT(counters, changed_rows, pushed->changed_rows);
    }
    if (!push->member.given)
        return;
    dp_histogram_add(&histogram[DP_MEASURE_GAP], (double)pushed->gap);
    DP_COUNT(counters, clock_gap_sum, pushed->gap);
    DP_COUNT(counters, clock_gap_pushes, 1);
    DP_COUNT_MAX(counters, clock_gap_max, pushed->gap);
}

enum dp_done dp_shard_push(struct dp_shard *shard, struct dp_waiting *waiting, struct dp_error *err)
{
    const struct dp_request *request = &waiting->request;
    if (!dp_schedule_is_first(&shard->schedule, DP_WAIT_DISK, waiting)) {
        waiting->waits_for = DP_WAIT_DISK;
        return DP_DONE_WAIT;
    }
    waiting->waits_for = DP_WAIT_NONE;
    /* A refusal here uses up no number: the process that replaced it pushes the same under the same number. */
    if (request->member.given && dp_steps_admit(&shard->steps, &request->member, !waiting->checked,
                                                dp_shard_now(&shard->base), err) != DP_OK)
        return DP_DONE_REFUSED;
    if (check(shard, waiting, err) != DP_OK)
        return dp_shard_refuse_push(shard, waiting, err);
    enum looked looked = look_id(shard, request, err);
    if (looked == LOOKED_REPEATED)
        return repeated(shard, waiting, err);
    enum dp_step_verdict verdict = looked == LOOKED_NEW ? ask_rules(shard, waiting, err) : DP_STEP_REFUSED;
    if (verdict == DP_STEP_WAIT)
        return DP_DONE_WAIT;
    if (verdict == DP_STEP_GO && dp_sections_wait(&shard->misses, &shard->schedule, waiting, err))
        return DP_DONE_WAIT;
    struct dp_pushed pushed;
    measure(shard, request, &pushed);
    if (err->status == DP_OK && put(shard, waiting, verdict, &pushed, err) == DP_APPEND_BEHIND) {
        waiting->waits_for = DP_WAIT_DISK;
        return DP_DONE_WAIT;
    }
    if (err->status != DP_OK)
        return dp_shard_refuse_push(shard, waiting, err);

    pushed.dropped = verdict == DP_STEP_DROP;
    if (verdict != DP_STEP_GO)
        pushed.rate = 0, pushed.staleness = 0; /* its step's close applies it, to the weights that it is of */
    dp_push_ids_add(shard->ids, request->stream, request->number, DP_OK);
    if (request->member.given)
        dp_steps_pushed(&shard->steps, request->member.rank, request->member.step);
    if (request->member.given && !pushed.dropped)
        pushed.gap = dp_steps_gap(&shard->steps, request->member.step);
    count(shard, request, &pushed);
    dp_push_replies_hold(&shard->push_replies, waiting, &pushed, NULL);
    return DP_DONE;
}
