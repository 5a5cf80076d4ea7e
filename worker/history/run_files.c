#include "worker/history/run_files.h"

#include "common/base/log.h"
#include "common/env/atomic_file.h"
#include "common/model/mix.h"
#include "common/vocab/vocab.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define FULL_PAUSE_NS 500000000L /* between two attempts to write a file to a full disk */

/* Like a push. */
enum dp_status dp_run_files_put(struct dp_job *job, struct dp_progress *progress,
                                enum dp_status (*put)(const void *what, const char *path,
                                                      struct dp_error *err),
                                const void *what, const char *path, struct dp_error *err)
{
    const struct timespec pause = {.tv_nsec = FULL_PAUSE_NS};
    uint64_t until_ns = dp_clock_ns(&job->clock) + (uint64_t)job->cluster->training.timeout_ms * 1000000u;
    bool told = false;
    enum dp_status st;
    while ((st = put(what, path, err)) == DP_FULL && dp_clock_ns(&job->clock) < until_ns &&
           !dp_job_stopped(job)) {
        if (!told)
            dp_log(DP_LOG_WARN, "%s; retrying for %" PRIu32 " s (--timeout, training.timeout_ms)", err->text,
                   job->cluster->training.timeout_ms / 1000);
        told = true;
        dp_progress_tick(progress);
        (void)nanosleep(&pause, NULL);
    }
    return st;
}

/* ---- columns */

static bool says(const char *path, const char *text)
{
    FILE *file = fopen(path, "re");
    int c = EOF;
    if (!file)
        return false;
    while ((c = fgetc(file)) != EOF && *text && c == (unsigned char)*text)
        text++;
    bool same = c == EOF && !*text && !ferror(file);
    (void)fclose(file);
    return same;
}

enum dp_status dp_run_files_put_columns(const void *text, const char *path, struct dp_error *err)
{
    struct dp_atomic_file file;
    if (says(path, text))
        return DP_OK;
    enum dp_status st = dp_atomic_file_open(path, &file, err);
    if (st != DP_OK)
        return st;
    (void)fputs(text, file.stream);
    return dp_atomic_file_commit(&file, err);
}

static bool same_texts(const struct dp_schema *a, const struct dp_schema *b)
{
    bool same = a->classes == b->classes;
    for (uint32_t i = 0; same && i < a->classes; i++)
        same = strcmp(a->class_text[i], b->class_text[i]) == 0;
    return same;
}

/* Texts on one side and numbers on the other may mean the same: the user has to know. */
static enum dp_status compare(const struct dp_schema *before, const struct dp_schema *now, bool counted,
                              struct dp_error *err)
{
    char a[160], b[160];
    if (before->classes > 0 && now->classes > 0 && !same_texts(before, now)) {
        dp_schema_labels_text(before, false, before->classes, a, sizeof a);
        dp_schema_labels_text(now, false, now->classes, b, sizeof b);
        return dp_fail(err, DP_ARGUMENT,
                       "the labels mean other classes than in the data that the weights were trained on "
                       "(then: %s; now: %s): "
                       "continue with data that has the same labels, each in at least one example",
                       a, b);
    }
    if (before->classes > 0 || now->classes > 0 || before->label_base == now->label_base || counted)
        return DP_OK;
    return dp_fail(err, DP_ARGUMENT,
                   "label %" PRIu32
                   " was class 0 in the data that the weights were trained on, label %" PRIu32
                   " is class 0 in this data: set the number of class 0 (--label-base, data.label_base)",
                   before->label_base, now->label_base);
}

/* With the labels in the file, if it can be read: of an earlier run, on whose weights this one trains.
 * counted: the user set the number of class 0. */
static enum dp_status check_labels(const struct dp_schema *now, bool counted, const char *path,
                                   struct dp_error *err)
{
    struct dp_schema before = {0};
    struct dp_error why = {0};
    enum dp_status st = dp_schema_read_file(path, &before, &why);
    if (st != DP_OK)
        return st == DP_VERSION ? dp_fail(err, st, "%s", why.text) : DP_OK;
    st = compare(&before, now, counted, err);
    dp_schema_clear(&before);
    return st;
}

enum dp_status dp_run_files_columns(struct dp_job *job, struct dp_progress *progress,
                                    const struct dp_dataset *train, struct dp_error *err)
{
    const struct dp_cluster_data *data = &job->cluster->data;
    char *text = NULL;
    if (!data->columns[0])
        return DP_OK;
    bool counted = strcmp(data->label_base, "auto") != 0;
    enum dp_status st = job->model.labels == DP_LABELS_ANY
                            ? DP_OK
                            : check_labels(dp_dataset_schema(train), counted, data->columns, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "%s", data->train);
    st = dp_schema_write(dp_dataset_schema(train), &text, err);
    if (st == DP_OK)
        st = dp_run_files_put(job, progress, dp_run_files_put_columns, text, data->columns, err);
    free(text);
    return st;
}

/* ---- names */

/* The settings that, besides the data, determine names and keys. */
static uint64_t source_of(const struct dp_names_source *source)
{
    const struct dp_dataset_options *o = source->options;
    const uint64_t numbers[] = {dp_dataset_digest(source->data), (uint64_t)o->form, o->hash_bits,
                                o->index_base, o->width};
    uint64_t sum = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        sum = dp_mix(sum + numbers[i] + 1);
    return sum;
}

static enum dp_status add(void *context, const struct dp_vocab_name *name, struct dp_error *err)
{
    return dp_vocab_add(context, name, err);
}

enum dp_status dp_run_files_put_names(const void *of, const char *path, struct dp_error *err)
{
    const struct dp_names_source *source = of;
    uint64_t digest = source_of(source);
    struct dp_vocab_writer *writer = NULL;
    bool cut = false;
    if (dp_vocab_is_of(path, source->run, digest))
        return DP_OK;
    enum dp_status st = dp_vocab_begin(path, source->run, digest, &writer, err);
    if (st == DP_OK)
        st = dp_dataset_names(source->data, source->options, (struct dp_vocab_sink){add, writer}, &cut, err);
    if (st == DP_OK)
        st = dp_vocab_commit(&writer, cut, err);
    dp_vocab_drop(&writer);
    if (st == DP_OK && cut)
        dp_log(DP_LOG_WARN,
               "%s: it has more names than '%s' can hold; further features, words or ids are exported as "
               "numbers",
               source->options->path, path);
    return st;
}

/* By one worker, since it may read the file a second time; the other machines need no names. */
enum dp_status dp_run_files_names(struct dp_job *job, struct dp_progress *progress,
                                  const struct dp_dataset *train, struct dp_error *err)
{
    const struct dp_cluster_data *data = &job->cluster->data;
    const struct dp_dataset_options options = dp_job_data(job, data->train, data->train_labels, true);
    const struct dp_names_source source = {
        .data = train, .options = &options, .run = job->cluster->training.run};
    if (!data->names[0] || job->worker != 0)
        return DP_OK;
    return dp_run_files_put(job, progress, dp_run_files_put_names, &source, data->names, err);
}
