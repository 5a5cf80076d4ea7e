#include "deploy/run/run_second.h"
#include "deploy/run/restored.h"

#include "common/config/consistency.h"
#include "deploy/run/diverged.h"
#include "deploy/run/run_differs.h"
#include "server/control/register_file.h"
#include "server/layout.h"
#include "worker/compute/models/model.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define COMMAND_BYTES (DP_PATH_MAX * 4 + 64)

/* A switch is given or not: its key may say the opposite of its name. */
static const char *value_of(const struct dp_option *flag, const char *value)
{
    const char *switched = flag ? dp_option_switched(flag) : NULL;
    return !switched ? value : strcmp(value, switched) == 0 ? "given" : "not given";
}

static void show(const struct dp_second *second, const struct dp_difference *differences, size_t count)
{
    size_t shown = count < DP_DIFFERENCES_MAX ? count : DP_DIFFERENCES_MAX;
    if (second->restores)
        (void)fprintf(stderr, "downpour: the checkpoint is of another training:\n");
    else
        (void)fprintf(stderr, "downpour: the earlier run in '%s' was another training:\n",
                      second->folder->path);
    for (size_t i = 0; i < shown; i++) {
        const struct dp_option *flag = dp_options_of_key(second->command, differences[i].key);
        (void)fprintf(stderr, "    %-20s %s then, %s now\n", flag ? flag->name : differences[i].key,
                      value_of(flag, differences[i].before), value_of(flag, differences[i].now));
    }
    if (shown < count)
        (void)fprintf(stderr, "    and %zu more\n", count - shown);
}

/* Weights of ftrl are no state of their own: each push computes them from its sums and the rate. */
static enum dp_status check_rate(const struct dp_cluster_training *before,
                                 const struct dp_cluster_training *now, struct dp_error *err)
{
    if (before->optimizer.kind != DP_OPT_FTRL || now->rate == before->rate)
        return DP_OK;
    return dp_fail(
        err, DP_ARGUMENT,
        "--rate %g: with --optimizer ftrl the rate is a part of the weights, which run %" PRIu32
        " made at %g: they would change at once, by a factor of up to %.3g. Leave --rate out, or start "
        "with new weights (--fresh)",
        now->rate, before->run, before->rate, now->rate / before->rate);
}

static enum dp_status check_fits(const struct dp_folder *folder, const struct dp_cluster *earlier,
                                 const struct dp_cluster *c, struct dp_error *err)
{
    const char *dir = folder->path;
    if (earlier->server_count != c->server_count)
        return dp_fail(err, DP_EXISTS,
                       "'%s' holds the store of %" PRIu32 " server%s, not %" PRIu32 ": use --servers %" PRIu32
                       ", another --dir, or --fresh to remove it",
                       dir, earlier->server_count, earlier->server_count == 1 ? "" : "s", c->server_count,
                       earlier->server_count);
    for (uint32_t i = 0; i < c->server_count; i++)
        if (earlier->server[i].shards != c->server[i].shards)
            return dp_fail(err, DP_EXISTS,
                           "'%s' holds a store of %" PRIu32 " shard%s for server %" PRIu32 ", not %" PRIu32
                           ": use --shards %" PRIu32 ", another --dir, or --fresh to remove it",
                           dir, earlier->server[i].shards, earlier->server[i].shards == 1 ? "" : "s", i,
                           c->server[i].shards, earlier->server[i].shards);
    if (strcmp(earlier->model, c->model) != 0)
        return dp_fail(
            err, DP_EXISTS,
            "'%s' holds the store of model '%s', not '%s': use another --dir, or --fresh to remove it", dir,
            earlier->model, c->model);
    return check_rate(&earlier->training, &c->training, err);
}

static bool has_inside(const struct dp_folder *folder, const char *name)
{
    char path[DP_PATH_MAX + 1];
    struct dp_error unheard = {0};
    return dp_folder_path(folder, path, &unheard, "%s", name) == DP_OK && access(path, F_OK) == 0;
}

/* Once there were weights all shards had a store. A server can tell only where the first server's is there to know it. */
static enum dp_status check_stores(const struct dp_second *second, const struct dp_cluster *earlier,
                                   const struct dp_run_state *state, struct dp_error *err)
{
    char server[DP_PATH_MAX + 1];
    struct dp_layout layout = {.total = dp_cluster_shards(earlier)};
    bool known;
    if (second->restores)
        return DP_OK;
    enum dp_status st = dp_restored_complete(earlier, err);
    bool untrained = state->known && !state->finished && !dp_run_place(second->folder, earlier).known &&
                     !has_inside(second->folder, DP_FOLDER_BEST) &&
                     access(earlier->training.report, F_OK) != 0;
    if (st != DP_OK || untrained)
        return st;
    for (uint32_t i = 0; st == DP_OK && i < earlier->server_count; i++) {
        layout.count = earlier->server[i].shards;
        st = dp_folder_path(second->folder, server, err, "store/server-%" PRIu32, i);
        if (st == DP_OK)
            st = dp_layout_check(server, &layout, true, &known, err); /* another server's, swapped with it */
        for (uint32_t k = 0; st == DP_OK && k < layout.count && !second->replaces; k++)
            st = dp_folder_check_store(server, layout.first + k, err);
        layout.first += layout.count;
    }
    return st;
}

/* Epochs that the earlier run trained. A run of an older build says nothing: it is taken for finished. */
static uint32_t epochs_of(const struct dp_folder *folder, const struct dp_cluster *earlier,
                          const struct dp_run_state *state)
{
    uint32_t reported = dp_run_report_read(earlier->training.report, earlier->training.run).epochs;
    if (state->known && state->finished)
        return state->epochs;
    if (state->known)
        return dp_run_place(folder, earlier).whole;
    return reported ? reported : earlier->training.epochs;
}

/* Whether it may be trained on without a word of the user's. */
static enum dp_status check_meant(const struct dp_second *second, const struct dp_cluster *earlier,
                                  const struct dp_run_state *state, const struct dp_cluster *cluster,
                                  struct dp_error *err)
{
    struct dp_difference differences[DP_DIFFERENCES_MAX];
    char resume[COMMAND_BYTES], place[DP_RUN_PLACE_BYTES];
    const struct dp_run_place at = dp_run_place(second->folder, earlier);
    size_t count = dp_run_differs(earlier, state, cluster, second->now, false, differences);
    bool unfinished = state->known && !state->finished;
    if (second->continues || (count == 0 && !unfinished))
        return DP_OK;
    dp_run_resume_command(second->folder, resume, sizeof resume);
    dp_run_place_text(&at, earlier, place);
    if (count > 0)
        show(second, differences, count);
    if (unfinished)
        return dp_fail(err, DP_EXISTS,
                       "the earlier run there is not finished (%s): '%.200s' finishes it; --continue trains "
                       "further from its weights, --fresh replaces it",
                       place, resume);
    return dp_fail(
        err, DP_EXISTS,
        "to train further from its weights with these settings, add --continue; to replace it, add "
        "--fresh; to keep it, name another --dir");
}

/* Other flags than those of the run that was interrupted are most likely forgotten ones. */
static void tell_resume(const struct dp_folder *folder, const struct dp_cluster *earlier)
{
    char resume[COMMAND_BYTES], place[DP_RUN_PLACE_BYTES];
    const struct dp_run_place at = dp_run_place(folder, earlier);
    dp_run_resume_command(folder, resume, sizeof resume);
    dp_run_place_text(&at, earlier, place);
    (void)fprintf(stderr, "downpour: the earlier run there is not finished (%s): '%s' finishes it\n", place,
                  resume);
}

/* Whether `was` trained on rows that `now` holds out of the same file: it held out none, fewer or others. */
static bool trained_held_out(const struct dp_cluster *was, const struct dp_cluster *now)
{
    const struct dp_cluster_data *a = &was->data, *b = &now->data;
    bool others = strcmp(a->holdout, b->holdout) != 0; /* the seed cannot change */
    return (b->holdout[0] && others) ||
           (b->validation_share > 0 && (others || a->validation_share < b->validation_share));
}

/* dp_run_state_file's first is the training file. A run that is to be restored has no state here. */
static bool same_rows(const struct dp_cluster *was, const struct dp_run_state *state,
                      const struct dp_cluster *now, const struct dp_run_state *now_state)
{
    return state->file[0].known ? dp_fingerprint_same(&state->file[0], &now_state->file[0])
                                : dp_path_same(was->data.train, now->data.train);
}

/* Whether pairs that were trained on are left out of its test sets. */
static bool ranks_others(const struct dp_cluster *cluster)
{
    struct dp_error unheard;
    struct dp_model model;
    bool opens = dp_model_open(cluster->model, &model, &unheard) == DP_OK;
    bool ranks = opens && (model.form == DP_FORM_TRIPLES || (model.form == DP_FORM_PAIRS && !model.rated));
    if (opens)
        dp_model_close(&model);
    return ranks;
}

/* Metrics of rows that the weights have seen look too good. All runs on the store are in the directory. */
static void warn_of_held_out(const struct dp_second *second, const struct dp_cluster *earlier,
                             const struct dp_cluster *cluster)
{
    struct dp_error unheard;
    struct dp_folder folder = *second->folder;
    uint32_t first = second->restores ? earlier->training.run : 1;
    if ((!cluster->data.holdout[0] && cluster->data.validation_share == 0) || ranks_others(cluster))
        return;
    for (uint32_t run = first; run > 0 && run <= earlier->training.run; run++) {
        struct dp_cluster *was = NULL;
        if (!second->restores && (dp_folder_select(&folder, run, &unheard) != DP_OK ||
                                  dp_cluster_read(folder.conf, &was, &unheard) != DP_OK))
            continue;
        const struct dp_cluster *trained = was ? was : earlier;
        const struct dp_run_state state = dp_run_state_read(&folder, run);
        bool warns = trained_held_out(trained, cluster) && same_rows(trained, &state, cluster, second->now) &&
                     (second->restores || state.finished || dp_run_place(&folder, trained).known);
        dp_cluster_free(&was);
        if (!warns)
            continue;
        (void)fprintf(
            stderr,
            "downpour: warning: run %" PRIu32
            " trained on rows that are held out now (%s): their metrics will look too good. Give rows "
            "that no run has seen (%s FILE), or train with --fresh\n",
            run, cluster->data.holdout[0] ? "--holdout" : "--validation share",
            cluster->data.holdout[0] ? "--test" : "--validation");
        return;
    }
}

uint64_t dp_second_examples(const struct dp_cluster *earlier, const struct dp_run_state *was,
                            const struct dp_cluster *cluster, const struct dp_run_state *now)
{
    const struct dp_cluster_training *t = &earlier->training;
    uint64_t last =
        same_rows(earlier, was, cluster, now) ? 0 : dp_run_report_read(t->report, t->run).examples;
    return t->earlier_examples + last;
}

enum dp_status dp_second_join(const struct dp_second *second, const struct dp_cluster *earlier,
                              struct dp_cluster *cluster, struct dp_error *err)
{
    const struct dp_run_state state = dp_run_state_read(second->folder, earlier->training.run);
    enum dp_status st = check_fits(second->folder, earlier, cluster, err);
    if (st != DP_OK && !second->continues && state.known && !state.finished)
        tell_resume(second->folder, earlier);
    if (st == DP_OK)
        st = check_stores(second, earlier, &state, err);
    if (st == DP_OK && !second->restores)
        st = dp_diverged_check(second->folder, earlier, err);
    if (st == DP_OK)
        st = check_meant(second, earlier, &state, cluster, err);
    if (st != DP_OK)
        return st;
    uint32_t epochs = second->restores ? second->whole : epochs_of(second->folder, earlier, &state),
             run = earlier->training.run + 1;
    if (epochs > INT32_MAX - earlier->training.first_epoch)
        return dp_fail(err, DP_FULL, "'%s' has seen 2^31-1 epochs: use another --dir", second->folder->path);
    memcpy(cluster->name, earlier->name, sizeof cluster->name);
    cluster->id = earlier->id;
    cluster->training.run = run > second->number ? run : second->number;
    cluster->training.first_epoch = earlier->training.first_epoch + epochs;
    cluster->training.earlier_examples = dp_second_examples(earlier, &state, cluster, second->now);
    warn_of_held_out(second, earlier, cluster);
    return DP_OK;
}

enum dp_status dp_second_resumable(const struct dp_folder *folder, struct dp_cluster **cluster,
                                   struct dp_error *err)
{
    *cluster = NULL;
    enum dp_status st = dp_folder_check_foreign(folder, err);
    if (st != DP_OK)
        return st;
    if (!dp_folder_has_run(folder))
        return dp_fail(err, DP_NOT_FOUND,
                       "there is no run to resume in '%.300s': it has no cluster.conf; start one with "
                       "--model and --train",
                       folder->path);
    st = dp_cluster_read(folder->conf, cluster, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "the run in '%.200s' cannot be resumed", folder->path);
    const struct dp_run_state state = dp_run_state_read(folder, (*cluster)->training.run);
    if (state.finished)
        st = dp_fail(err, DP_ARGUMENT,
                     "run %" PRIu32
                     " in '%.300s' is finished, so there is nothing to resume: to train further "
                     "from its weights, give --continue instead",
                     (*cluster)->training.run, folder->path);
    if (st == DP_OK)
        st = dp_diverged_check(folder, *cluster, err);
    if (st != DP_OK)
        dp_cluster_free(cluster);
    return st;
}

static bool has_register(const struct dp_folder *folder)
{
    char path[DP_PATH_MAX + 1];
    struct dp_error unheard;
    return dp_folder_path(folder, path, &unheard, "store/server-0/" DP_REGISTER_FILE) == DP_OK &&
           access(path, F_OK) == 0;
}

static bool has_any_store(const struct dp_folder *folder, const struct dp_cluster *cluster)
{
    char server[DP_PATH_MAX + 1];
    struct dp_error unheard;
    uint32_t shard = 0;
    for (uint32_t i = 0; i < cluster->server_count; i++) {
        if (dp_folder_path(folder, server, &unheard, "store/server-%" PRIu32, i) != DP_OK)
            return false;
        for (uint32_t k = 0; k < cluster->server[i].shards; k++)
            if (dp_folder_check_store(server, shard++, &unheard) == DP_OK)
                return true;
    }
    return false;
}

/* The stores that are left know the run's members, and refuse those that a new register would name. */
static enum dp_status check_register(const struct dp_second *second, const struct dp_cluster *earlier,
                                     struct dp_error *err)
{
    char quoted[DP_PATH_QUOTED];
    const struct dp_folder *folder = second->folder;
    if (!second->replaces || has_register(folder) || !has_any_store(folder, earlier) ||
        !dp_run_place(folder, earlier).known)
        return DP_OK;
    return dp_fail(
        err, DP_ARGUMENT,
        "run %" PRIu32
        " cannot go on where it was, as server 0's register is lost; nothing is replaced. Go back to "
        "a checkpoint (downpour restore --overwrite), or train further from the rows that are "
        "left, as a new run (the rows of missing stores are lost): downpour run --continue "
        "--replace-store --dir %s",
        earlier->training.run, dp_path_quote(folder->path, quoted));
}

/* Its other stores have closed the steps that a new one would need again. */
static enum dp_status check_steps(const struct dp_second *second, const struct dp_cluster *earlier,
                                  struct dp_error *err)
{
    if (!second->replaces || !dp_cluster_rule_by_step(dp_cluster_rule_of(&earlier->training)))
        return DP_OK;
    return dp_fail(
        err, DP_ARGUMENT,
        "--resume and --replace-store: run %" PRIu32
        " is synchronous, and cannot go on where it was without one of its stores. If one is lost, "
        "--continue --replace-store trains further from what is left, as a new run; else omit "
        "--replace-store",
        earlier->training.run);
}

enum dp_status dp_second_same(const struct dp_second *second, const struct dp_cluster *earlier,
                              const struct dp_cluster *cluster, struct dp_error *err)
{
    struct dp_difference differences[DP_DIFFERENCES_MAX];
    const struct dp_run_state state = dp_run_state_read(second->folder, earlier->training.run);
    enum dp_status st = check_steps(second, earlier, err);
    if (st == DP_OK)
        st = check_register(second, earlier, err);
    if (st == DP_OK && strcmp(earlier->model, cluster->model) != 0)
        st = dp_fail(err, DP_EXISTS, "%s, of model '%s', not '%s': omit --model",
                     second->restores ? "--from goes on with the run that the checkpoint is of"
                                      : "--resume finishes the run that is there",
                     earlier->model, cluster->model);
    if (st == DP_OK)
        st = check_fits(second->folder, earlier, cluster, err);
    if (st == DP_OK)
        st = check_stores(second, earlier, &state, err);
    size_t count = st == DP_OK ? dp_run_differs(earlier, &state, cluster, second->now, true, differences) : 0;
    if (count == 0)
        return st;
    show(second, differences, count);
    const struct dp_option *flag = dp_options_of_key(second->command, differences[0].key);
    return dp_fail(err, DP_EXISTS,
                   "%s: omit what would change it (%s), or train further from its weights with --continue",
                   second->restores ? "--from goes on with the run that the checkpoint is of"
                                    : "--resume finishes the run that is there",
                   flag ? flag->name : differences[0].key);
}
