/* Goal    a worker that was started again goes on exactly behind what every shard has; what it made and what
 * it
 *         missed add up to its share, to the example.
 * Method  a model of what servers have applied; sweep: workers, pushes an epoch, epochs, and where the worker
 *         was killed or away; then every push that is not done is made, and each is there once. */
#include "tests/lib/test.h"
#include "worker/history/position.h"

#include <string.h>

#define RUN        3u
#define EPOCHS_MAX 40u
#define NUMBERS    64u
#define PIECE      4096u /* numbers in one question */

static struct servers {
    bool applied[EPOCHS_MAX][NUMBERS]; /* by all shards */
    uint32_t forgotten;                /* epochs below it */
    uint64_t first_missing;            /* not 0: all numbers below it were applied, and nothing else tells */
    uint32_t asked;
    enum dp_status fails;
} servers;

enum dp_status __wrap_dp_job_pushed(struct dp_job *job, uint64_t stream, uint64_t from, size_t count,
                                    uint64_t *bits, struct dp_error *err);
enum dp_status __wrap_dp_job_pushed(struct dp_job *job, uint64_t stream, uint64_t from, size_t count,
                                    uint64_t *bits, struct dp_error *err)
{
    uint64_t epoch = stream - dp_push_stream(RUN, 0);
    servers.asked++;
    assert_true(epoch < EPOCHS_MAX && count > 0 && count <= PIECE);
    assert_true(servers.first_missing || from + count <= NUMBERS);
    if (servers.fails != DP_OK)
        return dp_fail(err, servers.fails, "shard 1 is gone");
    if (epoch < servers.forgotten)
        return dp_fail(err, DP_TOO_OLD, "forgotten");
    memset(bits, 0, (count + 63) / 64 * sizeof *bits);
    for (size_t i = 0; i < count; i++) /* first_missing: a long epoch */
        if (servers.first_missing ? from + i < servers.first_missing : servers.applied[epoch][from + i])
            bits[i / 64] |= UINT64_C(1) << i % 64;
    return DP_OK;
}

/* groups: pushes of the worker in an epoch; listed: of all workers, in any order. */
static struct dp_rounds rounds_of(uint32_t worker, uint32_t workers, uint64_t groups, bool listed)
{
    return (struct dp_rounds){
        .share = {.worker = worker, .workers = workers}, .count = groups, .listed = listed ? groups : 0};
}

static enum dp_status find(uint32_t epochs, const struct dp_rounds *rounds, struct dp_seat seat,
                           struct dp_position *out, struct dp_error *err)
{
    struct dp_cluster cluster = {.training = {.run = RUN, .epochs = epochs}};
    struct dp_job job = {.cluster = &cluster};
    return dp_position_find(&job, rounds, seat, out, err);
}

static const struct dp_seat always;

/* Killed after `killed` pushes of all epochs, of which one that is not the last may lack a shard. */
static void check(uint32_t epochs, uint32_t worker, uint32_t workers, uint64_t groups, uint64_t killed,
                  uint64_t lacking)
{
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
    const struct dp_rounds rounds = rounds_of(worker, workers, groups, false);
    assert_int_equal(find(epochs, &rounds, always, &position, &err), DP_OK);
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

/* Planted: one too many is skipped (bit g + 1; low = middle + 2); another worker's numbers are taken for own.
 * */
static void goes_on_behind_what_is_done(void **state)
{
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
    struct dp_position position;
    servers = (struct servers){.forgotten = 20};
    for (uint32_t e = 20; e < 33; e++)
        for (uint32_t n = 0; n < 5; n++)
            servers.applied[e][n] = true;
    servers.applied[33][0] = true;
    const struct dp_rounds rounds = rounds_of(0, 1, 5, false);
    struct dp_error err = {0};
    assert_int_equal(find(40, &rounds, always, &position, &err), DP_OK);
    assert_true(position.epoch == 33 && position.made == 1 && position.first == 1);
    assert_true(servers.asked <= 8 && err.status == DP_OK);
    assert_true(dp_position_done(&position, 3, 4) && !dp_position_done(&position, 34, 0));
    dp_position_clear(&position);
}

/* Each question is one that can be asked again by itself: a slow server does not make all of them start anew.
 * Planted: one question for all. */
static void a_long_epoch_is_asked_in_pieces(void **state)
{
    const uint64_t groups = 3 * PIECE + 7;
    const struct dp_rounds rounds = rounds_of(1, 2, groups, false);
    for (uint64_t missing = 2; missing < 2 * groups; missing += 1500) {
        struct dp_position position;
        servers = (struct servers){.first_missing = missing};
        assert_int_equal(find(1, &rounds, always, &position, NULL), DP_OK);
        assert_int_equal(position.first, missing / 2);
        assert_int_equal(position.made, missing / 2);
        assert_int_equal(servers.asked, 1 + 7);
        dp_position_clear(&position);
    }
}

static void nothing_to_skip(void **state)
{
    struct dp_position position;
    struct dp_rounds rounds = rounds_of(1, 2, 0, false); /* a worker without minibatches */
    servers = (struct servers){0};
    assert_int_equal(find(5, &rounds, always, &position, NULL), DP_OK);
    assert_true(position.epoch == 0 && servers.asked == 0 && !dp_position_begun(&position));
    rounds.count = 4;
    assert_int_equal(find(5, &rounds, always, &position, NULL), DP_OK);
    assert_true(position.epoch == 0 && servers.asked == 2 && !dp_position_begun(&position));
    dp_position_clear(&position);
    servers.fails = DP_TIMEOUT;
    struct dp_error err = {0};
    assert_int_equal(find(5, &rounds, always, &position, &err), DP_TIMEOUT);
    assert_string_equal(err.text, "finding the position to resume at: shard 1 is gone");
}

/* It took part in the steps below left[0], and from back[0] on below left[1], and from back[1] on: `pushed`
 * of them. */
static void check_away(uint32_t epochs, uint64_t groups, const uint64_t left[2], const uint64_t back[2],
                       uint64_t pushed)
{
    struct dp_position position;
    struct dp_error err = {0};
    uint64_t all = epochs * groups, n = 0;
    servers = (struct servers){0};
    for (uint64_t step = 0; step < all; step++)
        servers.applied[step / groups][dp_push_number(1, 2, step % groups)] =
            step < left[0] || (step >= back[0] && step < left[1]) || (step >= back[1] && n++ < pushed);
    const struct dp_rounds rounds = rounds_of(1, 2, groups, false);
    const struct dp_seat seat = {back[1], back[0] - left[0] + back[1] - left[1]};
    assert_int_equal(find(epochs, &rounds, seat, &position, &err), DP_OK);
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

/* Planted: the search begins at the first epoch; what is below `from` counts as made; the walk back ends at
 * the first epoch without a gap. */
static void who_was_away_goes_on_where_it_came_back(void **state)
{
    const uint32_t epochs = 4;
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
    struct dp_position position;
    struct dp_error err = {0};
    for (uint32_t forgotten = 0; forgotten < 2; forgotten++) {
        servers = (struct servers){.forgotten = forgotten * 12};
        for (uint32_t e = 0; e < 10; e++)
            for (uint32_t n = 0; n < 5; n++)
                servers.applied[e][n] = e * 5 + n < 48; /* left before step 48 */
        const struct dp_rounds rounds = rounds_of(0, 1, 5, false);
        const struct dp_seat seat = {67 /* of epoch 13 */, 67 - 48};
        assert_int_equal(find(40, &rounds, seat, &position, &err), DP_OK);
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
    struct dp_position position;
    struct dp_error err = {0};
    for (uint64_t missing = 0; missing < 20; missing++) {
        servers = (struct servers){.forgotten = 1};
        for (uint32_t e = 1; e < 4; e++)
            for (uint64_t n = 0; n < 20; n++)
                servers.applied[e][n] = e < 3 || n != missing;
        const struct dp_rounds rounds = rounds_of(0, 2, 20, true);
        assert_int_equal(find(10, &rounds, always, &position, &err), DP_OK);
        assert_true(position.epoch == 3 && position.made == 19 && position.first == missing);
        for (uint64_t n = 0; n < 20; n++)
            assert_int_equal(dp_position_done(&position, 3, n), n != missing);
        dp_position_clear(&position);
        servers.applied[3][missing] = true;
        assert_int_equal(find(10, &rounds, always, &position, &err), DP_OK);
        assert_true(position.epoch == 4 && position.made == 0);
        dp_position_clear(&position);
        servers.fails = DP_UNAVAILABLE;
        assert_int_equal(find(10, &rounds, always, &position, &err), DP_UNAVAILABLE);
    }
}

/* ---- what it made, and what it missed */

#define EPOCHS   3u
#define BATCHES  22u /* of 4, but for the last of 3 */
#define BATCH    4u
#define EXAMPLES (BATCHES * BATCH - 1)
#define WORKERS  3u

static struct dp_rounds steps_of(uint32_t worker, uint32_t every)
{
    struct dp_cluster_training training = {
        .workers = WORKERS, .consistency = "sync", .push_every = every, .fetch_every = 1, .accumulate = 1};
    return dp_rounds_of(&training,
                        (struct dp_share){.batches = BATCHES, .worker = worker, .workers = WORKERS});
}

/* It made the steps below left, and from back on below until. */
static bool took_part(uint64_t step, uint64_t left, uint64_t back, uint64_t until)
{
    return step < left || (step >= back && step < until);
}

static struct dp_tally tally_of(const struct dp_rounds *r, uint64_t left, uint64_t back, uint64_t until,
                                uint32_t forgotten)
{
    struct dp_position position;
    servers = (struct servers){.forgotten = forgotten};
    for (uint64_t step = 0; step < EPOCHS * r->count; step++)
        servers.applied[step / r->count][dp_push_number(r->share.worker, WORKERS, step % r->count)] =
            took_part(step, left, back, until);
    assert_int_equal(find(EPOCHS, r, (struct dp_seat){back, back - left}, &position, NULL), DP_OK);
    const struct dp_tally t = dp_position_tally(&position, r, EXAMPLES, BATCH);
    assert_true(position.epoch > 0 || t.before.steps == 0);
    dp_position_clear(&position);
    return t;
}

static void adds_up(const struct dp_rounds *r, uint64_t left, uint64_t back, uint64_t until)
{
    uint64_t made[3] = {0}, missed[3] = {0};
    for (uint64_t step = 0; step < EPOCHS * r->count; step++) {
        uint64_t g = step % r->count, *to = took_part(step, left, back, until) ? made
                                            : step < back                      ? missed
                                                                               : NULL;
        if (!to || g >= r->own)
            continue;
        to[0]++;
        to[1] += dp_group_at(dp_share_positions(r->share), r->every, g).count;
        to[2] += dp_rounds_examples(r, EXAMPLES, BATCH, g);
    }
    const struct dp_tally t = tally_of(r, left, back, until, 0);
    assert_int_equal(t.before.steps + t.here.steps, made[0]);
    assert_int_equal(t.before.minibatches + t.here.minibatches, made[1]);
    assert_int_equal(dp_tally_examples(&t), made[2]);
    assert_int_equal(t.missed.steps, missed[0]);
    assert_int_equal(t.missed.minibatches, missed[1]);
    assert_int_equal(t.missed.examples, missed[2]);
}

/* Planted: the empty round counts; the short minibatch counts in full; the gap counts as made. */
static void made_and_missed_add_up(void **state)
{
    for (uint32_t every = 1; every <= 3; every += 2)
        for (uint32_t worker = 0; worker < WORKERS; worker++) {
            const struct dp_rounds r = steps_of(worker, every);
            uint64_t all = EPOCHS * r.count;
            for (uint64_t left = 0; left <= all; left++)
                for (uint64_t back = left; back <= all; back++)
                    for (uint64_t until = back; until <= all; until += 1 + until % 3)
                        adds_up(&r, left, back, until);
        }
}

/* Which ones nobody knows, but how many is known. */
static void of_forgotten_epochs_the_steps_add_up(void **state)
{
    const struct dp_rounds r = steps_of(0, 1);
    uint64_t left = 3, back = 2 * r.count + 1;
    const struct dp_tally t = tally_of(&r, left, back, back + 3, 2);
    assert_int_equal(t.before.steps, 3);
    assert_int_equal(t.here.steps, 3);
    assert_int_equal(t.missed.steps, back - left);
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
        cmocka_unit_test(made_and_missed_add_up),
        cmocka_unit_test(of_forgotten_epochs_the_steps_add_up),
    };
    return cmocka_run_group_tests_name("position", tests, NULL, NULL);
}
