#include "worker/context/training_settings.h"

#include "common/config/consistency.h"
#include "common/config/goal.h"
#include "worker/schedule/early_stop.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#define PUSH_EVERY "push_every "
#define SHOWN      44 /* characters of a line that a message shows */

/* Writes parsed numbers, not their text, so that the notation of the cluster file does not matter. */
static int add_end(const struct dp_cluster *cluster, const struct dp_training_settings_set *judged,
                   char *text, size_t size)
{
    const struct dp_early_stop_rule rule = dp_early_stop_rule_of(&cluster->training);
    char goal[64] = "none", patience[64] = "none";
    const char *keep = dp_cluster_keeps_best(cluster) ? "best" : "last";
    if (rule.has_goal)
        (void)snprintf(goal, sizeof goal, "%s:%.9g", dp_metric_name(rule.goal.metric), rule.goal.value);
    if (rule.patience > 0)
        (void)snprintf(patience, sizeof patience, "%" PRIu32 " epochs of %s", rule.patience,
                       dp_metric_name(rule.metric));
    if (!judged)
        return snprintf(text, size, "stop_at %s\npatience %s\nevaluated none\nkeep %s\n", goal, patience,
                        keep);
    char top[64] = "";
    if (judged->ranked)
        (void)snprintf(top, sizeof top, "top_k %" PRIu32 "\n", cluster->training.top_k);
    return snprintf(text, size,
                    "stop_at %s\npatience %s\nheld out %.9g\nevaluated data %016" PRIx64
                    "\nevaluated examples %" PRIu64 "\nevaluated lists %" PRIu32 "\n%skeep %s\n",
                    goal, patience, cluster->data.validation_share, judged->digest, judged->examples,
                    judged->lists, top, keep);
}

/* Runs of older builds had words as they are, and no such line. */
static int add_words(const struct dp_cluster_data *data, char *text, size_t size)
{
    if (data->words == DP_WORD_PLAIN && data->min_count <= 1 && data->subsample == 0)
        return 0;
    return snprintf(text, size, "words %d, min_count %" PRIu32 ", subsample %.9g\n", (int)data->words,
                    data->min_count, data->subsample);
}

/* The digest of the data covers a column of weights. */
static int add_class_weight(const struct dp_cluster_data *data, char *text, size_t size)
{
    return data->class_weight[0] ? snprintf(text, size, "class_weight %s\n", data->class_weight) : 0;
}

static const char *or_none(const char *text)
{
    return text[0] ? text : "(none)"; /* cannot be mistaken for a column of that name: the digests differ */
}

void dp_training_settings_head(const struct dp_cluster *cluster, char text[DP_TRAINING_SETTINGS_BYTES])
{
    const struct dp_cluster_data *data = &cluster->data;
    int n =
        snprintf(text, DP_TRAINING_SETTINGS_BYTES,
                 "model %s\nlabel %s\ncategories %s\nnormalize %d\nhash_bits %" PRIu32 "\n", cluster->model,
                 or_none(data->label), or_none(data->categories), data->normalize, data->hash_bits);
    DP_ASSERT(n > 0 && (uint32_t)n < DP_TRAINING_SETTINGS_BYTES);
}

static int add_label_scale(const struct dp_label_scale *scale, char *text, size_t size)
{
    return scale->deviation > 0
               ? snprintf(text, size, "label_scale %.17g %.17g\n", scale->mean, scale->deviation)
               : 0;
}

/* A digest covers the content of a file, cell by cell, and its format; the settings that turn the content
 * into examples are lines of their own. */
void dp_training_settings_text(const struct dp_cluster *cluster, const struct dp_training_settings_set *train,
                               const struct dp_training_settings_set *judged,
                               char text[DP_TRAINING_SETTINGS_BYTES])
{
    const struct dp_cluster_training *t = &cluster->training;
    dp_training_settings_head(cluster, text);
    size_t at = strlen(text);
    int n = snprintf(
        text + at, DP_TRAINING_SETTINGS_BYTES - at,
        "data %016" PRIx64 "\nexamples %" PRIu64 "\nbatch %" PRIu32 "\nworkers %" PRIu32 "\n" PUSH_EVERY
        "%" PRIu32 "\nepochs %" PRIu32 "\nseed %" PRIu64 "\nnegatives %" PRIu32 "\nwindow %" PRIu32
        "\nscale %.17g\nindex_base %" PRIu32 "\nfirst_epoch %" PRIu32 "\nstandardize %d\nlabel_base %s\n",
        train->digest, train->examples, t->batch, t->workers, dp_cluster_pushed_together(t), t->epochs,
        t->seed, cluster->data.negatives, cluster->data.window, cluster->data.scale, cluster->data.index_base,
        t->first_epoch, cluster->data.standardize, cluster->data.label_base);
    DP_ASSERT(n > 0 && at + (size_t)n < DP_TRAINING_SETTINGS_BYTES);
    at += (size_t)n;
    n = add_words(&cluster->data, text + at, DP_TRAINING_SETTINGS_BYTES - at);
    DP_ASSERT(n >= 0 && at + (size_t)n < DP_TRAINING_SETTINGS_BYTES);
    at += (size_t)n;
    n = add_class_weight(&cluster->data, text + at, DP_TRAINING_SETTINGS_BYTES - at);
    DP_ASSERT(n >= 0 && at + (size_t)n < DP_TRAINING_SETTINGS_BYTES);
    at += (size_t)n;
    n = add_label_scale(&train->label_scale, text + at, DP_TRAINING_SETTINGS_BYTES - at);
    DP_ASSERT(n >= 0 && at + (size_t)n < DP_TRAINING_SETTINGS_BYTES);
    at += (size_t)n;
    n = add_end(cluster, judged, text + at, DP_TRAINING_SETTINGS_BYTES - at);
    DP_ASSERT(n > 0 && at + (size_t)n < DP_TRAINING_SETTINGS_BYTES);
    at += (size_t)n;
    const struct dp_cluster_rule rule = dp_cluster_rule_of(t);
    char mode[DP_MODE_TEXT_BYTES];
    n = snprintf(text + at, DP_TRAINING_SETTINGS_BYTES - at, "work %s\nconsistency %s\n",
                 dp_cluster_work_name(t->work), dp_mode_text(rule.mode, rule.slack, mode));
    DP_ASSERT(n > 0 && at + (size_t)n < DP_TRAINING_SETTINGS_BYTES);
}

void dp_training_settings_epochs(const char *text, uint32_t *epochs)
{
    while (*text && sscanf(text, "epochs %" SCNu32, epochs) != 1) {
        text += strcspn(text, "\n");
        text += *text == '\n';
    }
}

static size_t line_len(const char *line, size_t left)
{
    const char *end = left ? memchr(line, '\n', left) : NULL;
    return end ? (size_t)(end - line) : left;
}

/* The first line that differs, shortened for a message. */
struct difference {
    char mine[SHOWN + 4], theirs[SHOWN + 4];
};

/* Shortens a long line to its name and the text around the first difference. */
static void show(const char *line, size_t len, size_t same, char out[SHOWN + 4])
{
    const char *blank = len ? memchr(line, ' ', len) : NULL;
    size_t name = blank ? (size_t)(blank - line) + 1 : 0, skip = 0;
    if (len > SHOWN && name < SHOWN / 2 && same > name + SHOWN / 4)
        skip = same - name - SHOWN / 4;
    size_t rest = len - name - skip, room = SHOWN - name;
    (void)snprintf(out, SHOWN + 4, "%.*s%s%.*s", (int)name, line, skip ? "..." : "",
                   (int)(rest < room ? rest : room), line + name + skip);
}

static bool differ(const char *text, const char *theirs, size_t size, bool head, struct difference *out)
{
    const char *mine = text;
    size_t mine_left = strlen(text), theirs_left = size;
    while (mine_left > 0 || (theirs_left > 0 && !head)) {
        size_t a = line_len(mine, mine_left), b = line_len(theirs, theirs_left), same = 0;
        while (same < a && same < b && mine[same] == theirs[same])
            same++;
        if (same < a || same < b) {
            show(mine, a, same, out->mine);
            show(theirs, b, same, out->theirs);
            return true;
        }
        mine += a, mine_left -= a;
        theirs += b, theirs_left -= b;
        if (mine_left > 0)
            mine++, mine_left--;
        if (theirs_left > 0)
            theirs++, theirs_left--;
    }
    return false;
}

/* Where the line has not the name of the setting that was changed. */
static const char *hint(const struct difference *d)
{
    return strncmp(d->mine, PUSH_EVERY, strlen(PUSH_EVERY)) == 0
               ? " (--push-every, or the minibatches that --threads or --accumulate push together)"
               : "";
}

/* A digest says nothing to a person. */
static enum dp_status other_data(const struct difference *d, uint32_t run,
                                 const struct dp_training_settings_files *files, enum dp_status why,
                                 struct dp_error *err)
{
    if (!files || strncmp(d->mine, "data ", 5) != 0 || strncmp(d->theirs, "data ", 5) != 0)
        return DP_OK;
    bool known = files->begun[0] != '\0';
    return dp_fail(err, why,
                   "run %" PRIu32 " is not complete, and was begun with other data%s%s%s than '%.200s': to "
                   "finish it, train on its own file; to leave it as it is and train the next run on its "
                   "weights, set training.run = %" PRIu32 " in the cluster file",
                   run, known ? " ('" : "", files->begun, known ? "')" : "", files->mine, run + 1);
}

enum dp_status dp_training_settings_check(const char *text, const char *before, size_t size, uint32_t run,
                                          const struct dp_training_settings_files *files,
                                          struct dp_error *err)
{
    struct difference d;
    if (!differ(text, before, size, false, &d))
        return DP_OK;
    enum dp_status st = other_data(&d, run, files, DP_EXISTS, err);
    return st != DP_OK
               ? st
               : dp_fail(err, DP_EXISTS,
                         "run %" PRIu32 " was begun with '%s', this is '%s'%s: its pushes belong to another "
                         "training; give training.run a higher number, or restore the old settings "
                         "and data",
                         run, d.theirs, d.mine, hint(&d));
}

enum dp_status dp_training_settings_same(const char *text, const char *theirs, size_t size, uint32_t run,
                                         uint32_t worker, const struct dp_training_settings_files *files,
                                         struct dp_error *err)
{
    struct difference d;
    if (!differ(text, theirs, size, false, &d))
        return DP_OK;
    enum dp_status st = other_data(&d, run, files, DP_ARGUMENT, err);
    return st != DP_OK ? st
                       : dp_fail(err, DP_ARGUMENT,
                                 "worker %" PRIu32 " trains run %" PRIu32
                                 " with '%s', this one with '%s'%s: give all workers the same settings and "
                                 "data",
                                 worker, run, d.theirs, d.mine, hint(&d));
}

enum dp_status dp_training_settings_scores(const char *head, const char *trained, size_t size, uint32_t run,
                                           struct dp_error *err)
{
    struct difference d;
    if (!differ(head, trained, size, true, &d))
        return DP_OK;
    return dp_fail(err, DP_ARGUMENT,
                   "run %" PRIu32
                   " was trained with '%s', the cluster file says '%s': use the cluster file of the "
                   "training",
                   run, d.theirs, d.mine);
}

static bool has_line(const char *text, size_t size, const char *line)
{
    size_t len = strlen(line);
    while (size < len || memcmp(text, line, len) != 0) {
        size_t skip = line_len(text, size) + 1;
        if (skip >= size)
            return false;
        text += skip, size -= skip;
    }
    return true;
}

enum dp_status dp_training_settings_read_by(const struct dp_cluster *cluster,
                                            const struct dp_training_settings_set *train, const char *trained,
                                            size_t size, struct dp_error *err)
{
    const struct dp_cluster_data *data = &cluster->data;
    char line[5][DP_TRAINING_SETTINGS_BYTES / 16] = {{0}};
    (void)snprintf(line[0], sizeof line[0], "data %016" PRIx64 "\n", train->digest);
    (void)snprintf(line[1], sizeof line[1], "scale %.17g\n", data->scale);
    (void)snprintf(line[2], sizeof line[2], "index_base %" PRIu32 "\n", data->index_base);
    (void)snprintf(line[3], sizeof line[3], "standardize %d\n", data->standardize);
    (void)add_label_scale(&train->label_scale, line[4], sizeof line[4]);
    for (size_t i = 0; i < sizeof line / sizeof line[0]; i++)
        if (!has_line(trained, size, line[i]))
            return dp_fail(err, DP_ARGUMENT, "run %" PRIu32 " was not trained with '%.*s': %s",
                           cluster->training.run, (int)strcspn(line[i], "\n"), line[i],
                           i == 0 ? "another file is in its place, or it has changed: restore it"
                                  : "use the cluster file of the training");
    return DP_OK;
}
