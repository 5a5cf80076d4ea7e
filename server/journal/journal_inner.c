/* Used by all of the journal's files: poisoning, and the headers of segments, pads and ends. */
#include "server/journal/journal_inner.h"

void dp_journal_wake(const struct dp_journal *journal)
{
    if (journal->options.commit_thread && journal->options.wake)
        journal->options.wake(journal->options.wake_context);
}

void dp_journal_poison(struct dp_journal *journal, const struct dp_error *why)
{
    (void)pthread_mutex_lock(&journal->lock);
    if (atomic_load(&journal->poison) == DP_OK) {
        journal->why = *why;
        atomic_store(&journal->poison, (int)why->status);
    }
    (void)pthread_cond_broadcast(&journal->written);
    (void)pthread_mutex_unlock(&journal->lock);
}

uint64_t dp_journal_kept_bytes(const struct dp_journal *journal)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < journal->count; i++)
        bytes += journal->segments[i].bytes;
    return bytes;
}

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
