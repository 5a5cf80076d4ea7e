#include "worker/telemetry/interim.h"

#include "common/base/log.h"

#include <inttypes.h>
#include <stdlib.h>

#define SHARE 20u /* writing takes at most 1/SHARE of the time */

enum dp_status dp_interim_init(struct dp_interim *interim, const struct dp_job *job, struct dp_error *err)
{
    const struct dp_cluster_training *t = &job->cluster->training;
    enum dp_status st = DP_OK;
    *interim = (struct dp_interim){.count = t->workers};
    interim->heard = calloc(t->workers, sizeof *interim->heard);
    interim->all = calloc(t->workers, sizeof *interim->all);
    interim->known = calloc(t->workers, sizeof *interim->known);
    if (!interim->heard || !interim->all || !interim->known)
        st = dp_fail(err, DP_NOMEM, "no memory for the stats of %" PRIu32 " workers", t->workers);
    for (uint32_t w = 0; st == DP_OK && w < t->workers; w++)
        st = dp_worker_stats_init(&interim->heard[w], w, t->epochs, err);
    return st;
}

void dp_interim_clear(struct dp_interim *interim)
{
    for (uint32_t w = 0; interim->heard && w < interim->count; w++)
        dp_worker_stats_clear(&interim->heard[w]);
    free(interim->heard);
    free(interim->all);
    free(interim->known);
    *interim = (struct dp_interim){0};
}

/* Reads the stats of one worker, if its note is there: after a restart the first server has no notes for a
 * while. */
static void hear(struct dp_interim *interim, struct dp_job *job, uint32_t worker)
{
    struct dp_shared_note note = {0};
    struct dp_worker_stats stats = {0};
    struct dp_error err = {0};
    enum dp_status st = dp_shared_one(job, "figures", worker, &note, &err);
    if (st == DP_OK && note.bytes)
        st = dp_worker_stats_unpack(note.bytes, note.size, job->cluster->training.epochs, &stats, &err);
    dp_shared_note_clear(&note);
    if (st != DP_OK)
        dp_log(DP_LOG_WARN, "the report lacks the latest stats of worker %" PRIu32 ": %s", worker, err.text);
    else if (stats.epoch && stats.ended >= interim->heard[worker].ended) {
        dp_worker_stats_clear(&interim->heard[worker]);
        interim->heard[worker] = stats;
        interim->known[worker] = true;
    } else {
        dp_worker_stats_clear(&stats);
    }
}

static uint32_t ended_by_all(const struct dp_interim *interim)
{
    uint32_t ended = interim->all[0].ended;
    for (uint32_t w = 1; w < interim->count; w++)
        if (interim->all[w].ended < ended)
            ended = interim->all[w].ended;
    return ended;
}

void dp_interim_write(struct dp_interim *interim, struct dp_job *job, const struct dp_worker_stats *own,
                      bool begun, struct dp_report *report, uint64_t batches)
{
    const char *path = job->cluster->training.report;
    uint64_t from = dp_clock_ns(&job->clock);
    bool last = report->ended != NULL, known = true;
    bool asks = job->client && (!last || report->diverged || dp_job_stopped(job));
    struct dp_error err = {0};
    if (!path[0] || (from < interim->next_ns && !last))
        return;
    for (uint32_t w = 1; asks && w < interim->count; w++)
        hear(interim, job, w);
    interim->all[0] = *own;
    for (uint32_t w = 1; w < interim->count; w++) {
        interim->all[w] = interim->heard[w];
        known &= interim->known[w];
    }
    if (begun && !known)
        return;
    report->workers = interim->all;
    report->epochs = ended_by_all(interim);
    report->minibatches = report->epochs * batches;
    enum dp_status st = dp_report_write(report, path, &err);
    if (st != DP_OK && (!interim->failed || last))
        dp_log(DP_LOG_WARN, "%s; %s", err.text,
               last ? "the previous report stays"
                    : "training continues, and will try to write the next report");
    interim->failed = st != DP_OK;
    uint64_t now = dp_clock_ns(&job->clock);
    interim->next_ns = now + (now - from) * (SHARE - 1);
}
