#include "worker/compute/rank_sums.h"

#include "common/base/bytes.h"
#include "worker/compute/metrics.h"

#include <math.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 10u /* of sampled lists: HR@10, NDCG@10 */

static double gain(uint32_t place)
{
    return log(2) / log(place + 2.0);
}

void dp_rank_sums_user(struct dp_rank_sums *sums, const uint32_t *places, uint32_t hits, uint32_t tests)
{
    sums->users++;
    sums->pairs += tests;
    for (int t = 0; t < 2; t++) {
        uint32_t found = 0, most = tests < sums->top[t] ? tests : sums->top[t];
        double have = 0, best = 0;
        for (; found < hits && places[found] < sums->top[t]; found++)
            have += gain(places[found]);
        for (uint32_t i = 0; i < most; i++)
            best += gain(i);
        sums->recall[t] += (double)found / tests;
        sums->ndcg[t] += have / best;
    }
}

/* log(1 + e^x), neither side overflowing */
static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

void dp_rank_sums_pair(struct dp_rank_sums *sums, enum dp_labels labels, float score, const float *others,
                       uint32_t count, bool ranked)
{
    uint32_t above = 0;
    double held = (double)score;
    for (uint32_t i = 0; i < count; i++) {
        double other = (double)others[i];
        above += others[i] >= score;
        sums->loss += softplus(labels == DP_LABELS_ANY ? other - held : other);
        sums->correct += labels != DP_LABELS_ANY && !(other > 0);
    }
    sums->examples += count;
    if (labels != DP_LABELS_ANY) {
        sums->loss += softplus(-held);
        sums->correct += held > 0;
        sums->examples++;
    }
    if (!ranked)
        return;
    sums->lists++;
    sums->hits += above < RANKS;
    sums->gains += above < RANKS ? gain(above) : 0;
}

void dp_rank_sums_add(struct dp_rank_sums *sums, const struct dp_rank_sums *other)
{
    for (int t = 0; t < 2; t++) {
        sums->top[t] = other->top[t] ? other->top[t] : sums->top[t];
        sums->recall[t] += other->recall[t];
        sums->ndcg[t] += other->ndcg[t];
    }
    sums->items = other->items ? other->items : sums->items;
    sums->users += other->users;
    sums->pairs += other->pairs;
    sums->lists += other->lists;
    sums->examples += other->examples;
    sums->correct += other->correct;
    sums->hits += other->hits;
    sums->gains += other->gains;
    sums->loss += other->loss;
}

void dp_rank_sums_figures(const struct dp_rank_sums *sums, enum dp_labels labels, struct dp_figures *out)
{
    *out = dp_figures_none(sums->examples);
    if (sums->examples) {
        out->loss = sums->loss / (double)sums->examples;
        if (labels != DP_LABELS_ANY)
            out->accuracy = (double)sums->correct / (double)sums->examples;
    }
    if (sums->lists) {
        out->hr10 = sums->hits / (double)sums->lists;
        out->ndcg10 = sums->gains / (double)sums->lists;
    }
    if (sums->items == 0 || sums->users == 0)
        return;
    out->ranked_users = sums->users;
    out->ranked_items = sums->items;
    for (int t = 0; t < 2; t++) {
        out->top[t] = sums->top[t];
        out->recall[t] = sums->recall[t] / (double)sums->users;
        out->ndcg[t] = sums->ndcg[t] / (double)sums->users;
    }
}

enum { COUNTS_AT = 8, REALS_AT = 56 };
_Static_assert(sizeof(struct dp_rank_sums) == DP_RANK_SUMS_BYTES &&
                   offsetof(struct dp_rank_sums, items) == COUNTS_AT &&
                   offsetof(struct dp_rank_sums, recall) == REALS_AT,
               "all of it is packed, as it is in memory");

void dp_rank_sums_pack(const struct dp_rank_sums *sums, unsigned char bytes[DP_RANK_SUMS_BYTES])
{
    memcpy(bytes, sums, sizeof *sums);
}

bool dp_rank_sums_unpack(const unsigned char bytes[DP_RANK_SUMS_BYTES], struct dp_rank_sums *out)
{
    bool good = true;
    memcpy(out, bytes, sizeof *out);
    for (size_t at = COUNTS_AT; at < REALS_AT; at += 8)
        good &= dp_load_u64le(bytes + at) <= UINT64_MAX / 4096; /* workers' sums do not overflow */
    for (size_t at = REALS_AT; at < DP_RANK_SUMS_BYTES; at += 8) {
        double real;
        memcpy(&real, bytes + at, sizeof real);
        good &= isfinite(real) && real >= 0;
    }
    return good && out->correct <= out->examples && out->hits <= (double)out->lists &&
           out->recall[1] <= (double)out->users;
}

/* ---- the best of all */

/* Whether a ranks below b. */
static bool ranks_below(struct dp_rank_best a, struct dp_rank_best b)
{
    return a.score < b.score || (a.score == b.score && a.wanted && !b.wanted);
}

/* A heap with the last of the best at its top. */
static void sift(struct dp_rank_best *heap, uint32_t count, uint32_t at, struct dp_rank_best value)
{
    for (uint32_t child; (child = 2 * at + 1) < count; at = child) {
        child += child + 1 < count && ranks_below(heap[child + 1], heap[child]);
        if (!ranks_below(heap[child], value))
            break;
        heap[at] = heap[child];
    }
    heap[at] = value;
}

static int best_first(const void *a, const void *b)
{
    const struct dp_rank_best *x = a, *y = b;
    return ranks_below(*x, *y) - ranks_below(*y, *x);
}

uint32_t dp_rank_places(const float *scores, const uint8_t *what, uint32_t items, uint32_t k,
                        struct dp_rank_best *heap, uint32_t *places)
{
    uint32_t count = 0, hits = 0, item = 0;
    for (; item < items && count < k; item++)
        if (what[item] != DP_RANK_LEFT_OUT)
            heap[count++] = (struct dp_rank_best){scores[item], what[item] == DP_RANK_WANTED};
    for (uint32_t at = count / 2; at-- > 0;)
        sift(heap, count, at, heap[at]);
    for (; item < items; item++) {
        if (scores[item] < heap[0].score || what[item] == DP_RANK_LEFT_OUT) /* most */
            continue;
        const struct dp_rank_best one = {scores[item], what[item] == DP_RANK_WANTED};
        if (ranks_below(heap[0], one))
            sift(heap, count, 0, one);
    }
    qsort(heap, count, sizeof *heap, best_first);
    for (uint32_t place = 0; place < count; place++)
        if (heap[place].wanted)
            places[hits++] = place;
    return hits;
}
