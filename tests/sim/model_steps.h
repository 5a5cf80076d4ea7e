/* Model's steps: the members of the run, how far each has come, and what the modes' rules say, as one shard's records give them.
 *     {0} -> fold(record), fold ... -> (records are lost: {0} -> fold of those that are left)
 * Beside it, of all shards: the views as the register has them, and which members closed a step.
 * Thread    One. Failure: sim_fail. */
#ifndef DP_TESTS_SIM_MODEL_STEPS_H
#define DP_TESTS_SIM_MODEL_STEPS_H

#include "server/journal/record.h"
#include "tests/sim/world.h"

#define SIM_VIEWS_MAX  512u
#define SIM_STINTS_MAX 48u

/* The steps in which a member takes part on a shard, from one return to when it leaves. */
struct sim_stint {
    uint64_t from, until; /* from: UINT64_MAX: the shard had passed the step, so in none */
};

struct sim_steps {
    uint64_t view, viewed;          /* number, 0: none yet; and its lsn */
    uint64_t next[SIM_WORKERS_MAX]; /* steps finished; from first_step */
    struct sim_stint stint[SIM_WORKERS_MAX][SIM_STINTS_MAX];
    uint32_t stints[SIM_WORKERS_MAX]; /* the last is the one of now */
    uint64_t open, close;             /* sync: the step, and the lsn of the last close */
    struct {
        uint64_t push[SIM_WORKERS_MAX]; /* lsns; 0: not there */
        float rate;
    } step[SIM_STEPS_MAX]; /* by step - first_step; sync */
};

struct sim_members {
    struct {
        bool known;
        struct {
            uint64_t incarnation, until, from, missed;
        } member[SIM_WORKERS_MAX];
        size_t size;
        char bytes[DP_VIEW_HEAD + DP_VIEW_MEMBER * SIM_WORKERS_MAX];
    } view[SIM_VIEWS_MAX];          /* by number */
    uint32_t closed[SIM_STEPS_MAX]; /* by step - first_step: the members, a bit each; 0: nowhere closed */
};

/* The register has this view. */
void sim_members_set(struct sim_world *world, struct sim_members *members, const void *bytes, size_t size);

/* Where a record was appended, and how far the journal is durable; UINT64_MAX where that was looked at before. */
struct sim_record_place {
    uint32_t shard;
    uint64_t lsn, durable;
};
/* push: of a PUSH or KEPT_PUSH, and a CLOSE. Any record; changes nothing for one without a member. */
void sim_steps_fold(struct sim_world *world, struct sim_members *members, struct sim_steps *steps,
                    const struct dp_record *record, const struct dp_request *push,
                    struct sim_record_place place);

/* A kept push, or the weights from before the last close, appended anew. */
void sim_steps_again(struct sim_world *world, struct sim_steps *steps, const struct dp_record *record,
                     struct sim_record_place place);

enum sim_step_verdict { SIM_STEP_NOW, SIM_STEP_OLD, SIM_STEP_HELD };
/* Which rows a pull of this step is shown. (With backups NOW may be those of a later step.) */
enum sim_step_verdict sim_steps_pull(struct sim_world *world, const struct sim_steps *steps, uint64_t step);
/* Whether the open step is to be closed before any pull is answered: enough have pushed it, and shards have answered all up to this
 * lsn. */
bool sim_steps_must_close(const struct sim_world *world, const struct sim_steps *steps, uint64_t answered);
/* Answered as a push that is there already. One that was on no other shard at a restored cut is counted now. */
void sim_steps_repeated(struct sim_steps *steps, uint32_t rank, uint64_t step);
/* Whether all that members took part in is finished; and closed, in sync. */
bool sim_steps_are_done(const struct sim_world *world, const struct sim_steps *steps);

#endif
