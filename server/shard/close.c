#include "server/shard/close.h"

#include "common/base/bytes.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/model/row.h"
#include "server/cache/apply.h"
#include "server/shard/sections.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define PREFETCH_AHEAD 12u /* rows, as a pull does */

#define AGAIN_NS   UINT64_C(10000000)   /* the journal had no room, or the store's queue */
#define NO_ROOM_NS UINT64_C(1000000000) /* so long it waits before it fails by name */
#define FAILED_NS  UINT64_C(1000000000) /* its rows could not be read, or there was no memory */

/* ---- when */

/* The step that is complete and may be closed once it is durable. NULL: none. */
static const struct dp_buffered_step *complete(const struct dp_close *close)
{
    const struct dp_steps *steps = close->steps;
    if (!dp_steps_is_gathered(steps) || close->read_only || close->journaling->failed.status != DP_OK)
        return NULL;
    return dp_buffered_step(close->kept, steps->view.run, steps->open);
}

/* The step that can be closed: it is complete, and its pushes are durable, as is the view by which it is complete. NULL: none. */
static const struct dp_buffered_step *gathered(const struct dp_close *close)
{
    const struct dp_journaling *j = close->journaling;
    const struct dp_buffered_step *step = complete(close);
    return step && step->last_lsn <= j->durable && j->view_lsn <= j->durable ? step : NULL;
}

bool dp_close_is_due(const struct dp_close *close)
{
    return close->steps->stuck.status == DP_OK && gathered(close);
}

bool dp_close_is_coming(const struct dp_close *close)
{
    struct dp_error ignored;
    return close->steps->stuck.status == DP_OK && complete(close) &&
           !dp_journaling_lost(close->journaling, &ignored);
}

bool dp_close_is_hidden(const struct dp_close *close)
{
    return dp_steps_has_backups(close->steps) && close->lsn > close->journaling->durable;
}

enum dp_status dp_close_say(const struct dp_close *close, struct dp_error *err)
{
    const struct dp_steps *steps = close->steps;
    uint64_t step = steps->open - dp_close_is_hidden(close);
    if (dp_journaling_lost(close->journaling, err)) /* it never will be durable */
        return err->status;
    struct dp_wait wait = {.reason = DP_WAIT_STEP, .done = step, .total = step + 1};
    return dp_fail_wait(err, DP_AGAIN, wait, "shard %" PRIu32 " is closing step %" PRIu64 " of run %" PRIu32,
                        close->base->index, step, steps->view.run);
}

static bool is_under_way(const struct dp_close *close)
{
    return close->session.first != NULL;
}

bool dp_close_holds_push(const struct dp_close *close)
{
    return dp_close_is_due(close) || is_under_way(close);
}

bool dp_close_will_wake(const struct dp_close *close)
{
    struct dp_error ignored;
    return dp_close_holds_push(close) ||
           (dp_close_is_hidden(close) && !dp_journaling_lost(close->journaling, &ignored));
}

static void wake_all(struct dp_close *close)
{
    for (struct dp_session *session = dp_schedule_first(close->schedule, DP_WAIT_STEP); session;
         session = session->next_waiting)
        dp_schedule_wake(close->schedule, session);
}

/* ---- its request */

/* As if no key came twice. */
static uint32_t rows_most(const struct dp_buffered_tables *tables, uint32_t t)
{
    return tables->rows[t] < DP_ROWS_MAX ? (uint32_t)tables->rows[t] : DP_ROWS_MAX;
}

static enum dp_status make_room_for_sums(struct dp_close *close, const struct dp_buffered_tables *tables)
{
    size_t floats = 0;
    for (uint32_t t = 0; t < tables->count; t++) {
        const struct dp_cached_table *table = dp_cached_tables_find(close->tables, tables->table[t]);
        DP_ASSERT(table);
        floats += (size_t)rows_most(tables, t) * table->spec.dim;
    }
    if (floats <= close->sums_room)
        return DP_OK;
    free(close->sums);
    close->sums = dp_alloc_aligned(floats * sizeof(float));
    close->sums_room = close->sums ? floats : 0;
    return close->sums ? DP_OK : DP_NOMEM;
}

/* All keys of the step, each once, in the message's frames, and the sums of their gradients. */
static enum dp_status gather(struct dp_close *close, const struct dp_buffered_step *step,
                             const struct dp_buffered_tables *tables, struct dp_waiting *waiting)
{
    struct dp_request *request = &waiting->request;
    enum dp_status st = make_room_for_sums(close, tables);
    if (st != DP_OK)
        return st;
    float *to = close->sums;
    for (uint32_t t = 0; t < tables->count; t++) {
        const struct dp_cached_table *table = dp_cached_tables_find(close->tables, tables->table[t]);
        uint32_t most = rows_most(tables, t);
        struct dp_frame keys = dp_frame_new((size_t)most * 8);
        struct dp_buffer_sum sum;
        uint64_t mixed;
        uint32_t rows = 0;
        if (!keys.data)
            return DP_NOMEM;
        dp_message_add(waiting->message, keys);
        if (dp_buffer_sum_init(&sum, step, table->id, table->spec.dim) != DP_OK)
            return DP_NOMEM;
        for (; dp_buffer_sum_next(&sum, &mixed, to); to += table->spec.dim) {
            DP_ASSERT(rows < most); /* counted when its pushes came */
            dp_store_u64le((char *)keys.data + (size_t)rows++ * 8, mixed);
        }
        dp_buffer_sum_clear(&sum);
        DP_ASSERT(rows > 0);
        request->section[request->sections++] =
            (struct dp_section){.table = table->id, .rows = rows, .keys = keys.data};
    }
    return DP_OK;
}

static struct dp_waiting *make(struct dp_close *close, const struct dp_buffered_step *step)
{
    struct dp_buffered_tables tables = {0};
    struct dp_waiting *waiting = calloc(1, sizeof *waiting);
    if (!waiting)
        return NULL;
    if (step->examples > 0) /* else its gradients weigh nothing */
        dp_buffered_tables(step, &tables);
    DP_ASSERT(tables.count <= DP_SECTIONS_MAX); /* checked when they came */
    waiting->decoded = true;
    waiting->deadline_ns = UINT64_MAX;
    waiting->request.kind = DP_REQUEST_CLOSE;
    waiting->request.rate = step->push[0]->rate;
    waiting->request.member.run = step->run;
    waiting->request.member.step = step->step;
    waiting->message = dp_message_new(2 * tables.count + 1);
    if (!waiting->message || gather(close, step, &tables, waiting) != DP_OK)
        dp_waiting_free(&waiting);
    return waiting;
}

static void fail(struct dp_close *close, const struct dp_error *err)
{
    struct dp_error why = *err;
    (void)dp_wrap(&why, why.status, "shard %" PRIu32 " cannot close step %" PRIu64, close->base->index,
                  close->steps->open);
    if (close->steps->stuck.status == DP_OK)
        dp_log(DP_LOG_ERROR, "%s; it tries again each second", why.text);
    dp_steps_set_stuck(close->steps, &why);
    close->again_ns = dp_shard_now(close->base) + FAILED_NS;
    wake_all(close);
}

/* With backups a push more may have come since it was made. */
static bool is_ready(const struct dp_close *close, const struct dp_buffered_step *step)
{
    const struct dp_waiting *ready = close->ready;
    return ready && ready->request.member.run == step->run && ready->request.member.step == step->step &&
           close->ready_pushes == step->count;
}

/* Without memory: when it is due. */
static void get_ready(struct dp_close *close)
{
    const struct dp_buffered_step *step = complete(close);
    if (!step || is_under_way(close) || is_ready(close, step))
        return;
    dp_waiting_free(&close->ready);
    close->ready = make(close, step);
    close->ready_pushes = step->count;
}

static struct dp_waiting *take_ready(struct dp_close *close)
{
    struct dp_waiting *ready = close->ready;
    close->ready = NULL;
    return ready;
}

static void begin(struct dp_close *close)
{
    struct dp_session *session = &close->session;
    struct dp_error err = {0};
    get_ready(close);
    struct dp_waiting *waiting = take_ready(close);
    if (!waiting || dp_sections_check(close->base, close->tables, waiting, &err) != DP_OK) {
        if (!waiting)
            (void)dp_fail(&err, DP_NOMEM, "no memory for its rows");
        dp_waiting_free(&waiting);
        fail(close, &err);
        return;
    }
    waiting->request.sequence = session->done + 1;
    session->expected = session->done + 2;
    dp_schedule_add(close->schedule, waiting);
    dp_session_append(session, waiting);
    dp_schedule_run(close->schedule, session);
}

void dp_close_turn(struct dp_close *close, bool draining)
{
    close->draining = draining;
    if (!dp_steps_is_by_step(close->steps) && !dp_schedule_first(close->schedule, DP_WAIT_STEP))
        return;
    const struct dp_buffered_step *step = gathered(close);
    if (!dp_close_will_wake(close))
        wake_all(close);
    bool gives_up = draining && close->steps->stuck.status != DP_OK;
    if (step && !is_under_way(close) && !gives_up && dp_shard_now(close->base) >= close->again_ns)
        begin(close);
    else if (close->steps->stuck.status == DP_OK)
        get_ready(close);
}

uint32_t dp_close_rest_ms(const struct dp_close *close)
{
    if (is_under_way(close) || !gathered(close))
        return UINT32_MAX;
    uint64_t now = dp_shard_now(close->base), again = close->again_ns;
    return again > now ? (uint32_t)((again - now) / 1000000u) + 1 : 1;
}

/* ---- doing it */

/* Weights as they are, into frames after those of the keys; they are there already after an earlier try. */
static enum dp_status note_weights(struct dp_waiting *waiting, uint32_t s, const uint32_t *rows)
{
    struct dp_section *section = &waiting->request.section[s];
    const struct dp_cached_table *table = waiting->lookup.section[s].table;
    size_t bytes = (size_t)table->spec.dim * 4;
    struct dp_message *message = waiting->message;
    if (message->frames <= waiting->request.sections + s) {
        struct dp_frame weights = dp_frame_new(section->rows * bytes);
        if (!weights.data)
            return DP_NOMEM;
        dp_message_add(message, weights);
    }
    char *to = message->frame[waiting->request.sections + s].data;
    for (uint32_t i = 0; i < section->rows; i++, to += bytes) {
        if (i + PREFETCH_AHEAD < section->rows)
            dp_prefetch((const char *)dp_row_cache_row(table->cache, rows[i + PREFETCH_AHEAD]) +
                            DP_ROW_HEADER,
                        bytes);
        memcpy(to, dp_row_weights_const(dp_row_cache_row(table->cache, rows[i])), bytes);
    }
    section->values = message->frame[waiting->request.sections + s].data;
    section->value_bytes = section->rows * bytes;
    return DP_OK;
}

/* New rows are made, and the weights of all noted. */
static enum dp_status prepare(struct dp_close *close, struct dp_waiting *waiting,
                              uint32_t dims[DP_SECTIONS_MAX], struct dp_error *err)
{
    uint32_t *rows = close->misses->rows;
    for (uint32_t s = 0; s < waiting->request.sections; s++) {
        const struct dp_section *section = &waiting->request.section[s];
        struct dp_cached_table *table = waiting->lookup.section[s].table;
        dims[s] = table->spec.dim;
        if (dp_apply_make_rows(close->base, section, table, rows) != DP_OK ||
            note_weights(waiting, s, rows) != DP_OK)
            return dp_fail(err, DP_NOMEM, "no memory for its rows of table '%s'", table->spec.name);
        rows += section->rows;
    }
    return DP_OK;
}

/* Its rows have it from now on. */
static void end_step(struct dp_close *close, struct dp_waiting *waiting, const struct dp_record *record)
{
    DP_COUNT(&close->base->counters, examples, record->examples);
    dp_step_buffer_close(close->kept, record->run, record->step, waiting->request.sections,
                         waiting->request.section, record->dims, &waiting->message);
    dp_steps_closed(close->steps);
    close->lsn = close->journaling->lsn;
    if (!dp_steps_has_open(close->steps) || dp_steps_has_backups(close->steps))
        dp_step_buffer_forget_old(close->kept); /* no pull asks for them */
    DP_COUNT(&close->base->counters, steps_closed, 1);
    close->again_ns = close->no_room_ns = 0;
}

static enum dp_appended close_step(struct dp_close *close, struct dp_waiting *waiting,
                                   const struct dp_buffered_step *step, struct dp_error *err)
{
    const struct dp_request *request = &waiting->request;
    struct dp_record record = {.kind = DP_RECORD_CLOSE,
                               .members = step->count,
                               .run = step->run,
                               .step = step->step,
                               .examples = step->examples,
                               .view = close->steps->view.number,
                               .rate = request->rate};
    if (prepare(close, waiting, record.dims, err) != DP_OK)
        return DP_APPEND_REFUSED;
    enum dp_appended appended = dp_journaling_append(close->journaling, &record, request, err);
    const uint32_t *rows = close->misses->rows;
    const float *sums = close->sums;
    for (uint32_t s = 0; appended == DP_APPENDED && s < request->sections; s++) {
        struct dp_cached_table *table = waiting->lookup.section[s].table;
        struct dp_section summed = request->section[s];
        summed.values = sums;
        summed.value_bytes = (size_t)summed.rows * table->spec.dim * sizeof(float);
        struct dp_applied applied =
            dp_apply(&summed, table, rows, request->rate, close->journaling->lsn, UINT64_MAX, NULL);
        DP_COUNT(&close->base->counters, rows_bounded, applied.bounded);
        DP_COUNT(&close->base->counters, push_rows, summed.rows);
        rows += summed.rows;
        sums += (size_t)summed.rows * table->spec.dim;
    }
    if (appended == DP_APPENDED)
        end_step(close, waiting, &record);
    return appended;
}

/* What frees the journal, or the store's queue, may take a moment; what never does, as a full disk, is named. */
static void wait_for_room(struct dp_close *close, const struct dp_error *why)
{
    uint64_t now = dp_shard_now(close->base);
    if (close->no_room_ns == 0)
        close->no_room_ns = now;
    if (close->draining || now - close->no_room_ns >= NO_ROOM_NS)
        fail(close, why);
    else
        close->again_ns = now + AGAIN_NS;
}

bool dp_close_may(struct dp_close *close, struct dp_waiting *waiting)
{
    const struct dp_membership *of = &waiting->request.member;
    const struct dp_buffered_step *step = gathered(close);
    waiting->waits_for = DP_WAIT_NONE;
    if (!step || step->run != of->run || step->step != of->step)
        return false; /* a later run has begun, or the journal failed */
    if (waiting->broken.status != DP_OK) {
        fail(close, &waiting->broken);
        return false;
    }
    if (!dp_schedule_is_first(close->schedule, DP_WAIT_DISK, waiting))
        waiting->waits_for = DP_WAIT_DISK;
    return waiting->waits_for == DP_WAIT_NONE;
}

enum dp_done dp_close_do(struct dp_close *close, struct dp_waiting *waiting, struct dp_error *err)
{
    const struct dp_buffered_step *step = gathered(close);
    enum dp_appended appended = err->status == DP_AGAIN ? DP_APPEND_NO_ROOM : DP_APPEND_REFUSED;
    if (err->status == DP_OK)
        appended = close_step(close, waiting, step, err);
    if (appended == DP_APPEND_BEHIND && dp_journaling_may_wait(close->journaling)) {
        waiting->waits_for = DP_WAIT_DISK;
        return DP_DONE_WAIT;
    }
    if (appended == DP_APPENDED)
        wake_all(close);
    else if (appended == DP_APPEND_REFUSED)
        fail(close, err);
    else
        wait_for_room(close, err);
    return DP_DONE;
}

static void free_sums(struct dp_close *close)
{
    free(close->sums);
    close->sums = NULL;
    close->sums_room = 0;
}

void dp_close_clear(struct dp_close *close)
{
    while (close->session.first) {
        struct dp_waiting *waiting = dp_session_take_first(&close->session);
        dp_waiting_free(&waiting);
    }
    dp_waiting_free(&close->ready);
    free_sums(close);
}

/* ---- views */

void dp_close_view(struct dp_close *close)
{
    const struct dp_steps *steps = close->steps;
    uint32_t dropped = dp_step_buffer_drop_below(close->kept, steps->view.run, 0);
    dp_waiting_free(&close->ready); /* its step may be dropped */
    if (!is_under_way(close))
        free_sums(close);
    if (dp_steps_is_by_step(steps) && !dp_steps_has_open(steps)) {
        dropped += dp_step_buffer_drop_below(close->kept, steps->view.run, UINT64_MAX);
        dp_step_buffer_forget_old(close->kept);
    }
    if (dropped > 0)
        dp_log(DP_LOG_WARN,
               "shard %" PRIu32 ": %" PRIu32 " pushes of steps that were never closed are dropped: a later "
               "run has begun, or all members have left",
               close->base->index, dropped);
}
