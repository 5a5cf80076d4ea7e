/* Record: one push as the journal keeps it: all that applying it again needs. Little endian:
 *     format u32 (1) | sections u32 | stream u64 | number u64 | rate f32 | status u32 |
 *     sections times: table u32 | rows u32 | type u32 (0 f32, 1 bf16) | dim u32
 *     then for each section: keys u64[rows] | values [rows][dim] of type
 * status: 0, or that with which the push was refused for good: it has no sections then, and only uses up its
 * number.
 * Memory    Encoding lends from the request; decoding lends from the record. */
#ifndef DP_SHARD_RECORD_H
#define DP_SHARD_RECORD_H

#include "common/wire/request.h"
#include "server/store/journal.h"

#define DP_RECORD_PIECES_MAX (1u + 2u * DP_SECTIONS_MAX)
#define DP_RECORD_HEAD_MAX   (32u + 16u * DP_SECTIONS_MAX)

/* head: DP_RECORD_HEAD_MAX bytes, lent to pieces[0]. dims[s]: width of section s's table. Returns the number of
 * pieces. */
uint32_t dp_record_encode(const struct dp_request *push, const uint32_t *dims, enum dp_status refused,
                          char *head, struct dp_journal_piece pieces[DP_RECORD_PIECES_MAX]);
/* Fills the push's part of a request, *refused, and dims. DP_CORRUPT: the bytes are not a record (their CRC was
 * right: another program's journal). */
DP_MUST_USE
enum dp_status dp_record_decode(const void *bytes, size_t size, struct dp_request *out,
                                enum dp_status *refused, uint32_t dims[DP_SECTIONS_MAX],
                                struct dp_error *err);

#endif
