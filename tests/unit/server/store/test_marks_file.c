/* The marks file. Goal: marks are put all or none and in the order of their keys, outlast a loss of power once put says so, and damage is
 * refused. Method: a random script against a plain list; then power goes at each operation of the disk in turn, each operation fails
 * in turn, and each bit of the file is flipped. */
#include "server/store/marks_file.h"

#include "tests/lib/sim_disk.h"
#include "tests/lib/test.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEYS   9u
#define ROUNDS 6u

struct bed {
    struct dp_sim_disk *sim;
    struct dp_disk disk;
    struct dp_marks_file *file;
    struct dp_error err;
};

static struct bed begun(uint64_t seed)
{
    struct bed bed = {.sim = dp_sim_disk_new(seed)};
    bed.disk = dp_sim_disk_interface(bed.sim);
    assert_int_equal(dp_marks_file_load(&bed.disk, &bed.file, &bed.err), DP_OK);
    assert_true(dp_marks_file_is_empty(bed.file));
    return bed;
}

static void end(struct bed *bed)
{
    dp_marks_file_close(&bed->file);
    dp_sim_disk_free(&bed->sim);
}

static enum dp_status reload(struct bed *bed)
{
    dp_marks_file_close(&bed->file);
    return dp_marks_file_load(&bed->disk, &bed->file, &bed->err);
}

static enum dp_status put(struct bed *bed, const char *key, const char *value)
{
    const struct dp_store_mark mark = {key, value, strlen(key), value ? strlen(value) : 0};
    return dp_marks_file_put(bed->file, &mark, 1, &bed->err);
}

static enum dp_status see(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    char *all = context;
    (void)snprintf(all + strlen(all), 400 - strlen(all), "%.*s=%.*s ", (int)mark->key_bytes,
                   (const char *)mark->key, (int)mark->value_bytes, (const char *)mark->value);
    return DP_OK;
}

static const char *all_of(struct bed *bed)
{
    static char all[400];
    all[0] = '\0';
    assert_int_equal(dp_marks_file_visit(bed->file, see, all, &bed->err), DP_OK);
    return all;
}

static void marks_are_put_replaced_and_removed(void **state)
{
    struct bed bed = begun(1);
    struct dp_store_mark mark;
    const struct dp_store_mark many[] = {{"b", "2", 1, 1},    {"ab", "", 2, 0},     {"b", "3", 1, 1},
                                         {"a", "long", 1, 4}, {"none", NULL, 4, 0}, {"\0", "0", 1, 1}};
    assert_int_equal(dp_marks_file_put(bed.file, many, 6, &bed.err), DP_OK);
    assert_int_equal(put(&bed, "c", "x"), DP_OK);
    assert_int_equal(put(&bed, "a", "y"), DP_OK);
    assert_int_equal(put(&bed, "c", NULL), DP_OK);
    for (int i = 0; i < 2; i++) {
        assert_true(dp_marks_file_get(bed.file, "b", &mark)); /* of two in one put, the later */
        assert_true(mark.value_bytes == 1 && memcmp(mark.value, "3", 1) == 0);
        assert_true(dp_marks_file_get(bed.file, "ab", &mark) && mark.value_bytes == 0);
        assert_false(dp_marks_file_get(bed.file, "c", &mark));
        assert_false(dp_marks_file_get(bed.file, "none", &mark));
        assert_string_equal(all_of(&bed), "=0 a=y ab= b=3 "); /* the first key is a zero */
        assert_int_equal(reload(&bed), DP_OK);
    }
    end(&bed);
}

/* Values of a version; key k has one in two versions of three. */
static uint32_t fill(uint32_t version, struct dp_store_mark marks[KEYS], char values[KEYS][600])
{
    static const char *const keys[KEYS] = {"ids",     "journal", "lsn", "store/a", "store/b",
                                           "table/x", "table/y", "u",   "v"};
    for (uint32_t k = 0; k < KEYS; k++) {
        size_t bytes = 1 + (k * 137 + version * 61) % 599; /* over several sectors together */
        memset(values[k], (int)('A' + version), bytes);
        bool has = (k + version) % 3 > 0;
        marks[k] = (struct dp_store_mark){keys[k], has ? values[k] : NULL, strlen(keys[k]), has ? bytes : 0};
    }
    return KEYS;
}

static bool is_version(const struct dp_marks_file *file, uint32_t version)
{
    struct dp_store_mark marks[KEYS], found;
    char values[KEYS][600];
    if (version == 0)
        return dp_marks_file_is_empty(file);
    (void)fill(version, marks, values);
    for (uint32_t k = 0; k < KEYS; k++) {
        bool has = dp_marks_file_get(file, marks[k].key, &found);
        if (has != (marks[k].value != NULL) ||
            (has && (found.value_bytes != marks[k].value_bytes ||
                     memcmp(found.value, marks[k].value, found.value_bytes) != 0)))
            return false;
    }
    return true;
}

/* Puts versions until one fails; the number of those that did not. */
static uint32_t put_versions(struct bed *bed, uint32_t from)
{
    struct dp_store_mark marks[KEYS];
    char values[KEYS][600];
    uint32_t done = from;
    while (done < ROUNDS &&
           dp_marks_file_put(bed->file, marks, fill(done + 1, marks, values), &bed->err) == DP_OK)
        done++;
    return done;
}

/* The process may die first, and power go in the next one's life: what that one read may be lost until it has put something. */
static void power_that_goes_leaves_old_marks_or_new_ones(void **state)
{
    bool cut = true;
    for (uint64_t operation = 1; cut; operation++)
        for (uint64_t seed = 0; seed < 12; seed++) {
            struct bed bed = begun(seed);
            dp_sim_disk_cut_at(bed.sim, operation);
            uint32_t done = put_versions(&bed, 0);
            cut = dp_sim_disk_is_off(bed.sim);
            dp_sim_disk_restart(bed.sim, (enum dp_sim_survival)(seed % 4));
            if (reload(&bed) != DP_OK)
                fail_msg("operation %" PRIu64 ", seed %" PRIu64 ": %s", operation, seed, bed.err.text);
            if (!is_version(bed.file, done) && !(cut && is_version(bed.file, done + 1)))
                fail_msg("operation %" PRIu64 ", seed %" PRIu64 ": not version %" PRIu32, operation, seed,
                         done);
            assert_int_equal(put_versions(&bed, done), ROUNDS);
            dp_sim_disk_restart(bed.sim, DP_SIM_NOTHING);
            assert_int_equal(reload(&bed), DP_OK);
            assert_true(is_version(bed.file, ROUNDS));
            end(&bed);
        }
}

/* A put that failed before its rename has changed nothing and frees its space; one that is repeated succeeds. */
static void a_failed_put_may_be_repeated(void **state)
{
    for (int kind = 0; kind < DP_SIM_OPERATIONS; kind++)
        for (int full = 0; full < 2; full++) {
            struct bed bed = begun(7);
            if (kind == DP_SIM_RESERVE || kind == DP_SIM_REMOVE)
                goto done;
            assert_int_equal(put(&bed, "a", "1"), DP_OK);
            uint64_t used = dp_sim_disk_used(bed.sim);
            dp_sim_disk_fail(bed.sim, (enum dp_sim_operation)kind, 1, 1, full ? DP_FULL : DP_IO);
            assert_int_equal(put(&bed, "a", "2"), full ? DP_FULL : DP_IO);
            assert_string_equal(all_of(&bed), "a=1 ");
            if (kind != DP_SIM_SYNC_DIRECTORY)
                assert_true(dp_sim_disk_used(bed.sim) == used);
            assert_int_equal(put(&bed, "b", "3"), DP_OK);
            dp_sim_disk_restart(bed.sim, DP_SIM_NOTHING);
            assert_int_equal(reload(&bed), DP_OK);
            assert_string_equal(all_of(&bed), "a=1 b=3 ");
        done:
            end(&bed);
        }
}

static void each_flipped_bit_is_refused(void **state)
{
    struct bed bed = begun(3);
    assert_int_equal(put_versions(&bed, 0), ROUNDS);
    uint64_t size = 0;
    uint8_t *bytes = dp_sim_disk_bytes(bed.sim, DP_MARKS_FILE, &size);
    for (uint64_t bit = 0; bit < size * 8; bit++) {
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        assert_int_equal(reload(&bed), DP_CORRUPT);
        assert_non_null(strstr(bed.err.text, "'marks'"));
        assert_null(bed.file);
        bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    assert_int_equal(reload(&bed), DP_OK);
    end(&bed);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(marks_are_put_replaced_and_removed),
        cmocka_unit_test(power_that_goes_leaves_old_marks_or_new_ones),
        cmocka_unit_test(a_failed_put_may_be_repeated),
        cmocka_unit_test(each_flipped_bit_is_refused),
    };
    return cmocka_run_group_tests_name("marks file", tests, NULL, NULL);
}
