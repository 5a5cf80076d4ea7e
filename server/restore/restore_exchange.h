/* Restore exchange: how the stores that a restore built take the place of the old ones: on all servers, or on none.
 *     every server has STORE.restoring (restore_place.h) -> the first server's exchange decides -> the others follow -> clean
 * Why       No one operation renames directories of several servers. So one rename decides for all: that of server 0. A server whose
 *           store is built and not exchanged asks the first server which restore it is of, and follows or takes back.
 * Promise   One exchange is STORE -> STORE.before, then STORE.restoring -> STORE. Whatever ends a process, wherever:
 *           server 0 has its old store: all servers start with their old ones.
 *           server 0 has the restored one: all servers start with their restored ones.
 *           The old store stays as STORE.before until clean, which comes after all exchanges.
 *           The first server's start, before its exchange, takes the restore back: it can take place no more.
 * Thread    One at a time for each store; several processes exclude each other by the lock of STORE.restoring.
 * Failure   DP_IN_USE: a server has the store open, or a restore is under way. DP_UNCLEAN: see at start. DP_EXISTS: something else lies
 *           there. DP_IO. Each says what is to be done. */
#ifndef DP_RESTORE_RESTORE_EXCHANGE_H
#define DP_RESTORE_RESTORE_EXCHANGE_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* Exchanges the stores of these servers, in their order, which begins with server 0. A store that has this history is left as it is.
 * Nothing is changed unless each of the others has built this restore. DP_NOT_FOUND: one has not. */
enum dp_status dp_restore_exchange_all(const char *const *store, uint32_t servers, uint64_t history,
                                       struct dp_error *err);
/* Removes the old stores of servers that have exchanged; what cannot be removed is logged. */
void dp_restore_exchange_clean(const char *const *store, uint32_t servers);
/* After a failure of this restore: what its servers built is removed, unless the exchange of one has begun. store NULL: as below. */
void dp_restore_exchange_take_back(const char *const *store, uint32_t servers, uint64_t history);
/* Before another restore of these servers (store NULL: one on another machine): an earlier one that is decided is completed. */
enum dp_status dp_restore_exchange_complete(const char *const *store, uint32_t servers, struct dp_error *err);
/* Whether a restore of this store was interrupted before its exchange, and left STORE.restoring: the servers' start takes it back. */
bool dp_restore_exchange_is_left(const char *store);
/* Of one store, before another restore of it: an exchange that had begun is completed, and the old store removed. */
enum dp_status dp_restore_exchange_settle(const char *store, struct dp_error *err);

/* At a server's start, before anything in its store is opened. */
struct dp_restore_start {
    const char *store;
    bool is_first, read_only; /* read_only: nothing is changed; the store is served as it is */
    /* The history of the first server (0: never restored), which this asks for. Not called for the first server. */
    enum dp_status (*ask)(void *context, uint64_t *history, struct dp_error *err);
    void *context;
};
/* DP_UNCLEAN: there is no store, as a restore was not completed. */
enum dp_status dp_restore_exchange_start(const struct dp_restore_start *start, struct dp_error *err);

#endif
