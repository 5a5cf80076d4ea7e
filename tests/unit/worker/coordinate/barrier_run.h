/* Barrier run: what test_epoch_barrier knows of a training: its workers, as the servers keep them, and what befalls them. */
#ifndef DP_TESTS_UNIT_WORKER_COORDINATE_BARRIER_RUN_H
#define DP_TESTS_UNIT_WORKER_COORDINATE_BARRIER_RUN_H

#include "tests/unit/worker/coordinate/world.h"
#include "worker/coordinate/epoch_barrier.h"

#define MS        UINT64_C(1000000)
#define EPOCHS    7u
#define LONG      300u /* epochs: more figures than a decision takes */
#define WORKERS   4u
#define SEATS     (2 * WORKERS) /* seat s is a process of worker s % WORKERS */
#define BLOWS_MAX 12u
#define FOR_EVER  (900 * 1000 * MS) /* of the world's time; an undisturbed run takes a minute */

enum blow_kind { KILLS, LOSES_NOTES, TAKES_AWAY, HOLDS, REWINDS, BLOW_KINDS };

struct blow {
    uint64_t step;
    uint32_t workers; /* bits: who is struck */
    enum blow_kind kind;
};

struct trainee {
    struct run *run;
    uint32_t pushes;      /* of an epoch: 0 for a worker without minibatches */
    uint32_t ended, done; /* as the servers keep it: epochs, and pushes of the next */
    uint32_t stopped;     /* the epoch that it stopped after last; 0: not yet */
    bool over;            /* a process of it has done everything */
};

struct run {
    struct dp_cluster cluster;
    struct world *world;
    atomic_int never;
    struct dp_early_stop_rule rule;
    uint32_t epochs;
    double loss[LONG];
    bool tests;             /* a test set is evaluated, too */
    uint32_t workers, each; /* pushes of all in an epoch */
    uint64_t pushed, push_ms, processes;
    bool hasty;
    uint64_t scan_ms,
        fetched; /* scan_ms: of others than worker 0; 0: by chance; fetched: parts, by anybody */
    uint32_t blows;
    uint32_t leaver;    /* without pushes; 0: nobody leaves */
    uint64_t leaver_at; /* the step at which it dies for good */
    uint64_t left_ns;   /* when the others know that it has left; 0: it lives */
    uint32_t brings;    /* pushes of an epoch with which it comes back; 0: it does not */
    bool back;          /* as the register has it */
    uint32_t back_at;   /* the epoch, from 0, from which it takes part then */
    struct blow blow[BLOWS_MAX];
    struct trainee trainee[WORKERS];
    struct dp_decision decided; /* as it was set last */
    bool kept[LONG + 1];        /* the weights of which are kept were those of its end */
};

/* One process. */
struct life {
    struct trainee *trainee;
    bool gone;  /* it knows that the leaver is */
    bool mixed; /* what it merged last */
    uint64_t at;
};

#endif
