/* Goal    what a worker made and what it missed add up to its share, to the example.
 * Method  positions of a worker that was away, found of a model of what servers have applied. */
#include "tests/lib/test.h"
#include "worker/history/tally.h"
#include "worker/schedule/push_id.h"

#define EPOCHS   3u
#define BATCHES  22u /* of 4, but for the last of 3 */
#define BATCH    4u
#define EXAMPLES (BATCHES * BATCH - 1)
#define WORKERS  3u
#define RUN      1u

/* Pushes that were made: of the steps below left, and from back on below until. */
struct servers {
    const struct dp_rounds *rounds;
    uint64_t left, back, until;
    uint32_t forgotten;
};

static bool was_made(const struct servers *s, uint64_t step)
{
    return step < s->left || (step >= s->back && step < s->until);
}

static enum dp_status ask(void *context, uint64_t stream, uint64_t from, size_t count, uint64_t *bits,
                          struct dp_error *err)
{
    const struct servers *s = context;
    uint64_t epoch = stream - dp_push_stream(RUN, 0);
    if (epoch < s->forgotten)
        return dp_fail(err, DP_TOO_OLD, "forgotten");
    for (size_t i = 0; i < (count + 63) / 64; i++)
        bits[i] = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t number = from + i, worker = s->rounds->share.worker;
        if (number % WORKERS == worker && was_made(s, epoch * s->rounds->count + number / WORKERS))
            bits[i / 64] |= UINT64_C(1) << i % 64;
    }
    return DP_OK;
}

static struct dp_rounds rounds_of(uint32_t worker, uint32_t every)
{
    struct dp_cluster_training training = {
        .workers = WORKERS, .consistency = "sync", .push_every = every, .fetch_every = 1, .accumulate = 1};
    return dp_rounds_of(&training,
                        (struct dp_share){.batches = BATCHES, .worker = worker, .workers = WORKERS});
}

static void find(struct servers *s, struct dp_position *position)
{
    const struct dp_position_plan plan = {.run = RUN,
                                          .epochs = EPOCHS,
                                          .worker = s->rounds->share.worker,
                                          .workers = WORKERS,
                                          .groups = s->rounds->count,
                                          .from = s->back,
                                          .missed = s->back - s->left,
                                          .ask = ask,
                                          .context = s};
    struct dp_error err = {0};
    assert_int_equal(dp_position_find(&plan, position, &err), DP_OK);
}

static void adds_up(struct servers *s)
{
    const struct dp_rounds *r = s->rounds;
    struct dp_position position;
    uint64_t made[3] = {0}, missed[3] = {0};
    find(s, &position);
    for (uint64_t step = 0; step < EPOCHS * r->count; step++) {
        uint64_t g = step % r->count, *to = was_made(s, step) ? made : step < s->back ? missed : NULL;
        if (!to || g >= r->own)
            continue;
        to[0]++;
        to[1] += dp_group_at(dp_share_positions(r->share), r->every, g).count;
        to[2] += dp_rounds_examples(r, EXAMPLES, BATCH, g);
    }
    const struct dp_tally t = dp_tally_of(&position, r, EXAMPLES, BATCH);
    assert_int_equal(t.before.steps + t.here.steps, made[0]);
    assert_int_equal(t.before.minibatches + t.here.minibatches, made[1]);
    assert_int_equal(dp_tally_examples(&t), made[2]);
    assert_int_equal(t.missed.steps, missed[0]);
    assert_int_equal(t.missed.minibatches, missed[1]);
    assert_int_equal(t.missed.examples, missed[2]);
    assert_true(position.epoch > 0 || t.before.steps == 0);
    dp_position_clear(&position);
}

/* Planted: the empty round counts; the short minibatch counts in full; the gap counts as made. */
static void made_and_missed_add_up(void **state)
{
    (void)state;
    for (uint32_t every = 1; every <= 3; every += 2)
        for (uint32_t worker = 0; worker < WORKERS; worker++) {
            const struct dp_rounds r = rounds_of(worker, every);
            uint64_t all = EPOCHS * r.count;
            for (uint64_t left = 0; left <= all; left++)
                for (uint64_t back = left; back <= all; back++)
                    for (uint64_t until = back; until <= all; until += 1 + until % 3) {
                        struct servers s = {.rounds = &r, .left = left, .back = back, .until = until};
                        adds_up(&s);
                    }
        }
}

/* Which ones nobody knows, but how many is known. */
static void of_forgotten_epochs_the_steps_add_up(void **state)
{
    (void)state;
    const struct dp_rounds r = rounds_of(0, 1);
    struct servers s = {
        .rounds = &r, .left = 3, .back = 2 * r.count + 1, .until = 2 * r.count + 4, .forgotten = 2};
    struct dp_position position;
    find(&s, &position);
    const struct dp_tally t = dp_tally_of(&position, &r, EXAMPLES, BATCH);
    assert_int_equal(t.before.steps, 3);
    assert_int_equal(t.here.steps, 3);
    assert_int_equal(t.missed.steps, s.back - s.left);
    dp_position_clear(&position);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(made_and_missed_add_up),
        cmocka_unit_test(of_forgotten_epochs_the_steps_add_up),
    };
    return cmocka_run_group_tests_name("tally", tests, NULL, NULL);
}
