/* Why       Keys of a push ascend, so the keys of a step are a merge of its pushes. A heap of (key, rank) gives equal keys in
 *           order of rank, which fixes the order of the additions: the sum is the same on each machine and in each replay. */
#include "server/steps/step_buffer.h"

#include "common/base/bf16.h"
#include "common/base/bytes.h"
#include "common/base/memory.h"

#include <stdlib.h>

#define CURSORS_FEW 8u

static uint64_t key_at(const struct dp_section *section, uint32_t i)
{
    return dp_load_u64le((const char *)section->keys + (size_t)i * 8);
}

/* ---- the rows of a step, each counted once */

/* The keys of one table, ascending, each once. */
struct dp_step_buffer_union {
    struct dp_step_buffer_union *next;
    uint32_t table;
    uint64_t lsn; /* of the last push that is in it */
    uint64_t count;
    uint64_t *key;
};

/* How many keys of the section are not in it. */
static uint64_t count_new(const struct dp_step_buffer_union *of, const struct dp_section *section)
{
    uint64_t count = 0, at = 0;
    for (uint32_t i = 0; i < section->rows; i++) {
        uint64_t key = key_at(section, i);
        while (at < of->count && of->key[at] < key)
            at++;
        count += at == of->count || of->key[at] != key;
    }
    return count;
}

/* From the end, so that no key is moved twice. */
static enum dp_status add_keys(struct dp_step_buffer_union *to, const struct dp_section *section)
{
    uint64_t left = to->count, count = to->count + count_new(to, section);
    if (count == left)
        return DP_OK;
    uint64_t *key = realloc(to->key, count * sizeof *key);
    if (!key)
        return DP_NOMEM;
    uint64_t at = to->count = count;
    to->key = key;
    for (uint32_t i = section->rows; i > 0;) {
        uint64_t mixed = key_at(section, i - 1);
        if (left > 0 && key[left - 1] >= mixed) {
            i -= key[left - 1] == mixed;
            key[--at] = key[--left];
        } else {
            key[--at] = mixed;
            i--;
        }
    }
    DP_ASSERT(at == left);
    return DP_OK;
}

static struct dp_step_buffer_union *union_of(struct dp_buffered_step *step, uint32_t table)
{
    struct dp_step_buffer_union *found = step->unions;
    while (found && found->table != table)
        found = found->next;
    if (found)
        return found;
    found = calloc(1, sizeof *found);
    if (!found)
        return NULL;
    found->table = table;
    found->next = step->unions;
    step->unions = found;
    return found;
}

static enum dp_status add_push(struct dp_step_buffer_union *to, const struct dp_buffered_push *push)
{
    enum dp_status st = DP_OK;
    for (uint32_t s = 0; st == DP_OK && s < push->sections; s++)
        if (push->section[s].table == to->table)
            st = add_keys(to, &push->section[s]);
    return st;
}

enum dp_status dp_step_buffer_union_rows(struct dp_buffered_step *step, uint32_t table, uint32_t sections,
                                         const struct dp_section *section, uint64_t *rows)
{
    struct dp_step_buffer_union *of = union_of(step, table);
    enum dp_status st = of ? DP_OK : DP_NOMEM;
    for (uint32_t i = 0; st == DP_OK && i < step->count; i++)
        if (step->push[i]->lsn > of->lsn)
            st = add_push(of, step->push[i]);
    if (st != DP_OK)
        return st; /* the pushes that were added are not added again */
    of->lsn = step->last_lsn;
    *rows = of->count;
    for (uint32_t s = 0; s < sections; s++)
        if (section[s].table == table)
            *rows += count_new(of, &section[s]);
    return DP_OK;
}

static void free_unions(struct dp_step_buffer_union **unions)
{
    for (struct dp_step_buffer_union *next; *unions; *unions = next) {
        next = (*unions)->next;
        free((*unions)->key);
        free(*unions);
    }
}

/* ---- pushes */

struct dp_buffered_push *dp_buffered_push_new(const struct dp_request *push, const struct dp_record *record,
                                              size_t bytes)
{
    size_t sections = push->sections * (sizeof(struct dp_section) + sizeof(uint32_t));
    struct dp_buffered_push *kept = malloc(sizeof *kept + sections);
    if (!kept)
        return NULL;
    *kept = (struct dp_buffered_push){.run = record->run,
                                      .rank = record->rank,
                                      .step = record->step,
                                      .examples = record->examples,
                                      .view = record->view,
                                      .stream = push->stream,
                                      .number = push->number,
                                      .rate = push->rate,
                                      .bytes = bytes + sizeof *kept + sections,
                                      .sections = push->sections};
    kept->dim = (uint32_t *)(void *)(kept->section + push->sections);
    if (push->sections > 0) {
        memcpy(kept->section, push->section, push->sections * sizeof kept->section[0]);
        memcpy(kept->dim, record->dims, push->sections * sizeof kept->dim[0]);
    }
    return kept;
}

void dp_buffered_push_free(struct dp_buffered_push **push)
{
    if (*push)
        dp_message_free(&(*push)->message);
    free(*push);
    *push = NULL;
}

/* Where the step is, or where it goes. */
static struct dp_buffered_step **place_of(struct dp_step_buffer *kept, uint32_t run, uint64_t step)
{
    struct dp_buffered_step **at = &kept->first;
    while (*at && ((*at)->run < run || ((*at)->run == run && (*at)->step < step)))
        at = &(*at)->next;
    return at;
}

static bool is_step(const struct dp_buffered_step *step, uint32_t run, uint64_t number)
{
    return step && step->run == run && step->step == number;
}

enum dp_status dp_step_buffer_reserve(struct dp_step_buffer *kept, const struct dp_buffered_push *push)
{
    struct dp_buffered_step **at = place_of(kept, push->run, push->step), *step = *at;
    if (!is_step(step, push->run, push->step)) {
        step = calloc(1, sizeof *step);
        if (!step)
            return DP_NOMEM;
        step->run = push->run;
        step->step = push->step;
        step->next = *at;
        *at = step;
    }
    if (step->count < step->room)
        return DP_OK;
    uint32_t room = step->room ? 2 * step->room : 4;
    struct dp_buffered_push **more = realloc(step->push, room * sizeof more[0]);
    if (!more)
        return DP_NOMEM;
    step->push = more;
    step->room = room;
    return DP_OK;
}

void dp_step_buffer_add(struct dp_step_buffer *kept, struct dp_buffered_push **push, uint64_t lsn,
                        struct dp_message **message)
{
    struct dp_buffered_push *added = *push;
    struct dp_buffered_step *step = *place_of(kept, added->run, added->step);
    DP_ASSERT(is_step(step, added->run, added->step) && step->count < step->room && lsn > step->last_lsn);
    added->lsn = lsn;
    added->message = *message;
    *message = NULL;
    *push = NULL;
    uint32_t at = step->count++;
    for (; at > 0 && step->push[at - 1]->rank >= added->rank; at--) {
        DP_ASSERT(step->push[at - 1]->rank != added->rank);
        step->push[at] = step->push[at - 1];
    }
    step->push[at] = added;
    step->first_lsn = step->count == 1 ? lsn : step->first_lsn;
    step->last_lsn = lsn;
    step->examples += added->examples;
    step->bytes += added->bytes;
    kept->bytes += added->bytes;
}

/* (A step may be here without a push: the journal had no room for its first.) */
struct dp_buffered_step *dp_buffered_step(const struct dp_step_buffer *kept, uint32_t run, uint64_t step)
{
    for (struct dp_buffered_step *at = kept->first; at; at = at->next)
        if (is_step(at, run, step))
            return at->count > 0 ? at : NULL;
    return NULL;
}

const struct dp_buffered_push *dp_step_buffer_find(const struct dp_step_buffer *kept, uint32_t run,
                                                   uint64_t step, uint32_t rank)
{
    const struct dp_buffered_step *of = dp_buffered_step(kept, run, step);
    for (uint32_t i = 0; of && i < of->count; i++)
        if (of->push[i]->rank == rank)
            return of->push[i];
    return NULL;
}

static void find_ends(struct dp_buffered_step *step)
{
    step->first_lsn = UINT64_MAX;
    step->last_lsn = 0;
    for (uint32_t i = 0; i < step->count; i++) {
        uint64_t lsn = step->push[i]->lsn;
        step->first_lsn = lsn < step->first_lsn ? lsn : step->first_lsn;
        step->last_lsn = lsn > step->last_lsn ? lsn : step->last_lsn;
    }
}

void dp_step_buffer_found_again(struct dp_step_buffer *kept, uint32_t run, uint64_t step, uint32_t rank,
                                uint64_t lsn)
{
    struct dp_buffered_step *of = dp_buffered_step(kept, run, step);
    DP_ASSERT(of && lsn > of->last_lsn);
    for (uint32_t i = 0; i < of->count; i++)
        if (of->push[i]->rank == rank)
            of->push[i]->lsn = lsn;
    find_ends(of);
}

/* The close of each buffered step asks for the pushes after it. */
static void set_closed(struct dp_step_buffer *kept, uint64_t lsn)
{
    kept->closed_lsn = lsn;
    for (const struct dp_buffered_step *step = kept->first; step; step = step->next)
        if (step->count > 0 && step->first_lsn <= kept->closed_lsn)
            kept->closed_lsn = step->first_lsn - 1;
}

void dp_step_buffer_begin_again(struct dp_step_buffer *kept, uint64_t lsn)
{
    if (kept->again_from == 0)
        kept->again_from = lsn + 1;
}

void dp_step_buffer_appended_again(struct dp_buffered_push *push, uint64_t lsn)
{
    DP_ASSERT(push->again_lsn == 0 && lsn > push->lsn);
    push->again_lsn = lsn;
}

void dp_step_buffer_end_again(struct dp_step_buffer *kept, uint64_t lsn)
{
    for (struct dp_buffered_step *step = kept->first; step; step = step->next) {
        for (uint32_t i = 0; i < step->count; i++) {
            struct dp_buffered_push *push = step->push[i];
            DP_ASSERT(!dp_step_buffer_lacks_again(kept, push));
            push->lsn = push->again_lsn > 0 ? push->again_lsn : push->lsn;
            push->again_lsn = 0;
        }
        if (step->count > 0)
            find_ends(step);
    }
    kept->again_from = 0;
    if (kept->old.run > 0)
        set_closed(kept, lsn);
}

uint32_t dp_step_buffer_count(const struct dp_step_buffer *kept)
{
    uint32_t count = 0;
    for (const struct dp_buffered_step *step = kept->first; step; step = step->next)
        count += step->count;
    return count;
}

static uint32_t drop_first(struct dp_step_buffer *kept)
{
    struct dp_buffered_step *step = kept->first;
    uint32_t count = step->count;
    DP_ASSERT(kept->bytes >= step->bytes);
    kept->bytes -= step->bytes;
    kept->first = step->next;
    for (uint32_t i = 0; i < count; i++)
        dp_buffered_push_free(&step->push[i]);
    free_unions(&step->unions);
    free(step->push);
    free(step);
    DP_ASSERT(kept->first || kept->bytes == 0);
    return count;
}

static void drop_old(struct dp_step_buffer *kept)
{
    dp_message_free(&kept->old.message);
    kept->old.run = kept->old.sections = 0;
}

uint32_t dp_step_buffer_drop_below(struct dp_step_buffer *kept, uint32_t run, uint64_t open)
{
    uint32_t dropped = 0;
    while (kept->first && (kept->first->run < run || (kept->first->run == run && kept->first->step < open)))
        dropped += drop_first(kept);
    if (kept->old.run < run)
        dp_step_buffer_forget_old(kept);
    return dropped;
}

void dp_step_buffer_clear(struct dp_step_buffer *kept)
{
    while (kept->first)
        (void)drop_first(kept);
    dp_step_buffer_forget_old(kept);
}

/* ---- a step's sum */

void dp_buffered_tables_add(struct dp_buffered_tables *tables, uint32_t sections,
                            const struct dp_section *section)
{
    for (uint32_t s = 0; s < sections && tables->count <= DP_SECTIONS_MAX; s++) {
        uint32_t at = 0;
        if (section[s].rows == 0)
            continue;
        while (at < tables->count && tables->table[at] < section[s].table)
            at++;
        if (at == tables->count || tables->table[at] != section[s].table) {
            if (tables->count++ == DP_SECTIONS_MAX)
                return;
            memmove(&tables->table[at + 1], &tables->table[at],
                    (tables->count - 1 - at) * sizeof tables->table[0]);
            memmove(&tables->rows[at + 1], &tables->rows[at],
                    (tables->count - 1 - at) * sizeof tables->rows[0]);
            tables->table[at] = section[s].table;
            tables->rows[at] = 0;
        }
        tables->rows[at] += section[s].rows;
    }
}

void dp_buffered_tables(const struct dp_buffered_step *step, struct dp_buffered_tables *out)
{
    out->count = 0;
    for (uint32_t i = 0; step && i < step->count; i++)
        dp_buffered_tables_add(out, step->push[i]->sections, step->push[i]->section);
}

static bool is_before(const struct dp_step_buffer_cursor *a, const struct dp_step_buffer_cursor *b)
{
    return a->mixed < b->mixed || (a->mixed == b->mixed && a->rank < b->rank);
}

static void sort_by_rank(struct dp_buffer_sum *sum)
{
    for (uint32_t i = 1; i < sum->count; i++) {
        struct dp_step_buffer_cursor moved = sum->heap[i];
        uint32_t at = i;
        for (; at > 0 && sum->heap[at - 1].rank > moved.rank; at--)
            sum->heap[at] = sum->heap[at - 1];
        sum->heap[at] = moved;
    }
}

static void sift_down(struct dp_buffer_sum *sum, uint32_t at)
{
    struct dp_step_buffer_cursor *heap = sum->heap, moved = heap[at];
    for (uint32_t child = 2 * at + 1; child < sum->count; child = 2 * at + 1) {
        if (child + 1 < sum->count && is_before(&heap[child + 1], &heap[child]))
            child++;
        if (!is_before(&heap[child], &moved))
            break;
        heap[at] = heap[child];
        at = child;
    }
    heap[at] = moved;
}

enum dp_status dp_buffer_sum_init(struct dp_buffer_sum *sum, const struct dp_buffered_step *step,
                                  uint32_t table, uint32_t dim)
{
    *sum = (struct dp_buffer_sum){.step = step, .dim = dim};
    sum->heap = calloc(step->count + 1, sizeof sum->heap[0]);
    sum->wide = dp_alloc_aligned(dim * sizeof(float));
    if (!sum->heap || !sum->wide) {
        dp_buffer_sum_clear(sum);
        return DP_NOMEM;
    }
    for (uint32_t i = 0; i < step->count; i++) {
        const struct dp_buffered_push *push = step->push[i];
        for (uint32_t s = 0; s < push->sections; s++) {
            if (push->section[s].table != table || push->section[s].rows == 0)
                continue;
            sum->heap[sum->count++] =
                (struct dp_step_buffer_cursor){.mixed = key_at(&push->section[s], 0),
                                               .rank = push->rank,
                                               .factor = (float)push->examples / (float)step->examples,
                                               .section = &push->section[s]};
        }
    }
    sum->few = sum->count <= CURSORS_FEW;
    if (sum->few)
        sort_by_rank(sum);
    for (uint32_t at = sum->few ? 0 : sum->count / 2; at > 0; at--)
        sift_down(sum, at - 1);
    return DP_OK;
}

static void add(struct dp_buffer_sum *sum, const struct dp_step_buffer_cursor *cursor, bool is_first,
                float *to)
{
    size_t bytes = (size_t)sum->dim * dp_value_bytes(cursor->section->type);
    const char *from = (const char *)cursor->section->values + cursor->at * bytes;
    if (cursor->section->type == DP_BF16)
        dp_bf16_get(from, sum->wide, sum->dim);
    else
        memcpy(sum->wide, from, bytes); /* of any alignment */
    for (uint32_t d = 0; d < sum->dim && is_first; d++)
        to[d] = cursor->factor * sum->wide[d];
    for (uint32_t d = 0; d < sum->dim && !is_first; d++)
        to[d] += cursor->factor * sum->wide[d];
}

/* Looking at all is faster than a heap. */
static void next_of_few(struct dp_buffer_sum *sum, uint64_t *mixed, float *to)
{
    uint64_t least = sum->heap[0].mixed;
    uint32_t left = 0;
    bool is_first = true;
    for (uint32_t i = 1; i < sum->count; i++)
        least = sum->heap[i].mixed < least ? sum->heap[i].mixed : least;
    for (uint32_t i = 0; i < sum->count; i++) {
        struct dp_step_buffer_cursor *cursor = &sum->heap[i];
        bool has_more = true;
        if (cursor->mixed == least) {
            if (to)
                add(sum, cursor, is_first, to);
            is_first = false;
            has_more = ++cursor->at < cursor->section->rows;
            cursor->mixed = has_more ? key_at(cursor->section, cursor->at) : 0;
        }
        if (left < i && has_more)
            sum->heap[left] = *cursor;
        left += has_more;
    }
    sum->count = left;
    *mixed = least;
}

bool dp_buffer_sum_next(struct dp_buffer_sum *sum, uint64_t *mixed, float *to)
{
    if (sum->count == 0)
        return false;
    if (sum->few) {
        next_of_few(sum, mixed, to);
        return true;
    }
    *mixed = sum->heap[0].mixed;
    for (bool is_first = true; sum->count > 0 && sum->heap[0].mixed == *mixed; is_first = false) {
        struct dp_step_buffer_cursor *cursor = &sum->heap[0];
        if (to)
            add(sum, cursor, is_first, to);
        if (++cursor->at < cursor->section->rows)
            cursor->mixed = key_at(cursor->section, cursor->at);
        else
            *cursor = sum->heap[--sum->count];
        sift_down(sum, 0);
    }
    return true;
}

void dp_buffer_sum_clear(struct dp_buffer_sum *sum)
{
    free(sum->heap);
    free(sum->wide);
    sum->heap = NULL;
    sum->wide = NULL;
}

/* ---- closing */

static void set_old(struct dp_step_buffer *kept, uint32_t run, uint64_t step, uint32_t sections,
                    const struct dp_section *section, const uint32_t *dims, struct dp_message **message)
{
    drop_old(kept);
    kept->old.run = run;
    kept->old.step = step;
    kept->old.message = *message;
    *message = NULL;
    kept->old.sections = sections;
    for (uint32_t s = 0; s < sections; s++) {
        kept->old.section[s] = section[s];
        kept->old.dim[s] = dims[s];
    }
}

void dp_step_buffer_close(struct dp_step_buffer *kept, uint32_t run, uint64_t step, uint32_t sections,
                          const struct dp_section *section, const uint32_t *dims, struct dp_message **message)
{
    const struct dp_buffered_step *closed = dp_buffered_step(kept, run, step);
    DP_ASSERT(closed && sections <= DP_SECTIONS_MAX && closed->first_lsn > kept->closed_lsn);
    uint64_t first_lsn = closed->first_lsn;
    (void)dp_step_buffer_drop_below(kept, run, step + 1);
    kept->closed_lsn = first_lsn;
    kept->again_from = 0; /* they are other ones now */
    set_old(kept, run, step, sections, section, dims, message);
}

void dp_step_buffer_restore_old(struct dp_step_buffer *kept, uint32_t run, uint64_t step, uint32_t sections,
                                const struct dp_section *section, const uint32_t *dims,
                                struct dp_message **message, uint64_t lsn)
{
    set_old(kept, run, step, sections, section, dims, message);
    set_closed(kept, lsn);
}

void dp_step_buffer_forget_old(struct dp_step_buffer *kept)
{
    drop_old(kept);
    kept->closed_lsn = 0;
}

const float *dp_step_buffer_old_weights(const struct dp_step_buffer *kept, uint32_t table, uint64_t mixed,
                                        uint32_t *at)
{
    const struct dp_step_buffer_old *old = &kept->old;
    uint32_t s = 0;
    while (s < old->sections && old->section[s].table != table)
        s++;
    if (s == old->sections)
        return NULL;
    uint32_t low = *at, high = old->section[s].rows, step = 1;
    while (low + step < high && key_at(&old->section[s], low + step) < mixed) /* the next key is near */
        step *= 2;
    high = low + step < high ? low + step + 1 : high;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (key_at(&old->section[s], middle) < mixed)
            low = middle + 1;
        else
            high = middle;
    }
    *at = low;
    if (low == old->section[s].rows || key_at(&old->section[s], low) != mixed)
        return NULL;
    return (const float *)old->section[s].values + (size_t)low * old->dim[s];
}

uint64_t dp_step_buffer_floor(const struct dp_step_buffer *kept)
{
    uint64_t first = kept->closed_lsn > 0 ? kept->closed_lsn : UINT64_MAX;
    for (const struct dp_buffered_step *step = kept->first; step; step = step->next)
        if (step->count > 0 && step->first_lsn < first)
            first = step->first_lsn;
    return first == UINT64_MAX ? UINT64_MAX : first - 1;
}
