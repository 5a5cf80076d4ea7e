/* Table mark: how the store keeps that a table exists.
 * Mark      key "table/" and the id in 8 hex digits; value little endian:
 *               format u32 (1) | name 48 | dim u32 | seed u64 |
 *               init: kind u32, scale f32, fan_in u32, fan_out u32 |
 *               optimizer: kind u32, l2, momentum, beta1, beta2, epsilon, decay, l1, ftrl_beta, accumulator
 *               f32 | rows u64
 *           rows: of the table when the mark was put, or DP_TABLE_ROWS_UNKNOWN (after a crash they are
 *           counted again).
 * Thread    Any; pure. */
#ifndef DP_DURABLE_TABLE_MARK_H
#define DP_DURABLE_TABLE_MARK_H

#include "common/model/table.h"
#include "server/store/store.h"

#define DP_TABLE_MARK_PREFIX  "table/"
#define DP_TABLE_ROWS_UNKNOWN UINT64_MAX
/* What encode needs: key with its ending 0, and value. */
#define DP_TABLE_MARK_BYTES (14u + 1u + 4u + 48u + 4u + 8u + 16u + 40u + 8u)

/* Key and value lie in `bytes`. */
struct dp_store_mark dp_table_mark_encode(const struct dp_table_spec *spec, uint64_t rows,
                                          char bytes[DP_TABLE_MARK_BYTES]);
/* DP_CORRUPT, naming the mark: it is no table of this format, or one that cannot be. */
enum dp_status dp_table_mark_decode(const struct dp_store_mark *mark, struct dp_table_spec *spec,
                                    uint64_t *rows, struct dp_error *err);

#endif
