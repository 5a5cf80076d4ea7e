#include "deploy/pages/colour.h"

#include "common/base/status.h"

#include <string.h>

#define DISC   "M-3.2,0 a3.2,3.2 0 1,0 6.4,0 a3.2,3.2 0 1,0 -6.4,0 z"
#define SQUARE "M-2.9,-2.9 h5.8 v5.8 h-5.8 z"

const struct dp_colour_look *dp_colour_look(enum dp_colour colour)
{
    static const struct dp_colour_look looks[DP_COLOURS] = {
        [DP_COLOUR_BLUE] = {"#0072b2", DISC, false, "", ""},
        [DP_COLOUR_VERMILLION] = {"#d55e00", SQUARE, false, "9,4", "M-2,2 L2,-2 M0,8 L8,0 M6,10 L10,6"},
        [DP_COLOUR_GREEN] = {"#009e73", "M0,-3.9 L3.6,2.6 L-3.6,2.6 z", false, "2,3", "M0,2 L8,2 M0,6 L8,6"},
        [DP_COLOUR_ORANGE] = {"#e69f00", "M0,-4.2 L4.2,0 L0,4.2 L-4.2,0 z", false, "9,3,2,3",
                              "M0,4 L8,4 M4,0 L4,8"},
        [DP_COLOUR_PURPLE] = {"#cc79a7", DISC, true, "15,4", "M-2,6 L2,10 M0,0 L8,8 M6,-2 L10,2"},
        [DP_COLOUR_SKY] = {"#56b4e9", SQUARE, true, "5,3", "M2,0 L2,8 M6,0 L6,8"},
        [DP_COLOUR_YELLOW] = {"#f0e442", DISC, false, "", ""},
        [DP_COLOUR_GREY] = {"#8c8c8c", "M-3,-3 L3,3 M3,-3 L-3,3", true, "9,3,2,3,2,3", "M0,0 L8,8 M0,8 L8,0"},
        [DP_COLOUR_INK] = {"#010101", "M0,3.9 L3.6,-2.6 L-3.6,-2.6 z", false, "2,6", ""}};
    DP_ASSERT(colour < DP_COLOURS);
    return &looks[colour];
}

const struct dp_palette dp_palette_page = {"currentColor", "var(--grid)", "var(--paper)"};
const struct dp_palette dp_palette_paper = {"#1c1e21", "#dcdfe3", "#ffffff"};

const char *dp_colour_of(const struct dp_palette *palette, enum dp_colour colour)
{
    return colour == DP_COLOUR_INK ? palette->ink : dp_colour_look(colour)->rgb;
}

void dp_colour_put_mark(FILE *to, const struct dp_palette *palette, enum dp_colour colour, double x, double y)
{
    const char *rgb = dp_colour_of(palette, colour);
    const struct dp_colour_look *look = dp_colour_look(colour);
    fprintf(to,
            "<path transform=\"translate(%.2f,%.2f)\" d=\"%s\" fill=\"%s\" stroke=\"%s\" "
            "stroke-width=\"1.6\"/>\n",
            x, y, look->mark, look->open ? palette->paper : rgb, look->open ? rgb : "none");
}

void dp_colour_put_hatches(FILE *to, const struct dp_palette *palette)
{
    fputs("<defs>\n", to);
    for (int c = 0; c < DP_COLOURS; c++)
        if (dp_colour_look((enum dp_colour)c)->hatch[0])
            fprintf(to,
                    "<pattern id=\"h%d\" width=\"8\" height=\"8\" patternUnits=\"userSpaceOnUse\">"
                    "<path d=\"%s\" stroke=\"%s\" stroke-width=\"1.4\" fill=\"none\"/></pattern>\n",
                    c, dp_colour_look((enum dp_colour)c)->hatch, palette->paper);
    fputs("</defs>\n", to);
}

/* Exact names before kinds: "ssp:4", a default of compare, has the colour of its kind before "ssp:1" has. */
static const struct {
    const char *name;
    bool exact;
    enum dp_colour colour;
} preferred[] = {{"async", true, DP_COLOUR_BLUE},      {"async:leased", true, DP_COLOUR_SKY},
                 {"ssp:4", true, DP_COLOUR_GREEN},     {"sync", true, DP_COLOUR_VERMILLION},
                 {"sync:1", true, DP_COLOUR_ORANGE},   {"hogwild", true, DP_COLOUR_PURPLE},
                 {"allreduce", true, DP_COLOUR_INK},   {"async:leased", false, DP_COLOUR_SKY},
                 {"async", false, DP_COLOUR_BLUE},     {"ssp", false, DP_COLOUR_GREEN},
                 {"sync:", false, DP_COLOUR_ORANGE},   {"sync", false, DP_COLOUR_VERMILLION},
                 {"hogwild", false, DP_COLOUR_PURPLE}, {"allreduce", false, DP_COLOUR_INK}};
static const enum dp_colour of_lines[DP_COLOUR_MODES_MAX] = {
    DP_COLOUR_GREY, DP_COLOUR_SKY,        DP_COLOUR_ORANGE, DP_COLOUR_PURPLE,
    DP_COLOUR_BLUE, DP_COLOUR_VERMILLION, DP_COLOUR_GREEN,  DP_COLOUR_INK};

/* FNV-1a */
static size_t hash_of(const char *name)
{
    uint32_t hash = 2166136261u;
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * 16777619u;
    return hash;
}

void dp_colour_modes(const char *const *name, size_t count, enum dp_colour *out)
{
    bool taken[DP_COLOURS] = {false}, has[DP_COLOUR_MODES_MAX] = {false};
    DP_ASSERT(count <= DP_COLOUR_MODES_MAX);
    for (size_t p = 0; p < sizeof preferred / sizeof preferred[0]; p++)
        for (size_t m = 0; m < count; m++) {
            size_t length = strlen(preferred[p].name) + preferred[p].exact;
            if (has[m] || taken[preferred[p].colour] || strncmp(name[m], preferred[p].name, length) != 0)
                continue;
            has[m] = taken[preferred[p].colour] = true;
            out[m] = preferred[p].colour;
        }
    for (size_t m = 0; m < count; m++)
        for (size_t i = 0, from = hash_of(name[m]); !has[m] && i < DP_COLOUR_MODES_MAX; i++) {
            enum dp_colour next = of_lines[(from + i) % DP_COLOUR_MODES_MAX];
            has[m] = !taken[next];
            if (has[m])
                out[m] = next;
            taken[next] = true;
        }
}
