#include "worker/read/holdout.h"

#include "common/model/mix.h"
#include "worker/read/content.h"

#include <stdlib.h>

enum holdout_part { TRAIN, TEST, VALIDATION, COPY }; /* COPY: of a pair that is already held out */

struct drawn {
    uint64_t user, rank, item, at; /* rank: by which a user's items are drawn */
    enum holdout_part part;
};

static int by_rank(const void *a, const void *b)
{
    const struct drawn *x = a, *y = b;
    if (x->user != y->user)
        return x->user < y->user ? -1 : 1;
    if (x->rank != y->rank)
        return x->rank < y->rank ? -1 : 1;
    if (x->item != y->item)
        return x->item < y->item ? -1 : 1;
    return (x->at > y->at) - (x->at < y->at);
}

static uint64_t rank_of(uint64_t seed, uint64_t user, uint64_t item)
{
    return dp_mix(dp_mix(seed + dp_mix(user) * DP_HASH_GOLDEN) + dp_mix(item));
}

/* The pairs [from, end) of one user, with equal items side by side. */
struct user {
    struct drawn *pairs;
    uint64_t from, end;
};

/* Counts the different items in training. */
static uint64_t items_left(const struct user *u)
{
    uint64_t items = 0;
    for (uint64_t i = u->from; i < u->end; i++)
        items += u->pairs[i].part == TRAIN && (i == u->from || u->pairs[i].item != u->pairs[i - 1].item);
    return items;
}

/* Moves the first `count` training items to the part. */
static void hold(const struct user *u, uint64_t count, enum holdout_part part)
{
    for (uint64_t i = u->from; i < u->end; i++) {
        bool first = i == u->from || u->pairs[i].item != u->pairs[i - 1].item;
        if (!first && u->pairs[i - 1].part != TRAIN)
            u->pairs[i].part = COPY;
        else if (first && u->pairs[i].part == TRAIN && count > 0) {
            u->pairs[i].part = part;
            count--;
        }
    }
}

/* share * n, rounded at random so that its mean is exact; at least one is left. */
static uint64_t rounded(double share, uint64_t n, uint64_t seed, uint64_t user)
{
    double chance = (double)(rank_of(seed, user, 0) >> 11) * 0x1p-53;
    uint64_t count = (uint64_t)((double)n * share + chance);
    return n == 0 ? 0 : count < n ? count : n - 1;
}

static void draw_user(const struct user *u, const struct dp_dataset_options *o)
{
    const uint64_t test = 0x74657374u, validation = 0x76616c69u; /* apart from each other */
    uint64_t items = items_left(u), id = u->pairs[u->from].user;
    if (o->holdout == DP_HOLDOUT_ONE)
        hold(u, items > 1, TEST);
    else if (o->holdout == DP_HOLDOUT_SHARE)
        hold(u, rounded(o->holdout_share, items, o->seed ^ test, id), TEST);
    if (o->held_out > 0)
        hold(u, rounded(o->held_out, items_left(u), o->seed ^ validation, id), VALIDATION);
}

static enum holdout_part wanted(const struct dp_dataset_options *o)
{
    return o->held_test ? TEST : o->held ? VALIDATION : TRAIN;
}

static int by_place(const void *a, const void *b)
{
    const struct drawn *x = a, *y = b;
    return (x->at > y->at) - (x->at < y->at);
}

enum dp_status dp_holdout_keep(struct dp_pairs *pairs, const struct dp_dataset_options *o,
                               struct dp_error *err)
{
    uint64_t n = pairs->count, kept = 0;
    struct drawn *drawn = calloc(n + 1, sizeof *drawn);
    if (!drawn)
        return dp_fail(err, DP_NOMEM, "%s: no memory to hold out pairs", o->path);
    for (uint64_t i = 0; i < n; i++) {
        uint64_t user = pairs->keys[2 * i], item = pairs->keys[2 * i + 1];
        drawn[i] = (struct drawn){.user = user, .item = item, .rank = rank_of(o->seed, user, item), .at = i};
    }
    qsort(drawn, (size_t)n, sizeof *drawn, by_rank);
    for (uint64_t from = 0, end; from < n; from = end) {
        for (end = from + 1; end < n && drawn[end].user == drawn[from].user;)
            end++;
        const struct user user = {.pairs = drawn, .from = from, .end = end};
        draw_user(&user, o);
    }
    qsort(drawn, (size_t)n, sizeof *drawn, by_place);
    for (uint64_t i = 0; i < n; i++) {
        if (drawn[i].part != wanted(o))
            continue;
        pairs->keys[2 * kept] = pairs->keys[2 * i];
        pairs->keys[2 * kept + 1] = pairs->keys[2 * i + 1];
        if (pairs->ratings)
            pairs->ratings[kept] = pairs->ratings[i];
        pairs->lines[kept++] = pairs->lines[i];
    }
    free(drawn);
    pairs->count = kept;
    if (kept == 0)
        return dp_fail(
            err, DP_DATA,
            "%s: no pair can be held out%s: each user keeps one item to train on, and too few have two or "
            "more; name a file of its own",
            o->path, o->held_test ? " for the test set" : " for validation");
    return DP_OK;
}
