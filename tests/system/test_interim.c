/* Goal    report.json tells what a training has reached while it goes on, and when it is stopped; that it cannot be written stops nothing.
 * Method  trainings that would not end by themselves, their report read again and again. Every epoch in it is whole: of all examples, with
 *         all figures. */
#include "tests/lib/test.h"

#include "tests/system/place.h"

#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define EXAMPLES 1437 /* of the digits, which both workers share */

static struct dp_process *start(struct dp_place *place, const char *report, const char *test)
{
    return dp_place_start(place, "downpour", "run", "--dir", dp_place_path(place, "run"), "--report", report,
                          "--servers", "2", "--workers", "2", "--model", "mlp:64-64-10", "--train",
                          DP_DIGITS_TRAIN, "--scale", "0.0625", "--batch", "16", "--rate", "0.0001",
                          "--epochs", "100000", "--durability", "process", "--journal-bytes", "16MiB",
                          test ? "--test" : NULL, test, NULL);
}

/* Those in the report, 0 where there is none, or not of this training yet; each of them is whole. */
static uint32_t epochs_in(struct dp_place *place, const char *report, bool tested)
{
    static const char key[] = "\"epoch\": ";
    uint32_t n = 0;
    if (access(report, R_OK) != 0)
        return 0;
    /* Read once: it is replaced at any time. */
    const char *copy = dp_place_path(place, "seen.json");
    size_t size;
    char *text = dp_place_read(place, report, &size);
    (void)dp_place_file(place, "seen.json", text, size);
    for (const char *at = text; (at = strstr(at, key)); at += sizeof key - 1)
        n++;
    assert_null(strstr(text, "\"finished\": true"));
    assert_null(strstr(text, "\"final\""));
    for (uint32_t e = 0; e < n; e += e + 3 < n ? n / 3 : 1) {
        const char *at = dp_place_text(place, "epochs.%u", e);
        assert_true(dp_place_number(place, copy, dp_place_text(place, "%s.epoch", at)) == e + 1);
        assert_true(dp_place_number(place, copy, dp_place_text(place, "%s.examples", at)) == EXAMPLES);
        assert_true(dp_place_number(place, copy, dp_place_text(place, "%s.train_loss", at)) > 0);
        assert_true(dp_place_number(place, copy, dp_place_text(place, "%s.examples_per_s", at)) > 0);
        if (tested)
            assert_true(dp_place_number(place, copy, dp_place_text(place, "%s.test.examples", at)) == 360);
    }
    return n;
}

/* Until it has so many; it never has fewer than before. Returns how many it has. */
static uint32_t await_more(struct dp_place *place, const char *report, uint32_t before, uint32_t least,
                           bool tested)
{
    uint64_t until = dp_process_now_ms() + (uint64_t)DP_SOON_MS * DP_PATIENCE;
    for (uint32_t n = 0; n < least; before = n) {
        n = epochs_in(place, report, tested);
        if (n < before)
            fail_msg("the report had %u epochs, and now %u", before, n);
        if (dp_process_now_ms() > until)
            fail_msg("the report has %u epochs, not %u", n, least);
        dp_process_pause();
    }
    return before;
}

static uint32_t await_epochs(struct dp_place *place, const char *report, uint32_t least, bool tested)
{
    return await_more(place, report, 0, least, tested);
}

/* By Ctrl-C: the report has all that was evaluated, and says so. */
static void stop(struct dp_place *place, struct dp_process *run, const char *report, bool tested)
{
    dp_process_signal(run, SIGINT);
    dp_place_ended(run, 130);
    uint32_t n = epochs_in(place, report, tested);
    assert_non_null(strstr(dp_place_read(place, report, NULL), "\"ended\": \"stopped\""));
    const char *log = dp_place_read(place, dp_place_path(place, "run/log/worker-0.log"), NULL);
    assert_non_null(strstr(log, dp_place_text(place, "epoch %u of 100000, own share", n)));
    if (tested) {
        assert_non_null(strstr(log, dp_place_text(place, "epoch %u, test: ", n)));
        assert_null(strstr(log, dp_place_text(place, "epoch %u, test: ", n + 1)));
    }
}

static void it_is_there_while_it_trains(void **state)
{
    struct dp_place *place = *state;
    const char *report = dp_place_path(place, "r.json");
    struct dp_process *run = start(place, report, DP_DIGITS_TEST);
    (void)await_epochs(place, report, 5, true);
    assert_null(strstr(dp_place_read(place, report, NULL), "\"ended\""));
    stop(place, run, report, true);
}

/* Without a set nobody rests: an epoch is there when both have ended it. */
static void without_a_set(void **state)
{
    struct dp_place *place = *state;
    const char *report = dp_place_path(place, "r.json");
    struct dp_process *run = start(place, report, NULL);
    (void)await_epochs(place, report, 5, false);
    stop(place, run, report, false);
}

/* With the first server go the notes by which the others told theirs, and test figures of before. */
static void worker_0_is_killed(void **state)
{
    struct dp_place *place = *state;
    const char *report = dp_place_path(place, "r.json");
    for (unsigned i = 0; i < 4; i++) {
        bool tested = i % 2 == 0;
        struct dp_process *run = start(place, report, tested ? DP_DIGITS_TEST : NULL);
        uint32_t n = await_epochs(place, report, 3, tested);
        if (i / 2 == 1) {
            dp_place_kill_child(run, "--server 0");
            tested = false;
        }
        dp_place_kill_child(run, "--worker 0");
        n = epochs_in(place, report,
                      tested); /* all that the dead one wrote: the next ones are its successor's */
        await_more(place, report, n, n + 3, tested);
        stop(place, run, report, tested);
        (void)dp_place_try(place, 0, "/bin/rm", "-r", dp_place_path(place, "run"), report);
    }
}

static void it_cannot_be_written_for_a_while(void **state)
{
    struct dp_place *place = *state;
    const char *report = dp_place_path(place, "there/r.json"),
               *log = dp_place_path(place, "run/log/worker-0.log");
    (void)dp_place_try(place, 0, "/bin/mkdir", dp_place_path(place, "there"));
    struct dp_process *run = start(place, report, DP_DIGITS_TEST);
    uint32_t n = await_epochs(place, report, 2, true);
    assert_int_equal(rename(dp_place_path(place, "there"), dp_place_path(place, "gone")), 0);
    dp_place_awaits_file(place, log, "training continues, and will try to write the next report");
    assert_int_equal(rename(dp_place_path(place, "gone"), dp_place_path(place, "there")), 0);
    (void)await_epochs(place, report, n + 3, true);
    stop(place, run, report, true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(it_is_there_while_it_trains, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(without_a_set, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(worker_0_is_killed, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(it_cannot_be_written_for_a_while, dp_place_setup, dp_place_teardown),
    };
    return cmocka_run_group_tests_name("interim", tests, NULL, NULL);
}
