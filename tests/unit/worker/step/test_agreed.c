/* Goal    whatever changes what is in a push is named; what does not change it is no matter. */
#include "tests/lib/test.h"
#include "worker/agreed.h"

#include <stdio.h>
#include <string.h>

static struct dp_cluster usual(void)
{
    return (struct dp_cluster){
        .training = {.batch = 128, .workers = 4, .push_every = 2, .epochs = 10, .seed = 5, .run = 3},
        .data = {.negatives = 4, .window = 5}};
}

/* The note of a first start against the settings of a second. */
static enum dp_status second(const struct dp_cluster *now, uint64_t digest, uint64_t examples,
                             struct dp_error *err)
{
    static char before[DP_AGREED_BYTES], text[DP_AGREED_BYTES];
    static struct dp_cluster then;
    then = usual();
    dp_agreed_text(&then, 0xabc, 60000, before);
    dp_agreed_text(now, digest, examples, text);
    return dp_agreed_check(text, before, strlen(before), now->training.run, err);
}

static void expect(struct dp_cluster *now, const char *then_text, const char *now_text)
{
    struct dp_error err = {0};
    char want[200];
    assert_int_equal(second(now, 0xabc, 60000, &err), DP_EXISTS);
    (void)snprintf(want, sizeof want, "run 3 was begun with '%s', this is '%s'", then_text, now_text);
    if (!strstr(err.text, want))
        fail_msg("'%s' lacks '%s'", err.text, want);
    assert_non_null(strstr(err.text, "give training.run a higher number"));
    *now = usual();
}

/* Planted: a setting is left out of the text. */
static void what_decides_is_compared(void **state)
{
    (void)state;
    static struct dp_cluster now;
    struct dp_error err = {0};
    now = usual();
    assert_int_equal(second(&now, 0xabc, 60000, &err), DP_OK);
    assert_int_equal(second(&now, 0xabd, 60000, &err), DP_EXISTS);
    assert_non_null(strstr(err.text, "'data 0000000000000abc', this is 'data 0000000000000abd'"));
    assert_int_equal(second(&now, 0xabc, 6000, &err), DP_EXISTS);
    now.training.batch = 64;
    expect(&now, "batch 128", "batch 64");
    now.training.workers = 1;
    expect(&now, "workers 4", "workers 1");
    now.training.push_every = 1;
    expect(&now, "push_every 2", "push_every 1");
    now.training.epochs = 11;
    expect(&now, "epochs 10", "epochs 11");
    now.training.seed = 6;
    expect(&now, "seed 5", "seed 6");
    now.data.negatives = 40;
    expect(&now, "negatives 4", "negatives 40");
    now.data.window = 1;
    expect(&now, "window 5", "window 1");
    now.training.rate = 0.5;
    now.training.fetch_every = 9;
    now.training.push_every = 1; /* its numbers stand for the same minibatches */
    now.training.accumulate = 2;
    now.training.threads = 3;
    assert_int_equal(second(&now, 0xabc, 60000, &err), DP_OK);
}

/* Of another build, cut short, or nothing at all: no crash, and not the same. */
static void notes_of_any_kind(void **state)
{
    (void)state;
    static struct dp_cluster now;
    char text[DP_AGREED_BYTES], more[DP_AGREED_BYTES + 8];
    struct dp_error err = {0};
    now = usual();
    dp_agreed_text(&now, 1, 2, text);
    for (size_t size = 0; size + 1 < strlen(text); size++)
        assert_int_equal(dp_agreed_check(text, text, size, 3, &err), DP_EXISTS);
    assert_int_equal(dp_agreed_check(text, NULL, 0, 3, &err), DP_EXISTS);
    (void)snprintf(more, sizeof more, "%smore 1\n", text);
    assert_int_equal(dp_agreed_check(text, more, strlen(more), 3, &err), DP_EXISTS);
    memset(more, 'x', sizeof more);
    assert_int_equal(dp_agreed_check(text, more, sizeof more, 3, &err), DP_EXISTS);
    now.training = (struct dp_cluster_training){.batch = UINT32_MAX,
                                                .workers = UINT32_MAX,
                                                .epochs = UINT32_MAX,
                                                .seed = UINT64_MAX,
                                                .push_every = UINT32_MAX};
    now.data.negatives = now.data.window = UINT32_MAX;
    dp_agreed_text(&now, UINT64_MAX, UINT64_MAX, text); /* the longest fits */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_decides_is_compared),
        cmocka_unit_test(notes_of_any_kind),
    };
    return cmocka_run_group_tests_name("agreed", tests, NULL, NULL);
}
