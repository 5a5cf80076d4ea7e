/* Fake transport: a network with shards at its other end, in one thread, on a clock of its own.
 *     client -> (lost, doubled, delayed) -> shard model -> (lost, doubled, delayed) -> client
 * The model does what a shard promises, in the plainest way: sessions, order of sequence numbers, push ids,
 * rows that are the sum of their gradients, views of members, pulls that are held. A test scripts the rest with two hooks. Seeded: equal runs.
 * Thread    One.
 * Memory    dp_fake_net_free frees all, after the client is closed. */
#ifndef DP_TESTS_LIB_FAKE_TRANSPORT_H
#define DP_TESTS_LIB_FAKE_TRANSPORT_H

#include "common/env/clock.h"
#include "common/net/transport.h"
#include "common/wire/reply.h"

#define DP_FAKE_SHARDS_MAX 8u
#define DP_FAKE_LOG_MAX    4096u
#define DP_FAKE_DIM_MAX    64u
#define DP_FAKE_HELD_MS    250u

struct dp_fake_faults {                      /* of 1,000 */
    uint32_t lose, twice, slow;              /* messages, each way; slow: delayed at random, so overtaken */
    uint32_t again, order, forget, stopping; /* requests */
    uint32_t cut;  /* messages, each way: lost with their connection, which is told */
    uint32_t full; /* sends: the socket's queue is full */
    uint32_t hold; /* members' pulls, each for up to hold_ms */
    uint32_t slow_ms, hold_ms;
};

#define DP_FAKE_LSN_FIRST 1000u /* before the first push; each has the next */

struct dp_fake_push {
    uint64_t session, sequence, stream, number, pulled_at;
    bool measured;
    float rate; /* at which it was applied */
    struct dp_membership member;
};

struct dp_fake_row {
    uint32_t table;
    uint64_t mixed;
    float sum[DP_FAKE_DIM_MAX];
    uint64_t lsn; /* of the last push */
};

struct dp_fake_shard {
    uint64_t session, expected; /* 0: none is known */
    uint64_t boot, stream, applied;
    uint32_t tables, rows, pushes, hellos, pulls;
    struct dp_view view; /* {0}: none */
    uint64_t begins;     /* the least step from which it lets a member return */
    uint64_t hurries;    /* by so much `begins` grows with each view put */
    bool passed;         /* the member's first step, of the view that it has */
    uint32_t view_puts;
    struct dp_table_spec table[8];
    struct dp_fake_row *row;
    struct dp_fake_push push[DP_FAKE_LOG_MAX]; /* in the order they were applied */
};

/* A request at a shard, or its reply, for the net's callbacks. */
struct dp_fake_turn {
    void *context; /* the net's */
    uint32_t shard;
    const struct dp_request *request; /* refuse, holds */
    struct dp_reply *reply;
    struct dp_frame *frames; /* tamper */
    uint32_t *frame_count;
};

struct dp_fake_net {
    uint32_t shards;
    uint64_t random, now_ns;
    struct dp_fake_faults faults;
    bool dead[DP_FAKE_SHARDS_MAX + 1];  /* takes messages and says nothing */
    bool broke[DP_FAKE_SHARDS_MAX + 1]; /* its connection has ended, and nobody was told yet */
    /* Endpoints: where the client's connection leads, and where the shard is; "": the two meet. */
    char leads[DP_FAKE_SHARDS_MAX + 1][64], lives[DP_FAKE_SHARDS_MAX + 1][64];
    uint64_t cluster, generation, history;
    bool is_old;     /* of a version that takes no greeting without its generation, and knows no history */
    uint32_t window; /* in welcomes; 0: none */
    struct dp_fake_shard shard[DP_FAKE_SHARDS_MAX];
    uint32_t sent, sent_to[DP_FAKE_SHARDS_MAX + 1];
    size_t sent_bytes;
    /* Before a request is done: another status than OK is answered instead; DP_TIMEOUT: no answer at all. */
    enum dp_status (*refuse)(const struct dp_fake_turn *it);
    /* Before a reply leaves: may change it and its frames. */
    void (*tamper)(const struct dp_fake_turn *it);
    /* Whether a member's pull is held now, and what HELD says. Asked when it comes and each DP_FAKE_HELD_MS. */
    bool (*holds)(const struct dp_fake_turn *it);
    void *context;
    struct dp_fake_mail *mail; /* under way, or held, by time */
    struct dp_fake_note {
        char name[DP_NOTE_NAME_MAX + 1];
        char bytes[64];
        size_t size;
    } note[8];
    uint32_t notes;
    /* One register value, whatever its name. A get that would wait is not answered: it is asked again. */
    struct {
        uint64_t version, nonce; /* of the last set */
        char bytes[1024];
        size_t size;
        uint32_t gets, sets;
    } value;
    uint32_t misplaced;  /* requests that came to another shard, or to none */
    uint32_t heartbeats; /* the silence of rank r is r seconds */
    bool closed;
};

struct dp_fake_net *dp_fake_net_new(uint64_t seed, uint32_t shards);
void dp_fake_net_free(struct dp_fake_net **net);
struct dp_transport dp_fake_net_transport(struct dp_fake_net *net);
struct dp_clock dp_fake_net_clock(struct dp_fake_net *net);
/* The shard starts again: it has forgotten its session, its view, and what it held. */
void dp_fake_net_restart(struct dp_fake_net *net, uint32_t shard);
/* The row's sums, or NULL: never pushed. */
const float *dp_fake_net_row(const struct dp_fake_net *net, uint32_t table, uint64_t mixed);
uint64_t dp_fake_net_random(struct dp_fake_net *net, uint64_t below);

#endif
