/* The journal's records about itself: pages, pads, its end, and the claim of an idle journal.
 *     idle:  sync what the mode has not synced -> write one page that claims all of it -> sync   (always in
 *     this order)
 * Why   Headers written after a record was durable claim it. Nothing follows the last record, so damage to it
 *       would look like a torn tail, and acknowledged records would be cut. After an idle claim such damage
 *       is refused by name. The page has the form of a pad, so that builds without idle claims can read it.
 * Holds claimed <= synced. While a claim is being written no other thread writes: in mode process a record
 * after an
 *       unwritten page would count as durable, and an opening would not find it. */
#include "server/journal/journal_inner.h"

#include <string.h>

void dp_journal_roll(struct dp_journal *journal, uint8_t page[DP_JOURNAL_PAGE])
{
    DP_ASSERT(journal->next.file);
    dp_journal_stage_close(journal);
    journal->segments[journal->count - 1].last_lsn = journal->last;
    DP_ASSERT(journal->count < journal->capacity);
    struct dp_journal_segment *segment = &journal->segments[journal->count++];
    *segment = journal->next;
    segment->first_lsn = journal->last + 1;
    segment->last_lsn = journal->last;
    journal->next = (struct dp_journal_segment){0};
    journal->want_bytes = 0;
    journal->stage.end = 0;
    dp_journal_page_of(journal, segment, atomic_load(&journal->synced), page);
    journal->want_segment = true;
    if (journal->options.durability == DP_DURABILITY_PROCESS)
        journal->want_round = true; /* syncs the finished segment, so that little is ever unsynced */
    (void)pthread_cond_signal(&journal->wanted);
}

static bool fits(const struct dp_journal *journal)
{
    return journal->stage.end + DP_JOURNAL_PAGE <= journal->segments[journal->count - 1].bytes;
}

/* In a segment that is full to its last byte, the next one's page makes the claim: the next record would
 * begin that segment anyway. No segment is made just for that: the claim waits for it. */
bool dp_journal_can_claim(const struct dp_journal *journal)
{
    /* While a record is put, without the lock, its place must not be read. */
    return journal->claimed < journal->last && !journal->stage.putting &&
           (fits(journal) || journal->next.file);
}

/* Prepares one page after all that was written (nothing is staged), and returns its offset. Lock held. */
static void take_page(struct dp_journal *journal, enum dp_journal_kind kind, uint8_t bytes[DP_JOURNAL_PAGE],
                      struct dp_journal_segment *segment, uint64_t *at)
{
    memset(bytes, 0, DP_JOURNAL_PAGE);
    if (fits(journal)) {
        uint64_t payload = kind == DP_JOURNAL_PAD ? DP_JOURNAL_PAGE - DP_JOURNAL_HEADER : 0;
        dp_journal_mark_of(journal, kind, payload, bytes);
    } else {
        dp_journal_roll(journal, bytes);
    }
    *at = journal->stage.end;
    *segment = journal->segments[journal->count - 1];
    journal->stage.end += DP_JOURNAL_PAGE;
}

static enum dp_status fail_claim(struct dp_journal *journal, enum dp_status st, struct dp_error *err)
{
    (void)dp_wrap(err, st, "journal: cannot claim the durable records");
    dp_journal_poison(journal, err);
    return st;
}

/* Syncs everything up to the last record, or does nothing. A failure poisons the journal. */
static enum dp_status write_claim(struct dp_journal *journal, enum dp_journal_kind kind)
{
    struct dp_error err = {0};
    _Alignas(DP_JOURNAL_PAGE) uint8_t bytes[DP_JOURNAL_PAGE];
    struct dp_journal_stage *stage = &journal->stage;
    struct dp_journal_segment segment;
    uint64_t at;
    (void)pthread_mutex_lock(&journal->lock);
    uint64_t last = journal->last;
    bool quiet = stage->count == 0 && !stage->putting && !stage->writing;
    if (!quiet || atomic_load(&journal->synced) < last || !(fits(journal) || journal->next.file)) {
        (void)pthread_mutex_unlock(&journal->lock);
        return DP_OK;
    }
    take_page(journal, kind, bytes, &segment, &at);
    stage->writing = true;
    (void)pthread_mutex_unlock(&journal->lock);
    struct dp_disk_piece piece = {bytes, sizeof bytes};
    enum dp_status st = journal->disk->write(journal->disk->self, segment.file, at, &piece, 1, &err);
    if (st != DP_OK) /* before the shard may write after it */
        (void)fail_claim(journal, st, &err);
    (void)pthread_mutex_lock(&journal->lock);
    stage->writing = false;
    (void)pthread_cond_broadcast(&journal->written);
    (void)pthread_mutex_unlock(&journal->lock);
    if (st != DP_OK)
        return st;
    st = journal->disk->sync(journal->disk->self, segment.file, &err);
    if (st != DP_OK)
        return fail_claim(journal, st, &err);
    (void)pthread_mutex_lock(&journal->lock);
    DP_ASSERT(last <= atomic_load(&journal->synced));
    journal->claimed = last;
    journal->syncs++;
    (void)pthread_mutex_unlock(&journal->lock);
    return st;
}

void dp_journal_claim(struct dp_journal *journal)
{
    dp_journal_round(journal);
    if (atomic_load(&journal->poison) != DP_OK)
        return;
    (void)pthread_mutex_lock(&journal->lock);
    bool can = dp_journal_can_claim(journal);
    (void)pthread_mutex_unlock(&journal->lock);
    if (can && write_claim(journal, DP_JOURNAL_PAD) != DP_OK)
        dp_journal_wake(journal);
}

/* Records for the next opening that the journal ends here and that all before is durable. A failure loses no more
 * than that. */
void dp_journal_claim_end(struct dp_journal *journal)
{
    (void)write_claim(journal, DP_JOURNAL_CLOSED);
}
