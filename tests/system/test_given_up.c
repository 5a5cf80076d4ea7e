/* A synchronous run that was given up within a step: the next run, whose workers are no members, is not held up by what the shards
 * keep of it. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <signal.h>
#include <string.h>

static struct dp_process *start(struct dp_place *place, const char *mode, const char *epochs,
                                const char *more)
{
    return dp_place_start(place, "downpour", "run", "--dir", dp_place_path(place, "run"), "--servers", "2",
                          "--workers", "2", "--model", "mlp:64-32-10", "--train", DP_DIGITS_TRAIN, "--scale",
                          "0.0625", "--batch", "8", "--durability", "process", "--consistency", mode,
                          "--epochs", epochs, more, NULL);
}

static const char *state_of(struct dp_place *place)
{
    return dp_process_out(dp_place_try(place, 0, "downpour", "inspect",
                                       dp_place_path(place, "run/store/server-0"),
                                       dp_place_path(place, "run/store/server-1")));
}

static void an_asynchronous_run_goes_on_from_it(void **state)
{
    struct dp_place *place = *state;
    struct dp_process *run = start(place, "sync", "100000", NULL);
    dp_place_awaits(run, "/100000 ");
    dp_process_signal(run, SIGINT);
    dp_place_ended(run, 130);
    assert_non_null(strstr(state_of(place), "in use or killed")); /* its journal is kept */
    run = start(place, "async", "1", "--continue");
    dp_place_ended(run, 0);
    const char *text = state_of(place);
    assert_null(strstr(text, "in use or killed"));
    assert_non_null(strstr(text, "closed cleanly"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(an_asynchronous_run_goes_on_from_it, dp_place_setup,
                                        dp_place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
