/* Cut: the source of a shard's part of a checkpoint: the shard's state in one turn.
 *     take: lsn, push ids and steps noted, the journal held, a link ordered at the store -> linked, and durable up to lsn -> drop
 * Promise   No row of the link is newer than `lsn`, and the link has every push up to `after`. It has all
 *           writes that the store got before the turn, and none of the later ones. `after` is the lsn of
 *           the marks before the turn. The journal keeps all above `after` until it is let go, or the cut
 *           is dropped. Ids and steps are those of the turn. The ids exclude the buffered pushes of the
 *           open step, since the rows do not have them.
 * Again     A cut may be taken again, under a higher number: the one before is dropped.
 * Hidden    A step commit that no answer may show yet (sync with backup members) is within lsn. So a cut
 *           waits until it is durable.
 * Thread    The shard's. Memory: ids and steps, until the cut is dropped.
 * Failure   `failed`: the reason why the store has no link. The caller drops the cut. A link that could not
 *           be removed is logged: the next opening removes it. */
#ifndef DP_DURABLE_CUT_H
#define DP_DURABLE_CUT_H

#include "server/durable/write_back.h"

/* Only cut.c changes the fields. */
struct dp_cut {
    const struct dp_write_back *write_back; /* it has the nouns that are noted */
    uint64_t order;
    uint32_t number;    /* 0: there is none */
    bool linked, holds; /* holds: the journal */
    struct dp_error failed;
    uint64_t lsn, after;
    enum dp_consistency mode;
    uint32_t run; /* 0: none */
    uint64_t open;
    void *ids_bytes, *steps_bytes; /* push_ids.h, steps_mark.h; steps_size 0: no run */
    size_t ids_size, steps_size;
};

/* DP_AGAIN, DP_NOMEM: it cannot be taken in this turn; a cut that was there is dropped all the same, if the store takes that. With a journal only. */
enum dp_status dp_cut_take(struct dp_cut *cut, uint64_t order, uint32_t number);
/* Whether the link is there and the cut is durable. */
bool dp_cut_is_made(const struct dp_cut *cut);
/* The journal is not needed any more; the link is. Accepts a cut that was not taken. */
void dp_cut_let_journal_go(struct dp_cut *cut);
/* Accepts one that was not taken. While the store is busy it stays, without the journal: try again. */
void dp_cut_drop(struct dp_cut *cut);
void dp_cut_clear(struct dp_cut *cut);

#endif
