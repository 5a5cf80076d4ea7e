/* Backend: the operations of graph.h on one kind of device, as a struct of functions: cpu.c now, CUDA beside
 * it. The CPU form is the oracle of every other.
 * Memory    A backend gives buffers on its device; host pointers are handed to it in copy_in / copy_out only,
 *           unless host_memory says that they are its own. Every operation works on buffers of the shapes
 *           that graph.h gives, row-major, f32.
 * Promise   Equal inputs give equal bits on one kind of machine and thread count: sums run in a fixed order.
 * Overlap   A backend with `mark` copies while it computes. The steps under way have slots, with buffers of their own:
 *               mark(IN)  copies in  mark(COMPUTE)  operations  mark(OUT)  copies out  mark(END)  ...  wait
 *           A slot's operations begin when its copies in are there, its copies out when its operations are done; operations
 *           of two steps follow each other. Host memory that is copied stays as it is, or is not read, until wait.
 * Thread    One thread uses one backend.
 * Failure   A device's error is translated where it occurs; DP_NOMEM from alloc; operations return nothing:
 *           what failed in one is said by `finish`. On the CPU they do not fail. A wait ends: a device that does not answer
 *           has failed.                                                                                  */
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
    /* Only where the backend wants_by_slot, else NULL: */
    const uint32_t *example_of;   /* [count] */
    const uint32_t *by_slot;      /* [count] */
    const uint32_t *slot_offsets; /* [distinct + 1] */
};

/* Columns from .. from + count - 1 of a matrix of from_width to columns to .. of one of to_width. */
struct dp_columns {
    uint32_t from_width, from, to_width, to, count;
};

/* Gradients: the first that writes one in a backward pass sets it (add false), later ones add to it: so that
 * nothing has to be zeroed. With add false all of it is written. Operations on single elements may be called
 * in place: out == x, and in their backward form dx == dout with add false. */
#define DP_BACKEND_SLOTS 2u

/* Of this header's meanings, for backends that are loaded (plugin.h): raised with any change that its sizes do not show. */
#define DP_BACKEND_VERSION 2u

enum dp_stage { DP_STAGE_IN, DP_STAGE_COMPUTE, DP_STAGE_OUT, DP_STAGE_END };

/* Seconds of one step by the device's clock. copy_in is from mark(IN) on: the host has packed all before it. */
struct dp_device_times {
    double copy_in, compute, copy_out;
};

struct dp_backend_ops {
    const char *name;        /* "cpu" */
    bool host_memory;        /* host pointers may be given where device pointers are asked for */
    bool wants_by_slot;      /* gather_sum_back needs the lists by slot */
    bool loads_at_first_use; /* operations may lack memory when they are first used: first_step.h */
    void (*close)(void *self);
    enum dp_status (*alloc)(void *self, size_t bytes, void **out,
                            struct dp_error *err); /* 64-byte aligned; its contents are anything */
    void (*release)(void *self, void *block);
    /* Host memory that copies go from and to while the host goes on; NULL: the backend has no use for it. */
    enum dp_status (*pin)(void *self, void *host, size_t bytes, struct dp_error *err);
    /* false: the device is lost, and may write there until the process ends: the memory must not be freed. */
    bool (*unpin)(void *self, void *host);
    enum dp_status (*copy_in)(void *self, void *device, const void *host, size_t bytes, struct dp_error *err);
    enum dp_status (*copy_out)(void *self, void *host, const void *device, size_t bytes,
                               struct dp_error *err);
    enum dp_status (*zero)(void *self, void *block, size_t bytes, struct dp_error *err);
    /* Waits for all issued work; reports its failure. */
    enum dp_status (*finish)(void *self, struct dp_error *err);
    /* Overlap (above); all three NULL: calls are carried out in their order, and there is one slot. done: wait will not wait,
     * for better or worse. */
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
    void (*columns)(void *self, const float *x, const struct dp_columns *columns, uint32_t examples,
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
    /* dx = dout, or dx += dout: the gradient of every operand of a sum */
    void (*copy_back)(void *self, const float *dout, size_t n, float *dx, bool add);
    /* Losses: *loss is the mean (device scalar, f32, summed in f64); dx is set to d loss / d x, and may be
     * NULL. Class labels are whole numbers below width. */
    void (*softmax_loss)(void *self, const float *x, const float *labels, uint32_t examples, uint32_t width,
                         float *loss, float *dx);
    void (*logistic_loss)(void *self, const float *x, const float *labels, uint32_t examples, float *loss,
                          float *dx);
    void (*squared_loss)(void *self, const float *x, const float *labels, uint32_t examples, float *loss,
                         float *dx);
    void (*bpr_loss)(void *self, const float *x, const float *y, uint32_t examples, float *loss, float *dx,
                     float *dy);
};

struct dp_backend {
    const struct dp_backend_ops *ops;
    void *self;
};

/* threads: OpenBLAS's threads, 1 .. 1024. OpenBLAS keeps one number for the whole process: the last opened
 * backend sets it. */
DP_MUST_USE
enum dp_status dp_backend_cpu(uint32_t threads, struct dp_backend *out, struct dp_error *err);
static inline void dp_backend_close(struct dp_backend *backend)
{
    if (backend->ops)
        backend->ops->close(backend->self);
    backend->ops = NULL;
    backend->self = NULL;
}

#endif
