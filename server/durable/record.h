/* Record: one push in the journal's form, with all that is needed to apply it again. Little endian:
 *     format u32 (1) | sections u32 | stream u64 | number u64 | rate f32 | status u32 |
 *     sections times: table u32 | rows u32 | type u32 (0 f32, 1 bf16) | dim u32
 *     then for each section: keys u64[rows] | values [rows][dim] of type
 * status: 0, or the status of a push that was refused for good: the record then has no sections and only uses
 * up the push's number.
 * Memory    Encoded pieces point into the request; a decoded push points into the record. */
#ifndef DP_DURABLE_RECORD_H
#define DP_DURABLE_RECORD_H

#include "common/wire/request.h"
#include "server/journal/journal.h"

#define DP_RECORD_PIECES_MAX (1u + 2u * DP_SECTIONS_MAX)
#define DP_RECORD_HEAD_MAX   (32u + 16u * DP_SECTIONS_MAX)

/* head: DP_RECORD_HEAD_MAX bytes that pieces[0] points to. dims[s]: width of section s's table. Returns the
 * number of pieces. */
uint32_t dp_record_encode(const struct dp_request *push, const uint32_t *dims, enum dp_status refused,
                          char *head, struct dp_journal_piece pieces[DP_RECORD_PIECES_MAX]);
/* Fills the push's members of a request, *refused, and dims. DP_CORRUPT: the bytes are not a record, although
 * their CRC fits (another program's journal). */
DP_MUST_USE
enum dp_status dp_record_decode(const void *bytes, size_t size, struct dp_request *out,
                                enum dp_status *refused, uint32_t dims[DP_SECTIONS_MAX],
                                struct dp_error *err);

#endif
