/* Efficiency: the least possible time of a run with its injected delays, and the run's distance from it.
 *     least_seconds   the run's time if only the delays (common/config/injection.h) take time. Each minibatch takes what was
 *                     drawn for it, and each mode waits as its rule says:
 *                       async, fixed work   each worker for itself; the slowest one ends the run
 *                       ssp:S               step t of a worker begins when all have finished step t - S - 1
 *                       sync, all-reduce    a step ends with its slowest worker
 *                       sync:B              a step ends when all but B workers have finished it. A worker that is late gives its minibatch up
 *                                           with prefetch, unless it is its last of the epoch, and else finishes it
 *                       leased work         a free worker takes the next portion of the list; when there is none, the one that would be
 *                                           done last, if it is done sooner so; an epoch begins when the one before is done
 *                       threads             a free thread takes the next minibatch of the push
 *     efficiency      least_seconds / seconds of training. With leased work or threads, this model orders the
 *                     work differently from the run, so the efficiency may be slightly above 1.
 * Promise   A run without injected delays has neither, nor has one whose report lacks a setting that they
 *           follow from. */
#include "deploy/compare/compare_job.h"

#include "common/base/json.h"
#include "common/config/consistency.h"
#include "common/config/injection.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* What a run's time follows from. */
struct efficiency_run {
    struct dp_cluster_training training;
    struct dp_cluster_rule rule;
    uint32_t members;         /* workers with minibatches */
    uint64_t batches, rounds; /* of an epoch: minibatches, and steps of the worker with the most of them */
    uint32_t every;           /* minibatches in a step */
    struct dp_injection delay[DP_MODE_WORKERS_MAX];
};

/* ---- settings */

static uint64_t count_of(const json_t *object, const char *key)
{
    const json_t *value = json_object_get(object, key);
    return json_is_integer(value) && json_integer_value(value) > 0 ? (uint64_t)json_integer_value(value) : 0;
}

static const char *text_of(const json_t *object, const char *key)
{
    const char *text = json_string_value(json_object_get(object, key));
    return text ? text : "";
}

static enum dp_cluster_jitter jitter_of(const char *name)
{
    for (enum dp_cluster_jitter j = DP_JITTER_EXP; j <= DP_JITTER_UNIFORM; j++)
        if (strcmp(name, dp_cluster_jitter_name(j)) == 0)
            return j;
    return DP_JITTER_NONE;
}

static void read_training(const json_t *report, struct dp_cluster_training *t)
{
    const json_t *settings = json_object_get(report, "settings");
    t->workers = (uint32_t)count_of(settings, "workers");
    t->threads = (uint32_t)count_of(settings, "threads");
    t->batch = (uint32_t)count_of(settings, "batch");
    t->epochs = (uint32_t)count_of(settings, "epochs");
    t->seed = dp_json_get_u64(settings, "seed");
    t->fetch_every = (uint32_t)count_of(settings, "fetch_every");
    t->push_every = (uint32_t)count_of(settings, "push_every");
    t->accumulate = (uint32_t)count_of(settings, "accumulate");
    t->overlap = json_is_true(json_object_get(settings, "overlap"));
    t->first_epoch = (uint32_t)count_of(report, "first_epoch");
    t->jitter = jitter_of(text_of(settings, "jitter"));
    bool leased = strcmp(text_of(settings, "work"), dp_cluster_work_name(DP_CLUSTER_LEASED)) == 0;
    t->work = leased ? DP_CLUSTER_LEASED : DP_CLUSTER_FIXED;
    (void)snprintf(t->consistency, sizeof t->consistency, "%s", text_of(settings, "consistency"));
    (void)snprintf(t->pace, sizeof t->pace, "%s", text_of(settings, "pace"));
    (void)snprintf(t->straggler, sizeof t->straggler, "%s", text_of(settings, "straggler"));
}

static bool is_delayed(const struct efficiency_run *run)
{
    for (uint32_t w = 0; w < run->training.workers; w++)
        if (run->delay[w].pace_ns > 0 || run->delay[w].longer_ns > 0)
            return true;
    return false;
}

/* false: there are no delays, or the report lacks something. */
static bool run_open(const json_t *report, struct efficiency_run *run)
{
    struct dp_cluster_training *t = &run->training;
    struct dp_error unheard = {0};
    *run = (struct efficiency_run){0};
    read_training(report, t);
    uint64_t examples = count_of(json_object_get(report, "data"), "examples");
    bool known = t->workers > 0 && t->workers <= DP_MODE_WORKERS_MAX && t->threads > 0 && t->batch > 0 &&
                 t->epochs > 0 && t->fetch_every > 0 && t->push_every > 0 && examples > 0;
    if (!known || dp_injection_check(t, NULL, &unheard) != DP_OK ||
        dp_cluster_rule_parse(t->consistency, "consistency", &run->rule, &unheard) != DP_OK)
        return false;
    run->batches = (examples + t->batch - 1) / t->batch;
    run->every = dp_cluster_pushed_together(t);
    run->rounds = ((run->batches + t->workers - 1) / t->workers + run->every - 1) / run->every;
    run->members = run->batches < t->workers ? (uint32_t)run->batches : t->workers;
    for (uint32_t w = 0; w < t->workers; w++)
        run->delay[w] = dp_injection_of(t, w);
    return is_delayed(run);
}

/* ---- a step */

static size_t earliest(const double *free_ns, size_t count)
{
    size_t first = 0;
    for (size_t i = 1; i < count; i++)
        if (free_ns[i] < free_ns[first])
            first = i;
    return first;
}

static double greatest(const double *values, size_t count)
{
    double most = 0;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, values[i]);
    return most;
}

/* How long step s of the share `share` takes on `worker`: its minibatches one after the other, on each thread. */
static double step_ns(const struct efficiency_run *run, uint32_t share, uint32_t worker, uint32_t epoch,
                      uint64_t s)
{
    const struct dp_cluster_training *t = &run->training;
    double thread_ns[DP_MODE_WORKERS_MAX];
    size_t threads = t->threads < DP_MODE_WORKERS_MAX ? t->threads : DP_MODE_WORKERS_MAX;
    memset(thread_ns, 0, threads * sizeof *thread_ns);
    for (uint32_t i = 0; i < run->every; i++) {
        uint64_t number = share + (s * run->every + i) * t->workers;
        if (number < run->batches)
            thread_ns[earliest(thread_ns, threads)] += (double)dp_injection_takes_ns(
                &run->delay[worker], t->seed, (uint64_t)t->first_epoch + epoch, number, 0);
    }
    return greatest(thread_ns, threads);
}

/* ---- modes. Each gives the nanoseconds of the run; NaN: no memory. */

/* Modes that do not apply steps at once; async as an ssp without a bound. */
static double fixed_ns(const struct efficiency_run *run)
{
    uint64_t steps = run->rounds * run->training.epochs, t = 0;
    uint64_t ahead = dp_mode_ahead(run->rule.mode, run->rule.slack), bound = ahead < steps ? ahead : steps;
    double *ended = calloc(steps + 1, sizeof *ended), at[DP_MODE_WORKERS_MAX] = {0};
    for (uint32_t e = 0; ended && e < run->training.epochs; e++)
        for (uint64_t s = 0; s < run->rounds; s++, t++) {
            double open = t > bound ? ended[t - bound - 1] : 0;
            for (uint32_t w = 0; w < run->members; w++)
                at[w] = fmax(at[w], open) + step_ns(run, w, w, e, s);
            ended[t] = greatest(at, run->members);
        }
    double all = ended ? greatest(at, run->members) : (double)NAN;
    free(ended);
    return all;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* When a worker that is late for a step goes on. */
static double late_until(const struct efficiency_run *run, uint32_t w, uint64_t s, double closed, double end)
{
    bool later = w + (s + 1) * run->every * run->training.workers < run->batches;
    return run->training.overlap && later ? closed : end;
}

static double sync_ns(const struct efficiency_run *run)
{
    uint32_t n = run->members, awaited = run->rule.slack < n ? n - run->rule.slack : 1;
    double open = 0, at[DP_MODE_WORKERS_MAX] = {0}, end[DP_MODE_WORKERS_MAX], sorted[DP_MODE_WORKERS_MAX];
    for (uint32_t e = 0; e < run->training.epochs; e++)
        for (uint64_t s = 0; s < run->rounds; s++) {
            for (uint32_t w = 0; w < n; w++)
                sorted[w] = end[w] = fmax(at[w], open) + step_ns(run, w, w, e, s);
            qsort(sorted, n, sizeof sorted[0], by_value);
            double closed = sorted[awaited - 1];
            for (uint32_t w = 0; w < n; w++)
                if (end[w] <= closed)
                    at[w] = end[w];
                else if (fmax(at[w], open) <= closed) /* else it did not begin this step */
                    at[w] = late_until(run, w, s, closed, end[w]);
            open = closed;
        }
    return fmax(open, greatest(at, n));
}

/* Portion p of an epoch: the step p / workers of the share p % workers. */
static double portion_ns(const struct efficiency_run *run, uint32_t worker, uint32_t epoch, uint64_t p)
{
    uint32_t workers = run->training.workers;
    return step_ns(run, (uint32_t)(p % workers), worker, epoch, p / workers);
}

/* The list is empty: what would be done last is done twice, as long as a worker is there that does it sooner. Returns when all is done. */
static double backups_ns(const struct efficiency_run *run, uint32_t epoch, double *done, uint64_t portions,
                         double *at)
{
    for (;;) {
        uint64_t last = 0;
        uint32_t best = 0;
        double sooner = INFINITY;
        for (uint64_t p = 1; p < portions; p++)
            last = done[p] > done[last] ? p : last;
        for (uint32_t w = 0; w < run->training.workers; w++) {
            double end = at[w] + portion_ns(run, w, epoch, last);
            best = end < sooner ? w : best;
            sooner = fmin(sooner, end);
        }
        if (sooner >= done[last])
            return done[last];
        done[last] = at[best] = sooner;
    }
}

static double leased_ns(const struct efficiency_run *run)
{
    uint32_t workers = run->training.workers;
    uint64_t portions = 0;
    for (uint32_t w = 0; w < run->members; w++)
        portions += ((run->batches - w + workers - 1) / workers + run->every - 1) / run->every;
    double begun = 0, at[DP_MODE_WORKERS_MAX] = {0}, *done = calloc(portions, sizeof *done);
    for (uint32_t e = 0; done && e < run->training.epochs; e++) {
        for (uint32_t w = 0; w < workers; w++)
            at[w] = fmax(at[w], begun);
        for (uint64_t p = 0; p < portions; p++) {
            size_t w = earliest(at, workers);
            done[p] = at[w] += portion_ns(run, (uint32_t)w, e, p);
        }
        begun = backups_ns(run, e, done, portions, at);
    }
    double all = done ? greatest(at, workers) : (double)NAN;
    free(done);
    return all;
}

/* NaN: see Promise. */
static double least_s(const json_t *report)
{
    struct efficiency_run run;
    double ns = NAN;
    if (run_open(report, &run))
        ns = run.training.work == DP_CLUSTER_LEASED ? leased_ns(&run)
             : dp_cluster_rule_by_step(run.rule)    ? sync_ns(&run)
                                                    : fixed_ns(&run);
    return ns / 1e9;
}

void dp_efficiency_add(json_t *run)
{
    const json_t *report = json_object_get(run, "report");
    double least = least_s(report), took = dp_json_get_real(json_object_get(report, "throughput"), "seconds");
    if (!(least > 0) || !(took > 0))
        return;
    dp_json_set_real(run, "least_seconds", least);
    dp_json_set_real(run, "efficiency", least / took);
}
