/* The CPU's operations (backend.h). Private to this room. */
#ifndef DP_COMPUTE_CPU_CPU_H
#define DP_COMPUTE_CPU_CPU_H

#include "worker/compute/backend.h"

void dp_cpu_gather_sum(void *self, const struct dp_entries *e, const float *p, uint32_t width, bool mean,
                       float *out);
void dp_cpu_gather_sum_back(void *self, const struct dp_entries *e, const float *dout, uint32_t width,
                            bool mean, float *dp, bool add);
void dp_cpu_gather(void *self, const struct dp_entries *e, const float *p, uint32_t width, float *out);
void dp_cpu_gather_back(void *self, const struct dp_entries *e, const float *dout, uint32_t width, float *dp,
                        bool add);
void dp_cpu_interactions(void *self, const struct dp_entries *e, const float *p, uint32_t width, float *sums,
                         float *out);
void dp_cpu_interactions_back(void *self, const struct dp_entries *e, const float *p, const float *sums,
                              const float *dout, uint32_t width, float *dp, bool add);
void dp_cpu_bias(void *self, const float *x, const float *p, uint32_t examples, uint32_t width, float *out);
void dp_cpu_bias_back_p(void *self, const float *dout, uint32_t examples, uint32_t width, float *dp,
                        bool add);
void dp_cpu_relu(void *self, const float *x, size_t n, float *out);
void dp_cpu_relu_back(void *self, const float *out, const float *dout, size_t n, float *dx, bool add);
void dp_cpu_sigmoid(void *self, const float *x, size_t n, float *out);
void dp_cpu_sigmoid_back(void *self, const float *out, const float *dout, size_t n, float *dx, bool add);
void dp_cpu_tanh(void *self, const float *x, size_t n, float *out);
void dp_cpu_tanh_back(void *self, const float *out, const float *dout, size_t n, float *dx, bool add);
void dp_cpu_sum(void *self, const float *x, const float *y, size_t n, float *out);
void dp_cpu_copy_back(void *self, const float *dout, size_t n, float *dx, bool add);
void dp_cpu_dropout(void *self, const float *x, size_t n, uint64_t seed, float rate, float *out, bool add);
void dp_cpu_columns(void *self, const float *x, const struct dp_column_copy *columns, uint32_t examples,
                    float *out, bool add);
void dp_cpu_multiply(void *self, const float *x, const float *y, size_t n, float *out);
void dp_cpu_multiply_back(void *self, const float *y, const float *dout, size_t n, float *dx, bool add);
void dp_cpu_dot(void *self, const float *x, const float *y, uint32_t examples, uint32_t width, float *out);
void dp_cpu_dot_back(void *self, const float *y, const float *dout, uint32_t examples, uint32_t width,
                     float *dx, bool add);
void dp_cpu_pairs(void *self, const float *x, uint32_t examples, uint32_t vectors, uint32_t width,
                  float *out);
void dp_cpu_pairs_back(void *self, const float *x, const float *dout, uint32_t examples, uint32_t vectors,
                       uint32_t width, float *dx, bool add);
void dp_cpu_softmax_loss(void *self, const float *x, const float *labels, uint32_t examples, uint32_t width,
                         float *loss, float *dx);
void dp_cpu_logistic_loss(void *self, const float *x, const float *labels, uint32_t examples, float *loss,
                          float *dx);
void dp_cpu_squared_loss(void *self, const float *x, const float *labels, uint32_t examples, float *loss,
                         float *dx);
void dp_cpu_bpr_loss(void *self, const float *x, const float *y, uint32_t examples, float *loss, float *dx,
                     float *dy);

#endif
