/* Journal seam: what a shard calls of its journal, where a test stands in between.
 *     shard -> dp_seam_journal_* -> the test's, else straight -> dp_journal_* (the real one)
 * The two files that call the journal, server/durable/journaling.c and recovery.c, are compiled with these names in the place of the
 * journal's; the target is dp_journal_seam (tests/CMakeLists.txt). A test defines those that it wants; the others go straight
 * through (weak, in journal_seam.c). The product knows nothing of it and pays nothing for it. */
#ifndef DP_TESTS_LIB_JOURNAL_SEAM_H
#define DP_TESTS_LIB_JOURNAL_SEAM_H

#include "server/journal/journal.h"

enum dp_status dp_seam_journal_open(const struct dp_journal_options *options, struct dp_journal **out,
                                    struct dp_error *err);
enum dp_status dp_seam_journal_append(struct dp_journal *journal, const struct dp_journal_piece *pieces,
                                      uint32_t count, uint64_t *lsn, struct dp_error *err);
void dp_seam_journal_commit(struct dp_journal *journal);
void dp_seam_journal_sync(struct dp_journal *journal);
void dp_seam_journal_release(struct dp_journal *journal, uint64_t keep_from);

#endif
