#include "tests/lib/journal_seam.h"

#define DP_STRAIGHT __attribute__((weak))

DP_STRAIGHT enum dp_status dp_seam_journal_open(const struct dp_journal_options *options,
                                                struct dp_journal **out, struct dp_error *err)
{
    return dp_journal_open(options, out, err);
}

DP_STRAIGHT enum dp_status dp_seam_journal_append(struct dp_journal *journal,
                                                  const struct dp_journal_piece *pieces, uint32_t count,
                                                  uint64_t *lsn, struct dp_error *err)
{
    return dp_journal_append(journal, pieces, count, lsn, err);
}

DP_STRAIGHT void dp_seam_journal_commit(struct dp_journal *journal)
{
    dp_journal_commit(journal);
}

DP_STRAIGHT void dp_seam_journal_sync(struct dp_journal *journal)
{
    dp_journal_sync(journal);
}

DP_STRAIGHT void dp_seam_journal_release(struct dp_journal *journal, uint64_t keep_from)
{
    dp_journal_release(journal, keep_from);
}
