/* Goal: generated clicks are rows of their seed and number, in Criteo's form, drawn from the model that they say: labels come
 * as often as its probabilities, categories by Zipf's law; and the figures told are those of the rows.
 * Method: pinned bytes; the reader of Criteo's files; chi-square at fixed seeds; sums over all pairs for AUC. */
#include "tests/lib/test.h"

#include "deploy/cli/generate_clicks.h"
#include "deploy/cli/generate_figures.h"
#include "worker/read/dataset.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FEATURES     5000u
#define LINES        700u
#define PINNED_SMALL 0x700e57c49d7cac97u
#define PINNED_LARGE 0x5b12f8a597fbe20fu

static struct dp_clicks *clicks_of(uint32_t features, uint64_t seed)
{
    struct dp_clicks *clicks;
    struct dp_error err = {0};
    assert_int_equal(dp_clicks_new(features, seed, &clicks, &err), DP_OK);
    return clicks;
}

static size_t line_of(const struct dp_clicks *clicks, uint64_t number, char *line)
{
    struct dp_clicks_row row;
    dp_clicks_draw(clicks, number, &row);
    size_t len = dp_clicks_line(clicks, &row, line);
    assert_true(len <= DP_CLICKS_LINE_BYTES);
    return len;
}

/* FNV-1a of the lines first .. first + LINES - 1, drawn in the order first + i * step % LINES. */
static uint64_t digest(const struct dp_clicks *clicks, uint64_t first, unsigned step)
{
    static char lines[LINES][DP_CLICKS_LINE_BYTES];
    static size_t len[LINES];
    uint64_t h = 0xcbf29ce484222325u;
    for (unsigned i = 0; i < LINES; i++) {
        unsigned at = i * step % LINES;
        len[at] = line_of(clicks, first + at, lines[at]);
    }
    for (unsigned i = 0; i < LINES; i++)
        for (size_t b = 0; b < len[i]; b++)
            h = (h ^ (unsigned char)lines[i][b]) * 0x100000001b3u;
    return h;
}

/* Pinned: another machine that gives other bytes would train on other data under the same seed. */
static void rows_are_functions_of_seed_and_number(void **state)
{
    struct dp_clicks *one = clicks_of(FEATURES, 1), *again = clicks_of(FEATURES, 1),
                     *other = clicks_of(FEATURES, 2), *large = clicks_of(100000, 1);
    uint64_t first = digest(one, 0, 1);
    print_message("%016llx %016llx\n", (unsigned long long)first,
                  (unsigned long long)digest(large, 1000000, 1));
    assert_true(first == PINNED_SMALL);
    assert_true(digest(large, 1000000, 1) == PINNED_LARGE);
    assert_true(digest(again, 0, 3) == first);
    assert_true(digest(one, 1, 1) != first);
    assert_true(digest(other, 0, 1) != first);
    assert_int_equal(dp_clicks_size(one, 2), FEATURES);
    assert_int_equal(dp_clicks_size(large, 2), 100000);
    assert_int_equal(dp_clicks_size(one, 8), 3);
    dp_clicks_free(&one);
    dp_clicks_free(&again);
    dp_clicks_free(&other);
    dp_clicks_free(&large);
}

static void sigmoid_is_that_of_libm(void **state)
{
    for (double x = -45; x < 45; x += 0.0173) {
        double wanted = 1 / (1 + exp(-x));
        assert_true(fabs(dp_clicks_sigmoid(x) - wanted) <= 2e-15 * wanted);
    }
    assert_true(dp_clicks_sigmoid(-1e300) >= 0 && dp_clicks_sigmoid(1e300) == 1);
}

/* Rows whose probability lies in the same tenth: labels are 1 as often as the probabilities say. */
static void labels_come_as_often_as_said(void **state)
{
    for (uint64_t seed = 1; seed <= 4; seed++) {
        struct dp_clicks *clicks = clicks_of(FEATURES, seed);
        struct dp_truth *truth = calloc(1, sizeof *truth);
        double sum[10] = {0}, spread[10] = {0}, ones[10] = {0}, chi = 0;
        assert_non_null(truth);
        for (uint64_t n = 0; n < 60000; n++) {
            struct dp_clicks_row row;
            dp_clicks_draw(clicks, n, &row);
            int bin = (int)(row.probability * 9.999999);
            sum[bin] += row.probability;
            spread[bin] += row.probability * (1 - row.probability);
            ones[bin] += row.label;
            dp_truth_add(truth, row.probability, row.label);
        }
        for (int b = 0; b < 10; b++)
            chi += (ones[b] - sum[b]) * (ones[b] - sum[b]) / spread[b];
        struct dp_truth_figures figures;
        dp_truth_figures(truth, &figures);
        print_message(
            "seed %llu: chi-square %.1f of 10 degrees, base rate %.4f, logloss %.4f beside %.4f, AUC %.4f\n",
            (unsigned long long)seed, chi, figures.base_rate, figures.loss, figures.loss_constant,
            figures.auc);
        assert_true(chi < 29.6); /* the 99.9% point */
        assert_true(figures.base_rate > 0.2 && figures.base_rate < 0.3);
        assert_true(figures.loss < figures.loss_constant - 0.1);
        assert_true(figures.auc > 0.8 && figures.auc < 0.9);
        free(truth);
        dp_clicks_free(&clicks);
    }
}

/* Of a column's rows that are not empty, rank k has the share k^-s / sum. Columns: of each exponent. */
static void categories_follow_zipf(void **state)
{
    static const struct {
        int column;
        double exponent;
    } columns[] = {{9, 1}, {3, 1.25}, {0, 1.5}, {8, 1}};
    enum { RANKS = 30 };
    struct dp_clicks *clicks = clicks_of(FEATURES, 5);
    for (size_t c = 0; c < sizeof columns / sizeof columns[0]; c++) {
        double seen[RANKS + 1] = {0}, all = 0, sum = 0, chi = 0, rest = 1;
        uint32_t size = dp_clicks_size(clicks, columns[c].column), ranks = size < RANKS ? size : RANKS;
        for (uint64_t n = 0; n < 50000; n++) {
            struct dp_clicks_row row;
            dp_clicks_draw(clicks, n, &row);
            uint32_t k = row.category[columns[c].column];
            assert_true(k <= size);
            if (k == 0)
                continue;
            seen[k <= ranks ? k - 1 : ranks]++;
            all++;
        }
        for (uint32_t k = 1; k <= size; k++)
            sum += pow(k, -columns[c].exponent);
        for (uint32_t k = 1; k <= ranks + (size > ranks); k++) {
            double share = k <= ranks ? pow(k, -columns[c].exponent) / sum : rest;
            rest -= share;
            chi += (seen[k - 1] - share * all) * (seen[k - 1] - share * all) / (share * all);
        }
        print_message("column %d: chi-square %.1f\n", columns[c].column, chi);
        assert_true(chi < 59.7); /* 99.9% point of 30 degrees */
    }
    dp_clicks_free(&clicks);
}

/* What training reads of the lines: labels, sizes of integers, and which categories are the same. */
static void criteo_reader_reads_them(void **state)
{
    char path[] = "/tmp/dp-clicks-XXXXXX", line[DP_CLICKS_LINE_BYTES];
    static struct dp_clicks_row rows[LINES];
    struct dp_clicks *clicks = clicks_of(FEATURES, 9);
    FILE *file = fdopen(mkstemp(path), "w");
    assert_non_null(file);
    for (unsigned n = 0; n < LINES; n++) {
        dp_clicks_draw(clicks, n, &rows[n]);
        size_t len = dp_clicks_line(clicks, &rows[n], line);
        assert_true(fwrite(line, 1, len, file) == len);
    }
    assert_int_equal(fclose(file), 0);
    struct dp_dataset_options options = {.path = path, /* the format is told by its lines */
                                         .form = DP_FORM_TABLES,
                                         .labels = DP_LABELS_BINARY,
                                         .scale = 1,
                                         .width = DP_CLICKS_INTEGERS,
                                         .fields = DP_CLICKS_CATEGORIES,
                                         .batch = LINES};
    struct dp_dataset *data;
    struct dp_batch *batch;
    struct dp_error err = {0};
    assert_int_equal(dp_dataset_open(&options, &data, &err), DP_OK);
    assert_int_equal(dp_dataset_examples(data), LINES);
    assert_int_equal(dp_batch_new(data, &batch, &err), DP_OK);
    dp_dataset_fill(data, 0, 0, batch);
    for (unsigned n = 0; n < LINES; n++) {
        assert_true(batch->labels[n] == (float)rows[n].label);
        for (unsigned i = 0; i < DP_CLICKS_INTEGERS; i++) {
            double x = (double)rows[n].integer[i], wanted = x < 0 ? -log1p(-x) : log1p(x);
            assert_true(fabs((double)batch->dense[n * DP_CLICKS_INTEGERS + i] - wanted) < 1e-5);
        }
        for (unsigned c = 0; n > 0 && c < DP_CLICKS_CATEGORIES; c++)
            assert_true((batch->list[c].slots[n] == batch->list[c].slots[n - 1]) ==
                        (rows[n].category[c] == rows[n - 1].category[c]));
    }
    dp_batch_free(&batch);
    dp_dataset_close(&data);
    dp_clicks_free(&clicks);
    assert_int_equal(unlink(path), 0);
}

static void figures_are_those_of_the_rows(void **state)
{
    enum { ROWS = 1500 };
    struct dp_clicks *clicks = clicks_of(FEATURES, 3);
    struct dp_truth *truth = calloc(1, sizeof *truth);
    static struct dp_clicks_row row[ROWS];
    double loss = 0, right = 0, ones = 0;
    assert_non_null(truth);
    for (unsigned n = 0; n < ROWS; n++) {
        dp_clicks_draw(clicks, n, &row[n]);
        dp_truth_add(truth, row[n].probability, row[n].label);
        loss -= log(row[n].label ? row[n].probability : 1 - row[n].probability) / ROWS;
        ones += row[n].label;
    }
    for (unsigned i = 0; i < ROWS; i++)
        for (unsigned j = 0; j < ROWS; j++)
            if (row[i].label && !row[j].label)
                right += row[i].probability > row[j].probability    ? 1
                         : row[i].probability == row[j].probability ? 0.5
                                                                    : 0;
    struct dp_truth_figures figures;
    dp_truth_figures(truth, &figures);
    double share = ones / ROWS;
    assert_true(fabs(figures.loss - loss) < 1e-12);
    assert_true(fabs(figures.base_rate - share) < 1e-12);
    assert_true(fabs(figures.loss_constant + share * log(share) + (1 - share) * log(1 - share)) < 1e-12);
    assert_true(fabs(figures.auc - right / (ones * (ROWS - ones))) < 1e-4);
    *truth = (struct dp_truth){0};
    dp_truth_add(truth, 0.25, true);
    dp_truth_figures(truth, &figures);
    assert_true(figures.loss_constant == 0 && isnan(figures.auc));
    free(truth);
    dp_clicks_free(&clicks);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_functions_of_seed_and_number),
        cmocka_unit_test(sigmoid_is_that_of_libm),
        cmocka_unit_test(labels_come_as_often_as_said),
        cmocka_unit_test(categories_follow_zipf),
        cmocka_unit_test(criteo_reader_reads_them),
        cmocka_unit_test(figures_are_those_of_the_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
