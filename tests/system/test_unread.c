/* Peers that ask for everything and read nothing, and one whose message never ends: the server's memory stays bounded, it lets them go,
 * and others are served meanwhile. Clients that ask for more than a server keeps for them get all of it, within its bound. */
#include "tests/lib/test.h"
#include "tests/lib/zmtp.h"
#include "tests/system/place.h"

#include "common/client/downpour.h"
#include "common/net/net.h"
#include "common/wire/reply.h"
#include "common/wire/request.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define CLUSTER_ID 4711u
#define MIB        ((size_t)1 << 20)
#define NOTES      7u
#define NOTE       (8 * MIB) /* all of them: most of the board */
#define PEERS      60u       /* 3.3 GB of answers, for 60 bytes each */
#define LIMIT      (1200 * MIB)
#define ENDLESS    (2048 * MIB) /* of a message: more than is ever sent */

struct live {
    struct dp_place *place;
    struct dp_place_cluster cluster;
    const char *conf;
    struct dp_process *server;
    uint64_t next_id;
};

static int setup(void **state)
{
    struct live *live = calloc(1, sizeof *live);
    if (!live || dp_place_setup((void **)&live->place) != 0)
        return -1;
    *state = live;
    live->cluster = (struct dp_place_cluster){.epochs = 1, .top = "id = 4711;"};
    live->conf = dp_place_conf(live->place, &live->cluster);
    live->server = dp_place_server(live->place, live->conf, 0);
    return 0;
}

static int teardown(void **state)
{
    struct live *live = *state;
    int failed = dp_place_teardown((void **)&live->place);
    free(live);
    return failed;
}

static void send_request(struct live *live, int fd, struct dp_request *request, struct dp_frame *frame)
{
    struct dp_message *message = NULL;
    struct dp_error err = {0};
    request->id = ++live->next_id;
    request->session = 3;
    request->cluster = CLUSTER_ID;
    request->generation = 1;
    request->timeout_ms = 1000;
    assert_int_equal(dp_request_encode(request, frame, frame ? 1 : 0, &message, &err), DP_OK);
    for (uint32_t i = 0; i < message->frames; i++)
        assert_true(
            dp_zmtp_send(fd, i + 1 < message->frames, message->frame[i].data, message->frame[i].size));
    dp_message_free(&message);
}

/* A note, and its answer read. */
static void put_note(struct live *live, int fd, uint32_t number)
{
    struct dp_request request = {.kind = DP_REQUEST_NOTE_PUT};
    struct dp_frame frame = dp_frame_new(NOTE);
    unsigned char head[2], rest[255];
    assert_non_null(frame.data);
    memset(frame.data, 0, NOTE);
    (void)snprintf(request.name, sizeof request.name, "n/%u", (unsigned)number);
    send_request(live, fd, &request, &frame);
    assert_true(recv(fd, head, 2, MSG_WAITALL) == 2 && recv(fd, rest, head[1], MSG_WAITALL) == head[1]);
}

static uint64_t peak_bytes(const struct live *live)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/status", (long)dp_process_pid(live->server));
    char *text = dp_process_slurp(path, NULL);
    assert_non_null(text);
    const char *at = strstr(text, "VmHWM:");
    assert_non_null(at);
    uint64_t bytes = strtoull(at + strlen("VmHWM:"), NULL, 10) << 10;
    free(text);
    return bytes;
}

/* A training, its notes and its pushes. */
static void others_are_served(struct live *live)
{
    dp_place_ended(dp_place_worker(live->place, live->conf, 0), 0);
    print_message("peak %llu MiB\n", (unsigned long long)(peak_bytes(live) / MIB));
    assert_true(peak_bytes(live) < LIMIT);
}

static void answers_that_nobody_reads_are_bounded(void **state)
{
    struct live *live = *state;
    int putter = dp_zmtp_connect(live->cluster.port, 0), fd[PEERS];
    assert_true(putter >= 0);
    for (uint32_t i = 0; i < NOTES; i++)
        put_note(live, putter, i);
    for (uint32_t i = 0; i < PEERS; i++) {
        struct dp_request request = {.kind = DP_REQUEST_NOTES_GET, .name = "n/"};
        fd[i] = dp_zmtp_connect(live->cluster.port, 64 << 10);
        assert_true(fd[i] >= 0);
        send_request(live, fd[i], &request, NULL);
    }
    others_are_served(live);
    for (uint32_t i = 0; i < PEERS; i++)
        (void)close(fd[i]);
    (void)close(putter);
    dp_place_stops_cleanly(live->server);
}

static void a_message_without_end_is_cut(void **state)
{
    struct live *live = *state;
    char *block = calloc(1, MIB);
    size_t sent = 0;
    int fd = dp_zmtp_connect(live->cluster.port, 0);
    assert_true(fd >= 0 && block);
    while (sent < ENDLESS && dp_zmtp_send(fd, true, block, MIB))
        sent += MIB;
    print_message("it took %zu MiB\n", sent / MIB);
    assert_true(sent < ENDLESS);
    dp_place_awaits(live->server, "a peer loses its connection");
    (void)close(fd);
    free(block);
    others_are_served(live);
    dp_place_stops_cleanly(live->server);
}

/* ---- many large answers */

#define CLIENTS   16u
#define IN_FLIGHT 8u
#define ROWS      10000u /* a pull: 41 MB */
#define DIM       1024u
#define PULL_MS   240000u

struct reader {
    const char *shard;
    pthread_t thread;
    struct dp_client *client;
    struct dp_client_table *table;
    float *weights; /* of all its pulls: what they have is not looked at */
    uint64_t *keys;
    enum dp_status status;
    struct dp_error err;
};

static void *read_all(void *arg)
{
    struct reader *r = arg;
    struct dp_keys *keys = NULL;
    struct dp_ticket ticket[IN_FLIGHT];
    const struct dp_client_options options = {.name = "reader",
                                              .cluster = CLUSTER_ID,
                                              .shards = &r->shard,
                                              .shard_count = 1,
                                              .open_timeout_ms = PULL_MS};
    struct dp_table_spec spec = {.name = "wide", .dim = DIM, .optimizer = dp_optimizer_defaults(DP_OPT_SGD)};
    r->status = dp_client_open(&options, &r->client, &r->err);
    if (r->status == DP_OK)
        r->status = dp_client_table(r->client, &spec, PULL_MS, &r->table, &r->err);
    if (r->status == DP_OK)
        r->status = dp_keys_new(&keys, &r->err);
    if (r->status == DP_OK)
        r->status = dp_keys_set(keys, r->keys, ROWS, &r->err);
    const struct dp_pull_part part = {r->table, keys, r->weights};
    for (uint32_t i = 0; r->status == DP_OK && i < IN_FLIGHT; i++)
        r->status = dp_client_pull(r->client, &part, 1, NULL, PULL_MS, &ticket[i], &r->err);
    for (uint32_t i = 0; r->status == DP_OK && i < IN_FLIGHT; i++)
        r->status = dp_client_wait(r->client, &ticket[i], PULL_MS, NULL, &r->err);
    dp_client_close(&r->client);
    dp_keys_free(&keys);
    return NULL;
}

static void clients_get_all_that_they_ask_for(void **state)
{
    struct live *live = *state;
    struct reader reader[CLIENTS] = {{0}};
    const char *shard = dp_place_text(live->place, "tcp://127.0.0.1:%u", (unsigned)live->cluster.port + 1);
    uint64_t *keys = calloc(ROWS, sizeof *keys);
    assert_non_null(keys);
    for (uint64_t i = 0; i < ROWS; i++)
        keys[i] = i;
    for (uint32_t i = 0; i < CLIENTS; i++) {
        reader[i] =
            (struct reader){.shard = shard, .keys = keys, .weights = calloc(ROWS, DIM * sizeof(float))};
        assert_non_null(reader[i].weights);
        assert_int_equal(pthread_create(&reader[i].thread, NULL, read_all, &reader[i]), 0);
    }
    for (uint32_t i = 0; i < CLIENTS; i++)
        assert_int_equal(pthread_join(reader[i].thread, NULL), 0);
    for (uint32_t i = 0; i < CLIENTS; i++) {
        if (reader[i].status != DP_OK)
            fail_msg("client %u: %s", (unsigned)i, reader[i].err.text);
        free(reader[i].weights);
    }
    free(keys);
    print_message("peak %llu MiB\n", (unsigned long long)(peak_bytes(live) / MIB));
    assert_true(peak_bytes(live) < DP_ALL_UNSENT_MAX + CLIENTS * ROWS * DIM * sizeof(float));
    dp_place_stops_cleanly(live->server);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(answers_that_nobody_reads_are_bounded, setup, teardown),
        cmocka_unit_test_setup_teardown(a_message_without_end_is_cut, setup, teardown),
        cmocka_unit_test_setup_teardown(clients_get_all_that_they_ask_for, setup, teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
