#include "worker/read/rank_set.h"

#include "common/base/search.h"
#include "common/model/mix.h"
#include "worker/read/order.h"
#include "worker/read/pairs.h"

#include <inttypes.h>
#include <stdlib.h>

enum { USERS = DP_PAIRS_USERS, ITEMS = DP_PAIRS_ITEMS };

#define NONE UINT32_MAX

static bool below_unmixed(const void *at, const void *key)
{
    return dp_unmix(*(const uint64_t *)at) < dp_unmix(*(const uint64_t *)key);
}

/* A key's place among mixed keys that ascend unmixed, or NONE. */
static uint32_t place_of(const uint64_t *mixed, uint64_t count, uint64_t key)
{
    size_t place = dp_lower_bound(mixed, count, sizeof *mixed, &key, below_unmixed);
    return place < count && mixed[place] == key ? (uint32_t)place : NONE;
}

static bool has(const uint32_t *sorted, uint64_t count, uint32_t value)
{
    size_t place = dp_lower_bound_u32(sorted, count, value);
    return place < count && sorted[place] == value;
}

struct building {
    struct dp_rank_set *set;
    const struct dp_content *train, *test;
    uint32_t *user_of, *item_of; /* places in the training set of the test set's users and items */
    uint64_t *first;             /* [users of the test set + 1]: where a user's items begin in set->tests */
};

static enum dp_status building_open(struct building *b, struct dp_error *err)
{
    uint64_t users = b->test->facts[USERS], items = b->test->facts[ITEMS],
             train_users = b->train->facts[USERS];
    b->user_of = calloc(users + 1, sizeof *b->user_of);
    b->item_of = calloc(items + 1, sizeof *b->item_of);
    b->first = calloc(users + 2, sizeof *b->first);
    b->set->user = calloc(users + 1, sizeof *b->set->user);
    b->set->tests = calloc(b->test->examples + 1, sizeof *b->set->tests);
    if (!b->user_of || !b->item_of || !b->first || !b->set->user || !b->set->tests)
        return dp_fail(err, DP_NOMEM, "no memory to rank the items of %" PRIu64 " users", users);
    for (uint64_t u = 0; u < users; u++)
        b->user_of[u] = place_of(b->train->keys, train_users, b->test->keys[u]);
    for (uint64_t i = 0; i < items; i++)
        b->item_of[i] =
            place_of(b->train->keys + train_users, b->train->facts[ITEMS], b->test->keys[users + i]);
    return DP_OK;
}

/* The test items of each user, as places in the training set; NONE: unseen. */
static void gather(struct building *b)
{
    const uint32_t *codes = b->test->codes;
    uint64_t users = b->test->facts[USERS], *at = b->first + 1;
    for (uint64_t i = 0; i < b->test->examples; i++)
        at[codes[2 * i] + 1]++;
    for (uint64_t u = 1; u <= users; u++)
        at[u] += at[u - 1];
    for (uint64_t i = 0; i < b->test->examples; i++) {
        uint32_t user = codes[2 * i];
        b->set->tests[at[user]++] = b->user_of[user] == NONE ? NONE : b->item_of[codes[2 * i + 1]];
    }
}

/* Collects the items of one test user that can be ranked, each once. */
static void settle(struct building *b, uint64_t u, uint64_t *to)
{
    struct dp_rank_set *set = b->set;
    uint64_t from = b->first[u], end = b->first[u + 1], first = *to;
    struct dp_rank_user user = {.key = b->test->keys[u]};
    if (b->user_of[u] != NONE) {
        const uint64_t *offsets = b->train->offsets + b->user_of[u];
        user.trained = b->train->codes + offsets[0];
        user.trained_count = (uint32_t)(offsets[1] - offsets[0]);
    }
    qsort(set->tests + from, (size_t)(end - from), sizeof *set->tests, dp_compare_u32);
    for (uint64_t i = from; i < end; i++) {
        uint32_t item = set->tests[i];
        bool again = *to > first && set->tests[*to - 1] == item,
             known = has(user.trained, user.trained_count, item);
        set->unseen += item == NONE;
        set->known += item != NONE && known;
        if (item != NONE && !known && !again)
            set->tests[(*to)++] = item;
    }
    user.test = set->tests + first;
    user.test_count = (uint32_t)(*to - first);
    if (user.test_count == 0)
        return;
    set->user[set->user_count++] = user;
    set->most_tests = user.test_count > set->most_tests ? user.test_count : set->most_tests;
}

enum dp_status dp_rank_set_new(const struct dp_content *train, const struct dp_content *test,
                               struct dp_rank_set **out, struct dp_error *err)
{
    struct dp_rank_set *set = calloc(1, sizeof *set);
    *out = set;
    if (!set)
        return dp_fail(err, DP_NOMEM, "no memory to rank items");
    struct building b = {.set = set, .train = train, .test = test};
    set->items = train->keys + train->facts[USERS];
    set->item_count = (uint32_t)train->facts[ITEMS];
    enum dp_status st = building_open(&b, err);
    if (st == DP_OK) {
        gather(&b);
        for (uint64_t u = 0; u < test->facts[USERS]; u++)
            settle(&b, u, &set->pairs);
    }
    free(b.user_of);
    free(b.item_of);
    free(b.first);
    if (st == DP_OK && set->pairs == 0)
        st = dp_fail(err, DP_DATA,
                     "none of its %" PRIu64 " pairs can be ranked: of %" PRIu64
                     " the user or the item is not in the training file, and %" PRIu64 " were trained on",
                     test->examples, set->unseen, set->known);
    if (st != DP_OK)
        dp_rank_set_free(out);
    return st;
}

void dp_rank_set_free(struct dp_rank_set **set)
{
    if (!*set)
        return;
    free((*set)->user);
    free((*set)->tests);
    free(*set);
    *set = NULL;
}

/* Counts the items of both lists (ascending, disjoint) below `item`, which is in neither. The k-th item that
 * is in neither list is k + this count. */
static uint32_t kth_of_neither(const struct dp_rank_user *user, uint32_t k)
{
    uint32_t low = k, high = k + user->trained_count + user->test_count;
    while (low < high) { /* finds the least item up to which more than k are in neither list */
        uint32_t mid = low + (high - low) / 2;
        size_t of_both = dp_lower_bound_u32(user->trained, user->trained_count, mid + 1) +
                         dp_lower_bound_u32(user->test, user->test_count, mid + 1);
        if (mid + 1 - of_both > k)
            high = mid;
        else
            low = mid + 1;
    }
    return low;
}

uint32_t dp_rank_set_sample(const struct dp_rank_set *set, const struct dp_rank_user *user, uint32_t j,
                            uint32_t *out)
{
    uint32_t others = set->item_count - user->trained_count - user->test_count;
    uint32_t count = others < set->sampled ? others : set->sampled;
    struct dp_order order;
    DP_ASSERT(j < user->test_count);
    if (count == 0)
        return 0;
    dp_order_init(&order, others, dp_mix(set->seed ^ user->key) + set->items[user->test[j]], UINT32_MAX);
    for (uint32_t i = 0; i < count; i++)
        out[i] = kth_of_neither(user, (uint32_t)dp_order_at(&order, i));
    return count;
}
