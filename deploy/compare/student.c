#include "deploy/compare/student.h"

#include "common/base/status.h"

#include <math.h>

/* The continued fraction of the incomplete beta function (Abramowitz and Stegun 1964, 26.5.8), by Lentz's method. */
static double beta_fraction(double a, double b, double x)
{
    const double tiny = 1e-300;
    double c = 1, d = 1 - (a + b) * x / (a + 1);
    d = 1 / (fabs(d) < tiny ? tiny : d);
    double out = d;
    for (int m = 1; m < 1000; m++) {
        double was = out;
        for (int odd = 0; odd <= 1; odd++) {
            double term = odd ? -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
                              : m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m));
            d = 1 + term * d;
            c = 1 + term / c;
            d = 1 / (fabs(d) < tiny ? tiny : d);
            c = fabs(c) < tiny ? tiny : c;
            out *= c * d;
        }
        if (fabs(out - was) <= 1e-15 * fabs(out))
            break;
    }
    return out;
}

/* Regularized, at x; y is 1 - x, which is more exact than the subtraction. */
static double incomplete_beta(double a, double b, double x, double y)
{
    if (x <= 0 || y <= 0)
        return x <= 0 ? 0 : 1;
    double front = exp(lgamma(a + b) - lgamma(a) - lgamma(b) + a * log(x) + b * log(y));
    return x < (a + 1) / (a + b + 2) ? front * beta_fraction(a, b, x) / a
                                     : 1 - front * beta_fraction(b, a, y) / b;
}

double dp_student_p(double t, size_t freedom)
{
    double v = (double)freedom;
    DP_ASSERT(freedom > 0);
    if (isinf(t))
        return 0;
    return incomplete_beta(v / 2, 0.5, v / (v + t * t), t * t / (v + t * t));
}

double dp_normal_p(double z)
{
    return erfc(fabs(z) / sqrt(2));
}

/* freedom 0: of the normal distribution. */
static double quantile(double p, size_t freedom)
{
    double low = 0, high = 1;
    DP_ASSERT(p > 0 && p < 1);
    while ((freedom ? dp_student_p(high, freedom) : dp_normal_p(high)) > p)
        high *= 2;
    while (high - low > 1e-14 * high) {
        double middle = low + (high - low) / 2;
        if ((freedom ? dp_student_p(middle, freedom) : dp_normal_p(middle)) > p)
            low = middle;
        else
            high = middle;
    }
    return high;
}

double dp_student_quantile(double p, size_t freedom)
{
    DP_ASSERT(freedom > 0);
    return quantile(p, freedom);
}

double dp_normal_quantile(double p)
{
    return quantile(p, 0);
}

/* ---- power */

/* That t of a mean at `shift` is above `limit`: over the spread that is found, u times the true one, the normal probability of the rest. */
static double chance_above(double limit, double shift, size_t freedom)
{
    const int steps = 128; /* even: Simpson's rule */
    double v = (double)freedom, end = 1 + 7 / sqrt(v), h = end / steps, sum = 0;
    double scale = exp(log(2) + v / 2 * log(v / 2) - lgamma(v / 2));
    for (int i = 0; i <= steps; i++) {
        double u = i * h, weight = i == 0 || i == steps ? 1 : i % 2 ? 4 : 2;
        double density = scale * pow(u, v - 1) * exp(-v * u * u / 2);
        sum += weight * density * erfc((limit * u - shift) / sqrt(2)) / 2;
    }
    return sum * h / 3;
}

double dp_student_shift(double p, double power, size_t freedom)
{
    double limit = dp_student_quantile(p, freedom), low = 0, high = 2 * limit + 2;
    DP_ASSERT(power >= 0.5 && power < 1);
    while (chance_above(limit, high, freedom) < power)
        high *= 2;
    while (high - low > 1e-6 * high) {
        double middle = low + (high - low) / 2;
        if (chance_above(limit, middle, freedom) < power)
            low = middle;
        else
            high = middle;
    }
    return high;
}

/* ---- Fisher */

static double log_choose(size_t n, size_t k)
{
    return lgamma((double)n + 1) - lgamma((double)k + 1) - lgamma((double)(n - k) + 1);
}

double dp_fisher_p(size_t one, size_t ones, size_t other, size_t others)
{
    size_t sum = one + other, least = sum > others ? sum - others : 0, most = sum < ones ? sum : ones;
    DP_ASSERT(one <= ones && other <= others);
    double all = log_choose(ones + others, sum), p = 0;
    double own = log_choose(ones, one) + log_choose(others, other) - all;
    for (size_t k = least; k <= most; k++) {
        double chance = log_choose(ones, k) + log_choose(others, sum - k) - all;
        p += chance <= own + 1e-7 ? exp(chance) : 0;
    }
    return fmin(p, 1);
}
