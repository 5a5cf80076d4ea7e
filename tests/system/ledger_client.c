/* A client of the ledger (ledger.h), to be killed at any moment.
 *     ledger_client FILE CLIENT LIFE own|same RETRY_MS CLUSTER GENERATION ENDPOINT...
 * own: pushes from number 1 in a stream of the handshake. same: in a stream of this client's choice, from the first
 * number on that FILE does not know as acknowledged. When there is a file FILE.stop, it issues again what its lives
 * before left unanswered, waits for what is under way and ends with 0. Ends with 1, saying why, when a push or a pull is refused, when a new number is said to be repeated, or when rows that only
 * it writes lack a push that was acknowledged. */
#include "tests/system/ledger.h"

#include "common/base/log.h"
#include "common/model/mix.h"
#include "tests/lib/process.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define WAIT_MS    (60000u * DP_PATIENCE) /* servers are killed again and again before they are ready */
#define WINDOW     8u
#define LOOK_EVERY 32u
#define STREAM     ((UINT64_C(1) << 63) | 1000)

_Static_assert(WINDOW <= DP_LEDGER_SLOTS, "each unanswered push has its own slot");

struct teller {
    struct dp_client *client;
    struct dp_client_table *table[DP_LEDGER_TABLES];
    struct dp_keys *keys[DP_LEDGER_TABLES];
    float *ones; /* of -1 */
    struct dp_ledger_life life;
    uint64_t stream, first, sent, acked; /* numbers; first: what this process began with */
    uint64_t known;                      /* sent by processes before */
    struct dp_ticket ticket[WINDOW];
    uint32_t shards;
    int fd;
    char stop[512]; /* a file */
};

static enum dp_status open_all(struct teller *t, const struct dp_client_options *options,
                               struct dp_error *err)
{
    struct dp_table_spec spec[DP_LEDGER_TABLES];
    enum dp_status st = dp_client_open(options, &t->client, err);
    dp_ledger_specs(spec);
    t->shards = options->shard_count;
    t->ones = malloc(DP_LEDGER_TOUCHED * DP_LEDGER_DIM * sizeof *t->ones);
    DP_ASSERT(t->ones);
    for (size_t i = 0; i < (size_t)DP_LEDGER_TOUCHED * DP_LEDGER_DIM; i++)
        t->ones[i] = -1;
    for (uint32_t i = 0; i < DP_LEDGER_TABLES && st == DP_OK; i++) {
        st = dp_client_table(t->client, &spec[i], WAIT_MS, &t->table[i], err);
        if (st == DP_OK)
            st = dp_keys_new(&t->keys[i], err);
    }
    return st;
}

/* On each shard the witness of this number and the row of this life's order. */
static enum dp_status set_keys(struct teller *t, uint64_t number, float *order_gradients,
                               struct dp_error *err)
{
    uint64_t key[DP_LEDGER_TOUCHED];
    dp_ledger_touched(t->life, number, key);
    enum dp_status st = dp_keys_set(t->keys[DP_LEDGER_SUMS], key, DP_LEDGER_TOUCHED, err);
    for (uint32_t i = 0; i < t->shards; i++)
        key[i] = dp_ledger_witness(t->life, number, i, t->shards);
    if (st == DP_OK)
        st = dp_keys_set(t->keys[DP_LEDGER_WITNESS], key, t->shards, err);
    for (uint32_t i = 0; i < t->shards; i++) {
        key[i] = dp_ledger_order(t->life, i, t->shards);
        dp_ledger_order_gradient(t->life, number, order_gradients + i * DP_LEDGER_ORDER_DIM);
    }
    return st == DP_OK ? dp_keys_set(t->keys[DP_LEDGER_ORDER], key, t->shards, err) : st;
}

static enum dp_status push(struct teller *t, struct dp_error *err)
{
    float order[DP_LEDGER_SLOTS * DP_LEDGER_ORDER_DIM];
    struct dp_push_part part[DP_LEDGER_TABLES];
    uint64_t number = t->sent + 1;
    /* A stream begins at 0. Were that number left out, the stream would end a window's width later. */
    const struct dp_push_options options = {.rate = 1, .stream = t->stream, .number = number - 1};
    enum dp_status st = set_keys(t, number, order, err);
    for (uint32_t i = 0; i < DP_LEDGER_TABLES; i++)
        part[i] = (struct dp_push_part){
            .table = t->table[i], .keys = t->keys[i], .gradients = i == DP_LEDGER_ORDER ? order : t->ones};
    if (st == DP_OK) {
        dp_ledger_write(t->fd, DP_LEDGER_SENT, t->life.life, number);
        st = dp_client_push(t->client, &options, part, DP_LEDGER_TABLES, WAIT_MS, &t->ticket[number % WINDOW],
                            err);
    }
    t->sent = number;
    return st;
}

static enum dp_status await_oldest(struct teller *t, struct dp_error *err)
{
    struct dp_outcome outcome = {0};
    uint64_t number = t->acked + 1;
    enum dp_status st = dp_client_wait(t->client, &t->ticket[number % WINDOW], WAIT_MS, &outcome, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "push %" PRIu64, number);
    if (outcome.repeated && number > t->known)
        return dp_fail(err, DP_INTERNAL, "push %" PRIu64 " is new and was called repeated", number);
    dp_ledger_write(t->fd, outcome.repeated ? DP_LEDGER_REPEATED : DP_LEDGER_ACKED, t->life.life, number);
    t->acked = number;
    return DP_OK;
}

/* Slot by slot: what was acknowledged is seen, and no more than was sent. */
static enum dp_status look(struct teller *t, struct dp_error *err)
{
    uint64_t key[DP_LEDGER_SLOTS * DP_LEDGER_SLOTS];
    float value[DP_LEDGER_SLOTS * DP_LEDGER_SLOTS];
    uint32_t n = 0;
    for (uint64_t slot = 0; slot < DP_LEDGER_SLOTS; slot++)
        for (uint32_t shard = 0; shard < t->shards; shard++)
            key[n++] = dp_ledger_witness(t->life, slot, shard, t->shards);
    enum dp_status st =
        dp_client_pull_rows(t->client, t->table[DP_LEDGER_WITNESS], key, n, value, WAIT_MS, err);
    for (uint32_t i = 0; i < n && st == DP_OK; i++) {
        uint64_t slot = i / t->shards;
        /* Of 1..m those with this rest: (m + SLOTS - slot) / SLOTS, and 0 is no number. */
        uint64_t acked = (t->acked + DP_LEDGER_SLOTS - slot) / DP_LEDGER_SLOTS - (slot == 0);
        uint64_t sent = (t->sent + DP_LEDGER_SLOTS - slot) / DP_LEDGER_SLOTS - (slot == 0);
        if (value[i] < (float)acked || value[i] > (float)sent)
            st = dp_fail(err, DP_INTERNAL,
                         "slot %" PRIu64 " on shard %" PRIu32 " shows %.1f pushes; %" PRIu64
                         " were acknowledged, %" PRIu64 " sent (up to %" PRIu64 " and %" PRIu64 ")",
                         slot, i % t->shards, (double)value[i], acked, sent, t->acked, t->sent);
    }
    return st;
}

static enum dp_status tell(struct teller *t, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    while (st == DP_OK) {
        bool wants_more = access(t->stop, F_OK) != 0 || t->sent < t->known;
        if (!wants_more && t->acked == t->sent)
            break;
        if (wants_more && t->sent < t->acked + WINDOW)
            st = push(t, err);
        else
            st = await_oldest(t, err);
        if (st == DP_OK && t->sent % LOOK_EVERY == 0 && t->sent > t->known)
            st = look(t, err);
    }
    return st;
}

static enum dp_status go_on_from(struct teller *t, const char *path, bool same, struct dp_error *err)
{
    struct dp_ledger_account *account = NULL;
    uint32_t count = 0;
    if (same && !dp_ledger_read(path, t->life.client, &account, &count))
        return dp_fail(err, DP_DATA, "'%s' is no ledger", path);
    if (count > 0) {
        t->acked = t->sent = account[count - 1].acked;
        t->known = account[count - 1].sent;
    }
    free(account);
    (void)snprintf(t->stop, sizeof t->stop, "%s.stop", path);
    t->stream = same ? STREAM + t->life.client : 0;
    t->fd = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0666);
    return t->fd >= 0 ? DP_OK : dp_fail(err, DP_IO, "cannot write '%s'", path);
}

int main(int argc, char **argv)
{
    struct teller t = {.fd = -1};
    struct dp_error err = {0};
    if (argc < 9)
        return 2;
    dp_log_start("client", DP_LOG_INFO);
    const struct dp_client_options options = {
        .name = argv[2],
        .retry_ms = (uint32_t)strtoul(argv[5], NULL, 10),
        .cluster = strtoull(argv[6], NULL, 10),
        .generation = strtoull(argv[7], NULL, 10),
        .shards = (const char *const *)(argv + 8),
        .shard_count = (uint32_t)(argc - 8),
        .open_timeout_ms = WAIT_MS,
    };
    t.life = (struct dp_ledger_life){.client = (uint32_t)strtoul(argv[2], NULL, 10),
                                     .life = (uint32_t)strtoul(argv[3], NULL, 10)};
    enum dp_status st = go_on_from(&t, argv[1], strcmp(argv[4], "same") == 0, &err);
    if (st == DP_OK)
        st = open_all(&t, &options, &err);
    if (st == DP_OK)
        st = tell(&t, &err);
    if (st != DP_OK)
        dp_log(DP_LOG_ERROR, "%s", err.text);
    for (uint32_t i = 0; i < DP_LEDGER_TABLES; i++)
        dp_keys_free(&t.keys[i]);
    dp_client_close(&t.client);
    free(t.ones);
    if (t.fd >= 0)
        (void)close(t.fd);
    return st == DP_OK ? 0 : 1;
}
