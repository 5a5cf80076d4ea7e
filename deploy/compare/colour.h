/* Colour: those of Okabe and Ito (2008), which the colour-blind can tell apart, as the page and its plots name them. A series has one
 * colour in all of a page. Yellow is for areas alone: as a line on white it cannot be seen. */
#ifndef DP_COMPARE_COLOUR_H
#define DP_COMPARE_COLOUR_H

#include <stdint.h>

enum dp_colour {
    DP_COLOUR_BLUE,
    DP_COLOUR_VERMILLION,
    DP_COLOUR_GREEN,
    DP_COLOUR_ORANGE,
    DP_COLOUR_PURPLE,
    DP_COLOUR_SKY,
    DP_COLOUR_YELLOW,
    DP_COLOUR_GREY,
    DP_COLOUR_INK, /* their black: that of the page's text */
    DP_COLOURS
};

/* 0xRRGGBB */
static inline uint32_t dp_colour_rgb(enum dp_colour colour)
{
    static const uint32_t rgb[DP_COLOURS] = {0x0072B2, 0xD55E00, 0x009E73, 0xE69F00, 0xCC79A7,
                                             0x56B4E9, 0xF0E442, 0x8C8C8C, 0x010101};
    return rgb[colour];
}

#endif
