/* Naive: the formulas of optimizer.h as they stand there, for one coordinate, in REAL. Included once for
 * float and once for double: NAIVE names the function, SQRT and POW are of that precision. x: the slots of
 * the kind. */
static void NAIVE(const struct dp_optimizer_spec *set, REAL rate, uint32_t t, REAL g, REAL *w, REAL *x)
{
    const REAL one = 1, l1 = (REAL)set->l1, l2 = (REAL)set->l2, beta = (REAL)set->ftrl_beta;
    const REAL b1 = (REAL)set->beta1, b2 = (REAL)set->beta2, epsilon = (REAL)set->epsilon;
    if (set->kind != DP_OPT_FTRL)
        g = g + l2 * *w;
    if (set->kind == DP_OPT_SGD) {
        x[0] = (REAL)set->momentum * x[0] + g;
        *w = *w - rate * x[0];
    } else if (set->kind == DP_OPT_ADAGRAD) {
        x[0] = x[0] + g * g;
        *w = *w - rate * g / (SQRT(x[0]) + epsilon);
    } else if (set->kind == DP_OPT_ADAM) {
        x[0] = b1 * x[0] + (one - b1) * g;
        x[1] = b2 * x[1] + (one - b2) * g * g;
        REAL m = x[0] / (one - POW(b1, (REAL)t)), v = x[1] / (one - POW(b2, (REAL)t));
        *w = *w - rate * (REAL)set->decay * *w;
        *w = *w - rate * m / (SQRT(v) + epsilon);
    } else {
        if (t == 1) /* z such that the closed form at n = 0 gives w */
            x[0] = *w > 0 ? -(*w * (beta / rate + l2) + l1) : *w < 0 ? -(*w * (beta / rate + l2) - l1) : 0;
        REAL n = x[1] + g * g, s = (SQRT(n) - SQRT(x[1])) / rate;
        x[0] = x[0] + g - s * *w;
        x[1] = n;
        REAL size = x[0] < 0 ? -x[0] : x[0], sign = x[0] < 0 ? -one : one;
        *w = size <= l1 ? 0 : (sign * l1 - x[0]) / ((beta + SQRT(n)) / rate + l2);
    }
}
