#include "common/model/optimizer.h"

#include "common/model/optimizer_forms.h"
#include "common/model/optimizer_kinds.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>

/* 16 bytes each: 1 MB at most. With beta2 = 0.999 the factors are 1 from step 17,321 on. */
#define CORRECTIONS_MAX 65536u
/* Below it, 1 - beta^t and its root are 1 in f32. */
#define SETTLED 0x1p-26

/* By squaring: the same product on every machine, unlike libm's pow. */
static double power(double base, uint32_t exponent)
{
    double result = 1.0;
    for (; exponent; exponent >>= 1) {
        if (exponent & 1)
            result *= base;
        base *= base;
    }
    return result;
}

struct dp_correction dp_correction_at(const struct dp_optimizer_spec *set, uint32_t step)
{
    double first = 1.0 - power((double)set->beta1, step);
    double root = sqrt(1.0 - power((double)set->beta2, step));
    return (struct dp_correction){.scale = root / first, .epsilon = (float)((double)set->epsilon * root)};
}

static bool takes_corrections(struct dp_optimizer *optimizer, const struct dp_optimizer *like)
{
    const struct dp_optimizer_spec *a = &optimizer->set, *b = &like->set;
    if (!like->corrections || a->beta1 != b->beta1 || a->beta2 != b->beta2 || a->epsilon != b->epsilon)
        return false;
    optimizer->corrections = like->corrections;
    optimizer->corrections_len = like->corrections_len;
    optimizer->corrections_settled = like->corrections_settled;
    optimizer->corrections_users = like->corrections_users;
    ++*optimizer->corrections_users;
    return true;
}

static enum dp_status prepare_corrections(struct dp_optimizer *optimizer, struct dp_error *err)
{
    const struct dp_optimizer_spec *set = &optimizer->set;
    double slower = (double)fmaxf(set->beta1, set->beta2);
    uint32_t len = 0;
    while (len < CORRECTIONS_MAX && power(slower, len + 1) > SETTLED)
        len++;
    optimizer->corrections_settled = len < CORRECTIONS_MAX;
    if (len == 0)
        return DP_OK;
    optimizer->corrections = calloc(len, sizeof *optimizer->corrections);
    optimizer->corrections_users = calloc(1, sizeof *optimizer->corrections_users);
    if (!optimizer->corrections || !optimizer->corrections_users)
        return dp_fail(err, DP_NOMEM, "no memory for %u corrections", (unsigned)len);
    for (uint32_t i = 0; i < len; i++)
        optimizer->corrections[i] = dp_correction_at(set, i + 1);
    optimizer->corrections_len = len;
    *optimizer->corrections_users = 1;
    return DP_OK;
}

static bool squares(float weight, float gradient)
{
    return isfinite(weight * gradient * gradient) != 0;
}

/* Exact: a smaller bound would change rows whose arithmetic does not overflow. */
static float largest_gradient(const struct dp_optimizer_spec *set)
{
    const struct dp_optimizer_traits *traits = dp_optimizer_traits(set);
    if (!traits->square_factor)
        return FLT_MAX;
    float weight = traits->square_factor(set);
    float most = (float)sqrt((double)FLT_MAX / (double)weight);
    while (!squares(weight, most))
        most = nextafterf(most, 0.0f);
    while (squares(weight, nextafterf(most, FLT_MAX)))
        most = nextafterf(most, FLT_MAX);
    return most;
}

static uint32_t apply_portable(const struct dp_optimizer *optimizer, void *const *rows, uint32_t n,
                               const void *gradients, float rate)
{
    uint32_t bounded = 0;
    for (uint32_t i = 0; i < n; i++)
        if (rows[i]) {
            (void)dp_step_next(rows[i]);
            bounded += optimizer->rest(optimizer, rows[i],
                                       (const char *)gradients + (size_t)i * optimizer->dim * 4, rate, 0);
        }
    return bounded;
}

static dp_apply choose(const struct dp_optimizer_spec *set, enum dp_optimizer_form form)
{
    dp_apply apply = form == DP_FORM_PORTABLE ? NULL : dp_optimizer_avx2(set);
    return apply || form == DP_FORM_AVX2 ? apply : apply_portable;
}

enum dp_status dp_optimizer_new(const struct dp_table_spec *spec, enum dp_optimizer_form form,
                                struct dp_optimizer **out, struct dp_error *err)
{
    return dp_optimizer_new_like(spec, form, NULL, out, err);
}

enum dp_status dp_optimizer_new_like(const struct dp_table_spec *spec, enum dp_optimizer_form form,
                                     const struct dp_optimizer *like, struct dp_optimizer **out,
                                     struct dp_error *err)
{
    struct dp_optimizer *optimizer = NULL;
    *out = NULL;
    enum dp_status st = dp_table_check(spec, err);
    if (st != DP_OK)
        goto done;
    optimizer = calloc(1, sizeof *optimizer);
    if (!optimizer) {
        st = dp_fail(err, DP_NOMEM, "no memory for the optimizer of table '%s'", spec->name);
        goto done;
    }
    optimizer->dim = spec->dim;
    optimizer->set = spec->optimizer;
    optimizer->gradient_max = largest_gradient(&spec->optimizer);
    optimizer->rest = dp_optimizer_portable(&spec->optimizer);
    optimizer->apply = choose(&spec->optimizer, form);
    if (!optimizer->apply) {
        st = dp_fail(err, DP_UNSUPPORTED, "this processor lacks AVX2 or FMA: take the portable form");
        goto done;
    }
    bool corrected = dp_optimizer_traits(&spec->optimizer)->corrected;
    if (corrected && !(like && takes_corrections(optimizer, like)))
        st = prepare_corrections(optimizer, err);
    if (st != DP_OK)
        goto done;
    *out = optimizer;
    optimizer = NULL;
done:
    dp_optimizer_free(&optimizer);
    return st;
}

void dp_optimizer_free(struct dp_optimizer **optimizer)
{
    if (!*optimizer)
        return;
    uint32_t *users = (*optimizer)->corrections_users;
    if (!users || *users <= 1) {
        free((*optimizer)->corrections);
        free(users);
    } else {
        --*users;
    }
    free(*optimizer);
    *optimizer = NULL;
}

bool dp_optimizer_apply(const struct dp_optimizer *optimizer, void *row, const void *gradient, float rate)
{
    return optimizer->apply(optimizer, &row, 1, gradient, rate) > 0;
}

uint32_t dp_optimizer_apply_rows(const struct dp_optimizer *optimizer, void *const *rows, uint32_t n,
                                 const void *gradients, float rate)
{
    return optimizer->apply(optimizer, rows, n, gradients, rate);
}
