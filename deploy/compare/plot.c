#include "deploy/compare/plot.h"

#include "deploy/compare/svg.h"

#include <math.h>
#include <string.h>

#define WIDTH      520
#define HEIGHT     300
#define FONT       16
#define BAR_SHARE  0.8   /* of the room of a category */
#define NAMES_WIDE 390.0 /* of all bars together, about */
#define LETTER     9.0
#define NAME_GAP   7.0
#define BARS_LEAST 5u /* so wide is the room of a bar at most: a share of the plot */
#define LOG_FROM   30.0
#define X_TICS     8.0
#define Y_TICS     5.0

/* twice: a character that has a meaning unless it stands there twice, besides the quote itself. */
static void put_quoted(FILE *to, const char *text, char twice)
{
    fputc('\'', to);
    for (const char *c = text; *c; c++) {
        if (*c == '\'' || *c == twice)
            fputc(*c, to);
        fputc((unsigned char)*c < ' ' || *c == 0x7f ? '?' : *c, to);
    }
    fputc('\'', to);
}

void dp_plot_quote(FILE *to, const char *text)
{
    put_quoted(to, text, '\0');
}

struct plot_range {
    double low, high;
};

static void widen(struct plot_range *range, double value)
{
    if (!isfinite(value))
        return;
    range->low = fmin(range->low, value);
    range->high = fmax(range->high, value);
}

/* low > high: nothing is finite. */
static struct plot_range range_of_x(const struct dp_plot *plot)
{
    struct plot_range range = {HUGE_VAL, -HUGE_VAL};
    for (size_t s = 0; s < plot->count; s++)
        for (size_t i = 0; i < plot->series[s].points; i++)
            if (isfinite(plot->series[s].y[i]))
                widen(&range, plot->series[s].x[i]);
    return range;
}

static struct plot_range range_of_y(const struct dp_plot *plot)
{
    struct plot_range range = {HUGE_VAL, -HUGE_VAL};
    for (size_t s = 0; s < plot->count; s++)
        for (size_t i = 0; i < plot->series[s].points; i++) {
            const struct dp_plot_series *one = &plot->series[s];
            widen(&range, one->y[i]);
            if (one->low && one->high) {
                widen(&range, one->low[i]);
                widen(&range, one->high[i]);
            }
        }
    return range;
}

bool dp_plot_is_log(const struct dp_plot *plot)
{
    const struct plot_range y = range_of_y(plot);
    return plot->kind == DP_PLOT_LINES && !plot->y_from_0 && y.low > 0 && y.high >= LOG_FROM * y.low;
}

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
    fputs(" offset 0,0.6 textcolor rgb '" DP_SVG_INK "'\nset ylabel ", to);
    dp_plot_quote(to, plot->y_label);
    fputs(" textcolor rgb '" DP_SVG_INK "'\n", to);
    if (plot->y_from_0 || plot->kind != DP_PLOT_LINES)
        fputs("set yrange [0:*]\n", to);
}

/* ---- lines */

static void put_point(const struct dp_plot_series *s, size_t i, FILE *to)
{
    if (!isfinite(s->x[i]) || !isfinite(s->y[i]))
        return;
    fprintf(to, "%.10g %.10g", s->x[i], s->y[i]);
    if (s->low && s->high)
        fprintf(to, " %.10g %.10g", s->low[i], s->high[i]);
    fputc('\n', to);
}

/* 1, 2 or 5 times a power of ten: so that there are at most so many tics. */
static double step_of(double range, double most)
{
    double least = range / most, power = pow(10, floor(log10(least)));
    double times = least / power;
    return power * (times <= 1.0001   ? 1
                    : times <= 2.0001 ? 2
                    : times <= 5.0001 ? 5
                                      : 10); /* sums are rounded */
}

static void put_axes(const struct dp_plot *plot, FILE *to)
{
    const struct plot_range x = range_of_x(plot), y = range_of_y(plot);
    double from = plot->x_from_0 && x.low > 0 ? 0 : x.low,
           pad = x.high > from ? 0 : fmax(fabs(x.high) * 0.5, 0.5);
    double bottom = plot->y_from_0 ? 0 : y.low;
    fprintf(to, "set xrange [%.10g:%.10g]\n", from - pad, x.high + pad);
    if (x.high > from) {
        double step = step_of(x.high - from, X_TICS);
        fprintf(to, "set xtics %.10g\n", plot->x_whole && step < 1 ? 1 : step);
        if (step >= 1000) /* "50k": longer ones lie over each other */
            fputs("set format x '%.0s%c'\n", to);
    }
    if (dp_plot_is_log(plot))
        fputs("set logscale y\nset format y '%g'\n", to);
    else if (y.high > bottom)
        fprintf(to, "set ytics %.10g\n", step_of(y.high - bottom, Y_TICS));
    else /* gnuplot warns of an empty range */
        fprintf(to, "set yrange [%.10g:%.10g]\n", y.low - fmax(fabs(y.low) * 0.1, 0.01),
                y.high + fmax(fabs(y.high) * 0.1, 0.01));
}

static bool is_drawn(const struct dp_plot_series *s)
{
    for (size_t i = 0; i < s->points; i++)
        if (isfinite(s->x[i]) && isfinite(s->y[i]))
            return true;
    return false;
}

static void put_lines(const struct dp_plot *plot, FILE *to)
{
    const char *before = "plot ";
    for (size_t n = 0; n < plot->count; n++) {
        const struct dp_plot_series *s = &plot->series[n];
        size_t most = DP_PLOT_POINTS_MAX - 1, steps = s->points > most ? most : s->points ? s->points - 1 : 0;
        fprintf(to, "$s%zu << END_OF_SERIES\n", n);
        for (size_t k = 0; s->points > 0 && k <= steps; k++)
            put_point(s, steps ? k * (s->points - 1) / steps : 0, to);
        fputs("END_OF_SERIES\n", to);
    }
    put_axes(plot, to);
    for (size_t n = 0; n < plot->count; n++) { /* bands below all lines */
        if (!plot->series[n].low || !plot->series[n].high || !is_drawn(&plot->series[n]))
            continue;
        fprintf(
            to,
            "%s$s%zu using 1:3:4 with filledcurves fillstyle transparent solid 0.2 noborder linecolor rgb "
            "'#%06X'",
            before, n, (unsigned)dp_colour_rgb(plot->series[n].colour));
        before = ", ";
    }
    for (size_t n = 0; n < plot->count; n++) {
        if (!is_drawn(&plot->series[n]))
            continue;
        /* Each point shows where there are few. */
        fprintf(to, "%s$s%zu using 1:2 with %s linewidth 2 linecolor rgb '#%06X'", before, n,
                plot->series[n].points <= 40 ? "linespoints pointtype 7 pointsize 0.5" : "lines",
                (unsigned)dp_colour_rgb(plot->series[n].colour));
        before = ", ";
    }
    fputc('\n', to);
}

/* ---- bars */

/* 1 where there is nothing to see. */
static double top_of_bars(const struct dp_plot *plot)
{
    double top = 0;
    for (size_t i = 0; plot->count && i < plot->series[0].points; i++) {
        double sum = 0;
        for (size_t n = 0; n < plot->count; n++) {
            double y = isfinite(plot->series[n].y[i]) ? plot->series[n].y[i] : 0;
            sum = plot->kind == DP_PLOT_STACKED ? sum + y : fmax(sum, y);
        }
        top = fmax(top, sum);
    }
    return top > 0 ? top : 1;
}

/* Of a name, about, with a space behind it. */
static double room_of(const char *name)
{
    double room = NAME_GAP;
    for (const char *c = name; *c; c++)
        room += (*c & 0xc0) == 0x80 ? 0 : *c == '+' ? LETTER + 3 : LETTER;
    return room;
}

/* Whether, of each so many bars one with its name, no name lies over the next. */
static bool have_room(const struct dp_plot *plot, size_t count, double bar, size_t each)
{
    for (size_t i = 0; i + each < count; i += each)
        if ((room_of(plot->category[i]) + room_of(plot->category[i + each])) / 2 > bar * (double)each)
            return false;
    return true;
}

/* The names of bars stand aslant where they have no room beside each other; of those that are an order some are left out instead. */
static void put_categories(const struct dp_plot *plot, FILE *to)
{
    size_t count = plot->count ? plot->series[0].points : 0;
    double beside = 0.6 + (count < BARS_LEAST ? (double)(BARS_LEAST - count) / 2 : 0);
    double bar = NAMES_WIDE / ((double)count - 1 + 2 * beside);
    size_t each = 1;
    while (!have_room(plot, count, bar, each))
        each++;
    if (each > 1 && !plot->ordered) {
        fputs("set bmargin 5\nset xlabel offset 0,-0.7\nset xtics rotate by 40 right offset 0.8,0.2\n", to);
        each = 1;
    }
    fprintf(to, "set xtics font ',%d' (", FONT - 2);
    for (size_t i = 0; i < count; i += each) {
        fputs(i ? ", " : "", to);
        put_quoted(to, plot->category[i], '%'); /* labels of tics are formats */
        fprintf(to, " %zu", i);
    }
    fprintf(to, ")\nset xrange [%.1f:%.1f]\n", -beside, (double)count - 1 + beside);
    fprintf(to, "set ytics %.10g\nset style fill solid 1.0 noborder\n", step_of(top_of_bars(plot), Y_TICS));
}

/* Each bar as a box: from, to, bottom, top. */
static void put_bars(const struct dp_plot *plot, FILE *to)
{
    bool stacked = plot->kind == DP_PLOT_STACKED;
    double width = BAR_SHARE / (double)(stacked || plot->count == 0 ? 1 : plot->count);
    for (size_t n = 0; n < plot->count; n++) {
        const struct dp_plot_series *s = &plot->series[n];
        fprintf(to, "$s%zu << END_OF_SERIES\n", n);
        for (size_t i = 0; i < s->points; i++) {
            double from = (double)i - BAR_SHARE / 2 + (stacked ? 0 : width * (double)n), bottom = 0;
            for (size_t b = 0; stacked && b < n; b++)
                bottom += isfinite(plot->series[b].y[i]) ? plot->series[b].y[i] : 0;
            if (isfinite(s->y[i]))
                fprintf(to, "%.6f %.10g %.6f %.6f %.10g %.10g\n", from + width / 2, bottom, from,
                        from + width, bottom, bottom + s->y[i]);
        }
        fputs("END_OF_SERIES\n", to);
    }
    put_categories(plot, to);
    for (size_t n = 0; n < plot->count; n++)
        fprintf(to, "%s$s%zu using 1:2:3:4:5:6 with boxxyerror linecolor rgb '#%06X'", n ? ", " : "plot ", n,
                (unsigned)dp_colour_rgb(plot->series[n].colour));
    fputc('\n', to);
}

void dp_plot_script(const struct dp_plot *plot, FILE *to)
{
    put_head(plot, to);
    if (plot->kind == DP_PLOT_LINES)
        put_lines(plot, to);
    else
        put_bars(plot, to);
}
