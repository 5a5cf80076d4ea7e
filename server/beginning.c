#define _GNU_SOURCE /* asprintf, pipe2 */
#include "server/beginning.h"

#include "common/base/log.h"
#include "common/config/cluster_shared.h"
#include "server/control/register_names.h"
#include "server/proof.h"
#include "server/restore/auto_restore.h"
#include "server/restore/restore_place.h"
#include "server/store/store_id.h"
#include "server/store/store_view.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define LINE_MAX_BYTES 64u /* "mark <16 hex digits> history <16>\n"; then the value has the shared settings */
#define ASK_MS         2000u
#define LOOKS          3u /* for a file that another host has just written */

/* ---- settle */

/* Restores in a process of its own, as its threads (RocksDB's, ZeroMQ's) would stay, and take the server's
 * signals. */
static void restore_in_child(const struct dp_beginning *b, uint32_t number, int result)
{
    struct dp_error err = {0};
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    enum dp_status st = b->server == 0 ? dp_auto_restore_first(b->cluster, number, &err)
                                       : dp_auto_restore_other(b->cluster, b->server, &err);
    DP_ASSERT(st == err.status || st == DP_OK);
    if (st == DP_OK)
        err = (struct dp_error){0};
    _exit(write(result, &err, sizeof err) == sizeof err ? 0 : 1);
}

/* A signal ends both, as a kill does: the next start goes on. number: of the checkpoint, for server 0. */
static enum dp_status restore(const struct dp_beginning *b, uint32_t number, struct dp_error *err)
{
    struct dp_error said;
    int result[2];
    if (pipe2(result, O_CLOEXEC) != 0)
        return dp_fail(err, DP_IO, "cannot make a pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0)
        restore_in_child(b, number, result[1]);
    (void)close(result[1]);
    ssize_t got;
    do
        got = read(result[0], &said, sizeof said);
    while (got < 0 && errno == EINTR);
    (void)close(result[0]);
    if (child > 0)
        (void)waitpid(child, NULL, 0);
    if (got != (ssize_t)sizeof said)
        return dp_fail(err, DP_IO, "the process that restores the store ended without a word");
    if (said.status != DP_OK)
        *err = said;
    return said.status;
}

static enum dp_status refuse_lost(const struct dp_beginning *b, const struct dp_proof *proof,
                                  struct dp_error *err)
{
    return dp_fail(
        err, DP_NOT_FOUND,
        "there is no store in %.200s, and %.250s says that cluster '%s' was begun: were the stores "
        "lost, or their disks not mounted? Put them back. There is no checkpoint of it to restore; "
        "to begin again, from nothing, start server 0 once with --new",
        b->cluster->server[0].store, proof->path.text, b->cluster->name);
}

static enum dp_status check_new(const struct dp_beginning *b, uint32_t number, struct dp_error *err)
{
    return number == 0 ? DP_OK
                       : dp_fail(err, DP_EXISTS,
                                 "%s: %.250s has checkpoint %" PRIu32
                                 " of this cluster: start without that flag to restore it; or give "
                                 "checkpoint.to another directory, or the cluster another name",
                                 b->is_new ? "--new" : "--replace-store, --discard",
                                 b->cluster->checkpoint.to, number);
}

/* Server 0 has no store, and the cluster file names a directory of checkpoints. */
static enum dp_status settle_by_directory(const struct dp_beginning *b, struct dp_error *err)
{
    struct dp_proof proof;
    uint32_t number = 0;
    if (access(b->cluster->checkpoint.to, F_OK) != 0)
        return b->is_new
                   ? DP_OK
                   : dp_fail(
                         err, DP_NOT_FOUND,
                         "there is no store in %.200s, and the directory checkpoint.to, %.200s, is missing "
                         "here: make it, or mount its disk; or, if this is a new cluster, start server 0 "
                         "once with --new, which makes it",
                         b->cluster->server[0].store, b->cluster->checkpoint.to);
    enum dp_status st = dp_auto_restore_find(b->cluster, &number, err);
    if (st != DP_OK && st != DP_NOT_FOUND)
        return st;
    number = st == DP_OK ? number : 0;
    if (b->accepts && number > 0 && b->cluster->server_count > 1)
        return dp_auto_restore_check_others(b->cluster, number, err);
    if (b->is_new || b->accepts)
        return check_new(b, number, err);
    if (number > 0)
        return restore(b, number, err);
    st = dp_proof_read(b->cluster, &proof, err);
    return st == DP_OK ? refuse_lost(b, &proof, err) : st == DP_NOT_FOUND ? DP_OK : st;
}

/* A directory that a restore could not replace is found now, and not when the disk is lost. */
static enum dp_status check_place(const struct dp_beginning *b, struct dp_error *err)
{
    struct dp_restore_place place;
    enum dp_status st = dp_restore_place_name(&place, b->cluster->server[b->server].store, err);
    return st == DP_OK ? dp_restore_place_look(&place, true, err) : st;
}

static enum dp_status settle_first(const struct dp_beginning *b, bool by_directory, struct dp_error *err)
{
    if (!by_directory && !b->is_new && !b->accepts)
        return dp_fail(
            err, DP_NOT_FOUND,
            "there is no store in %.200s, and nothing says whether this cluster was ever begun: put the "
            "store back (is its disk mounted?); or, if it is a new cluster, start server 0 once with "
            "--new",
            b->cluster->server[0].store);
    return by_directory ? settle_by_directory(b, err) : DP_OK;
}

enum dp_status dp_beginning_settle(const struct dp_beginning *b, struct dp_error *err)
{
    const bool by_directory = b->cluster->checkpoint.every > 0;
    enum dp_status st = dp_cluster_has_first(b->cluster, err);
    if (st != DP_OK)
        return st;
    if (!dp_auto_restore_is_empty(b->cluster, b->server)) {
        if (by_directory && b->server > 0)
            dp_auto_restore_object(b->cluster, b->server);
        return by_directory && b->server == 0 ? dp_auto_restore_drop(b->cluster, err) : DP_OK;
    }
    if (by_directory)
        st = check_place(b, err);
    if (st == DP_OK && b->server == 0)
        st = settle_first(b, by_directory, err);
    else if (st == DP_OK && by_directory && !b->accepts)
        st = restore(b, 0, err);
    return st;
}

/* ---- prove */

/* What the register's value "cluster" says. history: of the stores with which server 0 last began. */
struct beginning_value {
    uint64_t mark, history; /* 0: none */
    size_t size;            /* of its line */
};

static struct beginning_value value_of(const void *bytes, size_t size)
{
    char text[LINE_MAX_BYTES + 1] = "";
    struct beginning_value value = {0};
    memcpy(text, bytes ? bytes : "", bytes ? (size < LINE_MAX_BYTES ? size : LINE_MAX_BYTES) : 0);
    const char *end = strchr(text, '\n');
    if (end && sscanf(text, "mark %16" SCNx64 " history %16" SCNx64, &value.mark, &value.history) >= 1)
        value.size = (size_t)(end - text) + 1;
    return value;
}

static enum dp_status refuse_foreign(const struct dp_beginning *b, const struct dp_proof *proof,
                                     uint64_t mark, struct dp_error *err)
{
    return dp_fail(
        err, DP_GENERATION,
        "%.250s is of another cluster of this name (%08" PRIx32 ", this one %08" PRIx32
        "): give checkpoint.to another directory; or, if that cluster is given up, remove the file. "
        "The store is %.200s",
        proof->path.text, DP_STORE_ID_SHORT(proof->mark), DP_STORE_ID_SHORT(mark),
        b->cluster->server[0].store);
}

/* Of its stores, before they are opened; 1, 0: there are none. */
static void look_at_generation(const struct dp_beginning *b, struct dp_proof *out)
{
    struct dp_checkpoint_path path;
    struct dp_store_view *view = NULL;
    struct dp_error unread; /* the opening refuses it, by name */
    *out = (struct dp_proof){.generation = 1};
    if (dp_checkpoint_path(&path, NULL, "%s/shard-0000", b->cluster->server[0].store) != DP_OK ||
        dp_store_view_open(path.text, NULL, &view, &unread) != DP_OK)
        return;
    const struct dp_store_id *id = &dp_store_view_own(view)->id;
    if (id->generation != 0) {
        out->generation = id->generation;
        out->history = id->history;
    }
    dp_store_view_close(&view);
}

/* A restored store may be of an earlier generation: a person may go back to an older checkpoint. */
static enum dp_status check_proof(const struct dp_beginning *b, const struct dp_proof *found,
                                  const struct dp_proof *own, bool is_restored, struct dp_error *err)
{
    if (found->mark != own->mark && !(b->is_new && own->mark == 0))
        return refuse_foreign(b, found, own->mark, err);
    if (found->mark != own->mark || is_restored || b->accepts || found->generation < own->generation ||
        (found->generation == own->generation && found->history == own->history))
        return DP_OK;
    return dp_fail(err, DP_GENERATION,
                   "the store in %.150s is of generation %" PRIu64 " (history %016" PRIx64
                   "), and %.250s says that the cluster went on as generation %" PRIu64
                   " (history %016" PRIx64
                   "): it is the store of before a restore. Put the later stores back, or restore the last "
                   "checkpoint (downpour restore --overwrite); or, to go on from here, remove that file",
                   b->cluster->server[0].store, own->generation, own->history, found->path.text,
                   found->generation, found->history);
}

/* The value of the register, which the other servers compare with. */
static enum dp_status put_value(const struct dp_beginning *b, struct dp_control_register *values,
                                const struct dp_proof *own, const struct dp_control_register_entry *before,
                                struct dp_error *err)
{
    char *settings = NULL, *text = NULL;
    struct dp_control_register_entry now;
    enum dp_status st = dp_cluster_shared_text(b->cluster, &settings, err);
    int size = st == DP_OK ? asprintf(&text, "mark %016" PRIx64 " history %016" PRIx64 "\n%s", own->mark,
                                      own->history, settings)
                           : 0;
    struct dp_control_register_change change = {
        .name = DP_CONTROL_CLUSTER_NAME, .expected = before->version, .bytes = text, .size = (size_t)size};
    if (st == DP_OK && size < 0)
        st = dp_fail(err, DP_NOMEM, "no memory for the cluster's settings");
    else if (st == DP_OK && (before->size != change.size || memcmp(before->bytes, text, change.size) != 0)) {
        dp_store_id_draw(&change.nonce);
        st = dp_control_register_set(values, &change, &now, err);
    }
    if (size >= 0)
        free(text);
    free(settings);
    return st;
}

enum dp_status dp_beginning_prove(const struct dp_beginning *b, struct dp_control_register *values,
                                  struct dp_error *err)
{
    struct dp_control_register_entry entry;
    struct dp_proof own, found;
    enum dp_status st = dp_control_register_get(values, DP_CONTROL_CLUSTER_NAME, &entry, err);
    if (st != DP_OK)
        return st;
    const struct beginning_value value = value_of(entry.bytes, entry.size);
    look_at_generation(b, &own);
    own.mark = value.mark;
    if (b->cluster->checkpoint.every == 0)
        return put_value(b, values, &own, &entry, err);
    /* It has not begun since: the value is the checkpoint's. */
    const bool is_restored = own.history != 0 && own.history != value.history;
    st = dp_proof_read(b->cluster, &found, err);
    const bool is_there = st == DP_OK;
    if (is_there && own.mark == 0 && (is_restored || b->accepts))
        own.mark = found.mark; /* of a checkpoint of an earlier build, or of a register that was lost */
    if (is_there)
        st = check_proof(b, &found, &own, is_restored, err);
    else if (st == DP_NOT_FOUND)
        st = DP_OK;
    if (st == DP_OK && !is_there && value.mark != 0 && !is_restored)
        dp_log(DP_LOG_WARN,
               "%.250s (checkpoint.to) lacks the file by which this cluster is known there: is another disk "
               "mounted, or none? The file is written again",
               b->cluster->checkpoint.to);
    while (own.mark == 0)
        dp_store_id_draw(&own.mark);
    bool same = found.mark == own.mark && found.generation == own.generation && found.history == own.history;
    /* A proof that is there is brought up to date first: a kill in between must not leave a value that says
     * that the store has begun, and a proof that says that another one did. */
    if (st == DP_OK && is_there && !same)
        st = dp_proof_write(b->cluster, &own, err);
    if (st == DP_OK)
        st = put_value(b, values, &own, &entry, err);
    return st == DP_OK && !is_there ? dp_proof_write(b->cluster, &own, err) : st;
}

/* ---- compare */

static enum dp_status compare_directory(const struct dp_beginning *b, uint64_t mark, struct dp_error *err)
{
    const struct timespec pause = {.tv_sec = 1};
    struct dp_proof proof;
    enum dp_status st = dp_proof_read(b->cluster, &proof, err);
    for (uint32_t i = 1; i < LOOKS && (st == DP_NOT_FOUND || (st == DP_OK && proof.mark != mark)); i++) {
        (void)nanosleep(&pause, NULL);
        st = dp_proof_read(b->cluster, &proof, err);
    }
    if (st == DP_OK ? proof.mark == mark : st != DP_NOT_FOUND)
        return st;
    return dp_fail(err, DP_GENERATION,
                   "the directory checkpoint.to, %.250s, is not the one that the first server has "
                   "under that name (%s): share it between all hosts, and mount it before the servers start",
                   b->cluster->checkpoint.to,
                   st == DP_OK ? "its file begun-... is of another cluster"
                               : "it has no file begun-... of this cluster");
}

enum dp_status dp_beginning_compare(const struct dp_beginning *b, struct dp_client *client,
                                    struct dp_error *err)
{
    struct dp_register_value value = {0};
    enum dp_status st = dp_client_register_get(client, DP_CONTROL_CLUSTER_NAME, 0, 0, ASK_MS, &value, err);
    const struct beginning_value first =
        st == DP_OK ? value_of(value.bytes, value.size) : (struct beginning_value){0};
    /* Size 0: the first server is of an earlier build. */
    if (st == DP_OK && first.size > 0)
        st = dp_cluster_shared_compare(b->cluster, (const char *)value.bytes + first.size,
                                       value.size - first.size, "this server's", err);
    if (st == DP_OK && b->cluster->checkpoint.every > 0 && first.mark != 0)
        st = compare_directory(b, first.mark, err);
    dp_register_value_clear(&value);
    return st == DP_OK || dp_status_class((int)st) == DP_CLASS_RETRY
               ? st
               : dp_wrap(err, st, "server %" PRIu32, b->server);
}
