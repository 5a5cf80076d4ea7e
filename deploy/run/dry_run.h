/* Dry run: what a training would be, and how long it would take, by a trial in a directory of its own:
 *     begin (before the plan is made) -> look, look, ... until it is enough -> tell -> end
 *     --continue: the trial has new weights, and reads its files by the schema of the run that is there.
 * Promise   Nothing changes but below TMPDIR. Reading, servers and workers are those of the training, so what
 *           they refuse is refused. The directory is removed.
 * Failure   DP_ARGUMENT: flags that go on with an earlier run otherwise, or data that can be read only
 *           once. */
#ifndef DP_RUN_DRY_RUN_H
#define DP_RUN_DRY_RUN_H

#include "deploy/cli/progress.h"
#include "deploy/run/run_flags.h"

struct dp_dry_run {
    char dir[DP_PATH_MAX + 1];   /* "": it is no dry run */
    const char *earlier;         /* the directory of --continue, whose weights stay; or NULL */
    uint64_t begun_ms;           /* before anything was read */
    uint64_t since_ms, since;    /* the first examples that were seen */
    uint64_t now_ms, now, total; /* the last ones */
};

/* values: of the command; changed to those of the trial. */
enum dp_status dp_dry_run_begin(struct dp_dry_run *dry, const char **values, struct dp_error *err);
/* Whether a few seconds of training were seen. */
bool dp_dry_run_look(struct dp_dry_run *dry, const struct dp_cli_progress *seen);
/* report: the trial's. json: one line, for programs. */
enum dp_status dp_dry_run_tell(const struct dp_dry_run *dry, const char *report,
                               const struct dp_cluster *cluster, bool json, FILE *file, struct dp_error *err);
void dp_dry_run_end(struct dp_dry_run *dry);

#endif
