/* Goal    a worker that was started again goes on exactly behind what every shard has.
 * Method  a model of what servers have applied; sweep: workers, pushes an epoch, epochs, and where the worker was
 *         killed; then every push that is not done is made, and each is there once. */
#include "tests/lib/test.h"
#include "worker/history/position.h"
#include "worker/schedule/group.h"
#include "worker/schedule/push_id.h"

#include <string.h>

#define RUN        3u
#define EPOCHS_MAX 40u
#define NUMBERS    64u

struct servers {
    bool applied[EPOCHS_MAX][NUMBERS]; /* by all shards */
    uint32_t forgotten;                /* epochs below it */
    uint64_t first_missing;            /* not 0: all numbers below it were applied, and nothing else tells */
    uint32_t asked;
    enum dp_status fails;
};

static enum dp_status ask(void *context, uint64_t stream, uint64_t from, size_t count, uint64_t *bits,
                          struct dp_error *err)
{
    struct servers *servers = context;
    uint64_t epoch = stream - dp_push_stream(RUN, 0);
    servers->asked++;
    assert_true(epoch < EPOCHS_MAX && count > 0 && count <= DP_POSITION_PIECE);
    if (servers->first_missing) { /* a long epoch */
        for (size_t i = 0; i < count; i++) {
            bits[i / 64] &= ~(UINT64_C(1) << i % 64);
            bits[i / 64] |= (uint64_t)(from + i < servers->first_missing) << i % 64;
        }
        return DP_OK;
    }
    assert_true(from + count <= NUMBERS);
    if (servers->fails != DP_OK)
        return dp_fail(err, servers->fails, "shard 1 is gone");
    if (epoch < servers->forgotten)
        return dp_fail(err, DP_TOO_OLD, "forgotten");
    memset(bits, 0, (count + 63) / 64 * sizeof *bits);
    for (size_t i = 0; i < count; i++)
        if (servers->applied[epoch][from + i])
            bits[i / 64] |= UINT64_C(1) << i % 64;
    return DP_OK;
}

static struct dp_position_plan plan_of(struct servers *servers, uint32_t epochs, uint32_t worker,
                                       uint32_t workers, uint64_t groups)
{
    return (struct dp_position_plan){.run = RUN,
                                     .epochs = epochs,
                                     .worker = worker,
                                     .workers = workers,
                                     .groups = groups,
                                     .ask = ask,
                                     .context = servers};
}

/* Killed after `killed` pushes of all epochs, of which one that is not the last may lack a shard. */
static void check(uint32_t epochs, uint32_t worker, uint32_t workers, uint64_t groups, uint64_t killed,
                  uint64_t lacking)
{
    static struct servers servers;
    struct dp_position position;
    struct dp_error err = {0};
    servers = (struct servers){0};
    for (uint64_t n = 0; n < killed; n++)
        if (n != lacking)
            servers.applied[n / groups][dp_push_number(worker, workers, n % groups)] = true;
    for (uint32_t e = 0; e < epochs; e++) /* the others are elsewhere */
        for (uint32_t n = 0; n < NUMBERS; n++)
            if (n % workers != worker)
                servers.applied[e][n] = (e + n) % 3 != 0;
    const struct dp_position_plan plan = plan_of(&servers, epochs, worker, workers, groups);
    assert_int_equal(dp_position_find(&plan, &position, &err), DP_OK);
    assert_true(servers.asked <= 10);
    uint64_t left = 0;
    for (uint32_t e = 0; e < epochs; e++)
        for (uint64_t g = 0; g < groups; g++) {
            bool *applied = &servers.applied[e][dp_push_number(worker, workers, g)];
            assert_int_equal(dp_position_done(&position, e, g), *applied);
            left += !*applied;
        }
    uint64_t done = killed - (lacking < killed);
    assert_int_equal(position.epoch * groups + position.made, done);
    assert_int_equal(left, epochs * groups - done);
    assert_int_equal(dp_position_begun(&position), done > 0);
    if (position.epoch < epochs)
        assert_int_equal(position.epoch * groups + position.first, lacking < killed ? lacking : killed);
    dp_position_clear(&position);
}

/* Planted: one too many is skipped (bit g + 1; low = middle + 2); another worker's numbers are taken for own. */
static void goes_on_behind_what_is_done(void **state)
{
    (void)state;
    for (uint32_t workers = 1; workers <= 3; workers++)
        for (uint32_t worker = 0; worker < workers; worker++)
            for (uint64_t groups = 1; groups <= 7; groups++)
                for (uint32_t epochs = 1; epochs <= 9; epochs++)
                    for (uint64_t killed = 0; killed <= epochs * groups; killed++) {
                        check(epochs, worker, workers, groups, killed, UINT64_MAX);
                        uint64_t epoch_first = killed ? (killed - 1) / groups * groups : 0;
                        /* Two were under way: the one before the last of this epoch lacks a shard. */
                        if (killed >= 2 && killed - 2 >= epoch_first && killed % groups != 0)
                            check(epochs, worker, workers, groups, killed, killed - 2);
                    }
}

static void many_epochs_are_halved_and_forgotten_ones_are_over(void **state)
{
    (void)state;
    static struct servers servers;
    struct dp_position position;
    servers.forgotten = 20;
    for (uint32_t e = 20; e < 33; e++)
        for (uint32_t n = 0; n < 5; n++)
            servers.applied[e][n] = true;
    servers.applied[33][0] = true;
    const struct dp_position_plan plan = plan_of(&servers, 40, 0, 1, 5);
    struct dp_error err = {0};
    assert_int_equal(dp_position_find(&plan, &position, &err), DP_OK);
    assert_true(position.epoch == 33 && position.made == 1 && position.first == 1);
    assert_true(servers.asked <= 8 && err.status == DP_OK);
    assert_true(dp_position_done(&position, 3, 4) && !dp_position_done(&position, 34, 0));
    dp_position_clear(&position);
}

/* Each question is one that can be asked again by itself: a slow server does not make all of them start anew.
 * Planted: one question for all. */
static void a_long_epoch_is_asked_in_pieces(void **state)
{
    (void)state;
    static struct servers servers;
    const uint64_t groups = 3 * DP_POSITION_PIECE + 7;
    struct dp_position_plan plan = plan_of(&servers, 1, 1, 2, groups);
    for (uint64_t missing = 2; missing < 2 * groups; missing += 1500) {
        struct dp_position position;
        servers = (struct servers){.first_missing = missing};
        assert_int_equal(dp_position_find(&plan, &position, NULL), DP_OK);
        assert_int_equal(position.first, missing / 2);
        assert_int_equal(position.made, missing / 2);
        assert_int_equal(servers.asked, 1 + 7);
        dp_position_clear(&position);
    }
}

static void nothing_to_skip(void **state)
{
    (void)state;
    static struct servers servers;
    struct dp_position position;
    struct dp_position_plan plan = plan_of(&servers, 5, 1, 2, 0); /* a worker without minibatches */
    assert_int_equal(dp_position_find(&plan, &position, NULL), DP_OK);
    assert_true(position.epoch == 0 && servers.asked == 0 && !dp_position_begun(&position));
    plan.groups = 4;
    assert_int_equal(dp_position_find(&plan, &position, NULL), DP_OK);
    assert_true(position.epoch == 0 && servers.asked == 2 && !dp_position_begun(&position));
    dp_position_clear(&position);
    servers.fails = DP_TIMEOUT;
    struct dp_error err = {0};
    assert_int_equal(dp_position_find(&plan, &position, &err), DP_TIMEOUT);
    assert_string_equal(err.text, "finding the position to resume at: shard 1 is gone");
}

/* It took part in the steps below left[0], and from back[0] on below left[1], and from back[1] on: `pushed` of them. */
static void check_away(uint32_t epochs, uint64_t groups, const uint64_t left[2], const uint64_t back[2],
                       uint64_t pushed)
{
    static struct servers servers;
    struct dp_position position;
    struct dp_error err = {0};
    uint64_t all = epochs * groups, n = 0;
    servers = (struct servers){0};
    for (uint64_t step = 0; step < all; step++)
        servers.applied[step / groups][dp_push_number(1, 2, step % groups)] =
            step < left[0] || (step >= back[0] && step < left[1]) || (step >= back[1] && n++ < pushed);
    struct dp_position_plan plan = plan_of(&servers, epochs, 1, 2, groups);
    plan.from = back[1];
    plan.missed = back[0] - left[0] + back[1] - left[1];
    assert_int_equal(dp_position_find(&plan, &position, &err), DP_OK);
    assert_true(dp_position_begun(&position) == (back[1] > 0 || pushed > 0));
    uint64_t first = back[1] + pushed < all ? back[1] + pushed : all;
    assert_int_equal(position.epoch * groups + (position.epoch < epochs ? position.first : 0), first);
    for (uint64_t step = 0; step < all; step++) {
        uint32_t e = (uint32_t)(step / groups);
        bool applied = servers.applied[e][dp_push_number(1, 2, step % groups)];
        assert_int_equal(dp_position_made(&position, e, step % groups), applied);
        assert_int_equal(dp_position_done(&position, e, step % groups), applied || step < back[1]);
    }
    dp_position_clear(&position);
}

/* Planted: the search begins at the first epoch; what is below `from` counts as made; the walk back ends at the first epoch without a gap. */
static void who_was_away_goes_on_where_it_came_back(void **state)
{
    const uint32_t epochs = 4;
    (void)state;
    for (uint64_t groups = 1; groups <= 3; groups++) {
        const uint64_t all = epochs * groups, most = all + 2; /* it may come back behind the end */
        for (uint64_t a = 0; a <= all; a++)
            for (uint64_t b = a; b <= all; b++)
                for (uint64_t c = b; c <= all; c++)
                    for (uint64_t d = c; d <= most; d++)
                        for (uint64_t pushed = 0; pushed <= (d < all ? all - d : 0); pushed++)
                            check_away(epochs, groups, (const uint64_t[]){a, c}, (const uint64_t[]){b, d},
                                       pushed);
    }
}

/* As far back as it missed anything; what the servers have forgotten is not known to the step. */
static void it_asks_no_further_back_than_it_must(void **state)
{
    (void)state;
    static struct servers servers;
    struct dp_position position;
    struct dp_error err = {0};
    for (uint32_t forgotten = 0; forgotten < 2; forgotten++) {
        servers = (struct servers){.forgotten = forgotten * 12};
        for (uint32_t e = 0; e < 10; e++)
            for (uint32_t n = 0; n < 5; n++)
                servers.applied[e][n] = e * 5 + n < 48; /* left before step 48 */
        struct dp_position_plan plan = plan_of(&servers, 40, 0, 1, 5);
        plan.from = 67; /* of epoch 13 */
        plan.missed = 67 - 48;
        assert_int_equal(dp_position_find(&plan, &position, &err), DP_OK);
        assert_int_equal(position.epoch, 13);
        assert_int_equal(position.first, 2);
        assert_int_equal(position.gap_epochs, forgotten ? 1 : 4);
        assert_int_equal(position.unknown, forgotten ? 19 - 2 - 5 : 0);
        assert_true(err.status == DP_OK && servers.asked <= 8);
        assert_true(dp_position_made(&position, 3, 0) && !dp_position_made(&position, 12, 4));
        assert_int_equal(dp_position_made(&position, 10, 0), forgotten);
        dp_position_clear(&position);
    }
}

/* Where all take from one list: the epoch goes on whose numbers are not all there, whichever is missing. */
static void pushes_in_any_order(void **state)
{
    (void)state;
    static struct servers servers;
    struct dp_position position;
    struct dp_error err = {0};
    for (uint64_t missing = 0; missing < 20; missing++) {
        servers = (struct servers){.forgotten = 1};
        for (uint32_t e = 1; e < 4; e++)
            for (uint64_t n = 0; n < 20; n++)
                servers.applied[e][n] = e < 3 || n != missing;
        struct dp_position_plan plan = plan_of(&servers, 10, 0, 1, 20);
        plan.any_order = true;
        assert_int_equal(dp_position_find(&plan, &position, &err), DP_OK);
        assert_true(position.epoch == 3 && position.made == 19 && position.first == missing);
        for (uint64_t n = 0; n < 20; n++)
            assert_int_equal(dp_position_done(&position, 3, n), n != missing);
        dp_position_clear(&position);
        servers.applied[3][missing] = true;
        assert_int_equal(dp_position_find(&plan, &position, &err), DP_OK);
        assert_true(position.epoch == 4 && position.made == 0);
        dp_position_clear(&position);
        servers.fails = DP_UNAVAILABLE;
        assert_int_equal(dp_position_find(&plan, &position, &err), DP_UNAVAILABLE);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pushes_in_any_order),
        cmocka_unit_test(goes_on_behind_what_is_done),
        cmocka_unit_test(many_epochs_are_halved_and_forgotten_ones_are_over),
        cmocka_unit_test(a_long_epoch_is_asked_in_pieces),
        cmocka_unit_test(nothing_to_skip),
        cmocka_unit_test(who_was_away_goes_on_where_it_came_back),
        cmocka_unit_test(it_asks_no_further_back_than_it_must),
    };
    return cmocka_run_group_tests_name("position", tests, NULL, NULL);
}
