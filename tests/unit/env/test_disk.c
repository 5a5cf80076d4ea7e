/* disk.h: one suite on the real disk and on the simulated one; then what only the simulated one can show. */
#include "common/env/read_only_disk.h"
#include "tests/lib/sim_disk.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct form {
    struct dp_disk disk;
    struct dp_sim_disk *sim; /* NULL: real */
    char path[64];
};

static void remove_name(void *context, const char *name)
{
    struct dp_disk *disk = context;
    (void)disk->remove(disk->self, name, NULL);
}

static int real_up(void **state)
{
    struct form *form = calloc(1, sizeof *form);
    char below[96];
    struct dp_error err = {0};
    (void)snprintf(form->path, sizeof form->path, "/tmp/downpour-disk-XXXXXX");
    assert_non_null(mkdtemp(form->path));
    (void)snprintf(below, sizeof below, "%s/a/b//", form->path); /* made with its parents */
    assert_int_equal(dp_disk_open(below, &form->disk, &err), DP_OK);
    *state = form;
    return 0;
}

static int sim_up(void **state)
{
    struct form *form = calloc(1, sizeof *form);
    form->sim = dp_sim_disk_new(3);
    form->disk = dp_sim_disk_interface(form->sim);
    *state = form;
    return 0;
}

static int down(void **state)
{
    struct form *form = *state;
    char below[96];
    if (form->sim) {
        dp_sim_disk_free(&form->sim);
    } else {
        assert_int_equal(form->disk.list(form->disk.self, remove_name, &form->disk, NULL), DP_OK);
        dp_disk_close(&form->disk);
        (void)snprintf(below, sizeof below, "%s/a/b", form->path);
        assert_int_equal(rmdir(below), 0);
        *strrchr(below, '/') = 0;
        assert_int_equal(rmdir(below), 0);
        assert_int_equal(rmdir(form->path), 0);
    }
    free(form);
    return 0;
}

static void bytes_come_back(void **state)
{
    struct dp_disk *disk = &((struct form *)*state)->disk;
    struct dp_error err = {0};
    struct dp_file *file = NULL, *again = NULL;
    uint64_t bytes;
    char read[16] = {0};
    assert_int_equal(disk->open(disk->self, "one", false, &file, &err), DP_NOT_FOUND);
    assert_non_null(strstr(err.text, "one"));
    assert_int_equal(disk->open(disk->self, "one", true, &file, &err), DP_OK);
    struct dp_disk_piece pieces[] = {{"abc", 3}, {NULL, 0}, {"defgh", 5}};
    assert_int_equal(disk->write(disk->self, file, 5000, pieces, 3, &err), DP_OK);
    assert_int_equal(disk->size(disk->self, file, &bytes, &err), DP_OK);
    assert_int_equal(bytes, 5008);
    assert_int_equal(disk->open(disk->self, "one", true, &again, &err), DP_OK); /* the same one */
    assert_int_equal(disk->read(disk->self, again, 4998, read, 10, &err), DP_OK);
    assert_memory_equal(read, "\0\0abcdefgh", 10);
    assert_int_equal(disk->read(disk->self, again, 5000, read, 9, &err), DP_IO); /* all or a failure */
    assert_int_equal(disk->sync(disk->self, again, &err), DP_OK);
    disk->close(disk->self, file);
    disk->close(disk->self, again);
}

/* Whole pages past the cache, then bytes that were in the cache before, both read by another handle. */
static void direct_writes_come_back(void **state)
{
    const struct form *form = *state;
    const struct dp_disk *disk = &form->disk;
    static _Alignas(4096) uint8_t pages[3 * 4096];
    static uint8_t got[6 * 4096];
    struct dp_file *file = NULL, *reader = NULL;
    struct dp_error err = {0};
    struct dp_disk_piece all = {pages, sizeof pages}, two[2] = {{pages + 4096, 4096}, {pages, 4096}};
    for (size_t i = 0; i < sizeof pages; i++)
        pages[i] = (uint8_t)(i / 4096 + i % 7 + 1);
    assert_int_equal(disk->open(disk->self, "direct", true, &file, &err), DP_OK);
    assert_int_equal(disk->reserve(disk->self, file, sizeof got, &err), DP_OK);
    assert_int_equal(disk->write(disk->self, file, 0, &all, 1, &err), DP_OK);
    if (disk->go_direct)
        disk->go_direct(disk->self, file);
    assert_int_equal(disk->open(disk->self, "direct", false, &reader, &err), DP_OK);
    assert_int_equal(disk->read(disk->self, reader, 0, got, sizeof got, &err), DP_OK);
    assert_int_equal(disk->write(disk->self, file, 3 * 4096, &all, 1, &err), DP_OK);
    assert_int_equal(disk->write(disk->self, file, 4096, two, 2, &err), DP_OK);
    assert_int_equal(disk->sync(disk->self, file, &err), DP_OK);
    assert_int_equal(disk->read(disk->self, reader, 0, got, sizeof got, &err), DP_OK);
    assert_memory_equal(got, pages, 4096);
    assert_memory_equal(got + 4096, pages + 4096, 4096);
    assert_memory_equal(got + 2 * 4096, pages, 4096);
    assert_memory_equal(got + 3 * 4096, pages, sizeof pages);
    disk->close(disk->self, reader);
    disk->close(disk->self, file);
}

static void reserved_space_reads_as_zero(void **state)
{
    struct dp_disk *disk = &((struct form *)*state)->disk;
    struct dp_error err = {0};
    struct dp_file *file = NULL;
    uint64_t bytes;
    char read[4] = "xxx";
    assert_int_equal(disk->open(disk->self, "r", true, &file, &err), DP_OK);
    struct dp_disk_piece piece = {"ab", 2};
    assert_int_equal(disk->write(disk->self, file, 0, &piece, 1, &err), DP_OK);
    assert_int_equal(disk->reserve(disk->self, file, 100000, &err), DP_OK);
    assert_int_equal(disk->reserve(disk->self, file, 1000, &err), DP_OK); /* never smaller */
    assert_int_equal(disk->size(disk->self, file, &bytes, &err), DP_OK);
    assert_int_equal(bytes, 100000);
    assert_int_equal(disk->read(disk->self, file, 0, read, 4, &err), DP_OK);
    assert_memory_equal(read, "ab\0\0", 4);
    assert_int_equal(disk->read(disk->self, file, 99996, read, 4, &err), DP_OK);
    assert_memory_equal(read, "\0\0\0\0", 4);
    disk->close(disk->self, file);
}

struct seen {
    char names[256];
    uint32_t count;
};

static void see(void *context, const char *name)
{
    struct seen *seen = context;
    seen->count++;
    strncat(seen->names, name, sizeof seen->names - strlen(seen->names) - 1);
}

static void names_change(void **state)
{
    struct dp_disk *disk = &((struct form *)*state)->disk;
    struct dp_error err = {0};
    struct dp_file *file = NULL, *other = NULL;
    struct seen seen = {0};
    char read[2];
    assert_int_equal(disk->open(disk->self, "a", true, &file, &err), DP_OK);
    struct dp_disk_piece piece = {"A", 1};
    assert_int_equal(disk->write(disk->self, file, 0, &piece, 1, &err), DP_OK);
    assert_int_equal(disk->open(disk->self, "b", true, &other, &err), DP_OK);
    disk->close(disk->self, other);
    assert_int_equal(disk->rename(disk->self, "a", "b", &err), DP_OK); /* over it */
    assert_int_equal(disk->rename(disk->self, "a", "c", &err), DP_NOT_FOUND);
    assert_int_equal(disk->remove(disk->self, "a", &err), DP_NOT_FOUND);
    assert_int_equal(disk->write(disk->self, file, 1, &piece, 1, &err), DP_OK); /* open all the while */
    assert_int_equal(disk->sync_directory(disk->self, &err), DP_OK);
    assert_int_equal(disk->list(disk->self, see, &seen, &err), DP_OK);
    assert_int_equal(seen.count, 1);
    assert_string_equal(seen.names, "b");
    assert_int_equal(disk->open(disk->self, "b", false, &other, &err), DP_OK);
    assert_int_equal(disk->read(disk->self, other, 0, read, 2, &err), DP_OK);
    assert_memory_equal(read, "AA", 2);
    assert_int_equal(disk->remove(disk->self, "b", &err), DP_OK);
    disk->close(disk->self, file);
    disk->close(disk->self, other);
}

static void a_file_in_the_way_is_named(void **state)
{
    struct form *form = *state;
    struct dp_error err = {0};
    struct dp_disk disk;
    char below[128];
    if (form->sim)
        return;
    assert_int_equal(dp_disk_open("", &disk, &err), DP_ARGUMENT);
    struct dp_file *file;
    assert_int_equal(form->disk.open(form->disk.self, "f", true, &file, &err), DP_OK);
    form->disk.close(form->disk.self, file);
    (void)snprintf(below, sizeof below, "%s/a/b/f/g", form->path);
    assert_int_equal(dp_disk_open(below, &disk, &err), DP_IO);
    assert_non_null(strstr(err.text, "/a/b/f"));
}

/* ---- the simulated one alone ---- */

#define SECTORS 64u

/* Old content synced, new content not: how many sectors are new afterwards. */
static uint32_t new_after(uint64_t seed, enum dp_sim_survival survival, bool sync_fails, bool *prefix)
{
    struct dp_sim_disk *sim = dp_sim_disk_new(seed);
    struct dp_disk disk = dp_sim_disk_interface(sim);
    struct dp_file *file = NULL;
    static uint8_t old[SECTORS * 512], new[SECTORS * 512];
    uint32_t count = 0;
    uint64_t bytes;
    memset(old, 'o', sizeof old);
    memset(new, 'n', sizeof new);
    struct dp_disk_piece piece = {old, sizeof old};
    assert_int_equal(disk.open(disk.self, "f", true, &file, NULL), DP_OK);
    assert_int_equal(disk.write(disk.self, file, 0, &piece, 1, NULL), DP_OK);
    assert_int_equal(disk.sync(disk.self, file, NULL), DP_OK);
    assert_int_equal(disk.sync_directory(disk.self, NULL), DP_OK);
    piece.data = new;
    assert_int_equal(disk.write(disk.self, file, 0, &piece, 1, NULL), DP_OK);
    if (sync_fails) {
        dp_sim_disk_fail(sim, DP_SIM_SYNC, 1, 1, DP_IO);
        assert_int_equal(disk.sync(disk.self, file, NULL), DP_IO);
        assert_int_equal(disk.sync(disk.self, file, NULL), DP_OK); /* lies, as systems do */
    }
    dp_sim_disk_restart(sim, survival);
    const uint8_t *data = dp_sim_disk_bytes(sim, "f", &bytes);
    assert_int_equal(bytes, sizeof old);
    *prefix = true;
    for (uint32_t s = 0; s < SECTORS; s++) {
        bool fresh = data[s * 512] == 'n';
        for (uint32_t i = 1; i < 512; i++)
            assert_int_equal(data[s * 512 + i], data[s * 512]);
        *prefix = *prefix && fresh == (s < count + fresh);
        count += fresh;
    }
    if (!(survival == DP_SIM_PROCESS)) /* the file was open before */
        assert_int_equal(disk.sync(disk.self, file, NULL), DP_IO);
    disk.close(disk.self, file);
    dp_sim_disk_free(&sim);
    return count;
}

static void unsynced_sectors_survive_or_not(void **state)
{
    bool prefix;
    uint32_t torn = 0;
    assert_int_equal(new_after(1, DP_SIM_NOTHING, false, &prefix), 0);
    assert_int_equal(new_after(1, DP_SIM_ALL, false, &prefix), SECTORS);
    assert_int_equal(new_after(1, DP_SIM_PROCESS, false, &prefix), SECTORS);
    for (uint64_t seed = 0; seed < 50; seed++) {
        uint32_t fresh = new_after(seed, DP_SIM_RANDOM, false, &prefix);
        torn += fresh > 0 && fresh < SECTORS && !prefix;
        assert_int_equal(new_after(seed, DP_SIM_ALL, true, &prefix), 0); /* dropped by the failed sync */
    }
    assert_true(torn > 40);
}

static void unsynced_names_survive_or_not(void **state)
{
    uint32_t both = 0, none = 0, renamed = 0;
    for (uint64_t seed = 0; seed < 100; seed++) {
        struct dp_sim_disk *sim = dp_sim_disk_new(seed);
        struct dp_disk disk = dp_sim_disk_interface(sim);
        struct dp_file *file = NULL;
        struct seen seen = {0};
        assert_int_equal(disk.open(disk.self, "a", true, &file, NULL), DP_OK);
        assert_int_equal(disk.sync_directory(disk.self, NULL), DP_OK);
        disk.close(disk.self, file);
        assert_int_equal(disk.open(disk.self, "c", true, &file, NULL), DP_OK);
        disk.close(disk.self, file);
        assert_int_equal(disk.rename(disk.self, "a", "b", NULL), DP_OK);
        dp_sim_disk_restart(sim, DP_SIM_RANDOM);
        assert_int_equal(disk.list(disk.self, see, &seen, NULL), DP_OK);
        bool a = strchr(seen.names, 'a'), b = strchr(seen.names, 'b'), c = strchr(seen.names, 'c');
        assert_true(a != b);
        both += b && c;
        none += a && !c;
        renamed += b && !c;
        dp_sim_disk_free(&sim);
    }
    assert_true(both > 5 && none > 5 && renamed > 5);
}

static void power_goes_and_errors_come_when_told(void **state)
{
    struct dp_sim_disk *sim = dp_sim_disk_new(9);
    struct dp_disk disk = dp_sim_disk_interface(sim);
    struct dp_file *file = NULL;
    struct dp_disk_piece piece = {"x", 1};
    assert_int_equal(disk.open(disk.self, "f", true, &file, NULL), DP_OK);
    dp_sim_disk_fail(sim, DP_SIM_WRITE, 2, 2, DP_FULL);
    assert_int_equal(disk.write(disk.self, file, 0, &piece, 1, NULL), DP_OK);
    assert_int_equal(disk.write(disk.self, file, 0, &piece, 1, NULL), DP_FULL);
    assert_int_equal(disk.write(disk.self, file, 0, &piece, 1, NULL), DP_FULL);
    assert_int_equal(disk.write(disk.self, file, 0, &piece, 1, NULL), DP_OK);
    dp_sim_disk_capacity(sim, 100);
    assert_int_equal(disk.reserve(disk.self, file, 101, NULL), DP_FULL);
    assert_int_equal(disk.reserve(disk.self, file, 100, NULL), DP_OK);
    uint64_t operations = dp_sim_disk_operations(sim);
    dp_sim_disk_cut_at(sim, 2);
    assert_int_equal(disk.sync(disk.self, file, NULL), DP_OK);
    assert_int_equal(disk.write(disk.self, file, 0, &piece, 1, NULL), DP_IO);
    assert_true(dp_sim_disk_is_off(sim));
    assert_int_equal(disk.sync(disk.self, file, NULL), DP_IO);
    assert_int_equal(dp_sim_disk_operations(sim), operations + 2);
    disk.close(disk.self, file);
    dp_sim_disk_free(&sim);
}

#define BOTH(test)                                                                                           \
    cmocka_unit_test_setup_teardown(test, real_up, down), cmocka_unit_test_setup_teardown(test, sim_up, down)

/* Planted: rename is not checked. */
static void a_disk_that_is_only_read_refuses_changes(void **state)
{
    struct form *form = *state;
    struct dp_disk disk, *d = &disk;
    struct dp_file *file = NULL;
    const struct dp_disk_piece piece = {"x", 1};
    assert_int_equal(form->disk.open(form->disk.self, "here", true, &file, NULL), DP_OK);
    form->disk.close(form->disk.self, file);
    char path[96];
    (void)snprintf(path, sizeof path, "%s/a/b", form->path);
    assert_int_equal(dp_read_only_disk_open("/nowhere/at/all", d, NULL), DP_NOT_FOUND);
    assert_int_equal(dp_read_only_disk_open(path, d, NULL), DP_OK);
    assert_int_equal(d->open(d->self, "other", true, &file, NULL), DP_UNSUPPORTED);
    assert_int_equal(d->open(d->self, "here", false, &file, NULL), DP_OK);
    assert_int_equal(d->reserve(d->self, file, 10, NULL), DP_UNSUPPORTED);
    assert_int_equal(d->write(d->self, file, 0, &piece, 1, NULL), DP_UNSUPPORTED);
    assert_int_equal(d->sync(d->self, file, NULL), DP_UNSUPPORTED);
    d->close(d->self, file);
    assert_int_equal(d->rename(d->self, "here", "there", NULL), DP_UNSUPPORTED);
    assert_int_equal(d->remove(d->self, "here", NULL), DP_UNSUPPORTED);
    assert_int_equal(d->sync_directory(d->self, NULL), DP_UNSUPPORTED);
    dp_disk_close(d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        BOTH(bytes_come_back),
        BOTH(direct_writes_come_back),
        BOTH(reserved_space_reads_as_zero),
        BOTH(names_change),
        BOTH(a_file_in_the_way_is_named),
        cmocka_unit_test(unsynced_sectors_survive_or_not),
        cmocka_unit_test(unsynced_names_survive_or_not),
        cmocka_unit_test(power_goes_and_errors_come_when_told),
        cmocka_unit_test_setup_teardown(a_disk_that_is_only_read_refuses_changes, real_up, down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
