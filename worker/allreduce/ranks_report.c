#include "worker/allreduce/ranks_report.h"

#include "common/base/log.h"
#include "worker/telemetry/report.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

static enum dp_status write_all(const struct dp_ranks_report *ranks, const char *how,
                                const struct dp_worker_stats *workers, struct dp_error *err)
{
    const struct dp_cluster_training *training = &ranks->cluster->training;
    uint32_t ended = ranks->own->ended;
    struct dp_speed speed;
    struct dp_tested *tested = calloc(training->epochs, sizeof *tested);
    if (!tested)
        return dp_fail(err, DP_NOMEM, "no memory for the report of %" PRIu32 " epochs", training->epochs);
    const struct dp_report report = {.cluster = ranks->cluster,
                                     .reduced_by = how,
                                     .epochs_by_size = ranks->given->training.epochs == 0,
                                     .batch_by_size = ranks->given->training.batch == 0,
                                     .examples = dp_dataset_examples(ranks->train),
                                     .digest = dp_dataset_digest(ranks->train),
                                     .workers = workers,
                                     .tested = tested,
                                     .epochs = ended,
                                     .minibatches = ended * dp_dataset_batches(ranks->train),
                                     .finished = !ranks->stopped && !ranks->diverged,
                                     .ended = ranks->stopped    ? "stopped"
                                              : ranks->diverged ? "failed"
                                                                : NULL,
                                     .error = ranks->error,
                                     .diverged = ranks->diverged};
    enum dp_status st = dp_report_speed(&report, &speed, err);
    if (st == DP_OK)
        dp_log(DP_LOG_INFO, "trained %" PRIu32 " epochs in %.1f s, %.0f examples/s", ended, speed.seconds,
               speed.examples_per_s);
    if (st == DP_OK && training->report[0])
        st = dp_report_write(&report, training->report, err);
    free(tested);
    return st;
}

static enum dp_status unpack_all(const struct dp_ranks_report *ranks, const struct dp_gathered *all,
                                 const struct dp_reducer *reducer, struct dp_error *err)
{
    uint32_t count = reducer->ranks;
    struct dp_worker_stats *workers = calloc(count, sizeof *workers);
    enum dp_status st =
        workers ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the stats of %" PRIu32 " ranks", count);
    for (uint32_t w = 0; st == DP_OK && w < count; w++)
        st = dp_worker_stats_unpack(all[w].bytes, all[w].size, ranks->cluster->training.epochs, &workers[w],
                                    err);
    if (st == DP_OK)
        st = write_all(ranks, reducer->how, workers, err);
    for (uint32_t w = 0; workers && w < count; w++)
        dp_worker_stats_clear(&workers[w]);
    free(workers);
    return st;
}

enum dp_status dp_ranks_report_write(const struct dp_ranks_report *report, const struct dp_reducer *reducer,
                                     struct dp_error *err)
{
    char *text = NULL;
    struct dp_gathered *all = reducer->rank == 0 ? calloc(reducer->ranks, sizeof *all) : NULL;
    enum dp_status st =
        reducer->rank != 0 || all
            ? dp_worker_stats_pack(report->own, &text, err)
            : dp_fail(err, DP_NOMEM, "no memory for the stats of %" PRIu32 " ranks", reducer->ranks);
    if (st == DP_OK)
        st = reducer->ops->gather(reducer->self, text, strlen(text), all, err);
    if (st == DP_OK && all)
        st = unpack_all(report, all, reducer, err);
    for (uint32_t w = 0; all && w < reducer->ranks; w++)
        free(all[w].bytes);
    free(all);
    free(text);
    return st;
}
