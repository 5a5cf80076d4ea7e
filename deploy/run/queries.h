/* Asks: the status of every shard of a cluster, and the notes of its workers, asked of all at once.
 * Promise   One deadline for all: a server that is down costs no more than the timeout, however many are. A
 *           shard that reports that it is busy (it opens, or recovers) has answered. No server needs to be
 *           up.
 * Thread    One.
 * Memory    Cleared by dp_queries_clear, also after a failure.
 * Failure   DP_NOMEM; DP_IO, DP_ARGUMENT: no socket could be made. A server's silence is no failure. */
#ifndef DP_RUN_QUERIES_H
#define DP_RUN_QUERIES_H

#include "common/config/cluster.h"
#include "common/wire/reply.h"

enum dp_ask_state {
    DP_ASK_SILENT,  /* nothing came */
    DP_ASK_REFUSED, /* reason says why: it opens, recovers, belongs to another cluster */
    DP_ASK_ANSWERED,
};

struct dp_ask {
    enum dp_ask_state state;
    enum dp_status status;          /* REFUSED */
    char reason[DP_REASON_MAX + 1]; /* SILENT: why the host has no address, or "" */
    struct dp_status_report report; /* ANSWERED */
};

struct dp_queries_note {
    char name[DP_NOTE_NAME_MAX + 1];
    char *text;
    size_t bytes;
    uint64_t age_ms; /* since the first server received it */
};

struct dp_queries {
    uint32_t shards, tried_ms;
    struct dp_ask *shard;
    bool notes_known; /* the first server told them */
    uint32_t notes;
    struct dp_queries_note *note;
};

/* prefix: of the notes' names. */
enum dp_status dp_queries_send(const struct dp_cluster *cluster, const char *prefix, uint32_t timeout_ms,
                               struct dp_queries *out, struct dp_error *err);
void dp_queries_clear(struct dp_queries *asks);

#endif
