#include "server/shard/step_buffering.h"

#include "common/base/log.h"
#include "server/shard/shard_state.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define STEP_SHARE      2u /* of the cache: the rows of a step, as of any request */
#define KEPT_SHARE      4u /* as much as this part of the cache's budget: the pushes of a step */
#define KEPT_LEAST      ((uint64_t)64 << 20) /* but not less */
#define JOURNAL_SHARE   8u /* of the journal's budget: the pushes of a step with its close */
#define JOURNAL_DEFAULT ((uint64_t)4 << 30)
#define SEGMENT_DEFAULT ((uint64_t)256 << 20)
#define AGAIN_NS                                                                                             \
    UINT64_C(10000000) /* between two attempts to reappend: the disk is behind, or has no segment yet */
#define TELL_NS       UINT64_C(10000000000) /* for so long that may be */
#define SEGMENT_HEADS ((uint64_t)8192)      /* of a segment, and of a record */

/* What a step comes to with one push more. */
struct step_size {
    struct dp_buffered_tables tables;
    uint64_t rows, cache_bytes, pushes_bytes, close_bytes, journal_bytes;
};

static void add_rows(const struct dp_shard *shard, struct step_size *size)
{
    size->rows = size->cache_bytes = size->close_bytes = 0;
    for (uint32_t t = 0; t < size->tables.count && t < DP_SECTIONS_MAX; t++) {
        const struct dp_cached_table *table = dp_cached_tables_find(&shard->tables, size->tables.table[t]);
        uint64_t rows = size->tables.rows[t];
        size->rows = rows > size->rows ? rows : size->rows;
        size->cache_bytes += rows * (table->cache->row_bytes + DP_ROW_SLOT_COST);
        size->close_bytes += rows * (8 + (uint64_t)table->spec.dim * 4);
    }
    size->journal_bytes = size->pushes_bytes + size->close_bytes;
}

/* As if no row came twice. */
static struct step_size size_with(const struct dp_shard *shard, const struct dp_buffered_step *step,
                                  const struct dp_waiting *waiting)
{
    const struct dp_request *request = &waiting->request;
    struct step_size size = {.pushes_bytes = (step ? step->bytes : 0) + waiting->bytes};
    if (step)
        dp_buffered_tables(step, &size.tables);
    dp_buffered_tables_add(&size.tables, request->sections, request->section);
    add_rows(shard, &size);
    return size;
}

/* Each row once. */
static enum dp_status count_once(const struct dp_shard *shard, struct dp_buffered_step *step,
                                 const struct dp_request *push, struct step_size *size, struct dp_error *err)
{
    for (uint32_t t = 0; t < size->tables.count && t < DP_SECTIONS_MAX; t++)
        if (dp_step_buffer_union_rows(step, size->tables.table[t], push->sections, push->section,
                                      &size->tables.rows[t]) != DP_OK)
            return dp_fail(err, DP_NOMEM, "shard %" PRIu32 ": no memory to count the rows of a step",
                           shard->base.index);
    add_rows(shard, size);
    return DP_OK;
}

/* Bounds that no wait helps with. */
static enum dp_status check_size(const struct dp_shard *shard, const struct step_size *size, uint64_t step,
                                 struct dp_error *err)
{
    const struct dp_journal_options *journal = &shard->options.journal;
    uint64_t cache = shard->budget.bytes / STEP_SHARE, kept = shard->budget.bytes / KEPT_SHARE;
    uint64_t segment = journal->segment_bytes ? journal->segment_bytes : SEGMENT_DEFAULT;
    uint64_t share = (journal->budget_bytes ? journal->budget_bytes : JOURNAL_DEFAULT) / JOURNAL_SHARE;
    kept = kept > KEPT_LEAST ? kept : KEPT_LEAST;
    if (size->tables.count > DP_SECTIONS_MAX)
        return dp_fail(err, DP_INVALID,
                       "step %" PRIu64 " pushes to more than %u tables: push to fewer in one step", step,
                       DP_SECTIONS_MAX);
    if (size->rows > DP_ROWS_MAX || size->cache_bytes > cache)
        return dp_fail(err, DP_INVALID,
                       "shard %" PRIu32 ": the rows of step %" PRIu64 " take %" PRIu64
                       " bytes, of a row cache of %" PRIu64 "; a step may take %" PRIu64 ", and %" PRIu64
                       " of a table, which may be %u: take smaller minibatches, or give servers "
                       "more (cache_bytes), or add servers",
                       shard->base.index, step, size->cache_bytes, shard->budget.bytes, cache, size->rows,
                       DP_ROWS_MAX);
    if (size->pushes_bytes > kept)
        return dp_fail(err, DP_INVALID,
                       "shard %" PRIu32 ": the pushes of step %" PRIu64 " take %" PRIu64
                       " bytes, which may be %" PRIu64
                       ", a quarter of cache_bytes or 64 MiB: take smaller minibatches, or give servers more "
                       "(cache_bytes), or add servers",
                       shard->base.index, step, size->pushes_bytes, kept);
    if (size->close_bytes + SEGMENT_HEADS > segment || size->journal_bytes > share)
        return dp_fail(
            err, DP_INVALID,
            "shard %" PRIu32 ": step %" PRIu64 " takes %" PRIu64
            " bytes of the journal, and its close %" PRIu64 "; they may be %" PRIu64 " and %" PRIu64
            ": take smaller minibatches, or raise journal_bytes in the cluster file, or add servers",
            shard->base.index, step, size->journal_bytes, size->close_bytes, share, segment - SEGMENT_HEADS);
    return DP_OK;
}

enum dp_status dp_step_buffering_check(const struct dp_shard *shard, const struct dp_waiting *waiting,
                                       struct dp_error *err)
{
    const struct dp_request *request = &waiting->request;
    const struct dp_membership *member = &request->member;
    struct dp_buffered_step *step = dp_buffered_step(&shard->kept, member->run, member->step);
    if (!shard->journaling.journal)
        return dp_fail(err, DP_UNSUPPORTED,
                       "shard %" PRIu32 " has no journal, which keeps the pushes of synchronous steps: set "
                       "durability to machine or process",
                       shard->base.index);
    /* The pushes between two closes in the journal are one step's: the floor (step_buffer.h) stands on that. */
    if (member->step > shard->steps.open) {
        (void)dp_steps_say_held(&shard->steps, member, dp_shard_now(&shard->base), err);
        err->status = DP_AGAIN;
        return DP_AGAIN;
    }
    if (request->by_staleness)
        return dp_fail(
            err, DP_INVALID,
            "push of step %" PRIu64
            ": its rate is to be divided by its staleness, but in sync one rate applies a step, whose "
            "pushes are not stale",
            member->step);
    if (step && memcmp(&step->push[0]->rate, &request->rate, sizeof request->rate) != 0)
        return dp_fail(
            err, DP_INVALID,
            "push of step %" PRIu64 ": rate %g, but that of worker %" PRIu32
            " is %g: one rate applies the sum of a step. Give all workers the same; if the rate was "
            "changed between two starts, start all with the earlier one until this step is closed",
            member->step, (double)request->rate, step->push[0]->rank, (double)step->push[0]->rate);
    struct step_size size = size_with(shard, step, waiting);
    struct dp_error ignored;
    if (check_size(shard, &size, member->step, &ignored) == DP_OK)
        return DP_OK;
    if (step && count_once(shard, step, request, &size, err) != DP_OK)
        return err->status;
    return check_size(shard, &size, member->step, err);
}

enum dp_status dp_step_buffering_check_other(const struct dp_shard *shard, struct dp_error *err)
{
    if (dp_step_buffer_floor(&shard->kept) >= shard->journaling.lsn ||
        !dp_journaling_fills(&shard->journaling))
        return DP_OK;
    return dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_DISK},
                        "shard %" PRIu32 ": half of its journal is full until step %" PRIu64
                        " is closed, and the rest is for the pushes of that",
                        shard->base.index, shard->steps.open);
}

/* ---- a step that stays open */

static enum dp_appended append_push(struct dp_journaling *journaling, const struct dp_buffered_push *push,
                                    struct dp_request *request, struct dp_error *err)
{
    struct dp_record record = {.kind = DP_RECORD_KEPT_PUSH,
                               .members = 1,
                               .run = push->run,
                               .rank = push->rank,
                               .step = push->step,
                               .examples = push->examples,
                               .view = push->view,
                               .rate = push->rate};
    request->stream = push->stream;
    request->number = push->number;
    request->sections = push->sections;
    for (uint32_t s = 0; s < push->sections; s++) {
        const struct dp_section *section = &push->section[s];
        size_t values = (size_t)section->rows * dp_value_bytes(section->type);
        request->section[s] = *section;
        record.dims[s] = push->dim[s];
        DP_ASSERT(section->value_bytes == values * push->dim[s]);
    }
    return dp_journaling_append(journaling, &record, request, err);
}

/* A close that applies nothing. */
static enum dp_appended append_old(struct dp_journaling *journaling, const struct dp_step_buffer_old *old,
                                   struct dp_request *request, struct dp_error *err)
{
    struct dp_record record = {.kind = DP_RECORD_CLOSE, .run = old->run, .step = old->step};
    request->stream = request->number = 0;
    request->sections = old->sections;
    if (old->sections > 0) {
        memcpy(request->section, old->section, old->sections * sizeof old->section[0]);
        memcpy(record.dims, old->dim, old->sections * sizeof old->dim[0]);
    }
    return dp_journaling_append(journaling, &record, request, err);
}

/* Not APPENDED: why in err; the next call goes on after the last that was appended. */
static enum dp_appended reappend(struct dp_step_buffer *kept, struct dp_journaling *journaling,
                                 struct dp_error *err)
{
    struct dp_request *request = calloc(1, sizeof *request);
    enum dp_appended appended = DP_APPENDED;
    if (!request) {
        (void)dp_fail(err, DP_NOMEM, "no memory for a record");
        return DP_APPEND_REFUSED;
    }
    dp_step_buffer_begin_again(kept, journaling->lsn);
    for (const struct dp_buffered_step *step = kept->first; appended == DP_APPENDED && step;
         step = step->next)
        for (uint32_t i = 0; appended == DP_APPENDED && i < step->count; i++) {
            if (!dp_step_buffer_lacks_again(kept, step->push[i]))
                continue;
            appended = append_push(journaling, step->push[i], request, err);
            if (appended == DP_APPENDED)
                dp_step_buffer_appended_again(step->push[i], journaling->lsn);
        }
    if (appended == DP_APPENDED && kept->old.run > 0)
        appended = append_old(journaling, &kept->old, request, err);
    if (appended == DP_APPENDED)
        dp_step_buffer_end_again(kept, journaling->lsn);
    free(request);
    return appended;
}

bool dp_step_buffering_goes_on(const struct dp_shard *shard)
{
    const struct dp_journaling *j = &shard->journaling;
    uint64_t floor = dp_step_buffer_floor(&shard->kept);
    return dp_steps_is_by_step(&shard->steps) && !dp_steps_is_gathered(&shard->steps) && floor < j->lsn &&
           floor <= shard->write_back.marked_lsn && dp_journaling_fills(j) && j->failed.status == DP_OK &&
           dp_shard_now(&shard->base) >= shard->step_buffering.again_ns;
}

void dp_step_buffering_turn(struct dp_shard *shard)
{
    struct dp_error err = {0};
    if (!dp_step_buffering_goes_on(shard))
        return;
    if (reappend(&shard->kept, &shard->journaling, &err) == DP_APPENDED) {
        dp_log(DP_LOG_INFO,
               "shard %" PRIu32 ": half of its journal is full and step %" PRIu64 " is open: its %" PRIu32
               " pushes were appended again, so that older segments can go",
               shard->base.index, shard->steps.open, dp_step_buffer_count(&shard->kept));
        shard->step_buffering.failing_ns = 0;
        return;
    }
    uint64_t now = dp_shard_now(&shard->base);
    shard->step_buffering.again_ns = now + AGAIN_NS;
    shard->step_buffering.failing_ns =
        shard->step_buffering.failing_ns ? shard->step_buffering.failing_ns : now;
    if (now - shard->step_buffering.failing_ns < TELL_NS)
        return;
    shard->step_buffering.failing_ns = now;
    dp_log(
        DP_LOG_WARN,
        "shard %" PRIu32 ": half of its journal is full and step %" PRIu64
        " is open, and its pushes could not be appended again: %s; raise journal_bytes in the cluster file",
        shard->base.index, shard->steps.open, err.text);
}

enum dp_appended dp_step_buffering_drop(struct dp_shard *shard, const struct dp_waiting *waiting,
                                        struct dp_error *err)
{
    struct dp_record record;
    dp_journaling_describe(&record, DP_RECORD_PUSH, &waiting->request);
    record.dropped = true;
    return dp_journaling_append(&shard->journaling, &record, &waiting->request, err);
}

enum dp_appended dp_step_buffering_keep(struct dp_shard *shard, struct dp_waiting *waiting,
                                        struct dp_error *err)
{
    const struct dp_request *request = &waiting->request;
    struct dp_record record;
    dp_journaling_describe(&record, DP_RECORD_KEPT_PUSH, request);
    for (uint32_t s = 0; s < request->sections; s++)
        record.dims[s] = waiting->lookup.section[s].table->spec.dim;
    struct dp_buffered_push *push = dp_buffered_push_new(request, &record, waiting->bytes);
    enum dp_appended appended = DP_APPEND_REFUSED;
    if (!push || dp_step_buffer_reserve(&shard->kept, push) != DP_OK)
        (void)dp_fail(err, DP_NOMEM, "shard %" PRIu32 ": no memory to keep a push", shard->base.index);
    else
        appended = dp_journaling_append(&shard->journaling, &record, request, err);
    if (appended == DP_APPENDED)
        dp_step_buffer_add(&shard->kept, &push, shard->journaling.lsn, &waiting->message);
    dp_buffered_push_free(&push);
    return appended;
}
