/* Journal cut: what an opening finds behind the last record that counts, block by block.
 *     cut_of(where the chain ends) -> see, see, ... (each block behind it, in order) -> cut
 * Why       A torn write and damage to a record that nothing claims look the same, so both are cut; a log that names them
 *           is all that tells a person of the second. What a recycled segment held before must not look like either.
 * Thread    One. */
#ifndef DP_STORE_JOURNAL_CUT_H
#define DP_STORE_JOURNAL_CUT_H

#include "server/store/journal.h"
#include "server/store/journal_record.h"

struct dp_journal_cutting {
    struct dp_journal_cut cut;
    struct dp_journal_header
        end;         /* the next record's header: kind, lsn, incarnation and secret are looked at */
    uint64_t number; /* of the segment where the chain ends; 0: there is none */
    uint64_t offset; /* of the chain's end in it */
    bool explained;  /* from here on the segment has what it held before, or records of known length */
};

/* `header`: of this block if it is a whole one of this journal, else NULL. `room`: bytes of the file from `at` on. */
void dp_journal_cut_see(struct dp_journal_cutting *cutting, uint64_t number, uint64_t at, uint64_t room,
                        const uint8_t block[DP_JOURNAL_HEADER], const struct dp_journal_header *header);

#endif
