/* Colour: the colours of Okabe and Ito (2008), which readers with colour blindness can distinguish. Each has
 * a mark, a dash pattern and a hatch of its own, so that series also differ in print without colours.
 * Promise   A mode has the same colour on every page if possible. Two modes of a page never share a colour.
 * Thread    Any: plain functions. */
#ifndef DP_PAGES_COLOUR_H
#define DP_PAGES_COLOUR_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

enum dp_colour {
    DP_COLOUR_BLUE,
    DP_COLOUR_VERMILLION,
    DP_COLOUR_GREEN,
    DP_COLOUR_ORANGE,
    DP_COLOUR_PURPLE,
    DP_COLOUR_SKY,
    DP_COLOUR_YELLOW, /* for areas only: a yellow line on white cannot be seen */
    DP_COLOUR_GREY,
    DP_COLOUR_INK, /* their black: the colour of the page's text */
    DP_COLOURS
};

struct dp_colour_look {
    const char *rgb;   /* "#0072b2" */
    const char *mark;  /* its path */
    bool open;         /* the mark is filled with the paper */
    const char *dash;  /* units drawn and left out, "9,4"; "": solid */
    const char *hatch; /* path of its lines in a tile of 8 x 8 units; "": none */
};

const struct dp_colour_look *dp_colour_look(enum dp_colour colour);

/* What a drawing is on. */
struct dp_palette {
    const char *ink, *grid, *paper;
};
extern const struct dp_palette dp_palette_page;  /* the colours of the page's style, light or dark */
extern const struct dp_palette dp_palette_paper; /* of a file */
const char *dp_colour_of(const struct dp_palette *palette, enum dp_colour colour);
/* The mark of a colour, at a point of a drawing. */
void dp_colour_put_mark(FILE *to, const struct dp_palette *palette, enum dp_colour colour, double x,
                        double y);
/* <defs> of the hatches, which areas refer to as url(#hN). */
void dp_colour_put_hatches(FILE *to, const struct dp_palette *palette);

#define DP_COLOUR_MODES_MAX 8u /* as many as lines can have */
/* Colours of a page's modes, by their names: "async" is blue on every page, "ssp:4" is green, ... A mode whose colour another mode of
 * the page has gets a free one. count: up to DP_COLOUR_MODES_MAX. */
void dp_colour_modes(const char *const *name, size_t count, enum dp_colour *out);

#endif
