#include "deploy/run/outcome.h"
#include "deploy/cli/path.h"

#include "deploy/cli/progress.h"

#include <jansson.h>
#include <math.h>
#include <string.h>

#define FIXED_MAX 1e11 /* as in the table */

static void print_of_all(const json_t *all, const char *heading, FILE *file)
{
    const char *key, *before = "";
    json_t *value;
    if (!all)
        return;
    fprintf(file, "%s", heading);
    json_object_foreach((json_t *)(uintptr_t)all, key, value)
    {
        if (!strchr(key, '@'))
            continue;
        fprintf(file, "%s%s %.4f", before, key, json_number_value(value));
        before = ", ";
    }
    fprintf(file, " (of all %.0f items, %.0f users)\n", json_number_value(json_object_get(all, "items")),
            json_number_value(json_object_get(all, "users")));
}

/* A line of those that are there. */
static void print_metrics(const json_t *of, const char *heading, FILE *file)
{
    static const struct {
        const char *key, *name;
        int digits;
    } metrics[] = {{"hr10", "HR@10", 4}, {"ndcg10", "NDCG@10", 4}, {"accuracy", "accuracy", 4},
                   {"auc", "AUC", 5},    {"rmse", "RMSE", 5},      {"loss", "loss", 5}};
    bool first = true;
    for (size_t i = 0; i < sizeof metrics / sizeof metrics[0]; i++) {
        const json_t *value = json_object_get(of, metrics[i].key);
        if (!json_is_number(value))
            continue;
        double number = json_number_value(value);
        bool fixed = fabs(number) < FIXED_MAX;
        fprintf(file, fixed ? "%s%s %.*f" : "%s%s %.*g", first ? heading : ", ", metrics[i].name,
                fixed ? dp_cli_digits(number, metrics[i].digits) : metrics[i].digits, number);
        first = false;
    }
    if (!first)
        fputc('\n', file);
}

static void print_final(const json_t *root, const char *set, const char *heading, FILE *file)
{
    const json_t *test = json_object_get(json_object_get(root, "final"), set);
    print_metrics(test, heading, file);
    print_of_all(json_object_get(test, "all_items"), heading, file);
}

static double number_in(const json_t *object, const char *key)
{
    return json_number_value(json_object_get(object, key));
}

/* Why the training ended where it did, where something was looked at for that. */
static void print_stop(const json_t *root, FILE *file)
{
    const json_t *stop = json_object_get(root, "stop");
    const char *why = json_string_value(json_object_get(stop, "why")),
               *text = json_string_value(json_object_get(stop, "text")),
               *set = json_string_value(json_object_get(stop, "set")),
               *metric = json_string_value(json_object_get(stop, "metric"));
    if (!why || !set || !metric)
        return;
    if (strcmp(why, "epochs") != 0)
        fprintf(file, "Stopped:   after epoch %.0f, minibatch %.0f: %s %s\n", number_in(stop, "epoch"),
                number_in(stop, "minibatch"), set, text ? text : metric);
    else if (json_object_get(stop, "goal"))
        fprintf(file, "Not reached: %s %s of %g; it was %g at the end\n", set, metric,
                number_in(stop, "goal"), number_in(stop, "value"));
}

/* What nobody named. */
static void print_chosen(const json_t *root, FILE *file)
{
    const json_t *settings = json_object_get(root, "settings");
    char number[32];
    if (!json_is_true(json_object_get(settings, "epochs_by_size")))
        return;
    fprintf(file,
            "Epochs:    %.0f in minibatches of %.0f, chosen for the size of the training set (%s examples)\n",
            number_in(settings, "epochs"), number_in(settings, "batch"),
            dp_cli_number(number_in(json_object_get(root, "data"), "examples"), number, sizeof number));
}

/* What a model that says the same of every example would have reached. */
static void print_constant(const json_t *root, FILE *file)
{
    const json_t *constant = json_object_get(root, "constant");
    const char *set = json_string_value(json_object_get(constant, "set"));
    char heading[80];
    (void)snprintf(heading, sizeof heading, "A constant would reach, on the %.20s set: ", set ? set : "");
    print_metrics(constant, heading, file);
}

static void print_advice(const json_t *root, FILE *file)
{
    const json_t *advice = json_object_get(root, "advice");
    for (size_t i = 0; i < json_array_size(advice); i++) {
        const char *text = json_string_value(json_array_get(advice, i));
        if (text)
            fprintf(file, "Note:      %s\n", text);
    }
}

/* Whose weights the store has, where there is a choice. */
static void print_kept(const json_t *root, FILE *file)
{
    const json_t *best = json_object_get(root, "best");
    const char *set = json_string_value(json_object_get(best, "set")),
               *metric = json_string_value(json_object_get(best, "metric"));
    double kept = number_in(root, "kept_epoch"), epoch = number_in(best, "epoch"),
           last = number_in(json_array_get(json_object_get(root, "epochs"),
                                           json_array_size(json_object_get(root, "epochs")) - 1),
                            "epoch");
    if (!json_object_get(root, "kept_epoch") || !set || !metric || (kept == last && epoch == last))
        return;
    if (kept == epoch)
        fprintf(file, "Kept:      the weights of epoch %.0f (%s %s %.6g), not the last ones\n", kept, set,
                metric, number_in(best, "value"));
    else
        fprintf(file, "Kept:      the weights of epoch %.0f%s; epoch %.0f had the best %s %s, %.6g\n", kept,
                kept == last ? ", the last ones" : "", epoch, set, metric, number_in(best, "value"));
}

/* Of several workers. */
static void print_gap(const json_t *root, FILE *file)
{
    const json_t *gap = json_object_get(json_object_get(root, "staleness"), "clock_gap");
    const json_t *workers = json_object_get(root, "workers");
    double seconds = 0, waited = number_in(json_object_get(root, "spent_s"), "waiting_rule");
    for (size_t w = 0; w < json_array_size(workers); w++)
        seconds += number_in(json_array_get(workers, w), "seconds");
    if (!gap || !(seconds > 0) || json_array_size(workers) < 2)
        return;
    fprintf(file, "Clock gap: %.2f steps ahead of the slowest worker, on average; %.0f at most",
            number_in(gap, "mean"), number_in(gap, "max"));
    if (waited > 0)
        fprintf(file, "; %.0f%% of the workers' time went into waiting for others", 100 * waited / seconds);
    fputc('\n', file);
}

/* Of backups. */
static void print_dropped(const json_t *root, FILE *file)
{
    const json_t *dropped = json_object_get(root, "dropped"), *workers = json_object_get(root, "workers");
    double pushes = 0, examples = 0;
    for (size_t w = 0; w < json_array_size(workers); w++) {
        pushes += number_in(json_array_get(workers, w), "pushes");
        examples += number_in(json_array_get(workers, w), "examples");
    }
    double skipped = number_in(dropped, "not_computed"), late = number_in(dropped, "examples") - skipped;
    if (dropped && examples > 0)
        fprintf(file,
                "Dropped:   %.0f of %.0f pushes; %.1f%% of the examples came too late for their step, and "
                "%.1f%% were not computed; %.0f more pushes were used in part\n",
                number_in(dropped, "pushes"), pushes, 100 * late / examples, 100 * skipped / examples,
                number_in(dropped, "partly"));
}

/* Of workers that were away, and that were gone for good. */
static void print_left(const json_t *root, FILE *file)
{
    const json_t *workers = json_object_get(root, "workers");
    for (size_t w = 0; w < json_array_size(workers); w++) {
        const json_t *worker = json_array_get(workers, w), *left = json_object_get(worker, "left");
        if (json_object_get(worker, "missed_steps") && !left)
            fprintf(file, "Away:      worker %zu for %.0f steps: %.0f of its examples were not trained\n", w,
                    number_in(worker, "missed_steps"), number_in(worker, "missed_examples"));
        if (left)
            fprintf(file,
                    "Left:      worker %zu before step %.0f, in epoch %.0f: %.0f of its minibatches were not "
                    "trained\n",
                    w, number_in(left, "step"), number_in(left, "epoch"), number_in(left, "minibatches"));
        if (json_is_true(json_object_get(worker, "absent")))
            fprintf(file,
                    "Left out:  worker %zu, which was silent at the end: others did its work. The metrics "
                    "lack its part of its last epoch\n",
                    w);
    }
}

static void print_changed(const json_t *staleness, FILE *file)
{
    const json_t *changed = json_object_get(staleness, "changed"),
                 *divisor = json_object_get(staleness, "rate_divided_by");
    if (json_is_number(changed))
        fprintf(file, "Changed:   %.1f%% of the rows of a push had been changed since its pull\n",
                100 * json_number_value(changed));
    if (json_is_number(divisor))
        fprintf(file, "Rate:      divided by %.2f for staleness, on average\n", json_number_value(divisor));
}

static void print_throughput(const json_t *root, FILE *file)
{
    const json_t *throughput = json_object_get(root, "throughput"),
                 *staleness = json_object_get(root, "staleness");
    const json_t *rate = json_object_get(throughput, "examples_per_s");
    const json_t *mean = json_object_get(staleness, "mean");
    double own = number_in(json_object_get(staleness, "own"), "mean");
    bool alone = json_array_size(json_object_get(root, "workers")) < 2 && own > 0;
    const char *injected = json_string_value(json_object_get(root, "injected"));
    char number[32];
    if (json_is_number(rate))
        fprintf(file, "Throughput: %s examples/s over %.2f s of training\n",
                dp_cli_number(json_number_value(rate), number, sizeof number),
                json_number_value(json_object_get(throughput, "seconds")));
    if (injected)
        fprintf(file, "Injected:  %s\n", injected);
    if (alone) /* no push of another worker came between */
        return;
    if (json_is_number(mean))
        fprintf(file, "Staleness: %.2f pushes between a pull and its push, on average; %.0f at most\n",
                json_number_value(mean), json_number_value(json_object_get(staleness, "max")));
    if (own > 0)
        fprintf(
            file,
            "Overlap:   %.2f of them are the worker's own: it pulls the next minibatch before it pushes the "
            "current one (--no-overlap: after)\n",
            own);
    print_changed(staleness, file);
    print_gap(root, file);
    print_dropped(root, file);
    print_left(root, file);
}

enum dp_status dp_outcome_print(const char *report, FILE *file, struct dp_error *err)
{
    json_error_t why;
    json_t *root = json_load_file(report, 0, &why);
    if (!root)
        return dp_fail(err, DP_DATA, "cannot read report '%s': %s", report, why.text);
    print_chosen(root, file);
    print_stop(root, file);
    print_kept(root, file);
    const json_t *data = json_object_get(root, "data");
    const char *labels = json_string_value(json_object_get(data, "labels"));
    bool weighted = json_object_get(data, "weight") || json_object_get(data, "class_weight");
    if (labels)
        fprintf(file, "Labels:    %s\n", labels);
    print_final(root, "validation",
                weighted ? "Validation set, without weights: " : "Validation set: ", file);
    print_final(root, "test", weighted ? "Test set, without weights: " : "Test set: ", file);
    print_constant(root, file);
    print_throughput(root, file);
    print_advice(root, file);
    json_decref(root);
    return DP_OK;
}

enum dp_status dp_outcome_json(const char *report, const char *dir, FILE *file, struct dp_error *err)
{
    static const char *const keys[] = {"model", "run",      "final",      "kept_epoch",
                                       "stop",  "diverged", "throughput", "advice"};
    json_error_t why;
    json_t *root = json_load_file(report, 0, &why);
    const json_t *epochs = json_object_get(root, "epochs");
    size_t count = json_array_size(epochs);
    if (!root)
        return dp_fail(err, DP_DATA, "cannot read report '%s': %s", report, why.text);
    json_t *out = json_pack("{s:b, s:i, s:s, s:s, s:I}", "finished", 1, "exit", 0, "dir", dir, "report",
                            report, "epochs", (json_int_t)count);
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++)
        if (json_object_get(root, keys[i]))
            (void)json_object_set(out, keys[i], json_object_get(root, keys[i]));
    if (count > 0)
        (void)json_object_set(out, "train_loss",
                              json_object_get(json_array_get(epochs, count - 1), "train_loss"));
    (void)json_dumpf(out, file, JSON_REAL_PRECISION(10));
    (void)fputc('\n', file);
    json_decref(out);
    json_decref(root);
    return DP_OK;
}

void dp_outcome_warn(const char *report, FILE *file)
{
    json_t *root = json_load_file(report, 0, NULL);
    const char *warning = json_string_value(json_object_get(root, "warning"));
    if (warning)
        fprintf(file, "downpour: %s\n", warning);
    json_decref(root);
}

void dp_outcome_again(const char *report, const char *dir, FILE *file)
{
    json_t *root = json_load_file(report, 0, NULL);
    char quoted[DP_PATH_QUOTED];
    double rate = number_in(root, "advised_rate");
    if (rate > 0)
        fprintf(file, "Again, at a lower rate:  downpour run --dir %s --fresh --rate %.3g\n",
                dp_path_quote(dir, quoted), rate);
    json_decref(root);
}

void dp_outcome_uses(const char *model, const char *dir, FILE *file)
{
    bool words = strncmp(model, "skipgram", 8) == 0;
    char quoted[DP_PATH_QUOTED];
    dir = dp_path_quote(dir, quoted);
    fprintf(file, "A page with plots:       downpour report %s\n", dir);
    if (words)
        fprintf(file, "Words most like another: downpour neighbours %s WORD\n", dir);
    if (strncmp(model, "mf", 2) == 0 || strncmp(model, "neumf", 5) == 0)
        fprintf(file, "Best items of a user:    downpour predict --from %s --top 10 --user ID\n", dir);
    if (!words)
        fprintf(file, "Scores of further data:  downpour predict --from %s --data FILE\n", dir);
    fprintf(file, "Weights, with names:     downpour export --from %s --to %s\n", dir,
            words || strcmp(model, "logistic") == 0 ? "weights.txt" : "weights/");
}
