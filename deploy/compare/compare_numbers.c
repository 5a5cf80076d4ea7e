#include "deploy/compare/compare_numbers.h"

#include "deploy/pages/page.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define DIGITS_MAX   8
#define SMALL        0.01 /* below, three digits of a metric that count */
#define SMALL_DIGITS 12

const char *dp_compare_interval_text(const struct dp_interval *interval, int digits,
                                     char out[DP_COMPARE_INTERVAL_BYTES])
{
    char mean[DP_PAGE_NUMBER_BYTES], low[DP_PAGE_NUMBER_BYTES], high[DP_PAGE_NUMBER_BYTES];
    if (interval->n == 0)
        (void)snprintf(out, DP_COMPARE_INTERVAL_BYTES, "-");
    else if (!isfinite(interval->low) || !isfinite(interval->high))
        (void)snprintf(out, DP_COMPARE_INTERVAL_BYTES, "%s", dp_page_number(interval->mean, digits, mean));
    else
        (void)snprintf(
            out, DP_COMPARE_INTERVAL_BYTES, "%s [%s, %s]", dp_page_number(interval->mean, digits, mean),
            dp_page_number(interval->low, digits, low), dp_page_number(interval->high, digits, high));
    return out;
}

const char *dp_compare_number_text(double value, int digits, char out[DP_COMPARE_INTERVAL_BYTES])
{
    const struct dp_interval plain = {.n = 1, .mean = value, .low = NAN, .high = NAN};
    return dp_compare_interval_text(&plain, digits, out);
}

const char *dp_compare_metric_name(const char *key)
{
    static const char *const names[][2] = {{"auc", "AUC"},
                                           {"rmse", "RMSE"},
                                           {"hr@10", "HR@10"},
                                           {"ndcg@10", "NDCG@10"},
                                           {"logloss", "log loss"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(key, names[i][0]) == 0)
            return names[i][1];
    return key;
}

int dp_compare_digits(enum dp_comparison_quantity quantity, double value)
{
    switch (quantity) {
    case DP_QUANTITY_METRIC:
    case DP_QUANTITY_LOSS:
        if (fabs(value) >= 1000)
            return -1;
        return fabs(value) >= 10      ? 2
               : fabs(value) >= SMALL ? 4
               : value == 0           ? 4
                                      : (int)fmin(2 - floor(log10(fabs(value))), SMALL_DIGITS);
    case DP_QUANTITY_SECONDS_TO:
    case DP_QUANTITY_SECONDS:
    case DP_QUANTITY_BATCHES_S:
        return fabs(value) >= 100 ? 1 : 2;
    case DP_QUANTITY_EXAMPLES_TO:
    case DP_QUANTITY_EXAMPLES_S:
    case DP_QUANTITIES:
        break;
    }
    return -1;
}

/* Digits with which the bound nearest to `none` does not look like it, if the interval excludes it. */
static int digits_apart(const struct dp_interval *interval, double none, int digits)
{
    double low = fabs(interval->low - none), high = fabs(interval->high - none), nearest = fmin(low, high);
    bool excluded = (interval->low > none) == (interval->high > none);
    while (excluded && nearest > 0 && digits < DIGITS_MAX && nearest * pow(10, digits) < 0.6)
        digits++;
    return digits;
}

const char *dp_compare_ratio_text(const struct dp_interval *ratio, char out[DP_COMPARE_INTERVAL_BYTES])
{
    int digits = ratio->mean < 10 ? 2 : 1;
    return dp_compare_interval_text(ratio, digits_apart(ratio, 1, digits), out);
}

/* Two that count, and up to two more for an interval that is narrow. */
int dp_compare_difference_digits(const struct dp_interval *difference)
{
    double largest = fmax(fabs(difference->mean), fmax(fabs(difference->low), fabs(difference->high)));
    double width = difference->high - difference->low;
    int digits = 2;
    if (largest >= 1000)
        return -1;
    while (digits < DIGITS_MAX && largest > 0 && largest * pow(10, digits) < 10)
        digits++;
    for (int more = 0; more < 2 && digits < DIGITS_MAX && width > 0 && width * pow(10, digits) < 2; more++)
        digits++;
    return digits_apart(difference, 0, digits);
}

const char *dp_compare_difference_text(const struct dp_interval *difference,
                                       char out[DP_COMPARE_INTERVAL_BYTES])
{
    return dp_compare_interval_text(difference, dp_compare_difference_digits(difference), out);
}

const char *dp_compare_by_text(const struct dp_interval *difference, char out[DP_COMPARE_INTERVAL_BYTES])
{
    struct dp_interval by = *difference;
    const char *way = by.mean < 0 ? "lower by " : by.mean > 0 ? "higher by " : "different by ";
    if (by.mean < 0) {
        by.mean = -difference->mean;
        by.low = -difference->high;
        by.high = -difference->low;
    }
    char text[DP_COMPARE_INTERVAL_BYTES];
    (void)snprintf(out, DP_COMPARE_INTERVAL_BYTES, "%s%.160s", way, dp_compare_difference_text(&by, text));
    return out;
}
