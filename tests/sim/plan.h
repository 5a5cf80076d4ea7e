/* Plan: what one seed decides before anything runs: the size of the cluster, its tables, and what is to fail.
 * Thread    Any; constant after. */
#ifndef DP_TESTS_SIM_PLAN_H
#define DP_TESTS_SIM_PLAN_H

#include "common/env/disk.h"
#include "common/model/table.h"
#include "common/wire/view.h"
#include "server/journal/journal.h"

#include <stdbool.h>

#define SIM_SERVERS_MAX  3u
#define SIM_WORKERS_MAX  3u
#define SIM_TABLES_MAX   4u
#define SIM_FAULTS_MAX   24u
#define SIM_KEYS_MAX     192u /* of a table */
#define SIM_STEPS_MAX    64u  /* of a worker */
#define SIM_ROWS_MAX     12u  /* of a push */
#define SIM_RUN          1u   /* that its members join */
#define SIM_EPOCHS_MAX   3u
#define SIM_LEASED_MAX   192u /* numbers of an epoch: whole words of bits */
#define SIM_RESTORES_MAX 2u
#define SIM_SPAN         64u /* DP_LEASES_SPAN, as it is compiled for the simulator */

/* What kind of clusters seeds make: the program's first argument. */
enum sim_scene {
    SIM_MIXED,
    SIM_LEASES,    /* work is leased ("leases") */
    SIM_AWAY,      /* members leave, let by others, and return ("away") */
    SIM_CHECKPOINT /* checkpoints are made, and restored ("checkpoint") */
};
extern enum sim_scene sim_scene;

enum sim_fault_kind {
    SIM_PROCESS_DIES, /* of a server */
    SIM_POWER_GOES,
    SIM_POWER_GOES_LATER,  /* at a disk operation from now */
    SIM_POWER_GOES_AT_JOB, /* right after the store has done a write, or marks */
    SIM_WORKER_DIES,
    SIM_RESET, /* of a connection */
    SIM_READ_FAILS,
    SIM_WRITE_FAILS, /* of the store; the server is started again later */
    SIM_SYNC_FAILS,  /* of the journal; the same */
    SIM_DISK_FULL,   /* for a while */
    SIM_RESTART,     /* drained and opened again */
    SIM_ALL_DIE,
    SIM_FAULT_KINDS
};

struct sim_fault {
    uint64_t event; /* the number of events after which it happens */
    enum sim_fault_kind kind;
    uint64_t choice; /* of whom, and how */
};

struct sim_mail_odds {
    uint32_t lose, twice, slow; /* of 1,000 messages */
    uint32_t slow_ms;           /* at most */
};

struct sim_plan {
    uint32_t servers, workers, tables, keys, steps;
    enum dp_consistency mode;
    uint32_t slack;
    uint64_t first_step;
    uint32_t minibatches[SIM_WORKERS_MAX]; /* of each worker, at most `steps` */
    bool leased;                           /* the first server hands the numbers of each epoch out, */
    bool slow;                             /* the first worker is slow with its own, */
    uint32_t epochs, total;                /* total: of an epoch */
    bool away;                             /* members but the first leave, let by others, and return */
    bool checkpoints;                      /* they are made */
    uint32_t restores;                     /* still to be done, at most */
    uint64_t
        restore_event[SIM_RESTORES_MAX]; /* the number of events from which on a checkpoint is restored */
    bool leaves;                         /* a member with fewer leaves early; else it pushes empty steps */
    struct dp_table_spec table[SIM_TABLES_MAX];
    enum dp_durability durability;
    uint64_t segment_bytes, budget_bytes, cache_bytes;
    bool fixed;   /* one worker that waits for each push: the rows at the end are known beforehand */
    bool bf16;    /* values travel so */
    bool stales;  /* rates are divided by staleness; not in sync */
    bool process; /* only processes die, power stays */
    bool sectors; /* records of one sector each, and storm: what a torn write leaves of the one before */
    bool storm;   /* a server that starts is soon gone again */
    uint32_t in_flight; /* pushes that a worker leaves unanswered */
    uint32_t blind;     /* of 1,000 pushes, those without a pull before them */
    struct sim_mail_odds mail;
    uint32_t think_ms, sync_ms, job_ms, turn_us; /* at most */
    uint32_t jobs_max, requests_max, window, retry_ms;
    uint32_t taken_rows; /* of reads, in a turn; 0: many */
    uint32_t
        behind; /* pushes not durable yet from which on the journal may say that its disk is behind; 0: never */
    uint32_t idle_ms;    /* after the last append, the journal claims it */
    uint64_t calm_event; /* from here on nothing fails */
    uint32_t faults;
    struct sim_fault fault[SIM_FAULTS_MAX]; /* by event */
};

struct sim_world;
/* Whether workers are members of a run. */
static inline bool sim_has_members(const struct sim_plan *plan)
{
    return plan->mode != DP_ASYNC;
}
/* Whether steps close without some of their members (sync:B). */
static inline bool sim_has_backups(const struct sim_plan *plan)
{
    return plan->mode == DP_SYNC && plan->slack > 0;
}
/* How many pushes a worker makes. */
static inline uint32_t sim_pushes_of(const struct sim_plan *plan, uint32_t worker)
{
    return plan->leaves ? plan->minibatches[worker] : plan->steps;
}
/* Its gradients are integers, so that its sums are exact. */
static inline bool sim_is_integers(const struct dp_table_spec *spec)
{
    return spec->optimizer.kind == DP_OPT_SGD && spec->optimizer.momentum == 0.0f;
}
void sim_plan_make(struct sim_world *world, struct sim_plan *plan);

#endif
