/* Backend: the operations of graph.h on one kind of device, as a struct of functions. The CPU's backend is
 * the reference for all others.
 * Memory    A backend allocates buffers on its device; it takes host pointers in copy_in and copy_out only,
 *           or everywhere if host_memory is set. Every operation works on buffers of the shapes in graph.h,
 *           row-major, f32.
 * Promise   Equal inputs give equal bits on one kind of machine and thread count: sums run in a fixed order.
 * Overlap   A backend with `mark` copies while it computes. Each step under way has a slot, with buffers of
 *           its own:
 *               mark(IN)  copies in  mark(COMPUTE)  operations  mark(OUT)  copies out  mark(END)  ...  wait
 *           A slot's operations begin when its copies in are done, its copies out when its operations are
 *           done; the operations of two steps do not overlap. Before wait returns, the caller does not
 *           change host memory that is copied in, and does not read host memory that is copied out.
 * Thread    One thread uses one backend; the CPU's has no state, and any number may.
 * Failure   A device's error is translated where it occurs. alloc returns DP_NOMEM. Operations return
 *           nothing: `finish` reports their failure; on the CPU they do not fail. Every wait ends: a device
 *           that does not answer has failed. */
#ifndef DP_COMPUTE_BACKEND_H
#define DP_COMPUTE_BACKEND_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Entries of a sparse batch, on the device. by_slot lists the entries sorted by (slot, entry): the entries of
 * slot s are by_slot[slot_offsets[s]] .. by_slot[slot_offsets[s+1]-1], so that a slot's gradient is summed in
 * one fixed order. */
struct dp_entries {
    uint32_t examples, distinct, count;
    const uint32_t *offsets; /* [examples + 1] */
    const uint32_t *slots;   /* [count] */
    const float *values;     /* [count] */
    /* Only if the backend has wants_by_slot, else NULL: */
    const uint32_t *example_of;   /* [count] */
    const uint32_t *by_slot;      /* [count] */
    const uint32_t *slot_offsets; /* [distinct + 1] */
};

/* Copies columns from .. from + count - 1 of a matrix of from_width columns to columns to .. of a matrix of
 * to_width. */
struct dp_column_copy {
    uint32_t from_width, from, to_width, to, count;
};

/* Steps that may be under way. */
#define DP_BACKEND_SLOTS 2u

/* The version of this header's meaning, for backends that are loaded (plugin.h): raise it with any change
 * that the sizes of its structs do not show. */
#define DP_BACKEND_VERSION 4u

enum dp_stage { DP_STAGE_IN, DP_STAGE_COMPUTE, DP_STAGE_OUT, DP_STAGE_END };

/* Seconds of one step by the device's clock. copy_in is from mark(IN) on: the host has packed all before
 * it. */
struct dp_device_times {
    double copy_in, compute, copy_out;
};

/* Gradients: the first operation that writes one in a backward pass sets all of it (add false), later ones
 * add to it, so that nothing has to be zeroed. Operations on single elements may be called in place: out ==
 * x, and in their backward form dx == dout with add false. */
struct dp_backend_ops {
    const char *name;        /* "cpu" */
    bool host_memory;        /* takes host pointers as device pointers */
    bool wants_by_slot;      /* gather_sum_back needs the lists by slot */
    bool loads_at_first_use; /* the first use of an operation may run out of memory: first_step.h */
    void (*close)(void *self);
    /* 64-byte aligned, not initialized. */
    enum dp_status (*alloc)(void *self, size_t bytes, void **out, struct dp_error *err);
    void (*release)(void *self, void *block);
    /* Pins host memory, so that copies overlap with the host; NULL: the backend does not need it. */
    enum dp_status (*pin)(void *self, void *host, size_t bytes, struct dp_error *err);
    /* Returns false when the device is lost and may still write there: the memory must not be freed. */
    bool (*unpin)(void *self, void *host);
    enum dp_status (*copy_in)(void *self, void *device, const void *host, size_t bytes, struct dp_error *err);
    enum dp_status (*copy_out)(void *self, void *host, const void *device, size_t bytes,
                               struct dp_error *err);
    enum dp_status (*zero)(void *self, void *block, size_t bytes, struct dp_error *err);
    /* Waits for all issued work and reports its failure. */
    enum dp_status (*finish)(void *self, struct dp_error *err);
    /* Overlap (above). All three NULL: calls are executed in order, and there is one slot. done: whether
         * wait returns at once, also with a failure. */
    void (*mark)(void *self, enum dp_stage stage, uint32_t slot);
    bool (*done)(void *self, uint32_t slot);
    enum dp_status (*wait)(void *self, uint32_t slot, struct dp_device_times *times, struct dp_error *err);

    /* Rows of a sparse parameter p [distinct, width]. mean: each example's sum over its number of entries. */
    void (*gather_sum)(void *self, const struct dp_entries *e, const float *p, uint32_t width, bool mean,
                       float *out);
    /* In each backward form dp[slot] sums its entries in ascending order. */
    void (*gather_sum_back)(void *self, const struct dp_entries *e, const float *dout, uint32_t width,
                            bool mean, float *dp, bool add);
    /* out, dout: [entries, width] */
    void (*gather)(void *self, const struct dp_entries *e, const float *p, uint32_t width, float *out);
    void (*gather_back)(void *self, const struct dp_entries *e, const float *dout, uint32_t width, float *dp,
                        bool add);
    /* sums [examples, width]: each example's sum of rows, which the backward form takes. */
    void (*interactions)(void *self, const struct dp_entries *e, const float *p, uint32_t width, float *sums,
                         float *out);
    void (*interactions_back)(void *self, const struct dp_entries *e, const float *p, const float *sums,
                              const float *dout, uint32_t width, float *dp, bool add);
    void (*matmul)(void *self, const float *x, const float *p, uint32_t examples, uint32_t k, uint32_t width,
                   float *out);
    void (*matmul_back_x)(void *self, const float *p, const float *dout, uint32_t examples, uint32_t k,
                          uint32_t width, float *dx, bool add);
    void (*matmul_back_p)(void *self, const float *x, const float *dout, uint32_t examples, uint32_t k,
                          uint32_t width, float *dp, bool add);
    void (*bias)(void *self, const float *x, const float *p, uint32_t examples, uint32_t width, float *out);
    /* Its gradient for x is copy_back's. */
    void (*bias_back_p)(void *self, const float *dout, uint32_t examples, uint32_t width, float *dp,
                        bool add);
    void (*relu)(void *self, const float *x, size_t n, float *out);
    void (*relu_back)(void *self, const float *out, const float *dout, size_t n, float *dx, bool add);
    void (*sigmoid)(void *self, const float *x, size_t n, float *out);
    void (*sigmoid_back)(void *self, const float *out, const float *dout, size_t n, float *dx, bool add);
    void (*tanh_)(void *self, const float *x, size_t n, float *out);
    void (*tanh_back)(void *self, const float *out, const float *dout, size_t n, float *dx, bool add);
    /* Its backward form is the same with dout for x. Element i stays as dp_dropout_keeps says (dropout.h). */
    void (*dropout)(void *self, const float *x, size_t n, uint64_t seed, float rate, float *out, bool add);
    void (*columns)(void *self, const float *x, const struct dp_column_copy *columns, uint32_t examples,
                    float *out, bool add);
    void (*sum)(void *self, const float *x, const float *y, size_t n, float *out);
    void (*multiply)(void *self, const float *x, const float *y, size_t n, float *out);
    /* dx = dout * y */
    void (*multiply_back)(void *self, const float *y, const float *dout, size_t n, float *dx, bool add);
    /* out [examples]; dx[i] = dout[i] * y[i] */
    void (*dot)(void *self, const float *x, const float *y, uint32_t examples, uint32_t width, float *out);
    void (*dot_back)(void *self, const float *y, const float *dout, uint32_t examples, uint32_t width,
                     float *dx, bool add);
    /* x [examples, vectors, width], out [examples, vectors (vectors - 1) / 2] */
    void (*pairs)(void *self, const float *x, uint32_t examples, uint32_t vectors, uint32_t width,
                  float *out);
    void (*pairs_back)(void *self, const float *x, const float *dout, uint32_t examples, uint32_t vectors,
                       uint32_t width, float *dx, bool add);
    /* out [examples]; saved [entries]: the derivative of each entry's part by its product. */
    void (*near)(void *self, const struct dp_entries *e, const float *x, const float *p, uint32_t width,
                 float *saved, float *out);
    void (*near_back_x)(void *self, const struct dp_entries *e, const float *p, const float *saved,
                        const float *dout, uint32_t width, float *dx, bool add);
    void (*near_back_p)(void *self, const struct dp_entries *e, const float *x, const float *saved,
                        const float *dout, uint32_t width, float *dp, bool add);
    /* dx = dout, or dx += dout: the gradient of every operand of a sum */
    void (*copy_back)(void *self, const float *dout, size_t n, float *dx, bool add);
    /* Losses: *loss is the mean (device scalar, f32, summed in f64); dx is set to d loss / d x, and may be
     * NULL. Class labels are whole numbers below width. weights: NULL, or [examples], by which each example's
     * loss is multiplied; the sum is divided by `examples` all the same. */
    void (*softmax_loss)(void *self, const float *x, const float *labels, const float *weights,
                         uint32_t examples, uint32_t width, float *loss, float *dx);
    void (*logistic_loss)(void *self, const float *x, const float *labels, const float *weights,
                          uint32_t examples, float *loss, float *dx);
    void (*squared_loss)(void *self, const float *x, const float *labels, const float *weights,
                         uint32_t examples, float *loss, float *dx);
    void (*mean_loss)(void *self, const float *x, uint32_t examples, float *loss, float *dx);
    void (*bpr_loss)(void *self, const float *x, const float *y, uint32_t examples, float *loss, float *dx,
                     float *dy);
};

struct dp_backend {
    const struct dp_backend_ops *ops;
    void *self;
};

/* threads: of OpenBLAS, 1 .. 1024. OpenBLAS has one number for the whole process, set by the last opened
 * backend. */
enum dp_status dp_backend_cpu(uint32_t threads, struct dp_backend *out, struct dp_error *err);
static inline void dp_backend_close(struct dp_backend *backend)
{
    if (backend->ops)
        backend->ops->close(backend->self);
    backend->ops = NULL;
    backend->self = NULL;
}

#endif
