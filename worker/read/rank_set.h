/* Rank set: a test set of pairs whose items are to be ranked among all items that can be recommended.
 *     new(training set, test set) -> free
 * Items     Those of the training set; of a user all but those that the user met there. Test pairs of a user or an item that the training
 *           set lacks cannot be ranked, and those that it has would be known: both are left out and counted.
 * Sampled   For each test pair other items, drawn without repetition by (seed, user, item) from those that the user met neither in
 *           training nor in the test set; all of them where there are not more.
 * Thread    Constant after new.
 * Memory    Lends the training set's content, which must outlive it. 4 bytes a pair, 24 a user.
 * Failure   DP_DATA: no pair is left; DP_NOMEM. */
#ifndef DP_READ_RANK_SET_H
#define DP_READ_RANK_SET_H

#include "worker/read/content.h"

struct dp_rank_user {
    uint64_t key;         /* mixed */
    const uint32_t *met;  /* [met_count] in training, ascending */
    const uint32_t *test; /* [test_count] to be ranked, ascending */
    uint32_t met_count, test_count;
};

struct dp_rank_set {
    const uint64_t *items; /* [item_count] mixed keys; elsewhere items are places in it */
    uint32_t item_count, user_count, most_tests; /* most_tests: of a user */
    struct dp_rank_user *user;
    uint32_t *tests; /* of all users */
    uint64_t pairs;  /* to be ranked */
    uint64_t unseen,
        known;        /* pairs left out: of users or items without training; of pairs that were trained on */
    uint32_t sampled; /* items beside each test pair */
    bool ranks_sampled; /* the pair is to be ranked among those, too */
    uint64_t seed;
};

/* Contents of pairs: of a training set, and of pairs as they are. */
DP_MUST_USE
enum dp_status dp_rank_set_new(const struct dp_content *train, const struct dp_content *test,
                               struct dp_rank_set **out, struct dp_error *err);
void dp_rank_set_free(struct dp_rank_set **set); /* accepts NULL inside, leaves NULL */
/* The items beside test pair j of a user, into out[set->sampled]; returns how many. */
uint32_t dp_rank_set_sample(const struct dp_rank_set *set, const struct dp_rank_user *user, uint32_t j,
                            uint32_t *out);

#endif
