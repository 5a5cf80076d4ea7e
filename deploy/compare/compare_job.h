/* Compare job: one training of a comparison, as child processes, one at a time:
 *     `downpour run`, which samples and scores by itself;  allreduce: keys -> mpirun downpour-allreduce -> scores
 * Promise   A training that fails is a result, with its cause: others go on. When this process dies, so do the children.
 * Failure   DP_STOPPING: a signal asked this process to stop; the children are ended. DP_NOMEM. */
#ifndef DP_COMPARE_COMPARE_JOB_H
#define DP_COMPARE_COMPARE_JOB_H

#include "deploy/cli/progress.h"
#include "deploy/compare/compare_plan.h"

#include <jansson.h>

#define DP_COMPARE_TRY_SHARE "0.2" /* of the training file, that a try of --lr-grid is scored on */

struct dp_compare_job {
    const struct dp_compare_plan *plan;
    const struct dp_compare_mode *mode;
    uint64_t seed;
    const char *rate;         /* NULL: that of the mode, or of the flags */
    bool is_try;              /* of --lr-grid: a part of the training file is held back, and scored */
    char dir[160];            /* of the run, in the comparison's: "runs/async/seed-1" */
    char title[160];          /* for the line that shows how far it is */
    struct dp_cli_line *line; /* or NULL: nothing is shown */
    int signal;               /* after DP_STOPPING: which */
    bool refused;             /* afterwards: it failed before it trained, and would again */
};

/* *out: {"mode", "seed", "dir", "status", "error", "diverged" (true, or left out), "wall_seconds", "report", "samples"}, the caller's. */
enum dp_status dp_compare_job_run(struct dp_compare_job *job, json_t **out, struct dp_error *err);

/* ---- its parts */

/* Whether a run's own report has the settings that were asked of it (compare_settings.c).
 * Promise   Each setting that differs among the runs of a comparison is checked: seed, the mode's
 *           consistency, work, workers and threads, whether ranks added the gradients, whether it pulled
 *           ahead, the learning rate, injected delays; and the settings of the mode's own that reports have.
 * false: `why` names the first setting that differs, with both values. A setting that the report lacks differs. */
DP_MUST_USE
bool dp_compare_settings_match(const struct dp_compare_job *job, const json_t *report, char *why,
                               size_t size);
/* Sets least_seconds and efficiency of a run of a comparison, where it has them (compare_efficiency.c). */
void dp_efficiency_add(json_t *run);

#endif
