/* Losses and their gradients, on the CPU: sums in float64, in the order of the examples. */
#include "worker/compute/cpu/cpu.h"

#include <math.h>

/* -log softmax(x)[label] = log(sum e^(x - max)) - (x[label] - max): no e^x grows beyond 1. */
void dp_cpu_softmax_loss(void *self, const float *x, const float *labels, uint32_t examples, uint32_t width,
                         float *loss, float *dx)
{
    (void)self;
    double total = 0;
    float each = 1.0f / (float)examples;
    for (uint32_t i = 0; i < examples; i++) {
        const float *row = x + (size_t)i * width;
        float *drow = dx ? dx + (size_t)i * width : NULL;
        uint32_t label = (uint32_t)labels[i];
        float max = row[0];
        for (uint32_t c = 1; c < width; c++)
            max = row[c] > max ? row[c] : max;
        double sum = 0;
        for (uint32_t c = 0; c < width; c++) {
            float e = expf(row[c] - max);
            sum += (double)e;
            if (drow)
                drow[c] = e;
        }
        total += log(sum) - ((double)row[label] - (double)max);
        if (!drow)
            continue;
        float scale = each / (float)sum;
        for (uint32_t c = 0; c < width; c++)
            drow[c] *= scale;
        drow[label] -= each;
    }
    *loss = (float)(total / examples);
}

/* log(1 + e^x) = max(x, 0) + log(1 + e^-|x|) */
void dp_cpu_logistic_loss(void *self, const float *x, const float *labels, uint32_t examples, float *loss,
                          float *dx)
{
    (void)self;
    double total = 0;
    for (uint32_t i = 0; i < examples; i++) {
        double logit = (double)x[i], label = (double)labels[i];
        double e = exp(-fabs(logit));
        total += (logit > 0 ? logit : 0) + log1p(e) - label * logit;
        double sigmoid = logit > 0 ? 1 / (1 + e) : e / (1 + e);
        if (dx)
            dx[i] = (float)((sigmoid - label) / examples);
    }
    *loss = (float)(total / examples);
}

void dp_cpu_squared_loss(void *self, const float *x, const float *labels, uint32_t examples, float *loss,
                         float *dx)
{
    (void)self;
    double total = 0;
    for (uint32_t i = 0; i < examples; i++) {
        double off = (double)x[i] - (double)labels[i];
        total += off * off;
        if (dx)
            dx[i] = (float)(2 * off / examples);
    }
    *loss = (float)(total / examples);
}

/* log(1 + e^(y - x)), as the logistic loss of x - y under the label 1. */
void dp_cpu_bpr_loss(void *self, const float *x, const float *y, uint32_t examples, float *loss, float *dx,
                     float *dy)
{
    (void)self;
    double total = 0;
    for (uint32_t i = 0; i < examples; i++) {
        double above = (double)x[i] - (double)y[i], e = exp(-fabs(above));
        total += (above > 0 ? 0 : -above) + log1p(e);
        double wrong = above > 0 ? e / (1 + e) : 1 / (1 + e); /* sigmoid(y - x) */
        if (dx)
            dx[i] = (float)(-wrong / examples);
        if (dy)
            dy[i] = (float)(wrong / examples);
    }
    *loss = (float)(total / examples);
}
