/* names of users -> keys, items of the vocabulary -> keys -> score every pair (scan.h) -> write the best of
 * each user */
#include "worker/score/top.h"

#include "common/env/atomic_file.h"
#include "common/env/limits.h"
#include "common/vocab/vocab.h"
#include "worker/read/interactions.h"
#include "worker/score/fold_in.h"
#include "worker/score/predict.h"
#include "worker/score/scan.h"
#include "worker/score/sets.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SIMILAR 3

struct best {
    float score;
    uint32_t item;
};

struct top {
    struct dp_job *job;
    const struct dp_top_options *options;
    struct dp_vocab *vocab;
    struct dp_interactions met;    /* of all data that was trained on; {0}: the training file has them, */
    struct dp_dataset *train;      /* if this run is of an older build; NULL: all items are ranked */
    struct dp_fold_in *fold;       /* the users of a history; or NULL */
    struct dp_label_scale scale;   /* of ratings */
    uint64_t *user, *item;         /* keys */
    size_t *user_name, *item_name; /* in the vocabulary */
    uint32_t *item_of;             /* [names]: 1 + its place among the items, 0: not an item */
    uint64_t users, users_max, items;
    bool *seen; /* [items]: of the current user */
    struct best *best;
    uint32_t have;
    struct dp_atomic_file file;
};

/* ---- what is asked */

static enum dp_status unknown(const struct top *t, const char *name, uint64_t line, struct dp_error *err)
{
    const char *similar[SIMILAR];
    char list[200] = "";
    size_t count = dp_vocab_similar(t->vocab, DP_FORM_USERS, name, similar, SIMILAR);
    for (size_t i = 0; i < count; i++)
        (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s'%.48s'", i ? ", " : "",
                       similar[i]);
    return dp_fail(err, DP_NOT_FOUND,
                   "user '%.64s' (%" PRIu64
                   " in the list) is not in the training file, so it has no weights%s%s",
                   name, line, count ? "; similar: " : "", list);
}

static enum dp_status add_user(struct top *t, const char *name, uint64_t line, struct dp_error *err)
{
    size_t at = dp_vocab_find(t->vocab, DP_FORM_USERS, name);
    if (at == DP_VOCAB_NONE)
        return unknown(t, name, line, err);
    if (t->users == t->users_max) {
        uint64_t max = t->users_max * 2 + 256;
        uint64_t *user = realloc(t->user, max * sizeof *user);
        t->user = user ? user : t->user;
        size_t *names = realloc(t->user_name, max * sizeof *names);
        t->user_name = names ? names : t->user_name;
        if (!user || !names)
            return dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " users", max);
        t->users_max = max;
    }
    t->user[t->users] = dp_vocab_at(t->vocab, at).key;
    t->user_name[t->users++] = at;
    return DP_OK;
}

static const char *user_text(const struct top *t, uint64_t user)
{
    return t->fold ? dp_fold_in_user(t->fold, user) : dp_vocab_at(t->vocab, t->user_name[user]).text;
}

static enum dp_status fold_in(struct top *t, struct dp_error *err)
{
    const struct dp_fold_in_options options = {.job = t->job,
                                               .vocab = t->vocab,
                                               .history = t->options->history,
                                               .item = t->item,
                                               .item_of = t->item_of,
                                               .items = t->items};
    struct dp_atomic_file notes;
    enum dp_status st = dp_fold_in_new(&options, &t->fold, err);
    if (st != DP_OK)
        return st;
    t->users = dp_fold_in_users(t->fold);
    t->user = calloc(t->users, sizeof *t->user);
    if (!t->user)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " users", t->users);
    for (uint64_t u = 0; u < t->users; u++)
        t->user[u] = u;
    t->job->rows = dp_fold_in_rows(t->fold);
    st = dp_atomic_file_open(t->options->notes, &notes, err);
    if (st != DP_OK)
        return st;
    dp_fold_in_tell(t->fold, notes.stream);
    return dp_atomic_file_commit(&notes, err);
}

static enum dp_status read_users(struct top *t, struct dp_error *err)
{
    const char *path = t->options->users;
    char *line = NULL;
    size_t room = 0;
    uint64_t number = 0;
    FILE *file = fopen(path, "re");
    enum dp_status st = file ? DP_OK : dp_fail(err, DP_IO, "cannot read '%s': %s", path, strerror(errno));
    for (ssize_t len; st == DP_OK && (len = getline(&line, &room, file)) >= 0;) {
        while (len > 0 && (line[len - 1] == '\n' || line[len - 1] == '\r'))
            line[--len] = '\0';
        if (len > 0)
            st = add_user(t, line, ++number, err);
    }
    if (st == DP_OK && ferror(file))
        st = dp_fail(err, DP_IO, "cannot read '%s': %s", path, strerror(errno));
    if (st == DP_OK && t->users == 0)
        st = dp_fail(err, DP_DATA, "'%s' names no users: expected one id a line", path);
    free(line);
    if (file)
        (void)fclose(file);
    return st;
}

static enum dp_status list_items(struct top *t, struct dp_error *err)
{
    size_t names = dp_vocab_count(t->vocab);
    t->item = calloc(names + 1, sizeof *t->item);
    t->item_name = calloc(names + 1, sizeof *t->item_name);
    t->item_of = calloc(names + 1, sizeof *t->item_of);
    t->seen = calloc(names + 1, sizeof *t->seen);
    t->best = calloc((size_t)t->options->count + 1, sizeof *t->best);
    if (!t->item || !t->item_name || !t->item_of || !t->seen || !t->best)
        return dp_fail(err, DP_NOMEM, "no memory for %zu items", names);
    for (size_t i = 0; i < names; i++) {
        struct dp_vocab_name name = dp_vocab_at(t->vocab, i);
        if (name.group != DP_FORM_ITEMS)
            continue;
        t->item[t->items] = name.key;
        t->item_name[t->items++] = i;
        t->item_of[i] = (uint32_t)t->items;
    }
    return t->items > 0 ? DP_OK : dp_fail(err, DP_DATA, "the names file of the run has no items");
}

static enum dp_status open_train(struct top *t, struct dp_error *err)
{
    const char *path = t->job->cluster->data.train;
    struct dp_dataset_options options = dp_job_data(t->job, path, NULL, false);
    options.cache = NULL; /* the run's directory is only read */
    if (access(path, F_OK) != 0)
        return dp_fail(err, DP_NOT_FOUND,
                       "the training file '%s', with the items of each user, is missing: restore it, or rank "
                       "all items with --with-seen",
                       path);
    return dp_dataset_open(&options, &t->train, err);
}

static enum dp_status open_interactions(struct top *t, struct dp_error *err)
{
    const char *path = t->job->cluster->data.interactions;
    if (t->options->with_seen || t->fold)
        return DP_OK;
    enum dp_status st = path[0] ? dp_interactions_read(path, &t->met, err) : DP_NOT_FOUND;
    if (st == DP_NOT_FOUND)
        return open_train(t, err);
    return st == DP_OK ? st : dp_wrap(err, st, "the items of each user (--with-seen ranks all)");
}

/* ---- the best of each user */

static void take_seen(void *context, uint64_t item)
{
    struct top *t = context;
    size_t at = dp_vocab_key(t->vocab, DP_FORM_ITEMS, item);
    if (at != DP_VOCAB_NONE && t->item_of[at] > 0)
        t->seen[t->item_of[at] - 1] = true;
}

static void begin_user(struct top *t, uint64_t user)
{
    t->have = 0;
    memset(t->seen, 0, t->items * sizeof *t->seen);
    uint64_t at = dp_interactions_find(&t->met, t->user[user]);
    if (at < t->met.users)
        for (uint64_t i = t->met.first[at]; i < t->met.first[at + 1]; i++)
            take_seen(t, t->met.item[t->met.code[i] & ~DP_INTERACTION_HELD]);
    uint64_t count = 0;
    const uint32_t *own = t->fold && !t->options->with_seen ? dp_fold_in_items(t->fold, user, &count) : NULL;
    for (uint64_t i = 0; i < count; i++)
        t->seen[own[i]] = true;
    if (t->train)
        (void)dp_dataset_interactions(t->train, t->user[user], take_seen, t);
}

/* Items come in order: of equal scores the first stays in front. */
static void offer(struct top *t, uint32_t item, float score)
{
    uint32_t max = t->options->count;
    if (t->seen[item] || (t->have == max && !(score > t->best[max - 1].score)))
        return;
    uint32_t to = t->have < max ? t->have++ : max - 1;
    for (; to > 0 && score > t->best[to - 1].score; to--)
        t->best[to] = t->best[to - 1];
    t->best[to] = (struct best){score, item};
}

static void end_user(struct top *t, uint64_t user)
{
    for (uint32_t i = 0; i < t->have; i++) {
        dp_vocab_print(t->file.stream, user_text(t, user), false);
        (void)fputc('\t', t->file.stream);
        dp_vocab_print(t->file.stream, dp_vocab_at(t->vocab, t->item_name[t->best[i].item]).text, false);
        (void)fputc('\t', t->file.stream);
        dp_predict_line(t->file.stream, t->job->model.labels, &t->scale, &t->best[i].score, 1);
    }
}

static enum dp_status refuse(const struct top *t, uint64_t user, uint64_t item, float score,
                             struct dp_error *err)
{
    char what[200];
    (void)snprintf(what, sizeof what, "item '%.64s' for user '%.64s'",
                   dp_vocab_at(t->vocab, t->item_name[item]).text, user_text(t, user));
    return dp_predict_not_finite(t->job, what, score, err);
}

static enum dp_status take_scores(void *context, const struct dp_batch *batch, const float *output,
                                  uint32_t width, struct dp_error *err)
{
    struct top *t = context;
    uint64_t first = batch->number * dp_job_batch(t->job);
    DP_ASSERT(width == 1);
    errno = 0;
    for (uint32_t i = 0; i < batch->examples; i++) {
        uint64_t user = (first + i) / t->items, item = (first + i) % t->items;
        if (!isfinite(output[i]))
            return refuse(t, user, item, output[i], err);
        if (item == 0)
            begin_user(t, user);
        offer(t, (uint32_t)item, output[i]);
        if (item + 1 == t->items)
            end_user(t, user);
    }
    return ferror(t->file.stream)
               ? dp_fail(err, dp_limits_full(errno) ? DP_FULL : DP_IO, "cannot write '%s': %s%s",
                         t->options->out, strerror(errno), dp_limits_remedy(errno))
               : DP_OK;
}

static enum dp_status score(struct top *t, struct dp_error *err)
{
    const struct dp_cross cross = {.user = t->user, .item = t->item, .users = t->users, .items = t->items};
    struct dp_dataset *data = NULL;
    enum dp_status st = dp_dataset_open_cross(&cross, t->job->model.form, dp_job_batch(t->job), &data, err);
    if (st == DP_OK)
        st = dp_job_program(t->job, data, NULL, NULL, err);
    if (st == DP_OK)
        st = dp_atomic_file_open(t->options->out, &t->file, err);
    if (st == DP_OK) {
        const struct dp_scan scan = {
            .job = t->job, .data = data, .stride = 1, .no_labels = true, .visit = take_scores, .context = t};
        st = dp_scan(&scan, err);
    }
    if (st == DP_OK)
        st = dp_atomic_file_commit(&t->file, err);
    dp_atomic_file_drop(&t->file);
    dp_dataset_close(&data);
    return st;
}

static void clear(struct top *t)
{
    dp_interactions_clear(&t->met);
    t->job->rows = NULL;
    dp_fold_in_free(&t->fold);
    dp_dataset_close(&t->train);
    dp_vocab_close(&t->vocab);
    free(t->user);
    free(t->item);
    free(t->user_name);
    free(t->item_name);
    free(t->item_of);
    free(t->seen);
    free(t->best);
}

enum dp_status dp_top(struct dp_job *job, const struct dp_top_options *options, struct dp_error *err)
{
    const struct dp_cluster *cluster = job->cluster;
    struct top t = {.job = job, .options = options};
    bool pairs = job->model.form == DP_FORM_PAIRS, scaled = false;
    if (!pairs && job->model.form != DP_FORM_TRIPLES)
        return dp_fail(err, DP_ARGUMENT, "--top: %s is not a model of users and items (mf and neumf are)",
                       cluster->model);
    if (!cluster->data.names[0])
        return dp_fail(err, DP_NOT_FOUND,
                       "--top: an older build made the run, without the ids of its users and items: another "
                       "'downpour run' "
                       "on it stores them");
    enum dp_status st = dp_vocab_open(cluster->data.names, cluster->training.run, &t.vocab, err);
    if (st == DP_OK)
        st = list_items(&t, err);
    if (st == DP_OK)
        st = options->history ? fold_in(&t, err) : read_users(&t, err);
    if (st == DP_OK)
        st = open_interactions(&t, err);
    if (st == DP_OK)
        st = dp_sets_label_scale(t.job, &t.scale, &scaled, err);
    if (st == DP_OK && !scaled && dp_job_is_regression(job))
        st = dp_fail(err, DP_NOT_FOUND,
                     "--top: the scale of the ratings is not known, as the file of columns (data.columns) "
                     "'%.300s' is missing: restore it",
                     cluster->data.columns);
    if (st == DP_OK)
        st = score(&t, err);
    clear(&t);
    return st;
}
