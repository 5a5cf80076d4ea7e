#include "server/restore/auto_restore.h"

#include "common/base/log.h"
#include "common/client/downpour.h"
#include "common/env/atomic_file.h"
#include "common/env/directory.h"
#include "server/checkpoint/listing.h"
#include "server/checkpoint/manifest.h"
#include "server/control/register_file.h"
#include "server/control/stores.h"
#include "server/restore/restore.h"
#include "server/restore/restore_exchange.h"
#include "server/restore/restore_place.h"
#include "server/store/store_id.h"
#include "server/store/store_view.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#define LOOK_MS 200u
#define TRY_MS  1000u
#define SAY     50u /* looks between two lines of the log */
#define BUILT   "built"
#define STORE   "store"

struct restore_plan {
    uint64_t word,
        history;     /* of the restore, and what follows from it and the checkpoint; 0: there is no plan */
    uint32_t number; /* of the checkpoint */
};

struct restore_note { /* of another server */
    uint64_t word;
    char what[8], host[DP_HOST_MAX + 1], store[DP_PATH_MAX + 1];
};

static void pause_ms(uint32_t ms)
{
    const struct timespec pause = {.tv_sec = ms / 1000, .tv_nsec = (long)(ms % 1000) * 1000000L};
    (void)nanosleep(&pause, NULL);
}

/* ---- files */

static enum dp_status path_of(const struct dp_cluster *cluster, const char *name,
                              struct dp_checkpoint_path *out, struct dp_error *err)
{
    return dp_checkpoint_path(out, err, "%s/restoring-%016" PRIx64 "%s%s", cluster->checkpoint.to,
                              cluster->id, name[0] ? "/" : "", name);
}

static FILE *open_file(const struct dp_cluster *cluster, const char *name)
{
    struct dp_checkpoint_path path;
    return path_of(cluster, name, &path, NULL) == DP_OK ? fopen(path.text, "re") : NULL;
}

static struct restore_plan read_plan(const struct dp_cluster *cluster)
{
    struct restore_plan plan = {0};
    FILE *file = open_file(cluster, "plan");
    bool is_plan = file && fscanf(file, "%" SCNx64 " %" SCNx64 " %" SCNu32, &plan.word, &plan.history,
                                  &plan.number) == 3;
    if (file)
        (void)fclose(file);
    return is_plan ? plan : (struct restore_plan){0};
}

static enum dp_status put_file(const struct dp_cluster *cluster, const char *name, const char *text,
                               struct dp_error *err)
{
    struct dp_checkpoint_path directory, path;
    struct dp_atomic_file file = {0};
    enum dp_status st = path_of(cluster, "", &directory, err);
    if (st == DP_OK)
        st = path_of(cluster, name, &path, err);
    if (st == DP_OK)
        st = dp_directory_make(directory.text, err);
    if (st == DP_OK)
        st = dp_atomic_file_open(path.text, &file, err);
    if (st != DP_OK)
        return st;
    (void)fputs(text, file.stream);
    return dp_atomic_file_commit(&file, err);
}

static enum dp_status put_note(const struct dp_cluster *cluster, uint32_t server,
                               const struct restore_plan *plan, const char *what, struct dp_error *err)
{
    char name[32], text[DP_PATH_MAX + DP_HOST_MAX + 64], host[DP_HOST_MAX + 1] = "";
    (void)gethostname(host, sizeof host - 1);
    (void)snprintf(name, sizeof name, "server-%" PRIu32, server);
    (void)snprintf(text, sizeof text, "%016" PRIx64 " %s %s %s\n", plan->word, what, host[0] ? host : "?",
                   cluster->server[server].store);
    return put_file(cluster, name, text, err);
}

/* False: it has put none for this plan. */
static bool read_note(const struct dp_cluster *cluster, uint32_t server, const struct restore_plan *plan,
                      struct restore_note *out)
{
    char name[32];
    *out = (struct restore_note){0};
    (void)snprintf(name, sizeof name, "server-%" PRIu32, server);
    FILE *file = open_file(cluster, name);
    bool is_note = file && fscanf(file, "%" SCNx64 " %7s %255s %1023[^\n]", &out->word, out->what, out->host,
                                  out->store) == 4;
    if (file)
        (void)fclose(file);
    return is_note && out->word == plan->word;
}

enum dp_status dp_auto_restore_drop(const struct dp_cluster *cluster, struct dp_error *err)
{
    struct dp_checkpoint_path directory;
    enum dp_status st = path_of(cluster, "", &directory, err);
    return st == DP_OK ? dp_directory_remove(directory.text, true, 1, err) : st;
}

/* ---- what is there */

static uint64_t history_of(const struct dp_cluster *cluster, uint32_t server, bool built)
{
    struct dp_restore_place place;
    return dp_restore_place_name(&place, cluster->server[server].store, NULL) == DP_OK
               ? dp_restore_place_history(built ? place.building : place.store)
               : 0;
}

bool dp_auto_restore_is_empty(const struct dp_cluster *cluster, uint32_t server)
{
    struct dp_restore_place place;
    struct dp_checkpoint_path path;
    uint32_t shards = dp_cluster_shards(cluster);
    if (dp_restore_place_name(&place, cluster->server[server].store, NULL) != DP_OK ||
        access(place.before, F_OK) == 0)
        return false;
    for (uint32_t i = 0; i < shards; i++)
        if (dp_checkpoint_path(&path, NULL, "%s/shard-%04" PRIu32, place.store, i) != DP_OK ||
            dp_store_view_is_store(path.text))
            return false;
    return dp_checkpoint_path(&path, NULL, "%s/" DP_REGISTER_FILE, place.store) == DP_OK &&
           access(path.text, F_OK) != 0;
}

enum dp_status dp_auto_restore_find(const struct dp_cluster *cluster, uint32_t *number, struct dp_error *err)
{
    struct dp_checkpoint_list list;
    struct dp_error damage = {0};
    bool found = false;
    enum dp_status st = dp_checkpoint_list_read(cluster->checkpoint.to, &list, err);
    for (size_t i = list.count; st == DP_OK && i > 0 && !found; i--) {
        struct dp_manifest manifest = {0};
        st = dp_manifest_read_numbered(cluster->checkpoint.to, list.number[i - 1], &manifest, err);
        found = st == DP_OK && manifest.cluster == cluster->id;
        *number = list.number[i - 1];
        dp_manifest_clear(&manifest);
        if (st == DP_CORRUPT) {
            damage = *err;
            dp_log(DP_LOG_WARN, "%s; the one before is looked for", err->text);
            st = DP_OK;
        }
    }
    dp_checkpoint_list_clear(&list);
    if (st != DP_OK || found)
        return st;
    if (damage.status != DP_OK) {
        *err = damage;
        return damage.status;
    }
    return dp_fail(err, DP_NOT_FOUND, "%s has no checkpoint of this cluster", cluster->checkpoint.to);
}

/* ---- one server's part */

static enum dp_status run_restore(const struct dp_cluster *cluster, uint32_t server,
                                  const struct restore_plan *plan, bool exchanges, struct dp_error *err)
{
    struct dp_checkpoint_path checkpoint;
    char word[17];
    (void)snprintf(word, sizeof word, "%016" PRIx64, plan->word);
    const struct dp_restore_options options = {.checkpoint = checkpoint.text,
                                               .cluster = cluster,
                                               .server = server,
                                               .exchanges = exchanges,
                                               .history = cluster->server_count > 1 ? word : NULL};
    enum dp_status st = dp_checkpoint_path_of(cluster->checkpoint.to, plan->number, &checkpoint, err);
    if (st == DP_OK)
        st = dp_restore(&options, err);
    return st == DP_OK || st == DP_STOPPING
               ? st
               : dp_wrap(err, st,
                         "restoring %.200s, since no server has a store (an earlier checkpoint: downpour "
                         "restore --from)",
                         checkpoint.text);
}

static enum dp_status build(const struct dp_cluster *cluster, uint32_t server,
                            const struct restore_plan *plan, struct dp_error *err)
{
    if (history_of(cluster, server, true) == plan->history)
        return DP_OK; /* before this process was started again */
    dp_log(DP_LOG_WARN, "there is no store in %s: it is built from checkpoint %" PRIu32 " in %s",
           cluster->server[server].store, plan->number, cluster->checkpoint.to);
    enum dp_status st = run_restore(cluster, server, plan, false, err);
    if (st == DP_OK && history_of(cluster, server, true) != plan->history)
        st = dp_fail(err, DP_GENERATION,
                     "checkpoint %" PRIu32
                     " in %s is another one here than on the first server's host: the directory of "
                     "checkpoints must be the same on all hosts",
                     plan->number, cluster->checkpoint.to);
    return st;
}

/* ---- server 0 */

/* A note of before this process says nothing: its server's store may have come back since. Those that run
 * put theirs again. */
static enum dp_status drop_notes(const struct dp_cluster *cluster, struct dp_error *err)
{
    struct dp_checkpoint_path path;
    enum dp_status st = DP_OK;
    for (uint32_t i = 1; st == DP_OK && i < cluster->server_count; i++) {
        char name[32];
        (void)snprintf(name, sizeof name, "server-%" PRIu32, i);
        st = path_of(cluster, name, &path, err);
        if (st == DP_OK && unlink(path.text) != 0 && errno != ENOENT)
            st = dp_checkpoint_failed(err, "cannot remove", path.text);
    }
    return st;
}

/* What the plan of that word makes of the checkpoint. */
static uint64_t plan_history(const struct restore_plan *plan, const struct dp_manifest *manifest)
{
    char word[17];
    (void)snprintf(word, sizeof word, "%016" PRIx64, plan->word);
    return dp_restore_history(manifest, word);
}

static enum dp_status make_plan(const struct dp_cluster *cluster, uint32_t number, struct restore_plan *out,
                                struct dp_error *err)
{
    struct dp_manifest manifest = {0};
    char text[64];
    enum dp_status st = dp_manifest_read_numbered(cluster->checkpoint.to, number, &manifest, err);
    if (st != DP_OK)
        return st;
    *out = read_plan(cluster);
    /* Another checkpoint may have taken that number since. */
    const bool is_left = out->history != 0 && out->history == plan_history(out, &manifest);
    if (!is_left)
        dp_store_id_draw(&out->word);
    out->number = number;
    out->history = plan_history(out, &manifest);
    dp_manifest_clear(&manifest);
    (void)snprintf(text, sizeof text, "%016" PRIx64 " %016" PRIx64 " %" PRIu32 "\n", out->word, out->history,
                   number);
    return is_left ? DP_OK : put_file(cluster, "plan", text, err);
}

static enum dp_status refuse_half(const struct dp_cluster *cluster, const struct restore_plan *plan,
                                  uint32_t server, const struct restore_note *note, struct dp_error *err)
{
    struct dp_error ignored;
    const char *const own = cluster->server[0].store;
    (void)dp_auto_restore_drop(cluster, &ignored);
    dp_restore_exchange_take_back(&own, 1, plan->history);
    return dp_fail(
        err, DP_GENERATION,
        "there is no store in %.150s, and server %" PRIu32 " (on %.60s) has its own, %.150s: was this "
        "one lost, or its disk not mounted? Put it back; or restore the last checkpoint on all "
        "servers: stop them, then downpour restore --overwrite --from %.150s --cluster FILE; or start "
        "all servers once with --replace-store, without the rows of this one",
        cluster->server[0].store, server, note->host, note->store, cluster->checkpoint.to);
}

/* DP_AGAIN: `of` has not built yet. */
static enum dp_status look_at_others(const struct dp_cluster *cluster, const struct restore_plan *plan,
                                     uint32_t *of, struct dp_error *err)
{
    struct restore_note note;
    uint32_t lacks = 0;
    for (uint32_t i = 1; i < cluster->server_count; i++) {
        bool noted = read_note(cluster, i, plan, &note);
        if (noted && strcmp(note.what, STORE) == 0)
            return refuse_half(cluster, plan, i, &note, err);
        if (lacks == 0 && (!noted || strcmp(note.what, BUILT) != 0))
            lacks = i;
    }
    *of = lacks;
    return lacks == 0 ? DP_OK : DP_AGAIN;
}

static enum dp_status await_others(const struct dp_cluster *cluster, const struct restore_plan *plan,
                                   struct dp_error *err)
{
    uint32_t of = 0, looks = 0;
    enum dp_status st;
    while ((st = look_at_others(cluster, plan, &of, err)) == DP_AGAIN) {
        if (looks++ % SAY == 0)
            dp_log(DP_LOG_INFO,
                   "waits for server %" PRIu32 " to build its part of checkpoint %" PRIu32
                   ": it is not started, not ready, or does not reach %s",
                   of, plan->number, cluster->checkpoint.to);
        pause_ms(LOOK_MS);
    }
    return st;
}

enum dp_status dp_auto_restore_first(const struct dp_cluster *cluster, uint32_t number, struct dp_error *err)
{
    struct restore_plan plan = {.number = number};
    if (cluster->server_count == 1) {
        dp_log(DP_LOG_WARN, "there is no store in %s: it is built from checkpoint %" PRIu32 " in %s",
               cluster->server[0].store, number, cluster->checkpoint.to);
        return run_restore(cluster, 0, &plan, false, err);
    }
    const uint64_t built = history_of(cluster, 0, true);
    if (built != 0 && built != read_plan(cluster).history)
        return DP_OK; /* a restore that a person began: its exchange is theirs */
    enum dp_status st = drop_notes(cluster, err);
    if (st == DP_OK)
        st = make_plan(cluster, number, &plan, err);
    if (st == DP_OK)
        st = build(cluster, 0, &plan, err);
    if (st == DP_OK)
        st = await_others(cluster, &plan, err);
    if (st == DP_OK)
        st = run_restore(cluster, 0, &plan, true, err);
    return st == DP_OK ? dp_auto_restore_drop(cluster, err) : st;
}

enum dp_status dp_auto_restore_check_others(const struct dp_cluster *cluster, uint32_t number,
                                            struct dp_error *err)
{
    struct restore_plan plan = {.number = number};
    struct restore_note note = {0};
    uint32_t built = 0, looks = 0;
    bool has = false;
    enum dp_status st = drop_notes(cluster, err);
    if (st == DP_OK)
        st = make_plan(cluster, number, &plan, err);
    while (st == DP_OK && !has && built < cluster->server_count - 1) {
        built = 0;
        for (uint32_t i = 1; !has && i < cluster->server_count; i++)
            if (read_note(cluster, i, &plan, &note)) {
                has = strcmp(note.what, STORE) == 0;
                built += !has;
            }
        if (!has && looks++ % SAY == 0)
            dp_log(DP_LOG_INFO, "--replace-store: waits for another server to say whether it has its store");
        pause_ms(has ? 0 : LOOK_MS);
    }
    if (st != DP_OK)
        return st;
    return has ? dp_auto_restore_drop(cluster, err)
               : dp_fail(err, DP_EXISTS,
                         "--replace-store: no server has a store, and %.250s has checkpoint %" PRIu32
                         " of this cluster: start without that flag to restore it",
                         cluster->checkpoint.to, number);
}

/* ---- the others */

static enum dp_status ask_first(const struct dp_cluster *cluster, struct dp_error *err)
{
    char control[DP_HOST_MAX + 32];
    struct dp_client *client = NULL;
    struct dp_register_value unread = {0};
    dp_cluster_control_endpoint(cluster, 0, control, sizeof control);
    const struct dp_client_options options = {
        .name = "server", .cluster = cluster->id, .control = control, .open_timeout_ms = TRY_MS};
    enum dp_status st = dp_client_open(&options, &client, err);
    if (st == DP_OK)
        st = dp_client_register_get(client, DP_STORES_NAME, 0, 0, TRY_MS, &unread, err);
    dp_register_value_clear(&unread);
    dp_client_close(&client);
    return st;
}

enum dp_status dp_auto_restore_other(const struct dp_cluster *cluster, uint32_t server, struct dp_error *err)
{
    struct restore_note note;
    enum dp_status st = ask_first(cluster, err);
    for (uint32_t tries = 0; dp_status_class((int)st) == DP_CLASS_RETRY; tries++) {
        const struct restore_plan plan = read_plan(cluster);
        struct dp_error why = {0};
        if (plan.history == 0 && tries % (SAY / 5) == 0)
            dp_log(DP_LOG_INFO, "there is no store in %s: waits for the first server, or its plan in %s: %s",
                   cluster->server[server].store, cluster->checkpoint.to, err->text);
        enum dp_status built = plan.history != 0 ? build(cluster, server, &plan, &why) : DP_OK;
        if (built == DP_OK && plan.history != 0 && !read_note(cluster, server, &plan, &note))
            built = put_note(cluster, server, &plan, BUILT, &why);
        if (built != DP_OK) {
            *err = why;
            return built;
        }
        pause_ms(LOOK_MS);
        st = ask_first(cluster, err);
    }
    return st;
}

void dp_auto_restore_object(const struct dp_cluster *cluster, uint32_t server)
{
    struct restore_note note;
    struct dp_error err;
    const struct restore_plan plan = read_plan(cluster);
    if (plan.history == 0 || history_of(cluster, server, false) == plan.history ||
        (read_note(cluster, server, &plan, &note) && strcmp(note.what, STORE) == 0))
        return;
    if (put_note(cluster, server, &plan, STORE, &err) != DP_OK)
        dp_log(DP_LOG_WARN, "%s", err.text);
}
