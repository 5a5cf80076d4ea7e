/* Record: one change in the journal, with all that a replay needs to apply it again. Little endian:
 *     format u32 (2) | sections u32 | stream u64 | number u64 | rate f32 | status u32 |
 *     kind u32 | members u32 | run u32 | rank u32 | step u64 | examples u64 | view u64 |
 *     sections times: table u32 | rows u32 | type u32 (0 f32, 1 bf16) | dim u32
 *     then for each section: keys u64[rows] | values [rows][dim] of type
 * kind      1 PUSH: applied at once. status: 0, or the status of a push that was refused for good: the record
 *           then has no sections and only uses up the push's number; nor has one whose synchronous step was closed without it.
 *           2 KEPT_PUSH: of a synchronous step; applied by the step's CLOSE.
 *           3 VIEW: the members from now on. No sections; after the head the view's bytes (common/wire/view.h).
 *           4 CLOSE: the kept pushes of run and step are applied, as one. members: how many they are; examples:
 *           of all of them; view: by which it closed; the sections' values: the rows' weights before. members 0: a close
 *           that was applied before, of which only these weights are kept again.
 *           5 VOID: nothing. It takes the place of a record that is left out of a copied journal (server/checkpoint), so
 *           that the lsns of the others stay. Only its head.
 *           members of a push: 1: run, rank, step, examples and view are those of its member; 0: it named none.
 * Memory    Encoded pieces point into the request and the view. A decoded record points into the encoded
 *           one. */
#ifndef DP_JOURNAL_RECORD_H
#define DP_JOURNAL_RECORD_H

#include "common/wire/request.h"
#include "server/journal/journal.h"

#define DP_RECORD_PIECES_MAX (1u + 2u * DP_SECTIONS_MAX)
#define DP_RECORD_HEAD_MAX   (72u + 16u * DP_SECTIONS_MAX)

enum dp_record_kind {
    DP_RECORD_PUSH = 1,
    DP_RECORD_KEPT_PUSH,
    DP_RECORD_VIEW,
    DP_RECORD_CLOSE,
    DP_RECORD_VOID
};

/* What a record has in addition to the fields of a push. */
struct dp_record {
    enum dp_record_kind kind;
    enum dp_status refused;      /* PUSH; else DP_OK */
    bool dropped;                /* PUSH, to be encoded: it has no sections, though it was not refused */
    uint32_t members, run, rank; /* all 0 in a VIEW, whose bytes say it */
    uint64_t step, examples, view;
    float rate;                     /* at which it is applied; encode takes it from here, not from the push */
    uint32_t dims[DP_SECTIONS_MAX]; /* width of each section's table */
    const void *bytes;              /* VIEW */
    size_t size;
};

/* Whether its sections are rows that it changes. */
static inline bool dp_record_changes_rows(const struct dp_record *record)
{
    return record->kind == DP_RECORD_PUSH || (record->kind == DP_RECORD_CLOSE && record->members > 0);
}

/* push: stream, number, sections; of a VIEW or VOID NULL. head: DP_RECORD_HEAD_MAX bytes that pieces[0] points to.
 * Returns the number of pieces. */
uint32_t dp_record_encode(const struct dp_record *record, const struct dp_request *push, char *head,
                          struct dp_journal_piece pieces[DP_RECORD_PIECES_MAX]);
/* Fills those fields of a request (kind: PUSH; of a VIEW or VOID: no sections). DP_CORRUPT: the bytes are not a record,
 * although their CRC fits (another program's journal). */
enum dp_status dp_record_decode(const void *bytes, size_t size, struct dp_record *record,
                                struct dp_request *out, struct dp_error *err);

#endif
