/* Order journal: the journal of a store of durability none, from the order of a checkpoint until that one's tail is copied.
 *     begin -> opened, on a thread of its own -> VOIDs for what was pushed meanwhile -> journaling takes it over: on -> drop ->
 *     removed, on a thread
 * Why       A cut is completed from the journal (cut.h), and a shard's thread must not wait for an opening. What was pushed before the journal
 *           was on is in no record: a cut's link must have it (`from`).
 * Promise   On and not failed: every record above `from` is in the journal. No push is refused for its sake (journaling.h). Nothing of it is
 *           needed after a crash: such a store is refused then. Segments that an earlier one left are removed at the next begin.
 * Holds     OFF: no thread, no journal. ON: journaling has it.
 * Thread    The shard's. Without a commit thread (journal.h) all is done at once.
 * Failure   dp_order_journal_failed says why, also where VOIDs are still missing after 30 s; then it is for its owner to drop. Segments that
 *           cannot be removed stay, which is logged. */
#ifndef DP_DURABLE_ORDER_JOURNAL_H
#define DP_DURABLE_ORDER_JOURNAL_H

#include "server/durable/journaling.h"

#include <pthread.h>

enum dp_order_journal_stage {
    DP_ORDER_JOURNAL_OFF,
    DP_ORDER_JOURNAL_OPENING,
    DP_ORDER_JOURNAL_FILLING,
    DP_ORDER_JOURNAL_ON,
    DP_ORDER_JOURNAL_ENDING
};

struct dp_order_journal {
    struct dp_shard_base *base;
    struct dp_journaling *journaling;
    const struct dp_io_jobs *jobs;            /* whose store says whether the disk has room */
    const struct dp_journal_options *options; /* the shard's; without a disk there can be none */
    uint64_t secret;
    enum dp_order_journal_stage stage;
    bool unwanted;              /* dropped while it is opened */
    uint64_t filling_ns;        /* FILLING: since when */
    uint64_t from;              /* ON */
    struct dp_error failed;     /* before it was on */
    struct dp_journal *journal; /* FILLING, ENDING */
    pthread_t thread;           /* opens or removes it */
    bool runs;                  /* the thread is to be joined; what follows is its own until `done` */
    atomic_bool done;
    struct dp_journal_options opening;
    struct dp_error error;
};

/* Whether the shard has what one is made of. */
bool dp_order_journal_is_possible(const struct dp_order_journal *order);
/* OFF: why the last one failed. */
void dp_order_journal_forget(struct dp_order_journal *order);
/* OFF, and pushes are not journaled. */
void dp_order_journal_begin(struct dp_order_journal *order);
/* Behind all that the turn pushed. Returns true when it came to be on. */
bool dp_order_journal_turn(struct dp_order_journal *order);
/* What is above `from` is in it. */
bool dp_order_journal_is_on(const struct dp_order_journal *order);
bool dp_order_journal_is_off(const struct dp_order_journal *order);
/* NULL: it has not failed. */
const struct dp_error *dp_order_journal_failed(const struct dp_order_journal *order);
/* In any stage; nothing is held in it. It is OFF some turns later. */
void dp_order_journal_drop(struct dp_order_journal *order);
/* At the shard's end: waits. */
void dp_order_journal_clear(struct dp_order_journal *order);

#endif
