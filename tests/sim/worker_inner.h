/* Worker, inside: what its files share. Lives and the audit: worker.c; pulls and pushes: worker_step.c; what a member does: worker_member.c;
 * for one that is silent: worker_takeover.c; work that the first server hands out: worker_leased.c.
 * Thread    One. */
#ifndef DP_TESTS_SIM_WORKER_INNER_H
#define DP_TESTS_SIM_WORKER_INNER_H

#include "common/client/client_inner.h"
#include "tests/sim/batch.h"
#include "tests/sim/life.h"
#include "tests/sim/model.h"
#include "tests/sim/worker.h"

#define SIM_FLIGHT_MAX 4u
#define SIM_WAIT_MS    600000u
#define SIM_NO_STEP    UINT64_MAX

struct sim_held;

struct sim_pull {
    struct sim_batch batch;
    struct dp_ticket ticket;
    struct dp_keys *keys[SIM_BATCH_PARTS];
    float weights[SIM_BATCH_PARTS][SIM_BATCH_ROWS * SIM_BATCH_DIM];
    uint32_t floor[SIM_BATCH_PARTS][SIM_BATCH_ROWS];
    struct dp_pulled_at at[SIM_SERVERS_MAX];
    uint64_t step;
    uint64_t open;   /* the greatest step that a shard's rows are of */
    uint64_t closed; /* of nobody's: the steps that it must show */
};

struct sim_push {
    struct dp_ticket ticket;
    uint64_t stream, number;
};

struct sim_worker {
    struct sim_world *world;
    struct sim_life life;
    uint32_t index, resets[SIM_SERVERS_MAX + 1]; /* the last: of the control endpoint, none */
    bool audits, done;
    bool joined;               /* in this life */
    struct sim_worker *before; /* an earlier process in its place, that has yet to hear of it; NULL: none */
    bool own;                  /* pushes under a stream that shard 0 gives */
    uint64_t sessions;         /* opened */
    uint32_t next,
        acknowledged; /* numbers of minibatches: the next; below which all were (training stream) */
    uint32_t from;    /* the first number that this life takes part in */
    bool stands_in;   /* this life is another worker's, which lets this one leave */
    uint32_t told;    /* below which this life was told that all are there */
    struct dp_client *client;
    struct dp_client_table *table[SIM_TABLES_MAX];
    struct sim_pull pull[3]; /* two of its minibatches, one of nobody's */
    struct sim_push push[SIM_FLIGHT_MAX];
    uint32_t pushes;
    /* Where work is leased: */
    struct sim_held *held; /* of this life; NULL: it has none */
    bool replaced;         /* this life was told so */
    bool gone;             /* killed for good */
};

/* What must succeed, unless this life is over. A process whose place was taken hears so, and ends. */
void sim_worker_must(struct sim_worker *worker, enum dp_status st, const struct dp_error *err);
/* The stream of its minibatches: of all epochs, or where work is leased of this one. */
uint64_t sim_worker_stream(const struct sim_worker *worker);
uint64_t sim_worker_step(const struct sim_worker *worker, uint64_t number);
/* The minibatch of this number, as a member's for its step; SIM_NO_STEP: for nobody. */
void sim_worker_pull(struct sim_worker *worker, struct sim_pull *pull, uint64_t number);
/* False: this worker is dead. */
bool sim_worker_wait_pull(struct sim_worker *worker, struct sim_pull *pull);
void sim_worker_push(struct sim_worker *worker, const struct sim_pull *pull, uint64_t number);
/* Until no more than `most` are unanswered. */
void sim_worker_wait_pushes(struct sim_worker *worker, uint32_t most);

/* A run's member, or a worker with a stream of its own: all that it has to do in its life. */
void sim_worker_take_part(struct sim_worker *worker);
/* It is about to join. It may be suspended meanwhile, so that others go on. */
void sim_worker_joins(struct sim_worker *worker);
/* It takes part again. It may leave again soon. */
void sim_worker_returned(struct sim_worker *worker);
/* In the place of a member that is silent: what some shards have of its pushes is made again, so that every shard has it; then it leaves. */
void sim_worker_stand_in(struct sim_worker *worker);
void sim_worker_join(struct sim_worker *worker);
/* The numbers from worker->next to `steps`. */
void sim_worker_train(struct sim_worker *worker, uint32_t steps);
/* Likewise, without rows. */
void sim_worker_push_empty(struct sim_worker *worker, uint32_t until);
/* It takes no part from this number on. */
void sim_worker_leave(struct sim_worker *worker, uint32_t before);

/* Trains what the first server gives it, until that says that every epoch is over. */
void sim_worker_train_leased(struct sim_worker *worker);
uint32_t sim_worker_epoch(const struct sim_worker *worker); /* where it is */
/* Every shard has the oldest push. */
void sim_worker_leased_answered(struct sim_worker *worker, uint64_t number);

#endif
