/* Positions: a shard tells which numbers of a stream it has applied, and what it tells outlives the loss of power. Its
 * journal lies on a simulated disk whose sync waits at a gate, so that the test decides when a push is durable. */
#include "tests/lib/test.h"

#include "common/base/bytes.h"
#include "server/shard/push_ids.h"
#include "server/shard/shard.h"
#include "tests/lib/fake_store.h"
#include "tests/lib/sim_disk.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define STREAM  (DP_STREAM_TRAINING | (uint64_t)1 << 32 | 5)
#define SESSION 9u
#define WORDS   (DP_POSITIONS_MAX / 64)

/* The commit thread waits here while it is shut. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t changed;
    bool shut;
    uint64_t wakes;
} gate = {.lock = PTHREAD_MUTEX_INITIALIZER, .changed = PTHREAD_COND_INITIALIZER};

static struct dp_disk sim_functions;

static enum dp_status gated_sync(void *self, struct dp_file *file, struct dp_error *err)
{
    (void)pthread_mutex_lock(&gate.lock);
    while (gate.shut)
        (void)pthread_cond_wait(&gate.changed, &gate.lock);
    (void)pthread_mutex_unlock(&gate.lock);
    return sim_functions.sync(self, file, err);
}

static void set_gate(bool shut)
{
    (void)pthread_mutex_lock(&gate.lock);
    gate.shut = shut;
    (void)pthread_cond_broadcast(&gate.changed);
    (void)pthread_mutex_unlock(&gate.lock);
}

static void wake(void *context)
{
    (void)context;
    (void)pthread_mutex_lock(&gate.lock);
    gate.wakes++;
    (void)pthread_cond_broadcast(&gate.changed);
    (void)pthread_mutex_unlock(&gate.lock);
}

struct answer {
    uint64_t id;
    enum dp_status status;
    enum dp_reply_kind kind;
    char reason[DP_REASON_MAX + 1];
    uint64_t word[WORDS];
    size_t bytes;
};

struct bench {
    struct dp_fake_store *fake;
    struct dp_store store;
    struct dp_sim_disk *sim;
    struct dp_disk disk;
    struct dp_shard *shard;
    uint64_t now_ns, next_id, sequence;
    uint32_t answers;
    struct answer answer[128]; /* the last ones, a ring */
};

static uint64_t now_of(void *self)
{
    return ((struct bench *)self)->now_ns;
}

static void take_reply(void *context, const struct dp_peer *to, struct dp_message **message)
{
    struct bench *b = context;
    struct answer *answer = &b->answer[b->answers++ % 128];
    struct dp_reply reply;
    (void)to;
    assert_int_equal(dp_reply_decode(*message, &reply, NULL), DP_OK);
    *answer = (struct answer){.id = reply.id, .status = reply.status, .kind = reply.kind};
    memcpy(answer->reason, reply.reason, sizeof answer->reason);
    if (reply.kind == DP_REPLY_POSITIONS) {
        answer->bytes = (*message)->frame[1].size;
        assert_true(answer->bytes <= sizeof answer->word);
        for (size_t w = 0; w < answer->bytes / 8; w++)
            answer->word[w] = dp_load_u64le((const char *)(*message)->frame[1].data + w * 8);
    }
    dp_reply_clear(&reply);
    dp_message_free(message);
}

static uint64_t send_request(struct bench *b, struct dp_request *request)
{
    static const struct dp_peer peer = {.size = 5, .id = {0, 1, 2, 3, 4}};
    struct dp_message *message = NULL;
    request->id = b->next_id++;
    request->session = SESSION;
    request->cluster = request->generation = 1;
    request->timeout_ms = 600000;
    assert_int_equal(dp_request_encode(request, NULL, 0, &message, NULL), DP_OK);
    dp_shard_receive(b->shard, &peer, &message);
    return request->id;
}

static const struct answer *answer_to(const struct bench *b, uint64_t id)
{
    for (uint32_t i = 0; i < 128; i++)
        if (b->answer[i].id == id)
            return &b->answer[i];
    return NULL;
}

/* Turns until it is answered; each time nothing can be done it waits for the commit thread. */
static const struct answer *await(struct bench *b, uint64_t id)
{
    for (uint32_t i = 0; i < 1000; i++) {
        while (dp_shard_turn(b->shard))
            ;
        const struct answer *answer = answer_to(b, id);
        if (answer)
            return answer;
        struct timespec until;
        (void)clock_gettime(CLOCK_REALTIME, &until);
        until.tv_nsec += 10000000;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        (void)pthread_mutex_lock(&gate.lock);
        uint64_t before = gate.wakes;
        while (gate.wakes == before && pthread_cond_timedwait(&gate.changed, &gate.lock, &until) == 0)
            ;
        (void)pthread_mutex_unlock(&gate.lock);
    }
    fail_msg("request %u was not answered", (unsigned)id);
    return NULL;
}

static void meet(struct bench *b)
{
    struct dp_request hello = {.kind = DP_REQUEST_HELLO, .client = "test", .next_sequence = 1};
    b->sequence = 1;
    assert_int_equal(await(b, send_request(b, &hello))->status, DP_OK);
}

static void open_shard(struct bench *b, bool recovers)
{
    struct dp_error err = {0};
    b->store = dp_fake_store_open(b->fake);
    const struct dp_shard_options options = {.shards = 1,
                                             .cluster = 1,
                                             .generation = 1,
                                             .boot = 1,
                                             .cache_bytes = 64u << 20,
                                             .store = &b->store,
                                             .clock = {now_of, b},
                                             .journaled = true,
                                             .recovers = recovers,
                                             .journal = {.disk = &b->disk,
                                                         .durability = DP_DURABILITY_MACHINE,
                                                         .segment_bytes = 8u << 20,
                                                         .budget_bytes = 32u << 20,
                                                         .commit_thread = true,
                                                         .wake = wake},
                                             .reply = take_reply,
                                             .reply_context = b};
    if (dp_shard_open(&options, &b->shard, &err) != DP_OK)
        fail_msg("%s", err.text);
    meet(b);
}

static int setup(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    *state = b;
    b->next_id = 1;
    b->fake = dp_fake_store_new(8);
    b->sim = dp_sim_disk_new(1);
    b->disk = sim_functions = dp_sim_disk_interface(b->sim);
    b->disk.sync = gated_sync;
    open_shard(b, false);
    return 0;
}

static void close_shard(struct bench *b)
{
    set_gate(false);
    while (dp_shard_turn(b->shard))
        ;
    dp_shard_close(&b->shard);
    b->store.close(b->store.self);
}

static int teardown(void **state)
{
    struct bench *b = *state;
    close_shard(b);
    dp_sim_disk_free(&b->sim);
    dp_fake_store_free(&b->fake);
    free(b);
    return 0;
}

/* Without rows: a push like any other. */
static uint64_t push(struct bench *b, uint64_t stream, uint64_t number)
{
    struct dp_request request = {
        .kind = DP_REQUEST_PUSH, .sequence = b->sequence++, .stream = stream, .number = number, .rate = 1};
    return send_request(b, &request);
}

static void pushed(struct bench *b, uint64_t stream, uint64_t number)
{
    assert_int_equal(await(b, push(b, stream, number))->status, DP_OK);
}

static uint64_t ask(struct bench *b, uint64_t stream, uint64_t from, uint32_t count)
{
    struct dp_request request = {
        .kind = DP_REQUEST_POSITIONS_GET, .stream = stream, .number = from, .numbers = count};
    return send_request(b, &request);
}

static bool bit(const struct answer *answer, uint32_t i)
{
    return answer->word[i / 64] >> i % 64 & 1;
}

static void what_was_applied_is_told_and_nothing_else(void **state)
{
    struct bench *b = *state;
    static const uint64_t numbers[] = {0, 1, 2, 5, 63, 64, 130, 5000};
    const struct answer *answer = await(b, ask(b, STREAM, 0, 200));
    assert_int_equal(answer->kind, DP_REPLY_POSITIONS);
    assert_int_equal(answer->bytes, 32); /* 200 bits */
    for (uint32_t i = 0; i < 256; i++)
        assert_false(bit(answer, i));
    for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++)
        pushed(b, STREAM, numbers[i]);
    pushed(b, STREAM + 1, 3); /* another epoch */
    for (uint64_t from = 0; from < 140; from += 7) {
        answer = await(b, ask(b, STREAM, from, 130));
        assert_int_equal(answer->bytes, 24);
        for (uint32_t i = 0; i < 192; i++) {
            bool is = false;
            for (size_t k = 0; i < 130 && k < sizeof numbers / sizeof numbers[0]; k++)
                is |= numbers[k] == from + i;
            assert_int_equal(bit(answer, i), is);
        }
    }
    answer = await(b, ask(b, STREAM, 4000, DP_POSITIONS_MAX));
    assert_true(answer->bytes == sizeof answer->word && bit(answer, 1000) && !bit(answer, 999));
    answer = await(b, ask(b, STREAM, UINT64_MAX - 64, 64)); /* far above the window */
    assert_true(answer->status == DP_OK && answer->word[0] == 0);
}

static void a_refused_number_is_not_told_as_applied(void **state)
{
    struct bench *b = *state;
    struct dp_request request = {.kind = DP_REQUEST_PUSH,
                                 .stream = STREAM,
                                 .number = 1,
                                 .rate = 1,
                                 .sections = 1,
                                 .section = {{.table = 77}}}; /* no such table */
    struct dp_frame frames[2] = {dp_frame_new(0), dp_frame_new(0)};
    struct dp_message *message = NULL;
    pushed(b, STREAM, 0);
    request.sequence = b->sequence++;
    request.id = b->next_id++;
    request.session = SESSION;
    request.cluster = request.generation = 1;
    request.timeout_ms = 1000;
    assert_int_equal(dp_request_encode(&request, frames, 2, &message, NULL), DP_OK);
    dp_shard_receive(b->shard, &(struct dp_peer){.size = 1, .id = {1}}, &message);
    assert_int_not_equal(await(b, request.id)->status, DP_OK);
    pushed(b, STREAM, 2);
    assert_int_equal(await(b, ask(b, STREAM, 0, 64))->word[0], 5);
}

static void a_forgotten_stream_is_told_from_a_new_one(void **state)
{
    struct bench *b = *state;
    for (uint64_t i = 0; i <= DP_PUSH_EPOCHS_MAX; i++) {
        (void)push(b, STREAM + i, 0);
        (void)dp_shard_turn(b->shard);
    }
    const struct answer *answer = await(b, ask(b, STREAM, 0, 1));
    assert_int_equal(answer->status, DP_TOO_OLD);
    assert_non_null(strstr(answer->reason, "forgotten"));
    assert_int_equal(await(b, ask(b, STREAM + 1, 0, 1))->word[0], 1);
    assert_int_equal(await(b, ask(b, STREAM + DP_PUSH_EPOCHS_MAX + 1, 0, 1))->status, DP_OK);
}

/* Planted: answered at once. */
static void nothing_is_told_before_it_is_durable(void **state)
{
    struct bench *b = *state;
    pushed(b, STREAM, 0);
    set_gate(true);
    uint64_t second = push(b, STREAM, 1);
    (void)dp_shard_turn(b->shard);
    uint64_t asked = ask(b, STREAM, 0, 64);
    uint64_t third = push(b, STREAM, 2);
    for (int i = 0; i < 10; i++)
        (void)dp_shard_turn(b->shard);
    assert_null(answer_to(b, second));
    assert_null(answer_to(b, asked));
    set_gate(false);
    assert_int_equal(await(b, asked)->word[0], 3); /* the third came after the question */
    assert_int_equal(await(b, third)->status, DP_OK);
}

/* Whatever is told survives: the sync that would have made number 1 durable fails, and the power goes. */
static void what_a_lost_journal_had_is_not_told(void **state)
{
    struct bench *b = *state;
    pushed(b, STREAM, 0);
    set_gate(true);
    uint64_t lost = push(b, STREAM, 1);
    (void)dp_shard_turn(b->shard);
    uint64_t held = ask(b, STREAM, 0, 64);
    dp_sim_disk_fail(b->sim, DP_SIM_SYNC, 1, 1, DP_IO);
    set_gate(false);
    assert_int_equal(await(b, held)->status, DP_AGAIN);
    assert_int_equal(await(b, lost)->status, DP_AGAIN);
    const struct answer *answer = await(b, ask(b, STREAM, 0, 64));
    assert_int_equal(answer->status, DP_AGAIN);
    assert_non_null(strstr(answer->reason, "restart its server"));
    dp_sim_disk_cut_at(b->sim, 1); /* closing must not save anything */
    close_shard(b);
    dp_sim_disk_restart(b->sim, DP_SIM_NOTHING);
    dp_sim_disk_cut_at(b->sim, 0);
    open_shard(b, true);
    assert_int_equal(await(b, ask(b, STREAM, 0, 64))->word[0], 1);
    pushed(b, STREAM, 1);
    assert_int_equal(await(b, ask(b, STREAM, 0, 64))->word[0], 3);
}

static void answers_that_wait_are_bounded_and_stopping_is_said(void **state)
{
    struct bench *b = *state;
    set_gate(true);
    (void)push(b, STREAM, 0);
    (void)dp_shard_turn(b->shard);
    uint64_t first = b->next_id;
    for (int i = 0; i < 64; i++)
        (void)ask(b, STREAM, 0, 64);
    uint64_t one_more = ask(b, STREAM, 0, 64);
    assert_int_equal(answer_to(b, one_more)->status, DP_AGAIN);
    assert_null(answer_to(b, first));
    set_gate(false);
    for (uint64_t id = first; id < one_more; id++)
        assert_int_equal(await(b, id)->word[0], 1);
    dp_shard_drain(b->shard);
    assert_int_equal(await(b, ask(b, STREAM, 0, 64))->status, DP_STOPPING);
}

int main(void)
{
#define DP_POSITIONS_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        DP_POSITIONS_TEST(what_was_applied_is_told_and_nothing_else),
        DP_POSITIONS_TEST(a_refused_number_is_not_told_as_applied),
        DP_POSITIONS_TEST(a_forgotten_stream_is_told_from_a_new_one),
        DP_POSITIONS_TEST(nothing_is_told_before_it_is_durable),
        DP_POSITIONS_TEST(what_a_lost_journal_had_is_not_told),
        DP_POSITIONS_TEST(answers_that_wait_are_bounded_and_stopping_is_said),
    };
    return cmocka_run_group_tests_name("positions", tests, NULL, NULL);
}
