#include "server/journal/journal_cut.h"

#include "server/journal/journal_segment.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static void add(struct dp_journal_cut *cut, uint64_t number, uint64_t at, uint64_t bytes)
{
    if (cut->rest == DP_JOURNAL_REST_NONE) {
        cut->number = number;
        cut->offset = at;
    }
    if (number != cut->number)
        cut->bytes += bytes;
    else if (at + bytes - cut->offset > cut->bytes)
        cut->bytes = at + bytes - cut->offset;
}

static bool is_zero(const uint8_t block[DP_JOURNAL_HEADER])
{
    static const uint8_t zeros[DP_JOURNAL_HEADER];
    return memcmp(block, zeros, sizeof zeros) == 0;
}

void dp_journal_cut_see(struct dp_journal_cutting *cutting, uint64_t number, uint64_t at, uint64_t room,
                        const uint8_t block[DP_JOURNAL_HEADER], const struct dp_journal_header *header)
{
    struct dp_journal_cut *cut = &cutting->cut;
    bool last = number == cutting->number;
    cut->lsn = cutting->end.lsn;
    if (header) {
        bool same = header->incarnation >= cutting->end.incarnation && header->lsn >= cutting->end.lsn;
        cutting->explained = cutting->explained || last;
        if (!same || header->kind != DP_JOURNAL_RECORD)
            return;
        uint64_t whole = dp_journal_record_bytes(header->bytes);
        add(cut, number, at, whole < room ? whole : room);
        cut->rest = DP_JOURNAL_REST_RECORDS;
        return;
    }
    if (!last || cutting->explained || is_zero(block))
        return;
    add(cut, number, at, DP_JOURNAL_HEADER);
    bool damaged = at == cutting->offset && dp_journal_header_resembles(block, &cutting->end);
    if (damaged)
        cut->rest = DP_JOURNAL_REST_RECORDS;
    else if (cut->rest == DP_JOURNAL_REST_NONE)
        cut->rest = DP_JOURNAL_REST_UNKNOWN;
}

void dp_journal_cut_text(const struct dp_journal_cut *cut, char text[DP_JOURNAL_CUT_TEXT])
{
    char name[DP_JOURNAL_NAME_BYTES];
    dp_journal_segment_name(name, cut->number);
    text[0] = '\0';
    if (cut->rest == DP_JOURNAL_REST_RECORDS)
        (void)snprintf(
            text, DP_JOURNAL_CUT_TEXT,
            "cut off %" PRIu64 " bytes in %s from offset %" PRIu64 ": record lsn %" PRIu64
            " is incomplete there, and nothing claims it. A crash during a write leaves this, but so "
            "does damage to a record of the last 100 ms: if nothing was being pushed, check the disk's "
            "health",
            cut->bytes, name, cut->offset, cut->lsn);
    else if (cut->rest == DP_JOURNAL_REST_UNKNOWN)
        (void)snprintf(text, DP_JOURNAL_CUT_TEXT,
                       "%" PRIu64 " bytes in %s from offset %" PRIu64
                       " belong to no record: former content of a recycled segment, or a write that a crash "
                       "interrupted; the next record is lsn %" PRIu64,
                       cut->bytes, name, cut->offset, cut->lsn);
}
