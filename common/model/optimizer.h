/* Optimizer: apply(row, gradient, rate), a pure function of its arguments and the table's hyperparameters.
 * Promise   The AVX2+FMA form and the portable form give equal bits: every operation is a single IEEE f32
 *           (or, for Adam's corrections, f64) operation or an explicit fma, in one order; no libm pow. The
 *           gradient is summed nowhere in here: a row of a call is one push of it.
 * The formulas are in table.h. Each adds 1 to the row's step (it stays at UINT32_MAX). The row's lsn is the caller's.
 * Running means (v of momentum; Adam's m, and v with it) under 2^-120 become 0, so none is ever subnormal.
 * Finite    A row that comes out is finite. A value beyond f32 stays at the largest finite number of its
 *           sign. If the square of a gradient g' would be infinite in the optimizer, the largest gradient
 *           with a finite square takes its place. Arithmetic that does not overflow has the bits of the
 *           formulas above.
 * Thread    A prepared optimizer is constant: any. */
#ifndef DP_MODEL_OPTIMIZER_H
#define DP_MODEL_OPTIMIZER_H

#include "common/model/table.h"

struct dp_optimizer;

enum dp_optimizer_form { DP_FORM_BEST, DP_FORM_PORTABLE, DP_FORM_AVX2 };

/* BEST takes AVX2 where the processor has it with FMA. DP_UNSUPPORTED when a form asked for is not there. */
enum dp_status dp_optimizer_new(const struct dp_table_spec *spec, enum dp_optimizer_form form,
                                struct dp_optimizer **out, struct dp_error *err);
/* The same, with the corrections of `like` (or NULL) where they are equal: Adam's take some 0.3 MB and
 * milliseconds. The two then belong to one thread. */
enum dp_status dp_optimizer_new_like(const struct dp_table_spec *spec, enum dp_optimizer_form form,
                                     const struct dp_optimizer *like, struct dp_optimizer **out,
                                     struct dp_error *err);
void dp_optimizer_free(struct dp_optimizer **optimizer);

/* row: a record of the spec's table (row.h). gradient: dim f32, little endian, of any alignment, no NaN. rate: finite, at
 * least FLT_MIN. Returns whether a value was beyond its bound ("Finite", above). */
_Bool dp_optimizer_apply(const struct dp_optimizer *optimizer, void *row, const void *gradient, float rate);
/* The same for many rows, one after the other; rows[i] NULL: left out. gradients: [n][dim]. Returns for how
 * many a value was beyond its bound. */
uint32_t dp_optimizer_apply_rows(const struct dp_optimizer *optimizer, void *const *rows, uint32_t n,
                                 const void *gradients, float rate);

/* Whether n f32 (any alignment) are all finite; as fast as memory. */
_Bool dp_all_finite_f32(const void *values, size_t n);
_Bool dp_all_finite_bf16(const void *values, size_t n);

#endif
