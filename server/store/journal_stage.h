/* Journal stage: what was appended and is not written yet: a queue of chunks, each a run of one segment's bytes.
 *     put, put, ... (the shard)  ->  close (pads)  ->  write out, oldest first (one thread at a time)
 * Promise   Chunks start and end at whole pages, and are written once, in order. A chunk leaves the queue when it is
 *           written, so that what is written is what is in front of the queue's first.
 * Thread    put, the shard's; it copies without the lock. A chunk is closed by the shard, or, while no record is
 *           being put, by who holds the lock. Whoever set `writing` writes.
 * Memory    DP_JOURNAL_CHUNKS of DP_JOURNAL_CHUNK_BYTES, on 2 MB pages, taken as they are first used; the chunk that
 *           was freed last is used next. What a record larger than half of that needs beyond it is freed when written.
 * Failure   A write that fails poisons the journal; its chunks stay, so that they never count as written. */
#ifndef DP_STORE_JOURNAL_STAGE_H
#define DP_STORE_JOURNAL_STAGE_H

#include "common/env/disk.h"
#include "server/store/journal_record.h"

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
    uint64_t number;    /* of its segment */
    uint64_t at;        /* where in it; a whole page */
    uint64_t first_lsn; /* of the first record that has bytes in it, or will */
};

struct dp_journal_stage {
    struct dp_journal_chunk chunk[DP_JOURNAL_RING]; /* a ring */
    uint8_t *memory, *unused[DP_JOURNAL_RING];
    uint32_t first, count, unused_count;
    struct dp_journal_chunk *last; /* that is, or was, being filled */
    uint64_t closed, written;      /* chunks, ever */
    uint64_t end;                  /* of what was put, in the last segment */
    bool filling;                  /* the last chunk is not closed */
    bool putting;                  /* a record is being put: nobody else closes it */
    bool writing;                  /* somebody writes the first chunks */
};

DP_MUST_USE
enum dp_status dp_journal_stage_init(struct dp_journal_stage *stage, struct dp_error *err);
void dp_journal_stage_clear(struct dp_journal_stage *stage);

/* All with the lock held. */

/* Room for a record of so many bytes and a segment's page: what put takes. DP_JOURNAL_BEHIND: the disk is behind, when durable
 * advances there is more (it does not wait for it); DP_NOMEM; or why it is poisoned. */
DP_MUST_USE
enum dp_status dp_journal_stage_room(struct dp_journal *journal, uint64_t bytes, struct dp_error *err);
/* Gives back what room took beyond the stage's own, for a record that is not put after all. */
void dp_journal_stage_trim(struct dp_journal_stage *stage);
/* Header, pieces, zeros up to `whole` bytes. There is room. */
void dp_journal_stage_put(struct dp_journal *journal, const uint8_t *header, size_t header_bytes,
                          const struct dp_journal_piece *pieces, uint32_t count, uint64_t whole);
/* Nothing while a record is being put. */
void dp_journal_stage_close(struct dp_journal *journal);
/* Writes the first closed chunks, as far as they are one run; nobody may be writing. Lets go of the lock meanwhile. */
DP_MUST_USE
enum dp_status dp_journal_stage_write(struct dp_journal *journal, struct dp_error *err);
/* lsn up to which all is written. */
uint64_t dp_journal_stage_written(const struct dp_journal *journal);

#endif
