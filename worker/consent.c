#include "worker/consent.h"

#include "worker/peers.h"
#include "worker/push_id.h"

#include <stdlib.h>

/* Whether a worker's plan is one that somebody trains by, or trained by: of a process that is at work or done, or by which pushes
 * were made. */
static enum dp_status plan_counts(struct dp_job *job, uint32_t worker, const struct dp_note *plan,
                                  bool *counts, struct dp_error *err)
{
    const struct dp_cluster_training *settings = &job->cluster->training;
    struct dp_note progress = {0};
    uint64_t bits = 0;
    enum dp_status st = dp_peers_one(job, "progress", worker, &progress, err);
    bool told = dp_peers_process(&progress) > 0,
         of_it = dp_peers_process(&progress) == dp_agreed_process(plan->bytes, plan->size);
    *counts = !dp_peers_ended_early(&progress) && (!told || of_it);
    free(progress.bytes);
    if (st != DP_OK || *counts)
        return st;
    st = dp_job_pushed(job, dp_push_stream(settings->run, 0), dp_push_number(worker, settings->workers, 0), 1,
                       &bits, err);
    *counts = st == DP_TOO_OLD || (bits & 1);
    return st == DP_TOO_OLD ? DP_OK : st;
}

/* One worker's note, if it is there, may be its plan, and says something else: that as the failure. */
static enum dp_status compare(struct dp_job *job, const char *text, bool trains, uint32_t worker,
                              struct dp_error *err)
{
    const uint32_t run = job->cluster->training.run;
    struct dp_note theirs = {0};
    struct dp_error why = {0};
    bool counts = false;
    enum dp_status same = DP_OK, st = dp_peers_one(job, "plan", worker, &theirs, err);
    if (theirs.bytes)
        same = trains ? dp_agreed_same(text, theirs.bytes, theirs.size, run, worker, &why)
                      : dp_agreed_scores(text, theirs.bytes, theirs.size, run, &why);
    if (st == DP_OK && same != DP_OK)
        st = plan_counts(job, worker, &theirs, &counts, err);
    if (st == DP_OK && counts)
        st = dp_fail(err, same, "%s", why.text);
    free(theirs.bytes);
    return st;
}

/* Whose note is there already. Of two that differ the second to put its own sees the first one's. */
static enum dp_status compare_all(struct dp_job *job, const char *text, bool trains, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t w = 0; st == DP_OK && w < job->cluster->training.workers; w++)
        if (!trains || w != job->worker)
            st = compare(job, text, trains, w, err);
    return st;
}

enum dp_status dp_consent(struct dp_job *job, const struct dp_agreed_set *train,
                          const struct dp_agreed_set *judged, bool begun, struct dp_error *err)
{
    struct dp_note before = {0};
    char text[DP_AGREED_BYTES];
    unsigned char note[DP_AGREED_PROCESS_BYTES + DP_AGREED_BYTES];
    enum dp_status st = DP_OK;
    dp_agreed_text(job->cluster, train, judged, text);
    if (begun)
        st = dp_peers_one(job, "plan", job->worker, &before, err);
    if (st == DP_OK && before.bytes)
        st = dp_agreed_check(text, before.bytes, before.size, job->cluster->training.run, err);
    free(before.bytes);
    if (st == DP_OK)
        st = dp_peers_keep(job, "plan", note, dp_agreed_pack(job->process, text, note), err);
    return st == DP_OK ? compare_all(job, text, true, err) : st;
}

enum dp_status dp_consent_scores(struct dp_job *job, struct dp_error *err)
{
    char head[DP_AGREED_BYTES];
    dp_agreed_head(job->cluster, head);
    return compare_all(job, head, false, err);
}
