/* Init: the value a row has before its first push, computed, never stored.
 * Promise   A pure function of (spec.seed, spec.name, key, column): equal bits on every processor, shard
 *           count and call order. Counter-based: column c of key k needs no other column. No libm: logarithm
 *           and cosine are polynomials of our own in double, so that a libm of another version changes nothing.
 * Thread    Any; nothing is kept.                                                                     */
#ifndef DP_MODEL_INIT_H
#define DP_MODEL_INIT_H

#include "common/model/table.h"

/* weights: f32[spec->dim]; key is the user's key (unmixed). */
void dp_init_weights(const struct dp_table_spec *spec, uint64_t key, float *weights);
/* A whole fresh record (row.h): lsn 0, step 0, initial weights and slots; row: dp_row_bytes(spec), 4-byte
 * aligned. */
void dp_init_row(const struct dp_table_spec *spec, uint64_t key, void *row);

#endif
