#include "worker/compute/factors.h"

#include <cblas.h>
#include <stddef.h>

void dp_factors_scores(const struct dp_factors *f, uint32_t users, uint32_t items, float *out)
{
    for (uint32_t u = 0; u < users; u++) {
        float of_user = f->bias + (f->user_bias ? f->user_bias[u] : 0);
        float *row = out + (size_t)u * items;
        for (uint32_t i = 0; i < items; i++)
            row[i] = of_user + (f->item_bias ? f->item_bias[i] : 0);
    }
    cblas_sgemm(CblasRowMajor, CblasNoTrans, CblasTrans, (int)users, (int)items, (int)f->width, 1, f->user,
                (int)f->width, f->item, (int)f->width, 1, out, (int)items);
}
