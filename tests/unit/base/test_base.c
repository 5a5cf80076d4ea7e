/* base: statuses and their texts, whole-string numbers, bf16 rounding, the bounded queue between threads. */
#include "tests/lib/child.h"
#include "tests/lib/test.h"

#include "common/base/bf16.h"
#include "common/base/blocking.h"
#include "common/base/bytes.h"
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/base/parse.h"
#include "common/base/queue.h"
#include "common/base/search.h"
#include "common/base/text.h"

#include <fcntl.h>
#include <math.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static void error_text_keeps_cause_behind_context(void **state)
{
    struct dp_error err = {0};
    assert_int_equal(dp_fail(&err, DP_IO, "disk %d gone", 3), DP_IO);
    assert_int_equal(dp_wrap(&err, DP_CORRUPT, "opening '%s'", "x"), DP_CORRUPT);
    assert_string_equal(err.text, "opening 'x': disk 3 gone");
    assert_int_equal(err.status, DP_CORRUPT);
    assert_int_equal(dp_fail(NULL, DP_IO, "nobody listens"), DP_IO);

    char longer[2000];
    memset(longer, 'y', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    (void)dp_fail(&err, DP_DATA, "%s", longer);
    (void)dp_wrap(&err, DP_DATA, "%s", longer);
    assert_true(strlen(err.text) < sizeof err.text);
}

static void statuses_have_names_and_classes(void **state)
{
    assert_string_equal(dp_status_name(DP_AGAIN), "AGAIN");
    assert_int_equal(dp_status_class(DP_AGAIN), DP_CLASS_RETRY);
    assert_int_equal(dp_status_class(DP_CORRUPT), DP_CLASS_FATAL);
    assert_string_equal(dp_status_name(9999), "UNKNOWN");
    assert_int_equal(dp_status_from_number(9999), DP_INTERNAL);
    assert_int_equal(dp_status_from_number(DP_FULL), DP_FULL);
}

static void numbers_are_the_whole_string_or_refused(void **state)
{
    struct dp_error err = {0};
    uint64_t u = 0;
    double d = 0;
    assert_int_equal(dp_parse_u64("18446744073709551615", 0, UINT64_MAX, "--n", &u, &err), DP_OK);
    assert_true(u == UINT64_MAX);
    static const char *const bad[] = {"",     " 1", "1 ", "-1", "+1", "0x10", "1e3", "18446744073709551616",
                                      "seven"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        assert_int_equal(dp_parse_u64(bad[i], 0, UINT64_MAX, "--n", &u, &err), DP_ARGUMENT);
        assert_non_null(strstr(err.text, "--n"));
    }
    assert_int_equal(dp_parse_u64("7", 8, 9, "--n", &u, &err), DP_ARGUMENT);
    assert_int_equal(dp_parse_f64("1e-3", 0, 1, "--rate", &d, &err), DP_OK);
    assert_true(d == 1e-3);
    static const char *const bad_f64[] = {"", "nan", "inf", "1e999", "0.1x", " 0.1", "2"};
    for (size_t i = 0; i < sizeof bad_f64 / sizeof bad_f64[0]; i++)
        assert_int_equal(dp_parse_f64(bad_f64[i], 0, 1, "--rate", &d, &err), DP_ARGUMENT);
    assert_int_equal(dp_parse_bytes("64MiB", "--cache", &u, &err), DP_OK);
    assert_true(u == 64u << 20);
    static const char *const bad_bytes[] = {"", "MiB", "-1", "1.5GiB", "64 MiB", "99999999999TiB", "1QiB"};
    for (size_t i = 0; i < sizeof bad_bytes / sizeof bad_bytes[0]; i++)
        assert_int_equal(dp_parse_bytes(bad_bytes[i], "--cache", &u, &err), DP_ARGUMENT);
}

/* Planted: a time without a unit is one of milliseconds; no upper bound. */
static void times_have_a_unit(void **state)
{
    static const struct {
        const char *text;
        uint64_t ns;
    } good[] = {
        {"20ms", 20000000}, {"1.5s", 1500000000},          {"250us", 250000}, {"0.5us", 500}, {"0", 0},
        {"0ms", 0},         {"60s", UINT64_C(60000000000)}};
    static const char *const bad[] = {"",
                                      "20",
                                      "ms",
                                      "-1ms",
                                      " 1ms",
                                      "1 ms",
                                      "1msec",
                                      "1e3ms",
                                      "0x1ms",
                                      "60.1s",
                                      "nans",
                                      "1.2.3s",
                                      "99999999999999999999999s"};
    struct dp_error err = {0};
    for (size_t i = 0; i < sizeof good / sizeof good[0]; i++) {
        uint64_t ns = 7;
        assert_int_equal(dp_parse_time(good[i].text, UINT64_C(60000000000), "--pace", &ns, &err), DP_OK);
        assert_true(ns == good[i].ns);
    }
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        uint64_t ns = 7;
        assert_int_equal(dp_parse_time(bad[i], UINT64_C(60000000000), "--pace", &ns, &err), DP_ARGUMENT);
        assert_true(ns == 7);
        assert_non_null(strstr(err.text, "--pace"));
        assert_non_null(strstr(err.text, "20ms, 1.5s or 250us, of 60 s at most"));
    }
}

static void bf16_rounds_to_nearest_even(void **state)
{
    assert_int_equal(dp_f32_to_bf16(1.0f), 0x3f80);
    assert_int_equal(dp_f32_to_bf16(1.0f + 0x1p-8f), 0x3f80); /* tie: to even */
    assert_int_equal(dp_f32_to_bf16(1.0f + 0x1p-7f + 0x1p-8f), 0x3f82);
    assert_int_equal(dp_f32_to_bf16(1.0f + 0x1p-8f + 0x1p-20f), 0x3f81);
    assert_true(isnan(dp_bf16_to_f32(dp_f32_to_bf16(NAN))));
    assert_true(isinf(dp_bf16_to_f32(dp_f32_to_bf16(INFINITY))));
    for (uint32_t v = 0; v <= 0xffff; v++) {
        float f = dp_bf16_to_f32((uint16_t)v);
        if (!isnan(f))
            assert_int_equal(dp_f32_to_bf16(f), v);
    }
}

/* Every upper half with each lower half around the ties, in arrays of every length at every alignment. */
static void bf16_arrays_equal_single_values(void **state)
{
    static const uint16_t low[] = {0, 1, 0x7fff, 0x8000, 0x8001, 0xffff};
    enum { MOST = 37 };
    uint32_t value = 0;
    for (uint32_t round = 0; value < 6 * 0x10000; round++) {
        size_t n = round % (MOST + 1);
        float from[MOST], back[MOST + 1];
        unsigned char bytes[2 * MOST + 4];
        for (size_t i = 0; i < n; i++) {
            uint32_t bits = value / 6 << 16 | low[value % 6];
            value++;
            memcpy(&from[i], &bits, sizeof bits);
        }
        memset(bytes, 0x5a, sizeof bytes);
        memset(back, 0x5a, sizeof back);
        dp_bf16_put(from, bytes + round % 2, n);
        dp_bf16_get(bytes + round % 2, back, n);
        for (size_t i = 0; i < n; i++) {
            uint16_t want = dp_f32_to_bf16(from[i]), got;
            float wide = dp_bf16_to_f32(want);
            memcpy(&got, bytes + round % 2 + 2 * i, 2);
            assert_int_equal(got, want);
            assert_memory_equal(&back[i], &wide, sizeof wide);
        }
        assert_int_equal(bytes[round % 2 + 2 * n], 0x5a); /* nothing is written past the end */
        assert_int_equal(((unsigned char *)&back[n])[0], 0x5a);
    }
}

static void big_endian_order_is_numeric_order(void **state)
{
    unsigned char a[8], b[8];
    dp_store_u64be(a, 255);
    dp_store_u64be(b, 256);
    assert_true(memcmp(a, b, 8) < 0);
    assert_true(dp_load_u64be(b) == 256);
}

struct relay {
    struct dp_queue *queue;
    uintptr_t sum, out_of_order;
};

static void *take_all(void *arg)
{
    struct relay *relay = arg;
    void *item;
    uintptr_t last = 0;
    while (dp_queue_take(relay->queue, &item, 10000) == DP_OK) {
        relay->out_of_order += (uintptr_t)item <= last;
        last = (uintptr_t)item;
        relay->sum += last;
    }
    return NULL;
}

static void queue_hands_everything_over_in_order(void **state)
{
    struct relay relay = {0};
    struct dp_error err = {0};
    pthread_t taker;
    assert_int_equal(dp_queue_new(4, &relay.queue, &err), DP_OK);
    assert_int_equal(pthread_create(&taker, NULL, take_all, &relay), 0);
    for (uintptr_t i = 1; i <= 10000; i++)
        assert_int_equal(dp_queue_put(relay.queue, (void *)i, 10000), DP_OK);
    dp_queue_close(relay.queue);
    assert_int_equal(pthread_join(taker, NULL), 0);
    assert_int_equal(relay.sum, 10000u * 10001u / 2);
    assert_int_equal(relay.out_of_order, 0);
    assert_int_equal(dp_queue_put(relay.queue, &relay, 0), DP_STOPPING);
    dp_queue_free(&relay.queue);
    assert_null(relay.queue);
}

/* The call that must not be made ends the process: tried in a child. */
static bool ends_the_process(bool allowed, uint32_t timeout_ms)
{
    pid_t child = fork();
    if (child == 0) {
        struct dp_queue *queue = NULL;
        struct dp_error err = {0};
        void *item;
        (void)dp_blocking_set(allowed);
        enum dp_status st = dp_queue_new(1, &queue, &err);
        if (st == DP_OK)
            st = dp_queue_take(queue, &item, timeout_ms);
        _exit(st == DP_TIMEOUT ? 0 : 1);
    }
    return dp_exit_of(child) < 0;
}

static void what_waits_is_not_called_where_nothing_may(void **state)
{
    assert_true(ends_the_process(false, 1));
    assert_false(ends_the_process(false, 0)); /* does not wait */
    assert_false(ends_the_process(true, 1));
    assert_true(dp_blocking_set(false));
    assert_false(dp_blocking_set(true));
}

static void queue_is_bounded_and_its_waits_end(void **state)
{
    struct dp_queue *queue = NULL;
    struct dp_error err = {0};
    void *item;
    assert_int_equal(dp_queue_new(1, &queue, &err), DP_OK);
    assert_int_equal(dp_queue_take(queue, &item, 0), DP_TIMEOUT);
    assert_int_equal(dp_queue_take(queue, &item, 5), DP_TIMEOUT);
    assert_int_equal(dp_queue_put(queue, &err, 0), DP_OK);
    assert_int_equal(dp_queue_put(queue, &err, 5), DP_TIMEOUT);
    assert_int_equal(dp_queue_take(queue, &item, 0), DP_OK);
    dp_queue_free(&queue);
}

static void page_blocks_are_aligned_and_zero(void **state)
{
    size_t bytes = ((size_t)4 << 20) + 5;
    char *block = dp_pages_alloc(bytes);
    assert_non_null(block);
    assert_true((uintptr_t)block % ((size_t)2 << 20) == 0);
    assert_true(block[0] == 0 && block[bytes - 1] == 0);
    block[bytes - 1] = 1;
    dp_pages_free(block, bytes);
    assert_null(dp_pages_alloc(SIZE_MAX - 10));
}

/* A pipe that is full and not read: the line is lost, nobody waits, and the next that gets through says how many were. */
static void the_log_waits_for_no_reader(void **state)
{
    static char taken[1u << 18];
    int ends[2], kept = dup(STDERR_FILENO);
    assert_true(kept >= 0 && pipe(ends) == 0);
    assert_int_equal(fcntl(ends[1], F_SETFL, O_NONBLOCK), 0);
    while (write(ends[1], taken, 4096) > 0) {
    }
    assert_int_equal(fcntl(ends[1], F_SETFL, 0), 0);
    (void)alarm(20); /* a log that waits ends the test */
    assert_true(dup2(ends[1], STDERR_FILENO) >= 0);
    dp_log(DP_LOG_ERROR, "first");
    dp_log(DP_LOG_ERROR, "second");
    (void)!read(ends[0], taken, sizeof taken);
    dp_log(DP_LOG_ERROR, "third");
    assert_true(dup2(kept, STDERR_FILENO) >= 0);
    (void)alarm(0);
    (void)close(ends[1]);
    size_t n = 0;
    for (ssize_t got = 1; got > 0 && n<sizeof taken - 1; n += got> 0 ? (size_t)got : 0)
        got = read(ends[0], taken + n, sizeof taken - 1 - n);
    taken[n] = '\0';
    assert_non_null(strstr(taken, "third\n"));
    assert_non_null(strstr(taken, ": 2 lines before this one were lost"));
    assert_null(strstr(taken, "second"));
    (void)close(ends[0]);
    (void)close(kept);
}

static void text_from_outside_is_made_fit_to_print(void **state)
{
    static const struct {
        const char *from, *to;
    } cases[] = {
        {"", ""},
        {"MANIFEST-000005", "MANIFEST-000005"},
        {"a\nb\tc\x1b[2J\x7f", "a?b?c?[2J?"},
        {"stra\xc3\x9f"
         "e \xe2\x82\xac \xf0\x9f\x98\x80",
         "stra\xc3\x9f"
         "e \xe2\x82\xac \xf0\x9f\x98\x80"},
        {"\x80\xff\xfe", "???"},
        {"\xc2\x9b"
         "31m",
         "??31m"},                                                 /* a control character of two bytes */
        {"\xc0\xaf \xe0\x80\xaf \xf0\x80\x80\xaf", "?? ??? ????"}, /* not the shortest form */
        {"\xed\xa0\x80 \xf4\x90\x80\x80", "??? ????"},             /* half of a pair, beyond the last */
        {"cut \xe2\x82", "cut ??"},
    };
    static const struct {
        const char *from, *to;
    } ends[] = {{"", ""},
                {"a", "a"},
                {"\xe2\x82\xac", "\xe2\x82\xac"},
                {"a\xe2\x82", "a"},
                {"a\xf0\x9f\x98", "a"},
                {"\xc3", ""},
                {"a\x80\x80", "a\x80\x80"}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[64];
        (void)snprintf(text, sizeof text, "%s", cases[i].from);
        dp_text_clean(text);
        assert_string_equal(text, cases[i].to);
        /* What is no UTF-8 is found at any distance from the begin. */
        char far[96] = "twenty bytes before ";
        (void)snprintf(far + i, sizeof far - i, "%s", cases[i].from);
        const char *odd = dp_text_not_utf8(far, far + strlen(far));
        assert_int_equal(odd < far + strlen(far), i >= 4 && i != 5);
    }
    for (size_t i = 0; i < sizeof ends / sizeof ends[0]; i++) {
        char text[8];
        (void)snprintf(text, sizeof text, "%s", ends[i].from);
        dp_text_mend_end(text);
        assert_string_equal(text, ends[i].to);
    }
}

/* The values of other programs: files and tables depend on them. */
static void hashes_are_the_published_ones(void **state)
{
    assert_true(dp_hash_text("") == UINT64_C(0xcbf29ce484222325));
    assert_true(dp_hash_text("a") == UINT64_C(0xaf63dc4c8601ec8c));
    assert_true(dp_hash_bytes(dp_hash_text("foo"), "bar", 3) == UINT64_C(0x85944171f73967e8));
    assert_true(dp_hash_mix(DP_HASH_GOLDEN) ==
                UINT64_C(0xe220a8397b1dcdaf)); /* SplitMix64's first of seed 0 */
}

static void the_first_place_not_below(void **state)
{
    enum { MANY = 9 };
    uint64_t wide[MANY];
    uint32_t narrow[MANY];
    for (uint32_t count = 0; count <= MANY; count++) {
        for (uint32_t i = 0; i < count; i++)
            wide[i] = narrow[i] = i / 2 * 2 + 1; /* 1 1 3 3 5 5 ... */
        for (uint32_t wanted = 0; wanted < MANY + 3; wanted++) {
            uint32_t place = 0;
            while (place < count && narrow[place] < wanted)
                place++;
            assert_int_equal(dp_lower_bound_u32(narrow, count, wanted), place);
            assert_int_equal(dp_lower_bound_u64(wide, count, wanted), place);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(error_text_keeps_cause_behind_context),
        cmocka_unit_test(statuses_have_names_and_classes),
        cmocka_unit_test(numbers_are_the_whole_string_or_refused),
        cmocka_unit_test(times_have_a_unit),
        cmocka_unit_test(bf16_rounds_to_nearest_even),
        cmocka_unit_test(bf16_arrays_equal_single_values),
        cmocka_unit_test(big_endian_order_is_numeric_order),
        cmocka_unit_test(queue_hands_everything_over_in_order),
        cmocka_unit_test(what_waits_is_not_called_where_nothing_may),
        cmocka_unit_test(queue_is_bounded_and_its_waits_end),
        cmocka_unit_test(page_blocks_are_aligned_and_zero),
        cmocka_unit_test(the_log_waits_for_no_reader),
        cmocka_unit_test(hashes_are_the_published_ones),
        cmocka_unit_test(the_first_place_not_below),
        cmocka_unit_test(text_from_outside_is_made_fit_to_print),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
