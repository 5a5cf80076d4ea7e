#include "server/steps/steps_replay.h"

#include "common/base/bytes.h"
#include "common/base/memory.h"
#include "server/cache/apply.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_AT_ONCE 256u

enum dp_status dp_steps_replay_view(const struct dp_steps_replay *r, const struct dp_record *record,
                                    struct dp_error *err)
{
    struct dp_view view;
    if (dp_view_unpack(record->bytes, record->size, &view, err) != DP_OK)
        return dp_wrap(err, DP_CORRUPT, "a view");
    enum dp_view_news news = dp_steps_look(r->steps, &view, NULL);
    if (news == DP_VIEW_NEWER || news == DP_VIEW_NEW_RUN)
        dp_steps_take(r->steps, &view, dp_shard_now(r->base));
    dp_view_clear(&view);
    return DP_OK;
}

void dp_steps_replay_push(const struct dp_steps_replay *r, const struct dp_record *record)
{
    if (record->members > 0 && record->refused == DP_OK && record->run == r->steps->view.run &&
        record->rank < r->steps->view.members)
        dp_steps_pushed(r->steps, record->rank, record->step);
}

/* The record in one frame. NULL: out of memory. */
static struct dp_message *copy_of(const void *bytes, size_t size)
{
    struct dp_message *message = dp_message_new(1);
    struct dp_frame frame = message ? dp_frame_copy(bytes, size) : (struct dp_frame){0};
    if (!frame.data) {
        dp_message_free(&message);
        return NULL;
    }
    dp_message_add(message, frame);
    return message;
}

/* Sections that point into bytes point into the copy. */
static void move(struct dp_section *section, uint32_t sections, const void *bytes,
                 const struct dp_message *copy)
{
    for (uint32_t s = 0; s < sections; s++) {
        const char *from = bytes, *to = copy->frame[0].data;
        section[s].keys = to + ((const char *)section[s].keys - from);
        section[s].values = to + ((const char *)section[s].values - from);
    }
}

/* The same record, appended again (step_buffering.h). */
static bool is_same(const struct dp_buffered_push *before, const void *bytes, size_t size)
{
    const struct dp_frame *frame = &before->message->frame[0];
    return frame->size == size && memcmp(frame->data, bytes, size) == 0;
}

enum dp_status dp_steps_replay_kept(const struct dp_steps_replay *r, const struct dp_record *record,
                                    const struct dp_request *push, uint64_t lsn, const void *bytes,
                                    size_t size, struct dp_error *err)
{
    const struct dp_buffered_push *before =
        dp_step_buffer_find(r->kept, record->run, record->step, record->rank);
    if (before && is_same(before, bytes, size)) {
        dp_step_buffer_found_again(r->kept, record->run, record->step, record->rank, lsn);
        return DP_OK;
    }
    if (before)
        return dp_fail(err, DP_CORRUPT, "a second push of worker %" PRIu32 " in step %" PRIu64, record->rank,
                       record->step);
    struct dp_message *copy = copy_of(bytes, size);
    struct dp_buffered_push *kept = copy ? dp_buffered_push_new(push, record, size) : NULL;
    if (!kept || dp_step_buffer_reserve(r->kept, kept) != DP_OK) {
        dp_buffered_push_free(&kept);
        dp_message_free(&copy);
        return dp_fail(err, DP_NOMEM, "no memory for the push of a step");
    }
    move(kept->section, kept->sections, bytes, copy);
    dp_step_buffer_add(r->kept, &kept, lsn, &copy);
    dp_steps_replay_push(r, record);
    return DP_OK;
}

/* The step that a close names; NULL: why in err. */
static const struct dp_buffered_step *find_step(const struct dp_steps_replay *r,
                                                const struct dp_record *close, struct dp_error *err)
{
    const struct dp_buffered_step *step = dp_buffered_step(r->kept, close->run, close->step);
    if (step && step->count == close->members && step->first_lsn > r->kept->closed_lsn)
        return step;
    (void)dp_fail(err, DP_CORRUPT,
                  "step %" PRIu64 " of run %" PRIu32 " was closed with %" PRIu32
                  " pushes; the journal has %" PRIu32,
                  close->step, close->run, close->members, step ? step->count : 0);
    return NULL;
}

/* rows: of the section's keys, which must be all those of the step in this table. A few rows at a time: a step may be large. */
static bool apply_sums(struct dp_buffer_sum *sum, const struct dp_section *section,
                       struct dp_cached_table *table, const uint32_t *rows, float rate, uint64_t lsn,
                       float *gradients)
{
    uint32_t dim = table->spec.dim;
    uint64_t mixed;
    for (uint32_t done = 0, n; done < section->rows; done += n) {
        struct dp_section some = {.table = section->table,
                                  .keys = (const char *)section->keys + (size_t)done * 8};
        for (n = 0; n < ROWS_AT_ONCE && done + n < section->rows; n++)
            if (!dp_buffer_sum_next(sum, &mixed, gradients + (size_t)n * dim) ||
                mixed != dp_load_u64le((const char *)some.keys + (size_t)n * 8))
                return false;
        some.rows = n;
        some.values = gradients;
        some.value_bytes = (size_t)n * dim * sizeof(float);
        (void)dp_apply(&some, table, rows + done, rate, lsn, UINT64_MAX, NULL);
    }
    return !dp_buffer_sum_next(sum, &mixed, NULL);
}

/* The bits are those of the close (close.c): both add by dp_buffer_sum_next and apply by dp_apply. */
static enum dp_status apply_section(const struct dp_steps_replay *r, const struct dp_buffered_step *step,
                                    const struct dp_section *section, float rate, uint64_t lsn,
                                    struct dp_error *err)
{
    struct dp_cached_table *table = dp_cached_tables_find(r->tables, section->table);
    struct dp_buffer_sum sum = {0};
    uint32_t *rows = malloc(((size_t)section->rows + 1) * sizeof rows[0]);
    float *gradients = dp_alloc_aligned((size_t)ROWS_AT_ONCE * table->spec.dim * sizeof(float));
    enum dp_status st = DP_OK;
    if (!rows || !gradients || dp_buffer_sum_init(&sum, step, table->id, table->spec.dim) != DP_OK)
        st = dp_fail(err, DP_NOMEM, "no memory for the sums of %" PRIu32 " rows", section->rows);
    if (st == DP_OK)
        dp_row_cache_find_many(table->cache, section->keys, section->rows, rows);
    if (st == DP_OK && dp_apply_make_rows(r->base, section, table, rows) != DP_OK)
        st = dp_fail(err, DP_NOMEM, "no memory for new rows of table '%s'", table->spec.name);
    if (st == DP_OK && !apply_sums(&sum, section, table, rows, rate, lsn, gradients))
        st = dp_fail(err, DP_CORRUPT, "the close of a step has other rows of table '%s' than its pushes",
                     table->spec.name);
    dp_buffer_sum_clear(&sum);
    free(gradients);
    free(rows);
    DP_COUNT(&r->base->counters, rows_replayed, section->rows);
    return st;
}

/* Into section: those of the close, in a copy of its record. NULL: no memory, which is in err. */
static struct dp_message *copy_weights(const struct dp_request *rows, const void *bytes, size_t size,
                                       struct dp_section section[DP_SECTIONS_MAX], struct dp_error *err)
{
    struct dp_message *copy = copy_of(bytes, size);
    if (!copy) {
        (void)dp_fail(err, DP_NOMEM, "no memory for the weights from before a step");
        return NULL;
    }
    if (rows->sections > 0)
        memcpy(section, rows->section, rows->sections * sizeof section[0]);
    move(section, rows->sections, bytes, copy);
    return copy;
}

/* Its rows and the steps have it: only the weights from before are restored. */
static enum dp_status restore_old(const struct dp_steps_replay *r, const struct dp_record *close,
                                  const struct dp_request *rows, uint64_t lsn, const void *bytes, size_t size,
                                  struct dp_error *err)
{
    struct dp_section section[DP_SECTIONS_MAX];
    if (close->run != r->steps->view.run || close->step + 1 != r->steps->open)
        return DP_OK; /* a later close comes */
    struct dp_message *copy = copy_weights(rows, bytes, size, section, err);
    if (!copy)
        return err->status;
    dp_step_buffer_restore_old(r->kept, close->run, close->step, rows->sections, section, close->dims, &copy,
                               lsn);
    return DP_OK;
}

/* Its rows have it. */
static enum dp_status end_step(const struct dp_steps_replay *r, const struct dp_record *close,
                               const struct dp_request *rows, const void *bytes, size_t size,
                               struct dp_error *err)
{
    struct dp_section section[DP_SECTIONS_MAX];
    struct dp_message *copy = copy_weights(rows, bytes, size, section, err);
    if (!copy)
        return err->status;
    dp_step_buffer_close(r->kept, close->run, close->step, rows->sections, section, close->dims, &copy);
    if (close->run == r->steps->view.run && dp_steps_has_backups(r->steps))
        dp_step_buffer_forget_old(r->kept); /* no pull asks for them */
    if (close->run != r->steps->view.run || close->step != r->steps->open)
        return DP_OK; /* the marks have it, or a later run has begun */
    if (!dp_steps_is_by_step(r->steps) || !dp_steps_is_gathered(r->steps))
        return dp_fail(err, DP_CORRUPT, "step %" PRIu64 " was closed before enough had pushed it",
                       close->step);
    dp_steps_closed(r->steps);
    return DP_OK;
}

enum dp_status dp_steps_replay_close(const struct dp_steps_replay *r, const struct dp_record *close,
                                     const struct dp_request *rows, uint64_t lsn, const void *bytes,
                                     size_t size, struct dp_error *err)
{
    if (close->members == 0)
        return restore_old(r, close, rows, lsn, bytes, size, err);
    const struct dp_buffered_step *step = find_step(r, close, err);
    if (!step)
        return err->status;
    enum dp_status st = DP_OK;
    for (uint32_t s = 0; st == DP_OK && s < rows->sections; s++)
        st = apply_section(r, step, &rows->section[s], rows->rate, lsn, err);
    return st == DP_OK ? end_step(r, close, rows, bytes, size, err) : st;
}

enum dp_status dp_steps_replay_end(const struct dp_steps_replay *r, struct dp_error *err)
{
    const struct dp_steps *steps = r->steps;
    (void)dp_step_buffer_drop_below(r->kept, steps->view.run, steps->open);
    if (steps->view.run == 0 || !dp_steps_is_by_step(steps))
        return DP_OK;
    if (!dp_steps_has_open(steps))
        (void)dp_step_buffer_drop_below(r->kept, steps->view.run, UINT64_MAX);
    if (!dp_steps_has_open(steps))
        dp_step_buffer_forget_old(r->kept);
    for (uint32_t rank = 0; rank < steps->view.members; rank++)
        if (dp_steps_takes_part(steps, rank, steps->open) && steps->next[rank] > steps->open &&
            !dp_step_buffer_find(r->kept, steps->view.run, steps->open, rank))
            return dp_fail(err, DP_CORRUPT,
                           "the push of worker %" PRIu32 " in step %" PRIu64
                           " is not in the journal, though the store's marks count it",
                           rank, steps->open);
    return DP_OK;
}
