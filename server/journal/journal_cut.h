/* Journal cut: classifies, block by block, the bytes after the last record that counts.
 *     cut_of(where the chain ends) -> see, see, ... (each block after it, in order) -> cut
 * Why       A torn write and damage to an unclaimed record look the same, so both are cut; only the log
 *           reports the second. The former content of a recycled segment must not look like either.
 * Thread    One. */
#ifndef DP_JOURNAL_JOURNAL_CUT_H
#define DP_JOURNAL_JOURNAL_CUT_H

#include "server/journal/journal.h"
#include "server/journal/journal_record.h"

struct dp_journal_cutting {
    struct dp_journal_cut cut;
    struct dp_journal_header end; /* the next record's kind, lsn, incarnation and secret */
    uint64_t number;              /* of the segment where the chain ends; 0: there is none */
    uint64_t offset;              /* of the chain's end in it */
    bool explained; /* from here on the segment has its former content, or records of known length */
};

/* `header`: the block's header if it is an intact one of this journal, else NULL. `room`: bytes of the file
 * from `at` on. */
void dp_journal_cut_see(struct dp_journal_cutting *cutting, uint64_t number, uint64_t at, uint64_t room,
                        const uint8_t block[DP_JOURNAL_HEADER], const struct dp_journal_header *header);

#endif
