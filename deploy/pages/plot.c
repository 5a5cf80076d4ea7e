#include "deploy/pages/plot.h"

#include "deploy/pages/plot_axes.h"
#include "deploy/pages/svg.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#define WIDTH     520
#define HEIGHT    300
#define FONT      16
#define BAR_SHARE 0.8 /* of the room of a category */

static void put_head(const struct dp_plot *plot, FILE *to)
{
    fprintf(to,
            "set encoding utf8\n"
            "set terminal svg size %d,%d font 'sans-serif,%d' noenhanced\n"
            "set border 3 linecolor rgb '" DP_SVG_INK "'\n"
            "set tics nomirror out scale 0.5 textcolor rgb '" DP_SVG_INK "'\n"
            "set grid ytics linetype 1 linewidth 1 linecolor rgb '" DP_SVG_GRID "'\n"
            "unset key\nunset mxtics\nunset mytics\n"
            "set xtics offset 0,0.4\n"
            "set xlabel ",
            WIDTH, HEIGHT, FONT);
    dp_plot_quote(to, plot->x_label);
    fputs(" offset 0,0.6 textcolor rgb '" DP_SVG_INK "'\n", to);
    if (plot->y_label) {
        fputs("set ylabel ", to);
        dp_plot_quote(to, plot->y_label);
        fputs(" textcolor rgb '" DP_SVG_INK "'\n", to);
    }
    if (plot->y_from_0 || plot->kind == DP_PLOT_BARS || plot->kind == DP_PLOT_STACKED)
        fputs("set yrange [0:*]\n", to);
}

/* ---- lines */

static size_t drawn(const struct dp_plot_series *s)
{
    return s->points < DP_PLOT_POINTS_MAX ? s->points : DP_PLOT_POINTS_MAX;
}

/* The k-th of the points that are drawn. */
static size_t point_of(const struct dp_plot_series *s, size_t k)
{
    return drawn(s) > 1 ? k * (s->points - 1) / (drawn(s) - 1) : 0;
}

static bool is_there(const struct dp_plot_series *s, size_t i, bool band)
{
    return isfinite(s->x[i]) && isfinite(s->y[i]) && (!band || (isfinite(s->low[i]) && isfinite(s->high[i])));
}

static bool is_drawn(const struct dp_plot_series *s, bool band)
{
    bool any = false;
    for (size_t i = 0; (!band || (s->low && s->high)) && i < s->points; i++)
        any |= is_there(s, i, band);
    return any;
}

/* An empty line ends a line or band, and the next one begins another. low: where a band ends that would reach below. */
static void put_points(const struct dp_plot_series *s, bool band, double low, FILE *to)
{
    bool broken = false, any = false;
    for (size_t k = 0, from = 0; k < drawn(s); k++) {
        size_t i = point_of(s, k);
        for (; from <= i; from++)
            broken |= !is_there(s, from, band);
        if (!is_there(s, i, band))
            continue;
        if (broken && any)
            fputc('\n', to);
        broken = false;
        any = true;
        if (band)
            fprintf(to, "%.10g %.10g %.10g\n", s->x[i], fmax(s->low[i], low), fmax(s->high[i], low));
        else
            fprintf(to, "%.10g %.10g\n", s->x[i], s->y[i]);
    }
}

/* Each point where there are few; else some, which stand elsewhere in each series. */
static void put_marks(const struct dp_plot *plot, size_t n, FILE *to)
{
    const struct dp_plot_series *s = &plot->series[n];
    size_t each = s->points <= DP_PLOT_MARKED_EACH ? 1 : drawn(s) / DP_PLOT_MARKS;
    for (size_t k = each * (2 * n + 1) / (2 * plot->count); k < drawn(s); k += each) {
        size_t i = point_of(s, k);
        if (is_there(s, i, false))
            fprintf(to, "%.10g %.10g\n", s->x[i], s->y[i]);
    }
}

static void put_style(const struct dp_plot_series *s, FILE *to)
{
    const struct dp_colour_look *look = dp_colour_look(s->colour);
    fprintf(to, "linewidth 2 linecolor rgb '#%06X'", (unsigned)look->rgb);
    if (look->dash[0])
        fprintf(to, " dashtype (%s)", look->dash);
}

static void put_mark_style(const struct dp_plot_series *s, FILE *to)
{
    static const int type[DP_MARKS] = {
        [DP_MARK_DISC] = 7,  [DP_MARK_SQUARE] = 5, [DP_MARK_TRIANGLE] = 9, [DP_MARK_DIAMOND] = 13,
        [DP_MARK_DOWN] = 11, [DP_MARK_RING] = 6,   [DP_MARK_BOX] = 4,      [DP_MARK_CROSS] = 2};
    const struct dp_colour_look *look = dp_colour_look(s->colour);
    fprintf(to, "pointtype %d pointsize 0.7 linecolor rgb '#%06X'", type[look->mark], (unsigned)look->rgb);
}

static void put_line_data(const struct dp_plot *plot, FILE *to)
{
    const struct dp_plot_range x = dp_plot_range_x(plot);
    double low = dp_plot_is_log(plot) ? dp_plot_range_y(plot).low : -HUGE_VAL;
    for (size_t n = 0; n < plot->count; n++) {
        fprintf(to, "$s%zu << END_OF_SERIES\n", n);
        put_points(&plot->series[n], false, low, to);
        fprintf(to, "END_OF_SERIES\n$m%zu << END_OF_SERIES\n", n);
        put_marks(plot, n, to);
        fputs("END_OF_SERIES\n", to);
        if (!is_drawn(&plot->series[n], true))
            continue;
        fprintf(to, "$b%zu << END_OF_SERIES\n", n);
        put_points(&plot->series[n], true, low, to);
        fputs("END_OF_SERIES\n", to);
    }
    if (plot->level_name)
        fprintf(to, "$level << END_OF_SERIES\n%.10g %.10g\n%.10g %.10g\nEND_OF_SERIES\n",
                plot->x_from_0 && x.low > 0 ? 0 : x.low, plot->level, x.high, plot->level);
}

static void put_lines(const struct dp_plot *plot, FILE *to)
{
    const char *before = "plot ";
    put_line_data(plot, to);
    dp_plot_axes_lines(plot, to);
    for (size_t n = 0; n < plot->count; n++) { /* bands below all lines */
        if (!is_drawn(&plot->series[n], true))
            continue;
        fprintf(
            to,
            "%s$b%zu using 1:2:3 with filledcurves fillstyle transparent solid 0.2 noborder linecolor rgb "
            "'#%06X'",
            before, n, (unsigned)dp_colour_look(plot->series[n].colour)->rgb);
        before = ", ";
    }
    if (plot->level_name) {
        fprintf(to, "%s$level with lines linewidth 1.5 dashtype (3,3) linecolor rgb '" DP_SVG_INK "'",
                before);
        before = ", ";
    }
    for (size_t n = 0; n < plot->count; n++) {
        if (!is_drawn(&plot->series[n], false))
            continue;
        fprintf(to, "%s$s%zu using 1:2 with lines ", before, n);
        put_style(&plot->series[n], to);
        fprintf(to, ", $m%zu using 1:2 with points ", n);
        put_mark_style(&plot->series[n], to);
        before = ", ";
    }
    fputc('\n', to);
}

/* ---- bars */

static double bar_width(const struct dp_plot *plot)
{
    return BAR_SHARE / (double)(plot->kind == DP_PLOT_STACKED || plot->count == 0 ? 1 : plot->count);
}

/* Of series n at category i. */
static double bar_from(const struct dp_plot *plot, size_t n, size_t i)
{
    return (double)i - BAR_SHARE / 2 + (plot->kind == DP_PLOT_STACKED ? 0 : bar_width(plot) * (double)n);
}

/* Each bar as a box: from, to, bottom, top. */
static void put_boxes(const struct dp_plot *plot, size_t n, FILE *to)
{
    const struct dp_plot_series *s = &plot->series[n];
    double width = bar_width(plot);
    for (size_t i = 0; i < s->points; i++) {
        double from = bar_from(plot, n, i), bottom = 0;
        for (size_t b = 0; plot->kind == DP_PLOT_STACKED && b < n; b++)
            bottom += isfinite(plot->series[b].y[i]) ? plot->series[b].y[i] : 0;
        if (isfinite(s->y[i]))
            fprintf(to, "%.6f %.10g %.6f %.6f %.10g %.10g\n", from + width / 2, bottom, from, from + width,
                    bottom, bottom + s->y[i]);
    }
}

static bool put_errors(const struct dp_plot *plot, size_t n, FILE *to)
{
    const struct dp_plot_series *s = &plot->series[n];
    bool any = false;
    for (size_t i = 0; s->low && s->high && i < s->points; i++) {
        if (!isfinite(s->y[i]) || !isfinite(s->low[i]) || !isfinite(s->high[i]))
            continue;
        if (!any)
            fprintf(to, "$e%zu << END_OF_SERIES\n", n);
        fprintf(to, "%.6f %.10g %.10g %.10g\n", bar_from(plot, n, i) + bar_width(plot) / 2, s->y[i],
                s->low[i], s->high[i]);
        any = true;
    }
    fputs(any ? "END_OF_SERIES\n" : "", to);
    return any;
}

static void put_bars(const struct dp_plot *plot, FILE *to)
{
    bool *errors = calloc(plot->count + 1, sizeof *errors);
    for (size_t n = 0; n < plot->count; n++) {
        fprintf(to, "$s%zu << END_OF_SERIES\n", n);
        put_boxes(plot, n, to);
        fputs("END_OF_SERIES\n", to);
        if (errors)
            errors[n] = put_errors(plot, n, to);
    }
    dp_plot_axes_bars(plot, to);
    for (size_t n = 0; n < plot->count; n++)
        fprintf(to, "%s$s%zu using 1:2:3:4:5:6 with boxxyerror linecolor rgb '#%06X'", n ? ", " : "plot ", n,
                (unsigned)dp_colour_look(plot->series[n].colour)->rgb);
    for (size_t n = 0; n < plot->count; n++)
        if (errors && errors[n])
            fprintf(
                to,
                ", $e%zu using 1:2:3:4 with yerrorbars pointtype 7 pointsize 0 linewidth 1.5 linecolor rgb "
                "'" DP_SVG_INK "'",
                n);
    fputc('\n', to);
    free(errors);
}

/* ---- forests */

static void put_forest(const struct dp_plot *plot, FILE *to)
{
    const char *before = "plot ";
    for (size_t n = 0; n < plot->count; n++) {
        const struct dp_plot_series *s = &plot->series[n];
        fprintf(to, "$s%zu << END_OF_SERIES\n", n);
        for (size_t i = 0; i < s->points; i++) {
            bool has = s->low && s->high && isfinite(s->low[i]) && isfinite(s->high[i]);
            if (isfinite(s->x[i]))
                fprintf(to, "%.10g %.10g %.10g %.10g\n", s->x[i], s->y[i], has ? s->low[i] : s->x[i],
                        has ? s->high[i] : s->x[i]);
        }
        fputs("END_OF_SERIES\n", to);
    }
    dp_plot_axes_forest(plot, to);
    if (plot->level_name)
        fprintf(to,
                "set arrow from first %.10g, graph 0 to first %.10g, graph 1 nohead linewidth 1.5 dashtype "
                "(3,3) linecolor rgb '" DP_SVG_INK "'\n",
                plot->level, plot->level);
    for (size_t n = 0; n < plot->count; n++) {
        fprintf(to, "%s$s%zu using 1:2:3:4 with xerrorbars linewidth 2 ", before, n);
        put_mark_style(&plot->series[n], to);
        before = ", ";
    }
    fputc('\n', to);
}

void dp_plot_script(const struct dp_plot *plot, FILE *to)
{
    put_head(plot, to);
    if (plot->kind == DP_PLOT_LINES)
        put_lines(plot, to);
    else if (plot->kind == DP_PLOT_FOREST)
        put_forest(plot, to);
    else
        put_bars(plot, to);
}
