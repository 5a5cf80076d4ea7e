#include "deploy/pages/plot.h"

#include "deploy/pages/page.h"

#include <math.h>

#define LETTER      8.5 /* its width, about */
#define NAME_GAP    7.0
#define TIC         5.0
#define TO_NAME     8.0 /* from an axis */
#define LINE        22.0
#define TOP         12.0
#define RIGHT       18.0
#define NAMES_MOST  300.0 /* of a forest */
#define ASLANT      0.65  /* of a name's length, how far down it reaches */
#define ASLANT_MOST 160.0
#define BARS_LEAST  5u /* so wide is the room of a bar at most: a share of the plot */
#define LOG_FROM    30.0
#define X_TICS      8.0
#define Y_TICS      5.0
#define X_DECADES   1.5 /* of a logarithmic scale: of more, each has one tic, if two are seen */
#define Y_DECADES   3.0
#define NAMES_LONG  130.0 /* of a forest: they leave little room for tics */
#define FOREST_PAD  0.06
#define BAR_SHARE   0.8 /* of the room of a category */
#define CAP         4.0 /* half of the line across the end of an interval */
#define TICS_MAX    80u
#define VALUE_MAX   1e100
#define APART_LEAST 1e-12 /* of two values, as a share */

struct axis {
    double low, high; /* values at its ends; they may descend */
    double from, to;  /* units of the drawing, there */
    bool is_log;
    bool aslant; /* its names have no room next to each other */
    size_t tics;
    struct {
        double at;
        char name[96];
    } tic[TICS_MAX];
};

/* ---- ranges */

/* Others are gaps: nothing that a training measures is so far from 0, and no difference of two is infinite. */
static bool fits(double value)
{
    return fabs(value) <= VALUE_MAX;
}

struct range {
    double low, high;
};

static void widen(struct range *range, double value)
{
    if (!fits(value))
        return;
    range->low = fmin(range->low, value);
    range->high = fmax(range->high, value);
}

/* Of all x or y, and of their bounds, where there are any. 0 .. 1: nothing is finite. */
static struct range range_of(const struct dp_plot *plot, bool of_x, bool bounds)
{
    struct range range = {HUGE_VAL, -HUGE_VAL};
    for (size_t s = 0; s < plot->count; s++)
        for (size_t i = 0; i < plot->series[s].points; i++) {
            const struct dp_plot_series *one = &plot->series[s];
            if (!one->y || fits(one->y[i]))
                widen(&range, of_x ? one->x[i] : one->y[i]);
            if (bounds && one->low && one->high) {
                widen(&range, one->low[i]);
                widen(&range, one->high[i]);
            }
        }
    if (plot->level_name && of_x == (plot->kind == DP_PLOT_FOREST))
        widen(&range, plot->level);
    if (range.low > range.high)
        return (struct range){0, 1};
    if (range.high - range.low <= APART_LEAST * fmax(fabs(range.low), fabs(range.high)))
        range.high = range.low; /* steps between them would be lost in rounding */
    return range;
}

bool dp_plot_is_log(const struct dp_plot *plot)
{
    if (plot->kind != DP_PLOT_LINES || plot->y_from_0)
        return false;
    const struct range y = range_of(plot, false, false);
    return y.low > 0 && (plot->y_log || y.high >= LOG_FROM * y.low);
}

static double place(const struct axis *axis, double value)
{
    double share = axis->is_log ? log(value / axis->low) / log(axis->high / axis->low)
                                : (value - axis->low) / (axis->high - axis->low);
    return axis->from + share * (axis->to - axis->from);
}

/* ---- tics */

static void add_name(struct axis *axis, double at, const char *name)
{
    if (axis->tics == TICS_MAX)
        return;
    axis->tic[axis->tics].at = at;
    (void)snprintf(axis->tic[axis->tics++].name, sizeof axis->tic[0].name, "%s", name);
}

/* "0.5"; of steps of thousands "50k": longer ones lie over each other. */
static void add_number(struct axis *axis, double at, double step)
{
    static const char *const units[] = {"", "k", "M", "G"};
    char name[32];
    size_t unit = 0;
    double shown = at;
    for (; step >= 1000 && unit < 3; unit++, step /= 1000)
        shown /= 1000;
    (void)snprintf(name, sizeof name, "%.10g%s", shown, at != 0 ? units[unit] : "");
    add_name(axis, at, name);
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

static void put_steps(struct axis *axis, double step)
{
    for (double k = ceil(axis->low / step - 1e-4); k <= axis->high / step + 1e-4; k++)
        add_number(axis, k * step + 0.0, step); /* + 0.0: no -0 */
}

/* 1, 2 and 5 times the powers of ten of a range; of more decades than `many` the powers alone; of a range
 * with less than one tic of these, steps. */
static void put_log_tics(struct axis *axis, double many)
{
    static const double of_decade[] = {1, 2, 5};
    double decades = log10(axis->high / axis->low), every = decades > 6 ? ceil(decades / 6) : 1;
    double powers = floor(log10(axis->high)) - ceil(log10(axis->low)) + 1;
    size_t tics = powers >= 2 && decades > many ? 1 : 3;
    axis->is_log = true;
    if (axis->high < 4 * axis->low) {
        put_steps(axis, step_of(axis->high - axis->low, Y_TICS));
        return;
    }
    for (double power = floor(log10(axis->low)); power <= log10(axis->high); power += every)
        for (size_t i = 0; i < tics; i++) {
            double at = of_decade[i] * pow(10, power);
            if (at >= axis->low / 1.0001 && at <= axis->high * 1.0001)
                add_number(axis, at, 0);
        }
}

/* ---- lines */

static void settle_lines_x(const struct dp_plot *plot, struct axis *x)
{
    const struct range range = range_of(plot, true, false);
    double from = plot->x_from_0 && range.low > 0 ? 0 : range.low;
    double pad = range.high > from ? 0 : fmax(fabs(range.high) * 0.5, 0.5);
    x->low = from - pad;
    x->high = range.high + pad;
    if (plot->x_log && range.low > 0 && range.high > range.low) {
        x->low = range.low;
        put_log_tics(x, X_DECADES);
        return;
    }
    double step = step_of(x->high - x->low, X_TICS);
    put_steps(x, plot->x_whole && step < 1 ? 1 : step);
}

/* To complete steps. */
static void settle_steps(struct axis *y, double low, double high)
{
    double step = step_of(high - low, Y_TICS);
    y->low = step * floor(low / step + 1e-4);
    y->high = step * ceil(high / step - 1e-4);
    put_steps(y, step);
}

/* A logarithmic scale begins at half of the least value: a band may reach 0. */
static void settle_lines_y(const struct dp_plot *plot, struct axis *y)
{
    struct range range = range_of(plot, false, true);
    double bottom = plot->y_from_0 ? 0 : range.low;
    if (dp_plot_is_log(plot)) {
        y->low = fmax(range.low, range_of(plot, false, false).low / 2) / 1.05;
        y->high = range.high * 1.05;
        put_log_tics(y, Y_DECADES);
    } else if (range.high > bottom)
        settle_steps(y, bottom, range.high);
    else
        settle_steps(y, range.low - fmax(fabs(range.low) * 0.1, 0.01),
                     range.high + fmax(fabs(range.high) * 0.1, 0.01));
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
            double y = fits(s->y[i]) ? s->y[i] : 0;
            sum = plot->kind == DP_PLOT_STACKED ? sum + y : fmax(sum, y);
            if (s->high && fits(s->high[i]))
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
        room += (*c & 0xc0) == 0x80 ? 0 : LETTER;
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

static double longest(const struct axis *axis)
{
    double most = 0;
    for (size_t i = 0; i < axis->tics; i++)
        most = fmax(most, room_of(axis->tic[i].name));
    return most;
}

/* The names of bars stand aslant where they have no room next to each other; of those that are an order some
 * are left out instead. */
static void settle_bars_x(const struct dp_plot *plot, struct axis *x)
{
    size_t count = plot->count ? plot->series[0].points : 0, each = 1;
    double beside = 0.6 + (count < BARS_LEAST ? (double)(BARS_LEAST - count) / 2 : 0);
    x->low = -beside;
    x->high = (double)count - 1 + beside;
    while (!have_room(plot, count, (x->to - x->from) / (x->high - x->low), each))
        each++;
    x->aslant = each > 1 && !plot->ordered;
    for (size_t i = 0; i < count; i += x->aslant ? 1 : each)
        add_name(x, (double)i, plot->category[i]);
}

/* ---- forests */

static void settle_forest_x(const struct dp_plot *plot, const struct axis *y, struct axis *x)
{
    struct range range = range_of(plot, true, true);
    if (plot->x_log && range.low > 0) {
        double times = range.high > range.low ? pow(range.high / range.low, FOREST_PAD) : 2;
        x->low = range.low / times;
        x->high = range.high * times;
        put_log_tics(x, X_DECADES);
        return;
    }
    double pad =
        range.high > range.low ? FOREST_PAD * (range.high - range.low) : fmax(fabs(range.high) * 0.5, 0.5);
    x->low = range.low - pad;
    x->high = range.high + pad;
    put_steps(x, step_of(x->high - x->low, longest(y) > NAMES_LONG ? 3 : Y_TICS));
}

static void settle_forest_y(const struct dp_plot *plot, struct axis *y)
{
    y->low = (double)plot->count - 0.5;
    y->high = -0.5;
    for (size_t n = 0; n < plot->count; n++)
        add_name(y, (double)n, plot->series[n].name);
}

/* The names of y decide where x begins, and those of x where y does. */
static void settle_axes(const struct dp_plot *plot, struct axis *x, struct axis *y)
{
    bool bars = plot->kind == DP_PLOT_BARS || plot->kind == DP_PLOT_STACKED;
    *x = (struct axis){.to = DP_PLOT_WIDE - RIGHT};
    *y = (struct axis){.to = TOP};
    if (plot->kind == DP_PLOT_FOREST)
        settle_forest_y(plot, y);
    else if (bars)
        settle_steps(y, 0, top_of_bars(plot));
    else
        settle_lines_y(plot, y);
    x->from = TO_NAME + fmin(longest(y), NAMES_MOST) + (plot->y_label ? LINE : 0);
    if (plot->kind == DP_PLOT_FOREST)
        settle_forest_x(plot, y, x);
    else if (bars)
        settle_bars_x(plot, x);
    else
        settle_lines_x(plot, x);
    y->from = DP_PLOT_HIGH - TO_NAME - LINE - (x->aslant ? fmin(ASLANT * longest(x), ASLANT_MOST) : LINE);
}

/* ---- drawing: axes */

struct drawing {
    FILE *to;
    const struct dp_plot *plot;
    const struct dp_palette *palette;
    struct axis x, y;
};

static void put_text(const struct drawing *d, double x, double y, double turned, const char *anchor,
                     const char *text)
{
    fprintf(d->to, "<text transform=\"translate(%.2f,%.2f) rotate(%g)\" text-anchor=\"%s\" fill=\"%s\">", x,
            y, turned, anchor, d->palette->ink);
    dp_page_escape(d->to, text);
    fputs("</text>\n", d->to);
}

static void put_line(const struct drawing *d, double from_x, double from_y, double to_x, double to_y,
                     const char *colour)
{
    fprintf(d->to, "<path d=\"M%.2f,%.2f L%.2f,%.2f\" stroke=\"%s\"/>\n", from_x, from_y, to_x, to_y, colour);
}

static void put_grid(const struct drawing *d)
{
    bool upright = d->plot->kind == DP_PLOT_FOREST;
    const struct axis *axis = upright ? &d->x : &d->y;
    for (size_t i = 0; i < axis->tics; i++) {
        double at = place(axis, axis->tic[i].at);
        if (upright)
            put_line(d, at, d->y.from, at, d->y.to, d->palette->grid);
        else
            put_line(d, d->x.from, at, d->x.to, at, d->palette->grid);
    }
}

/* The name of a tic stands after its line. */
static void put_tics(const struct drawing *d)
{
    const char *ink = d->palette->ink;
    for (size_t i = 0; i < d->x.tics; i++) {
        double at = place(&d->x, d->x.tic[i].at), below = d->y.from + TIC;
        put_line(d, at, d->y.from, at, below, ink);
        put_text(d, at + (d->x.aslant ? 4 : 0), below + (d->x.aslant ? 8 : 14), d->x.aslant ? -40 : 0,
                 d->x.aslant ? "end" : "middle", d->x.tic[i].name);
    }
    for (size_t i = 0; i < d->y.tics; i++) {
        double at = place(&d->y, d->y.tic[i].at), left = d->x.from - TIC;
        put_line(d, d->x.from, at, left, at, ink);
        put_text(d, left - 3, at + 5, 0, "end", d->y.tic[i].name);
    }
    put_line(d, d->x.from, d->y.from, d->x.to, d->y.from, ink);
    if (d->plot->kind != DP_PLOT_FOREST)
        put_line(d, d->x.from, d->y.from, d->x.from, d->y.to, ink);
    put_text(d, (d->x.from + d->x.to) / 2, DP_PLOT_HIGH - 7, 0, "middle", d->plot->x_label);
    if (d->plot->y_label)
        put_text(d, 16, (d->y.from + d->y.to) / 2, -90, "middle", d->plot->y_label);
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
    return fits(s->x[i]) && fits(s->y[i]) && (!band || (fits(s->low[i]) && fits(s->high[i])));
}

/* The next drawn points, from the *k-th on, between which none is missing. Returns how many; 0: there are no more. */
static size_t next_part(const struct dp_plot_series *s, bool band, size_t *k, size_t part[DP_PLOT_POINTS_MAX])
{
    size_t count = 0;
    for (; *k < drawn(s); (*k)++) {
        size_t i = point_of(s, *k), from = count > 0 ? part[count - 1] : i;
        while (from < i && is_there(s, from, band))
            from++;
        bool there = from == i && is_there(s, i, band);
        if (!there && count > 0)
            break;
        if (there)
            part[count++] = i;
    }
    return count;
}

static void put_point(const struct drawing *d, const char *before, double x, double y)
{
    fprintf(d->to, "%s%.2f,%.2f ", before, place(&d->x, x), place(&d->y, y));
}

/* On a logarithmic scale it ends where the axis does. */
static void put_band(const struct drawing *d, const struct dp_plot_series *s)
{
    double least = d->y.is_log ? d->y.low * 1.05 : -HUGE_VAL;
    size_t part[DP_PLOT_POINTS_MAX], n;
    for (size_t k = 0; s->low && s->high && (n = next_part(s, true, &k, part)) > 0;) {
        fprintf(d->to, "<polygon fill=\"%s\" fill-opacity=\"0.2\" points=\"",
                dp_colour_of(d->palette, s->colour));
        for (size_t i = 0; i < n; i++)
            put_point(d, "", s->x[part[i]], fmax(s->low[part[i]], least));
        for (size_t i = n; i-- > 0;)
            put_point(d, "", s->x[part[i]], fmax(s->high[part[i]], least));
        fputs("\"/>\n", d->to);
    }
}

static void put_curve(const struct drawing *d, const struct dp_plot_series *s)
{
    size_t part[DP_PLOT_POINTS_MAX], n;
    const char *dash = dp_colour_look(s->colour)->dash;
    fputs("<path d=\"", d->to);
    for (size_t k = 0; (n = next_part(s, false, &k, part)) > 0;)
        for (size_t i = 0; i < n; i++)
            put_point(d, i ? "L" : "M", s->x[part[i]], s->y[part[i]]);
    fprintf(d->to, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"2\" stroke-dasharray=\"%s\"/>\n",
            dp_colour_of(d->palette, s->colour), dash[0] ? dash : "none");
}

static void put_mark(const struct drawing *d, const struct dp_plot_series *s, double x, double y)
{
    dp_colour_put_mark(d->to, d->palette, s->colour, place(&d->x, x), place(&d->y, y));
}

/* Each point where there are few; else some, which stand elsewhere in each series. */
static void put_marks(const struct drawing *d, size_t n)
{
    const struct dp_plot_series *s = &d->plot->series[n];
    size_t each = s->points <= DP_PLOT_MARKED_EACH ? 1 : drawn(s) / DP_PLOT_MARKS;
    for (size_t k = each * (2 * n + 1) / (2 * d->plot->count); k < drawn(s); k += each) {
        size_t i = point_of(s, k);
        if (is_there(s, i, false))
            put_mark(d, s, s->x[i], s->y[i]);
    }
}

/* A line across the plot. */
static void put_level(const struct drawing *d)
{
    bool upright = d->plot->kind == DP_PLOT_FOREST;
    double at = d->plot->level_name ? place(upright ? &d->x : &d->y, d->plot->level) : 0;
    if (d->plot->level_name)
        fprintf(d->to,
                "<path d=\"M%.2f,%.2f L%.2f,%.2f\" stroke=\"%s\" stroke-width=\"1.5\" "
                "stroke-dasharray=\"3,3\"/>\n",
                upright ? at : d->x.from, upright ? d->y.from : at, upright ? at : d->x.to,
                upright ? d->y.to : at, d->palette->ink);
}

static void put_lines(const struct drawing *d)
{
    for (size_t n = 0; n < d->plot->count; n++) /* bands below all lines */
        put_band(d, &d->plot->series[n]);
    put_level(d);
    for (size_t n = 0; n < d->plot->count; n++) {
        put_curve(d, &d->plot->series[n]);
        put_marks(d, n);
    }
}

/* ---- bars */

static void put_box(const struct drawing *d, enum dp_colour colour, double left, double right, double bottom,
                    double top)
{
    char hatch[16];
    (void)snprintf(hatch, sizeof hatch, "url(#h%d)", (int)colour);
    const char *const fill[] = {dp_colour_of(d->palette, colour), hatch};
    bool hatched = d->plot->count > 1 && dp_colour_look(colour)->hatch[0];
    for (size_t i = 0; i < 1u + hatched; i++) {
        fprintf(d->to, "<polygon fill=\"%s\" points=\"", fill[i]);
        put_point(d, "", left, bottom);
        put_point(d, "", left, top);
        put_point(d, "", right, top);
        put_point(d, "", right, bottom);
        fputs("\"/>\n", d->to);
    }
}

/* A line with its ends, in units of the drawing; along x where it is not upright. */
static void put_interval(const struct drawing *d, bool upright, double at, double low, double high,
                         const char *colour, const char *width)
{
    const double points[][2] = {{at, low},       {at, high},       {at - CAP, low},
                                {at + CAP, low}, {at - CAP, high}, {at + CAP, high}};
    fputs("<path d=\"", d->to);
    for (size_t i = 0; i < 6; i++)
        fprintf(d->to, "%c%.2f,%.2f ", i % 2 ? 'L' : 'M', points[i][!upright], points[i][upright]);
    fprintf(d->to, "\" fill=\"none\" stroke=\"%s\" stroke-width=\"%s\"/>\n", colour, width);
}

static void put_bars(const struct drawing *d)
{
    const struct dp_plot *plot = d->plot;
    bool stacked = plot->kind == DP_PLOT_STACKED;
    double wide = BAR_SHARE / (double)(stacked || plot->count == 0 ? 1 : plot->count);
    for (size_t i = 0; plot->count && i < plot->series[0].points; i++) {
        double bottom = 0;
        for (size_t n = 0; n < plot->count; n++) {
            const struct dp_plot_series *s = &plot->series[n];
            double left = (double)i - BAR_SHARE / 2 + (stacked ? 0 : wide * (double)n);
            if (!fits(s->y[i]))
                continue;
            put_box(d, s->colour, left, left + wide, bottom, bottom + s->y[i]);
            bottom += stacked ? s->y[i] : 0;
            if (s->low && s->high && fits(s->low[i]) && fits(s->high[i]))
                put_interval(d, true, place(&d->x, left + wide / 2), place(&d->y, s->low[i]),
                             place(&d->y, s->high[i]), d->palette->ink, "1.5");
        }
    }
}

/* ---- forests */

static void put_forest(const struct drawing *d)
{
    put_level(d);
    for (size_t n = 0; n < d->plot->count; n++) {
        const struct dp_plot_series *s = &d->plot->series[n];
        for (size_t i = 0; i < s->points; i++) {
            put_interval(d, false, place(&d->y, (double)n), place(&d->x, s->low[i]), place(&d->x, s->high[i]),
                         dp_colour_of(d->palette, s->colour), "2");
            put_mark(d, s, s->x[i], (double)n);
        }
    }
}

void dp_plot_draw(FILE *to, const struct dp_plot *plot, const struct dp_palette *palette)
{
    struct drawing d = {.to = to, .plot = plot, .palette = palette};
    settle_axes(plot, &d.x, &d.y);
    put_grid(&d);
    put_tics(&d);
    if (plot->kind == DP_PLOT_LINES)
        put_lines(&d);
    else if (plot->kind == DP_PLOT_FOREST)
        put_forest(&d);
    else
        put_bars(&d);
}
