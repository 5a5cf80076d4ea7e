/* Sums over all workers. A file of its own, since both advice.c and report.c use it. */
#include "worker/telemetry/report.h"

#include <inttypes.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

double dp_report_train_loss(const struct dp_report *report, uint32_t epoch)
{
    double sum = 0;
    uint64_t examples = 0;
    for (uint32_t w = 0; w < report->cluster->training.workers; w++) {
        sum += report->workers[w].epoch[epoch].loss_sum;
        examples += report->workers[w].epoch[epoch].examples;
    }
    return examples ? sum / (double)examples : (double)NAN;
}

static uint64_t trained(const struct dp_report *report, uint32_t epoch)
{
    uint64_t examples = 0;
    for (uint32_t w = 0; w < report->cluster->training.workers; w++)
        examples += report->workers[w].epoch[epoch].examples;
    return examples;
}

static bool is_leased(const struct dp_report *report)
{
    return report->cluster->training.work == DP_CLUSTER_LEASED;
}

/* An epoch of leased work ends when every shard has each minibatch, once. Workers' counts do not show
 * that: two that train the same one may each be first on some shard, and what a killed worker counted may
 * be lost. */
uint64_t dp_report_examples(const struct dp_report *report, uint32_t epoch)
{
    return is_leased(report) ? report->examples : trained(report, epoch);
}

uint64_t dp_report_done_twice(const struct dp_report *report, uint32_t epoch)
{
    uint64_t all = trained(report, epoch);
    return is_leased(report) && all > report->examples ? all - report->examples : 0;
}

/* Those done twice that the workers' stats do not name, since neither of two workers was first on every
 * shard. */
static uint64_t unnamed_twice(const struct dp_report *report)
{
    uint64_t twice = 0, named = 0;
    for (uint32_t e = 0; e < report->epochs; e++)
        twice += dp_report_done_twice(report, e);
    for (uint32_t w = 0; w < report->cluster->training.workers; w++)
        named += report->workers[w].repeated_examples;
    return twice > named ? twice - named : 0;
}

uint64_t dp_report_applied(const struct dp_report *report)
{
    uint64_t applied = 0;
    for (uint32_t e = 0; is_leased(report) && e < report->epochs; e++)
        applied += dp_report_examples(report, e);
    for (uint32_t w = 0; !is_leased(report) && w < report->cluster->training.workers; w++)
        applied += dp_worker_stats_applied_examples(&report->workers[w]);
    return applied;
}

struct span {
    double from, to;
};

static int by_from(const void *a, const void *b)
{
    const struct span *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* The length of the union of the spans; sorts them. */
static double covered(struct span *spans, size_t count)
{
    double sum = 0, end = -HUGE_VAL;
    qsort(spans, count, sizeof *spans, by_from);
    for (size_t i = 0; i < count; i++) {
        sum += fmax(0, spans[i].to - fmax(end, spans[i].from));
        end = fmax(end, spans[i].to);
    }
    return sum;
}

/* Of the epochs from `first` to below `end`. */
static enum dp_status seconds_of(const struct dp_report *report, uint32_t first, uint32_t end, double *out,
                                 struct dp_error *err)
{
    const uint32_t workers = report->cluster->training.workers;
    size_t count = 0;
    *out = 0;
    struct span *spans = calloc((size_t)workers * (end - first) + 1, sizeof *spans);
    if (!spans)
        return dp_fail(err, DP_NOMEM, "no memory for the times of %" PRIu32 " workers", workers);
    for (uint32_t w = 0; w < workers; w++) {
        for (uint32_t e = first; e < end; e++) {
            const struct dp_epoch_stats *epoch = &report->workers[w].epoch[e];
            if (epoch->examples)
                spans[count++] = (struct span){.from = epoch->begun, .to = epoch->begun + epoch->seconds};
        }
    }
    *out = covered(spans, count);
    free(spans);
    return DP_OK;
}

enum dp_status dp_report_seconds(const struct dp_report *report, uint32_t epoch, double *out,
                                 struct dp_error *err)
{
    return seconds_of(report, epoch, epoch + 1, out, err);
}

enum dp_status dp_report_speed(const struct dp_report *report, struct dp_speed *out, struct dp_error *err)
{
    const struct dp_cluster_training *t = &report->cluster->training;
    *out = (struct dp_speed){0};
    enum dp_status st = seconds_of(report, 0, t->epochs, &out->seconds, err);
    if (st != DP_OK)
        return st;
    for (uint32_t w = 0; w < t->workers; w++)
        out->examples += dp_worker_stats_new_examples(&report->workers[w]);
    uint64_t unnamed = unnamed_twice(report);
    out->examples -= unnamed < out->examples ? unnamed : out->examples;
    out->examples_per_s = out->seconds > 0 ? (double)out->examples / out->seconds : (double)NAN;
    return DP_OK;
}
