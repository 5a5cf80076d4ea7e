/* Strangers who push under ids that nobody gave them: 100,000 of random, greatest and forgotten streams, in a few seconds, over
 * kills and restarts. They use up what they are let; then a new client and a new run are served. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include "common/client/downpour.h"
#include "common/config/cluster.h"
#include "common/model/stream.h"
#include "common/wire/reply.h"
#include "common/wire/request.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <zmq.h>

#define FLOOD  17000u /* to each of two shards, three times */
#define SHARDS 2u
#define WINDOW 48u

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return *seed ^ *seed >> 29;
}

/* A peer that sends without waiting for each answer. */
struct stranger {
    const struct dp_cluster *cluster;
    void *context, *socket;
    uint64_t session, next_id, sequence;
    uint64_t status[64]; /* answers, by status */
};

static void say(struct stranger *s, struct dp_request *request)
{
    struct dp_message *message = NULL;
    struct dp_error err = {0};
    request->id = s->next_id++;
    request->cluster = s->cluster->id;
    request->generation = 1; /* of stores that were never restored */
    request->session = s->session;
    request->timeout_ms = 10000;
    if (dp_request_encode(request, NULL, 0, &message, &err) != DP_OK)
        fail_msg("%s", err.text);
    assert_int_equal(message->frames, 1);
    assert_true(zmq_send(s->socket, message->frame[0].data, message->frame[0].size, 0) > 0);
    dp_message_free(&message);
}

static struct dp_reply hear(struct stranger *s)
{
    struct dp_message *message = dp_message_new(1);
    struct dp_reply reply;
    struct dp_error err = {0};
    char bytes[4096];
    int size = zmq_recv(s->socket, bytes, sizeof bytes, 0);
    if (size < 0)
        fail_msg("no answer: %s", zmq_strerror(zmq_errno()));
    dp_message_add(message, dp_frame_copy(bytes, (size_t)size));
    if (dp_reply_decode(message, &reply, &err) != DP_OK)
        fail_msg("%s", err.text);
    dp_message_free(&message);
    return reply;
}

static struct stranger stranger_open(const struct dp_cluster *cluster, uint32_t shard, uint64_t session)
{
    struct stranger s = {
        .cluster = cluster, .context = zmq_ctx_new(), .session = session, .next_id = 1, .sequence = 1};
    struct dp_request hello = {.kind = DP_REQUEST_HELLO, .client = "stranger", .next_sequence = 1};
    int patience = (int)(DP_SOON_MS * DP_PATIENCE), linger = 0;
    char endpoint[DP_HOST_MAX + 32];
    dp_cluster_shard_endpoint(cluster, shard, endpoint, sizeof endpoint);
    s.socket = zmq_socket(s.context, ZMQ_DEALER);
    assert_non_null(s.socket);
    (void)zmq_setsockopt(s.socket, ZMQ_LINGER, &linger, sizeof linger);
    (void)zmq_setsockopt(s.socket, ZMQ_RCVTIMEO, &patience, sizeof patience);
    assert_int_equal(zmq_connect(s.socket, endpoint), 0);
    say(&s, &hello);
    assert_int_equal(hear(&s).status, DP_OK);
    return s;
}

static void stranger_close(struct stranger *s)
{
    assert_int_equal(zmq_close(s->socket), 0);
    assert_int_equal(zmq_ctx_term(s->context), 0);
}

/* Returns how many of these were answered for good: one that hears AGAIN is given up, and those behind it, which the
 * shard has let go of, are to be sent again. */
static uint32_t push_all(struct stranger *s, const uint64_t *streams, uint32_t n)
{
    uint64_t first_id = s->next_id, first = s->sequence;
    uint32_t until = n, answered = 0;
    bool done[WINDOW] = {false};
    for (uint32_t i = 0; i < n; i++) {
        struct dp_request push = {
            .kind = DP_REQUEST_PUSH, .sequence = first + i, .stream = streams[i], .rate = 1};
        say(s, &push);
    }
    while (answered < until) {
        struct dp_reply reply = hear(s);
        if (reply.id < first_id || reply.status == DP_ORDER)
            continue;
        uint32_t i = (uint32_t)(reply.id - first_id);
        assert_true(i < n && reply.status < 64);
        s->status[reply.status]++;
        if (reply.status == DP_AGAIN) {
            until = i < until ? i : until;
            continue;
        }
        assert_false(done[i]);
        done[i] = true;
        answered++;
    }
    s->sequence = first + until;
    return until < n ? until + 1 : n;
}

static uint64_t flood_id(uint32_t i, uint32_t round, uint64_t *seed)
{
    const uint64_t now_s = (uint64_t)time(NULL), day_s = 86400,
                   last_run = now_s - UINT64_C(1767225600) + day_s - 9;
    switch (i % 6) {
    case 0:
        return draw(seed) | 1;
    case 1:
        return DP_STREAM_TRAINING | (uint64_t)(INT32_MAX - i) << 32;
    case 2: /* as great as it may be: it takes the quota of runs */
        return DP_STREAM_TRAINING | (last_run - i) << 32 | draw(seed) % 100;
    case 3: /* on other shards than the first */
        return dp_stream_of_client(now_s + day_s - 9 - round) - i;
    case 4: /* on the first, of a store before this one, as it were */
        return dp_stream_of_client(now_s - day_s * (1 + round)) - i;
    default: /* some of before */
        return i % 12 == 5 ? dp_stream_of_client(now_s - day_s) - i / 12 * 12 - 4
                           : DP_STREAM_TRAINING | (last_run - i / 12 * 12 - 2) << 32;
    }
}

static void flood(const struct dp_cluster *cluster, uint32_t round)
{
    uint64_t seed = 77 + round, status[64] = {0};
    for (uint32_t shard = 0; shard < SHARDS; shard++) {
        struct stranger s = stranger_open(cluster, shard, 4000 + 10 * round + shard);
        uint64_t streams[WINDOW];
        uint32_t n = 0;
        for (uint32_t i = 0; i < FLOOD || n > 0;) {
            while (n < WINDOW && i < FLOOD)
                streams[n++] = flood_id(i++, round, &seed);
            uint32_t answered = push_all(&s, streams, n);
            n -= answered;
            memmove(streams, streams + answered, n * sizeof streams[0]);
        }
        for (uint32_t i = 0; i < 64; i++)
            status[i] += s.status[i];
        stranger_close(&s);
    }
    /* Most of it was refused, by name. */
    assert_true(status[DP_INVALID] > FLOOD / 2 && status[DP_AGAIN] + status[DP_TOO_OLD] > FLOOD / 4);
    assert_true(status[DP_OK] > 1000 && status[DP_OK] < SHARDS * FLOOD / 2);
}

/* A fresh one, of whom nobody has heard. */
static void a_new_client_is_served(const struct dp_cluster *cluster)
{
    char text[SHARDS][DP_HOST_MAX + 32];
    const char *endpoints[SHARDS];
    struct dp_client *client = NULL;
    struct dp_client_table *table = NULL;
    struct dp_table_spec spec = {.name = "floods", .dim = 1};
    struct dp_error err = {0};
    const uint64_t keys[] = {1, 2, 3, 4, 5, 6, 7, 8};
    float gradients[8] = {1, 1, 1, 1, 1, 1, 1, 1}, before[8], after[8];
    const uint32_t wait_ms = DP_SOON_MS * DP_PATIENCE;
    spec.optimizer = dp_optimizer_defaults(DP_OPT_SGD);
    for (uint32_t i = 0; i < SHARDS; i++) {
        dp_cluster_shard_endpoint(cluster, i, text[i], sizeof text[i]);
        endpoints[i] = text[i];
    }
    struct dp_client_options options = {
        .name = "newcomer", .cluster = cluster->id, .shards = endpoints, .shard_count = SHARDS};
    enum dp_status st = dp_client_open(&options, &client, &err);
    if (st == DP_OK)
        st = dp_client_table(client, &spec, wait_ms, &table, &err);
    if (st == DP_OK)
        st = dp_client_pull_rows(client, table, keys, 8, before, wait_ms, &err);
    for (uint32_t i = 0; i < 3 && st == DP_OK; i++)
        st = dp_client_push_rows(client, table, keys, 8, gradients, 1, wait_ms, &err);
    if (st == DP_OK)
        st = dp_client_pull_rows(client, table, keys, 8, after, wait_ms, &err);
    if (st != DP_OK)
        fail_msg("%s", err.text);
    for (uint32_t i = 0; i < 8; i++)
        assert_true(after[i] == before[i] - 3);
    dp_client_close(&client);
}

static struct dp_process *run(struct dp_place *place, const char *dir)
{
    return dp_place_try(place, 0, "downpour", "run", "--dir", dir, "--shards", "2", "--model", "mlp:64-64-10",
                        "--train", DP_DIGITS_TRAIN, "--test", DP_DIGITS_TEST, "--scale", "0.0625", "--epochs",
                        "1", "--batch", "16", "--rate", "0.005");
}

static void newcomers_are_served(void **state)
{
    struct dp_place *place = *state;
    const char *dir = dp_place_path(place, "run"), *conf = dp_place_path(place, "run/cluster.conf");
    struct dp_cluster *cluster = NULL;
    struct dp_error err = {0};
    (void)run(place, dir);
    assert_int_equal(dp_cluster_read(conf, &cluster, &err), DP_OK);
    struct dp_process *server = NULL;
    for (uint32_t round = 0; round < 3; round++) {
        server = dp_place_server(place, conf, 0);
        flood(cluster, round);
        a_new_client_is_served(cluster);
        if (round == 1) {
            dp_place_stops_cleanly(server);
        } else {
            dp_process_signal(server, SIGKILL);
            (void)dp_process_wait(server, DP_SOON_MS * DP_PATIENCE);
        }
    }
    server = dp_place_server(place, conf, 0);
    a_new_client_is_served(cluster);
    struct dp_process *worker = dp_place_worker(place, conf, 0); /* its run is over, and known or not */
    dp_place_ended(worker, 2);
    dp_place_says(worker, "training.run");
    const char *great = dp_place_path(place, "run/great.conf");
    cluster->training.run = INT32_MAX; /* one that nobody can have counted up to: refused before it trains */
    assert_int_equal(dp_cluster_write(cluster, great, &err), DP_OK);
    worker = dp_place_worker(place, great, 0);
    dp_place_ended(worker, 2);
    dp_place_says(worker, "run 2147483647");
    dp_place_says(worker, "is out of range");
    dp_place_stops_cleanly(server);
    /* Above the runs that strangers have pushed to, where some of those were forgotten; then it counts on from there. */
    dp_place_says(run(place, dir), "is used or too old");
    double first = dp_place_number(place, dp_place_path(place, "run/report.json"), "settings.run");
    (void)run(place, dir);
    double second = dp_place_number(place, dp_place_path(place, "run/report.json"), "settings.run");
    assert_true(first > 1000000 && second > first);
    dp_cluster_free(&cluster);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(newcomers_are_served, dp_place_setup, dp_place_teardown),
    };
    return cmocka_run_group_tests_name("floods", tests, NULL, NULL);
}
