#include "server/restore/restore_exchange.h"

#include "common/base/log.h"
#include "common/env/directory.h"
#include "server/checkpoint/paths.h"
#include "server/restore/restore_files.h"
#include "server/restore/restore_place.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

/* What lies there. Written by its own file alone, by the renames below. */
struct exchange {
    struct dp_restore_place place;
    uint64_t built;   /* history of STORE.restoring; 0: nothing complete is there */
    uint64_t current; /* history of STORE, as far as a restore wrote it; 0: none did */
    bool has_store;   /* there is a directory STORE, with something in it */
    bool has_before;
};

static bool is_there(const char *path)
{
    return access(path, F_OK) == 0;
}

static enum dp_status see_any(void *context, const char *name, struct dp_error *err)
{
    (void)name;
    (void)err;
    *(bool *)context = true;
    return DP_OK;
}

static enum dp_status look_at(struct exchange *e, const char *store, struct dp_error *err)
{
    enum dp_status st = dp_restore_place_name(&e->place, store, err);
    if (st != DP_OK)
        return st;
    e->has_store = false;
    e->built = dp_restore_place_history(e->place.building);
    e->current = dp_restore_place_history(e->place.store);
    e->has_before = is_there(e->place.before);
    /* An empty directory is none: rename replaces it. */
    return is_there(e->place.store) ? dp_checkpoint_visit(e->place.store, see_any, &e->has_store, err)
                                    : DP_OK;
}

/* ---- one store */

static enum dp_status rename_to(const struct exchange *e, const char *from, const char *to,
                                struct dp_error *err)
{
    if (rename(from, to) != 0)
        return dp_checkpoint_failed(err, "cannot rename", from);
    return dp_checkpoint_sync_directory(e->place.parent, err);
}

/* No restore without `restored` in STORE has left STORE.before: it is the user's. */
static enum dp_status check_before(const struct exchange *e, struct dp_error *err)
{
    if (!e->has_store || !e->has_before)
        return DP_OK;
    if (e->current == 0)
        return dp_fail(err, DP_EXISTS,
                       "%s is in the way, and no restore left it there: move it away, or remove it",
                       e->place.before);
    return dp_restore_place_only_ours(e->place.before, err);
}

static enum dp_status remove_before(const struct exchange *e, struct dp_error *err)
{
    enum dp_status st = check_before(e, err);
    return st == DP_OK && e->has_store && e->has_before ? dp_directory_remove(e->place.before, true, 0, err)
                                                        : st;
}

/* The lock is held. */
static enum dp_status take_place(struct exchange *e, struct dp_error *err)
{
    struct dp_error ignored;
    enum dp_status st = remove_before(e, err);
    if (st == DP_OK && e->has_store)
        st = rename_to(e, e->place.store, e->place.before, err);
    if (st == DP_OK)
        st = rename_to(e, e->place.building, e->place.store, err);
    if (st != DP_OK && e->has_store && !is_there(e->place.store))
        (void)!rename_to(e, e->place.before, e->place.store, &ignored);
    return st;
}

/* Locks what was built of this restore, so that neither a server that starts nor another restore takes it away. */
static enum dp_status hold(struct exchange *e, uint64_t history, struct dp_error *err)
{
    if (e->built != history)
        return dp_fail(err, DP_NOT_FOUND, "%s: no store of this restore is built there", e->place.building);
    enum dp_status st = dp_restore_place_lock(&e->place, err);
    if (st == DP_OK && dp_restore_place_history(e->place.building) != history)
        st = dp_fail(err, DP_NOT_FOUND,
                     "%s: a server that was started, or another restore, took this restore back",
                     e->place.building);
    if (st == DP_OK)
        st = check_before(e, err);
    return st == DP_OK ? dp_restore_place_look(&e->place, true, err) : st;
}

/* Of a restore that was interrupted after it was decided. */
static enum dp_status exchange(struct exchange *e, struct dp_error *err)
{
    enum dp_status st = hold(e, e->built, err);
    if (st == DP_OK)
        st = take_place(e, err);
    dp_restore_place_unlock(&e->place);
    if (st == DP_OK)
        dp_log(DP_LOG_INFO, "an interrupted restore is completed: %s is of history %016" PRIx64,
               e->place.store, e->built);
    return st;
}

static enum dp_status take_back(struct exchange *e, struct dp_error *err)
{
    enum dp_status st = dp_restore_place_lock(&e->place, err);
    if (st == DP_OK && dp_restore_place_history(e->place.building) != e->built)
        st = dp_fail(err, DP_IN_USE, "another restore is under way in %s", e->place.building);
    if (st == DP_OK)
        st = dp_restore_place_sweep(&e->place, true, err);
    dp_restore_place_unlock(&e->place);
    return st;
}

enum dp_status dp_restore_exchange_settle(const char *store, struct dp_error *err)
{
    struct exchange e;
    enum dp_status st = look_at(&e, store, err);
    if (st != DP_OK || !e.has_before)
        return st;
    if (e.has_store) {
        st = remove_before(&e, err);
        if (st == DP_OK)
            dp_log(DP_LOG_INFO, "%s is removed: an earlier restore replaced that store", e.place.before);
        return st;
    }
    if (e.built != 0)
        return exchange(&e, err);
    dp_log(DP_LOG_WARN, "%s is missing, and so is what a restore built: the store of before comes back",
           e.place.store);
    return rename_to(&e, e.place.before, e.place.store, err);
}

/* ---- all servers */

/* Each may be replaced, and is held, before the first one is replaced. */
static enum dp_status hold_all(struct exchange *e, const char *const *store, uint32_t servers,
                               uint64_t history, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; st == DP_OK && i < servers; i++) {
        st = look_at(&e[i], store[i], err);
        if (st == DP_OK && (e[i].built != 0 || e[i].current != history))
            st = hold(&e[i], history, err);
        if (st != DP_OK)
            st = dp_wrap(err, st, "server %" PRIu32 " (no store is replaced)", i);
    }
    return st;
}

static enum dp_status replace_all(struct exchange *e, uint32_t servers, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; st == DP_OK && i < servers; i++) {
        if (e[i].built != 0)
            st = take_place(&e[i], err);
        if (st != DP_OK && i > 0)
            st = dp_wrap(err, st,
                         "the restore has taken place on %" PRIu32 " of %" PRIu32
                         " servers; the others follow when they start, or with the next restore",
                         i, servers);
    }
    return st;
}

enum dp_status dp_restore_exchange_all(const char *const *store, uint32_t servers, uint64_t history,
                                       struct dp_error *err)
{
    struct exchange *e = calloc(servers, sizeof *e);
    if (!e)
        return dp_fail(err, DP_NOMEM, "replacing the stores of %" PRIu32 " servers", servers);
    for (uint32_t i = 0; i < servers; i++)
        e[i].place.lock = -1;
    enum dp_status st = hold_all(e, store, servers, history, err);
    if (st == DP_OK)
        st = replace_all(e, servers, err);
    for (uint32_t i = 0; i < servers; i++)
        dp_restore_place_unlock(&e[i].place);
    free(e);
    return st;
}

/* Its exchange has begun: all others follow. */
static bool is_decided(const char *store, uint64_t history)
{
    struct exchange e;
    struct dp_error unheard;
    return look_at(&e, store, &unheard) == DP_OK &&
           (e.current == history || (e.built == history && !e.has_store && e.has_before));
}

void dp_restore_exchange_take_back(const char *const *store, uint32_t servers, uint64_t history)
{
    for (uint32_t i = 0; i < servers; i++)
        if (store[i] && is_decided(store[i], history))
            return;
    for (uint32_t i = 0; i < servers; i++) {
        struct exchange e;
        struct dp_error err = {0};
        enum dp_status st = store[i] ? look_at(&e, store[i], &err) : DP_OK;
        bool is_ours = store[i] && st == DP_OK && (e.built == history || e.built == 0);
        if (is_ours && is_there(e.place.building))
            st = take_back(&e, &err);
        if (st != DP_OK)
            dp_log(DP_LOG_WARN, "%s", err.text);
    }
}

void dp_restore_exchange_clean(const char *const *store, uint32_t servers)
{
    for (uint32_t i = 0; i < servers; i++) {
        struct exchange e;
        struct dp_error left = {0};
        if (look_at(&e, store[i], &left) != DP_OK || remove_before(&e, &left) != DP_OK)
            dp_log(DP_LOG_WARN, "the stores are restored, but an old one is left: %s", left.text);
    }
}

enum dp_status dp_restore_exchange_complete(const char *const *store, uint32_t servers, struct dp_error *err)
{
    struct exchange e;
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; st == DP_OK && i < servers; i++) {
        bool decided = false;
        if (!store[i])
            continue;
        st = look_at(&e, store[i], err);
        for (uint32_t j = 0; st == DP_OK && e.built != 0 && j < servers; j++)
            decided = decided || (store[j] && is_decided(store[j], e.built));
        if (decided)
            st = exchange(&e, err);
    }
    return st;
}

bool dp_restore_exchange_is_left(const char *store)
{
    struct exchange e;
    struct dp_error unheard;
    return look_at(&e, store, &unheard) == DP_OK && e.has_store && is_there(e.place.building);
}

/* ---- a server's start */

static enum dp_status refuse_half(const struct exchange *e, struct dp_error *err)
{
    if (e->built != 0)
        return dp_fail(err, DP_UNCLEAN,
                       "there is no %s, because a restore was interrupted: start its servers once without "
                       "--read-only, which completes it",
                       e->place.store);
    return dp_fail(err, DP_UNCLEAN,
                   "a restore was interrupted: %s is missing, and so is its new store. Run the restore "
                   "again; or, if no other server was restored, rename %s to it",
                   e->place.store, e->place.before);
}

static enum dp_status start_first(struct exchange *e, struct dp_error *err)
{
    if (!e->has_store)
        return dp_fail(err, DP_UNCLEAN,
                       "a restore has built %s, and did not put it in the place of %s, which is missing: run "
                       "the restore again, or complete it with this server's command and --exchange, or "
                       "remove it",
                       e->place.building, e->place.store);
    dp_log(DP_LOG_WARN,
           "a restore was interrupted before it replaced a store: it is taken back, and all servers have "
           "their stores of before (%s is removed)",
           e->place.building);
    return take_back(e, err);
}

static enum dp_status start_other(const struct dp_restore_start *start, struct exchange *e,
                                  struct dp_error *err)
{
    uint64_t history = 0;
    enum dp_status st = start->ask(start->context, &history, err);
    if (st == DP_OK && history == e->built)
        return exchange(e, err);
    if (st != DP_OK)
        return st;
    if (history != e->current)
        dp_log(DP_LOG_WARN,
               "the first server's store is of another restore (history %016" PRIx64
               ") than what was built here (%016" PRIx64
               ": another checkpoint, --history or --without): %s is removed",
               history, e->built, e->place.building);
    else
        dp_log(
            DP_LOG_WARN,
            "a restore was interrupted before the first server's store was replaced: it is taken back (%s is "
            "removed)",
            e->place.building);
    return take_back(e, err);
}

/* Left by a restore that failed or was killed; not by one that is still building. */
static void name_left(struct exchange *e)
{
    struct dp_error err;
    if (is_there(e->place.building) && dp_restore_place_lock(&e->place, &err) == DP_OK)
        dp_log(DP_LOG_WARN,
               "%s is what an interrupted restore left: remove it, or let the next restore do it",
               e->place.building);
    dp_restore_place_unlock(&e->place);
    if (e->has_store && e->has_before)
        dp_log(DP_LOG_WARN, "%s is the store that a restore replaced: remove it once all servers serve",
               e->place.before);
}

enum dp_status dp_restore_exchange_start(const struct dp_restore_start *start, struct dp_error *err)
{
    struct exchange e;
    enum dp_status st = look_at(&e, start->store, err);
    bool half = st == DP_OK && !e.has_store && e.has_before;
    if (st != DP_OK || (half && (e.built == 0 || start->read_only)))
        return st == DP_OK ? refuse_half(&e, err) : st;
    if (half) /* decided: an exchange begins when all have built, and the first server's is done or is this one */
        st = exchange(&e, err);
    else if (e.built != 0 && !start->read_only)
        st = start->is_first ? start_first(&e, err) : start_other(start, &e, err);
    if (st == DP_OK && !start->read_only && look_at(&e, start->store, err) == DP_OK)
        name_left(&e);
    return st;
}
