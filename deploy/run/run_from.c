#include "deploy/run/run_from.h"

#include "deploy/run/run_second.h"

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
    enum dp_status st = dp_folder_path(folder, earlier->training.report, err, "report.json");
    if (st == DP_OK)
        st = dp_folder_path(folder, earlier->training.steps, err, DP_FOLDER_STEPS);
    return st == DP_OK ? dp_folder_side_files(folder, &earlier->data, err) : st;
}

static enum dp_status check_free(const struct dp_run_plan *plan, struct dp_error *err)
{
    if (dp_folder_has_run(&plan->was) && !flag(plan, "--fresh"))
        return dp_fail(err, DP_EXISTS,
                       "--from begins a directory of its own, and '%.300s' has a run: name another --dir, or "
                       "--fresh to replace it",
                       plan->folder.path);
    return dp_folder_check_foreign(&plan->was, err);
}

enum dp_status dp_run_from_settle(struct dp_run_plan *plan, struct dp_error *err)
{
    const struct dp_manifest_position *at = &plan->from.manifest.position;
    const struct dp_second second = {.folder = &plan->folder,
                                     .command = &dp_run_command,
                                     .now = &plan->state,
                                     .number = plan->folder.number,
                                     .continues = !plan->resumes,
                                     .restores = true,
                                     .whole =
                                         at->known && at->run == plan->earlier->training.run ? at->epoch : 0};
    enum dp_status st = check_free(plan, err);
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

/* The cluster file comes last: without one the run is none, and the next one removes it. */
enum dp_status dp_run_from_restore(struct dp_run_plan *plan, struct dp_error *err)
{
    struct dp_error unheard = {0};
    char conf[DP_PATH_MAX + 1], text[DP_RUN_FROM_BYTES];
    uint32_t done;
    enum dp_status st = dp_folder_path(&plan->folder, conf, err, "restoring.conf");
    if (st == DP_OK)
        st = dp_cluster_write(plan->earlier, conf, err);
    if (st != DP_OK)
        return st;
    dp_run_from_text(plan, text);
    fprintf(stderr, "Restoring %s into %s\n", text, plan->folder.path);
    const struct dp_restored_stores stores = {
        .file = conf, .cluster = plan->earlier, .lock = plan->folder.lock};
    st = dp_restored_stores(&plan->from, &stores, &done, err);
    (void)unlink(conf);
    if (st != DP_OK && dp_folder_drop(&plan->folder, &unheard) != DP_OK)
        fprintf(stderr, "downpour: %s\n", unheard.text);
    return st;
}
