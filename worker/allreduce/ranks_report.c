#include "worker/allreduce/ranks_report.h"

#include "common/base/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static enum dp_status write_report(const struct dp_report *report, struct dp_error *err)
{
    const struct dp_cluster_training *training = &report->cluster->training;
    struct dp_speed speed;
    enum dp_status st = dp_report_speed(report, &speed, err);
    if (st == DP_OK)
        dp_log(DP_LOG_INFO, "trained %" PRIu32 " epochs in %.1f s, %.0f examples/s", report->epochs,
               speed.seconds, speed.examples_per_s);
    return st == DP_OK && training->report[0] ? dp_report_write(report, training->report, err) : st;
}

static enum dp_status write_all(const struct dp_report *report, const struct dp_gathered *all, uint32_t ranks,
                                struct dp_error *err)
{
    struct dp_worker_stats *workers = calloc(ranks, sizeof *workers);
    struct dp_report full = *report;
    enum dp_status st =
        workers ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the stats of %" PRIu32 " ranks", ranks);
    for (uint32_t w = 0; st == DP_OK && w < ranks; w++)
        st = dp_worker_stats_unpack(all[w].bytes, all[w].size, report->cluster->training.epochs, &workers[w],
                                    err);
    full.workers = workers;
    if (st == DP_OK)
        st = write_report(&full, err);
    for (uint32_t w = 0; workers && w < ranks; w++)
        dp_worker_stats_clear(&workers[w]);
    free(workers);
    return st;
}

enum dp_status dp_ranks_report_write(const struct dp_report *report, const struct dp_worker_stats *own,
                                     const struct dp_reducer *reducer, struct dp_error *err)
{
    char *text = NULL;
    struct dp_gathered *all = reducer->rank == 0 ? calloc(reducer->ranks, sizeof *all) : NULL;
    enum dp_status st =
        reducer->rank != 0 || all
            ? dp_worker_stats_pack(own, &text, err)
            : dp_fail(err, DP_NOMEM, "no memory for the stats of %" PRIu32 " ranks", reducer->ranks);
    if (st == DP_OK)
        st = reducer->ops->gather(reducer->self, text, strlen(text), all, err);
    if (st == DP_OK && all)
        st = write_all(report, all, reducer->ranks, err);
    for (uint32_t w = 0; all && w < reducer->ranks; w++)
        free(all[w].bytes);
    free(all);
    free(text);
    return st;
}
