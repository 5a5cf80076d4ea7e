/* Rank set: a test set of pairs whose items are ranked among all items that can be recommended.
 *     new(training set, test set) -> free
 * Items     All items of the training set without an interaction of the user there. A test pair whose user
 *           or item the training set lacks cannot be ranked, and a pair that the training set has is known:
 *           both are left out and counted.
 * Sampled   Other items for each test pair, drawn without repetition by (seed, user, item) from those
 *           without an interaction of the user in training and test set; all of them if there are too few.
 * Thread    Constant after new.
 * Memory    Borrows the training set's content, which must outlive it. 4 bytes a pair, 24 a user.
 * Failure   DP_DATA when no pair is left; DP_NOMEM. */
#ifndef DP_READ_RANK_SET_H
#define DP_READ_RANK_SET_H

#include "worker/read/content.h"

struct dp_rank_user {
    uint64_t key;            /* mixed */
    const uint32_t *trained; /* [trained_count] in training, ascending */
    const uint32_t *test;    /* [test_count] to be ranked, ascending */
    uint32_t trained_count, test_count;
};

struct dp_rank_set {
    const uint64_t *items; /* [item_count] mixed keys; elsewhere items are indices into it */
    uint32_t item_count, user_count, most_tests; /* most_tests: of a user */
    struct dp_rank_user *user;
    uint32_t *tests;    /* of all users */
    uint64_t pairs;     /* to be ranked */
    uint64_t unseen;    /* pairs left out since the training set lacks their user or item */
    uint64_t known;     /* pairs left out since the training set has them */
    uint32_t sampled;   /* items sampled for each test pair */
    bool ranks_sampled; /* the pair is ranked among those, too */
    uint64_t seed;
};

/* train: the content of a training set of pairs; test: of a set opened with options.scored. */
enum dp_status dp_rank_set_new(const struct dp_content *train, const struct dp_content *test,
                               struct dp_rank_set **out, struct dp_error *err);
void dp_rank_set_free(struct dp_rank_set **set); /* accepts NULL inside, leaves NULL */
/* Writes the sampled items of test pair j of a user to out[set->sampled], and returns how many. */
uint32_t dp_rank_set_sample(const struct dp_rank_set *set, const struct dp_rank_user *user, uint32_t j,
                            uint32_t *out);

#endif
