#include "deploy/pages/figure.h"

#include "deploy/pages/markup.h"
#include "deploy/pages/svg.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

#define LOOK_WIDE   34.0 /* of the sample in a legend */
#define LOOK_HIGH   14.0
#define LETTER      8.3
#define LEGEND_GAP  18.0
#define LEGEND_LINE 22.0
#define FILE_WIDE   520.0
#define FILE_HIGH   300.0

/* ---- legends */

/* A level stands after the series. */
static size_t entries_of(const struct dp_plot *plot)
{
    bool named = plot->kind == DP_PLOT_FOREST; /* at its axis */
    size_t series = named || (plot->count < 2 && !plot->level_name) ? 0 : plot->count;
    return series + (plot->level_name != NULL);
}

static const struct dp_plot_series *series_of(const struct dp_plot *plot, size_t entry)
{
    return plot->level_name && entry + 1 == entries_of(plot) ? NULL : &plot->series[entry];
}

static const char *name_of(const struct dp_plot *plot, size_t entry)
{
    const struct dp_plot_series *series = series_of(plot, entry);
    return series ? series->name : plot->level_name;
}

/* Its upper left corner is at 0, 0. */
static void put_look(FILE *to, const struct dp_plot *plot, size_t entry, const char *colour)
{
    const struct dp_plot_series *series = series_of(plot, entry);
    const struct dp_colour_look *look = series ? dp_colour_look(series->colour) : NULL;
    const char *dash = look ? look->dash : "3,3";
    if (look && plot->kind != DP_PLOT_LINES) {
        fprintf(to, "<rect width=\"%g\" height=\"%g\" fill=\"%s\"/>", LOOK_WIDE, LOOK_HIGH, colour);
        if (look->hatch[0])
            fprintf(to, "<rect width=\"%g\" height=\"%g\" fill=\"url(#h%d)\"/>", LOOK_WIDE, LOOK_HIGH,
                    (int)series->colour);
        return;
    }
    bool upright = !look && plot->kind == DP_PLOT_FOREST;
    fprintf(to, "<path d=\"%s\" fill=\"none\" stroke=\"%s\" stroke-width=\"%s\"",
            upright ? "M17,0 L17,14" : "M0,7 L34,7", colour, look ? "2" : "1.5");
    if (dash[0])
        fprintf(to, " stroke-dasharray=\"%s\"", dash);
    fputs("/>", to);
    if (look)
        dp_svg_put_mark(to, look->mark, LOOK_WIDE / 2, LOOK_HIGH / 2, colour);
}

static void put_legend(FILE *to, const struct dp_plot *plot)
{
    if (entries_of(plot) == 0)
        return;
    fputs("<p class=\"key\">", to);
    for (size_t i = 0; i < entries_of(plot); i++) {
        const struct dp_plot_series *series = series_of(plot, i);
        fprintf(to, "<span><i class=\"c%d\"><svg viewBox=\"0 0 %g %g\" aria-hidden=\"true\">",
                (int)(series ? series->colour : DP_COLOUR_INK), LOOK_WIDE, LOOK_HIGH);
        put_look(to, plot, i, "currentColor");
        fputs("</svg></i>", to);
        dp_markup_escape(to, name_of(plot, i));
        fputs("</span> ", to);
    }
    fputs("</p>\n", to);
}

void dp_figure_put(FILE *to, const struct dp_plot *plot, const char *svg, const char *link)
{
    fputs("<figure><figcaption>", to);
    dp_markup_escape(to, plot->caption);
    fputs("</figcaption>\n", to);
    if (link)
        dp_markup_link(to, link, "SVG");
    put_legend(to, plot);
    fputs(svg, to);
    fputs("</figure>\n", to);
}

/* ---- files */

const char *dp_figure_file(const char *caption, char out[DP_FIGURE_NAME_BYTES])
{
    size_t n = 0;
    for (const char *c = caption; *c && n + sizeof "-.svg" < DP_FIGURE_NAME_BYTES; c++)
        if (isalnum((unsigned char)*c))
            out[n++] = (char)tolower((unsigned char)*c);
        else if (n > 0 && out[n - 1] != '-' && *c != '\'')
            out[n++] = '-';
    while (n > 0 && out[n - 1] == '-')
        n--;
    (void)strcpy(out + n, ".svg");
    return out;
}

static double letters_of(const char *name)
{
    double letters = 0;
    for (const char *c = name; *c; c++)
        letters += (*c & 0xc0) != 0x80;
    return letters;
}

/* On lines of the drawing's width; to NULL: nothing is written. Returns how high it is. */
static double put_file_legend(FILE *to, const struct dp_plot *plot)
{
    double x = 8, y = 4;
    for (size_t i = 0; i < entries_of(plot); i++) {
        const struct dp_plot_series *series = series_of(plot, i);
        double wide = LOOK_WIDE + 6 + LETTER * letters_of(name_of(plot, i)) + LEGEND_GAP;
        char colour[16];
        if (x > 8 && x + wide > FILE_WIDE) {
            x = 8;
            y += LEGEND_LINE;
        }
        (void)snprintf(colour, sizeof colour, "#%06x",
                       series ? (unsigned)dp_colour_look(series->colour)->rgb : 0x010101u);
        if (to) {
            fprintf(to, "<g transform=\"translate(%.1f,%.1f)\">", x, y);
            put_look(to, plot, i, colour);
            fprintf(to, "<text x=\"%g\" y=\"12\" font-size=\"15\" fill=\"#1c1e21\">", LOOK_WIDE + 6);
            dp_markup_escape(to, name_of(plot, i));
            fputs("</text></g>\n", to);
        }
        x += wide;
    }
    return entries_of(plot) > 0 ? y + LEGEND_LINE : 0;
}

/* What the page's style gives its own colours to, in those of paper. */
static void put_on_paper(FILE *to, const char *text)
{
    static const char *const colours[][2] = {
        {"currentColor", "#1c1e21"}, {"var(--grid)", "#dcdfe3"}, {"var(--paper)", "#ffffff"}};
    while (*text) {
        size_t i = 0;
        while (i < 3 && strncmp(text, colours[i][0], strlen(colours[i][0])) != 0)
            i++;
        if (i < 3) {
            fputs(colours[i][1], to);
            text += strlen(colours[i][0]);
        } else {
            fputc(*text++, to);
        }
    }
}

/* Between the root's tags. */
static void put_body(FILE *to, const struct dp_plot *plot, const char *svg)
{
    const char *begin = strchr(svg, '>'), *end = strrchr(svg, '<');
    double legend = put_file_legend(NULL, plot);
    dp_svg_put_hatches(to);
    (void)put_file_legend(to, plot);
    fprintf(to, "<g transform=\"translate(0,%g)\">%.*s</g>\n", legend,
            begin && end && begin < end ? (int)(end - begin - 1) : 0, begin ? begin + 1 : "");
}

void dp_figure_put_file(FILE *to, const struct dp_plot *plot, const char *svg)
{
    char *body = NULL;
    size_t size = 0;
    double high = FILE_HIGH + put_file_legend(NULL, plot);
    FILE *out = open_memstream(&body, &size);
    if (out)
        put_body(out, plot, svg);
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" "
            "font-family=\"sans-serif\">\n<title>",
            FILE_WIDE, high, FILE_WIDE, high);
    dp_markup_escape(to, plot->caption);
    fputs("</title>\n<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n", to);
    if (out && fclose(out) == 0)
        put_on_paper(to, body);
    free(body);
    fputs("</svg>\n", to);
}
