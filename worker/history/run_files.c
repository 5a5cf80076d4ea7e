#include "worker/history/run_files.h"

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/env/atomic_file.h"
#include "common/model/mix.h"
#include "common/vocab/vocab.h"
#include "worker/read/interactions.h"
#include "worker/read/understood.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

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

enum dp_status dp_run_files_columns(struct dp_job *job, struct dp_progress *progress,
                                    const struct dp_dataset *train, struct dp_error *err)
{
    const struct dp_cluster_data *data = &job->cluster->data;
    char *text = NULL;
    if (!data->columns[0])
        return DP_OK;
    enum dp_status st = dp_schema_write(dp_dataset_schema(train), &text, err);
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

/* The file that is written: the names of the data that was trained on before, and those of this data. */
struct growing {
    struct dp_vocab_writer *writer;
    struct dp_vocab *earlier; /* NULL: there was none */
    struct dp_names_limit limit;
    uint64_t count;
    const struct dp_names_source *source;
    struct name_kind {
        char what[44];
        uint64_t names, found;
    } kind;                          /* of the last name; those of a kind come together */
    char fresh[DP_UNDERSTOOD_WIDTH]; /* "words 1 of 2, ...": names that were in no earlier file */
};

static enum dp_status two_names(const struct growing *g, const char *was, const struct dp_vocab_name *now,
                                struct dp_error *err)
{
    return dp_fail(err, DP_DATA,
                   "%s: '%.*s' and '%.100s', of data that was trained on before, have the same key %" PRIu64
                   ": rename one of them",
                   g->source->options->path, now->len < 100 ? (int)now->len : 100, now->text, was, now->key);
}

/* Whether the name is there. Categories may share a hashed key; ids and words may not. A column keeps its
 * first name. */
static enum dp_status find(const struct growing *g, const struct dp_vocab_name *name, bool *found,
                           struct dp_error *err)
{
    enum dp_data_form form = g->source->options->form;
    size_t len = name->len < DP_VOCAB_TEXT_MAX ? name->len : DP_VOCAB_TEXT_MAX;
    size_t first = g->earlier ? dp_vocab_key(g->earlier, name->group, name->key) : DP_VOCAB_NONE;
    *found = name->group == DP_VOCAB_COLUMN && first != DP_VOCAB_NONE;
    for (size_t at = first; !*found && at != DP_VOCAB_NONE; at = dp_vocab_next(g->earlier, at)) {
        const struct dp_vocab_name is = dp_vocab_at(g->earlier, at);
        *found = is.len == len && memcmp(is.text, name->text, len) == 0;
    }
    bool unique = form == DP_FORM_PAIRS || form == DP_FORM_TRIPLES || form == DP_FORM_WORDS;
    return unique && !*found && first != DP_VOCAB_NONE
               ? two_names(g, dp_vocab_at(g->earlier, first).text, name, err)
               : DP_OK;
}

/* "values of 'city'", "users", "items" or "words"; "": a column of numbers. */
static void kind_of(const struct growing *g, const struct dp_vocab_name *name, char out[44])
{
    enum dp_data_form form = g->source->options->form;
    const char *equal = memchr(name->text, '=', name->len);
    out[0] = '\0';
    if (form == DP_FORM_PAIRS || form == DP_FORM_TRIPLES)
        (void)snprintf(out, 44, "%s", name->group == DP_FORM_USERS ? "users" : "items");
    else if (form == DP_FORM_WORDS)
        (void)snprintf(out, 44, "words");
    else if (equal)
        (void)snprintf(out, 44, "values of '%.*s'", equal - name->text < 28 ? (int)(equal - name->text) : 28,
                       name->text);
    dp_text_clean(out);
}

static void count_fresh(struct growing *g)
{
    const struct name_kind *k = &g->kind;
    size_t len = strlen(g->fresh);
    if (!g->earlier || k->found == k->names)
        return;
    if (len + sizeof k->what + 48 < sizeof g->fresh)
        (void)snprintf(g->fresh + len, sizeof g->fresh - len, "%s%s %" PRIu64 " of %" PRIu64, len ? ", " : "",
                       k->what, k->names - k->found, k->names);
    else if (len + 6 < sizeof g->fresh && g->fresh[len - 1] != '.')
        memcpy(g->fresh + len, ", ...", 6);
}

static void tell_fresh(const struct growing *g)
{
    struct dp_understood *notes = g->source->notes;
    if (!g->fresh[0] || !notes || notes->lines == DP_UNDERSTOOD_LINES)
        return;
    char *line = notes->line[notes->lines++];
    (void)snprintf(line, sizeof notes->line[0], "new: %s", g->fresh);
    dp_log(DP_LOG_INFO, "%s", line);
}

/* A file of another thing has columns of these names, too. */
static void end_kind(struct growing *g)
{
    const struct name_kind *k = &g->kind;
    struct dp_understood *notes = g->source->notes;
    count_fresh(g);
    if (!g->earlier || k->names < 2 || k->found > 0 || !notes || notes->notes == DP_UNDERSTOOD_NOTES)
        return;
    char *note = notes->note[notes->notes++];
    (void)snprintf(note, sizeof notes->note[0],
                   "%s: none of the %" PRIu64 " %s was in an earlier file: are they written in another way?",
                   g->source->options->path, k->names, k->what);
    dp_log(DP_LOG_WARN, "%s", note);
}

static enum dp_status add(void *context, const struct dp_vocab_name *name, struct dp_error *err)
{
    struct growing *g = context;
    bool found;
    char what[44];
    enum dp_status st = find(g, name, &found, err);
    kind_of(g, name, what);
    if (what[0] && strcmp(what, g->kind.what) != 0) {
        end_kind(g);
        g->kind = (struct name_kind){.names = 0};
        memcpy(g->kind.what, what, sizeof what);
    }
    g->kind.names += what[0] != '\0';
    g->kind.found += what[0] && found;
    if (st != DP_OK || found)
        return st;
    if (g->count >= g->limit.max) {
        g->limit.cut = true;
        return DP_OK;
    }
    g->count++;
    return dp_vocab_add(g->writer, name, err);
}

/* A file of an earlier run has names of the data on whose weights this run trains. So has one of this run
 * that the command has begun. */
static enum dp_status add_earlier(struct growing *g, const char *path, uint32_t run, struct dp_error *err)
{
    enum dp_status st = dp_vocab_open(path, run, &g->earlier, err);
    g->count = st == DP_OK ? dp_vocab_count(g->earlier) : 0;
    for (size_t i = 0; st == DP_OK && i < g->count; i++) {
        const struct dp_vocab_name name = dp_vocab_at(g->earlier, i);
        st = dp_vocab_add(g->writer, &name, err);
    }
    return st;
}

enum dp_status dp_run_files_put_names(const void *of, const char *path, struct dp_error *err)
{
    const struct dp_names_source *source = of;
    struct growing g = {.source = source};
    uint64_t digest = source_of(source), was = 0;
    uint32_t run = source->run;
    bool known = dp_vocab_head(path, &run, &was), there = known || access(path, F_OK) == 0;
    if (known && run == source->run && was == digest)
        return DP_OK;
    enum dp_status st = dp_vocab_begin(path, source->run, digest, &g.writer, err);
    if (st == DP_OK && there && (!known || run < source->run || was == DP_VOCAB_EARLIER))
        st = add_earlier(&g, path, run, err);
    if (st == DP_OK)
        st = dp_dataset_names(source->data, source->options, (struct dp_vocab_sink){add, &g}, &g.limit, err);
    if (st == DP_OK)
        end_kind(&g);
    if (st == DP_OK)
        st = dp_vocab_commit(&g.writer, g.limit.cut, err);
    if (st == DP_OK)
        tell_fresh(&g);
    dp_vocab_drop(&g.writer);
    dp_vocab_close(&g.earlier);
    if (st == DP_OK && g.limit.cut)
        dp_log(DP_LOG_WARN,
               "%s: '%s' holds at most %" PRIu64
               " names; further features, words or ids are exported as numbers",
               source->options->path, path, g.limit.max);
    return st;
}

/* By one worker, since it may read the file a second time; the other machines need no names. */
enum dp_status dp_run_files_names(struct dp_job *job, struct dp_progress *progress,
                                  const struct dp_dataset *train, struct dp_understood *notes,
                                  struct dp_error *err)
{
    const struct dp_cluster_data *data = &job->cluster->data;
    const struct dp_dataset_options options = dp_job_data(job, data->train, data->train_labels, true);
    const struct dp_names_source source = {
        .data = train, .options = &options, .run = job->cluster->training.run, .notes = notes};
    if (!data->names[0] || job->worker != 0)
        return DP_OK;
    return dp_run_files_put(job, progress, dp_run_files_put_names, &source, data->names, err);
}

/* ---- interactions */

struct interactions_source {
    const struct dp_dataset *trained, *all;
    uint64_t run;
    bool earlier;
};

static enum dp_status put_interactions(const void *of, const char *path, struct dp_error *err)
{
    const struct interactions_source *source = of;
    return dp_dataset_keep_interactions(source->trained, source->all, source->run, source->earlier, path,
                                        err);
}

/* A user has met what is held out of the training, too. */
enum dp_status dp_run_files_interactions(struct dp_job *job, struct dp_progress *progress,
                                         const struct dp_dataset *train, struct dp_error *err)
{
    const struct dp_cluster_data *data = &job->cluster->data;
    const char *earlier = dp_job_earlier_interactions(job);
    struct dp_dataset_options options = dp_job_data(job, data->train, data->train_labels, true);
    struct interactions_source source = {train, train, job->cluster->training.run, earlier != NULL};
    struct dp_interactions written;
    struct dp_dataset *all = NULL;
    enum dp_status st = DP_OK;
    if (!data->interactions[0] || job->worker != 0 || !dp_dataset_has_interactions(train) ||
        (dp_interactions_head(data->interactions, &written) && written.run == source.run))
        return DP_OK;
    if (data->holdout[0] || data->validation_share > 0 || dp_dataset_leaves_out(train)) {
        options.interactions_path = earlier;
        options.with_held = true;
        options.cache = NULL;
        st = dp_dataset_open(&options, &all, err);
        source.all = all;
    }
    if (st == DP_OK)
        st = dp_run_files_put(job, progress, put_interactions, &source, data->interactions, err);
    dp_dataset_close(&all);
    return st;
}

/* ---- report */

/* A program that looks there finds the last run's; earlier ones stay in their own directories. */
void dp_run_files_show_report(const struct dp_job *job)
{
    const struct dp_cluster *cluster = job->cluster;
    char link[DP_PATH_MAX + 32], made[DP_PATH_MAX + 64];
    size_t len = strlen(cluster->dir);
    if (job->worker != 0 || len == 0 || strncmp(cluster->training.report, cluster->dir, len) != 0 ||
        strncmp(cluster->training.report + len, "/runs/", 6) != 0)
        return;
    (void)snprintf(link, sizeof link, "%s/report.json", cluster->dir);
    (void)snprintf(made, sizeof made, "%s.new", link);
    (void)unlink(made);
    if (symlink(cluster->training.report + len + 1, made) != 0 || rename(made, link) != 0)
        dp_log(DP_LOG_WARN, "cannot make '%.300s' a link to the report of run %" PRIu32 ": %s", link,
               cluster->training.run, strerror(errno));
}
