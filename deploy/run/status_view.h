/* Status view: the state of a running cluster for a person, a line for each server and each worker, from the
 * answers of its shards and workers.
 *     gather (of answers; earlier: of a moment before, for rates) -> print, or JSON
 * Thread    One.
 * Memory    The view is the caller's; dp_status_view_clear frees its memory. */
#ifndef DP_RUN_STATUS_VIEW_H
#define DP_RUN_STATUS_VIEW_H

#include "deploy/run/status_measures.h"

#include <stdio.h>

#define DP_STATUS_COLUMNS 80u /* no line is longer */

enum dp_status_state {
    DP_STATUS_SERVING,
    DP_STATUS_NOT_SERVING, /* it answers, and says why it does not serve */
    DP_STATUS_DOWN,        /* a shard of it does not answer */
};

struct dp_status_server {
    enum dp_status_state state;
    char why[DP_REASON_MAX + 1], endpoint[DP_HOST_MAX + 32]; /* of the first shard that does not serve */
    uint32_t shards, tables;
    uint64_t rows, rows_pulled, rows_pushed, journal_bytes, disk_bytes, disk_free_bytes, up_ms;
    uint64_t pulls_held;                          /* now, by the consistency mode */
    double pulled_per_s, pushed_per_s, staleness; /* staleness NaN: no pushes */
};

struct dp_status_worker {
    char name[32]; /* its number */
    char state[24];
    char awaited[256]; /* for whom or what it waits; "": for nobody, or not for long */
    uint64_t epoch, epochs, examples, examples_total, dropped;
    double examples_per_s, loss, staleness; /* NaN: it said none */
    double
        silent_s; /* since its note, where that is longer than one that works takes; else 0. By its clock and this machine's */
};

struct dp_status_view {
    uint64_t at_ms;
    uint64_t cluster; /* its id */
    uint32_t tried_ms, servers, workers;
    struct dp_status_server *server;
    bool workers_known;
    struct dp_status_worker *worker; /* by number */
    struct dp_status_measures measures;
    struct dp_status_ended {
        bool known; /* nothing runs in the run's directory, which says */
        bool finished;
        uint32_t run;
    } ended;
};

/* at_ms: of a clock that only rises. earlier: NULL, or the view of the same cluster before; without it rates and measures are those since
 * each shard opened. */
enum dp_status dp_status_view_gather(const struct dp_cluster *cluster, const struct dp_queries *asks,
                                     uint64_t at_ms, const struct dp_status_view *earlier,
                                     struct dp_status_view *out, struct dp_error *err);
void dp_status_view_clear(struct dp_status_view *view);
bool dp_status_view_all_serve(const struct dp_status_view *view);
void dp_status_view_print(const struct dp_status_view *view, FILE *to);
/* One object; counters of each shard with `asks`, else NULL. NULL: out of memory. The caller frees it. */
char *dp_status_view_json(const struct dp_status_view *view, const struct dp_queries *asks);

/* What a shard counted under this name; 0: it says nothing of it. */
uint64_t dp_status_view_counter(const struct dp_status_report *report, const char *name);

#endif
