#include "deploy/compare/compare_words.h"

#include "common/base/json.h"
#include "common/model/mode.h"
#include "deploy/compare/answer_parts.h"
#include "deploy/pages/training.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static const json_t *root_of(const struct dp_claims *claims)
{
    return claims->root;
}

/* ---- data and efficiency */

double dp_compare_mode_mean(const json_t *root, size_t mode, const char *key)
{
    double sum = 0, n = 0;
    const json_t *run;
    for (size_t s = 0; (run = dp_comparison_next_trained(root, mode, &s));) {
        double one = dp_json_get_real(run, key);
        sum += isfinite(one) ? one : 0;
        n += isfinite(one);
    }
    return n > 0 ? sum / n : (double)NAN;
}

/* A sum over a mode's runs that ended well of a number in their reports: "applied", "examples". */
static double sum_of(const json_t *root, size_t mode, const char *object, const char *key)
{
    double sum = 0;
    const json_t *run;
    for (size_t s = 0; (run = dp_comparison_next_trained(root, mode, &s));) {
        double one = dp_json_get_real(json_object_get(json_object_get(run, "report"), object), key);
        sum += isfinite(one) ? one : 0;
    }
    return sum;
}

double dp_compare_examples_share(const json_t *root, size_t mode, const char *object, const char *key)
{
    double planned = sum_of(root, mode, "applied", "planned");
    return planned > 0 ? sum_of(root, mode, object, key) / planned : (double)NAN;
}

const char *dp_compare_share_text(double share, char out[16])
{
    (void)snprintf(out, 16, isfinite(share) ? "%.0f%%" : "-", 100 * share);
    return out;
}

/* ---- what */

/* "4 workers", or "1 to 8 workers" where modes differ in that (async@8). */
static const char *workers_text(const json_t *root, char out[48])
{
    double usual = dp_training_number(dp_comparison_settings(root), "workers", NULL), least = HUGE_VAL,
           most = 0;
    for (size_t m = 0; m < dp_comparison_modes(root); m++) {
        double own = dp_training_number(dp_comparison_mode_object(root, m), "workers", NULL);
        least = fmin(least, isfinite(own) ? own : usual);
        most = fmax(most, isfinite(own) ? own : usual);
    }
    if (least < most)
        (void)snprintf(out, 48, "%.0f to %.0f workers", least, most);
    else
        (void)snprintf(out, 48, "%.0f worker%s", most, most == 1 ? "" : "s");
    return out;
}

void dp_compare_put_what(FILE *to, const void *claims)
{
    const json_t *root = root_of(claims), *settings = dp_comparison_settings(root);
    size_t modes = dp_comparison_modes(root), seeds = dp_comparison_seeds(root);
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
}

void dp_compare_put_brackets(FILE *to, const void *claims)
{
    size_t seeds = dp_comparison_seeds(root_of(claims)), count = ((const struct dp_claims *)claims)->count;
    if (seeds < 2)
        return;
    fputs("Brackets after a mode's own figure hold its 95% interval over the seeds.", to);
    if (count > 0 && seeds >= DP_CLAIM_PAIRS)
        fprintf(to,
                " Those of differences and ratios between modes are wider, for the %zu claims that this page "
                "could "
                "make (Holm's method): of modes that do not differ, one page in twenty claims a difference.",
                count);
}

/* ---- runs that did not end well */

static void put_sign(FILE *to, const json_t *root, const json_t *run)
{
    struct dp_ending ending = dp_ending_of(root, run);
    const char *metric = dp_compare_metric_name(dp_comparison_metric(root));
    const char *error = dp_training_text(run, "error");
    if (ending.sign == DP_ENDING_NOT_FINITE)
        fputs("its last weights are not finite", to);
    else if (ending.sign == DP_ENDING_BASELINE)
        fprintf(to, "it ended at %s %.4g, worse than a constant prediction (%.4g)", metric, ending.end,
                ending.reference);
    else if (ending.sign == DP_ENDING_BEGIN)
        fprintf(to, "it ended at %s %.4g, no better than it began (%.4g)", metric, ending.end,
                ending.reference);
    else
        fputs(error[0]                                 ? error
              : ending.outcome == DP_COMPARISON_FAILED ? "it has no samples of its weights"
                                                       : "its report says so",
              to);
}

/* "2 of 3 seeds", "the one seed that was tried", "1 of the 2 seeds that were tried" */
static void put_share_of_seeds(FILE *to, size_t count, size_t tried, size_t seeds)
{
    if (tried == seeds)
        fprintf(to, "%zu of %zu seed%s", count, seeds, seeds == 1 ? "" : "s");
    else if (tried == 1)
        fputs("the one seed that was tried", to);
    else
        fprintf(to, "%zu of the %zu seeds that were tried", count, tried);
}

/* How often, and why the first time. */
static size_t put_ended(FILE *to, const json_t *root, size_t mode, enum dp_comparison_outcome outcome,
                        const char *verb)
{
    size_t seeds = dp_comparison_seeds(root), count = dp_ending_count(root, mode, outcome);
    if (count == 0)
        return 0;
    fprintf(to, "%s %s with ", dp_comparison_mode(root, mode), verb);
    put_share_of_seeds(to, count, dp_comparison_tried(root, mode), seeds);
    fputs(": ", to);
    for (size_t s = 0; s < seeds; s++) {
        const json_t *run = dp_comparison_run_of(root, mode, s);
        if (!run || dp_comparison_outcome(root, run) != outcome)
            continue;
        put_sign(to, root, run);
        break;
    }
    fputs(". ", to);
    return count;
}

/* No mode was trained with them, as no mode ended well with the seeds before. */
static void put_untried(FILE *to, const json_t *root)
{
    size_t seeds = dp_comparison_seeds(root), most = 0;
    for (size_t m = 0; m < dp_comparison_modes(root); m++) {
        size_t tried = dp_comparison_tried(root, m);
        most = tried > most ? tried : most;
    }
    if (most == 0 || most == seeds)
        return;
    fprintf(to, "The other seed%s not tried. ", seeds - most > 1 ? "s were" : " was");
}

void dp_compare_put_failed(FILE *to, const void *claims)
{
    const json_t *root = root_of(claims);
    size_t bad = 0, runs = dp_comparison_runs(root);
    for (size_t m = 0; m < dp_comparison_modes(root); m++) {
        bad += put_ended(to, root, m, DP_COMPARISON_DIVERGED, "diverged");
        bad += put_ended(to, root, m, DP_COMPARISON_FAILED, "failed");
    }
    if (bad > 0 && bad < runs)
        fputs("A mode is compared with others only if it ended well with every seed. ", to);
    if (json_is_true(json_object_get(root, "finished")))
        put_untried(to, root);
    else
        fprintf(to, "This comparison is not finished: %zu of %zu runs have ended. ", runs,
                dp_comparison_modes(root) * dp_comparison_seeds(root));
}

/* ---- the target */

static void put_target(FILE *to, const json_t *target)
{
    double keeps = dp_training_number(target, "keeps", NULL),
           baseline = dp_training_number(target, "baseline", NULL);
    fprintf(to, "The target is %s %.4g", dp_compare_metric_name(dp_training_text(target, "metric")),
            dp_training_number(target, "value", NULL));
    if (strcmp(dp_training_text(target, "chosen"), "given") == 0)
        fputs(". ", to);
    else if (isfinite(keeps) && isfinite(baseline))
        fprintf(to,
                ", chosen afterwards: 95%% of the way from the baseline (%.4g) to the value that the best "
                "mode keeps at its end (%.4g); --target sets another. ",
                baseline, keeps);
    else
        fputs(", chosen afterwards; --target sets another. ", to);
}

/* "Seconds to it: 1.60 [1.55, 1.66] (async), 2.10 [2.00, 2.20] (sync). ", of those that always have it. */
static void put_values(FILE *to, const json_t *root, enum dp_comparison_quantity quantity, const char *what)
{
    char text[DP_COMPARE_INTERVAL_BYTES];
    size_t told = 0;
    for (size_t m = 0; m < dp_comparison_modes(root); m++) {
        struct dp_interval own = dp_statistics_mode(root, m, quantity);
        if (dp_ending_is_whole(root, m) && own.n == dp_ending_count(root, m, DP_COMPARISON_GOOD))
            fprintf(to, "%s%s (%s)", told++ ? ", " : what,
                    dp_compare_interval_text(&own, dp_compare_digits(quantity, own.mean), text),
                    dp_comparison_mode(root, m));
    }
    fputs(told ? ". " : "", to);
}

static void put_counts(FILE *to, const json_t *root)
{
    for (size_t m = 0; m < dp_comparison_modes(root); m++) {
        size_t runs = dp_ending_count(root, m, DP_COMPARISON_GOOD),
               n = dp_statistics_mode(root, m, DP_QUANTITY_SECONDS_TO).n;
        if (dp_ending_is_whole(root, m) && n < runs)
            fprintf(to, "%s reached it with %zu of %zu seed%s. ", dp_comparison_mode(root, m), n, runs,
                    runs == 1 ? "" : "s");
    }
}

static void put_shown(FILE *to, const json_t *root, const struct dp_claim *claim)
{
    char text[DP_COMPARE_INTERVAL_BYTES];
    if (claim->quantity == DP_QUANTITY_METRIC)
        fprintf(to, "%s is %s", dp_comparison_mode(root, claim->mode),
                dp_compare_by_text(&claim->difference, text));
    else
        fprintf(to, "%s needed %s times as many examples", dp_comparison_mode(root, claim->mode),
                dp_compare_ratio_text(&claim->ratio, text));
}

/* Against the first mode: which differences are shown, and which are not. */
static void put_beside(FILE *to, const struct dp_claims *claims, enum dp_comparison_quantity quantity)
{
    const json_t *root = claims->root;
    const char *first = dp_comparison_mode(root, 0);
    bool at_end = quantity == DP_QUANTITY_METRIC;
    size_t shown = 0, hidden = 0;
    for (size_t m = 1; m < dp_comparison_modes(root); m++) {
        struct dp_claim claim = dp_claims_find(claims, quantity, m, 0);
        if (!claim.shown)
            continue;
        fputs(shown++ ? ", " : "", to);
        put_shown(to, root, &claim);
    }
    if (shown > 0)
        fprintf(to, " %s %s. ", at_end ? "than" : "as", first);
    for (size_t m = 1; m < dp_comparison_modes(root); m++) {
        struct dp_claim claim = dp_claims_find(claims, quantity, m, 0);
        if (claim.n < DP_CLAIM_PAIRS || claim.shown)
            continue;
        if (hidden++ == 0)
            fprintf(to, "No difference from %s %s is shown for ", first,
                    at_end ? "at the end" : "in examples to the target");
        fprintf(to, "%s%s", hidden > 1 ? ", " : "", dp_comparison_mode(root, m));
    }
    fputs(hidden > 0 ? ". " : "", to);
}

static bool any_ran_but_none_is_whole(const json_t *root)
{
    for (size_t m = 0; m < dp_comparison_modes(root); m++)
        if (dp_ending_is_whole(root, m))
            return false;
    return dp_comparison_metric(root)[0] != '\0';
}

void dp_compare_put_target(FILE *to, const void *claims)
{
    const json_t *root = root_of(claims), *target = json_object_get(dp_comparison_settings(root), "target");
    if (!json_is_object(target)) {
        if (any_ran_but_none_is_whole(root))
            fputs("No target is chosen, as no mode ended well with every seed: --target sets one.", to);
        return;
    }
    put_target(to, target);
    if (!dp_answer_is_short(root))
        put_values(to, root, DP_QUANTITY_SECONDS_TO, "Seconds to it: ");
    put_values(to, root, DP_QUANTITY_EXAMPLES_TO, "Examples to it: ");
    put_counts(to, root);
    put_beside(to, claims, DP_QUANTITY_EXAMPLES_TO);
}

/* ---- the end */

/* What a mode did without, of the examples of all its epochs. the: how the sentence begins. */
static bool put_dropped(FILE *to, const json_t *root, size_t mode, const char *the)
{
    double late = dp_compare_examples_share(root, mode, "dropped", "late");
    double skipped = dp_compare_examples_share(root, mode, "dropped", "not_computed");
    bool has_late = late >= 0.0005, has_skipped = skipped >= 0.0005;
    if (has_late)
        fprintf(to, "%s gradients of %.1f%% of its examples came too late", the, 100 * late);
    if (has_late && has_skipped)
        fprintf(to, ", and those of %.1f%% were not computed", 100 * skipped);
    else if (has_skipped)
        fprintf(to, "%s gradients of %.1f%% of its examples were not computed", the, 100 * skipped);
    return has_late || has_skipped;
}

/* What it trained on stands next to its end. */
static void put_applied(FILE *to, const json_t *root)
{
    for (size_t m = 0; m < dp_comparison_modes(root); m++) {
        double applied = dp_compare_examples_share(root, m, "applied", "examples");
        if (!(applied < 0.995) || !dp_ending_is_whole(root, m))
            continue;
        fprintf(to, "%s was trained on %.0f%% of its examples: ", dp_comparison_mode(root, m), 100 * applied);
        fputs(put_dropped(to, root, m, "the") ? ". " : "the rest was not applied. ", to);
    }
}

void dp_compare_put_end(FILE *to, const void *claims)
{
    const json_t *root = root_of(claims);
    char what[96];
    (void)snprintf(what, sizeof what, "At the end %.60s is ",
                   dp_compare_metric_name(dp_comparison_metric(root)));
    put_values(to, root, DP_QUANTITY_METRIC, what);
    put_beside(to, claims, DP_QUANTITY_METRIC);
    put_applied(to, root);
}

void dp_compare_put_speed(FILE *to, const void *claims)
{
    const json_t *root = root_of(claims);
    char text[DP_COMPARE_INTERVAL_BYTES];
    size_t said = 0;
    for (size_t m = 0; m < dp_comparison_modes(root); m++) {
        if (!dp_ending_is_whole(root, m))
            continue;
        struct dp_claim claim = dp_claims_find(claims, DP_QUANTITY_EXAMPLES_S, m, 0);
        struct dp_interval own = dp_statistics_mode(root, m, DP_QUANTITY_EXAMPLES_S);
        fprintf(to, "%s%s %s", said++ ? "; " : "Applied examples a second: ", dp_comparison_mode(root, m),
                dp_compare_interval_text(&own, -1, text));
        if (claim.ratio.n > 0)
            fprintf(to, ", %s times those of %s", dp_compare_ratio_text(&claim.ratio, text),
                    dp_comparison_mode(root, 0));
    }
    fputs(said ? "." : "", to);
}

/* ---- the rule */

/* In the mode's name. */
static bool has_own_rate(const json_t *root, size_t mode)
{
    const json_t *of = dp_comparison_mode_object(root, mode);
    return json_object_get(json_object_get(of, "settings"), "rate") != NULL;
}

void dp_compare_put_rates(FILE *to, const void *claims)
{
    const json_t *root = root_of(claims);
    const bool tried = json_array_size(json_object_get(dp_comparison_settings(root), "rates")) > 0;
    double share = dp_training_number(dp_comparison_settings(root), "grid_share", NULL);
    size_t own = 0;
    for (size_t m = 0; m < dp_comparison_modes(root); m++)
        own += has_own_rate(root, m);
    if (tried)
        fprintf(to, "Each mode%s has the rate that ended best on seeds other than those above.",
                own > 0 ? " without a rate in its name" : "");
    if (tried && isfinite(share))
        fprintf(to, " These were scored on %.0f%% of the training file, which they did not train on.",
                100 * share);
    if (!tried && own > 0)
        fputs("Modes have the rates that were given for them.", to);
    else if (!tried && dp_comparison_modes(root) > 1)
        fputs("All modes have one learning rate, which may suit some better than others: --lr-grid gives "
              "each its own.",
              to);
    dp_answer_put_edges(root, to);
}

bool dp_compare_add_shares(const json_t *root, size_t mode, double sums[DP_SHARES])
{
    bool any = false;
    const json_t *run;
    for (size_t s = 0; (run = dp_comparison_next_trained(root, mode, &s));) {
        double seconds[DP_SHARES];
        if (!dp_training_shares(json_object_get(run, "report"), seconds))
            continue;
        any = true;
        for (int k = 0; k < DP_SHARES; k++)
            sums[k] += seconds[k];
    }
    return any;
}

/* Of all workers' time in all good runs of a mode, what went into this kind; NaN: unknown. */
static double share_of(const json_t *root, size_t mode, enum dp_training_share share)
{
    double sums[DP_SHARES] = {0}, all = 0;
    (void)dp_compare_add_shares(root, mode, sums);
    for (int k = 0; k < DP_SHARES; k++)
        all += sums[k];
    return all > 0 ? sums[share] / all : (double)NAN;
}

void dp_compare_put_limit(FILE *to, const void *context)
{
    const struct dp_compare_limit *limit = context;
    const json_t *root = limit->root;
    size_t mode = limit->mode;
    const json_t *of = dp_comparison_mode_object(root, mode);
    enum dp_consistency number = 0;
    uint32_t slack = 0;
    bool known = dp_mode_parse(dp_training_text(of, "consistency"), &number, &slack);
    const struct dp_mode *rule = dp_mode_of(number);
    bool straggler = known && dp_training_text(dp_comparison_settings(root), "straggler")[0] != '\0';
    bool leased = strcmp(dp_training_text(of, "work"), "leased") == 0;
    double waited = share_of(root, mode, DP_SHARE_RULE);
    if (waited >= 0.005)
        fprintf(to, "Its workers spent %.0f%% of their time waiting for others. ", 100 * waited);
    if (put_dropped(to, root, mode, "The"))
        fputs(". ", to);
    if (straggler && rule->by_step && slack == 0)
        fputs("Each step waits for the slowest worker, so all go at its speed. ", to);
    if (straggler && rule->slack == DP_SLACK_AHEAD)
        fputs("If a worker is always slow, the bound helps only at the start: once the others are "
              "that many steps ahead, "
              "all go at its speed, as in sync. ",
              to);
    if (straggler && !rule->waits && !leased && dp_training_number(of, "threads", NULL) <= 1)
        fputs(
            "No worker waits within an epoch, but each has a fixed share of it, so it ends when the slowest "
            "worker has trained its own. ",
            to);
    if (straggler && leased)
        fputs("The slow worker takes fewer minibatches, and the others take the rest. ", to);
}

/* ---- efficiency and disturbances */

void dp_compare_put_efficiency(FILE *to, const void *claims)
{
    const json_t *root = root_of(claims);
    size_t told = 0;
    for (size_t m = 0; m < dp_comparison_modes(root); m++) {
        double mean = dp_compare_mode_mean(root, m, "efficiency");
        if (isfinite(mean))
            fprintf(to, "%s%s %.0f%%",
                    told++ ? ", " : "Of the speed that the injected delays allow, runs reached: ",
                    dp_comparison_mode(root, m), 100 * fmin(mean, 1));
    }
    fputs(told ? "." : "", to);
}

static void warn_slow(const json_t *root, FILE *to)
{
    const json_t *worst = NULL;
    size_t low = 0;
    double least = INFINITY;
    for (size_t i = 0; i < dp_comparison_runs(root); i++) {
        const json_t *run = dp_comparison_run(root, i);
        double one = dp_comparison_is_good(run) ? dp_json_get_real(run, "efficiency") : (double)NAN;
        low += one < DP_COMPARE_EFFICIENT;
        if (one < least) {
            least = one;
            worst = run;
        }
    }
    if (low == 0)
        return;
    fprintf(to, "%zu of %zu runs came to less than %.0f%% of the speed that their delays allow%s: ", low,
            dp_comparison_runs(root), 100 * DP_COMPARE_EFFICIENT, low > 1 ? "; the worst" : "");
    fprintf(to, "%s with seed %.0f took %.2f times its least time. ",
            json_string_value(json_object_get(worst, "mode")), dp_json_get_real(worst, "seed"), 1 / least);
    fputs("The rest went into computing, servers and waiting for a processor, so times depend on this "
          "machine; with leased work also into leases of a slow worker. ",
          to);
}

/* With delays workers sleep, and their efficiency says whether the processors sufficed. */
static void warn_crowded(const json_t *root, FILE *to)
{
    const json_t *modes = json_object_get(root, "modes");
    double cores = dp_json_get_real(json_object_get(root, "machine"), "cores");
    size_t told = 0;
    for (size_t m = 0; m < json_array_size(modes); m++) {
        double workers = dp_json_get_real(json_array_get(modes, m), "workers");
        if (!(workers > cores) || isfinite(dp_compare_mode_mean(root, m, "efficiency")))
            continue;
        fprintf(to, "%s%s", told++ ? ", " : "More workers than this machine has processors: ",
                dp_comparison_mode(root, m));
    }
    if (told)
        fputs(". Their times are not those of workers on machines of their own. ", to);
}

static void warn_busy(const json_t *root, FILE *to)
{
    const json_t *most = NULL;
    double load = dp_json_get_real(json_object_get(dp_comparison_run(root, 0), "machine"), "load"),
           steal = 0.02;
    bool tried = json_array_size(json_object_get(dp_comparison_settings(root), "grid_seeds")) > 0;
    if (load > 1 && !tried) /* the load after the tries of --lr-grid is theirs */
        fprintf(to, "The machine was busy when the comparison began (load %.1f). ", load);
    for (size_t i = 0; i < dp_comparison_runs(root); i++) {
        double one = dp_json_get_real(json_object_get(dp_comparison_run(root, i), "machine"), "steal_share");
        if (one > steal) {
            steal = one;
            most = dp_comparison_run(root, i);
        }
    }
    if (most)
        fprintf(to, "Its host gave up to %.0f%% of its processor time to others (%s with seed %.0f). ",
                100 * steal, json_string_value(json_object_get(most, "mode")),
                dp_json_get_real(most, "seed"));
}

void dp_compare_put_machine(FILE *to, const void *claims)
{
    warn_slow(root_of(claims), to);
    warn_crowded(root_of(claims), to);
    warn_busy(root_of(claims), to);
}
