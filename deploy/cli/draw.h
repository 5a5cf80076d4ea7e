/* Draw: seeded random numbers for benches and generated data: uniform, and Zipf over ranks 1 .. n.
 * Source    The generator is splitmix64 (Steele, Lea and Flood 2014). Zipf: rejection-inversion, W. Hormann
 *           and G. Derflinger, "Rejection-inversion to generate variates from monotone discrete
 *           distributions", ACM TOMACS 6(3), 1996; about 1.1 tries a number, no table, any n.
 * Thread    Each struct is one thread's.                                                                 */
#ifndef DP_CLI_DRAW_H
#define DP_CLI_DRAW_H

#include <stdint.h>

struct dp_draw {
    uint64_t state; /* the seed */
};

uint64_t dp_draw_u64(struct dp_draw *draw);
double dp_draw_unit(struct dp_draw *draw); /* [0, 1) */
/* 0 .. n-1, n >= 1; the bias is below n / 2^64. */
uint64_t dp_draw_below(struct dp_draw *draw, uint64_t n);

struct dp_zipf {
    uint64_t n;
    double exponent, first, last, cut;
};

/* P(k) is proportional to k^-exponent, exponent > 0. */
void dp_zipf_init(struct dp_zipf *zipf, uint64_t n, double exponent);
uint64_t dp_zipf_draw(const struct dp_zipf *zipf, struct dp_draw *draw); /* 1 .. n */

#endif
