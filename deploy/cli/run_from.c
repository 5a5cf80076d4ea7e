#include "deploy/cli/run_from.h"

#include "deploy/cli/run_second.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *flag(const struct dp_run_plan *plan, const char *name)
{
    return dp_options_value(&dp_run_command, plan->values, name);
}

/* ---- begin */

enum dp_status dp_run_from_begin(struct dp_run_plan *plan, struct dp_error *err)
{
    if (flag(plan, "--cluster"))
        return dp_fail(err, DP_ARGUMENT, "--from uses the checkpoint's cluster file: omit --cluster");
    if (flag(plan, "--resume"))
        return dp_fail(err, DP_ARGUMENT,
                       "--from goes on where the checkpoint stood: omit --resume; once the run is in its "
                       "directory, --resume alone finishes it");
    if (flag(plan, "--replace-store"))
        return dp_fail(err, DP_ARGUMENT, "--from restores all stores: omit --replace-store");
    enum dp_status st = dp_restored_find(flag(plan, "--from"), &plan->from, err);
    if (st == DP_OK)
        st = dp_restored_cluster(&plan->from, &plan->earlier, err);
    if (st == DP_OK)
        st = dp_restored_cluster(&plan->from, &plan->cluster, err);
    plan->resumes = !flag(plan, "--continue");
    return st;
}

void dp_run_from_text(const struct dp_run_plan *plan, char text[DP_RUN_FROM_BYTES])
{
    const struct dp_manifest *m = &plan->from.manifest;
    char at[48] = "no run in it";
    if (m->position.known)
        (void)snprintf(at, sizeof at, "run %" PRIu32 ", epoch %" PRIu32, m->position.run,
                       plan->earlier->training.first_epoch + m->position.epoch + 1);
    (void)snprintf(text, DP_RUN_FROM_BYTES, "checkpoint %" PRIu32 " (%s, made %.40s)", plan->from.number, at,
                   m->made);
}

/* ---- settle */

/* What a restore that was cut short has left. */
static enum dp_status sweep(const struct dp_folder *folder, struct dp_error *err)
{
    char path[DP_PATH_MAX + 1];
    enum dp_status st = dp_folder_path(folder, path, err, DP_FOLDER_RESTORING);
    if (st != DP_OK || access(path, F_OK) != 0)
        return st;
    if (!dp_folder_has_run(folder))
        st = dp_folder_clear_store(folder, err);
    return st == DP_OK && unlink(path) != 0
               ? dp_fail(err, DP_IO, "cannot remove '%s': %s", path, strerror(errno))
               : st;
}

/* Nobody knows what the files said when the checkpoint was made, and it may have been made on another machine. */
static void take_data(const struct dp_run_plan *plan)
{
    for (size_t i = 0; i < DP_RUN_FILES; i++) {
        const char *name, *given = dp_run_state_file(&plan->cluster->data, i, &name);
        if (flag(plan, name))
            memcpy(dp_run_state_file(&plan->earlier->data, i, &name), given, DP_PATH_MAX + 1);
    }
}

/* The checkpoint's run, as if it had been here. */
static enum dp_status place(struct dp_run_plan *plan, struct dp_error *err)
{
    struct dp_cluster *earlier = plan->earlier, *now = plan->cluster;
    const struct dp_folder *folder = &plan->folder;
    struct dp_cluster_server *server = calloc(now->server_count, sizeof *server);
    if (!server)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " servers", now->server_count);
    memcpy(server, now->server, now->server_count * sizeof *server);
    free(earlier->server);
    earlier->server = server;
    earlier->server_count = now->server_count;
    earlier->relative_to = DP_CLUSTER_FILE;
    earlier->durability = now->durability; /* without a journal the stores are built so that they need none */
    memcpy(earlier->data.cache, now->data.cache, sizeof now->data.cache);
    uint32_t run = earlier->training.run;
    enum dp_status st = dp_folder_path(folder, earlier->training.report, err, "report.json");
    if (st == DP_OK)
        st = dp_folder_steps(folder, run, earlier->training.steps, err);
    if (st == DP_OK)
        st = dp_folder_names(folder, run, earlier->data.names, err);
    return st == DP_OK ? dp_folder_columns(folder, run, earlier->data.columns, err) : st;
}

static enum dp_status make_free(struct dp_run_plan *plan, struct dp_error *err)
{
    enum dp_status st = sweep(&plan->folder, err);
    bool there = dp_folder_has_run(&plan->folder);
    if (st == DP_OK && there && !flag(plan, "--fresh"))
        st = dp_fail(err, DP_EXISTS,
                     "--from begins a directory of its own, and '%.300s' has a run: name another --dir, or "
                     "--fresh to replace it",
                     plan->folder.path);
    if (st == DP_OK)
        st = dp_folder_check_foreign(&plan->folder, err);
    if (st == DP_OK && there)
        st = dp_folder_set_aside(&plan->folder, err);
    return st == DP_OK && there ? dp_folder_clear_logs(&plan->folder, err) : st;
}

enum dp_status dp_run_from_settle(struct dp_run_plan *plan, struct dp_error *err)
{
    const struct dp_manifest_position *at = &plan->from.manifest.position;
    const struct dp_second second = {.folder = &plan->folder,
                                     .command = &dp_run_command,
                                     .now = &plan->state,
                                     .continues = !plan->resumes,
                                     .restores = true,
                                     .whole =
                                         at->known && at->run == plan->earlier->training.run ? at->epoch : 0};
    enum dp_status st = make_free(plan, err);
    if (st == DP_OK)
        st = place(plan, err);
    take_data(plan);
    if (st == DP_OK)
        st = plan->resumes ? dp_second_same(&second, plan->earlier, plan->cluster, err)
                           : dp_second_join(&second, plan->earlier, plan->cluster, err);
    if (plan->resumes)
        dp_run_state_restored(&plan->state, plan->earlier->training.run, at->known, at->run, at->epoch);
    plan->continues = st == DP_OK && !plan->resumes;
    return st;
}

/* ---- restore */

/* Of the checkpoint's run, where another one continues from it: that one may fail, and --continue then begins at the checkpoint again. */
static enum dp_status keep_place(const struct dp_run_plan *plan, struct dp_error *err)
{
    const struct dp_manifest_position *at = &plan->from.manifest.position;
    struct dp_run_state state = {.known = true};
    uint32_t run = plan->earlier->training.run;
    dp_run_state_restored(&state, run, at->known, at->run, at->epoch);
    return plan->continues ? dp_run_state_write(&plan->folder, run, &state, err) : DP_OK;
}

enum dp_status dp_run_from_restore(struct dp_run_plan *plan, struct dp_error *err)
{
    struct dp_error unheard = {0};
    char conf[DP_PATH_MAX + 1], text[DP_RUN_FROM_BYTES];
    uint32_t done;
    enum dp_status st = dp_folder_path(&plan->folder, conf, err, DP_FOLDER_RESTORING);
    if (st == DP_OK)
        st = dp_cluster_write(plan->earlier, conf, err);
    if (st != DP_OK)
        return st;
    dp_run_from_text(plan, text);
    fprintf(stderr, "Restoring %s into %s\n", text, plan->folder.path);
    const struct dp_restored_stores stores = {
        .file = conf, .cluster = plan->earlier, .lock = plan->folder.lock};
    st = dp_restored_stores(&plan->from, &stores, &done, err);
    if (st == DP_OK)
        st = keep_place(plan, err);
    if (st == DP_OK)
        st = dp_cluster_write(plan->earlier, plan->folder.conf, err);
    if (sweep(&plan->folder, &unheard) != DP_OK) /* the stores, too, where there is no cluster.conf */
        fprintf(stderr, "downpour: %s\n", unheard.text);
    return st;
}
