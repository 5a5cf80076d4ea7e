#include "worker/observe/scored.h"

#include "worker/context/row_source.h"
#include "worker/score/evaluate.h"

#include <inttypes.h>
#include <stdlib.h>

/* As dp_train opens them. */
static enum dp_status data_open(struct dp_scored *scored, struct dp_error *err)
{
    struct dp_job *job = &scored->job;
    if (!scored->cluster.data.train[0])
        return dp_fail(err, DP_ARGUMENT,
                       "the cluster file names no data.train, to which the test set belongs");
    enum dp_status st = dp_sets_train(job, &scored->cluster.training, &scored->sets, err);
    if (st == DP_OK)
        st = dp_sets_judged(job, &scored->sets, err);
    scored->set = scored->sets.test ? scored->sets.test : scored->sets.valid;
    if (st == DP_OK && !scored->set)
        st = dp_fail(
            err, DP_ARGUMENT,
            "there is nothing to score: the cluster file names no test set (data.test, data.holdout)");
    return st == DP_OK ? dp_job_program(job, scored->sets.train, scored->sets.test, scored->sets.valid, err)
                       : st;
}

enum dp_status dp_scored_open(const struct dp_cluster *cluster, const atomic_int *stop, struct dp_scored *out,
                              struct dp_error *err)
{
    *out = (struct dp_scored){.cluster = *cluster};
    enum dp_status st = dp_job_open_alone(&out->cluster, 0, stop, &out->job, err);
    if (st != DP_OK)
        return st;
    dp_progress_init(&out->progress, &out->job, 0);
    st = data_open(out, err);
    if (st != DP_OK)
        dp_scored_close(out);
    return st;
}

void dp_scored_close(struct dp_scored *scored)
{
    dp_sets_close(&scored->sets);
    dp_job_close(&scored->job);
    scored->set = NULL;
}

enum dp_status dp_scored_figures(struct dp_scored *scored, const struct dp_row_source *rows,
                                 struct dp_figures *out, struct dp_error *err)
{
    uint32_t workers = scored->cluster.training.workers;
    struct dp_shared_note *parts = calloc(workers, sizeof *parts);
    enum dp_status st =
        parts ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the parts of %" PRIu32 " workers", workers);
    scored->job.rows = rows;
    for (uint32_t w = 0; st == DP_OK && w < workers; w++)
        st = dp_evaluate_part(&scored->job, &scored->progress, w, scored->set, 1, &parts[w].bytes,
                              &parts[w].size, err);
    if (st == DP_OK)
        st = dp_evaluate_merge(&scored->job, scored->set, 1, parts, out, err);
    scored->job.rows = NULL;
    for (uint32_t w = 0; parts && w < workers; w++)
        dp_shared_note_clear(&parts[w]);
    free(parts);
    return st;
}
