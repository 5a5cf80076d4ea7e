#include "deploy/cli/generate_clicks.h"

#include "deploy/cli/draw.h"

#include <math.h>
#include <stdlib.h>

#define BASE_RATE 0.25
#define PILOT     4096 /* rows that the bias is found on */
#define FACTORS   4
#define PAIRS     8

/* Zipf's exponent, as what a rank is divided by: roots are rounded alike everywhere, pow is not. */
enum zipf { ZIPF_1, ZIPF_1_25, ZIPF_1_5 };

static const struct clicks_column {
    uint32_t size;      /* 0: `features` */
    uint32_t empty_256; /* rows of 256 in which it is empty, about */
    enum zipf zipf;
    double weight; /* standard deviation of its categories' weights */
} columns[DP_CLICKS_CATEGORIES] = {
    {1400, 0, ZIPF_1_5, 0.3},   {580, 0, ZIPF_1_25, 0.2},  {0, 10, ZIPF_1, 0.25},
    {0, 10, ZIPF_1_25, 0.25},   {300, 0, ZIPF_1_25, 0.2},  {24, 30, ZIPF_1, 0.2},
    {12000, 0, ZIPF_1, 0.3},    {630, 0, ZIPF_1_25, 0.2},  {3, 0, ZIPF_1, 0.2},
    {0, 0, ZIPF_1, 0.3},        {5600, 0, ZIPF_1, 0.2},    {0, 10, ZIPF_1, 0.25},
    {3200, 0, ZIPF_1, 0.2},     {27, 0, ZIPF_1, 0.2},      {15000, 0, ZIPF_1_25, 0.3},
    {0, 10, ZIPF_1_25, 0.25},   {10, 0, ZIPF_1, 0.2},      {5600, 0, ZIPF_1, 0.2},
    {2100, 100, ZIPF_1_5, 0.2}, {4, 100, ZIPF_1, 0.2},     {0, 10, ZIPF_1, 0.25},
    {18, 190, ZIPF_1, 0.2},     {15, 0, ZIPF_1, 0.2},      {40000, 10, ZIPF_1, 0.25},
    {100, 100, ZIPF_1_25, 0.2}, {30000, 100, ZIPF_1, 0.2},
};

static const struct integer {
    uint32_t levels; /* below 2^levels */
    uint32_t empty_256, below_0_256;
} integers[DP_CLICKS_INTEGERS] = {
    {7, 115, 0}, {13, 0, 26}, {9, 55, 0},  {6, 55, 0}, {18, 6, 0},  {12, 57, 0}, {9, 11, 0},
    {7, 0, 0},   {12, 11, 0}, {3, 115, 0}, {6, 11, 0}, {4, 196, 0}, {8, 55, 0},
};

/* Columns of few categories, whose pairs a million rows have often enough to learn from. */
static const struct pair {
    int a, b;
} pairs[PAIRS] = {{4, 13}, {5, 16}, {22, 1}, {24, 5}, {1, 8}, {13, 22}, {16, 8}, {7, 16}};

/* A draw of ranks 0 .. n-1 by their weights in one step (A. J. Walker 1977, tables after M. D. Vose 1991). */
struct alias {
    uint32_t n;
    enum zipf zipf;
    uint32_t *keep; /* of 2^32: rank i stays i */
    uint32_t *other;
};

struct dp_clicks {
    uint64_t seed;
    double bias, slope[DP_CLICKS_INTEGERS];
    struct alias alias[DP_CLICKS_CATEGORIES]; /* those that differ */
    int alias_of[DP_CLICKS_CATEGORIES], aliases;
};

double dp_clicks_sigmoid(double x)
{
    static const double ln2_high = 0x1.62e42fefa3800p-1, ln2_low = 0x1.ef35793c76730p-45;
    double y = x < -700  ? 700
               : x > 700 ? -700
                         : -x,
           k = floor(y / (ln2_high + ln2_low) + 0.5), r = y - k * ln2_high - k * ln2_low, sum = 1;
    for (int i = 14; i > 0; i--) /* e^r, |r| <= log(2) / 2, by its series */
        sum = 1 + sum * r / i;
    return 1 / (1 + ldexp(sum, (int)k));
}

static uint64_t mix(uint64_t seed, uint64_t a, uint64_t b)
{
    struct dp_draw draw = {.state = seed};
    draw.state = dp_draw_u64(&draw) ^ a;
    draw.state = dp_draw_u64(&draw) ^ b;
    return dp_draw_u64(&draw);
}

/* About normal, mean 0, deviation 1: four uniforms' sum. */
static double bell(uint64_t bits)
{
    double sum = 0;
    for (int i = 0; i < 4; i++, bits >>= 16)
        sum += (double)(bits & 0xffff) * 0x1p-16 + 0x1p-17;
    return (sum - 2) * 1.7320508075688772;
}

enum clicks_kind { KIND_ROW = 1, KIND_SLOPE, KIND_WEIGHT, KIND_FACTOR, KIND_PILOT, KIND_NAME };

static double weight(const struct dp_clicks *c, int column, uint32_t category)
{
    return columns[column].weight * bell(mix(c->seed, KIND_WEIGHT << 8 | (unsigned)column, category));
}

static double together(const struct dp_clicks *c, int pair, uint32_t a, uint32_t b)
{
    double sum = 0;
    for (unsigned f = 0; f < FACTORS; f++) {
        unsigned factor = (unsigned)pair * FACTORS + f;
        sum += bell(mix(c->seed, KIND_FACTOR << 8 | factor, a)) *
               bell(mix(c->seed, KIND_FACTOR << 16 | factor, b));
    }
    return 0.2 * sum;
}

/* Log2(1 + |x|), straight between powers of two; with x's sign. */
static double level(int64_t x)
{
    uint64_t v = x < 0 ? (uint64_t)-x : (uint64_t)x, power = 1;
    double e = 0;
    for (; power * 2 <= v + 1; power *= 2)
        e++;
    e += (double)(v + 1 - power) / (double)power;
    return x < 0 ? -e : e;
}

static double log_odds(const struct dp_clicks *c, const struct dp_clicks_row *row)
{
    double sum = c->bias;
    for (int i = 0; i < DP_CLICKS_INTEGERS; i++)
        if (row->has[i])
            sum += c->slope[i] * level(row->integer[i]);
    for (int i = 0; i < DP_CLICKS_CATEGORIES; i++)
        sum += weight(c, i, row->category[i]);
    for (int p = 0; p < PAIRS; p++)
        sum += together(c, p, row->category[pairs[p].a], row->category[pairs[p].b]);
    return sum;
}

/* ---- drawing */

static uint32_t rank(const struct alias *alias, struct dp_draw *draw)
{
    __extension__ typedef unsigned __int128 wide;
    wide product = (wide)dp_draw_u64(draw) * alias->n;
    uint32_t at = (uint32_t)(product >> 64), fraction = (uint32_t)((uint64_t)product >> 32);
    return fraction < alias->keep[at] ? at : alias->other[at];
}

static int64_t integer(const struct integer *of, struct dp_draw *draw)
{
    uint64_t power = UINT64_C(1) << dp_draw_below(draw, of->levels),
             v = power - 1 + dp_draw_below(draw, power);
    return dp_draw_below(draw, 256) < of->below_0_256 ? -(int64_t)(1 + v % 3) : (int64_t)v;
}

/* Everything but the label. */
static void features_of(const struct dp_clicks *c, struct dp_draw *draw, struct dp_clicks_row *out)
{
    for (int i = 0; i < DP_CLICKS_INTEGERS; i++) {
        out->has[i] = dp_draw_below(draw, 256) >= integers[i].empty_256;
        out->integer[i] = out->has[i] ? integer(&integers[i], draw) : 0;
    }
    for (int i = 0; i < DP_CLICKS_CATEGORIES; i++) {
        uint32_t found = rank(&c->alias[c->alias_of[i]], draw) + 1;
        out->category[i] =
            columns[i].empty_256 && dp_draw_below(draw, 256) < columns[i].empty_256 ? 0 : found;
    }
    out->probability = dp_clicks_sigmoid(log_odds(c, out));
}

void dp_clicks_draw(const struct dp_clicks *clicks, uint64_t number, struct dp_clicks_row *out)
{
    struct dp_draw draw = {.state = mix(clicks->seed, KIND_ROW << 8, number)};
    features_of(clicks, &draw, out);
    out->label = dp_draw_unit(&draw) < out->probability;
}

/* ---- text */

static char *put_integer(char *to, int64_t value)
{
    char digits[24];
    int n = 0;
    uint64_t v = value < 0 ? (uint64_t)-value : (uint64_t)value;
    if (value < 0)
        *to++ = '-';
    do
        digits[n++] = (char)('0' + v % 10);
    while ((v /= 10) > 0);
    while (n > 0)
        *to++ = digits[--n];
    return to;
}

/* Eight hexadecimal digits, as in Criteo's files; different ones for different categories of a column. */
static char *put_category(char *to, uint64_t seed, int column, uint32_t category)
{
    uint32_t v = category ^ (uint32_t)mix(seed, KIND_NAME << 8, (unsigned)column);
    v = (v ^ v >> 16) * 0x85ebca6bu;
    v = (v ^ v >> 13) * 0xc2b2ae35u;
    v ^= v >> 16;
    for (int shift = 28; shift >= 0; shift -= 4)
        *to++ = "0123456789abcdef"[v >> shift & 15];
    return to;
}

size_t dp_clicks_line(const struct dp_clicks *clicks, const struct dp_clicks_row *row, char *line)
{
    char *to = line;
    *to++ = row->label ? '1' : '0';
    for (int i = 0; i < DP_CLICKS_INTEGERS; i++) {
        *to++ = '\t';
        if (row->has[i])
            to = put_integer(to, row->integer[i]);
    }
    for (int i = 0; i < DP_CLICKS_CATEGORIES; i++) {
        *to++ = '\t';
        if (row->category[i])
            to = put_category(to, clicks->seed, i, row->category[i]);
    }
    *to++ = '\n';
    return (size_t)(to - line);
}

/* ---- the model */

static double share(enum zipf zipf, uint32_t k)
{
    double root = zipf == ZIPF_1 ? 1 : zipf == ZIPF_1_5 ? sqrt(k) : sqrt(sqrt(k));
    return 1 / (k * root);
}

/* left[i]: n times the share of rank i. Ranks below 1 are filled up from those above it. */
static void fill_alias(struct alias *alias, double *left, uint32_t *below, uint32_t *above)
{
    uint32_t n = alias->n, belows = 0, aboves = 0;
    for (uint32_t i = 0; i < n; i++)
        if (left[i] < 1)
            below[belows++] = i;
        else
            above[aboves++] = i;
    while (belows > 0 && aboves > 0) {
        uint32_t b = below[--belows], a = above[aboves - 1];
        alias->keep[b] = (uint32_t)(left[b] * 0x1p32);
        alias->other[b] = a;
        left[a] -= 1 - left[b];
        if (left[a] < 1) {
            aboves--;
            below[belows++] = a;
        }
    }
    /* What is left is 1 but for rounding. */
    while (belows > 0 || aboves > 0) {
        uint32_t i = belows > 0 ? below[--belows] : above[--aboves];
        alias->keep[i] = UINT32_MAX;
        alias->other[i] = i;
    }
}

static enum dp_status new_alias(struct alias *alias, struct dp_error *err)
{
    uint32_t n = alias->n;
    double sum = 0, *left = malloc(n * sizeof *left);
    uint32_t *below = malloc(n * sizeof *below), *above = malloc(n * sizeof *above);
    alias->keep = malloc(n * sizeof *alias->keep);
    alias->other = malloc(n * sizeof *alias->other);
    enum dp_status st = DP_OK;
    if (!left || !below || !above || !alias->keep || !alias->other) {
        st = dp_fail(err, DP_NOMEM, "no memory for a column of %u categories", (unsigned)n);
        goto done;
    }
    for (uint32_t k = n; k > 0; k--)
        sum += share(alias->zipf, k);
    for (uint32_t i = 0; i < n; i++)
        left[i] = share(alias->zipf, i + 1) / sum * n;
    fill_alias(alias, left, below, above);
done:
    free(left);
    free(below);
    free(above);
    return st;
}

static enum dp_status new_columns(struct dp_clicks *c, uint32_t features, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (int i = 0; st == DP_OK && i < DP_CLICKS_CATEGORIES; i++) {
        uint32_t n = columns[i].size && columns[i].size < features ? columns[i].size : features;
        int at = 0;
        while (at < c->aliases && (c->alias[at].n != n || c->alias[at].zipf != columns[i].zipf))
            at++;
        c->alias_of[i] = at;
        if (at < c->aliases)
            continue;
        c->alias[c->aliases++] = (struct alias){.n = n, .zipf = columns[i].zipf};
        st = new_alias(&c->alias[at], err);
    }
    return st;
}

/* The bias that makes the mean probability of the pilot's rows BASE_RATE: by halving. */
static enum dp_status find_bias(struct dp_clicks *c, struct dp_error *err)
{
    double low = -20, high = 20, *odds = malloc(PILOT * sizeof *odds);
    if (!odds)
        return dp_fail(err, DP_NOMEM, "no memory for %d rows", PILOT);
    c->bias = 0;
    for (unsigned n = 0; n < PILOT; n++) {
        struct dp_draw draw = {.state = mix(c->seed, KIND_PILOT << 8, n)};
        struct dp_clicks_row row;
        features_of(c, &draw, &row);
        odds[n] = log_odds(c, &row);
    }
    for (int step = 0; step < 40; step++) {
        double middle = (low + high) / 2, sum = 0;
        for (int n = 0; n < PILOT; n++)
            sum += dp_clicks_sigmoid(odds[n] + middle);
        if (sum < BASE_RATE * PILOT)
            low = middle;
        else
            high = middle;
    }
    c->bias = low;
    free(odds);
    return DP_OK;
}

enum dp_status dp_clicks_new(uint32_t features, uint64_t seed, struct dp_clicks **out, struct dp_error *err)
{
    *out = NULL;
    DP_ASSERT(features >= DP_CLICKS_FEATURES_MIN && features <= DP_CLICKS_FEATURES_MAX);
    struct dp_clicks *c = calloc(1, sizeof *c);
    if (!c)
        return dp_fail(err, DP_NOMEM, "no memory for a model of clicks");
    c->seed = seed;
    for (unsigned i = 0; i < DP_CLICKS_INTEGERS; i++)
        c->slope[i] = 0.6 / integers[i].levels * bell(mix(seed, KIND_SLOPE << 8, i));
    enum dp_status st = new_columns(c, features, err);
    if (st == DP_OK)
        st = find_bias(c, err);
    if (st != DP_OK)
        dp_clicks_free(&c);
    *out = c;
    return st;
}

void dp_clicks_free(struct dp_clicks **clicks)
{
    struct dp_clicks *c = *clicks;
    *clicks = NULL;
    for (int i = 0; c && i < c->aliases; i++) {
        free(c->alias[i].keep);
        free(c->alias[i].other);
    }
    free(c);
}

uint32_t dp_clicks_size(const struct dp_clicks *clicks, int column)
{
    return clicks->alias[clicks->alias_of[column]].n;
}
