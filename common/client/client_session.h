/* Session: this client's identity at its servers, and the data that its links share. One thread's. */
#ifndef DP_CLIENT_CLIENT_SESSION_H
#define DP_CLIENT_CLIENT_SESSION_H

#include "common/client/block.h"
#include "common/env/awake.h"
#include "common/net/transport.h"
#include "common/wire/limits.h"

struct dp_client_session {
    struct dp_transport transport;
    struct dp_awake clock; /* the time of all that this client does */
    uint64_t id, cluster;
    uint64_t wants;               /* generation of the options; 0: any */
    uint64_t generation, history; /* as the servers said; 0, 0: not yet */
    uint32_t generation_from;     /* by this shard, first; shards: by control */
    uint64_t stream;              /* 0: shard 0 has not given it yet */
    uint64_t stream_above;        /* what a shard refuses as too old: another is wanted, above it */
    bool stream_used; /* shards know it: what they say at a greeting of others means nothing for it */
    uint64_t too_old; /* of the last answer TOO_OLD: streams up to this one are */
    /* The first server's clock, as it greeted; when that was (monotonic), and how long it took. 0: unknown */
    uint64_t clock_ms, clock_ns, clock_took_ns;
    uint32_t last_run; /* the greatest run that a shard knows members of, as it greeted; 0: none */
    uint64_t last_request;
    uint64_t random; /* of jitter; not 0 */
    uint64_t retry_ns;
    uint32_t shards;
    /* The register has the shards' addresses: a link may meet another shard, or another cluster. */
    bool addressed;
    uint64_t register_id;   /* that the shards' stores are registered with; 0: none is known */
    uint32_t register_from; /* by this shard, first */
    struct dp_block *view;  /* of a member of a run, packed: for shards that lack it; NULL: none */
    size_t view_bytes;
    struct dp_error
        replaced; /* another process took this member's place; wait VIEW: to let it leave; DP_OK: none did */
    char name[DP_CLIENT_NAME_MAX + 1];
};

/* A pause, up to a quarter longer: the clients of a server that comes back do not all ask at once. */
static inline uint64_t dp_client_session_jitter(struct dp_client_session *session, uint64_t ns)
{
    session->random ^= session->random << 13;
    session->random ^= session->random >> 7;
    session->random ^= session->random << 17;
    return ns + session->random % (ns / 4 + 1);
}

static inline bool dp_client_session_lacks_stream(const struct dp_client_session *session)
{
    return session->stream <= session->stream_above;
}

static inline void dp_client_session_refuse_streams(struct dp_client_session *session, uint64_t too_old)
{
    session->stream_above = too_old > session->stream_above ? too_old : session->stream_above;
}

static inline bool dp_client_session_has_generation(const struct dp_client_session *session,
                                                    uint64_t generation, uint64_t history)
{
    return session->generation == generation && session->history == history;
}

/* Another process took this member's place: the first that says so is believed, for good. */
static inline void dp_client_session_replace(struct dp_client_session *session, const struct dp_error *why)
{
    if (session->replaced.status == DP_OK)
        session->replaced = *why;
}

/* DP_REPLACED with what was heard, for all that this client still does as a member. */
static inline enum dp_status dp_client_session_check_place(const struct dp_client_session *session,
                                                           const char *what, struct dp_error *err)
{
    return session->replaced.status == DP_OK
               ? DP_OK
               : dp_fail_wait(err, session->replaced.status, session->replaced.wait, "%s: %s", what,
                              session->replaced.text);
}

static inline uint64_t dp_client_session_next_id(struct dp_client_session *session)
{
    return ++session->last_request;
}

#endif
