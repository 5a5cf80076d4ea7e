#include "deploy/pages/figure.h"

#include "deploy/pages/page.h"

#include <ctype.h>
#include <string.h>

#define LOOK_WIDE   34.0 /* of the sample in a legend */
#define LOOK_HIGH   14.0
#define LETTER      8.3
#define LEGEND_GAP  18.0
#define LEGEND_LINE 22.0

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
static void put_look(FILE *to, const struct dp_plot *plot, size_t entry, const struct dp_palette *palette)
{
    const struct dp_plot_series *series = series_of(plot, entry);
    enum dp_colour colour = series ? series->colour : DP_COLOUR_INK;
    const struct dp_colour_look *look = dp_colour_look(colour);
    const char *rgb = dp_colour_of(palette, colour), *dash = series ? look->dash : "3,3";
    if (series && plot->kind != DP_PLOT_LINES) {
        fprintf(to, "<rect width=\"%g\" height=\"%g\" fill=\"%s\"/>", LOOK_WIDE, LOOK_HIGH, rgb);
        if (look->hatch[0])
            fprintf(to, "<rect width=\"%g\" height=\"%g\" fill=\"url(#h%d)\"/>", LOOK_WIDE, LOOK_HIGH,
                    (int)colour);
        return;
    }
    bool upright = !series && plot->kind == DP_PLOT_FOREST;
    fprintf(to, "<path d=\"%s\" stroke=\"%s\" stroke-width=\"%s\" stroke-dasharray=\"%s\"/>",
            upright ? "M17,0 L17,14" : "M0,7 L34,7", rgb, series ? "2" : "1.5", dash[0] ? dash : "none");
    if (series)
        dp_colour_put_mark(to, palette, colour, LOOK_WIDE / 2, LOOK_HIGH / 2);
}

static void put_legend(FILE *to, const struct dp_plot *plot)
{
    if (entries_of(plot) == 0)
        return;
    fputs("<p class=\"key\">", to);
    for (size_t i = 0; i < entries_of(plot); i++) {
        fprintf(to, "<span><svg viewBox=\"0 0 %g %g\" aria-hidden=\"true\">", LOOK_WIDE, LOOK_HIGH);
        put_look(to, plot, i, &dp_palette_page);
        fputs("</svg>", to);
        dp_page_escape(to, name_of(plot, i));
        fputs("</span> ", to);
    }
    fputs("</p>\n", to);
}

void dp_figure_put(FILE *to, const struct dp_plot *plot, const char *link)
{
    fputs("<figure><figcaption>", to);
    dp_page_escape(to, plot->caption);
    fputs("</figcaption>\n", to);
    if (link)
        dp_page_link(to, link, "SVG");
    put_legend(to, plot);
    fprintf(to, "<svg viewBox=\"0 0 %g %g\" font-size=\"15\" role=\"img\" aria-label=\"", DP_PLOT_WIDE,
            DP_PLOT_HIGH);
    dp_page_escape(to, plot->caption);
    fputs("\">\n", to);
    dp_plot_draw(to, plot, &dp_palette_page);
    fputs("</svg>\n</figure>\n", to);
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
        double wide = LOOK_WIDE + 6 + LETTER * letters_of(name_of(plot, i)) + LEGEND_GAP;
        if (x > 8 && x + wide > DP_PLOT_WIDE) {
            x = 8;
            y += LEGEND_LINE;
        }
        if (to) {
            fprintf(to, "<g transform=\"translate(%.1f,%.1f)\">", x, y);
            put_look(to, plot, i, &dp_palette_paper);
            fprintf(to, "<text x=\"%g\" y=\"12\" fill=\"%s\">", LOOK_WIDE + 6, dp_palette_paper.ink);
            dp_page_escape(to, name_of(plot, i));
            fputs("</text></g>\n", to);
        }
        x += wide;
    }
    return entries_of(plot) > 0 ? y + LEGEND_LINE : 0;
}

void dp_figure_put_file(FILE *to, const void *context)
{
    const struct dp_plot *plot = context;
    double legend = put_file_legend(NULL, plot), high = DP_PLOT_HIGH + legend;
    fprintf(to,
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"%g\" height=\"%g\" viewBox=\"0 0 %g %g\" "
            "font-family=\"sans-serif\" font-size=\"15\">\n<title>",
            DP_PLOT_WIDE, high, DP_PLOT_WIDE, high);
    dp_page_escape(to, plot->caption);
    fprintf(to, "</title>\n<rect width=\"100%%\" height=\"100%%\" fill=\"%s\"/>\n", dp_palette_paper.paper);
    dp_colour_put_hatches(to, &dp_palette_paper);
    (void)put_file_legend(to, plot);
    fprintf(to, "<g transform=\"translate(0,%g)\">\n", legend);
    dp_plot_draw(to, plot, &dp_palette_paper);
    fputs("</g>\n</svg>\n", to);
}
