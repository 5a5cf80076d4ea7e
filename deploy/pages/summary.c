#include "deploy/pages/summary.h"

#include "common/model/mode.h"
#include "deploy/pages/page.h"
#include "deploy/run/epoch_choice.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static const char *plural(double count)
{
    return count == 1 ? "" : "s";
}

static void put_mode(const struct dp_training *t, FILE *to)
{
    const char *text = dp_training_text(json_object_get(t->report, "settings"), "consistency");
    enum dp_consistency mode;
    uint32_t slack;
    if (!dp_mode_parse(text, &mode, &slack)) {
        if (text[0])
            fprintf(to, ", in mode %s", text);
        return;
    }
    const struct dp_mode *of = dp_mode_of(mode);
    fprintf(to, ", %s", of->how);
    if (of->slack == DP_SLACK_AHEAD)
        fprintf(to, " of %" PRIu32 " step%s", slack, plural(slack));
    if (dp_mode_backups(mode, slack) > 0)
        fprintf(to, " with %" PRIu32 " backup worker%s", slack, plural(slack));
}

static void put_what(const struct dp_training *t, FILE *to)
{
    const char *model = dp_training_text(t->report, "model");
    double examples = dp_training_number(t->report, "data", "examples", NULL),
           workers = dp_training_number(t->report, "settings", "workers", NULL),
           servers = dp_training_number(t->report, "settings", "servers", NULL);
    char text[DP_PAGE_NUMBER_BYTES];
    fprintf(to, "%s was trained for %s epoch%s", model[0] ? model : "A model",
            dp_page_number((double)t->count, -1, text), plural((double)t->count));
    if (examples >= 0)
        fprintf(to, " on %s example%s", dp_page_number(examples, -1, text), plural(examples));
    if (workers >= 1)
        fprintf(to, " by %.0f worker%s", workers, plural(workers));
    if (servers >= 1)
        fprintf(to, " with %.0f server%s", servers, plural(servers));
    put_mode(t, to);
    fputs(". ", to);
}

/* "accuracy 0.9812, loss 0.07123 on the test set"; false: nothing was measured there. */
static bool put_metrics(const struct dp_training *t, const json_t *epoch, const char *set, FILE *to)
{
    struct dp_training_metric metric[DP_TRAINING_METRICS_MAX];
    size_t count = dp_training_metrics(t, metric);
    const char *before = "";
    char text[DP_PAGE_NUMBER_BYTES];
    for (size_t i = count; i-- > 0;) { /* the loss last */
        double value = dp_training_metric(epoch, set, metric[i].key);
        if (isnan(value))
            continue;
        fprintf(to, "%s%s %s", before, metric[i].name, dp_page_number(value, metric[i].digits, text));
        before = ", ";
    }
    if (before[0])
        fprintf(to, " on the %s set", strcmp(set, "train") == 0 ? "training" : set);
    return before[0] != '\0';
}

static void put_result(const struct dp_training *t, FILE *to)
{
    const json_t *final = json_object_get(t->report, "final"),
                 *last = t->count ? json_array_get(t->epochs, t->count - 1) : NULL;
    double kept = dp_training_number(t->report, "kept_epoch", NULL);
    char text[DP_PAGE_NUMBER_BYTES];
    if (!last)
        return;
    if (final)
        fputs("The trained model", to);
    else
        fprintf(to, "After epoch %.0f it", t->number[t->count - 1]);
    if (final && kept >= 1 && kept != t->number[t->count - 1])
        fprintf(to, ", with the weights of epoch %.0f,", kept);
    fputs(" reached ", to);
    const json_t *from = final ? final : last;
    bool some = put_metrics(t, from, "test", to);
    if (!isnan(dp_training_metric(from, "validation", "loss")) && some)
        fputs(", ", to);
    some = put_metrics(t, from, "validation", to) || some;
    if (!some && !put_metrics(t, last, "train", to))
        fputs("nothing that was measured", to);
    fputs(". ", to);
    const json_t *best = json_array_get(t->epochs, dp_epoch_best(t->epochs));
    const char *set = json_object_get(best, "validation") ? "validation"
                      : json_object_get(best, "test")     ? "test"
                                                          : "train";
    if (t->count < 2 || isnan(dp_training_metric(best, set, "loss")))
        return;
    fprintf(to, "The best epoch by %s loss was epoch %.0f (%s). ",
            strcmp(set, "train") == 0 ? "training" : set, t->number[dp_epoch_best(t->epochs)],
            dp_page_number(dp_training_metric(best, set, "loss"), 5, text));
}

static void put_speed(const struct dp_training *t, FILE *to)
{
    double rate = dp_training_number(t->report, "throughput", "examples_per_s", NULL),
           seconds = dp_training_number(t->report, "throughput", "seconds", NULL);
    char text[DP_PAGE_NUMBER_BYTES], time[DP_PAGE_NUMBER_BYTES];
    if (!(rate > 0))
        return;
    fprintf(to, "The throughput was %s examples/s over %s s of training. ", dp_page_number(rate, -1, text),
            dp_page_number(seconds, 1, time));
}

static void put_staleness(const struct dp_training *t, FILE *to)
{
    struct dp_training_histogram h;
    const json_t *staleness = json_object_get(t->report, "staleness");
    bool alone = json_array_size(json_object_get(t->report, "workers")) == 1;
    if (!dp_training_staleness(staleness, &h))
        return;
    fprintf(to,
            "The staleness of a push, the number of pushes%s applied between its pull and itself, was %s at "
            "the median "
            "(p50) and %s at p99. ",
            alone ? "" : " of others", dp_training_quantile(&h, 0.5), dp_training_quantile(&h, 0.99));
}

/* Of backups. */
static void put_dropped(const struct dp_training *t, FILE *to)
{
    const json_t *workers = json_object_get(t->report, "workers");
    double dropped = dp_training_number(t->report, "dropped", "pushes", NULL), pushes = 0;
    char all[DP_PAGE_NUMBER_BYTES], late[DP_PAGE_NUMBER_BYTES];
    for (size_t w = 0; w < json_array_size(workers); w++)
        pushes += dp_training_number(json_array_get(workers, w), "pushes", NULL);
    if (!(dropped >= 0) || !(pushes > 0))
        return;
    fprintf(to, "Of %s pushes %s came too late for their step and were dropped. ",
            dp_page_number(pushes, -1, all), dp_page_number(dropped, -1, late));
}

/* What most of the workers' time went into, and what came next. */
static void put_bound(const struct dp_training *t, FILE *to)
{
    double s[DP_SHARES], sum = 0;
    if (!dp_training_shares(t->report, s))
        return;
    for (int i = 0; i < DP_SHARES; i++)
        sum += s[i];
    const struct {
        const char *name;
        double seconds;
    } of[] = {{"computing", s[DP_SHARE_COMPUTE] + s[DP_SHARE_DEVICE]},
              {"the servers and the network (requests, waiting for rows and answers)",
               s[DP_SHARE_REQUESTS] + s[DP_SHARE_PULL] + s[DP_SHARE_PUSH]},
              {"waiting for other workers", s[DP_SHARE_RULE]},
              {"injected delays", s[DP_SHARE_INJECTED]},
              {"reading data", s[DP_SHARE_READ]},
              {"other work of the loop", s[DP_SHARE_OTHER]}};
    size_t first = 0, second = 1;
    for (size_t i = 1; i < sizeof of / sizeof of[0]; i++)
        first = of[i].seconds > of[first].seconds ? i : first;
    second = first == 0 ? 1 : 0;
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++)
        second = i != first && of[i].seconds > of[second].seconds ? i : second;
    double share = 100 * of[first].seconds / sum;
    fprintf(to,
            share >= 50 ? "It was bounded by %s: %.0f%% of the workers' time"
                        : "No single thing bounded it; the largest part of the workers' time was %s, %.0f%%",
            of[first].name, share);
    if (of[second].seconds > 0.005 * sum)
        fprintf(to, "; next came %s, %.0f%%", of[second].name, 100 * of[second].seconds / sum);
    fputs(".", to);
}

/* ", with 4 cores": nothing where it is not known. */
static void put_part(FILE *to, const char **before, const char *format, const char *value)
{
    if (!value[0])
        return;
    fputs(*before, to);
    for (const char *c = format; *c; c++)
        if (*c == '*')
            fputs(value, to);
        else
            fputc(*c, to);
    *before = ", ";
}

void dp_summary_put_origin(FILE *to, const void *origin)
{
    const json_t *machine = json_object_get(origin, "machine");
    double cores = dp_training_number(machine, "cores", NULL),
           memory = dp_training_number(machine, "memory_bytes", NULL);
    char number[DP_PAGE_NUMBER_BYTES];
    const char *before = "";
    put_part(to, &before, "Made with Downpour *", dp_training_text(origin, "version"));
    put_part(to, &before, "begun *", dp_training_text(origin, "began"));
    put_part(to, &before, "on *", dp_training_text(machine, "processor"));
    put_part(to, &before, "* cores", isnan(cores) ? "" : dp_page_number(cores, -1, number));
    put_part(to, &before, "* GiB of memory",
             isnan(memory) ? "" : dp_page_number(memory / (1 << 30), 1, number));
    put_part(to, &before, "*", dp_training_text(machine, "system"));
    double seconds = dp_training_number(origin, "seconds", NULL); /* of a comparison */
    put_part(to, &before, "in * s", isnan(seconds) ? "" : dp_page_number(seconds, -1, number));
    if (before[0])
        fputc('.', to);
}

void dp_summary_put_text(FILE *to, const void *training)
{
    put_what(training, to);
    put_result(training, to);
    put_speed(training, to);
    put_staleness(training, to);
    put_dropped(training, to);
    put_bound(training, to);
}

/* ---- warnings */

static void warn_unfinished(const struct dp_training *t, FILE *to)
{
    const char *ended = dp_training_text(t->report, "ended"), *error = dp_training_text(t->report, "error");
    double epochs = dp_training_number(t->report, "settings", "epochs", NULL);
    if (json_is_true(json_object_get(t->report, "finished")))
        return;
    fprintf(to, "This training is not finished: %s after %zu",
            strcmp(ended, "failed") == 0 ? "it failed"
            : ended[0]                   ? "it was stopped"
                                         : "the report was written",
            t->count);
    if (epochs >= 1)
        fprintf(to, " of %.0f", epochs);
    fprintf(to, " epoch%s. %s%s", plural(epochs >= 1 ? epochs : (double)t->count), error,
            error[0] ? ". " : "");
}

static void warn_newer(const struct dp_training *t, FILE *to)
{
    double run = dp_training_number(t->report, "settings", "run", NULL);
    if (t->begun > 0 && run >= 1 && run != t->begun)
        fprintf(to, "The directory has run %u by now; this is the report of run %.0f. ", (unsigned)t->begun,
                run);
}

static void warn_lost(const struct dp_training *t, FILE *to)
{
    size_t unknown = 0;
    for (size_t i = 0; i < t->count; i++)
        unknown += !(dp_training_number(json_array_get(t->epochs, i), "seconds", NULL) > 0);
    if (unknown > 0)
        fprintf(to,
                "How long %zu of the epochs took is not known, as after a store was restored; nothing is "
                "drawn over "
                "time. ",
                unknown);
}

static void warn_workers(const struct dp_training *t, FILE *to)
{
    const json_t *workers = json_object_get(t->report, "workers");
    for (size_t w = 0; w < json_array_size(workers); w++) {
        const json_t *one = json_array_get(workers, w);
        double left = dp_training_number(one, "left", "minibatches", NULL),
               missed = dp_training_number(one, "missed_examples", NULL);
        if (left >= 0)
            fprintf(to, "Worker %zu left in epoch %.0f: %.0f of its minibatches were not trained. ", w,
                    dp_training_number(one, "left", "epoch", NULL), left);
        else if (missed > 0)
            fprintf(to, "Worker %zu was away: %.0f of its examples were not trained. ", w, missed);
        if (json_is_true(json_object_get(one, "absent")))
            fprintf(to, "Worker %zu gave no sign at the end; others did its work. ", w);
    }
}

void dp_summary_put_warnings(FILE *to, const void *training)
{
    warn_unfinished(training, to);
    warn_newer(training, to);
    warn_lost(training, to);
    warn_workers(training, to);
}
