/* An idle journal claims its last records: damage to them is refused then. Without the claim it is cut, and what was cut is
 * told. */
#include "server/journal/journal_record.h"
#include "tests/lib/test.h"
#include "tests/unit/server/journal/journal_world.h"

#include <inttypes.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define WAIT_MS 20000u

static struct world world;

static struct dp_journal_figures figures(void)
{
    struct dp_journal_figures f;
    dp_journal_figures(world.journal, &f);
    return f;
}

/* The file and offset of the last header that fits; NULL: there is none. */
static uint8_t *find(enum dp_journal_kind kind, uint64_t lsn, char name[32], uint64_t *offset)
{
    uint8_t *found = NULL;
    for (uint64_t number = 1; number < 64; number++) {
        char one[32];
        uint64_t bytes;
        struct dp_journal_header header;
        (void)snprintf(one, sizeof one, "journal-%016" PRIx64, number);
        uint8_t *data = dp_sim_disk_bytes(world.sim, one, &bytes);
        for (uint64_t at = DP_JOURNAL_PAGE; data && at + DP_JOURNAL_HEADER <= bytes; at += DP_JOURNAL_HEADER)
            if (dp_journal_header_take(data + at, &header) && header.kind == kind && header.lsn == lsn) {
                memcpy(name, one, sizeof one);
                *offset = at;
                found = data + at;
            }
    }
    return found;
}

/* Three rounds of one record each, then the process is gone. */
static void three_rounds(enum dp_durability durability, bool claim)
{
    world_init(&world, 21, durability);
    world_recover(&world, 0);
    for (uint32_t i = 0; i < 3; i++) {
        assert_int_equal(world_append(&world, 300), DP_OK);
        assert_int_equal(world_commit(&world), DP_OK);
    }
    if (claim) {
        world_claim(&world);
        assert_int_equal(figures().claimed_lsn, 3);
    }
    world_crash(&world, DP_SIM_PROCESS);
}

static size_t payload_of(const uint8_t *record)
{
    struct dp_journal_header header;
    assert_true(dp_journal_header_take(record, &header));
    return (size_t)header.bytes;
}

/* Every bit of the last record, its payload's too. */
static void a_claimed_record_is_refused(void **state)
{
    for (uint32_t mode = 0; mode < 2; mode++) {
        char name[32];
        uint64_t offset;
        three_rounds(mode ? DP_DURABILITY_PROCESS : DP_DURABILITY_MACHINE, true);
        uint8_t *record = find(DP_JOURNAL_RECORD, 3, name, &offset);
        size_t bits = 8 * (DP_JOURNAL_HEADER + payload_of(record));
        for (size_t bit = 0; bit < bits; bit++) {
            struct dp_error err = {0};
            char wanted[64];
            record[bit / 8] ^= (uint8_t)(1u << bit % 8);
            assert_int_equal(world_open(&world, &err), DP_CORRUPT);
            (void)snprintf(wanted, sizeof wanted, "%s, offset %" PRIu64, name, offset);
            assert_non_null(strstr(err.text, wanted));
            assert_non_null(strstr(err.text, "lsn 3 is damaged"));
            assert_int_equal(world.replayed, 0);
            record[bit / 8] ^= (uint8_t)(1u << bit % 8);
        }
        world_recover(&world, 0);
        assert_int_equal(world.last, 3);
        world_clear(&world);
    }
}

/* What the claim replaces: the same bits without it take the record away. It is said where, and what. */
static void an_unclaimed_record_is_cut_and_told(void **state)
{
    for (size_t bit = 0; bit < 8 * (DP_JOURNAL_HEADER + 64); bit += 5) {
        char name[32], text[DP_JOURNAL_CUT_TEXT];
        uint64_t offset;
        struct dp_error err = {0};
        three_rounds(DP_DURABILITY_MACHINE, false);
        uint8_t *record = find(DP_JOURNAL_RECORD, 3, name, &offset);
        uint64_t whole = dp_journal_record_bytes(payload_of(record));
        record[bit / 8] ^= (uint8_t)(1u << bit % 8);
        world.durable = world.synced = 2;
        assert_int_equal(world_open(&world, &err), DP_OK);
        assert_int_equal(world.last, 2);
        struct dp_journal_cut cut = figures().cut;
        assert_int_equal(cut.rest, DP_JOURNAL_REST_RECORDS);
        assert_int_equal(cut.lsn, 3);
        assert_int_equal(cut.offset, offset);
        assert_in_range(cut.bytes, DP_JOURNAL_HEADER, whole);
        assert_true(bit / 8 < DP_JOURNAL_HEADER || cut.bytes == whole);
        dp_journal_cut_text(&cut, text);
        assert_non_null(strstr(text, name));
        assert_non_null(strstr(text, "lsn 3 "));
        world_clear(&world);
    }
}

/* Damage to the claim itself takes nothing away. */
static void a_damaged_claim_is_harmless(void **state)
{
    for (size_t bit = 0; bit < 8 * DP_JOURNAL_HEADER; bit++) {
        char name[32];
        uint64_t offset;
        three_rounds(DP_DURABILITY_MACHINE, true);
        find(DP_JOURNAL_PAD, 3, name, &offset)[bit / 8] ^= (uint8_t)(1u << bit % 8);
        world_recover(&world, 0);
        assert_int_equal(world.last, 3);
        assert_int_equal(figures().cut.rest, DP_JOURNAL_REST_UNKNOWN);
        world_clear(&world);
    }
}

/* What a crash left unclaimed, and an opening replayed, is claimed by that opening. */
static void what_was_replayed_is_claimed(void **state)
{
    char name[32];
    uint64_t offset;
    struct dp_error err = {0};
    three_rounds(DP_DURABILITY_MACHINE, false);
    world_recover(&world, 0);
    assert_int_equal(figures().claimed_lsn, 3);
    assert_int_equal(figures().cut.rest, DP_JOURNAL_REST_NONE);
    world_claim(&world);
    assert_int_equal(world.claims, 0); /* its first page says it already */
    world_crash(&world, DP_SIM_NOTHING);
    find(DP_JOURNAL_RECORD, 3, name, &offset)[70] ^= 1;
    assert_int_equal(world_open(&world, &err), DP_CORRUPT);
    assert_non_null(strstr(err.text, "lsn 3 is damaged"));
    world_clear(&world);
}

/* A segment that is full to its last byte: the page of the next one claims. */
static void a_full_segment_is_claimed_in_the_next(void **state)
{
    char name[32];
    uint64_t offset;
    struct dp_error err = {0};
    world_init(&world, 22, DP_DURABILITY_MACHINE);
    world_recover(&world, 0);
    for (uint32_t i = 1; i < WORLD_SEGMENT / DP_JOURNAL_PAGE; i++) {
        assert_int_equal(world_append(&world, 300), DP_OK);
        assert_int_equal(world_commit(&world), DP_OK);
    }
    assert_int_equal(figures().bytes_kept, WORLD_SEGMENT);
    world_claim(&world);
    assert_int_equal(figures().claimed_lsn, world.last);
    assert_int_equal(figures().bytes_kept, WORLD_SEGMENT + DP_JOURNAL_PAGE);
    assert_int_equal(world_append(&world, 300), DP_OK);
    assert_int_equal(world_commit(&world), DP_OK);
    world_crash(&world, DP_SIM_NOTHING);
    world_recover(&world, 0);
    world_crash(&world, DP_SIM_NOTHING);
    find(DP_JOURNAL_RECORD, WORLD_SEGMENT / DP_JOURNAL_PAGE - 1, name, &offset)[70] ^= 1;
    assert_int_equal(world_open(&world, &err), DP_CORRUPT);
    world_clear(&world);
}

/* No segment is made for a claim; it comes once there is one for records. */
static void no_segment_is_made_for_a_claim(void **state)
{
    world_init(&world, 23, DP_DURABILITY_MACHINE);
    world_recover(&world, 0);
    enum dp_status st;
    while ((st = world_append(&world, 1)) == DP_OK)
        assert_int_equal(world_commit(&world), DP_OK);
    assert_int_equal(st, DP_AGAIN);
    assert_int_equal(figures().bytes_kept, WORLD_BUDGET);
    uint64_t used = dp_sim_disk_used(world.sim), syncs = figures().syncs;
    world_claim(&world);
    assert_true(figures().claimed_lsn < world.last);
    assert_int_equal(figures().syncs, syncs);
    assert_int_equal(dp_sim_disk_used(world.sim), used);
    world_release(&world, world.synced - 1);
    assert_int_equal(world_commit(&world), DP_OK);
    world_claim(&world);
    assert_int_equal(figures().claimed_lsn, world.last);
    world_clear(&world);
}

static void a_failed_claim_poisons(void **state)
{
    for (uint32_t kind = 0; kind < 2; kind++) {
        struct dp_error err = {0};
        enum dp_status st;
        uint64_t lsn;
        world_init(&world, 24, DP_DURABILITY_MACHINE);
        world_recover(&world, 0);
        assert_int_equal(world_append(&world, 300), DP_OK);
        assert_int_equal(world_commit(&world), DP_OK);
        dp_sim_disk_fail(world.sim, kind ? DP_SIM_WRITE : DP_SIM_SYNC, 1, 1, DP_IO);
        dp_journal_claim(world.journal);
        assert_int_equal(dp_journal_durable(world.journal, &st, &err), 1);
        assert_int_equal(st, DP_IO);
        assert_non_null(strstr(err.text, "claim"));
        assert_int_equal(dp_journal_append(world.journal, NULL, 0, &lsn, &err), DP_IO);
        world_crash(&world, DP_SIM_NOTHING);
        world_recover(&world, 0);
        assert_int_equal(world.last, 1);
        world_clear(&world);
    }
}

/* What recycled segments held before looks like no torn record. */
static void old_records_are_no_rest(void **state)
{
    world_init(&world, 25, DP_DURABILITY_MACHINE);
    world_recover(&world, 0);
    for (uint32_t i = 0; i < 400; i++) {
        while (world_append(&world, i % 7 ? 900 : 30000) == DP_AGAIN) {
            world_release(&world, world.synced);
            (void)world_commit(&world);
        }
        (void)world_commit(&world);
        if (i % 3 == 0)
            continue;
        world_release(&world, world.synced);
        world_crash(&world, DP_SIM_PROCESS);
        world_recover(&world, 0);
        assert_true(figures().cut.rest != DP_JOURNAL_REST_RECORDS);
    }
    world_clear(&world);
}

/* ---- with a commit thread */

static void open_with_thread(enum dp_durability durability, uint32_t idle_ms)
{
    struct dp_error err = {0};
    world_init(&world, 26, durability);
    world.options.commit_thread = true;
    world.options.idle_ms = idle_ms;
    assert_int_equal(world_open(&world, &err), DP_OK);
}

static bool await_claim(uint64_t lsn)
{
    const struct timespec moment = {.tv_nsec = 1000000};
    for (uint32_t ms = 0; ms < WAIT_MS && figures().claimed_lsn < lsn; ms++)
        (void)nanosleep(&moment, NULL);
    return figures().claimed_lsn == lsn;
}

/* Once for each idle time, and nothing more is written then. */
static void the_commit_thread_claims(void **state)
{
    for (uint32_t mode = 0; mode < 2; mode++) {
        open_with_thread(mode ? DP_DURABILITY_PROCESS : DP_DURABILITY_MACHINE, mode ? 0 : 1);
        for (uint64_t lsn = 1; lsn <= 3; lsn++) {
            assert_int_equal(world_append(&world, 300), DP_OK);
            dp_journal_commit(world.journal);
            assert_true(await_claim(lsn));
            assert_int_equal(dp_journal_synced(world.journal), lsn);
        }
        struct dp_journal_figures before = figures();
        dp_journal_claim(world.journal); /* as if it were idle again: nothing is left to claim */
        assert_int_equal(figures().syncs, before.syncs);
        assert_int_equal(figures().bytes_kept, before.bytes_kept);
        world_clear(&world);
    }
}

/* Durable long before it is idle: a claim that came with each round would be a write more for each push. */
static void a_busy_journal_claims_nothing(void **state)
{
    const struct timespec moment = {.tv_nsec = 100000};
    open_with_thread(DP_DURABILITY_MACHINE, 600000);
    for (uint64_t lsn = 1; lsn <= 20; lsn++) {
        enum dp_status st;
        assert_int_equal(world_append(&world, 300), DP_OK);
        dp_journal_commit(world.journal);
        for (uint32_t i = 0; i < 10 * WAIT_MS && dp_journal_durable(world.journal, &st, NULL) < lsn; i++)
            (void)nanosleep(&moment, NULL);
        assert_int_equal(dp_journal_durable(world.journal, &st, NULL), lsn);
    }
    assert_int_equal(figures().claimed_lsn, 0);
    world_clear(&world);
}

static struct {
    pthread_t test;
    enum dp_status (*write)(void *self, struct dp_file *file, uint64_t at, const struct dp_disk_piece *pieces,
                            uint32_t count, struct dp_error *err);
    atomic_bool claims, appended;
} failing;

/* The commit thread's first write is the claim: it fails when the test has appended another record. */
static enum dp_status fail_claim(void *self, struct dp_file *file, uint64_t at,
                                 const struct dp_disk_piece *pieces, uint32_t count, struct dp_error *err)
{
    if (!world.journal || pthread_equal(pthread_self(), failing.test))
        return failing.write(self, file, at, pieces, count, err);
    atomic_store(&failing.claims, true);
    while (!atomic_load(&failing.appended))
        (void)sched_yield();
    return dp_fail(err, DP_IO, "the claim");
}

/* Mode process: the test's thread writes, too. What it writes behind a claim that is not there no opening would find. */
static void nothing_is_durable_behind_a_failed_claim(void **state)
{
    for (uint32_t round = 0, late = 0; round < 200; round++) {
        struct dp_error err = {0};
        enum dp_status st = DP_OK;
        uint64_t durable = 0;
        world_init(&world, 27, DP_DURABILITY_PROCESS);
        failing.test = pthread_self();
        failing.write = world.disk.write;
        atomic_store(&failing.claims, false);
        atomic_store(&failing.appended, false);
        world.disk.write = fail_claim;
        world.options.commit_thread = true;
        world.options.idle_ms = 1;
        assert_int_equal(world_open(&world, &err), DP_OK);
        assert_int_equal(world_append(&world, 300), DP_OK);
        dp_journal_commit(world.journal);
        if (dp_journal_durable(world.journal, &st, &err) == 0) {
            /* This thread was away for the idle time: the other one writes the record, not its claim. Once more. */
            assert_true(late++ < 1000);
            round--;
            atomic_store(&failing.appended, true);
            world_clear(&world);
            continue;
        }
        while (!atomic_load(&failing.claims))
            (void)sched_yield();
        assert_int_equal(world_append(&world, 300), DP_OK);
        atomic_store(&failing.appended, true);
        while (st == DP_OK) {
            dp_journal_commit(world.journal);
            durable = dp_journal_durable(world.journal, &st, &err);
        }
        assert_int_equal(st, DP_IO);
        assert_int_equal(durable, 1);
        world_clear(&world);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_claimed_record_is_refused),
        cmocka_unit_test(an_unclaimed_record_is_cut_and_told),
        cmocka_unit_test(a_damaged_claim_is_harmless),
        cmocka_unit_test(what_was_replayed_is_claimed),
        cmocka_unit_test(a_full_segment_is_claimed_in_the_next),
        cmocka_unit_test(no_segment_is_made_for_a_claim),
        cmocka_unit_test(a_failed_claim_poisons),
        cmocka_unit_test(old_records_are_no_rest),
        cmocka_unit_test(the_commit_thread_claims),
        cmocka_unit_test(a_busy_journal_claims_nothing),
        cmocka_unit_test(nothing_is_durable_behind_a_failed_claim),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
