/* Cross: the product of some users and some items, users first, for a recommender's list of the best. It is
 * made of keys, and decodes no file.
 * content:  keys  of the users, then of the items, mixed */
#include "worker/read/format.h"

#include "common/model/mix.h"
#include "worker/read/batch_fill.h"

enum { USERS, ITEMS }; /* facts */

enum dp_status dp_cross_load(const struct dp_cross *cross, struct dp_content *out, struct dp_error *err)
{
    enum dp_status st = DP_CONTENT_GROW(out->keys, cross->users + cross->items + 1, err);
    if (st != DP_OK)
        return st;
    for (uint64_t u = 0; u < cross->users; u++)
        out->keys[u] = dp_mix(cross->user[u]);
    for (uint64_t i = 0; i < cross->items; i++)
        out->keys[cross->users + i] = dp_mix(cross->item[i]);
    out->keys_len = cross->users + cross->items;
    out->facts[USERS] = cross->users;
    out->facts[ITEMS] = cross->items;
    out->examples = cross->users * cross->items;
    return DP_OK;
}

static void fill(const struct dp_format_fill *what, struct dp_batch *batch)
{
    const struct dp_content *content = what->content;
    uint64_t users = content->facts[USERS], items = content->facts[ITEMS];
    for (uint32_t list = 0; list < batch->room.lists; list++) {
        if (list < DP_FORM_OTHER)
            dp_batch_fill_group(batch, list);
        dp_batch_fill_list(batch, list);
        for (uint32_t i = 0; i < what->examples; i++) {
            uint64_t example = what->order[i];
            uint64_t at = list == DP_FORM_USERS ? example / items : users + example % items;
            batch->labels[i] = 0;
            dp_batch_fill_entries(batch, &content->keys[at], NULL, 1);
            dp_batch_fill_example(batch);
        }
        if (list == DP_FORM_USERS || list + 1 == batch->room.lists)
            dp_batch_fill_group_end(batch);
    }
}

/* Not in format.c's table: no file has this format. */
const struct dp_format dp_format_cross = {.name = "cross",
                                          .holds = "users and items",
                                          .forms = 1u << DP_FORM_PAIRS | 1u << DP_FORM_TRIPLES,
                                          .shape = dp_format_pairs_shape,
                                          .fill = fill};
