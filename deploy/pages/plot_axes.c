#include "deploy/pages/plot_axes.h"

#include "deploy/pages/svg.h"

#include <math.h>

#define NAMES_FONT  14
#define NAMES_WIDE  390.0 /* of all bars together, about */
#define LETTER      9.0
#define NAME_GAP    7.0
#define BARS_LEAST  5u /* so wide is the room of a bar at most: a share of the plot */
#define LOG_FROM    30.0
#define X_TICS      8.0
#define Y_TICS      5.0
#define X_DECADES   1.5 /* of a logarithmic scale: of more, each has one tic, if two are seen */
#define Y_DECADES   3.0
#define ASLANT      0.6 /* of a name's length, how far down it reaches */
#define LINE        20.0
#define LINES_LEAST 5.0
#define LINES_MOST  7.0
#define NAMES_LONG  130.0 /* of a forest: they leave little room for tics */
#define FOREST_PAD  0.06

/* ---- texts */

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

void dp_plot_quote_tic(FILE *to, const char *text)
{
    put_quoted(to, text, '%');
}

/* ---- ranges */

static void widen(struct dp_plot_range *range, double value)
{
    if (!isfinite(value))
        return;
    range->low = fmin(range->low, value);
    range->high = fmax(range->high, value);
}

struct dp_plot_range dp_plot_range_x(const struct dp_plot *plot)
{
    struct dp_plot_range range = {HUGE_VAL, -HUGE_VAL};
    for (size_t s = 0; s < plot->count; s++)
        for (size_t i = 0; i < plot->series[s].points; i++) {
            const struct dp_plot_series *one = &plot->series[s];
            if (isfinite(one->y[i]))
                widen(&range, one->x[i]);
            if (plot->kind == DP_PLOT_FOREST && one->low && one->high) {
                widen(&range, one->low[i]);
                widen(&range, one->high[i]);
            }
        }
    if (plot->kind == DP_PLOT_FOREST && plot->level_name)
        widen(&range, plot->level);
    return range;
}

static struct dp_plot_range values_of(const struct dp_plot *plot, bool bands)
{
    struct dp_plot_range range = {HUGE_VAL, -HUGE_VAL};
    for (size_t s = 0; s < plot->count; s++)
        for (size_t i = 0; i < plot->series[s].points; i++) {
            const struct dp_plot_series *one = &plot->series[s];
            widen(&range, one->y[i]);
            if (bands && one->low && one->high) {
                widen(&range, one->low[i]);
                widen(&range, one->high[i]);
            }
        }
    if (plot->level_name)
        widen(&range, plot->level);
    return range;
}

bool dp_plot_is_log(const struct dp_plot *plot)
{
    const struct dp_plot_range y = values_of(plot, false);
    return plot->kind == DP_PLOT_LINES && !plot->y_from_0 && y.low > 0 &&
           (plot->y_log || y.high >= LOG_FROM * y.low);
}

struct dp_plot_range dp_plot_range_y(const struct dp_plot *plot)
{
    struct dp_plot_range all = values_of(plot, true);
    if (dp_plot_is_log(plot))
        all.low = fmax(all.low, values_of(plot, false).low / 2);
    return all;
}

/* ---- tics */

double dp_plot_step(double range, double most)
{
    double least = range / most, power = pow(10, floor(log10(least)));
    double times = least / power;
    return power * (times <= 1.0001   ? 1
                    : times <= 2.0001 ? 2
                    : times <= 5.0001 ? 5
                                      : 10); /* sums are rounded */
}

/* 1, 2 and 5 times the powers of ten of a range; of many decades the powers alone; of less than one tic of these, steps. */
static void put_log_tics(char axis, struct dp_plot_range range, FILE *to)
{
    static const double of_decade[] = {1, 2, 5};
    double decades = log10(range.high / range.low), every = decades > 6 ? ceil(decades / 6) : 1;
    double powers = floor(log10(range.high)) - ceil(log10(range.low)) + 1;
    size_t tics = powers >= 2 && decades > (axis == 'x' ? X_DECADES : Y_DECADES) ? 1 : 3;
    double step = dp_plot_step(range.high - range.low, Y_TICS);
    const char *before = "";
    fprintf(to, "set logscale %c\nset format %c '%%g'\nset %ctics (", axis, axis, axis);
    if (range.high < 4 * range.low)
        for (double at = ceil(range.low / step) * step; at <= range.high * 1.0001; at += step) {
            fprintf(to, "%s%.10g", before, at);
            before = ", ";
        }
    for (double power = floor(log10(range.low)); range.high >= 4 * range.low && power <= log10(range.high);
         power += every)
        for (size_t i = 0; i < tics; i++) {
            double at = of_decade[i] * pow(10, power);
            if (at < range.low / 1.0001 || at > range.high * 1.0001)
                continue;
            fprintf(to, "%s%.10g", before, at);
            before = ", ";
        }
    fputs(")\n", to);
}

/* ---- lines */

static void put_x_axis(const struct dp_plot *plot, FILE *to)
{
    const struct dp_plot_range x = dp_plot_range_x(plot);
    double from = plot->x_from_0 && x.low > 0 ? 0 : x.low;
    double pad = x.high > from ? 0 : fmax(fabs(x.high) * 0.5, 0.5);
    if (plot->x_log && x.low > 0 && x.high > x.low) {
        fprintf(to, "set xrange [%.10g:%.10g]\n", x.low, x.high);
        put_log_tics('x', x, to);
        return;
    }
    fprintf(to, "set xrange [%.10g:%.10g]\n", from - pad, x.high + pad);
    if (x.high > from) {
        double step = dp_plot_step(x.high - from, X_TICS);
        fprintf(to, "set xtics %.10g\n", plot->x_whole && step < 1 ? 1 : step);
        if (step >= 1000) /* "50k": longer ones lie over each other */
            fputs("set format x '%.0s%c'\n", to);
    }
}

void dp_plot_axes_lines(const struct dp_plot *plot, FILE *to)
{
    const struct dp_plot_range y = dp_plot_range_y(plot);
    double bottom = plot->y_from_0 ? 0 : y.low;
    put_x_axis(plot, to);
    if (dp_plot_is_log(plot) && y.high > y.low) {
        fprintf(to, "set yrange [%.10g:%.10g]\n", y.low / 1.05, y.high * 1.05);
        put_log_tics('y', (struct dp_plot_range){y.low / 1.05, y.high * 1.05}, to);
    } else if (y.high > bottom)
        fprintf(to, "set ytics %.10g\n", dp_plot_step(y.high - bottom, Y_TICS));
    else /* gnuplot warns of an empty range */
        fprintf(to, "set yrange [%.10g:%.10g]\n", y.low - fmax(fabs(y.low) * 0.1, 0.01),
                y.high + fmax(fabs(y.high) * 0.1, 0.01));
}

/* ---- bars */

/* 1 where there is nothing to see. */
static double top_of_bars(const struct dp_plot *plot)
{
    double top = 0;
    for (size_t i = 0; plot->count && i < plot->series[0].points; i++) {
        double sum = 0;
        for (size_t n = 0; n < plot->count; n++) {
            const struct dp_plot_series *s = &plot->series[n];
            double y = isfinite(s->y[i]) ? s->y[i] : 0;
            sum = plot->kind == DP_PLOT_STACKED ? sum + y : fmax(sum, y);
            if (s->high && isfinite(s->high[i]))
                top = fmax(top, s->high[i]);
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

static double longest(const struct dp_plot *plot, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, room_of(plot->category[i]));
    return most;
}

/* The names of bars stand aslant where they have no room beside each other; of those that are an order some are left out instead. */
void dp_plot_axes_bars(const struct dp_plot *plot, FILE *to)
{
    size_t count = plot->count ? plot->series[0].points : 0;
    double beside = 0.6 + (count < BARS_LEAST ? (double)(BARS_LEAST - count) / 2 : 0);
    double bar = NAMES_WIDE / ((double)count - 1 + 2 * beside);
    size_t each = 1;
    while (!have_room(plot, count, bar, each))
        each++;
    if (each > 1 && !plot->ordered) {
        double lines = fmin(fmax(ceil(longest(plot, count) * ASLANT / LINE), LINES_LEAST), LINES_MOST);
        fprintf(to,
                "set bmargin %g\nset rmargin 2\nset xlabel offset 0,%g\nset xtics rotate by 40 right offset "
                "0.8,0.2\n",
                lines, -0.7 - (lines - LINES_LEAST));
        each = 1;
    }
    fprintf(to, "set xtics font ',%d' (", NAMES_FONT);
    for (size_t i = 0; i < count; i += each) {
        fputs(i ? ", " : "", to);
        dp_plot_quote_tic(to, plot->category[i]);
        fprintf(to, " %zu", i);
    }
    fprintf(to, ")\nset xrange [%.1f:%.1f]\n", -beside, (double)count - 1 + beside);
    fprintf(to, "set ytics %.10g\nset style fill solid 1.0 noborder\n",
            dp_plot_step(top_of_bars(plot), Y_TICS));
}

/* ---- forests */

void dp_plot_axes_forest(const struct dp_plot *plot, FILE *to)
{
    struct dp_plot_range x = dp_plot_range_x(plot);
    bool is_log = plot->x_log && x.low > 0;
    double pad = x.high > x.low ? FOREST_PAD * (x.high - x.low) : fmax(fabs(x.high) * 0.5, 0.5);
    if (is_log) {
        double times = x.high > x.low ? pow(x.high / x.low, FOREST_PAD) : 2;
        x = (struct dp_plot_range){x.low / times, x.high * times};
        put_log_tics('x', x, to);
    } else {
        x = (struct dp_plot_range){x.low - pad, x.high + pad};
        fprintf(to, "set xtics %.10g\n",
                dp_plot_step(x.high - x.low, longest(plot, plot->categories) > NAMES_LONG ? 3 : Y_TICS));
    }
    fprintf(to, "set xrange [%.10g:%.10g]\nset yrange [%.1f:-0.5]\nset ytics (", x.low, x.high,
            (double)plot->categories - 0.5);
    for (size_t i = 0; i < plot->categories; i++) {
        fputs(i ? ", " : "", to);
        dp_plot_quote_tic(to, plot->category[i]);
        fprintf(to, " %zu", i);
    }
    fputs(")\nset border 1\nset ytics scale 0.01\nunset grid\n"
          "set grid xtics linetype 1 linewidth 1 linecolor rgb '" DP_SVG_GRID "'\n",
          to);
}
