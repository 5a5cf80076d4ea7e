#include "deploy/compare/compare_words.h"

#include "deploy/compare/page.h"
#include "deploy/compare/training.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIGITS_MAX 8
#define MODES_MAX  64u /* of a file; compare makes 8 */

static size_t modes_of(const json_t *root)
{
    size_t modes = dp_comparison_modes(root);
    return modes < MODES_MAX ? modes : MODES_MAX;
}

const char *dp_compare_interval_text(const struct dp_interval *interval, int digits,
                                     char out[DP_COMPARE_INTERVAL_BYTES])
{
    char mean[DP_PAGE_NUMBER_BYTES], low[DP_PAGE_NUMBER_BYTES], high[DP_PAGE_NUMBER_BYTES];
    if (interval->n == 0)
        (void)snprintf(out, DP_COMPARE_INTERVAL_BYTES, "-");
    else if (interval->n == 1)
        (void)snprintf(out, DP_COMPARE_INTERVAL_BYTES, "%s", dp_page_number(interval->mean, digits, mean));
    else
        (void)snprintf(
            out, DP_COMPARE_INTERVAL_BYTES, "%s [%s, %s]", dp_page_number(interval->mean, digits, mean),
            dp_page_number(interval->low, digits, low), dp_page_number(interval->high, digits, high));
    return out;
}

const char *dp_compare_metric_name(const char *key)
{
    static const char *const names[][2] = {{"auc", "AUC"},
                                           {"rmse", "RMSE"},
                                           {"hr@10", "HR@10"},
                                           {"ndcg@10", "NDCG@10"},
                                           {"logloss", "log loss"}};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(key, names[i][0]) == 0)
            return names[i][1];
    return key;
}

int dp_compare_digits(enum dp_comparison_quantity quantity, double value)
{
    switch (quantity) {
    case DP_QUANTITY_METRIC:
    case DP_QUANTITY_LOSS:
        return fabs(value) >= 10 ? 2 : 4;
    case DP_QUANTITY_SECONDS_TO:
    case DP_QUANTITY_SECONDS:
    case DP_QUANTITY_BATCHES_S:
        return fabs(value) >= 100 ? 1 : 2;
    case DP_QUANTITY_EXAMPLES_TO:
    case DP_QUANTITY_EXAMPLES_S:
    case DP_QUANTITIES:
        break;
    }
    return -1;
}

static void put_interval(FILE *to, const struct dp_interval *interval, int digits)
{
    char text[DP_COMPARE_INTERVAL_BYTES];
    fputs(dp_compare_interval_text(interval, digits, text), to);
}

static void put_number(FILE *to, double value, int digits)
{
    char text[DP_PAGE_NUMBER_BYTES];
    fputs(dp_page_number(value, digits, text), to);
}

/* The stream's text, once it is closed. */
static char *done(FILE *to, char **text)
{
    if (to && fclose(to) == 0)
        return *text;
    free(*text);
    return NULL;
}

static const json_t *settings_of(const json_t *root)
{
    return json_object_get(root, "settings");
}

/* ---- what */

/* "4 workers", or "1 to 8 workers" where modes differ in that (async@8). */
static const char *workers_text(const json_t *root, char out[48])
{
    double usual = dp_training_number(settings_of(root), "workers", NULL), least = HUGE_VAL, most = 0;
    for (size_t m = 0; m < modes_of(root); m++) {
        double own = dp_training_number(json_array_get(json_object_get(root, "modes"), m), "workers", NULL);
        least = fmin(least, isfinite(own) ? own : usual);
        most = fmax(most, isfinite(own) ? own : usual);
    }
    if (least < most)
        (void)snprintf(out, 48, "%.0f to %.0f workers", least, most);
    else
        (void)snprintf(out, 48, "%.0f worker%s", most, most == 1 ? "" : "s");
    return out;
}

char *dp_compare_words_what(const json_t *root)
{
    char *text = NULL;
    size_t size = 0, modes = modes_of(root), seeds = dp_comparison_seeds(root);
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    const json_t *settings = settings_of(root);
    double servers = dp_training_number(settings, "servers", NULL);
    char workers[48];
    fprintf(to, "%s was trained in %zu mode%s (", dp_training_text(settings, "model"), modes,
            modes == 1 ? "" : "s");
    for (size_t m = 0; m < modes; m++)
        fprintf(to, "%s%s", m ? ", " : "", dp_comparison_mode(root, m));
    fprintf(to, "), with %zu seed%s each, by %s with %.0f server%s on one machine.", seeds,
            seeds == 1 ? "" : "s", workers_text(root, workers), servers, servers == 1 ? "" : "s");
    const char *injected = dp_training_text(root, "injected");
    if (injected[0])
        fprintf(to, " Delays were injected, equal in all modes: %s.", injected);
    fputs(" Brackets hold 95% intervals over the seeds.", to);
    if (seeds < DP_STATISTICS_SHOWN)
        fprintf(to, " So few seeds show no difference: that takes %u at least.", DP_STATISTICS_SHOWN);
    return done(to, &text);
}

/* What went wrong with a mode: how often, and why the first time; failed: runs that did not end well, else those that were not scored. */
static size_t put_failed(const json_t *root, size_t mode, bool failed, FILE *to)
{
    size_t count = 0, seeds = dp_comparison_seeds(root);
    const char *why = "";
    for (size_t s = 0; s < seeds; s++) {
        const json_t *run = dp_comparison_run_of(root, mode, s);
        const char *error = dp_training_text(run, "error");
        bool good = dp_comparison_is_good(run);
        if (!run || good == failed || (good && !error[0]))
            continue;
        if (count++ == 0)
            why = error;
    }
    if (count > 0)
        fprintf(to, "%s %s with %zu of %zu seed%s: %s. ", dp_comparison_mode(root, mode),
                failed ? "failed" : "was trained, but not scored,", count, seeds, seeds == 1 ? "" : "s", why);
    return count;
}

char *dp_compare_words_failed(const json_t *root)
{
    char *text = NULL;
    size_t size = 0, failed = 0, runs = dp_comparison_runs(root);
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    if (!json_is_true(json_object_get(root, "finished")))
        fprintf(to, "This comparison is not finished: %zu of %zu runs have ended. ", runs,
                dp_comparison_modes(root) * dp_comparison_seeds(root));
    for (size_t m = 0; m < modes_of(root); m++) {
        failed += put_failed(root, m, true, to);
        (void)put_failed(root, m, false, to);
    }
    if (failed > 0 && failed < runs)
        fputs("What is said of these modes is said of their other runs.", to);
    return done(to, &text);
}

/* ---- the target */

/* Modes by the mean of a quantity, the least first; those without one are left out. Returns how many. */
static size_t ranked(const json_t *root, enum dp_comparison_quantity quantity, size_t order[MODES_MAX])
{
    double mean[MODES_MAX];
    size_t count = 0;
    for (size_t m = 0; m < modes_of(root); m++) {
        struct dp_interval own = dp_statistics_mode(root, m, quantity);
        if (own.n == 0)
            continue;
        size_t at = count++;
        for (; at > 0 && mean[at - 1] > own.mean; at--) {
            mean[at] = mean[at - 1];
            order[at] = order[at - 1];
        }
        mean[at] = own.mean;
        order[at] = m;
    }
    return count;
}

static size_t good_runs(const json_t *root, size_t mode)
{
    size_t good = 0;
    for (size_t s = 0; s < dp_comparison_seeds(root); s++)
        good += dp_comparison_is_good(dp_comparison_run_of(root, mode, s));
    return good;
}

/* It reached the target with every seed that ended well. */
static bool always_reached(const json_t *root, size_t mode)
{
    return good_runs(root, mode) > 0 &&
           dp_statistics_mode(root, mode, DP_QUANTITY_SECONDS_TO).n == good_runs(root, mode);
}

static void put_first(const json_t *root, enum dp_comparison_quantity quantity, const char *unit, FILE *to)
{
    size_t order[MODES_MAX], reached = 0;
    size_t count = ranked(root, quantity, order);
    for (size_t i = 0; i < count; i++)
        if (always_reached(root, order[i]))
            order[reached++] = order[i];
    if (reached == 0)
        return;
    struct dp_interval own = dp_statistics_mode(root, order[0], quantity), ratio;
    fprintf(to, "%s reached it after ", dp_comparison_mode(root, order[0]));
    put_interval(to, &own, dp_compare_digits(quantity, own.mean));
    fprintf(to, " %s", unit);
    if (reached == 1) {
        fputs(". ", to);
        return;
    }
    /* Beside the nearest of those whom it is not shown to be before, else beside the next. */
    size_t near = 1;
    bool shown = true;
    for (size_t i = reached; i-- > 1;) {
        struct dp_interval d = dp_statistics_pair(root, order[i], order[0], quantity, &ratio);
        if (dp_statistics_shows(&d))
            continue;
        shown = false;
        near = i;
    }
    struct dp_interval next = dp_statistics_pair(root, order[near], order[0], quantity, &ratio);
    fprintf(to,
            shown ? ", before all others: the next, %s, took "
                  : "; whether it or %s is first is not shown: that one took ",
            dp_comparison_mode(root, order[near]));
    if (ratio.n > 0) {
        put_interval(to, &ratio, 2);
        fputs(" times as many", to);
    } else {
        put_interval(to, &next, dp_compare_digits(quantity, own.mean));
        fprintf(to, " %s more", unit);
    }
    struct dp_interval last = dp_statistics_pair(root, order[reached - 1], order[0], quantity, &ratio);
    if (reached - 1 > near && dp_statistics_shows(&last) && ratio.n > 0) {
        fprintf(to, ", and the last, %s, ", dp_comparison_mode(root, order[reached - 1]));
        put_interval(to, &ratio, 2);
    }
    fputs(". ", to);
}

/* The fastest mode's time is that of its first or second sample: a matter of when those were taken. */
static bool is_coarse(const json_t *root)
{
    double every = dp_training_number(settings_of(root), "sample_every_s", NULL);
    for (size_t m = 0; m < modes_of(root); m++)
        if (dp_statistics_mode(root, m, DP_QUANTITY_SECONDS_TO).mean < 2 * every)
            return true;
    return false;
}

char *dp_compare_words_target(const json_t *root)
{
    const json_t *target = json_object_get(settings_of(root), "target");
    char *text = NULL;
    size_t size = 0, any = 0;
    FILE *to = json_is_object(target) ? open_memstream(&text, &size) : NULL;
    if (!to)
        return strdup("");
    double value = dp_training_number(target, "value", NULL);
    bool given = strcmp(dp_training_text(target, "chosen"), "given") == 0;
    fprintf(to, "The target is %s ", dp_compare_metric_name(dp_training_text(target, "metric")));
    put_number(to, value, dp_compare_digits(DP_QUANTITY_METRIC, value));
    fputs(given ? ". " : ", where the median run of the worst mode ended (--target sets another). ", to);
    for (size_t m = 0; m < modes_of(root); m++)
        any += dp_statistics_mode(root, m, DP_QUANTITY_SECONDS_TO).n > 0;
    if (any == 0)
        fputs("No mode reached it: a target that is nearer, or more epochs, would tell them apart. ", to);
    bool coarse = any > 0 && is_coarse(root);
    if (coarse)
        fputs("Some mode reached it within the first two samples of the weights, which are too far apart to "
              "tell who was first: "
              "sample more often (--sample-every), or set a target that is further away (--target). ",
              to);
    if (!coarse)
        put_first(root, DP_QUANTITY_SECONDS_TO, "seconds", to);
    if (any > 0 && !coarse) {
        fputs("In examples: ", to);
        put_first(root, DP_QUANTITY_EXAMPLES_TO, "examples", to);
    }
    for (size_t m = 0; any > 0 && m < modes_of(root); m++) {
        size_t good = good_runs(root, m), n = dp_statistics_mode(root, m, DP_QUANTITY_SECONDS_TO).n;
        if (good > 0 && n == 0)
            fprintf(to, "%s did not reach it. ", dp_comparison_mode(root, m));
        else if (n < good)
            fprintf(to, "%s reached it with %zu of %zu seeds only. ", dp_comparison_mode(root, m), n, good);
    }
    return done(to, &text);
}

/* ---- the end */

/* Two digits that count, of what is shown not to be 0. */
static int digits_of_difference(enum dp_comparison_quantity quantity, double value)
{
    int digits = dp_compare_digits(quantity, value);
    while (digits >= 0 && digits < DIGITS_MAX && fabs(value) * pow(10, digits) < 10)
        digits++;
    return digits;
}

/* Of which modes a difference from the first is shown, and of which it is not. */
static void put_differences(const json_t *root, enum dp_comparison_quantity quantity, FILE *to)
{
    struct dp_interval ratio;
    size_t shown = 0, hidden = 0;
    for (size_t m = 1; m < modes_of(root); m++) {
        struct dp_interval d = dp_statistics_pair(root, m, 0, quantity, &ratio);
        if (!dp_statistics_shows(&d))
            continue;
        fprintf(to, "%s%s differs by ", shown++ ? "; " : "", dp_comparison_mode(root, m));
        put_interval(to, &d, digits_of_difference(quantity, d.mean));
    }
    if (shown > 0)
        fprintf(to, " from %s. ", dp_comparison_mode(root, 0));
    for (size_t m = 1; m < modes_of(root); m++) {
        struct dp_interval d = dp_statistics_pair(root, m, 0, quantity, &ratio);
        if (d.n == 0 || dp_statistics_shows(&d))
            continue;
        if (hidden++ == 0)
            fprintf(to, "No difference from %s is shown for %s", dp_comparison_mode(root, 0),
                    dp_comparison_mode(root, m));
        else
            fprintf(to, ", %s", dp_comparison_mode(root, m));
    }
    if (hidden > 0)
        fputs(".", to);
}

char *dp_compare_words_end(const json_t *root)
{
    const char *metric = dp_comparison_metric(root);
    char *text = NULL;
    size_t size = 0, told = 0;
    FILE *to = metric[0] ? open_memstream(&text, &size) : NULL;
    if (!to)
        return strdup("");
    fprintf(to, "At the end %s is ", dp_compare_metric_name(metric));
    for (size_t m = 0; m < modes_of(root); m++) {
        struct dp_interval own = dp_statistics_mode(root, m, DP_QUANTITY_METRIC);
        if (own.n == 0)
            continue;
        fputs(told++ ? ", " : "", to);
        put_interval(to, &own, dp_compare_digits(DP_QUANTITY_METRIC, own.mean));
        fprintf(to, " (%s)", dp_comparison_mode(root, m));
    }
    fputs(told ? ". " : "known of no run. ", to);
    put_differences(root, DP_QUANTITY_METRIC, to);
    return done(to, &text);
}

char *dp_compare_words_speed(const json_t *root)
{
    char *text = NULL;
    size_t size = 0, told = 0;
    struct dp_interval first = dp_statistics_mode(root, 0, DP_QUANTITY_BATCHES_S), ratio;
    FILE *to = first.n > 0 ? open_memstream(&text, &size) : NULL;
    if (!to)
        return strdup("");
    fprintf(to, "%s trained ", dp_comparison_mode(root, 0));
    put_interval(to, &first, dp_compare_digits(DP_QUANTITY_BATCHES_S, first.mean));
    fputs(" minibatches a second whose gradients were applied", to);
    for (size_t m = 1; m < modes_of(root); m++) {
        (void)dp_statistics_pair(root, m, 0, DP_QUANTITY_BATCHES_S, &ratio);
        if (ratio.n == 0)
            continue;
        fprintf(to, "%s%s ", told++ ? ", " : "; ", dp_comparison_mode(root, m));
        put_interval(to, &ratio, 2);
    }
    fputs(told ? " times as many." : ".", to);
    return done(to, &text);
}

/* ---- the rule */

/* Of all workers' time in all good runs of a mode, what went into this kind; NaN: unknown. */
/* The least or the greatest of those that were tried: one beyond may be better. */
static bool is_at_edge(const json_t *rates, double rate)
{
    size_t below = 0, above = 0, i;
    const json_t *one;
    json_array_foreach((json_t *)rates, i, one)
    {
        below += json_number_value(one) < rate;
        above += json_number_value(one) > rate;
    }
    return below == 0 || above == 0;
}

char *dp_compare_words_rates(const json_t *root)
{
    char *text = NULL;
    size_t size = 0, edges = 0;
    const json_t *rates = json_object_get(settings_of(root), "rates");
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    if (json_array_size(rates) > 0)
        fputs("Each mode has the rate that ended best on seeds other than those above.", to);
    else if (modes_of(root) > 1)
        fputs("All modes have one learning rate, which may suit some better than others: --lr-grid gives "
              "each its own.",
              to);
    for (size_t m = 0; m < modes_of(root); m++) {
        double rate = dp_training_number(json_array_get(json_object_get(root, "modes"), m), "rate", NULL);
        if (json_array_size(rates) > 1 && isfinite(rate) && is_at_edge(rates, rate))
            fprintf(to, "%s %s", edges++ ? "," : "", dp_comparison_mode(root, m));
    }
    if (edges > 0)
        fprintf(to, "%s took the least or greatest rate that was tried: one beyond it may be better.",
                edges > 1 ? " each" : "");
    return done(to, &text);
}

static double share_of(const json_t *root, size_t mode, enum dp_training_share share)
{
    double part = 0, all = 0;
    for (size_t s = 0; s < dp_comparison_seeds(root); s++) {
        const json_t *run = dp_comparison_run_of(root, mode, s);
        double seconds[DP_SHARES];
        if (!dp_comparison_is_good(run) || !dp_training_shares(json_object_get(run, "report"), seconds))
            continue;
        part += seconds[share];
        for (int k = 0; k < DP_SHARES; k++)
            all += seconds[k];
    }
    return all > 0 ? part / all : (double)NAN;
}

static double dropped_of(const json_t *root, size_t mode)
{
    double dropped = 0, used = 0;
    for (size_t s = 0; s < dp_comparison_seeds(root); s++) {
        const json_t *run = dp_comparison_run_of(root, mode, s), *report = json_object_get(run, "report");
        if (!dp_comparison_is_good(run))
            continue;
        double lost = dp_training_number(report, "dropped", "examples", NULL);
        double kept = dp_training_number(report, "throughput", "examples_per_s", NULL) *
                      dp_training_number(report, "throughput", "seconds", NULL);
        dropped += isfinite(lost) ? lost : 0;
        used += isfinite(kept) ? kept : 0;
    }
    return dropped + used > 0 ? dropped / (dropped + used) : (double)NAN;
}

char *dp_compare_words_limit(const json_t *root, size_t mode)
{
    const json_t *of = json_array_get(json_object_get(root, "modes"), mode);
    const char *rule = dp_training_text(of, "consistency");
    bool straggler = dp_training_text(settings_of(root), "straggler")[0] != '\0';
    bool leased = strcmp(dp_training_text(of, "work"), "leased") == 0;
    char *text = NULL;
    size_t size = 0;
    double waited = share_of(root, mode, DP_SHARE_RULE), dropped = dropped_of(root, mode);
    FILE *to = open_memstream(&text, &size);
    if (!to)
        return NULL;
    if (waited >= 0.005)
        fprintf(to, "Its workers spent %.0f%% of their time waiting for others. ", 100 * waited);
    if (dropped >= 0.0005)
        fprintf(to,
                "%.1f%% of the examples were dropped: their gradients came too late or were not computed. ",
                100 * dropped);
    if (straggler && strcmp(rule, "sync") == 0)
        fputs("Each step waits for the slowest worker, so all go at its speed. ", to);
    if (straggler && strncmp(rule, "ssp", 3) == 0)
        fputs("Against a worker that is slow for good the bound helps only at the start: once the others are "
              "that many steps ahead, "
              "all go at its speed, as in sync. ",
              to);
    if (straggler && strcmp(rule, "async") == 0 && !leased && dp_training_number(of, "threads", NULL) <= 1)
        fputs("Nobody waits within an epoch, but each has a fixed share of it, so it ends when the slowest "
              "worker has trained its own. ",
              to);
    if (straggler && leased)
        fputs("The slow worker takes fewer minibatches, and the others take the rest. ", to);
    return done(to, &text);
}
