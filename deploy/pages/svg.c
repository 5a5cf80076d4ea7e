#include "deploy/pages/svg.h"

#include "deploy/pages/markup.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEPTH_MAX 64u
#define TAG_BYTES 24u
#define NOTHING   ((long)-1)

/* What is read: text[at .. size). What is written: a stream over memory. */
struct svg_filter {
    const char *text;
    size_t size, at;
    FILE *out;
    size_t depth;
    char open[DEPTH_MAX][TAG_BYTES];
    long begins
        [DEPTH_MAX]; /* where each open element begins in the output; NOTHING: something was drawn in it */
    bool has_root, hatched;
};

/* A tag as it stands there: <name attributes>, </name> or <name attributes/>. */
struct svg_tag {
    char name[TAG_BYTES];
    const char *attributes, *end;
    bool closes, empty;
};

static bool is_one_of(const char *name, size_t length, const char *const *names)
{
    for (size_t i = 0; names[i]; i++)
        if (strlen(names[i]) == length && strncmp(names[i], name, length) == 0)
            return true;
    return false;
}

/* ---- reading */

/* The tag at text[at] == '<'; false: it does not end. */
static bool read_tag(struct svg_filter *f, struct svg_tag *tag)
{
    const char *p = f->text + f->at + 1, *end = f->text + f->size;
    char quote = '\0';
    size_t n = 0;
    *tag = (struct svg_tag){.closes = p < end && *p == '/'};
    p += tag->closes;
    while (p < end && (isalnum((unsigned char)*p) || *p == '?' || *p == '!' || *p == '-')) {
        if (n + 1 < sizeof tag->name)
            tag->name[n++] = *p;
        p++;
    }
    tag->attributes = p;
    for (; p < end && (quote || *p != '>'); p++) {
        if (quote && *p == quote)
            quote = '\0';
        else if (!quote && (*p == '"' || *p == '\''))
            quote = *p;
    }
    if (p == end)
        return false;
    tag->empty = p > tag->attributes && p[-1] == '/';
    tag->end = tag->empty ? p - 1 : p;
    f->at = (size_t)(p + 1 - f->text);
    return true;
}

/* One name = 'value' from *at on; false: there is none. */
static bool read_attribute(const char **at, const char *end, const char **name, size_t *name_size,
                           const char **value, size_t *value_size)
{
    const char *p = *at;
    while (p < end && isspace((unsigned char)*p))
        p++;
    *name = p;
    while (p < end && *p != '=' && !isspace((unsigned char)*p))
        p++;
    *name_size = (size_t)(p - *name);
    while (p < end && (*p == '=' || isspace((unsigned char)*p)))
        p++;
    if (p >= end || (*p != '"' && *p != '\'') || *name_size == 0)
        return false;
    char quote = *p++;
    *value = p;
    while (p < end && *p != quote)
        p++;
    *value_size = (size_t)(p - *value);
    *at = p + (p < end);
    return true;
}

static bool find_attribute(const struct svg_tag *tag, const char *wanted, char *out, size_t size)
{
    const char *at = tag->attributes, *name, *value;
    size_t name_size, value_size;
    while (read_attribute(&at, tag->end, &name, &name_size, &value, &value_size))
        if (name_size == strlen(wanted) && strncmp(name, wanted, name_size) == 0 && value_size < size) {
            memcpy(out, value, value_size);
            out[value_size] = '\0';
            return true;
        }
    return false;
}

/* ---- writing */

static bool read_colour(const char *value, size_t size, unsigned *r, unsigned *g, unsigned *b)
{
    char text[32] = "";
    if (size < sizeof text)
        memcpy(text, value, size);
    return sscanf(text, "rgb( %3u , %3u , %3u )", r, g, b) == 3;
}

static void put_colour(FILE *out, const char *value, size_t size)
{
    unsigned r, g, b;
    if (!read_colour(value, size, &r, &g, &b))
        fputs("currentColor", out);
    else if (r == 1 && g == 1 && b == 1)
        fputs("currentColor", out);
    else if (r == 2 && g == 2 && b == 2)
        fputs("var(--grid)", out);
    else
        fprintf(out, "#%02x%02x%02x", r & 0xff, g & 0xff, b & 0xff);
}

/* What a value of one of these may have: numbers, letters of paths and transforms. Lines that are broken between two points of a
 * polygon keep them apart. */
static void put_plain(FILE *out, const char *value, size_t size)
{
    for (size_t i = 0; i < size; i++)
        if (isspace((unsigned char)value[i]))
            fputc(' ', out);
        else if (isalnum((unsigned char)value[i]) || strchr(" .,-()+%", value[i]))
            fputc(value[i], out);
}

static void put_attributes(FILE *out, const struct svg_tag *tag)
{
    static const char *const plain[] = {"d",
                                        "points",
                                        "transform",
                                        "x",
                                        "y",
                                        "width",
                                        "height",
                                        "stroke-width",
                                        "text-anchor",
                                        "font-size",
                                        "fill-opacity",
                                        "font-weight",
                                        "stroke-dasharray",
                                        NULL};
    static const char *const colours[] = {"stroke", "fill", NULL};
    const char *at = tag->attributes, *name, *value;
    size_t name_size, value_size;
    while (read_attribute(&at, tag->end, &name, &name_size, &value, &value_size)) {
        bool colour = is_one_of(name, name_size, colours);
        if (!colour && !is_one_of(name, name_size, plain))
            continue;
        fprintf(out, " %.*s=\"", (int)name_size, name);
        if (colour && !(value_size == 4 && strncmp(value, "none", 4) == 0))
            put_colour(out, value, value_size);
        else
            put_plain(out, value, value_size);
        fputc('"', out);
    }
}

static void drawn(struct svg_filter *f)
{
    for (size_t i = 0; i < f->depth; i++)
        f->begins[i] = NOTHING;
}

/* ---- marks and hatches */

void dp_svg_put_mark(FILE *to, enum dp_mark mark, double x, double y, const char *colour)
{
    static const char disc[] = "M-3.2,0 a3.2,3.2 0 1,0 6.4,0 a3.2,3.2 0 1,0 -6.4,0 z",
                      square[] = "M-2.9,-2.9 h5.8 v5.8 h-5.8 z";
    static const char *const path[DP_MARKS] = {[DP_MARK_DISC] = disc,
                                               [DP_MARK_SQUARE] = square,
                                               [DP_MARK_TRIANGLE] = "M0,-3.9 L3.6,2.6 L-3.6,2.6 z",
                                               [DP_MARK_DIAMOND] = "M0,-4.2 L4.2,0 L0,4.2 L-4.2,0 z",
                                               [DP_MARK_DOWN] = "M0,3.9 L3.6,-2.6 L-3.6,-2.6 z",
                                               [DP_MARK_RING] = disc,
                                               [DP_MARK_BOX] = square,
                                               [DP_MARK_CROSS] = "M-3,-3 L3,3 M3,-3 L-3,3"};
    bool open = mark == DP_MARK_RING || mark == DP_MARK_BOX || mark == DP_MARK_CROSS;
    fprintf(to, "<path transform=\"translate(%.2f,%.2f)\" d=\"%s\" ", x, y, path[mark]);
    if (open)
        fprintf(to, "fill=\"var(--paper)\" stroke=\"%s\" stroke-width=\"1.6\"/>\n", colour);
    else
        fprintf(to, "fill=\"%s\" stroke=\"none\"/>\n", colour);
}

void dp_svg_put_hatches(FILE *to)
{
    fputs("<defs>\n", to);
    for (int c = 0; c < DP_COLOURS; c++)
        if (dp_colour_look((enum dp_colour)c)->hatch[0])
            fprintf(to,
                    "<pattern id=\"h%d\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">"
                    "<path d=\"%s\" stroke=\"var(--paper)\" stroke-width=\"1.4\" fill=\"none\"/></pattern>\n",
                    c, dp_colour_look((enum dp_colour)c)->hatch);
    fputs("</defs>\n", to);
}

/* By gnuplot's number of the point. */
static enum dp_mark mark_of(const struct svg_tag *tag)
{
    static const struct {
        unsigned number;
        enum dp_mark mark;
    } marks[] = {{6, DP_MARK_DISC},  {4, DP_MARK_SQUARE}, {8, DP_MARK_TRIANGLE}, {12, DP_MARK_DIAMOND},
                 {10, DP_MARK_DOWN}, {5, DP_MARK_RING},   {3, DP_MARK_BOX},      {1, DP_MARK_CROSS}};
    char name[32] = "";
    unsigned number = 0;
    if (find_attribute(tag, "xlink:href", name, sizeof name) && sscanf(name, "#gpPt%2u", &number) == 1)
        for (size_t i = 0; i < sizeof marks / sizeof marks[0]; i++)
            if (marks[i].number == number)
                return marks[i].mark;
    return DP_MARK_DISC;
}

/* gnuplot's points are references; a page with several drawings would have each of their names several times. */
static void put_point(struct svg_filter *f, const struct svg_tag *tag)
{
    char place[96], given[32] = "", *colour = NULL;
    size_t size = 0;
    double x, y, scale = 1;
    if (!find_attribute(tag, "transform", place, sizeof place) ||
        sscanf(place, "translate(%lf,%lf) scale(%lf)", &x, &y, &scale) < 2 || scale == 0)
        return;
    (void)find_attribute(tag, "color", given, sizeof given);
    if (strcmp(given, "white") == 0) /* gnuplot erases what is below a point */
        return;
    FILE *to = open_memstream(&colour, &size);
    if (to) {
        put_colour(to, given, strlen(given));
        if (fclose(to) == 0)
            dp_svg_put_mark(f->out, mark_of(tag), x, y, colour);
    }
    free(colour);
    drawn(f);
}

/* The same area again, in the hatch of its colour. Bands, which one can see through, have none. */
static void put_hatch(struct svg_filter *f, const struct svg_tag *tag)
{
    char fill[32] = "", opacity[16];
    unsigned r, g, b;
    const char *at = tag->attributes, *name, *value;
    size_t name_size, value_size;
    if (!f->hatched || !tag->empty || strcmp(tag->name, "polygon") != 0 ||
        find_attribute(tag, "fill-opacity", opacity, sizeof opacity) ||
        !find_attribute(tag, "fill", fill, sizeof fill) || !read_colour(fill, strlen(fill), &r, &g, &b))
        return;
    for (int c = 0; c < DP_COLOURS; c++) {
        const struct dp_colour_look *look = dp_colour_look((enum dp_colour)c);
        if (look->rgb != (r << 16 | g << 8 | b) || !look->hatch[0])
            continue;
        while (read_attribute(&at, tag->end, &name, &name_size, &value, &value_size))
            if (name_size == 6 && strncmp(name, "points", 6) == 0) {
                fprintf(f->out, "<polygon fill=\"url(#h%d)\" points=\"", c);
                put_plain(f->out, value, value_size);
                fputs("\"/>\n", f->out);
            }
    }
}

/* ---- elements */

static void put_root(struct svg_filter *f, const struct svg_tag *tag, const char *label)
{
    char box[64] = "";
    (void)find_attribute(tag, "viewBox", box, sizeof box);
    fputs("<svg viewBox=\"", f->out);
    put_plain(f->out, box, strlen(box));
    fputs("\" role=\"img\" aria-label=\"", f->out);
    dp_markup_escape(f->out, label);
    fputs("\">\n", f->out);
    f->has_root = true;
}

static bool open_element(struct svg_filter *f, const struct svg_tag *tag)
{
    if (f->depth == DEPTH_MAX)
        return false;
    memcpy(f->open[f->depth], tag->name, sizeof tag->name);
    f->begins[f->depth++] = ftell(f->out);
    return true;
}

static bool close_element(struct svg_filter *f, const struct svg_tag *tag)
{
    if (f->depth == 0 || strcmp(f->open[f->depth - 1], tag->name) != 0)
        return false;
    long begins = f->begins[--f->depth];
    if (begins != NOTHING && strcmp(tag->name, "g") == 0) /* nothing is drawn in it */
        return fseek(f->out, begins, SEEK_SET) == 0;
    fprintf(f->out, "</%s>\n", tag->name);
    return true;
}

/* Past </name>. */
static bool skip_element(struct svg_filter *f, const char *name)
{
    struct svg_tag tag;
    while (f->at < f->size) {
        const char *next = memchr(f->text + f->at, '<', f->size - f->at);
        if (!next)
            return false;
        f->at = (size_t)(next - f->text);
        if (!read_tag(f, &tag))
            return false;
        if (tag.closes && strcmp(tag.name, name) == 0)
            return true;
    }
    return false;
}

static bool take_tag(struct svg_filter *f, const char *label)
{
    static const char *const elements[] = {"g", "path", "text", "tspan", "polygon", "rect", NULL};
    static const char *const skipped[] = {"title", "desc", "defs", NULL};
    struct svg_tag tag;
    if (!read_tag(f, &tag))
        return false;
    if (!tag.closes && !tag.empty && is_one_of(tag.name, strlen(tag.name), skipped))
        return skip_element(f, tag.name);
    if (strcmp(tag.name, "use") == 0) {
        put_point(f, &tag);
        return true;
    }
    bool root = strcmp(tag.name, "svg") == 0;
    if (!root && !is_one_of(tag.name, strlen(tag.name), elements))
        return true;
    if (tag.closes)
        return close_element(f, &tag);
    if (root && f->has_root)
        return false;
    if (!tag.empty && !open_element(f, &tag))
        return false;
    if (root) {
        put_root(f, &tag, label);
        return true;
    }
    fprintf(f->out, "<%s", tag.name);
    put_attributes(f->out, &tag);
    fputs(tag.empty ? "/>\n" : ">", f->out);
    put_hatch(f, &tag);
    if (strcmp(tag.name, "g") != 0)
        drawn(f);
    return true;
}

/* What stands between two tags; gnuplot has escaped it, but for >. */
static void take_text(struct svg_filter *f, size_t size)
{
    const char *in = f->depth > 0 ? f->open[f->depth - 1] : "";
    bool shown = strcmp(in, "text") == 0 || strcmp(in, "tspan") == 0;
    for (size_t i = 0; shown && i < size; i++) {
        char c = f->text[f->at + i];
        if (c == '>')
            fputs("&gt;", f->out);
        else
            fputc(c, f->out);
    }
    f->at += size;
}

static bool take_all(struct svg_filter *f, const char *label)
{
    while (f->at < f->size) {
        const char *next = memchr(f->text + f->at, '<', f->size - f->at);
        size_t before = next ? (size_t)(next - f->text) - f->at : f->size - f->at;
        take_text(f, before);
        if (next && !take_tag(f, label))
            return false;
    }
    return f->has_root && f->depth == 0;
}

enum dp_status dp_svg_take(const char *text, size_t size, const char *label, bool hatched, char **out,
                           struct dp_error *err)
{
    size_t made = 0;
    struct svg_filter f = {.text = text, .size = size, .hatched = hatched};
    *out = NULL;
    f.out = open_memstream(out, &made);
    if (!f.out)
        return dp_fail(err, DP_NOMEM, "no memory for a plot");
    bool good = take_all(&f, label);
    fputc('\0', f.out); /* an element that was taken back may have been longer than what followed it */
    bool written = !ferror(f.out);
    if (fclose(f.out) == 0 && written && good)
        return DP_OK;
    free(*out);
    *out = NULL;
    return good ? dp_fail(err, DP_NOMEM, "no memory for a plot")
                : dp_fail(err, DP_DATA, "gnuplot wrote no SVG that can be read");
}
