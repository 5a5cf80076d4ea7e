/* Ledger: pushes whose effect on each row is known beforehand, so that the rows tell afterwards which of them were
 * applied, how often, and in which order.
 *     client:  record SENT n -> push n -> answered -> record ACKED n            (a file of its own, one write each)
 *     after:   read the files -> pull all rows -> each acknowledged push once, each other one once or never
 * A push number n of (client, life) touches, with plain SGD at rate 1 and gradients of -1 (exact in f32):
 *   ledger   DP_LEDGER_TOUCHED random rows, shared by all: +1;
 *   witness  on each shard one row of its own slot n % DP_LEDGER_SLOTS: +1. At most so many pushes of a life are under
 *            way, so these say of each unanswered push on which shards it was applied: the ledger's sums are then
 *            known exactly, and half of a push shows;
 *   order    on each shard one row of this life, by Adam, which no two orders of gradients leave with equal bits.
 * A life is what has a stream: a client that comes back under its old numbers goes on with its old life.
 * Thread    One.
 * Failure   A record that cannot be written ends the program: the test would lie.                              */
#ifndef DP_TESTS_SYSTEM_LEDGER_H
#define DP_TESTS_SYSTEM_LEDGER_H

#include "common/client/downpour.h"

#define DP_LEDGER_ROWS      16384u
#define DP_LEDGER_TOUCHED   400u
#define DP_LEDGER_DIM       64u
#define DP_LEDGER_SLOTS     16u
#define DP_LEDGER_ORDER_DIM 4u

enum dp_ledger_table { DP_LEDGER_SUMS, DP_LEDGER_WITNESS, DP_LEDGER_ORDER, DP_LEDGER_TABLES };
void dp_ledger_specs(struct dp_table_spec spec[DP_LEDGER_TABLES]);

struct dp_ledger_life {
    uint32_t client, life;
};
void dp_ledger_touched(struct dp_ledger_life life, uint64_t number, uint64_t key[DP_LEDGER_TOUCHED]);
uint64_t dp_ledger_witness(struct dp_ledger_life life, uint64_t number, uint32_t shard, uint32_t shards);
uint64_t dp_ledger_order(struct dp_ledger_life life, uint32_t shard, uint32_t shards);
void dp_ledger_order_gradient(struct dp_ledger_life life, uint64_t number,
                              float gradient[DP_LEDGER_ORDER_DIM]);

enum dp_ledger_kind {
    DP_LEDGER_SENT = 1,
    DP_LEDGER_ACKED,
    DP_LEDGER_REPEATED /* acknowledged, and a shard had it before */
};
struct dp_ledger_record {
    uint32_t kind, life;
    uint64_t number;
};
void dp_ledger_write(int fd, enum dp_ledger_kind kind, uint32_t life, uint64_t number);

/* What a client's file says of one life. Pushes are answered in order: those above acked are unanswered. */
struct dp_ledger_account {
    struct dp_ledger_life life;
    uint64_t sent, acked;      /* greatest numbers */
    uint64_t resent, repeated; /* records SENT that came again; records REPEATED */
};
/* Adds a client's accounts to the array (malloc'd, the caller's), ascending by life. False: not a ledger. */
bool dp_ledger_read(const char *path, uint32_t client, struct dp_ledger_account **accounts, uint32_t *count);

struct dp_ledger_sums {
    uint64_t pushes, acked, unanswered, applied_unanswered, resent, repeated;
};
/* Pulls all rows and compares; text says, a line each, what is wrong. False: something is. `client` has the cluster's
 * shards. */
bool dp_ledger_check(struct dp_client *client, const struct dp_ledger_account *accounts, uint32_t count,
                     struct dp_ledger_sums *sums, char *text, size_t size);

#endif
