/* Register: compare and set, what a resend hears, bounds, and which runs leave; every disk operation failing, the power going at
 * every one, and the file damaged at every byte. */
#include "tests/lib/test.h"

#include "common/wire/limits.h"
#include "server/control/register.h"
#include "server/control/register_file.h"
#include "tests/lib/sim_disk.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ID 77u

struct bed {
    struct dp_sim_disk *sim;
    struct dp_disk disk;
    struct dp_control_register *values;
    struct dp_control_register_entry entry;
    struct dp_error err;
    bool made;
    uint64_t opens;
};

static enum dp_status open_as(struct bed *bed, bool create, bool read_only)
{
    const struct dp_control_register_options options = {
        .disk = &bed->disk, .new_id = ID + bed->opens++, .create = create, .read_only = read_only};
    return dp_control_register_open(&options, &bed->values, &bed->made, &bed->err);
}

static struct bed started(uint64_t seed)
{
    struct bed bed = {.sim = dp_sim_disk_new(seed)};
    bed.disk = dp_sim_disk_interface(bed.sim);
    return bed;
}

static struct bed opened(uint64_t seed)
{
    struct bed bed = started(seed);
    if (open_as(&bed, true, false) != DP_OK)
        fail_msg("%s", bed.err.text);
    return bed;
}

static void end(struct bed *bed)
{
    dp_control_register_close(&bed->values);
    assert_null(bed->values);
    dp_control_register_close(&bed->values);
    dp_sim_disk_free(&bed->sim);
}

static enum dp_status reopen(struct bed *bed, enum dp_sim_survival survival)
{
    dp_control_register_close(&bed->values);
    dp_sim_disk_restart(bed->sim, survival);
    return open_as(bed, false, false);
}

static enum dp_status set(struct bed *bed, const char *name, uint64_t expected, uint64_t nonce,
                          const char *text)
{
    const struct dp_control_register_change change = {
        .name = name, .expected = expected, .nonce = nonce, .bytes = text, .size = strlen(text)};
    return dp_control_register_set(bed->values, &change, &bed->entry, &bed->err);
}

static uint64_t version_of(struct bed *bed, const char *name)
{
    assert_int_equal(dp_control_register_get(bed->values, name, &bed->entry, &bed->err), DP_OK);
    return bed->entry.version;
}

static bool has(struct bed *bed, const char *name, uint64_t version, const char *text)
{
    return version_of(bed, name) == version && bed->entry.size == strlen(text) &&
           (bed->entry.size == 0 || memcmp(bed->entry.bytes, text, bed->entry.size) == 0);
}

/* ---- compare and set ---- */

static void a_set_wins_on_the_version_it_expects(void **state)
{
    struct bed bed = opened(1);
    assert_true(bed.made && dp_control_register_id(bed.values) == ID);
    assert_true(has(&bed, "b", 0, ""));
    assert_int_equal(set(&bed, "b", 0, 1, "one"), DP_OK);
    assert_true(bed.entry.won && bed.entry.version == 1);
    assert_memory_equal(bed.entry.bytes, "one", 3);
    assert_int_equal(set(&bed, "b", 0, 2, "two"), DP_OK);
    assert_true(!bed.entry.won && bed.entry.version == 1);
    assert_memory_equal(bed.entry.bytes, "one", 3);
    assert_int_equal(set(&bed, "b", 2, 3, "two"), DP_NOT_FOUND); /* expects what is not there yet */
    assert_non_null(strstr(bed.err.text, "'b' is at version 1 and has never been at 2"));
    assert_true(!bed.entry.won && has(&bed, "b", 1, "one"));
    assert_int_equal(set(&bed, "b", 1, 4, ""), DP_OK);
    assert_true(bed.entry.won && bed.entry.version == 2 && bed.entry.size == 0);
    /* Names on both sides, and one that is the beginning of another. */
    assert_int_equal(set(&bed, "a", 0, 5, "A"), DP_OK);
    assert_int_equal(set(&bed, "c", 0, 6, "C"), DP_OK);
    assert_int_equal(set(&bed, "bb", 0, 7, "BB"), DP_OK);
    for (int again = 0; again < 2; again++) {
        assert_true(has(&bed, "a", 1, "A") && has(&bed, "b", 2, "") && has(&bed, "bb", 1, "BB") &&
                    has(&bed, "c", 1, "C"));
        assert_int_equal(reopen(&bed, DP_SIM_NOTHING), DP_OK);
        assert_true(!bed.made && dp_control_register_id(bed.values) == ID);
    }
    end(&bed);
}

/* Whose answer was lost hears that it won, after others' sets and a restart too; too late it hears that nobody knows. */
static void a_resend_is_known_by_its_nonce(void **state)
{
    struct bed bed = opened(1);
    for (uint64_t v = 0; v < DP_REGISTER_NONCES_MAX + 5; v++) {
        assert_int_equal(set(&bed, "x", v, 100 + v, "x"), DP_OK);
        assert_true(bed.entry.won);
        if (v % 7 == 0)
            assert_int_equal(reopen(&bed, DP_SIM_NOTHING), DP_OK);
        for (uint64_t old = 0; old <= v; old++) {
            bool kept = v - old < DP_REGISTER_NONCES_MAX;
            assert_int_equal(set(&bed, "x", old, 100 + old, "x"), kept ? DP_OK : DP_TOO_OLD);
            assert_true(bed.entry.won == kept);
            assert_int_equal(set(&bed, "x", old, 99 + old, "x"), kept ? DP_OK : DP_TOO_OLD);
            assert_true(!bed.entry.won);
            assert_int_equal(version_of(&bed, "x"), v + 1);
        }
    }
    end(&bed);
}

static void without_a_file_there_is_nothing_unless_it_may_be_made(void **state)
{
    struct bed bed = started(1);
    assert_int_equal(open_as(&bed, false, false), DP_NOT_FOUND);
    assert_true(!bed.values && dp_sim_disk_operations(bed.sim) == 0);
    assert_int_equal(open_as(&bed, true, true), DP_OK); /* read-only: empty, and nothing is made */
    assert_true(!bed.made && dp_sim_disk_operations(bed.sim) == 0 && dp_control_register_id(bed.values) == 0);
    assert_true(has(&bed, "x", 0, ""));
    assert_int_equal(set(&bed, "x", 0, 1, "x"), DP_UNSUPPORTED);
    dp_control_register_close(&bed.values);
    assert_int_equal(open_as(&bed, true, false), DP_OK);
    uint64_t id = dp_control_register_id(bed.values);
    assert_true(bed.made && id > ID);
    assert_int_equal(reopen(&bed, DP_SIM_NOTHING), DP_OK); /* its id was durable before it was told */
    assert_true(!bed.made && dp_control_register_id(bed.values) == id);
    end(&bed);
}

/* ---- what the disk does ---- */

enum { SETS = 6 };

/* The script of the sweeps: an opening, then sets of two names. acked: versions that an answer has shown. */
static void a_full_disk_is_told_and_left_as_it_was(void **state)
{
    struct bed bed = opened(1);
    assert_int_equal(set(&bed, "stores", 0, 1, "one"), DP_OK);
    uint64_t used = dp_sim_disk_used(bed.sim);
    dp_sim_disk_capacity(bed.sim, used + 20);
    assert_int_equal(set(&bed, "stores", 1, 2, "two"), DP_FULL);
    assert_non_null(strstr(bed.err.text, "no space left"));
    assert_true(dp_sim_disk_used(bed.sim) == used && has(&bed, "stores", 1, "one"));
    assert_int_equal(reopen(&bed, DP_SIM_NOTHING), DP_OK); /* it opens without room */
    dp_sim_disk_capacity(bed.sim, UINT64_MAX);
    dp_sim_disk_fail(bed.sim, DP_SIM_SYNC, 1, 1, DP_FULL); /* as file systems do that find the room late */
    assert_int_equal(set(&bed, "stores", 1, 2, "two"), DP_FULL);
    assert_true(dp_sim_disk_used(bed.sim) == used);
    assert_int_equal(set(&bed, "stores", 1, 2, "two"), DP_OK);
    assert_true(bed.entry.won);
    end(&bed);
}

/* ---- a damaged file ---- */

/* A fresh disk with these bytes as the register. */
static struct bed planted(const uint8_t *bytes, size_t size)
{
    struct bed bed = started(1);
    struct dp_disk_piece piece = {.data = bytes, .bytes = size};
    struct dp_file *file = NULL;
    assert_int_equal(bed.disk.open(bed.disk.self, DP_REGISTER_FILE, true, &file, &bed.err), DP_OK);
    assert_int_equal(bed.disk.write(bed.disk.self, file, 0, &piece, 1, &bed.err), DP_OK);
    bed.disk.close(bed.disk.self, file);
    return bed;
}

static void assert_refused(const uint8_t *bytes, size_t size)
{
    struct bed bed = planted(bytes, size);
    uint64_t now;
    enum dp_status st = open_as(&bed, true, false);
    assert_true(st == DP_CORRUPT || st == DP_VERSION);
    assert_null(bed.values);
    assert_non_null(strstr(bed.err.text, "'register'"));
    const uint8_t *left = dp_sim_disk_bytes(bed.sim, DP_REGISTER_FILE, &now);
    assert_true(now == size);
    if (size > 0)
        assert_memory_equal(left, bytes, size);
    end(&bed);
}

static void a_damaged_file_is_refused_and_left(void **state)
{
    struct bed bed = opened(1);
    uint64_t size;
    assert_int_equal(set(&bed, "run/1/plan", 0, 1, "plan"), DP_OK);
    assert_int_equal(set(&bed, "stores", 0, 2, ""), DP_OK);
    assert_int_equal(set(&bed, "stores", 1, 3, "two"), DP_OK);
    uint8_t *copy = calloc(1, 4096), *seen = dp_sim_disk_bytes(bed.sim, DP_REGISTER_FILE, &size);
    assert_true(copy && seen && size < 4000);
    memcpy(copy, seen, (size_t)size);
    for (size_t bit = 0; bit < size * 8; bit++) {
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
        assert_refused(copy, (size_t)size);
        copy[bit / 8] ^= (uint8_t)(1u << bit % 8);
    }
    for (size_t less = 0; less < size; less++)
        assert_refused(copy, less);
    for (size_t more = 1; more < 64; more++)
        assert_refused(copy, (size_t)size + more);
    struct bed whole = planted(copy, (size_t)size);
    assert_int_equal(open_as(&whole, false, false), DP_OK);
    assert_true(has(&whole, "stores", 2, "two") && has(&whole, "run/1/plan", 1, "plan"));
    end(&whole);
    free(copy);
    end(&bed);
}

/* Whole by its checksum, and yet not what a register writes. */
static void what_contradicts_itself_is_refused(void **state)
{
    struct bed bed = started(1);
    struct dp_control_register_item *item = dp_control_register_item_new("run/7/plan", 10, "x", 1);
    assert_non_null(item);
    item->version = item->nonces = 1;
    struct dp_control_register_content content = {.id = ID, .gone_run = 7, .count = 1, .item = &item};
    assert_int_equal(dp_control_register_file_write(&bed.disk, &content, &bed.err), DP_OK);
    assert_int_equal(open_as(&bed, true, false), DP_CORRUPT);
    assert_non_null(strstr(bed.err.text, "'run/7/plan' belongs to a run whose values were dropped"));
    content.gone_run = 6;
    assert_int_equal(dp_control_register_file_write(&bed.disk, &content, &bed.err), DP_OK);
    assert_int_equal(open_as(&bed, true, false), DP_OK);
    free(item);
    end(&bed);
}

/* ---- bounds ---- */

static enum dp_status set_large(struct bed *bed, const char *name, size_t size)
{
    static char zeros[DP_REGISTER_VALUE_BYTES_MAX];
    const struct dp_control_register_change change = {.name = name, .nonce = 1, .bytes = zeros, .size = size};
    return dp_control_register_set(bed->values, &change, &bed->entry, &bed->err);
}

/* Fills it with the largest values of one kind; returns how many. */
static uint32_t fill(struct bed *bed, const char *above)
{
    char name[64];
    uint32_t n = 0;
    for (;; n++) {
        (void)snprintf(name, sizeof name, "%s/%03u", above, n);
        enum dp_status st = set_large(bed, name, DP_REGISTER_VALUE_BYTES_MAX);
        if (st == DP_FULL)
            return n;
        assert_true(st == DP_OK && bed->entry.won);
    }
}

static enum dp_status get(struct bed *bed, const char *name)
{
    return dp_control_register_get(bed->values, name, &bed->entry, &bed->err);
}

static void what_is_of_no_run_never_leaves(void **state)
{
    struct bed bed = opened(1);
    uint32_t n = fill(&bed, "own");
    assert_in_range(n, 60, 63); /* of 64 KiB in 4 MiB */
    assert_non_null(strstr(bed.err.text, "full"));
    assert_int_equal(set_large(&bed, "run/9/plan", DP_REGISTER_VALUE_BYTES_MAX), DP_FULL);
    assert_int_equal(set(&bed, "own/000", 1, 9, "small"), DP_OK); /* a smaller one in its place has room */
    assert_int_equal(set_large(&bed, "run/9/plan", DP_REGISTER_VALUE_BYTES_MAX), DP_OK);
    assert_int_equal(set_large(&bed, "run/09/plan", DP_REGISTER_VALUE_BYTES_MAX),
                     DP_FULL); /* of no run: it is not written so */
    for (uint32_t i = 0; i < n; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "own/%03u", i);
        assert_int_equal(version_of(&bed, name), i == 0 ? 2 : 1);
    }
    end(&bed);
}

/* Anybody may set values of no run: the one that lets a server start finds room all the same, and no other value takes that. */
static void there_is_always_room_for_stores(void **state)
{
    static char zeros[DP_REGISTER_VALUE_BYTES_MAX];
    struct bed bed = opened(1);
    (void)fill(&bed, "own");
    for (uint64_t v = 0; v < 2 * DP_REGISTER_NONCES_MAX; v++) {
        const struct dp_control_register_change change = {.name = "stores",
                                                          .expected = v,
                                                          .nonce = v + 1,
                                                          .bytes = zeros,
                                                          .size = v % 2 ? 100 : DP_REGISTER_VALUE_BYTES_MAX};
        assert_int_equal(dp_control_register_set(bed.values, &change, &bed.entry, &bed.err), DP_OK);
        assert_int_equal(set_large(&bed, "own/999", DP_REGISTER_VALUE_BYTES_MAX), DP_FULL);
    }
    end(&bed);
}

static void old_runs_leave_for_newer_ones(void **state)
{
    struct bed bed = opened(1);
    assert_int_equal(set_large(&bed, "stores", 100), DP_OK);
    assert_int_equal(set_large(&bed, "run/2/a", 100), DP_OK);
    assert_int_equal(set_large(&bed, "run/2/b", DP_REGISTER_VALUE_BYTES_MAX), DP_OK);
    assert_int_equal(set_large(&bed, "run/10/a", DP_REGISTER_VALUE_BYTES_MAX), DP_OK); /* 10 is after 2 */
    (void)fill(&bed, "own"); /* 2 has left for those of no run; 10, the newest, has not */
    assert_int_equal(get(&bed, "run/2/a"), DP_TOO_OLD);
    assert_non_null(strstr(bed.err.text, "up to 2"));
    assert_int_equal(get(&bed, "run/2/b"), DP_TOO_OLD);
    assert_int_equal(set_large(&bed, "run/2/c", 1), DP_TOO_OLD);
    assert_int_equal(get(&bed, "run/1/a"), DP_TOO_OLD); /* before it, though it never was */
    assert_int_equal(version_of(&bed, "run/10/a"), 1);
    assert_int_equal(version_of(&bed, "run/3/a"), 0);
    /* An older run than those that are there gets no room, nor does one get its own. */
    assert_int_equal(set_large(&bed, "run/3/a", DP_REGISTER_VALUE_BYTES_MAX), DP_FULL);
    assert_int_equal(set_large(&bed, "run/10/b", DP_REGISTER_VALUE_BYTES_MAX), DP_FULL);
    assert_int_equal(version_of(&bed, "run/10/a"), 1);
    assert_int_equal(set_large(&bed, "run/11/a", DP_REGISTER_VALUE_BYTES_MAX), DP_OK);
    for (int again = 0; again < 2; again++) {
        assert_int_equal(get(&bed, "run/10/a"), DP_TOO_OLD);
        assert_int_equal(version_of(&bed, "run/11/a"), 1);
        assert_int_equal(version_of(&bed, "stores"), 1);
        assert_int_equal(reopen(&bed, DP_SIM_NOTHING), DP_OK);
    }
    end(&bed);
}

/* A run that leaves in a set that fails has not left. */
static void a_run_stays_when_the_set_fails(void **state)
{
    struct bed bed = opened(1);
    assert_int_equal(set_large(&bed, "run/1/a", DP_REGISTER_VALUE_BYTES_MAX), DP_OK);
    (void)fill(&bed, "run/2");
    assert_int_equal(get(&bed, "run/1/a"), DP_TOO_OLD);
    assert_int_equal(version_of(&bed, "run/2/000"), 1);
    dp_sim_disk_fail(bed.sim, DP_SIM_SYNC, 1, 1, DP_IO);
    assert_int_equal(set_large(&bed, "run/3/a", DP_REGISTER_VALUE_BYTES_MAX), DP_IO);
    assert_int_equal(version_of(&bed, "run/2/000"), 1);
    assert_int_equal(set_large(&bed, "run/3/a", DP_REGISTER_VALUE_BYTES_MAX), DP_OK);
    assert_int_equal(get(&bed, "run/2/000"), DP_TOO_OLD);
    end(&bed);
}

static void the_number_of_values_is_bounded(void **state)
{
    struct bed bed = opened(1);
    char name[DP_NOTE_NAME_MAX + 1];
    for (uint32_t i = 0; i <= DP_REGISTER_VALUES_MAX; i++) {
        (void)snprintf(name, sizeof name, "%04u", i);
        assert_int_equal(set(&bed, name, 0, 1, "x"), i < DP_REGISTER_VALUES_MAX - 1 ? DP_OK : DP_FULL);
    }
    assert_int_equal(set(&bed, "stores", 0, 1, "s"), DP_OK); /* the last place is kept for it */
    assert_int_equal(set(&bed, "0000", 1, 2, "y"), DP_OK);
    assert_int_equal(reopen(&bed, DP_SIM_NOTHING), DP_OK);
    assert_true(has(&bed, "0000", 2, "y") && has(&bed, "4094", 1, "x") && has(&bed, "stores", 1, "s"));
    end(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_set_wins_on_the_version_it_expects),
        cmocka_unit_test(a_resend_is_known_by_its_nonce),
        cmocka_unit_test(without_a_file_there_is_nothing_unless_it_may_be_made),
        cmocka_unit_test(a_full_disk_is_told_and_left_as_it_was),
        cmocka_unit_test(a_damaged_file_is_refused_and_left),
        cmocka_unit_test(what_contradicts_itself_is_refused),
        cmocka_unit_test(what_is_of_no_run_never_leaves),
        cmocka_unit_test(there_is_always_room_for_stores),
        cmocka_unit_test(old_runs_leave_for_newer_ones),
        cmocka_unit_test(a_run_stays_when_the_set_fails),
        cmocka_unit_test(the_number_of_values_is_bounded),
    };
    return cmocka_run_group_tests_name("register", tests, NULL, NULL);
}
