/* Steps: a shard's state of the members of a run: the view, the number of steps that each has finished on
 * this shard, and the open step. Pure state and rules: no I/O, no clock.
 *     look at a view -> (the journal has it) -> take -> check a member -> pull: go, held, old weights; push: go, keep -> pushed
 *     sync: ... -> all, or all but B, have pushed the open step -> closed -> the next step is open
 * Returns   A view may let a removed member take part again, from a later step on. The shard accepts that
 *           if it has not passed the step. Otherwise the member takes part in nothing here until a view
 *           names a later step. A returning member pushes nothing before all shards have accepted. So no
 *           step is closed with it on one shard and without it on another. Its earlier pushes still count
 *           for the steps below `former`.
 * Finished  A member has finished the steps below next[rank]. If that is not below its `until`, it has
 *           finished all steps.
 * Rules     The rules of a mode are in server/modes, a file for each mode. They read the state here.
 * Open      If the mode applies complete steps: the step that gathers pushes. It is gathered once all of
 *           its members, but as many as the mode has backups, have pushed it.
 * Skipped   Such a mode: steps without members, between those of members that left and of one that returns, are never open.
 * Promise   A verdict changes only when `changes` does, or with the member's own requests.
 * Why here  Marks keep this state and replay restores it, as they do the push ids.
 * Thread    The shard's. Memory: the view's members. Failure: a refused view changed nothing. */
#ifndef DP_STEPS_STEPS_H
#define DP_STEPS_STEPS_H

#include "common/wire/request.h"
#include "common/wire/view.h"

/* Only steps.c changes the fields; others may read view, open, changes, next, wanted and pushed. */
struct dp_steps {
    struct dp_view view; /* run 0: none was taken yet */
    uint64_t open;       /* sync: the step being gathered; else first_step */
    uint64_t changes;    /* counts what may change a verdict: the least, open, the view */
    uint64_t
        least; /* the fewest steps finished by a member that has not finished all; UINT64_MAX: there is none */
    uint32_t least_rank; /* whose; the lowest rank of several */
    uint32_t wanted;     /* sync: so many pushes of the open step close it; 0: it has no members */
    uint32_t pushed;     /* sync: members that take part in the open step and have pushed it */
    struct dp_error
        stuck; /* why the open step, which was gathered, cannot be closed now; DP_OK: nothing is known */
    uint64_t next[DP_MEMBERS_MAX]; /* by rank: steps finished, counted from 0 as steps are */
    uint64_t start
        [DP_MEMBERS_MAX]; /* by rank: from this step on it takes part here, until it leaves; UINT64_MAX: from none */
    uint64_t former
        [DP_MEMBERS_MAX]; /* by rank: before it last left, it took part in the steps below; 0: it never left */
    uint64_t heard_ns[DP_MEMBERS_MAX]; /* by rank: its last request, or since when it is expected here */
};

/* ---- the view */

enum dp_view_news {
    DP_VIEW_KNOWN,   /* the one acted on is this one or a later one of its run */
    DP_VIEW_NEWER,   /* of the same run: steps finished stay */
    DP_VIEW_NEW_RUN, /* a later run, or the first: steps begin at its first_step */
    DP_VIEW_REFUSED, /* why in err */
};
/* Changes nothing. */
enum dp_view_news dp_steps_look(const struct dp_steps *steps, const struct dp_view *view,
                                struct dp_error *err);
/* Acts on it from now on. NEWER or NEW_RUN only; takes it over and leaves {0}. */
void dp_steps_take(struct dp_steps *steps, struct dp_view *view, uint64_t now_ns);
/* Of a member, as the marks have it. */
struct dp_steps_place {
    uint64_t next, start, former;
};
/* At an opening. Takes the view over; place: [view->members]. */
void dp_steps_restore(struct dp_steps *steps, struct dp_view *view, uint64_t open,
                      const struct dp_steps_place *place, uint64_t now_ns);
/* Whether this shard accepted the step from which the member takes part, of its view. */
static inline bool dp_steps_has_begun(const struct dp_steps *steps, uint32_t rank)
{
    return steps->start[rank] != UINT64_MAX;
}
/* Of a member that is to return: whether a later view may say so, where its own says that it has left. INVALID: it had not pushed all
 * of its steps, and no process would. AGAIN (wait STEP): the open step is still one of those before it left last but once. */
enum dp_status dp_steps_check_left(const struct dp_steps *steps, uint32_t rank, struct dp_error *err);
/* The least step from which it would accept a member now. */
uint64_t dp_steps_begin(const struct dp_steps *steps);
void dp_steps_clear(struct dp_steps *steps);

/* ---- members */

/* Whether this member may pull or push. AGAIN: it names a view that this shard lacks (wait VIEW); REPLACED: another process has its
 * place, or a later run has begun; INVALID: it takes no part in that step. */
enum dp_status dp_steps_check(const struct dp_steps *steps, const struct dp_membership *member,
                              struct dp_error *err);
/* It was checked, and shows that it lives. */
void dp_steps_heard(struct dp_steps *steps, const struct dp_membership *member, uint64_t now_ns);
/* Both; hears: of a request that is new. */
enum dp_status dp_steps_admit(struct dp_steps *steps, const struct dp_membership *member, bool hears,
                              uint64_t now_ns, struct dp_error *err);

/* What a mode says to a pull or push (server/modes/step_rules.h). */
enum dp_step_verdict {
    DP_STEP_GO,
    DP_STEP_HELD, /* a pull waits for others: dp_steps_say_held */
    DP_STEP_OLD,  /* a pull of the step closed last: it gets the weights from before that */
    DP_STEP_KEEP, /* a push of a synchronous step: applied when the step is closed */
    DP_STEP_DROP, /* a push of a step that was closed without it: its number is used up, nothing is applied */
    DP_STEP_WAIT, /* it waits for what the shard does: waiting->waits_for */
    DP_STEP_REFUSED, /* why in err */
};
/* For whom a held pull waits: err has HELD, wait STEP and the text. Of several members of sync:B it is the one that joined and was
 * silent longest. Returns how many ms that member has been silent. */
uint64_t dp_steps_say_held(const struct dp_steps *steps, const struct dp_membership *member, uint64_t now_ns,
                           struct dp_error *err);
/* A push of this step was applied, kept, dropped, or found applied before; in replay too. */
void dp_steps_pushed(struct dp_steps *steps, uint32_t rank, uint64_t step);
/* By how many steps a member that pushes `step` is ahead of the slowest that has not finished all. */
static inline uint64_t dp_steps_gap(const struct dp_steps *steps, uint64_t step)
{
    return step > steps->least ? step - steps->least : 0;
}

/* ---- synchronous steps */

/* Whether the mode gathers steps: `open` is one. */
static inline bool dp_steps_is_by_step(const struct dp_steps *steps)
{
    return dp_mode_of(steps->view.mode)->by_step;
}
static inline bool dp_steps_takes_part(const struct dp_steps *steps, uint32_t rank, uint64_t step)
{
    return step < steps->former[rank] ||
           (step >= steps->start[rank] && step < steps->view.member[rank].until);
}
/* Whether any member takes part in the open step. */
bool dp_steps_has_open(const struct dp_steps *steps);
/* Whether as many as it takes have pushed the open step. */
static inline bool dp_steps_is_gathered(const struct dp_steps *steps)
{
    return steps->wanted > 0 && steps->pushed >= steps->wanted;
}
/* Whether a step may close without some of its members (sync:B, B above 0): which of them, its close decides. */
static inline bool dp_steps_has_backups(const struct dp_steps *steps)
{
    return dp_mode_backups(steps->view.mode, steps->view.slack) > 0;
}
/* It was gathered and cannot be closed now: pulls of the next one are refused. */
void dp_steps_set_stuck(struct dp_steps *steps, const struct dp_error *why);
/* The open step was closed; it must have been gathered. */
void dp_steps_closed(struct dp_steps *steps);

#endif
