/* Rank sums: how well test items stand among others, summed over users and pairs, so that workers' sums can be added.
 *     all items   For each user with test items: recall@K, the share of them among the K best items that the user did not meet in
 *                 training; NDCG@K, the sum of 1 / log2(place + 2) of those among them (place from 0) over its greatest possible value
 *                 (Jarvelin and Kekalainen 2002, as LightGCN computes it). Means over users. Equal scores count against test items.
 *     sampled     For each test pair: HR@10 and NDCG@10 among sampled items, as metrics.h has them for lists.
 *     loss        Of each test pair and the sampled items beside it: logloss and accuracy; of a model that only ranks, BPR's: the mean of
 *                 log(1 + e^(other - it)).
 * Thread    One. */
#ifndef DP_COMPUTE_RANK_SUMS_H
#define DP_COMPUTE_RANK_SUMS_H

#include "worker/read/dataset.h"

struct dp_figures;

struct dp_rank_sums {
    uint32_t top[2];            /* the two K */
    uint64_t items;             /* that are ranked; 0: not among all */
    uint64_t users, pairs;      /* with test items; these */
    uint64_t lists;             /* pairs that were ranked among sampled items */
    uint64_t examples, correct; /* of the loss */
    double recall[2], ndcg[2];  /* sums over users */
    double hits, gains, loss;   /* sums over lists, over examples */
};

/* A user of `tests` test items: places[hits] are those of them among the best top[1], ascending. */
void dp_rank_sums_user(struct dp_rank_sums *sums, const uint32_t *places, uint32_t hits, uint32_t tests);
/* A test pair's score, and those of the items beside it. lists: whether it is ranked among them. */
void dp_rank_sums_pair(struct dp_rank_sums *sums, enum dp_labels labels, float score, const float *others,
                       uint32_t count, bool ranked);
void dp_rank_sums_add(struct dp_rank_sums *sums, const struct dp_rank_sums *other);
/* Only what it has: NaN else. */
void dp_rank_sums_figures(const struct dp_rank_sums *sums, enum dp_labels labels, struct dp_figures *out);

#define DP_RANK_SUMS_BYTES 112u
void dp_rank_sums_pack(const struct dp_rank_sums *sums, unsigned char bytes[DP_RANK_SUMS_BYTES]);
/* false: no sums can be such. */
bool dp_rank_sums_unpack(const unsigned char bytes[DP_RANK_SUMS_BYTES], struct dp_rank_sums *out);

/* The places of wanted items among the `k` best, into places[k], ascending; returns how many. what: of each item whether it is an
 * ordinary one, left out, or wanted; of equal scores wanted ones are behind. */
enum dp_rank_what { DP_RANK_ORDINARY, DP_RANK_LEFT_OUT, DP_RANK_WANTED };
struct dp_rank_best {
    float score;
    bool wanted;
};
/* heap: [k], for this call. */
uint32_t dp_rank_places(const float *scores, const uint8_t *what, uint32_t items, uint32_t k,
                        struct dp_rank_best *heap, uint32_t *places);

#endif
