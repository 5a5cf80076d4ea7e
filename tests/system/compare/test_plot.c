/* Goal    a drawing shows its series: chosen points, gaps, bands, colours and tics that can be read.
 * Method  drawings read as text. test_pages.py compares the place of each value with the tics. */
#include "tests/lib/test.h"

#include "deploy/pages/plot.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char *drawn(const struct dp_plot *plot)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    dp_plot_draw(to, plot, &dp_palette_page);
    assert_int_equal(fclose(to), 0);
    assert_null(strstr(text, "nan"));
    assert_null(strstr(text, "inf"));
    return text;
}

static size_t count_of(const char *text, const char *what)
{
    size_t n = 0;
    for (const char *at = text; (at = strstr(at, what)); at += strlen(what))
        n++;
    return n;
}

/* The attribute of the first element that has `mark` after it. */
static void attribute_before(const char *text, const char *mark, const char *attribute, char *out,
                             size_t size)
{
    const char *end = strstr(text, mark), *at = NULL;
    assert_non_null(end);
    for (const char *next = text; (next = strstr(next, attribute)) && next < end; next++)
        at = next + strlen(attribute);
    assert_non_null(at);
    (void)snprintf(out, size, "%.*s", (int)strcspn(at, "\""), at);
}

/* The texts of the drawing one after the other: "0 2 4 x". */
static const char *texts_of(const char *text, char out[400])
{
    out[0] = '\0';
    for (const char *at = text; (at = strstr(at, "<text")); at++) {
        const char *name = strchr(at, '>') + 1;
        size_t used = strlen(out);
        (void)snprintf(out + used, 400 - used, "%s%.*s", used ? " " : "", (int)strcspn(name, "<"), name);
    }
    return out;
}

static void points_are_chosen_and_gaps_left_out(void **state)
{
    static char path[16384];
    char texts[400];
    double x[5000], y[5000];
    for (int i = 0; i < 5000; i++) {
        x[i] = i + 1;
        y[i] = 1.0 / (i + 1);
    }
    struct dp_plot_series series = {.name = "n", .points = 5000, .x = x, .y = y};
    const struct dp_plot plot = {.x_label = "x", .y_label = "y", .series = &series, .count = 1};
    char *text = drawn(&plot);
    attribute_before(text, "stroke-width=\"2\"", "<path d=\"", path, sizeof path);
    assert_int_equal(count_of(path, "M"), 1);
    assert_int_equal(count_of(path, ","), DP_PLOT_POINTS_MAX);
    assert_string_equal(texts_of(text, texts), "1k 2k 3k 4k 5k 0.001 0.01 0.1 1 x y"); /* logarithmic */
    free(text);
    y[2501] = (double)NAN; /* between two points that are drawn */
    text = drawn(&plot);
    attribute_before(text, "stroke-width=\"2\"", "<path d=\"", path, sizeof path);
    assert_int_equal(count_of(path, "M"), 2);
    assert_int_equal(count_of(path, ","), DP_PLOT_POINTS_MAX);
    free(text);
    series.points = 5;
    y[1] = (double)NAN;
    y[2] = HUGE_VAL;
    text = drawn(&plot);
    attribute_before(text, "stroke-width=\"2\"", "<path d=\"", path, sizeof path);
    assert_int_equal(count_of(path, "M"), 2);
    assert_int_equal(count_of(path, ","), 3);
    assert_string_equal(texts_of(text, texts), "1 1.5 2 2.5 3 3.5 4 4.5 5 0.2 0.4 0.6 0.8 1 x y");
    free(text);
}

/* A band has gaps of its own, and ends where a logarithmic axis does. */
static void bands_have_gaps(void **state)
{
    static const double x[] = {1, 2, 3, 4}, y[] = {100, 10, 2, 1}, high[] = {110, 11, 3, 2};
    const double low[] = {90, (double)NAN, 1, -1};
    const struct dp_plot_series series = {.name = "n", .points = 4, .x = x, .y = y, .low = low, .high = high};
    const struct dp_plot plot = {.x_label = "x", .y_label = "y", .series = &series, .count = 1};
    char *text = drawn(&plot), path[400];
    double last_x, last_y, back_x, back_y;
    assert_int_equal(count_of(text, "fill-opacity"), 2);
    attribute_before(strstr(strstr(text, "fill-opacity") + 1, "fill-opacity"), "/>", "points=\"", path,
                     sizeof path);
    assert_int_equal(sscanf(path, "%*f,%*f %lf,%lf %lf,%lf", &last_x, &last_y, &back_x, &back_y), 4);
    assert_true(last_x == back_x && last_y > back_y && last_y < DP_PLOT_HIGH);
    attribute_before(text, "stroke-width=\"2\"", "<path d=\"", path, sizeof path);
    assert_int_equal(count_of(path, "M"), 1);
    free(text);
}

/* In print without colours. */
static void series_have_marks_and_dashes(void **state)
{
    static const char *const names[] = {"sync",  "m",         "async",     "ssp:1",
                                        "ssp:4", "hogwild@2", "allreduce", "sync:1"};
    enum dp_colour colours[8], alone;
    dp_colour_modes(names, 8, colours);
    assert_int_equal(colours[0], DP_COLOUR_VERMILLION);
    assert_int_equal(colours[2], DP_COLOUR_BLUE);
    assert_int_equal(colours[4], DP_COLOUR_GREEN);
    for (int a = 0; a < 8; a++)
        for (int b = 0; b < a; b++) {
            const struct dp_colour_look *one = dp_colour_look(colours[a]),
                                        *other = dp_colour_look(colours[b]);
            assert_int_not_equal(colours[a], colours[b]);
            assert_true(strcmp(one->mark, other->mark) != 0 || one->open != other->open);
            assert_string_not_equal(one->dash, other->dash);
        }
    for (int m = 0; m < 8; m++) /* on a page of its own */
        if (m != 1 && m != 3) {
            dp_colour_modes(&names[m], 1, &alone);
            assert_int_equal(alone, colours[m]);
        }
    static const double x[] = {1, 2}, y[] = {3, 4};
    const struct dp_plot_series series[] = {
        {.name = "async", .colour = colours[2], .points = 2, .x = x, .y = y},
        {.name = "sync", .colour = colours[0], .points = 2, .x = x, .y = y}};
    const struct dp_plot plot = {
        .x_label = "x", .y_label = "y", .series = series, .count = 2, .level = 5, .level_name = "target"};
    char *text = drawn(&plot);
    assert_non_null(
        strstr(text, "stroke=\"#0072b2\" stroke-width=\"2\" stroke-dasharray=\"none\"/>\n<path transform="));
    assert_non_null(
        strstr(text, "stroke=\"#d55e00\" stroke-width=\"2\" stroke-dasharray=\"9,4\"/>\n<path transform="));
    assert_non_null(strstr(text, "stroke=\"currentColor\" stroke-width=\"1.5\" stroke-dasharray=\"3,3\""));
    free(text);
}

/* Each mark has a form of its own; open ones have the paper's colour. */
static void marks_differ(void **state)
{
    char *out[DP_COLOURS];
    size_t size;
    for (int c = 0; c < DP_COLOURS; c++) {
        FILE *to = open_memstream(&out[c], &size);
        dp_colour_put_mark(to, &dp_palette_paper, (enum dp_colour)c, 1, 2);
        assert_int_equal(fclose(to), 0);
        assert_non_null(strstr(out[c], "translate(1.00,2.00)"));
        for (int other = 0; other < c; other++)
            assert_string_not_equal(out[c], out[other]);
    }
    assert_non_null(strstr(out[DP_COLOUR_PURPLE], "fill=\"#ffffff\" stroke=\"#cc79a7\""));
    for (int c = 0; c < DP_COLOURS; c++)
        free(out[c]);
}

static void dots_have_intervals(void **state)
{
    static const double x[] = {0.5, 2}, low[] = {0.25, 1.5}, high[] = {1.25, 3};
    const struct dp_plot_series series[] = {
        {.name = "ssp:4", .points = 1, .x = &x[0], .low = &low[0], .high = &high[0]},
        {.name = "100%", .points = 1, .x = &x[1], .low = &low[1], .high = &high[1]}};
    const struct dp_plot plot = {.kind = DP_PLOT_FOREST,
                                 .x_label = "x",
                                 .x_log = true,
                                 .series = series,
                                 .count = 2,
                                 .level = 1,
                                 .level_name = "no difference"};
    char *text = drawn(&plot), texts[400];
    assert_string_equal(texts_of(text, texts), "0.5 1 2 ssp:4 100% x");
    assert_int_equal(count_of(text, "stroke=\"#0072b2\" stroke-width=\"2\""), 2);
    assert_int_equal(count_of(text, "stroke-dasharray=\"3,3\""), 1);
    free(text);
}

/* A scale can be read off two tics at least. */
static void a_logarithmic_axis_has_two_tics(void **state)
{
    static const double x[] = {0.12, 8}, longer[] = {0.12, 12}, y[] = {1, 2};
    struct dp_plot_series series = {.name = "a", .points = 2, .x = x, .y = y};
    const struct dp_plot plot = {
        .x_label = "x", .y_label = "y", .x_log = true, .series = &series, .count = 1};
    char *text = drawn(&plot), texts[400];
    assert_string_equal(texts_of(text, texts), "0.2 0.5 1 2 5 1 1.2 1.4 1.6 1.8 2 x y");
    free(text);
    series.x = longer;
    text = drawn(&plot);
    assert_string_equal(texts_of(text, texts), "1 10 1 1.2 1.4 1.6 1.8 2 x y");
    free(text);
}

static void bars_are_stacked_hatched_and_have_errors(void **state)
{
    static const char *const categories[] = {"0", "1"};
    static const double low[] = {30, 40}, high[] = {70, 60}, least[] = {20, 30}, most[] = {35, 45};
    static const struct dp_plot_series series[] = {
        {.name = "a", .points = 2, .y = low},
        {.name = "b", .colour = DP_COLOUR_VERMILLION, .points = 2, .y = high}};
    static const struct dp_plot_series with_error = {
        .name = "a", .colour = DP_COLOUR_VERMILLION, .points = 2, .y = low, .low = least, .high = most};
    struct dp_plot plot = {.kind = DP_PLOT_STACKED,
                           .x_label = "x",
                           .y_label = "y",
                           .category = categories,
                           .series = series,
                           .count = 2};
    char *text = drawn(&plot), texts[400];
    assert_string_equal(texts_of(text, texts), "0 1 0 20 40 60 80 100 x y");
    assert_int_equal(count_of(text, "<polygon"), 6);
    assert_int_equal(count_of(text, "url(#h1)"), 2);
    free(text);
    plot.kind = DP_PLOT_BARS; /* next to each other */
    text = drawn(&plot);
    assert_string_equal(texts_of(text, texts), "0 1 0 20 40 60 80 x y");
    assert_int_equal(count_of(text, "stroke-width=\"1.5\""), 0);
    free(text);
    plot.series = &with_error;
    plot.count = 1;
    text = drawn(&plot);
    assert_int_equal(count_of(text, "stroke=\"currentColor\" stroke-width=\"1.5\""), 2);
    assert_null(strstr(text, "url("));
    free(text);
}

/* Categories that are an order may lack names where there is no room; others stand aslant. */
static void names_of_bars_have_room(void **state)
{
    static const char *const categories[] = {"one-half",   "two-half",    "four-half",
                                             "eight-half", "many-halves", "more"};
    static const double y[] = {1, 2, 3, 4, 5, 6};
    const struct dp_plot_series series = {.name = "n", .points = 6, .y = y};
    struct dp_plot plot = {.kind = DP_PLOT_BARS,
                           .x_label = "x",
                           .ordered = true,
                           .category = categories,
                           .series = &series,
                           .count = 1};
    char *text = drawn(&plot), texts[400];
    assert_null(strstr(text, "rotate(-40)"));
    assert_string_equal(texts_of(text, texts), "one-half four-half many-halves 0 2 4 6 x");
    free(text);
    plot.ordered = false;
    text = drawn(&plot);
    assert_int_equal(count_of(text, "rotate(-40)"), 6);
    free(text);
}

/* Nothing to see, one point, equal values, values that are too large or too near each other: there are axes all the same. */
static void an_empty_range_is_widened(void **state)
{
    static const double x[] = {1, 2, 3}, same[] = {2, 2, 2};
    const double none[] = {(double)NAN, (double)NAN, (double)NAN}, huge[] = {1e308, -1e308, HUGE_VAL},
                 equal[] = {1e18, 1e18 + 128, 1e18};
    struct dp_plot_series series = {.name = "a", .points = 3, .x = x, .y = same};
    struct dp_plot plot = {.x_label = "x", .y_label = "y", .series = &series, .count = 1};
    char texts[400];
    for (int i = 0; i < 6; i++) {
        series.points = i == 1 ? 1 : 3;
        series.y = i == 2 ? none : i == 4 ? huge : i == 5 ? equal : same;
        plot.y_log = i == 3;
        char *text = drawn(&plot);
        assert_true(strlen(texts_of(text, texts)) > 8);
        free(text);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(points_are_chosen_and_gaps_left_out),
                                       cmocka_unit_test(bands_have_gaps),
                                       cmocka_unit_test(series_have_marks_and_dashes),
                                       cmocka_unit_test(marks_differ),
                                       cmocka_unit_test(dots_have_intervals),
                                       cmocka_unit_test(a_logarithmic_axis_has_two_tics),
                                       cmocka_unit_test(bars_are_stacked_hatched_and_have_errors),
                                       cmocka_unit_test(names_of_bars_have_room),
                                       cmocka_unit_test(an_empty_range_is_widened)};
    return cmocka_run_group_tests_name("plot", tests, NULL, NULL);
}
