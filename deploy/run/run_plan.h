/* Run plan: all decisions on a run that are made before anything is started:
 *     flags -> cluster -> directory (made, locked) -> places, ports -> the earlier run there is trained on, stays, or refuses
 *     -> runs/N made -> spools filled -> number -> stores restored -> cluster.conf
 * Promise   Every refusal comes before a change to the directory's earlier run.
 * Memory    The caller's {.folder.lock = -1}. The caller frees the plan's parts, also after a failure. */
#ifndef DP_RUN_RUN_PLAN_H
#define DP_RUN_RUN_PLAN_H

#include "common/env/atomic_file.h"
#include "deploy/run/observed.h"
#include "deploy/run/restored.h"
#include "deploy/run/run_flags.h"
#include "deploy/run/run_state.h"

#include <stdio.h>

struct dp_run_plan {
    const char *values[DP_RUN_FLAGS];
    const char *trial_of; /* --dry-run --continue: the directory of the run whose schema is used; else NULL */
    struct dp_cluster *cluster;
    struct dp_folder folder;      /* this run's; it holds the lock */
    struct dp_folder was;         /* of the directory's current run, which may be the same, or none */
    FILE *tables;                 /* where results are shown: standard output, unless the report goes there */
    FILE *notes;                  /* where it says what it does: standard error */
    struct dp_atomic_file report; /* --report that is no file */
    uint32_t restarts;
    struct dp_observed observed;
    struct dp_run_state state;
    struct dp_cluster *earlier; /* the run there, where there is one */
    bool continues;             /* on an earlier run's store */
    bool resumes;               /* it is the earlier run */
    bool begins;                /* its settings are flags and defaults alone */
    double rate_before;         /* without its flags */
    struct dp_restored from;    /* --from: what its stores are restored of; else {0} */
    bool replaces;              /* that, after a store of it was lost: some of it is trained again */
};

/* From values, tables, notes and restarts, which the caller has set. */
enum dp_status dp_run_plan_make(struct dp_run_plan *plan, struct dp_error *err);
/* The number of the run, and what is known of it. */
enum dp_status dp_run_plan_set_number(struct dp_run_plan *plan, uint32_t number, struct dp_error *err);
/* NULL: it was not given. */
const char *dp_run_plan_flag(const struct dp_run_plan *plan, const char *name);

#endif
