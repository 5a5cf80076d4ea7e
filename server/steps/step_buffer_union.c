#include "server/steps/step_buffer_union.h"

#include "common/base/bytes.h"

#include <stdlib.h>

/* The keys of one table, ascending, each once. */
struct dp_step_buffer_union {
    struct dp_step_buffer_union *next;
    uint32_t table;
    uint64_t lsn; /* of the last push that is in it */
    uint64_t count;
    uint64_t *key;
};

static uint64_t key_at(const struct dp_section *section, uint32_t i)
{
    return dp_load_u64le((const char *)section->keys + (size_t)i * 8);
}

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

/* From behind, so that no key is moved twice. */
static enum dp_status add(struct dp_step_buffer_union *to, const struct dp_section *section)
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

static struct dp_step_buffer_union *find(struct dp_buffered_step *step, uint32_t table)
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
            st = add(to, &push->section[s]);
    return st;
}

enum dp_status dp_step_buffer_union_rows(struct dp_buffered_step *step, uint32_t table, uint32_t sections,
                                         const struct dp_section *section, uint64_t *rows)
{
    struct dp_step_buffer_union *of = find(step, table);
    enum dp_status st = of ? DP_OK : DP_NOMEM;
    for (uint32_t i = 0; st == DP_OK && i < step->count; i++)
        if (step->push[i]->lsn > of->lsn)
            st = add_push(of, step->push[i]);
    if (st != DP_OK)
        return st; /* what was added is not added again */
    of->lsn = step->last_lsn;
    *rows = of->count;
    for (uint32_t s = 0; s < sections; s++)
        if (section[s].table == table)
            *rows += count_new(of, &section[s]);
    return DP_OK;
}

void dp_step_buffer_union_free(struct dp_step_buffer_union **unions)
{
    for (struct dp_step_buffer_union *next; *unions; *unions = next) {
        next = (*unions)->next;
        free((*unions)->key);
        free(*unions);
    }
}
