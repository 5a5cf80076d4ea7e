/* Store on RocksDB: several threads, portions, and disks that are full or out of descriptors. */
#include "tests/unit/server/store/rocks_bed.h"

#include "tests/lib/child.h"

/* Before others, see the next test. A pipe that nobody reads stands in the way of the write, which so never
 * ends; an alarm ends a process whose reads wait for it. */
static void reads_do_not_wait_for_writes(void **state)
{
    struct form *form = *state;
    char path[300];
    (void)snprintf(path, sizeof path, "%s/ingest-tmp", form->directory);
    pid_t child = fork();
    if (child == 0) {
        struct batch *write = batch_new(1, ROW);
        (void)alarm(30);
        open_it(form);
        write_rows(form, 3000, 0, 1);
        if (mkfifo(path, 0600) != 0)
            _exit(1);
        form_submit(form, batch_job(write, DP_STORE_WRITE));
        for (int i = 0; i < 20; i++) {
            expect_rows(form, 10, 0, 1);
            expect_rows(form, 3000, 0, 1);
        }
        _exit(0);
    }
    assert_int_equal(dp_exit_of(child), 0);
}

/* 100,000 rows in portions whose keys interleave, some of them twice; read back in other portions. */
static void many_rows_in_portions(void **state)
{
    struct form *form = *state;
    enum { PORTIONS = 20, LEN = 5000 };
    open_it(form);
    for (uint32_t round = 0; round < 2; round++)
        for (uint32_t p = 0; p < (round ? 5 : PORTIONS); p++) {
            struct batch *batch = batch_new(LEN, ROW);
            batch_fill(batch, 1, 0, PORTIONS, 1 + round);
            for (uint32_t i = 0; i < LEN; i++)
                batch->keys[i].mixed += p;
            for (uint32_t i = 0; i < LEN; i++) /* bytes of the row's key as it is now */
                memcpy(batch->rows[i], &batch->keys[i].mixed, 8);
            assert_int_equal(form_do(form, batch_job(batch, DP_STORE_WRITE)), DP_OK);
            batch_free(batch);
        }
    form_close(form, true);
    open_it(form);
    for (uint64_t from = 0; from < PORTIONS * LEN; from += 10000) {
        struct batch *read = batch_new(10000, ROW);
        batch_fill(read, 1, from, 1, 0);
        assert_int_equal(form_do(form, batch_job(read, DP_STORE_READ)), DP_OK);
        for (uint32_t i = 0; i < 10000; i++) {
            struct batch *one = batch_new(1, ROW);
            uint32_t portion = (uint32_t)((from + i) % PORTIONS);
            batch_fill(one, 1, (from + i) / PORTIONS, PORTIONS, portion < 5 ? 2 : 1);
            assert_true(read->found[i]);
            assert_memory_equal(read->rows[i], &read->keys[i].mixed, 8);
            assert_memory_equal((char *)read->rows[i] + 8, (char *)one->rows[0] + 8, ROW - 8);
            batch_free(one);
        }
        batch_free(read);
    }
}

/* A file that a crash left between write and ingest is swept at the next open, and its rows are not there. */
static void leftover_ingest_file_is_swept(void **state)
{
    struct form *form = *state;
    char path[300];
    (void)snprintf(path, sizeof path, "%s/ingest-tmp", form->directory);
    FILE *made = fopen(path, "w");
    assert_non_null(made);
    (void)fclose(made);
    open_it(form);
    assert_int_equal(access(path, F_OK), -1);
    write_rows(form, 10, 0, 1);
    assert_int_equal(access(path, F_OK), -1);
}

static void readers_are_as_many_as_asked_for(void **state)
{
    static const uint32_t counts[] = {1, 3, DP_ROCKS_READERS_MAX};
    struct form *form = *state;
    for (uint32_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        form->options.readers = counts[i];
        open_it(form);
        write_rows(form, 20000, 0, i);
        expect_rows(form, 20000, 0, i);
        expect_rows(form, 1025, 0, i);
        form_close(form, true);
    }
    form->options.readers = DP_ROCKS_READERS_MAX + 1;
    EXPECT_REFUSAL(form, DP_INVALID, "17 readers", "at most 16");
}

/* A directory in the place of the portion's file stands for a disk that fails. */
static void failed_write_fails_all_later_ones(void **state)
{
    struct form *form = *state;
    struct dp_error err = {0};
    const struct dp_store_mark mark = mark_text("m", "1");
    struct dp_store_job marks = marks_job(&mark, 1);
    char path[300];
    open_it(form);
    write_rows(form, 100, 0, 1);
    (void)snprintf(path, sizeof path, "%s/ingest-tmp", form->directory);
    assert_int_equal(mkdir(path, 0777), 0);
    assert_int_equal(do_rows(form, DP_STORE_WRITE, 20000, 0, 2, &err), DP_IO);
    assert_non_null(strstr(err.text, form->directory));
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(do_rows(form, DP_STORE_WRITE, 1, 0, 3, &err), DP_IO);
    assert_non_null(strstr(err.text, "an earlier write failed"));
    assert_int_equal(form_do(form, &marks), DP_IO);
    assert_int_equal(dp_rocks_store_mark_clean(&form->store, &err), DP_IO);
    expect_rows(form, 100, 0, 1); /* nothing of the failed write is seen */
    form_close(form, false);
    EXPECT_REFUSAL(form, DP_UNCLEAN, "not closed cleanly");
}

/* This process may write 256 KiB into a file, no more: what is larger is refused by itself, and succeeds when it may again. */
static void limited_file_size_refuses_until_it_is_raised(void **state)
{
    struct form *form = *state;
    struct rlimit before, small;
    struct dp_error err = {0};
    const struct dp_store_mark mark = mark_text("m", "1");
    struct dp_store_job marks = marks_job(&mark, 1);
    char path[300];
    void (*handler)(int) = signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(getrlimit(RLIMIT_FSIZE, &before), 0);
    small = before;
    small.rlim_cur = 256 * 1024;
    open_it(form);
    write_rows(form, 100, 0, 1);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &small), 0);
    enum dp_status st = do_rows(form, DP_STORE_WRITE, 20000, 0, 2, &err);
    enum dp_status marked = form_do(form, &marks);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &before), 0);
    (void)signal(SIGXFSZ, handler);
    assert_int_equal(st, DP_FULL);
    assert_non_null(strstr(err.text, form->directory));
    assert_non_null(strstr(err.text, "ulimit -f"));
    assert_int_equal(marked, DP_OK);
    expect_rows(form, 100, 0, 1); /* nothing of the refused write is seen */
    (void)snprintf(path, sizeof path, "%s/ingest-tmp", form->directory);
    assert_int_equal(access(path, F_OK), -1); /* nor does it take up room */
    write_rows(form, 20000, 0, 3);
    form_close(form, true);
    open_it(form); /* it is clean */
    expect_rows(form, 20000, 0, 3);
}

/* A process that may open no more files: a write is refused by itself, and succeeds when it may again; so are marks. */
static void no_descriptor_left_refuses_until_there_are(void **state)
{
    struct form *form = *state;
    struct rlimit before, none;
    struct dp_error err = {0}, ignored = {0};
    const struct dp_store_mark mark = mark_text("m", "1");
    struct dp_store_job marks = marks_job(&mark, 1);
    assert_int_equal(getrlimit(RLIMIT_NOFILE, &before), 0);
    open_it(form);
    write_rows(form, 100, 0, 1);
    int next = open("/dev/null", O_RDONLY);
    assert_true(next >= 0);
    (void)close(next);
    none = before;
    none.rlim_cur = (rlim_t)next;
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &none), 0);
    enum dp_status st = do_rows(form, DP_STORE_WRITE, 20000, 0, 2, &err);
    enum dp_status again = do_rows(form, DP_STORE_WRITE, 20000, 0, 2, &ignored);
    enum dp_status marked = form_do(form, &marks);
    expect_rows(form, 100, 0, 1); /* nothing of the refused write is seen */
    assert_int_equal(setrlimit(RLIMIT_NOFILE, &before), 0);
    assert_int_equal(st, DP_FULL);
    assert_non_null(strstr(err.text, form->directory));
    assert_non_null(strstr(err.text, "ulimit -n"));
    assert_int_equal(again, DP_FULL);
    assert_int_equal(marked, DP_FULL);
    assert_int_equal(form_do(form, &marks), DP_OK);
    write_rows(form, 20000, 0, 3);
    form_close(form, true);
    open_it(form); /* it is clean */
    expect_rows(form, 20000, 0, 3);
}

/* What did not fit is refused by itself, and succeeds when there is room again; marks still fit. */
static void full_disk_refuses_until_there_is_room(void **state)
{
    struct form *form = *state;
    struct dp_error err = {0}, ignored = {0};
    const struct dp_store_mark mark = mark_text("m", "1");
    struct dp_store_job marks = marks_job(&mark, 1);
    char disk[300], left[320];
    enum dp_status st = DP_OK;
    uint32_t i = 0;
    (void)snprintf(disk, sizeof disk, "%s/disk", form->directory);
    assert_int_equal(mkdir(disk, 0777), 0);
    if (mount("none", disk, "tmpfs", 0, "size=16m") != 0) {
        print_message("skipped: full_disk_refuses_until_there_is_room: no tmpfs could be mounted (%s)\n",
                      strerror(errno));
        skip();
    }
    form->options.directory = disk;
    open_it(form);
    write_rows(form, 100, 0, 1);
    while (st == DP_OK && i < 40)
        st = do_rows(form, DP_STORE_WRITE, 10000, 1000 + i++ * 10000, 2, &err);
    enum dp_status again = do_rows(form, DP_STORE_WRITE, 10000, 1000 + (i - 1) * 10000, 2, &ignored);
    enum dp_status marked = form_do(form, &marks);
    (void)snprintf(left, sizeof left, "%s/ingest-tmp", disk);
    bool removed = access(left, F_OK) != 0;
    expect_rows(form, 100, 0, 1);
    assert_int_equal(mount("none", disk, "tmpfs", MS_REMOUNT, "size=64m"), 0);
    enum dp_status some = form->store.room(form->store.self, 1 << 20, &ignored),
                   much = form->store.room(form->store.self, 64 << 20, &ignored);
    enum dp_status then = do_rows(form, DP_STORE_WRITE, 10000, 1000 + (i - 1) * 10000, 2, &ignored);
    expect_rows(form, 10000, 1000 + (i - 1) * 10000, 2);
    form_close(form, true);
    open_it(form); /* it is clean */
    expect_rows(form, 10000, 1000 + (i - 1) * 10000, 2);
    form_close(form, true);
    (void)umount(disk);
    assert_int_equal(st, DP_FULL);
    assert_non_null(strstr(err.text, disk));
    assert_non_null(strstr(err.text, "make room"));
    assert_int_equal(again, DP_FULL);
    assert_int_equal(marked, DP_OK);
    assert_int_equal(some, DP_OK);
    assert_int_equal(much, DP_FULL);
    assert_true(removed);
    assert_int_equal(then, DP_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(reads_do_not_wait_for_writes, set_up, tear_down),
        cmocka_unit_test_setup_teardown(many_rows_in_portions, set_up, tear_down),
        cmocka_unit_test_setup_teardown(leftover_ingest_file_is_swept, set_up, tear_down),
        cmocka_unit_test_setup_teardown(readers_are_as_many_as_asked_for, set_up, tear_down),
        cmocka_unit_test_setup_teardown(failed_write_fails_all_later_ones, set_up, tear_down),
        cmocka_unit_test_setup_teardown(limited_file_size_refuses_until_it_is_raised, set_up, tear_down),
        cmocka_unit_test_setup_teardown(no_descriptor_left_refuses_until_there_are, set_up, tear_down),
        cmocka_unit_test_setup_teardown(full_disk_refuses_until_there_is_room, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
