/* Rank sums: how well test items rank among others, summed over users and pairs, so that workers' sums can be
 * added.
 *     all items   For each user with test items: recall@K, the share of them among the K best items that the
 *                 user has no interaction with in training; NDCG@K, the sum of 1 / log2(place + 2) over those
 *                 of them (place from 0), divided by its greatest possible value (Jarvelin and Kekalainen
 *                 2002, as LightGCN computes it). Means over users. Equal scores count against test items.
 *     sampled     For each test pair: HR@10 and NDCG@10 among sampled items, as for the lists of metrics.h.
 *     loss        Of each test pair and its sampled items: logloss and accuracy; for a model that
 *                 only ranks BPR's, the mean of log(1 + e^(other - it)).
 * Thread    One. */
#ifndef DP_COMPUTE_RANK_SUMS_H
#define DP_COMPUTE_RANK_SUMS_H

#include "worker/read/dataset.h"

struct dp_figures;

struct dp_rank_sums {
    uint32_t top[2];            /* the two K */
    uint64_t items;             /* ranked among each other; 0: not among all */
    uint64_t users, pairs;      /* users with test items, and their test pairs */
    uint64_t lists;             /* pairs that were ranked among sampled items */
    uint64_t examples, correct; /* of the loss */
    double recall[2], ndcg[2];  /* sums over users */
    double hits, gains, loss;   /* sums over lists, over examples */
};

/* Adds a user with `tests` test items, of which places[hits], ascending, are among the best top[1]. */
void dp_rank_sums_user(struct dp_rank_sums *sums, const uint32_t *places, uint32_t hits, uint32_t tests);
/* Adds a test pair's score, and the scores of its sampled items. ranked: it is ranked among them. */
void dp_rank_sums_pair(struct dp_rank_sums *sums, enum dp_labels labels, float score, const float *others,
                       uint32_t count, bool ranked);
void dp_rank_sums_add(struct dp_rank_sums *sums, const struct dp_rank_sums *other);
/* Sets the metrics that it has, and the others to NaN. */
void dp_rank_sums_figures(const struct dp_rank_sums *sums, enum dp_labels labels, struct dp_figures *out);

#define DP_RANK_SUMS_BYTES 112u
void dp_rank_sums_pack(const struct dp_rank_sums *sums, unsigned char bytes[DP_RANK_SUMS_BYTES]);
/* False when the bytes cannot be such sums. */
bool dp_rank_sums_unpack(const unsigned char bytes[DP_RANK_SUMS_BYTES], struct dp_rank_sums *out);

/* Writes the places of wanted items among the `k` best to places[k], ascending, and returns how many. what:
 * whether each item is ordinary, left out, or wanted; at equal scores wanted items come last. */
enum dp_rank_what { DP_RANK_ORDINARY, DP_RANK_LEFT_OUT, DP_RANK_WANTED };
struct dp_rank_best {
    float score;
    bool wanted;
};
/* heap: [k], for this call. */
uint32_t dp_rank_places(const float *scores, const uint8_t *what, uint32_t items, uint32_t k,
                        struct dp_rank_best *heap, uint32_t *places);

#endif
