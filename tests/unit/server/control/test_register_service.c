/* Register service: who is answered, with what and when; waiters' ends, bounds and resends. */
#include "tests/lib/test.h"

#include "server/control/register_service.h"
#include "tests/lib/sim_disk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define S_NS UINT64_C(1000000000)

struct bed {
    struct dp_sim_disk *sim;
    struct dp_disk disk;
    struct dp_control_register *values;
    struct dp_control_register_service *service;
    struct dp_error err;
    uint64_t now_ns;
    /* The answers since the last look. */
    uint32_t answers;
    struct dp_reply reply; /* the last */
    struct dp_peer to;
    char bytes[1024];
    uint64_t answered_ids; /* a sum */
    uint32_t checked;      /* sets */
};

static void take_answer(void *context, const struct dp_peer *to, struct dp_reply *reply,
                        struct dp_frame *frames, uint32_t frame_count)
{
    struct bed *bed = context;
    bed->answers++;
    bed->answered_ids += reply->id;
    bed->reply = *reply;
    bed->to = *to;
    assert_int_equal(frame_count, reply->kind == DP_REPLY_REGISTER);
    memset(bed->bytes, 0, sizeof bed->bytes);
    if (frame_count) {
        assert_true(frames[0].size < sizeof bed->bytes);
        memcpy(bed->bytes, frames[0].data, frames[0].size);
        dp_frame_release(&frames[0]);
    }
}

/* Nothing may follow "last". */
static enum dp_status check(void *context, const struct dp_control_names_set *set, struct dp_error *err)
{
    struct bed *bed = context;
    bed->checked++;
    assert_true((set->expected == 0) == (set->before_size == 0));
    if (set->before_size == 4 && memcmp(set->before, "last", 4) == 0)
        return dp_fail(err, DP_INVALID, "'%s': nothing follows", set->name);
    return DP_OK;
}

static int open_bed(void **state)
{
    struct bed *bed = calloc(1, sizeof *bed);
    bool made;
    assert_non_null(bed);
    bed->sim = dp_sim_disk_new(1);
    bed->disk = dp_sim_disk_interface(bed->sim);
    bed->now_ns = 1000 * S_NS;
    const struct dp_control_register_options options = {.disk = &bed->disk, .new_id = 9, .create = true};
    assert_int_equal(dp_control_register_open(&options, &bed->values, &made, &bed->err), DP_OK);
    const struct dp_control_register_service_options service = {
        .values = bed->values, .check = check, .answer = take_answer, .context = bed};
    assert_int_equal(dp_control_register_service_new(&service, &bed->service, &bed->err), DP_OK);
    *state = bed;
    return 0;
}

static int close_bed(void **state)
{
    struct bed *bed = *state;
    dp_control_register_service_free(&bed->service);
    dp_control_register_service_free(&bed->service);
    dp_control_register_close(&bed->values);
    dp_sim_disk_free(&bed->sim);
    free(bed);
    return 0;
}

static enum dp_status get_as(struct bed *bed, unsigned char peer, uint64_t session, uint64_t id,
                             const char *name, uint64_t above, uint32_t wait_ms)
{
    static struct dp_request request;
    const struct dp_peer from = {.size = 1, .id = {peer}};
    request = (struct dp_request){
        .kind = DP_REQUEST_REGISTER_GET, .session = session, .id = id, .version = above, .wait_ms = wait_ms};
    (void)snprintf(request.name, sizeof request.name, "%s", name);
    bed->answers = 0;
    bed->answered_ids = 0;
    return dp_control_register_service_take(bed->service, bed->now_ns, &from, &request, &bed->err);
}

static enum dp_status set_as(struct bed *bed, uint64_t id, const char *name, uint64_t expected,
                             const char *text)
{
    static struct dp_request request;
    const struct dp_peer from = {.size = 1, .id = {200}};
    request = (struct dp_request){.kind = DP_REQUEST_REGISTER_SET,
                                  .session = 200,
                                  .id = id,
                                  .version = expected,
                                  .nonce = id,
                                  .note = text,
                                  .note_bytes = strlen(text)};
    (void)snprintf(request.name, sizeof request.name, "%s", name);
    bed->answers = 0;
    bed->answered_ids = 0;
    return dp_control_register_service_take(bed->service, bed->now_ns, &from, &request, &bed->err);
}

/* How many are answered when the clock has moved on. */
static uint32_t later(struct bed *bed, uint64_t ns)
{
    bed->now_ns += ns;
    bed->answers = 0;
    dp_control_register_service_tick(bed->service, bed->now_ns);
    return bed->answers;
}

static uint64_t due_in(const struct bed *bed)
{
    uint64_t due_ns = dp_control_register_service_due_ns(bed->service);
    return due_ns == UINT64_MAX ? UINT64_MAX : due_ns - bed->now_ns;
}

static void what_stands_is_answered_at_once(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(get_as(bed, 1, 11, 1, "x", 0, 0), DP_OK);
    assert_true(bed->answers == 1 && bed->reply.version == 0 && bed->reply.register_id == 9);
    assert_true(bed->reply.id == 1 && bed->reply.session == 11 && bed->to.id[0] == 1);
    assert_int_equal(set_as(bed, 5, "x", 0, "one"), DP_OK);
    assert_true(bed->answers == 1 && bed->reply.won && bed->reply.version == 1 && bed->reply.id == 5);
    assert_int_equal(get_as(bed, 1, 11, 2, "x", 0, 5000), DP_OK);
    assert_true(bed->answers == 1 && bed->reply.version == 1 && !bed->reply.won);
    assert_string_equal(bed->bytes, "one");
    assert_int_equal(set_as(bed, 6, "x", 0, "two"), DP_OK);
    assert_true(bed->answers == 1 && !bed->reply.won && bed->reply.version == 1);
    assert_string_equal(bed->bytes, "one");
    assert_true(due_in(bed) == UINT64_MAX);
}

static void a_waiter_wakes_for_its_own_value(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(get_as(bed, 1, 11, 1, "x", 0, 30000), DP_OK);
    assert_int_equal(get_as(bed, 2, 12, 2, "x", 1, 40000), DP_OK);
    assert_int_equal(get_as(bed, 3, 13, 4, "y", 0, 50000), DP_OK);
    assert_int_equal(bed->answers, 0);
    assert_true(due_in(bed) == 30 * S_NS);
    assert_int_equal(set_as(bed, 100, "z", 0, "z"), DP_OK);
    assert_int_equal(bed->answered_ids, 100);
    assert_int_equal(set_as(bed, 100, "x", 0, "one"), DP_OK); /* the first alone is below it now */
    assert_int_equal(bed->answered_ids, 101);
    assert_true(bed->reply.id == 1 && bed->reply.version == 1 && !bed->reply.won && bed->to.id[0] == 1);
    assert_string_equal(bed->bytes, "one");
    assert_int_equal(set_as(bed, 103, "x", 0, "no"), DP_OK); /* nothing changes */
    assert_int_equal(bed->answered_ids, 103);
    assert_true(due_in(bed) == 40 * S_NS);
    assert_int_equal(set_as(bed, 102, "x", 1, "two"), DP_OK);
    assert_int_equal(bed->answered_ids, 104);
    assert_int_equal(set_as(bed, 105, "y", 0, "y"), DP_OK);
    assert_int_equal(bed->answered_ids, 109);
    assert_true(due_in(bed) == UINT64_MAX);
}

static void a_wait_that_is_over_is_answered_as_it_stands(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(set_as(bed, 5, "x", 0, "one"), DP_OK);
    assert_int_equal(get_as(bed, 1, 11, 1, "x", 1, 1), DP_OK);
    assert_int_equal(get_as(bed, 2, 12, 2, "x", 7, 2000), DP_OK); /* a version that is far */
    assert_int_equal(bed->answers, 0);
    assert_int_equal(later(bed, 999999), 0);
    assert_int_equal(later(bed, 1), 1);
    assert_true(bed->reply.id == 1 && bed->reply.version == 1);
    assert_string_equal(bed->bytes, "one");
    assert_int_equal(later(bed, 2 * S_NS), 1);
    assert_true(bed->reply.id == 2 && bed->reply.version == 1);
    assert_int_equal(later(bed, 100 * S_NS), 0);
}

/* The same question again: one waiter, with the newer wait, at the peer that asked last. */
static void a_resend_renews_its_waiter(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(get_as(bed, 1, 11, 1, "x", 0, 100000), DP_OK);
    for (uint32_t i = 1; i <= 4; i++) {
        assert_int_equal(later(bed, 50 * S_NS), 0);
        assert_int_equal(get_as(bed, (unsigned char)(i + 1), 11, 1, "x", 0, 100000 - i * 10000), DP_OK);
    }
    assert_int_equal(set_as(bed, 100, "x", 0, "one"), DP_OK);
    assert_true(bed->answers == 2 && bed->answered_ids == 101 && bed->to.id[0] == 5);
    /* Another session, or another id, is another. */
    assert_int_equal(get_as(bed, 1, 11, 1, "x", 1, 1000), DP_OK);
    assert_int_equal(get_as(bed, 1, 12, 1, "x", 1, 1000), DP_OK);
    assert_int_equal(get_as(bed, 1, 11, 2, "x", 1, 1000), DP_OK);
    assert_int_equal(later(bed, S_NS), 3);
}

static void a_client_that_is_gone_is_forgotten(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(get_as(bed, 1, 11, 1, "x", 0, DP_TIMEOUT_MS_MAX), DP_OK);
    assert_true(due_in(bed) == DP_REGISTER_SILENT_NS);
    assert_int_equal(later(bed, DP_REGISTER_SILENT_NS), 0);
    assert_true(due_in(bed) == UINT64_MAX);
    assert_int_equal(set_as(bed, 100, "x", 0, "one"), DP_OK);
    assert_int_equal(bed->answers, 1);
}

static void waiters_are_bounded(void **state)
{
    struct bed *bed = *state;
    for (uint32_t i = 0; i < DP_REGISTER_WAITERS_MAX; i++)
        assert_int_equal(get_as(bed, 1, 11, i + 1, "x", 0, 5000 + i), DP_OK);
    assert_int_equal(get_as(bed, 1, 11, 9999, "x", 0, 5000), DP_FULL);
    assert_non_null(strstr(bed->err.text, "4096 other requests already wait"));
    assert_int_equal(get_as(bed, 1, 11, 9999, "x", 0, 0), DP_OK); /* who does not wait is answered */
    assert_int_equal(bed->answers, 1);
    assert_int_equal(get_as(bed, 1, 11, DP_REGISTER_WAITERS_MAX, "x", 0, 5000),
                     DP_OK); /* a resend is no more */
    assert_int_equal(later(bed, 5 * S_NS), 2);
    assert_int_equal(get_as(bed, 1, 11, 9999, "x", 0, 5000), DP_OK);
    assert_int_equal(set_as(bed, 10000, "x", 0, "one"), DP_OK);
    assert_int_equal(bed->answers, DP_REGISTER_WAITERS_MAX);
}

/* Who waits for a value of a run that leaves hears that it did. */
static void a_waiter_hears_that_its_run_has_left(void **state)
{
    struct bed *bed = *state;
    char *large = malloc(DP_REGISTER_VALUE_BYTES_MAX + 1), name[32];
    assert_non_null(large);
    memset(large, 'v', DP_REGISTER_VALUE_BYTES_MAX);
    large[DP_REGISTER_VALUE_BYTES_MAX] = '\0';
    const struct dp_control_register_change change = {
        .name = "run/1/a", .nonce = 1, .bytes = large, .size = DP_REGISTER_VALUE_BYTES_MAX};
    struct dp_control_register_entry entry;
    assert_int_equal(dp_control_register_set(bed->values, &change, &entry, &bed->err), DP_OK);
    assert_int_equal(get_as(bed, 1, 11, 1, "run/1/b", 0, 5000), DP_OK);
    assert_int_equal(get_as(bed, 1, 11, 2, "run/3/b", 0, 5000), DP_OK);
    for (uint32_t i = 0; i < 62; i++) {
        struct dp_control_register_change next = change;
        (void)snprintf(name, sizeof name, "run/2/%u", i);
        next.name = name;
        assert_int_equal(dp_control_register_set(bed->values, &next, &entry, &bed->err), DP_OK);
    }
    assert_int_equal(set_as(bed, 100, "run/2/x", 0, "x"), DP_OK);
    if (bed->answers == 1) { /* there was room yet */
        struct dp_control_register_change next = change;
        next.name = "run/2/y";
        assert_int_equal(dp_control_register_set(bed->values, &next, &entry, &bed->err), DP_OK);
        assert_int_equal(set_as(bed, 100, "run/2/z", 0, "x"), DP_OK);
    }
    assert_int_equal(bed->answered_ids, 101);
    assert_true(bed->reply.kind == DP_REPLY_NONE && bed->reply.status == DP_TOO_OLD && bed->reply.id == 1);
    assert_non_null(strstr(bed->reply.reason, "run/1/b"));
    free(large);
}

/* What cannot be stored is no answer: its asker hears why, and nobody wakes. */
static void a_set_that_fails_wakes_nobody(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(get_as(bed, 1, 11, 1, "x", 0, 5000), DP_OK);
    dp_sim_disk_fail(bed->sim, DP_SIM_SYNC, 1, 1, DP_IO);
    assert_int_equal(set_as(bed, 100, "x", 0, "one"), DP_IO);
    assert_int_equal(bed->answers, 0);
    assert_int_equal(set_as(bed, 100, "x", 0, "one"), DP_OK);
    assert_int_equal(bed->answers, 2);
}

static void a_copy_is_the_file_as_it_stands(void **state)
{
    struct bed *bed = *state;
    struct dp_request request = {.kind = DP_REQUEST_REGISTER_COPY, .session = 3, .id = 4};
    const struct dp_peer from = {.size = 1, .id = {1}};
    char before[sizeof bed->bytes];
    assert_int_equal(dp_control_register_service_take(bed->service, bed->now_ns, &from, &request, &bed->err),
                     DP_OK);
    assert_true(bed->reply.whole && bed->reply.version == 1 && bed->reply.id == 4 && bed->reply.session == 3);
    assert_memory_equal(bed->bytes, "DPREGIST", 8);
    memcpy(before, bed->bytes, sizeof before);
    assert_int_equal(set_as(bed, 5, "x", 0, "one"), DP_OK);
    assert_int_equal(dp_control_register_service_take(bed->service, bed->now_ns, &from, &request, &bed->err),
                     DP_OK);
    assert_int_equal(bed->reply.version, 2);
    assert_memory_not_equal(before, bed->bytes, 48);
    assert_int_equal(set_as(bed, 5, "x", 0, "one"), DP_OK); /* a resend changes nothing */
    assert_int_equal(dp_control_register_service_take(bed->service, bed->now_ns, &from, &request, &bed->err),
                     DP_OK);
    assert_int_equal(bed->reply.version, 2);
}

/* One that finds another version takes no effect: a resend hears what its first copy did, whatever may follow by now. */
static void only_what_would_take_effect_is_checked(void **state)
{
    struct bed *bed = *state;
    assert_int_equal(set_as(bed, 5, "x", 0, "one"), DP_OK);
    assert_int_equal(set_as(bed, 6, "x", 1, "last"), DP_OK);
    assert_int_equal(bed->checked, 2);
    assert_int_equal(set_as(bed, 7, "x", 2, "more"), DP_INVALID);
    assert_string_equal(bed->err.text, "'x': nothing follows");
    assert_int_equal(bed->checked, 3);
    assert_int_equal(set_as(bed, 6, "x", 1, "last"), DP_OK);
    assert_true(bed->reply.won && bed->reply.version == 2);
    assert_int_equal(set_as(bed, 8, "x", 1, "late"), DP_OK);
    assert_true(!bed->reply.won && bed->reply.version == 2);
    assert_string_equal(bed->bytes, "last");
    assert_int_equal(set_as(bed, 9, "x", 7, "early"), DP_NOT_FOUND);
    assert_int_equal(bed->checked, 3);
}

int main(void)
{
#define IN_BED(test) cmocka_unit_test_setup_teardown(test, open_bed, close_bed)
    const struct CMUnitTest tests[] = {
        IN_BED(what_stands_is_answered_at_once),
        IN_BED(a_waiter_wakes_for_its_own_value),
        IN_BED(a_wait_that_is_over_is_answered_as_it_stands),
        IN_BED(a_resend_renews_its_waiter),
        IN_BED(a_client_that_is_gone_is_forgotten),
        IN_BED(waiters_are_bounded),
        IN_BED(a_waiter_hears_that_its_run_has_left),
        IN_BED(a_copy_is_the_file_as_it_stands),
        IN_BED(a_set_that_fails_wakes_nobody),
        IN_BED(only_what_would_take_effect_is_checked),
    };
    return cmocka_run_group_tests_name("register_service", tests, NULL, NULL);
}
