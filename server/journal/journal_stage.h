/* Journal stage: a queue of the bytes that were appended and are not written yet. Each chunk is a contiguous
 * part of one segment.
 *     put, put, ... (the shard)  ->  close (pads)  ->  write out, oldest first (one thread at a time)
 * Promise   Chunks start and end at page boundaries and are written once, in order. A chunk leaves the
 *           queue when it is written, so everything before the queue's first chunk is written.
 * Thread    The shard's thread puts; it copies without the lock. The shard closes a chunk or, while no record
 *           is being put, the holder of the lock. The thread that set `writing` writes.
 * Memory    DP_JOURNAL_CHUNKS chunks of DP_JOURNAL_CHUNK_BYTES, on 2 MB pages that are touched at their first
 *           use; the chunk that was freed last is used next. A record larger than half of that gets extra
 *           chunks, which are freed once written.
 * Failure   A failed write poisons the journal. Its chunks stay in the queue, so they never count as
 *           written. */
#ifndef DP_JOURNAL_JOURNAL_STAGE_H
#define DP_JOURNAL_JOURNAL_STAGE_H

#include "common/env/disk.h"
#include "server/journal/journal_record.h"

#include <stdbool.h>

#define DP_JOURNAL_CHUNK_BYTES ((size_t)1 << 20)
#define DP_JOURNAL_CHUNKS      16u
#define DP_JOURNAL_RING        (2u * DP_JOURNAL_CHUNKS + (uint32_t)(DP_JOURNAL_RECORD_MAX / DP_JOURNAL_CHUNK_BYTES))
#define DP_JOURNAL_LOCKED_MAX  (32u * 1024u) /* a larger record is copied without the lock */

struct dp_journal;
struct dp_journal_piece;

struct dp_journal_chunk {
    uint8_t *data;
    size_t bytes;
    struct dp_file *file;
    uint64_t number;    /* its segment's */
    uint64_t at;        /* offset in the segment; a multiple of the page */
    uint64_t first_lsn; /* of the first record that has, or will have, bytes in it */
};

struct dp_journal_stage {
    struct dp_journal_chunk chunk[DP_JOURNAL_RING]; /* a ring */
    uint8_t *memory, *unused[DP_JOURNAL_RING];
    uint32_t first, count, unused_count;
    struct dp_journal_chunk *last; /* the chunk being filled, or filled last */
    uint64_t closed, written;      /* chunks, in total */
    uint64_t end;                  /* end of what was put, in the last segment */
    bool filling;                  /* the last chunk is not closed */
    bool putting;                  /* a record is being put: only the shard may close the chunk */
    bool writing;                  /* a thread is writing the first chunks */
};

enum dp_status dp_journal_stage_init(struct dp_journal_stage *stage, struct dp_error *err);
void dp_journal_stage_clear(struct dp_journal_stage *stage);

/* The lock must be held for all of the following. */

/* Reserves space for a record of so many bytes and a segment's page, so that put cannot fail. Does not wait.
 * DP_BEHIND: the disk is behind, and there will be space when durable advances. Also DP_NOMEM, or the status
 * of a poisoned journal. */
enum dp_status dp_journal_stage_room(struct dp_journal *journal, uint64_t bytes, struct dp_error *err);
/* Frees the extra chunks that _room added, for a record that is not put after all. */
void dp_journal_stage_trim(struct dp_journal_stage *stage);
/* Puts the header, the pieces, and zeros up to `whole` bytes, into reserved space. */
void dp_journal_stage_put(struct dp_journal *journal, const uint8_t *header, size_t header_bytes,
                          const struct dp_journal_piece *pieces, uint32_t count, uint64_t whole);
/* Closes the chunk being filled; does nothing while a record is being put. */
void dp_journal_stage_close(struct dp_journal *journal);
/* Writes the first closed chunks that are contiguous, and releases the lock while it does. No other thread may be
 * writing. A failure poisons the journal. */
enum dp_status dp_journal_stage_write(struct dp_journal *journal);
/* The lsn up to which all is written. */
uint64_t dp_journal_stage_written(const struct dp_journal *journal);

#endif
