/* Generate, clicks: rows in the form of Criteo's logs (label, 13 integers, 26 categories) from a model that
 * is known.
 *     log odds = bias + integers, each a slope on about log2(1 + x) + a weight of each category
 *                + 8 pairs of categories, each the inner product of two vectors of 4
 * An empty integer counts as 0, an empty category is one of its own. Categories come by Zipf's law: the k-th
 * has a share in proportion to 1/k, k^-1.25 or k^-1.5, by column; labels are 1 in about a quarter of the
 * rows.
 * Promise   Row n is a function of (seed, features, n) alone. So any row can be made without those before
 *           it, and higher numbers give further rows of the same model. Only + - * / and square roots
 *           decide a row's contents. IEEE 754 rounds them alike everywhere: equal bytes on every machine.
 * Thread    Constant after new: any.
 * Memory    12 bytes a category of each different column, 12 MiB at 100,000 features; nothing a row. */
#ifndef DP_CLI_GENERATE_CLICKS_H
#define DP_CLI_GENERATE_CLICKS_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_CLICKS_INTEGERS     13
#define DP_CLICKS_CATEGORIES   26
#define DP_CLICKS_FEATURES_MIN 2u
#define DP_CLICKS_FEATURES_MAX 10000000u
#define DP_CLICKS_LINE_BYTES   512u /* of any line, at most */

struct dp_clicks;

struct dp_clicks_row {
    bool label, has[DP_CLICKS_INTEGERS]; /* has: the integer is not empty */
    double probability;                  /* that the label is 1, by the true model */
    int64_t integer[DP_CLICKS_INTEGERS];
    uint32_t category[DP_CLICKS_CATEGORIES]; /* 1 .. size of the column by rank; 0: empty */
};

/* features: categories of the largest columns; FEATURES_MIN .. FEATURES_MAX. */
enum dp_status dp_clicks_new(uint32_t features, uint64_t seed, struct dp_clicks **out, struct dp_error *err);
void dp_clicks_free(struct dp_clicks **clicks);
/* number: below 2^63. */
void dp_clicks_draw(const struct dp_clicks *clicks, uint64_t number, struct dp_clicks_row *out);
/* The line of a row, with its newline, into line[DP_CLICKS_LINE_BYTES]; its length. */
size_t dp_clicks_line(const struct dp_clicks *clicks, const struct dp_clicks_row *row, char *line);
/* Categories of a column. */
uint32_t dp_clicks_size(const struct dp_clicks *clicks, int column);
/* 1 / (1 + e^-x), by + - * / alone; within 1e-15 of it. */
double dp_clicks_sigmoid(double x);

#endif
