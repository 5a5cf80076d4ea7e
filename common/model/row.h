/* Row: the one record of a key, the same in memory and in RocksDB, little endian:
 *     lsn u64 | step u32 | format u32 | weights f32[dim] | slots f32[slots][dim]
 * lsn is the journal position of the last push applied (0: never), step the number of pushes applied to this
 * row (Adam's t), format DP_ROW_FORMAT. Records are 4-byte aligned in memory, of no alignment elsewhere. */
#ifndef DP_MODEL_ROW_H
#define DP_MODEL_ROW_H

#include "common/base/bytes.h"
#include "common/model/table.h"

#define DP_ROW_HEADER 16u
#define DP_ROW_FORMAT 1u

/* Slots that the optimizer keeps in addition to the weights, each of dim floats. */
uint32_t dp_row_slots(const struct dp_optimizer_spec *optimizer);
/* What a slot is called: "m". NULL: the optimizer keeps no such slot. */
const char *dp_row_slot_name(const struct dp_optimizer_spec *optimizer, uint32_t slot);

static inline size_t dp_row_bytes(const struct dp_table_spec *spec)
{
    return DP_ROW_HEADER + (size_t)spec->dim * 4u * (1u + dp_row_slots(&spec->optimizer));
}
static inline uint64_t dp_row_lsn(const void *row)
{
    return dp_load_u64le(row);
}
static inline uint32_t dp_row_step(const void *row)
{
    return dp_load_u32le((const char *)row + 8);
}
static inline uint32_t dp_row_format(const void *row)
{
    return dp_load_u32le((const char *)row + 12);
}
static inline void dp_row_set_lsn(void *row, uint64_t lsn)
{
    dp_store_u64le(row, lsn);
}
static inline void dp_row_set_step(void *row, uint32_t step)
{
    dp_store_u32le((char *)row + 8, step);
}
static inline float *dp_row_weights(void *row)
{
    return (float *)(void *)((char *)row + DP_ROW_HEADER);
}
static inline const float *dp_row_weights_const(const void *row)
{
    return (const float *)(const void *)((const char *)row + DP_ROW_HEADER);
}

#endif
