#include "tests/sim/sim_store_inner.h"

#include <stdio.h>
#include <stdlib.h>

void *sim_store_resized(void *old, size_t bytes)
{
    void *block = realloc(old, bytes ? bytes : 1);
    DP_ASSERT(block);
    return block;
}

char *sim_store_copied(const void *bytes, size_t n)
{
    char *copy = sim_store_resized(NULL, n);
    memcpy(copy, bytes, n);
    return copy;
}

/* ---- copies */

static struct sim_store_copy *copy_of(const struct sim_row *row, uint32_t rows, const struct sim_mark *mark,
                                      uint32_t marks)
{
    struct sim_store_copy *copy = sim_store_resized(NULL, sizeof *copy);
    *copy = (struct sim_store_copy){.row = sim_store_resized(NULL, rows * sizeof *row),
                                    .mark = sim_store_resized(NULL, marks * sizeof *mark),
                                    .rows = rows,
                                    .marks = marks};
    for (uint32_t i = 0; i < rows; i++) {
        copy->row[i] = row[i];
        copy->row[i].data = sim_store_copied(row[i].data, row[i].bytes);
    }
    for (uint32_t i = 0; i < marks; i++) {
        copy->mark[i] = mark[i];
        copy->mark[i].data = sim_store_copied(mark[i].data, mark[i].key_bytes + mark[i].value_bytes);
    }
    return copy;
}

void sim_store_copy_free(struct sim_store_copy **out)
{
    struct sim_store_copy *copy = *out;
    *out = NULL;
    if (!copy)
        return;
    for (uint32_t i = 0; i < copy->rows; i++)
        free(copy->row[i].data);
    for (uint32_t i = 0; i < copy->marks; i++)
        free(copy->mark[i].data);
    free(copy->row);
    free(copy->mark);
    free(copy);
}

void sim_store_fill(struct sim_store *store, const struct sim_store_copy *copy)
{
    DP_ASSERT(!store->open && store->rows == 0 && store->marks == 0);
    struct sim_store_copy *own = copy_of(copy->row, copy->rows, copy->mark, copy->marks);
    free(store->row);
    free(store->mark);
    store->row = own->row;
    store->mark = own->mark;
    store->rows = store->rows_room = own->rows;
    store->marks = store->marks_room = own->marks;
    free(own);
}

void sim_store_at_once(struct sim_store *store, bool at_once)
{
    DP_ASSERT(store->count == 0);
    store->at_once = at_once;
}

/* ---- links */

static uint32_t find_link(const struct sim_store *store, const char *name)
{
    uint32_t at = 0;
    while (at < store->links && strcmp(store->link[at].name, name) != 0)
        at++;
    return at;
}

void sim_store_link(struct sim_store *store, const char *name)
{
    DP_ASSERT(store->links < SIM_LINKS_MAX && find_link(store, name) == store->links);
    struct sim_link *link = &store->link[store->links++];
    (void)snprintf(link->name, sizeof link->name, "%s", name);
    link->copy = copy_of(store->row, store->rows, store->mark, store->marks);
}

void sim_store_unlink(struct sim_store *store, const char *name)
{
    uint32_t at = find_link(store, name);
    if (at == store->links)
        return;
    sim_store_copy_free(&store->link[at].copy);
    memmove(&store->link[at], &store->link[at + 1], (--store->links - at) * sizeof store->link[0]);
}

struct sim_store_copy *sim_store_copy_link(const struct sim_store *store, const char *name)
{
    uint32_t at = find_link(store, name);
    if (at == store->links)
        return NULL;
    const struct sim_store_copy *copy = store->link[at].copy;
    return copy_of(copy->row, copy->rows, copy->mark, copy->marks);
}

uint32_t sim_store_links(const struct sim_store *store)
{
    return store->links;
}

void sim_store_copy_marks(const struct sim_store_copy *copy,
                          void (*visit)(void *context, const struct dp_store_mark *mark), void *context)
{
    for (uint32_t i = 0; i < copy->marks; i++) {
        const struct sim_mark *mark = &copy->mark[i];
        const struct dp_store_mark lent = {mark->data, mark->data + mark->key_bytes, mark->key_bytes,
                                           mark->value_bytes};
        visit(context, &lent);
    }
}
