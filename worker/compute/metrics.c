#include "worker/compute/metrics.h"

#include "common/base/bytes.h"
#include "common/base/hash.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

/* Packed: 176 bytes of header, then (binary or ranked) scores f32[examples], (ranked) lists u32[examples],
 * (binary or ranked) labels u8[examples], then a digest u64 of all before it. Header: magic u32, version u32,
 * size u64 of the whole, kind u32, classes u32, examples u64, correct u64, loss sum f64, lists u32, 12 bytes
 * 0, rank sums (rank_sums.h). */
#define PACK_MAGIC   0x544d5044u /* "DPMT" */
#define PACK_VERSION 3u
#define PACK_RANKS   64u
#define PACK_HEADER  (PACK_RANKS + DP_RANK_SUMS_BYTES)
#define PACK_DIGEST  8u

#define RANKS 10u /* HR@10, NDCG@10 */

const struct dp_figures_real dp_figures_reals[DP_FIGURES_REALS] = {
    {"loss", offsetof(struct dp_figures, loss)}, {"accuracy", offsetof(struct dp_figures, accuracy)},
    {"auc", offsetof(struct dp_figures, auc)},   {"rmse", offsetof(struct dp_figures, rmse)},
    {"hr10", offsetof(struct dp_figures, hr10)}, {"ndcg10", offsetof(struct dp_figures, ndcg10)}};

struct dp_metrics {
    enum dp_labels labels;
    uint32_t classes, width;
    uint64_t examples, correct;
    uint32_t lists; /* that are ranked; 0: none */
    double loss_sum, unit;
    struct dp_rank_sums ranks; /* top {0}: there are none */
    /* DP_LABELS_BINARY, or ranked: one element an example. */
    float *scores;
    uint8_t *positive;
    uint32_t *list_of; /* ranked */
    size_t room;
};

static bool keeps_scores(enum dp_labels labels, uint32_t lists)
{
    return labels == DP_LABELS_BINARY || lists > 0;
}

enum dp_status dp_metrics_new(enum dp_labels labels, uint32_t classes, uint32_t lists,
                              struct dp_metrics **out, struct dp_error *err)
{
    *out = NULL;
    if (lists > 0 && labels == DP_LABELS_CLASS)
        return dp_fail(err, DP_ARGUMENT, "metrics: a model of classes cannot rank lists");
    if ((unsigned)labels > DP_LABELS_NONE)
        return dp_fail(err, DP_ARGUMENT, "metrics: labels of kind %d are not known", (int)labels);
    if (labels == DP_LABELS_CLASS && classes < 2)
        return dp_fail(err, DP_ARGUMENT, "metrics: %" PRIu32 " classes, needs 2 or more", classes);
    struct dp_metrics *metrics = calloc(1, sizeof *metrics);
    if (!metrics)
        return dp_fail(err, DP_NOMEM, "metrics: no memory for %zu bytes", sizeof *metrics);
    metrics->labels = labels;
    metrics->lists = lists;
    metrics->unit = 1;
    metrics->classes = labels == DP_LABELS_CLASS ? classes : 0;
    metrics->width = labels == DP_LABELS_CLASS ? classes : 1;
    *out = metrics;
    return DP_OK;
}

void dp_metrics_set_unit(struct dp_metrics *metrics, double unit)
{
    metrics->unit = unit;
}

void dp_metrics_free(struct dp_metrics **metrics)
{
    if (!*metrics)
        return;
    free((*metrics)->scores);
    free((*metrics)->positive);
    free((*metrics)->list_of);
    free(*metrics);
    *metrics = NULL;
}

static enum dp_status make_room(struct dp_metrics *metrics, uint64_t more, struct dp_error *err)
{
    uint64_t wanted = metrics->examples + more;
    if (wanted <= metrics->room)
        return DP_OK;
    size_t room = metrics->room * 2 > wanted ? metrics->room * 2 : (size_t)wanted;
    if (room > SIZE_MAX / 8)
        return dp_fail(err, DP_NOMEM, "metrics: %" PRIu64 " scores are too many", wanted);
    float *scores = realloc(metrics->scores, room * sizeof *scores);
    if (scores)
        metrics->scores = scores;
    uint8_t *positive = scores ? realloc(metrics->positive, room) : NULL;
    if (!positive)
        return dp_fail(err, DP_NOMEM, "metrics: no memory for %zu scores", room);
    metrics->positive = positive;
    uint32_t *list_of = metrics->lists ? realloc(metrics->list_of, room * sizeof *list_of) : NULL;
    if (metrics->lists && !list_of)
        return dp_fail(err, DP_NOMEM, "metrics: no memory for %zu scores", room);
    metrics->list_of = list_of;
    metrics->room = room;
    return DP_OK;
}

static enum dp_status check_part(const struct dp_metrics *metrics, const float *output, const float *labels,
                                 const uint32_t *list_of, uint32_t examples, struct dp_error *err)
{
    for (uint32_t i = 0; i < examples; i++) {
        float y = labels[i];
        if (metrics->lists && list_of[i] >= metrics->lists)
            return dp_fail(err, DP_DATA, "metrics: list %" PRIu32 " of %" PRIu32, list_of[i], metrics->lists);
        bool fits = keeps_scores(metrics->labels, metrics->lists) ? y == 0 || y == 1
                    : metrics->labels == DP_LABELS_CLASS
                        ? y >= 0 && y < (float)metrics->classes && y == (float)(uint32_t)y
                        : isfinite(y);
        if (!fits)
            return dp_fail(err, DP_DATA, "metrics: label %g of example %" PRIu32 " does not fit the model",
                           (double)y, i);
        for (uint32_t c = 0; c < metrics->width; c++) {
            float x = output[(size_t)i * metrics->width + c];
            if (!isfinite(x))
                return dp_fail(err, DP_NOT_FINITE,
                               "the model's output for example %" PRIu32
                               " is %g: training has diverged, try a lower learning rate",
                               i, (double)x);
        }
    }
    return DP_OK;
}

static void add_score(struct dp_metrics *metrics, float x, bool positive, uint32_t list)
{
    metrics->scores[metrics->examples] = x;
    metrics->positive[metrics->examples] = positive;
    if (metrics->lists)
        metrics->list_of[metrics->examples] = list;
}

/* log(1 + e^x), neither side overflowing */
static double softplus(double x)
{
    return fmax(x, 0) + log1p(exp(-fabs(x)));
}

static void add_binary(struct dp_metrics *metrics, double x, bool positive)
{
    metrics->loss_sum += softplus(x) - (positive ? x : 0);
    metrics->correct += (x > 0) == positive;
}

static void add_class(struct dp_metrics *metrics, const float *x, uint32_t label)
{
    uint32_t best = 0;
    double sum = 0;
    for (uint32_t c = 1; c < metrics->width; c++)
        best = x[c] > x[best] ? c : best;
    for (uint32_t c = 0; c < metrics->width; c++)
        sum += exp((double)x[c] - (double)x[best]);
    metrics->loss_sum += log(sum) - ((double)x[label] - (double)x[best]);
    metrics->correct += best == label;
}

enum dp_status dp_metrics_add(struct dp_metrics *metrics, const float *output, const float *labels,
                              const uint32_t *list_of, uint32_t examples, struct dp_error *err)
{
    DP_ASSERT((metrics->lists > 0) == (list_of != NULL));
    enum dp_status st = check_part(metrics, output, labels, list_of, examples, err);
    if (st == DP_OK && keeps_scores(metrics->labels, metrics->lists))
        st = make_room(metrics, examples, err);
    if (st != DP_OK)
        return st;
    for (uint32_t i = 0; i < examples; i++) {
        const float *x = output + (size_t)i * metrics->width;
        if (keeps_scores(metrics->labels, metrics->lists))
            add_score(metrics, x[0], labels[i] == 1, list_of ? list_of[i] : 0);
        if (metrics->labels == DP_LABELS_BINARY) {
            add_binary(metrics, (double)x[0], labels[i] == 1);
        } else if (metrics->labels == DP_LABELS_CLASS) {
            add_class(metrics, x, (uint32_t)labels[i]);
        } else if (metrics->labels == DP_LABELS_NONE) {
            metrics->loss_sum += (double)x[0];
        } else if (metrics->lists == 0) { /* otherwise the loss is BPR's over whole lists */
            double off = ((double)x[0] - (double)labels[i]) * metrics->unit;
            metrics->loss_sum += off * off;
        }
        metrics->examples++;
    }
    return DP_OK;
}

void dp_metrics_add_ranks(struct dp_metrics *metrics, const struct dp_rank_sums *sums)
{
    dp_rank_sums_add(&metrics->ranks, sums);
}

uint64_t dp_metrics_pack_bytes(enum dp_labels labels, uint32_t lists, uint64_t examples)
{
    uint64_t each = lists ? 9 : labels == DP_LABELS_BINARY ? 5 : 0;
    return PACK_HEADER + examples * each + PACK_DIGEST;
}

enum dp_status dp_metrics_pack(const struct dp_metrics *metrics, void **bytes, size_t *size,
                               struct dp_error *err)
{
    size_t n = (size_t)metrics->examples,
           total = (size_t)dp_metrics_pack_bytes(metrics->labels, metrics->lists, metrics->examples);
    unsigned char *to = calloc(1, total);
    *bytes = to;
    *size = to ? total : 0;
    if (!to)
        return dp_fail(err, DP_NOMEM, "metrics: no memory for %zu bytes", total);
    dp_store_u32le(to, PACK_MAGIC);
    dp_store_u32le(to + 4, PACK_VERSION);
    dp_store_u64le(to + 8, total);
    dp_store_u32le(to + 16, (uint32_t)metrics->labels);
    dp_store_u32le(to + 20, metrics->classes);
    dp_store_u64le(to + 24, metrics->examples);
    dp_store_u64le(to + 32, metrics->correct);
    memcpy(to + 40, &metrics->loss_sum, sizeof metrics->loss_sum);
    dp_store_u32le(to + 48, metrics->lists);
    dp_rank_sums_pack(&metrics->ranks, to + PACK_RANKS);
    if (keeps_scores(metrics->labels, metrics->lists) && n > 0) {
        unsigned char *at = to + PACK_HEADER;
        memcpy(at, metrics->scores, n * 4);
        if (metrics->lists)
            memcpy(at + n * 4, metrics->list_of, n * 4);
        memcpy(at + n * (metrics->lists ? 8 : 4), metrics->positive, n);
    }
    dp_store_u64le(to + total - PACK_DIGEST, dp_hash_bytes(DP_HASH_BEGIN, to, total - PACK_DIGEST));
    return DP_OK;
}

/* Whether add would have accepted the scores, lists and labels of a packed part. */
static bool scores_fit(const struct dp_metrics *metrics, const unsigned char *scores, size_t n)
{
    const unsigned char *list_of = scores + n * 4, *positive = scores + n * (metrics->lists ? 8 : 4);
    for (size_t i = 0; i < n; i++) {
        float score;
        memcpy(&score, scores + i * 4, sizeof score);
        if (!isfinite(score) || positive[i] > 1)
            return false;
        if (metrics->lists && dp_load_u32le(list_of + i * 4) >= metrics->lists)
            return false;
    }
    return true;
}

static void take_scores(struct dp_metrics *metrics, const unsigned char *scores, size_t n)
{
    memcpy(metrics->scores + metrics->examples, scores, n * 4);
    if (metrics->lists)
        memcpy(metrics->list_of + metrics->examples, scores + n * 4, n * 4);
    memcpy(metrics->positive + metrics->examples, scores + n * (metrics->lists ? 8 : 4), n);
}

enum dp_status dp_metrics_merge(struct dp_metrics *metrics, const void *bytes, size_t size,
                                struct dp_error *err)
{
    const unsigned char *from = bytes;
    if (size < PACK_HEADER + PACK_DIGEST || dp_load_u32le(from) != PACK_MAGIC)
        return dp_fail(err, DP_DATA, "these %zu bytes are not a part of an evaluation", size);
    if (dp_load_u32le(from + 4) != PACK_VERSION)
        return dp_fail(err, DP_DATA, "part of an evaluation has version %" PRIu32 ", this build reads %u",
                       dp_load_u32le(from + 4), PACK_VERSION);
    if (dp_load_u64le(from + 8) != size ||
        dp_load_u64le(from + size - PACK_DIGEST) != dp_hash_bytes(DP_HASH_BEGIN, from, size - PACK_DIGEST))
        return dp_fail(err, DP_DATA, "part of an evaluation is damaged or cut short (%zu bytes)", size);
    if (dp_load_u32le(from + 16) != (uint32_t)metrics->labels ||
        dp_load_u32le(from + 20) != metrics->classes || dp_load_u32le(from + 48) != metrics->lists)
        return dp_fail(err, DP_DATA, "part of an evaluation is of another kind of model");
    uint64_t n = dp_load_u64le(from + 24), correct = dp_load_u64le(from + 32);
    double loss_sum;
    struct dp_rank_sums ranks;
    memcpy(&loss_sum, from + 40, sizeof loss_sum);
    bool scores = keeps_scores(metrics->labels, metrics->lists);
    if (n > UINT64_MAX / 16 || size != dp_metrics_pack_bytes(metrics->labels, metrics->lists, n) ||
        correct > n || !isfinite(loss_sum) || !dp_rank_sums_unpack(from + PACK_RANKS, &ranks) ||
        n > UINT64_MAX / 8 - metrics->examples ||
        (scores && !scores_fit(metrics, from + PACK_HEADER, (size_t)n)))
        return dp_fail(err, DP_DATA, "part of an evaluation contradicts itself");
    if (scores && n > 0) {
        enum dp_status st = make_room(metrics, n, err);
        if (st != DP_OK)
            return st;
        take_scores(metrics, from + PACK_HEADER, (size_t)n);
    }
    metrics->examples += n;
    metrics->correct += correct;
    metrics->loss_sum += loss_sum;
    dp_rank_sums_add(&metrics->ranks, &ranks);
    return DP_OK;
}

/* An integer that orders as the float does, shifted by one, with the label in the lowest bit. */
static uint64_t ordered(float score, uint8_t positive)
{
    uint32_t bits;
    score += 0.0f; /* -0 is 0 */
    memcpy(&bits, &score, sizeof bits);
    bits = bits >> 31 ? ~bits : bits | 0x80000000u;
    return (uint64_t)bits << 1 | positive;
}

/* Sorts by score, ascending, in three passes of 11 bits. */
static void sort_scores(uint64_t **keys, uint64_t **other, size_t n)
{
    for (unsigned shift = 1; shift <= 23; shift += 11) {
        size_t at[2048] = {0}, sum = 0;
        for (size_t i = 0; i < n; i++)
            at[(*keys)[i] >> shift & 2047]++;
        for (size_t d = 0; d < 2048; d++) {
            size_t count = at[d];
            at[d] = sum;
            sum += count;
        }
        for (size_t i = 0; i < n; i++)
            (*other)[at[(*keys)[i] >> shift & 2047]++] = (*keys)[i];
        uint64_t *swap = *keys;
        *keys = *other;
        *other = swap;
    }
}

/* Area under ROC = share of (positive, negative) pairs that are ordered right, ties half (Mann-Whitney U). */
static double auc_of_sorted(const uint64_t *keys, size_t n)
{
    uint64_t negatives = 0, positives = 0;
    double twice = 0; /* counts pairs in the right order twice, ties once; integers, exact below 2^53 */
    for (size_t i = 0; i < n;) {
        uint64_t group[2] = {0};
        size_t end = i;
        for (; end < n && keys[end] >> 1 == keys[i] >> 1; end++)
            group[keys[end] & 1]++;
        twice += (double)group[1] * (double)(2 * negatives + group[0]);
        negatives += group[0];
        positives += group[1];
        i = end;
    }
    if (negatives == 0 || positives == 0)
        return (double)NAN;
    return twice / 2 / ((double)positives * (double)negatives);
}

static enum dp_status auc(const struct dp_metrics *metrics, double *out, struct dp_error *err)
{
    size_t n = (size_t)metrics->examples;
    enum dp_status st = DP_OK;
    uint64_t *keys = malloc((n + 1) * sizeof *keys), *other = malloc((n + 1) * sizeof *other);
    if (!keys || !other) {
        st = dp_fail(err, DP_NOMEM, "metrics: no memory to sort %zu scores", n);
        goto done;
    }
    for (size_t i = 0; i < n; i++)
        keys[i] = ordered(metrics->scores[i], metrics->positive[i]);
    sort_scores(&keys, &other, n);
    *out = auc_of_sorted(keys, n);
done:
    free(keys);
    free(other);
    return st;
}

/* held[l]: the score of list l's example labelled 1; above[l]: how many others are not below it. */
static enum dp_status rank_lists(const struct dp_metrics *metrics, float *held, uint32_t *above, double *bpr,
                                 struct dp_error *err)
{
    size_t n = (size_t)metrics->examples;
    for (size_t i = 0; i < n; i++)
        if (metrics->positive[i]) {
            held[metrics->list_of[i]] = metrics->scores[i];
            above[metrics->list_of[i]]++;
        }
    for (uint32_t l = 0; l < metrics->lists; l++) {
        if (above[l] != 1)
            return dp_fail(err, DP_DATA,
                           "metrics: list %" PRIu32 " has %" PRIu32 " examples labelled 1: expected one", l,
                           above[l]);
        above[l] = 0;
    }
    for (size_t i = 0; i < n; i++) {
        uint32_t list = metrics->list_of[i];
        if (metrics->positive[i])
            continue;
        above[list] += metrics->scores[i] >= held[list];
        *bpr += softplus((double)metrics->scores[i] - (double)held[list]);
    }
    return DP_OK;
}

static enum dp_status ranking(const struct dp_metrics *metrics, struct dp_figures *out, struct dp_error *err)
{
    double hits = 0, gains = 0, bpr = 0;
    float *held = calloc(metrics->lists, sizeof *held);
    uint32_t *above = calloc(metrics->lists, sizeof *above);
    enum dp_status st = held && above ? rank_lists(metrics, held, above, &bpr, err)
                                      : dp_fail(err, DP_NOMEM, "metrics: no memory to rank %" PRIu32 " lists",
                                                metrics->lists);
    for (uint32_t l = 0; st == DP_OK && l < metrics->lists; l++)
        if (above[l] < RANKS) {
            hits++;
            gains += log(2) / log(above[l] + 2.0);
        }
    free(held);
    free(above);
    if (st != DP_OK)
        return st;
    out->hr10 = hits / metrics->lists;
    out->ndcg10 = gains / metrics->lists;
    if (metrics->labels == DP_LABELS_ANY) {
        out->rmse = (double)NAN;
        out->loss = metrics->examples > metrics->lists ? bpr / (double)(metrics->examples - metrics->lists)
                                                       : (double)NAN;
    }
    return DP_OK;
}

enum dp_status dp_metrics_figures(const struct dp_metrics *metrics, struct dp_figures *out,
                                  struct dp_error *err)
{
    double n = (double)metrics->examples;
    if (metrics->ranks.top[0] > 0) {
        dp_rank_sums_figures(&metrics->ranks, metrics->labels, out);
        return DP_OK;
    }
    *out = dp_figures_none(metrics->examples);
    if (metrics->examples == 0)
        return DP_OK;
    out->loss = metrics->loss_sum / n;
    if (metrics->labels == DP_LABELS_ANY)
        out->rmse = sqrt(out->loss);
    else if (metrics->labels != DP_LABELS_NONE)
        out->accuracy = (double)metrics->correct / n;
    enum dp_status st = metrics->labels == DP_LABELS_BINARY ? auc(metrics, &out->auc, err) : DP_OK;
    return st == DP_OK && metrics->lists ? ranking(metrics, out, err) : st;
}
