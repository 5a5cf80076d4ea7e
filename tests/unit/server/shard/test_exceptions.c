/* Pushes of which a restored store has some keys: random ranges of random keys, in the store's mark. Pushed again, each key that no
 * range has changes once, the others never; over crashes, a restart, resends, and as the positions tell. */
#include "tests/unit/server/shard/bed.h"

#include "server/durable/push_ids.h"
#include "tests/lib/patience.h"

#include <stdlib.h>

#define KEYS   24u
#define STEP   (UINT64_MAX / KEYS)
#define STREAM UINT64_C(7)

struct excepted {
    struct bed bed;
    uint64_t random, sequence;
    uint64_t key[KEYS];
    float want[KEYS];
    bool has[KEYS]; /* the store, of the push */
};

static uint32_t draw(struct excepted *e, uint32_t below)
{
    e->random = e->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (uint32_t)(e->random >> 33) % below;
}

static void meet(struct excepted *e)
{
    bed_meet(&e->bed, 1);
    e->sequence = 1;
}

/* Push 0 of the stream is an exception: of the keys that `has` says, each a range around it, or one with the next. */
static void except(struct excepted *e)
{
    struct dp_push_ids *ids = NULL;
    struct dp_error err = {0};
    size_t size;
    assert_int_equal(dp_push_ids_new(&ids), DP_OK);
    for (uint32_t i = 0; i < KEYS; i++) {
        struct dp_push_exception one = {STREAM, 0, {e->key[i] - draw(e, 3), e->key[i]}};
        while (i + 1 < KEYS && e->has[i] && e->has[i + 1])
            one.has.last = e->key[++i];
        if (e->has[i])
            assert_int_equal(dp_push_ids_except(ids, &one, &err), DP_OK);
    }
    void *bytes = dp_push_ids_pack(ids, &size);
    const struct dp_store_mark mark = {.key = "ids", .key_bytes = 3, .value = bytes, .value_bytes = size};
    bed_restart_on(&e->bed, &mark);
    free(bytes);
    dp_push_ids_free(&ids);
    meet(e);
}

static void crash(struct excepted *e)
{
    shard_bed_close(&e->bed.host);
    dp_sim_disk_restart(e->bed.host.sim, DP_SIM_PROCESS);
    e->bed.host.options.recovers = true;
    bed_open_shard(&e->bed);
    bed_turn(&e->bed);
    meet(e);
}

static void check(struct excepted *e)
{
    for (uint32_t i = 0; i < KEYS; i++) {
        float value = bed_value(&e->bed, 1, e->sequence++, e->key[i]);
        if (value < e->want[i] || value > e->want[i])
            bed_fail(&e->bed, "key %u: %g instead of %g", i, (double)value, (double)e->want[i]);
    }
}

static void push(struct excepted *e)
{
    uint64_t id = bed_push(&e->bed, 1, e->sequence++, "t", e->key, KEYS, 2, 1, STREAM, 0);
    bed_turn(&e->bed);
    (void)bed_expect(&e->bed, id, DP_OK);
}

static void disturb(struct excepted *e)
{
    uint32_t what = draw(e, 3);
    if (what == 0)
        crash(e);
    if (what == 1) {
        bed_restart(&e->bed);
        meet(e);
    }
}

static void run_seed(uint64_t seed)
{
    struct excepted *e = calloc(1, sizeof *e);
    assert_non_null(e);
    e->random = seed;
    bed_init(&e->bed, 64);
    bed_journal(&e->bed, seed);
    e->bed.seed = seed;
    bed_open_shard(&e->bed);
    meet(e);
    const struct dp_table_spec spec = bed_sgd("t", 2);
    bed_make_table(&e->bed, 1, e->sequence++, &spec);
    uint32_t share = draw(e, 4);
    for (uint32_t i = 0; i < KEYS; i++) {
        e->key[i] = 100 + i * STEP;
        e->has[i] = share == 0 || draw(e, share + 1) > 0; /* all, or some */
    }
    except(e);
    disturb(e); /* the exception is the store's */
    check(e);
    push(e);
    for (uint32_t i = 0; i < KEYS; i++)
        e->want[i] -= e->has[i] ? 0.0f : 1.0f;
    check(e);
    disturb(e);
    check(e);
    push(e); /* a resend */
    check(e);
    bed_restart(&e->bed);
    meet(e);
    push(e);
    check(e);
    bed_close(&e->bed);
    free(e);
}

static void keys_that_are_there_are_passed_over(void **state)
{
    (void)state;
    const char *one = getenv("DP_TEST_SEED");
    for (uint64_t seed = 1; !one && seed <= DP_SEEDS(60); seed++)
        run_seed(seed);
    if (one)
        run_seed(strtoull(one, NULL, 10));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_that_are_there_are_passed_over),
    };
    return cmocka_run_group_tests_name("exceptions of a shard", tests, NULL, NULL);
}
