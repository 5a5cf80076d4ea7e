/* Whether a store is the cluster's: every case, what becomes of it, and that copies are told apart through lives of a store. */
#include "server/identity.h"

#include "tests/lib/test.h"

#include <stdlib.h>
#include <string.h>

enum { SHARDS = 3, SHARD = 1, REGISTER = 7, ID = 100, OPENED = 31 };

struct row {
    const char *name;
    struct dp_store_id found;
    bool is_new;
    uint64_t id, opening; /* that the register knows */
    enum dp_identity verdict;
    const char *text[2]; /* of the refusal */
};

#define FOUND(id_, register_, opening_, before_)                                                             \
    {                                                                                                        \
        .id = id_, .register_id = register_, .opening = opening_, .before = before_                          \
    }

static const struct row rows[] = {
    {"a new cluster", {0}, true, 0, 0, DP_IDENTITY_JOINS, {NULL}},
    {"of a build before ids", {0}, false, 0, 0, DP_IDENTITY_JOINS, {NULL}},
    {"ended before it was registered", FOUND(ID, REGISTER, 30, 0), false, 0, 0, DP_IDENTITY_JOINS, {NULL}},
    {"closed and opened again",
     FOUND(ID, REGISTER, OPENED, OPENED),
     false,
     ID,
     OPENED,
     DP_IDENTITY_KNOWN,
     {NULL}},
    {"an opening ended before it was registered",
     FOUND(ID, REGISTER, 32, OPENED),
     false,
     ID,
     OPENED,
     DP_IDENTITY_KNOWN,
     {NULL}},
    {"lost",
     {0},
     true,
     ID,
     OPENED,
     DP_IDENTITY_LOST,
     {"there is no store in /stores/shard-0001", "start this shard empty"}},
    {"another",
     FOUND(ID + 1, REGISTER, OPENED, 30),
     false,
     ID,
     OPENED,
     DP_IDENTITY_OTHER,
     {"another store", "Put the right one"}},
    {"another, of a build before ids", {0}, false, ID, OPENED, DP_IDENTITY_OTHER, {"another store", NULL}},
    {"an older copy",
     FOUND(ID, REGISTER, 29, 29),
     false,
     ID,
     OPENED,
     DP_IDENTITY_OLDER,
     {"or server 0's store, with the register, is an older copy",
      "or copies of all servers' stores from one time"}},
    {"never opened, and its copy was",
     FOUND(ID, REGISTER, 0, 0),
     false,
     ID,
     OPENED,
     DP_IDENTITY_OLDER,
     {"opened last", NULL}},
    {"the register is an older copy, of the opening before",
     FOUND(ID, REGISTER, 33, 33),
     false,
     ID,
     OPENED,
     DP_IDENTITY_OLDER,
     {"register", NULL}},
    {"a register of before it joined",
     FOUND(ID, REGISTER, 33, 32),
     false,
     0,
     0,
     DP_IDENTITY_REGISTER_OLDER,
     {"server 0's store, with the register, is an older copy", "Put server 0's latest store back"}},
    {"a new register",
     FOUND(ID, 8, OPENED, 30),
     false,
     0,
     0,
     DP_IDENTITY_REGISTER_OTHER,
     {"known to register", "first server"}},
    {"another cluster's register",
     FOUND(ID, 8, OPENED, 30),
     false,
     ID,
     OPENED,
     DP_IDENTITY_REGISTER_OTHER,
     {"known to register", NULL}},
};

static void each_case(void **state)
{
    struct dp_stores *stores = calloc(1, sizeof *stores);
    assert_non_null(stores);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        const struct row *row = &rows[i];
        struct dp_error err = {0};
        *stores = (struct dp_stores){.register_id = REGISTER, .shards = SHARDS};
        stores->shard[SHARD].id = row->id;
        stores->shard[SHARD].opening = row->opening;
        const struct dp_identity_case it = {
            .found = row->found, .is_new = row->is_new, .shard = SHARD, .stores = stores};
        enum dp_identity verdict = dp_identity_judge(&it);
        if (verdict != row->verdict)
            fail_msg("%s: %d, not %d", row->name, (int)verdict, (int)row->verdict);
        struct dp_store_id next = dp_identity_next(&it, verdict, 50);
        assert_true(next.register_id == REGISTER && next.opening == 50 && next.before == row->opening);
        assert_true(next.id != 0);
        bool keeps = !dp_identity_is_refused(verdict) && row->found.id != 0;
        assert_int_equal(next.id == row->found.id, keeps);
        if (!dp_identity_is_refused(verdict))
            continue;
        assert_int_equal(dp_identity_refuse(&it, verdict, "/stores/shard-0001", &err), DP_GENERATION);
        const char *const always[] = {"shard 1", "/stores/shard-0001", "--replace-store",
                                      dp_identity_loss(verdict)};
        for (size_t t = 0; t < 4; t++)
            if (!strstr(err.text, always[t]))
                fail_msg("%s: no '%s' in: %s", row->name, always[t], err.text);
        for (size_t t = 0; t < 2 && row->text[t]; t++)
            if (!strstr(err.text, row->text[t]))
                fail_msg("%s: no '%s' in: %s", row->name, row->text[t], err.text);
    }
    free(stores);
}

/* A server that the restore did not reach has no store, or an earlier one. It must not begin empty. */
static void a_restored_cluster(void **state)
{
    struct dp_stores *stores = calloc(1, sizeof *stores);
    struct dp_error err = {0};
    assert_non_null(stores);
    *stores = (struct dp_stores){.register_id = REGISTER, .shards = SHARDS};
    struct dp_identity_case it = {.is_new = true, .is_restored = true, .shard = SHARD, .stores = stores};
    assert_int_equal(dp_identity_judge(&it), DP_IDENTITY_LOST);
    assert_int_equal(dp_identity_refuse(&it, DP_IDENTITY_LOST, "/stores/shard-0001", &err), DP_GENERATION);
    assert_non_null(strstr(err.text, "the restore did not reach this server"));
    it.is_new = false;
    assert_int_equal(dp_identity_judge(&it), DP_IDENTITY_JOINS);
    free(stores);
}

/* ---- lives of a store: openings that end anywhere, and copies of any moment */

enum { COPIES = 4, STEPS = 4000 };

struct life {
    struct dp_stores *stores;
    struct dp_store_id copy[COPIES];
    int last; /* the copy that was opened last, and registered */
    uint64_t random, opening;
};

static uint32_t draw(struct life *life, uint32_t below)
{
    life->random ^= life->random << 13;
    life->random ^= life->random >> 7;
    life->random ^= life->random << 17;
    return (uint32_t)(life->random % below);
}

/* Opened as server/registration.c does, its process ended at any of the steps. */
static void open_one(struct life *life, int at)
{
    const struct dp_identity_case it = {.found = life->copy[at], .shard = SHARD, .stores = life->stores};
    enum dp_identity verdict = dp_identity_judge(&it);
    bool same = life->copy[at].id == life->copy[life->last].id &&
                life->copy[at].opening == life->copy[life->last].opening &&
                life->copy[at].before == life->copy[life->last].before;
    if (at == life->last)
        assert_int_equal(verdict, DP_IDENTITY_KNOWN); /* wherever its last openings ended */
    else if (!same && life->copy[at].opening != life->stores->shard[SHARD].opening &&
             life->copy[at].before != life->stores->shard[SHARD].opening)
        assert_int_equal(verdict, DP_IDENTITY_OLDER);
    if (verdict != DP_IDENTITY_KNOWN || draw(life, 5) == 0)
        return;
    life->copy[at] = dp_identity_next(&it, verdict, ++life->opening);
    if (draw(life, 3) == 0)
        return;
    life->stores->shard[SHARD].opening = life->copy[at].opening;
    life->last = at;
    if (draw(life, 4) > 0)
        life->copy[at].before = life->copy[at].opening;
}

static void of_copies_one_goes_on(void **state)
{
    struct life life = {
        .random = 88172645463325252u, .opening = 10, .stores = calloc(1, sizeof *life.stores)};
    uint32_t refused = 0;
    assert_non_null(life.stores);
    *life.stores = (struct dp_stores){.register_id = REGISTER, .shards = SHARDS};
    life.stores->shard[SHARD].id = ID;
    life.stores->shard[SHARD].opening = 10;
    for (int i = 0; i < COPIES; i++)
        life.copy[i] = (struct dp_store_id){.id = ID, .register_id = REGISTER, .opening = 10, .before = 9};
    for (int step = 0; step < STEPS; step++) {
        int at = (int)draw(&life, COPIES);
        if (draw(&life, 40) == 0 && at != life.last)
            life.copy[at] = life.copy[life.last];
        uint64_t before = life.copy[at].opening;
        open_one(&life, at);
        refused += at != life.last && life.copy[at].opening == before;
        /* A refused copy stays refused: no number of tries lets it in. */
        const struct dp_identity_case it = {.found = life.copy[at], .shard = SHARD, .stores = life.stores};
        if (dp_identity_judge(&it) == DP_IDENTITY_OLDER)
            for (int again = 0; again < 3; again++) {
                open_one(&life, at);
                assert_int_equal(dp_identity_judge(&it), DP_IDENTITY_OLDER);
            }
    }
    assert_in_range(refused, STEPS / 10, STEPS);
    free(life.stores);
}

/* ---- the value */

static void the_value_comes_back(void **state)
{
    struct dp_stores *is = calloc(1, sizeof *is), *got = calloc(1, sizeof *got);
    char *bytes = malloc(DP_STORES_BYTES_MAX);
    struct dp_error err = {0};
    assert_true(is && got && bytes);
    for (uint32_t shards = 1; shards <= DP_STORES_SHARDS_MAX; shards = shards * 2 + 1) {
        *is = (struct dp_stores){.shards = shards};
        for (uint32_t i = 0; i < shards; i++) {
            is->shard[i].id = i * UINT64_C(0x9e3779b97f4a7c15);
            is->shard[i].opening = ~is->shard[i].id;
        }
        size_t size = dp_stores_encode(is, bytes);
        assert_true(size <= 64u << 10);
        assert_int_equal(dp_stores_decode(bytes, size, shards, got, &err), DP_OK);
        assert_memory_equal(is, got, sizeof *is);
        assert_int_equal(dp_stores_decode(bytes, size - 1, shards, got, &err), DP_CORRUPT);
        assert_int_equal(dp_stores_decode(bytes, size, shards == 1 ? 2 : shards - 1, got, &err), DP_EXISTS);
    }
    bytes[0] = 2;
    assert_int_equal(dp_stores_decode(bytes, 24, 1, got, &err), DP_UNSUPPORTED);
    assert_int_equal(dp_stores_decode(bytes, 3, 1, got, &err), DP_UNSUPPORTED);
    assert_int_equal(dp_stores_decode(NULL, 0, 2, got, &err), DP_OK);
    assert_true(got->shards == 2 && got->shard[0].id == 0 && got->shard[1].id == 0);
    free(bytes);
    free(got);
    free(is);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_case),
        cmocka_unit_test(a_restored_cluster),
        cmocka_unit_test(of_copies_one_goes_on),
        cmocka_unit_test(the_value_comes_back),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
