/* What a journal says of itself beside its records: pages, pads, its end, and the claim of an idle journal.
 *     idle:  sync what the mode has not synced -> one page that claims all of it -> sync      (this order, always)
 * Why   A record is claimed by headers that were written after it was durable. Nothing follows the last one, so damage
 *       to it looked like a torn tail and took acknowledged records away. After the claim it is refused by name.
 *       The page has the form of a pad, so that builds without idle claims read it.
 * Holds claimed <= synced. While a claim is written nobody else writes: in mode process a record behind an unwritten
 *       page would count as durable, and an opening would not find it. */
#include "server/store/journal_inside.h"

#include <string.h>

void dp_journal_page_of(const struct dp_journal *journal, const struct dp_journal_segment *segment,
                        uint64_t synced_lsn, uint8_t to[DP_JOURNAL_PAGE])
{
    struct dp_journal_page page = {
        .version = DP_JOURNAL_VERSION,
        .number = segment->number,
        .incarnation = journal->incarnation,
        .first_lsn = segment->first_lsn,
        .synced_lsn = synced_lsn,
        .bytes = segment->bytes,
        .secret = journal->secret,
    };
    dp_journal_page_put(to, &page);
}

void dp_journal_mark_of(const struct dp_journal *journal, enum dp_journal_kind kind, uint64_t payload,
                        uint8_t to[DP_JOURNAL_HEADER])
{
    struct dp_journal_header header = {
        .kind = kind,
        .bytes = payload,
        .lsn = journal->last,
        .incarnation = journal->incarnation,
        .synced_lsn = atomic_load(&journal->synced),
        .secret = journal->secret,
    };
    dp_journal_header_put(to, &header);
}

static bool fits(const struct dp_journal *journal)
{
    return journal->stage.end + DP_JOURNAL_PAGE <= journal->segments[journal->count - 1].bytes;
}

/* In a segment that is full to its last byte the next one's page claims: the next record would begin it anyway. No
 * segment is made for that: where there is none the claim waits for it. */
bool dp_journal_can_claim(const struct dp_journal *journal)
{
    /* While a record is put, which takes no lock, nobody else looks at where it goes. */
    return journal->claimed < journal->last && !journal->stage.putting &&
           (fits(journal) || journal->next.file);
}

/* One page behind all that was written; nothing is staged. Gives where it goes. Lock held. */
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
    (void)dp_wrap(err, st, "journal: claim what is durable");
    dp_journal_poison(journal, err);
    return st;
}

/* All up to the last record is synced, or nothing is done. A failure poisons the journal. */
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
    if (st != DP_OK) /* before the shard may write behind it */
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

/* So that the next opening knows the end for the end, and all before it for durable. A failure costs no more than that. */
void dp_journal_claim_end(struct dp_journal *journal)
{
    (void)write_claim(journal, DP_JOURNAL_CLOSED);
}
