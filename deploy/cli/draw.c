#include "deploy/cli/draw.h"

#include "common/base/hash.h"

#include <math.h>

uint64_t dp_draw_u64(struct dp_draw *draw)
{
    return dp_hash_mix(draw->state += DP_HASH_GOLDEN);
}

double dp_draw_unit(struct dp_draw *draw)
{
    return (double)(dp_draw_u64(draw) >> 11) * 0x1p-53;
}

uint64_t dp_draw_below(struct dp_draw *draw, uint64_t n)
{
    __extension__ typedef unsigned __int128 wide;
    return (uint64_t)((wide)dp_draw_u64(draw) * n >> 64);
}

/* h(x) = x^-s, its integral H(x) = (x^(1-s) - 1) / (1-s), log x where s is 1, and H's inverse; by expm1 and
 * log1p, so that s near 1 loses no digits. */
static double height(const struct dp_zipf *zipf, double x)
{
    return exp(-zipf->exponent * log(x));
}

static double integral(const struct dp_zipf *zipf, double x)
{
    double rest = 1 - zipf->exponent, log_x = log(x);
    return fabs(rest * log_x) < 1e-9 ? log_x : expm1(rest * log_x) / rest;
}

static double inverse(const struct dp_zipf *zipf, double y)
{
    double rest = 1 - zipf->exponent;
    return exp(fabs(rest * y) < 1e-9 ? y : log1p(rest * y) / rest);
}

void dp_zipf_init(struct dp_zipf *zipf, uint64_t n, double exponent)
{
    *zipf = (struct dp_zipf){.n = n, .exponent = exponent};
    zipf->first = integral(zipf, 1.5) - 1;
    zipf->last = integral(zipf, (double)n + 0.5);
    zipf->cut = 2 - inverse(zipf, integral(zipf, 2.5) - height(zipf, 2));
}

uint64_t dp_zipf_draw(const struct dp_zipf *zipf, struct dp_draw *draw)
{
    for (;;) {
        double u = zipf->last + dp_draw_unit(draw) * (zipf->first - zipf->last);
        double x = inverse(zipf, u), k = floor(x + 0.5);
        k = k < 1 ? 1 : k > (double)zipf->n ? (double)zipf->n : k;
        if (k - x <= zipf->cut || u >= integral(zipf, k + 0.5) - height(zipf, k))
            return (uint64_t)k;
    }
}
