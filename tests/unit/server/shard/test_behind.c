/* A disk that is behind: a push that the journal cannot stage waits, in its place, and no longer than it must.
 * Method    The journal lies on a simulated disk, without a commit thread. The linker puts the test in front of append,
 *           which says that the disk is behind while `disk.behind`, and of commit, which does nothing while `disk.stuck`. */
#include "tests/lib/test.h"

#include "common/model/mix.h"
#include "server/shard/shard.h"
#include "tests/lib/fake_store.h"
#include "tests/lib/sim_disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DIM     2u
#define STREAM  (UINT64_C(1) << 63 | 7)
#define SECOND  UINT64_C(1000000000)
#define ANSWERS 64u

enum dp_status __real_dp_journal_append(struct dp_journal *, const struct dp_journal_piece *, uint32_t,
                                        uint64_t *, struct dp_error *);
enum dp_status __wrap_dp_journal_append(struct dp_journal *, const struct dp_journal_piece *, uint32_t,
                                        uint64_t *, struct dp_error *);
void __real_dp_journal_commit(struct dp_journal *);
void __wrap_dp_journal_commit(struct dp_journal *);

static struct {
    bool behind, stuck;
    uint32_t tried; /* appends, while it was behind */
} disk;

enum dp_status __wrap_dp_journal_append(struct dp_journal *journal, const struct dp_journal_piece *pieces,
                                        uint32_t count, uint64_t *lsn, struct dp_error *err)
{
    if (!disk.behind)
        return __real_dp_journal_append(journal, pieces, count, lsn, err);
    disk.tried++;
    return dp_fail(err, DP_JOURNAL_BEHIND, "journal: the disk has not taken 16 MiB yet that were appended");
}

void __wrap_dp_journal_commit(struct dp_journal *journal)
{
    if (!disk.stuck)
        __real_dp_journal_commit(journal);
}

struct answer {
    uint64_t id;
    enum dp_status status;
    enum dp_reply_kind kind;
    char reason[DP_REASON_MAX + 1];
    float value;
};

struct bench {
    struct dp_fake_store *fake;
    struct dp_store store;
    struct dp_sim_disk *sim;
    struct dp_disk disk;
    struct dp_shard *shard;
    uint64_t now_ns, next_id, number;
    uint64_t sequence[4]; /* next, of each session */
    uint32_t timeout_ms;  /* of the next requests */
    uint32_t answers;
    struct answer answer[ANSWERS]; /* in the order they came */
};

static uint64_t now_of(void *self)
{
    return ((struct bench *)self)->now_ns;
}

static void take_reply(void *context, const struct dp_peer *to, struct dp_message **message)
{
    struct bench *b = context;
    struct dp_reply reply;
    (void)to;
    assert_true(b->answers < ANSWERS);
    struct answer *answer = &b->answer[b->answers++];
    assert_int_equal(dp_reply_decode(*message, &reply, NULL), DP_OK);
    *answer = (struct answer){.id = reply.id, .status = reply.status, .kind = reply.kind};
    memcpy(answer->reason, reply.reason, sizeof answer->reason);
    if (reply.kind == DP_REPLY_PULLED)
        memcpy(&answer->value, (*message)->frame[1].data, sizeof answer->value);
    dp_reply_clear(&reply);
    dp_message_free(message);
}

/* Until nothing goes on, and what the store has completed by then is taken too. */
static void turn(struct bench *b)
{
    for (uint32_t rounds = 0; rounds < 4; rounds++)
        for (uint32_t i = 0; dp_shard_turn(b->shard); i++)
            assert_true(i < 10000);
}

static const struct answer *answer_to(const struct bench *b, uint64_t id)
{
    for (uint32_t i = 0; i < b->answers; i++)
        if (b->answer[i].id == id)
            return &b->answer[i];
    return NULL;
}

static const struct answer *answered(struct bench *b, uint64_t id, enum dp_status wanted)
{
    const struct answer *answer = answer_to(b, id);
    if (!answer || answer->status != wanted)
        fail_msg("request %u: %s, wanted %s", (unsigned)id,
                 answer ? dp_status_name((int)answer->status) : "no answer", dp_status_name((int)wanted));
    return answer;
}

static uint64_t send_request(struct bench *b, struct dp_request *request, struct dp_frame *frames,
                             uint32_t count)
{
    static const struct dp_peer peer = {.size = 5, .id = {0, 1, 2, 3, 4}};
    struct dp_message *message = NULL;
    request->id = b->next_id++;
    request->cluster = request->generation = 1;
    request->timeout_ms = b->timeout_ms;
    assert_int_equal(dp_request_encode(request, frames, count, &message, NULL), DP_OK);
    dp_shard_receive(b->shard, &peer, &message);
    return request->id;
}

static uint64_t push_at(struct bench *b, uint32_t session, uint64_t sequence, uint64_t key, uint64_t number)
{
    const float gradient[DIM] = {1, 1};
    const uint64_t mixed = dp_mix(key);
    struct dp_request request = {.kind = DP_REQUEST_PUSH,
                                 .session = session,
                                 .sequence = sequence,
                                 .stream = STREAM,
                                 .number = number,
                                 .rate = 1,
                                 .sections = 1,
                                 .section = {{.table = dp_table_id("t"), .rows = 1}}};
    struct dp_frame frames[2] = {dp_frame_copy(&mixed, sizeof mixed),
                                 dp_frame_copy(gradient, sizeof gradient)};
    return send_request(b, &request, frames, 2);
}

static uint64_t push(struct bench *b, uint32_t session, uint64_t key)
{
    return push_at(b, session, b->sequence[session]++, key, b->number++);
}

static uint64_t pull(struct bench *b, uint32_t session, uint64_t key)
{
    const uint64_t mixed = dp_mix(key);
    struct dp_request request = {.kind = DP_REQUEST_PULL,
                                 .session = session,
                                 .sequence = b->sequence[session]++,
                                 .sections = 1,
                                 .section = {{.table = dp_table_id("t"), .rows = 1}}};
    struct dp_frame frame = dp_frame_copy(&mixed, sizeof mixed);
    return send_request(b, &request, &frame, 1);
}

static void open_shard(struct bench *b)
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
                                             .journal = {.disk = &b->disk,
                                                         .durability = DP_DURABILITY_MACHINE,
                                                         .segment_bytes = 8u << 20,
                                                         .budget_bytes = 32u << 20},
                                             .reply = take_reply,
                                             .reply_context = b};
    if (dp_shard_open(&options, &b->shard, &err) != DP_OK)
        fail_msg("%s", err.text);
    turn(b);
    for (uint32_t session = 1; session < 4; session++) {
        struct dp_request hello = {
            .kind = DP_REQUEST_HELLO, .session = session, .client = "test", .next_sequence = 1};
        b->sequence[session] = 1;
        (void)answered(b, send_request(b, &hello, NULL, 0), DP_OK);
    }
}

static void close_shard(struct bench *b)
{
    dp_shard_close(&b->shard);
    b->store.close(b->store.self);
}

static enum dp_status drained(struct bench *b)
{
    struct dp_error err = {0};
    enum dp_status st = DP_AGAIN;
    for (uint32_t i = 0; i < 100 && st == DP_AGAIN; i++) {
        turn(b);
        st = dp_shard_drained(b->shard, &err);
    }
    return st;
}

static uint64_t create(struct bench *b, uint32_t session, const char *name)
{
    struct dp_request request = {.kind = DP_REQUEST_CREATE_TABLE,
                                 .session = session,
                                 .sequence = b->sequence[session]++,
                                 .spec = {.dim = DIM, .optimizer = dp_optimizer_defaults(DP_OPT_SGD)}};
    request.spec.optimizer.momentum = 0;
    (void)snprintf(request.spec.name, sizeof request.spec.name, "%s", name);
    return send_request(b, &request, NULL, 0);
}

static int setup(void **state)
{
    struct bench *b = calloc(1, sizeof *b);
    *state = b;
    memset(&disk, 0, sizeof disk);
    b->next_id = b->now_ns = 1;
    b->timeout_ms = 600000;
    b->fake = dp_fake_store_new(8);
    b->sim = dp_sim_disk_new(1);
    b->disk = dp_sim_disk_interface(b->sim);
    open_shard(b);
    uint64_t id = create(b, 1, "t");
    turn(b);
    (void)answered(b, id, DP_OK);
    return 0;
}

static int teardown(void **state)
{
    struct bench *b = *state;
    memset(&disk, 0, sizeof disk);
    dp_fake_store_hold(b->fake, false);
    turn(b);
    close_shard(b);
    dp_sim_disk_free(&b->sim);
    dp_fake_store_free(&b->fake);
    free(b);
    return 0;
}

/* One push is appended and not durable, the next finds the disk behind. */
static uint64_t fall_behind(struct bench *b, uint64_t *first)
{
    disk.stuck = true;
    *first = push(b, 1, 1);
    turn(b);
    disk.behind = true;
    uint64_t second = push(b, 1, 2);
    turn(b);
    assert_null(answer_to(b, *first));
    assert_null(answer_to(b, second));
    assert_int_equal(disk.tried, 1);
    return second;
}

static void a_parked_push_is_answered_in_its_place(void **state)
{
    struct bench *b = *state;
    uint64_t first, second = fall_behind(b, &first), third = push(b, 1, 2), fourth = pull(b, 1, 2);
    (void)pull(b, 2, 1);
    turn(b);
    assert_true(answered(b, fourth + 1, DP_OK)->value == -1); /* others are served meanwhile */
    b->now_ns += SECOND / 2;
    turn(b);
    assert_int_equal(disk.tried, 1); /* nothing has changed: it is not tried again */
    uint32_t before = b->answers;
    memset(&disk, 0, sizeof disk);
    turn(b);
    assert_int_equal(b->answers - before, 4);
    assert_true(answered(b, first, DP_OK) < answered(b, second, DP_OK));
    assert_true(answered(b, second, DP_OK) < answered(b, third, DP_OK));
    assert_true(answered(b, fourth, DP_OK)->value == -2); /* behind both */
}

/* It finds the disk behind again, though it went on in between: another second. */
static void progress_starts_a_new_second(void **state)
{
    struct bench *b = *state;
    uint64_t first, second = fall_behind(b, &first);
    b->now_ns += SECOND - 1;
    disk.stuck = false;
    turn(b);
    (void)answered(b, first, DP_OK);
    assert_int_equal(disk.tried, 2);
    b->now_ns += SECOND - 1;
    turn(b);
    assert_null(answer_to(b, second));
    b->now_ns += 1;
    turn(b);
    (void)answered(b, second, DP_AGAIN);
}

static void after_a_second_the_client_hears_of_the_disk(void **state)
{
    struct bench *b = *state;
    uint64_t first, second = fall_behind(b, &first), third = push(b, 1, 2), sequence = b->sequence[1] - 2;
    b->now_ns += SECOND;
    turn(b);
    assert_non_null(strstr(answered(b, second, DP_AGAIN)->reason, "the disk has not taken"));
    assert_null(answer_to(b, third)); /* must not overtake it: both come again */
    second = push_at(b, 1, sequence, 2, b->number - 2);
    turn(b);
    (void)answered(b, second, DP_AGAIN); /* no second wait, while nothing moves */
    memset(&disk, 0, sizeof disk);
    second = push_at(b, 1, sequence, 2, b->number - 2);
    third = push_at(b, 1, sequence + 1, 2, b->number - 1);
    uint64_t fourth = pull(b, 1, 2);
    turn(b);
    (void)answered(b, first, DP_OK);
    (void)answered(b, second, DP_OK);
    (void)answered(b, third, DP_OK);
    assert_true(answered(b, fourth, DP_OK)->value == -2); /* each once */
}

/* Else a large one, which needs more room, would never have its turn. */
static void pushes_wait_in_the_order_in_which_they_came(void **state)
{
    struct bench *b = *state;
    uint64_t first, second = fall_behind(b, &first);
    uint32_t tried = disk.tried, answers = b->answers;
    uint64_t third = push(b, 3, 3), fourth = push(b, 2, 4);
    turn(b);
    assert_int_equal(disk.tried, tried); /* only who is next tries */
    memset(&disk, 0, sizeof disk);
    turn(b);
    assert_int_equal(b->answers, answers + 4);
    assert_int_equal(b->answer[answers].id, first);
    assert_int_equal(b->answer[answers + 1].id, second);
    assert_int_equal(b->answer[answers + 2].id, third);
    assert_int_equal(b->answer[answers + 3].id, fourth);
}

/* The disk stays behind: each hears it, and what was parked behind another too. */
static void all_that_wait_hear_of_the_disk(void **state)
{
    struct bench *b = *state;
    uint64_t first, second = fall_behind(b, &first), third = push(b, 3, 3), fourth = push(b, 2, 4);
    turn(b);
    b->now_ns += SECOND;
    turn(b);
    (void)answered(b, second, DP_AGAIN);
    (void)answered(b, third, DP_AGAIN);
    (void)answered(b, fourth, DP_AGAIN);
}

/* Wherever it stands: it is not applied, what its session sent behind it must come again, and the others keep their places. */
static void a_deadline_ends_a_push_that_is_not_first(void **state)
{
    struct bench *b = *state;
    uint64_t first, second = fall_behind(b, &first);
    b->timeout_ms = 300;
    uint64_t third = push(b, 3, 3), sequence = b->sequence[3] - 1, number = b->number - 1;
    b->timeout_ms = 600000;
    uint64_t behind = push(b, 3, 3), fourth = push(b, 2, 4);
    turn(b);
    b->now_ns += SECOND * 3 / 10;
    turn(b);
    assert_null(answer_to(b, third)); /* not a moment earlier */
    uint32_t tried = disk.tried, answers = b->answers;
    b->now_ns++;
    turn(b);
    assert_int_equal(b->answers, answers + 1);
    assert_non_null(strstr(answered(b, third, DP_AGAIN)->reason, "disk is behind"));
    assert_null(answer_to(b, behind));
    assert_int_equal(disk.tried, tried); /* nothing has changed for who is first */
    memset(&disk, 0, sizeof disk);
    third = push_at(b, 3, sequence, 3, number);
    turn(b);
    assert_int_equal(b->answers, answers + 5);
    assert_int_equal(b->answer[answers + 1].id, first);
    assert_int_equal(b->answer[answers + 2].id, second);
    assert_int_equal(b->answer[answers + 3].id, fourth);
    assert_int_equal(b->answer[answers + 4].id, third);
    b->sequence[3] = sequence + 1;
    behind = push_at(b, 3, b->sequence[3]++, 3, number + 1);
    uint64_t pulled = pull(b, 3, 3);
    turn(b);
    (void)answered(b, behind, DP_OK);
    assert_true(answered(b, pulled, DP_OK)->value == -2); /* each once */
}

/* Who is first hears the same, though the disk goes on now and then. */
static void a_deadline_ends_the_first_push_too(void **state)
{
    struct bench *b = *state;
    b->timeout_ms = 300;
    uint64_t first, second = fall_behind(b, &first);
    b->timeout_ms = 600000;
    uint64_t third = push(b, 2, 3);
    turn(b);
    b->now_ns += SECOND * 3 / 10 + 1;
    turn(b);
    assert_non_null(strstr(answered(b, second, DP_AGAIN)->reason, "disk is behind"));
    assert_null(answer_to(b, third));
    memset(&disk, 0, sizeof disk);
    turn(b);
    (void)answered(b, third, DP_OK); /* it is first now */
}

static void a_journal_that_fails_lets_it_go(void **state)
{
    struct bench *b = *state;
    uint64_t first, second = fall_behind(b, &first);
    dp_sim_disk_fail(b->sim, DP_SIM_SYNC, 1, 1, DP_IO);
    disk.stuck = false;
    turn(b);
    (void)answered(b, first, DP_AGAIN);
    assert_non_null(strstr(answered(b, second, DP_AGAIN)->reason, "restart its server"));
}

static void a_drain_waits_for_it(void **state)
{
    struct bench *b = *state;
    uint64_t first, second = fall_behind(b, &first);
    dp_shard_drain(b->shard);
    assert_int_equal(drained(b), DP_AGAIN);
    assert_null(answer_to(b, second));
    memset(&disk, 0, sizeof disk);
    assert_int_equal(drained(b), DP_OK);
    (void)answered(b, second, DP_OK);
}

static void what_waits_for_the_store_is_left_alone(void **state)
{
    struct bench *b = *state;
    (void)push(b, 1, 7);
    turn(b);
    dp_shard_drain(b->shard);
    assert_int_equal(drained(b), DP_OK);
    close_shard(b);
    open_shard(b); /* key 7 is in the store, not in the cache */
    (void)push(b, 1, 1);
    (void)push(b, 1, 2);
    turn(b); /* those are */
    dp_fake_store_hold(b->fake, true);
    uint64_t read = push(b, 2, 7), made = create(b, 3, "u");
    turn(b);
    uint64_t first, second = fall_behind(b, &first);
    uint64_t reads = dp_fake_store_jobs(b->fake, DP_STORE_READ);
    assert_int_equal(dp_fake_store_held(b->fake), 2);
    memset(&disk, 0, sizeof disk);
    turn(b);
    (void)answered(b, second, DP_OK);
    assert_null(answer_to(b, read));
    assert_null(answer_to(b, made)); /* tried now, it would hear that it is being created */
    dp_fake_store_hold(b->fake, false);
    uint64_t pulled = pull(b, 2, 7);
    turn(b);
    (void)answered(b, read, DP_OK);
    (void)answered(b, made, DP_OK);
    assert_int_equal(dp_fake_store_jobs(b->fake, DP_STORE_READ), reads);
    assert_true(answered(b, pulled, DP_OK)->value == -2);
}

int main(void)
{
#define DP_BEHIND_TEST(test) cmocka_unit_test_setup_teardown(test, setup, teardown)
    const struct CMUnitTest tests[] = {
        DP_BEHIND_TEST(a_parked_push_is_answered_in_its_place),
        DP_BEHIND_TEST(progress_starts_a_new_second),
        DP_BEHIND_TEST(after_a_second_the_client_hears_of_the_disk),
        DP_BEHIND_TEST(pushes_wait_in_the_order_in_which_they_came),
        DP_BEHIND_TEST(all_that_wait_hear_of_the_disk),
        DP_BEHIND_TEST(a_deadline_ends_a_push_that_is_not_first),
        DP_BEHIND_TEST(a_deadline_ends_the_first_push_too),
        DP_BEHIND_TEST(a_journal_that_fails_lets_it_go),
        DP_BEHIND_TEST(a_drain_waits_for_it),
        DP_BEHIND_TEST(what_waits_for_the_store_is_left_alone),
    };
    return cmocka_run_group_tests_name("behind", tests, NULL, NULL);
}
