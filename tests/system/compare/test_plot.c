/* Goal    no text is a command of gnuplot's; a gnuplot that is absent, fails or hangs costs the plot, in bounded time.
 * Method  scripts read as text; programs of that name in a PATH of the test's own; where it is installed, the real one. */
#include "tests/lib/test.h"

#include "deploy/pages/gnuplot.h"
#include "deploy/pages/plot.h"
#include "deploy/pages/plot_axes.h"
#include "tests/lib/timeouts.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static char place[] = "/tmp/dp_plot_XXXXXX";
static char program[sizeof place + 16];
static char *usual_path;

static int make_place(void **state)
{
    (void)state;
    assert_non_null(mkdtemp(place));
    (void)snprintf(program, sizeof program, "%s/gnuplot", place);
    usual_path = strdup(getenv("PATH") ? getenv("PATH") : "/usr/bin:/bin");
    return 0;
}

static int remove_place(void **state)
{
    (void)state;
    (void)unlink(program);
    free(usual_path);
    return rmdir(place);
}

static char *script_of(const struct dp_plot *plot)
{
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    dp_plot_script(plot, to);
    assert_int_equal(fclose(to), 0);
    return text;
}

static void texts_are_quoted(void **state)
{
    (void)state;
    char *text = NULL;
    size_t size = 0;
    FILE *to = open_memstream(&text, &size);
    dp_plot_quote(to, "it's `rm` \"$x\"\nquit @m");
    assert_int_equal(fclose(to), 0);
    assert_string_equal(text, "'it''s `rm` \"$x\"?quit @m'");
    free(text);
    static const char *const categories[] = {"5%", "a'b"};
    static const double y[] = {1, 2};
    const struct dp_plot_series series = {.name = "n", .points = 2, .y = y};
    const struct dp_plot plot = {.kind = DP_PLOT_BARS,
                                 .caption = "c",
                                 .x_label = "x'\n!touch /tmp/x",
                                 .y_label = "y",
                                 .category = categories,
                                 .series = &series,
                                 .count = 1};
    text = script_of(&plot);
    assert_non_null(strstr(text, "set xtics font ',14' ('5%%' 0, 'a''b' 1)\n"));
    assert_non_null(strstr(text, "set xlabel 'x''?!touch /tmp/x' "));
    free(text);
}

static unsigned lines_of(const char *text, const char *from)
{
    unsigned n = 0;
    const char *at = strstr(text, from);
    assert_non_null(at);
    for (at = strchr(at, '\n') + 1; strncmp(at, "END_OF_SERIES", 13) != 0; at = strchr(at, '\n') + 1)
        n++;
    return n;
}

static void points_are_chosen_and_gaps_left_out(void **state)
{
    (void)state;
    double x[5000], y[5000];
    for (int i = 0; i < 5000; i++) {
        x[i] = i + 1;
        y[i] = 1.0 / (i + 1);
    }
    struct dp_plot_series series = {.name = "n", .points = 5000, .x = x, .y = y};
    const struct dp_plot plot = {
        .caption = "c", .x_label = "x", .y_label = "y", .series = &series, .count = 1};
    char *text = script_of(&plot);
    assert_int_equal(lines_of(text, "$s0 <<"), DP_PLOT_POINTS_MAX);
    assert_non_null(strstr(text, "\n1 1\n"));
    assert_non_null(strstr(text, "\n5000 0.0002\n"));
    assert_non_null(strstr(text, "set logscale y\n"));
    free(text);
    y[2501] = (double)NAN; /* between two points that are drawn */
    text = script_of(&plot);
    assert_int_equal(lines_of(text, "$s0 <<"), DP_PLOT_POINTS_MAX + 1);
    free(text);
    series.points = 5;
    y[1] = (double)NAN;
    y[2] = HUGE_VAL;
    text = script_of(&plot);
    assert_non_null(strstr(text, "$s0 << END_OF_SERIES\n1 1\n\n4 0.25\n5 0.2\nEND_OF_SERIES\n"));
    assert_null(strstr(text, "set logscale y\n"));
    assert_null(strstr(text, "inf"));
    assert_null(strstr(text, "nan"));
    free(text);
}

/* A band has gaps of its own, and ends where a logarithmic axis does. */
static void bands_have_gaps(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3, 4}, y[] = {100, 10, 2, 1}, high[] = {110, 11, 3, 2};
    const double low[] = {90, (double)NAN, 1, -1};
    const struct dp_plot_series series = {.name = "n", .points = 4, .x = x, .y = y, .low = low, .high = high};
    const struct dp_plot plot = {
        .caption = "c", .x_label = "x", .y_label = "y", .series = &series, .count = 1};
    char *text = script_of(&plot);
    assert_non_null(strstr(text, "$b0 << END_OF_SERIES\n1 90 110\n\n3 1 3\n4 0.5 2\nEND_OF_SERIES\n"));
    assert_non_null(strstr(text, "$s0 << END_OF_SERIES\n1 100\n2 10\n3 2\n4 1\nEND_OF_SERIES\n"));
    assert_non_null(strstr(text, "set logscale y\n"));
    free(text);
}

/* In print without colours. */
static void series_have_marks_and_dashes(void **state)
{
    (void)state;
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
            assert_int_not_equal(one->mark, other->mark);
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
    const struct dp_plot plot = {.caption = "c",
                                 .x_label = "x",
                                 .y_label = "y",
                                 .series = series,
                                 .count = 2,
                                 .level = 5,
                                 .level_name = "target"};
    char *text = script_of(&plot);
    assert_non_null(strstr(text,
                           "$s0 using 1:2 with lines linewidth 2 linecolor rgb '#0072B2', $m0 using 1:2 "
                           "with points pointtype 7 "));
    assert_non_null(strstr(text,
                           "$s1 using 1:2 with lines linewidth 2 linecolor rgb '#D55E00' dashtype (9,4), $m1 "
                           "using 1:2 with points pointtype 5 "));
    assert_non_null(strstr(text, "$level << END_OF_SERIES\n1 5\n2 5\nEND_OF_SERIES\n"));
    free(text);
}

static void dots_have_intervals(void **state)
{
    (void)state;
    static const char *const categories[] = {"ssp:4", "100%"};
    static const double x[] = {0.5, 2}, low[] = {0.25, 1.5}, high[] = {1.25, 3}, y[] = {0, 1};
    const struct dp_plot_series series[] = {
        {.name = "ssp:4", .points = 1, .x = &x[0], .y = &y[0], .low = &low[0], .high = &high[0]},
        {.name = "100%", .points = 1, .x = &x[1], .y = &y[1], .low = &low[1], .high = &high[1]}};
    const struct dp_plot plot = {.kind = DP_PLOT_FOREST,
                                 .caption = "c",
                                 .x_label = "x",
                                 .x_log = true,
                                 .category = categories,
                                 .categories = 2,
                                 .series = series,
                                 .count = 2,
                                 .level = 1,
                                 .level_name = "no difference"};
    char *text = script_of(&plot);
    assert_non_null(strstr(text, "$s0 << END_OF_SERIES\n0.5 0 0.25 1.25\nEND_OF_SERIES\n"));
    assert_non_null(strstr(text, "set ytics ('ssp:4' 0, '100%%' 1)\n"));
    assert_non_null(strstr(text, "set logscale x\n"));
    assert_non_null(strstr(text, "set xtics (0.5, 1, 2)\n"));
    assert_non_null(strstr(text, "set arrow from first 1, graph 0 to first 1, graph 1 nohead "));
    free(text);
}

/* A scale can be read off two tics at least. */
static void a_logarithmic_axis_has_two_tics(void **state)
{
    (void)state;
    static const double x[] = {0.12, 8}, longer[] = {0.12, 12}, y[] = {1, 2};
    struct dp_plot_series series = {.name = "a", .points = 2, .x = x, .y = y};
    const struct dp_plot plot = {
        .caption = "c", .x_label = "x", .y_label = "y", .x_log = true, .series = &series, .count = 1};
    char *text = script_of(&plot);
    assert_non_null(strstr(text, "set xtics (0.2, 0.5, 1, 2, 5)\n"));
    free(text);
    series.x = longer;
    text = script_of(&plot);
    assert_non_null(strstr(text, "set xtics (1, 10)\n"));
    free(text);
}

static void bars_are_stacked(void **state)
{
    (void)state;
    static const char *const categories[] = {"0", "1"};
    static const double low[] = {30, 40}, high[] = {70, 60};
    static const struct dp_plot_series series[] = {{.name = "a", .points = 2, .y = low},
                                                   {.name = "b", .points = 2, .y = high}};
    struct dp_plot plot = {.kind = DP_PLOT_STACKED,
                           .caption = "c",
                           .x_label = "x",
                           .y_label = "y",
                           .category = categories,
                           .series = series,
                           .count = 2};
    char *text = script_of(&plot);
    assert_non_null(strstr(text, "0.000000 30 -0.400000 0.400000 30 100\n"));
    assert_non_null(strstr(text, "1.000000 40 0.600000 1.400000 40 100\n"));
    free(text);
    plot.kind = DP_PLOT_BARS; /* beside each other */
    text = script_of(&plot);
    assert_non_null(strstr(text, "0.200000 0 0.000000 0.400000 0 70\n"));
    assert_null(strstr(text, "yerrorbars"));
    free(text);
    static const double least[] = {20, 30}, most[] = {35, 45};
    const struct dp_plot_series with_error = {.name = "a", .points = 2, .y = low, .low = least, .high = most};
    plot.series = &with_error;
    plot.count = 1;
    text = script_of(&plot);
    assert_non_null(
        strstr(text, "$e0 << END_OF_SERIES\n0.000000 30 20 35\n1.000000 40 30 45\nEND_OF_SERIES\n"));
    assert_non_null(strstr(text, "$e0 using 1:2:3:4 with yerrorbars "));
    free(text);
}

/* Categories that are an order may lack names where there is no room; others stand aslant. */
static void names_of_bars_have_room(void **state)
{
    (void)state;
    static const char *const categories[] = {"one-half",   "two-half",    "four-half",
                                             "eight-half", "many-halves", "more"};
    static const double y[] = {1, 2, 3, 4, 5, 6};
    const struct dp_plot_series series = {.name = "n", .points = 6, .y = y};
    struct dp_plot plot = {.kind = DP_PLOT_BARS,
                           .caption = "c",
                           .x_label = "x",
                           .y_label = "y",
                           .ordered = true,
                           .category = categories,
                           .series = &series,
                           .count = 1};
    char *text = script_of(&plot);
    assert_null(strstr(text, "rotate"));
    assert_non_null(strstr(text, "('one-half' 0, 'four-half' 2, 'many-halves' 4)\n"));
    free(text);
    plot.ordered = false;
    text = script_of(&plot);
    assert_non_null(strstr(text, "rotate"));
    assert_non_null(strstr(text, "'two-half' 1, "));
    free(text);
}

/* What a program called gnuplot that does this makes of a plot. */
static enum dp_status draw_with(const char *does, uint32_t timeout_ms, struct dp_error *err)
{
    static const double x[] = {1, 2}, y[] = {3, 4};
    static const struct dp_plot_series series = {.name = "n", .points = 2, .x = x, .y = y};
    static const struct dp_plot plot = {
        .caption = "c", .x_label = "x", .y_label = "y", .series = &series, .count = 1};
    char *svg = NULL, path[4096];
    (void)unlink(program);
    if (does) {
        FILE *file = fopen(program, "we");
        assert_non_null(file);
        assert_true(fprintf(file, "#!/bin/sh\n%s\n", does) > 0);
        assert_int_equal(fclose(file), 0);
        assert_int_equal(chmod(program, 0755), 0);
    }
    (void)snprintf(path, sizeof path, "%s%s%s", place, does ? ":" : "", does ? usual_path : "");
    assert_int_equal(setenv("PATH", path, 1), 0);
    *err = (struct dp_error){0};
    enum dp_status st = dp_gnuplot_draw(&plot, timeout_ms, &svg, err);
    assert_true((st == DP_OK) == (svg != NULL));
    free(svg);
    assert_int_equal(setenv("PATH", usual_path, 1), 0);
    return st;
}

#define LONG_MS (30000u * DP_PATIENCE)

static void whatever_gnuplot_does(void **state)
{
    (void)state;
    struct dp_error err;
    assert_int_equal(draw_with(NULL, LONG_MS, &err), DP_NOT_FOUND);
    assert_string_equal(err.text, "gnuplot is not installed");
    assert_int_equal(draw_with("echo '   ' >&2; echo 'bad font' >&2; exit 3", LONG_MS, &err), DP_DATA);
    assert_string_equal(err.text, "gnuplot failed (exit code 3): bad font");
    assert_int_equal(draw_with("kill -SEGV $$", LONG_MS, &err), DP_DATA);
    assert_non_null(strstr(err.text, "signal 11"));
    assert_int_equal(draw_with("echo hello", LONG_MS, &err), DP_DATA);
    assert_int_equal(draw_with("exec cat", LONG_MS, &err), DP_DATA); /* its input is no drawing */
    assert_int_equal(draw_with("exec sleep 600", 200, &err), DP_TIMEOUT);
    assert_int_equal(draw_with("exec >&-; exec sleep 600", 200, &err), DP_TIMEOUT); /* its output has ended */
    assert_int_equal(draw_with("exec cat /dev/zero", LONG_MS, &err), DP_FULL);
    assert_int_equal(draw_with("echo \"<svg viewBox='0 0 1 1'></svg>\"", LONG_MS, &err), DP_OK);
}

/* Each kind; with a band, with texts that would be commands, with one point, with equal values. */
static void the_real_one_draws(void **state)
{
    (void)state;
    static const double x[] = {1, 2, 3}, y[] = {3, 4, 4.5}, same[] = {2, 2, 2}, rows[] = {0, 1, 2},
                        low[] = {2, 3, 4}, high[] = {4, 5, 6};
    static const char *const categories[] = {"10%", "`x`", "it's <b>"};
    struct dp_plot_series series = {.name = "a", .points = 3, .x = x, .y = y, .low = low, .high = high};
    struct dp_plot plot = {.caption = "a <c>",
                           .x_label = "`touch x` $y {z}_1",
                           .y_label = "it's 100%",
                           .category = categories,
                           .series = &series,
                           .count = 1};
    struct dp_error err = {0};
    for (int i = 0; i < 7; i++) {
        char *svg = NULL;
        plot.kind = i < 4 ? DP_PLOT_LINES : i == 4 ? DP_PLOT_BARS : i == 5 ? DP_PLOT_STACKED : DP_PLOT_FOREST;
        plot.categories = 3;
        series.points = i == 3 ? 1 : 3;
        series.y = i == 2 ? same : i == 6 ? rows : y;
        series.low = i == 0 ? low : NULL;
        enum dp_status st = dp_gnuplot_draw(&plot, LONG_MS, &svg, &err);
        if (st == DP_NOT_FOUND) {
            print_message("skipped: gnuplot is not installed\n");
            skip();
        }
        if (st != DP_OK)
            print_message("plot %d: %s\n", i, err.text);
        assert_int_equal(st, DP_OK);
        assert_non_null(strstr(svg, ">`touch x` $y {z}_1</text>"));
        assert_non_null(strstr(svg, ">it's 100%</text>"));
        assert_non_null(strstr(svg, "#0072b2"));
        assert_true((strstr(svg, "fill-opacity=\"0.2") != NULL) == (i == 0));
        assert_true(i < 4 || strstr(svg, ">it's &lt;b&gt;</text>"));
        assert_true(i < 4 || strstr(svg, ">10%</text>"));
        assert_true(!strstr(svg, "http") && !strstr(svg, "href") && !strstr(svg, " id="));
        free(svg);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(texts_are_quoted),      cmocka_unit_test(points_are_chosen_and_gaps_left_out),
        cmocka_unit_test(bands_have_gaps),       cmocka_unit_test(series_have_marks_and_dashes),
        cmocka_unit_test(dots_have_intervals),   cmocka_unit_test(a_logarithmic_axis_has_two_tics),
        cmocka_unit_test(bars_are_stacked),      cmocka_unit_test(names_of_bars_have_room),
        cmocka_unit_test(whatever_gnuplot_does), cmocka_unit_test(the_real_one_draws)};
    return cmocka_run_group_tests_name("plot", tests, make_place, remove_place);
}
