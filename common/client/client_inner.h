/* Client, from inside: shared by its files. One file a verb: open, client (progress, wait, close), pull,
 * push, tables, notes, register, status; member (join, leave). */
#ifndef DP_CLIENT_CLIENT_INNER_H
#define DP_CLIENT_CLIENT_INNER_H

#include "common/client/link.h"

struct dp_client_table {
    struct dp_client_table *next;
    struct dp_client *client;
    struct dp_table_spec spec;
    uint32_t id;
};

struct dp_client_place { /* in a run: member.c */
    uint32_t run, rank, members;
    uint64_t incarnation; /* 0: none was drawn */
    uint64_t view;        /* number of the newest view that this client knows */
    uint64_t from;        /* this member's in that view, as is */
    uint64_t missed;      /* this */
    bool seated;          /* the register has had the incarnation */
    bool joined;          /* and all shards have its view */
    enum dp_consistency mode;
    uint32_t slack;
};

struct dp_client;
struct dp_register_watch { /* register_watch.c */
    struct dp_call *asked; /* NULL: nothing is asked */
};

struct dp_client_watch { /* of the view, while pulls are held: view_watch.c */
    void (*look)(struct dp_client *client, uint64_t now_ns); /* NULL: this client is no member */
    void (*news)(struct dp_client *client, const struct dp_view *view);
    uint64_t since_ns; /* pulls are held; 0: none is */
    uint64_t due_ns;   /* the register is not asked again before */
    struct dp_register_watch question;
};

struct dp_client_heartbeats {                                /* of a member: heartbeats.c */
    void (*look)(struct dp_client *client, uint64_t now_ns); /* NULL: it does not heartbeat */
    uint64_t every_ns, due_ns;
    struct dp_call *sent;
};

struct dp_client_address { /* of one server */
    uint64_t version;      /* of the value that its links follow; 0: there is none yet */
    uint64_t due_ns;       /* it is not asked for again before */
    struct dp_register_watch question;
    char trouble[300]; /* why the last answer was of no use */
};

struct dp_client_addresses {                                 /* where the register knows them: addresses.c */
    void (*look)(struct dp_client *client, uint64_t now_ns); /* NULL: the options had them */
    uint32_t servers;
    struct dp_client_address *of; /* [servers] */
};

struct dp_client {
    struct dp_client_session session;
    struct dp_client_place place;
    struct dp_client_watch watch;
    struct dp_client_heartbeats heartbeats;
    struct dp_client_addresses addresses;
    uint32_t shards;
    bool has_control;
    const char *control_from;
    bool (*gives_up)(void *context);
    void *gives_up_context;
    enum dp_value_type type;         /* of values on the wire */
    struct dp_link *link;            /* [shards + 1]; the last: control */
    struct dp_shard_request **draft; /* [shards]: a request being made; NULLs between calls */
    struct dp_call *calls;
    struct dp_client_table *tables;
    struct dp_keys *keys; /* of the simple forms, free between them */
    uint64_t next_number; /* of the own stream */
    uint64_t last_call;
};

/* Between two looks at the clock by a call that waits; of what is longer, no more counts: this process did
 * not run. */
#define DP_CLIENT_LOOK_NS (UINT64_C(250) * 1000000)

/* On the client's clock. */
uint64_t dp_client_deadline(struct dp_client *client, uint32_t timeout_ms);
/* Waits for a message, for what is due, or for until_ns; false: it is over. Call progress first. */
bool dp_client_idle(struct dp_client *client, uint64_t until_ns);
/* dp_link_silence. Of a shard without an address the first server has heard nothing, or is silent itself. */
enum dp_status dp_client_silence(const struct dp_client *client, const struct dp_link *link,
                                 const struct dp_call *call, enum dp_status why, const char *what,
                                 uint32_t timeout_ms, struct dp_error *err);
/* A call without shard requests, not among the client's yet: dp_call_free, or dp_client_issue. */
struct dp_call *dp_call_new(struct dp_client *client, uint32_t parts, uint32_t timeout_ms);
void dp_call_free(struct dp_call **call); /* accepts NULL inside, leaves NULL */

/* The call is among the client's from now on: dp_client_end. */
void dp_client_adopt(struct dp_client *client, struct dp_call *call);
/* A loose request for each shard in client->draft, and a call for them. NULL: out of memory. */
struct dp_call *dp_client_draft_all(struct dp_client *client, enum dp_request_kind kind,
                                    enum dp_reply_kind answer, uint32_t timeout_ms);
/* Issues the draft and waits for all answers. Takes the call over: NULL fails with DP_NOMEM. */
enum dp_status dp_client_ask_all(struct dp_client *client, struct dp_call **call, const char *what,
                                 uint32_t timeout_ms, struct dp_error *err);
/* The first shard that has not answered a push; NULL: all have answered all. */
const struct dp_link *dp_client_pushing(const struct dp_client *client);
/* Waits until there is none. */
enum dp_status dp_client_await_pushes(struct dp_client *client, uint32_t timeout_ms, struct dp_error *err);
/* Waits until each shard that the draft has a shard request for has room. `what` names the request. */
enum dp_status dp_client_await_room(struct dp_client *client, const char *what, uint32_t timeout_ms,
                                    struct dp_error *err);
/* Until the session has a stream that no shard refuses, as far as it has heard: shard 0 gives it. */
enum dp_status dp_client_await_stream(struct dp_client *client, const char *what, uint32_t timeout_ms,
                                      struct dp_error *err);
/* Puts the draft's shard requests on their links and sends; the call is the client's from here on. Cannot fail. */
void dp_client_issue(struct dp_client *client, struct dp_call **call, struct dp_ticket *out);
/* Frees what the draft holds. */
void dp_client_drop_draft(struct dp_client *client);
/* Waits until the call is done; its shard requests let go of it when it was refused. The call stays the client's:
 * dp_client_end takes it out and frees it, on any outcome. */
enum dp_status dp_client_await(struct dp_client *client, struct dp_call *call, const char *what,
                               uint32_t timeout_ms, struct dp_error *err);
void dp_client_end(struct dp_client *client, struct dp_call *call);
/* Awaits the ticket's call and ends it, also when the time is over: nothing of the caller's is used after. */
enum dp_status dp_client_finish(struct dp_client *client, struct dp_ticket *ticket, const char *what,
                                uint32_t timeout_ms, struct dp_error *err);

#endif
