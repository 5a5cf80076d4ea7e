/* Journal record: the bytes of the journal's files: the page at the start of a segment and the header at the
 * start of a record. The room's README.md has the format.
 * Promise   take() accepts only what put() made, complete; it returns false for anything else.
 * Thread    Any. */
#ifndef DP_JOURNAL_JOURNAL_RECORD_H
#define DP_JOURNAL_JOURNAL_RECORD_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_JOURNAL_PAGE       4096u /* writes start and end at multiples of it */
#define DP_JOURNAL_HEADER     64u   /* bytes of a record's header, and what records are aligned to */
#define DP_JOURNAL_VERSION    1u
#define DP_JOURNAL_RECORD_MAX ((uint64_t)256 << 20) /* also the largest segment */

struct dp_journal_page {
    uint32_t version;
    uint64_t number;      /* of the segment, also in its name */
    uint64_t incarnation; /* of the opening that wrote it */
    uint64_t first_lsn;   /* of the first record in it */
    uint64_t synced_lsn;  /* all up to here was durable when this was written */
    uint64_t bytes;       /* of the segment */
    uint64_t secret;      /* of the journal, in every page and header of it; 0: of a build that had none */
};

enum dp_journal_kind {
    DP_JOURNAL_RECORD = 1,
    DP_JOURNAL_PAD = 2,   /* fills a page to its end; the payload is zeros and not checked */
    DP_JOURNAL_CLOSED = 3 /* the end of a closed journal; no payload */
};

struct dp_journal_header {
    uint32_t payload_crc;
    enum dp_journal_kind kind;
    uint64_t bytes; /* of the payload, without its padding */
    uint64_t lsn;   /* PAD, CLOSED: of the last record before */
    uint64_t incarnation;
    uint64_t synced_lsn;
    uint64_t secret;
};

void dp_journal_page_put(uint8_t to[DP_JOURNAL_PAGE], const struct dp_journal_page *page);
/* Accepts any version; the caller checks it. */
bool dp_journal_page_take(const uint8_t from[DP_JOURNAL_HEADER], struct dp_journal_page *out);
void dp_journal_header_put(uint8_t to[DP_JOURNAL_HEADER], const struct dp_journal_header *header);
bool dp_journal_header_take(const uint8_t from[DP_JOURNAL_HEADER], struct dp_journal_header *out);
/* Whether this was a header of this kind, lsn, incarnation and secret before it was damaged. */
bool dp_journal_header_resembles(const uint8_t from[DP_JOURNAL_HEADER],
                                 const struct dp_journal_header *wanted);

/* The start value of a payload's CRC: under another lsn or incarnation the same bytes do not fit. */
uint32_t dp_journal_payload_seed(uint64_t incarnation, uint64_t lsn);

/* The size in the file of a record with this payload. */
static inline uint64_t dp_journal_record_bytes(uint64_t payload)
{
    return DP_JOURNAL_HEADER + (payload + DP_JOURNAL_HEADER - 1) / DP_JOURNAL_HEADER * DP_JOURNAL_HEADER;
}
/* Whether this header's record fits into the rest of its file, which has `room` bytes after the header. A
 * record that does not fit was not written by us, whatever its checksum says. */
static inline bool dp_journal_record_fits(const struct dp_journal_header *header, uint64_t room)
{
    return header->bytes <= room && header->bytes <= DP_JOURNAL_RECORD_MAX &&
           dp_journal_record_bytes(header->bytes) <= room + DP_JOURNAL_HEADER;
}
static inline uint64_t dp_journal_page_up(uint64_t at)
{
    return (at + DP_JOURNAL_PAGE - 1) / DP_JOURNAL_PAGE * DP_JOURNAL_PAGE;
}

#endif
