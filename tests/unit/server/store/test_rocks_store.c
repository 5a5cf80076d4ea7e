/* What RocksDB's form adds to store.h: whose a directory is, how it was left, and a disk that fails. */
#include "tests/unit/server/store/rocks_bed.h"

#include "server/store/store_view.h"
#include "tests/lib/child.h"
#include "tests/lib/store_history.h"

/* Names, sizes and times of all files below a directory, added up; what changes changes it. */
static uint64_t fingerprint(const char *directory)
{
    uint64_t sum = 0;
    DIR *list = opendir(directory);
    assert_non_null(list);
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        struct stat info;
        if (strcmp(entry->d_name, "..") == 0)
            continue;
        assert_int_equal(fstatat(dirfd(list), entry->d_name, &info, 0), 0);
        uint64_t one = (uint64_t)info.st_ino * 31 + (uint64_t)info.st_size;
        one = one * 31 + (uint64_t)info.st_mtim.tv_sec;
        sum += one * 1000000007u + (uint64_t)info.st_mtim.tv_nsec;
    }
    assert_int_equal(closedir(list), 0);
    return sum;
}

/* Whether another process may lock the store, as a server does. (Only what is safe in a child of many threads.) */
static bool is_free(const char *directory)
{
    char path[300];
    (void)snprintf(path, sizeof path, "%s/LOCK", directory);
    pid_t child = fork();
    if (child == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int file = open(path, O_RDWR);
        _exit(file >= 0 && fcntl(file, F_SETLK, &lock) == 0 ? 0 : 1);
    }
    return dp_exit_of(child) == 0;
}

/* Closed cleanly or not: rows and marks are read, nothing is changed, and who would write is kept away meanwhile. */
static void what_is_opened_to_read_stays_as_it_is(void **state)
{
    struct form *form = *state;
    bool recovers = false;
    for (uint32_t clean = 0; clean < 2; clean++) {
        form->options.read_only = false;
        form->options.journaled = true;
        form->options.recovers = &recovers;
        open_it(form);
        write_rows(form, 3000, 0, 1);
        form_close(form, clean);
        uint64_t before = fingerprint(form->options.directory);
        form->options.read_only = true;
        open_it(form);
        assert_int_equal(recovers, !clean);
        assert_false(is_free(form->options.directory));
        expect_rows(form, 3000, 0, 1);
        form_close(form, false);
        assert_true(is_free(form->options.directory));
        assert_true(fingerprint(form->options.directory) == before);
    }
}

static void what_is_not_there_is_not_made_to_be_read(void **state)
{
    struct form *form = *state;
    form->options.read_only = true;
    assert_int_equal(rmdir(form->options.directory), 0);
    EXPECT_REFUSAL(form, DP_NOT_FOUND, "CURRENT: No such file");
    assert_int_equal(access(form->options.directory, F_OK), -1);
    form->options.read_only = false;
    open_it(form);
    write_rows(form, 10, 0, 1);
    form_close(form, true);
    form->options.read_only = true;
    form->options.cluster++;
    EXPECT_REFUSAL(form, DP_GENERATION, "belongs to cluster");
    form->options.cluster--;
    form->options.journaled = false;
    open_it(form); /* it was closed cleanly: no journal is needed */
    form_close(form, false);
}

/* Before all tests that do not fork: a process that has RocksDB's threads running must not fork. The rows are read below the
 * store, which refuses the directory. */
static void completed_jobs_outlast_the_process(void **state)
{
    struct form *form = *state;
    struct dp_rocks_db db;
    struct dp_error err = {0};
    pid_t child = fork();
    if (child == 0) {
        const struct dp_store_mark mark = mark_text("m", "1");
        struct dp_store_job marks = marks_job(&mark, 1);
        open_it(form);
        write_rows(form, 3000, 0, 1);
        _exit(form_do(form, &marks) == DP_OK ? 0 : 1);
    }
    assert_int_equal(dp_exit_of(child), 0);
    EXPECT_REFUSAL(form, DP_UNCLEAN, "not closed cleanly");
    assert_int_equal(dp_rocks_db_open(form->directory, &db, &err), DP_OK);
    struct batch *read = batch_new(3000, ROW);
    struct dp_rows_scratch *scratch = malloc(sizeof *scratch);
    assert_non_null(scratch);
    batch_fill(read, 1, 0, 3, 0);
    assert_int_equal(dp_rows_read(&db, scratch, batch_job(read, DP_STORE_READ), 0, 3000, &err), DP_OK);
    batch_expect(read, 1);
    dp_rocks_db_close(&db);
    free(scratch);
    batch_free(read);
}

/* The crash came after the database was made and before the first marks. */
static void database_without_marks_is_new(void **state)
{
    struct form *form = *state;
    struct dp_rocks_db db;
    struct dp_error err = {0};
    assert_int_equal(dp_rocks_db_open(form->directory, &db, &err), DP_OK);
    dp_rocks_db_close(&db);
    open_it(form);
    write_rows(form, 10, 0, 1);
    form_close(form, true);
}

static void rows_without_marks_are_refused(void **state)
{
    struct form *form = *state;
    struct dp_rocks_db db;
    struct dp_error err = {0};
    struct batch *batch = batch_new(10, ROW);
    batch_fill(batch, 1, 0, 1, 1);
    assert_int_equal(dp_rocks_db_open(form->directory, &db, &err), DP_OK);
    const struct dp_store_job *const jobs[] = {batch_job(batch, DP_STORE_WRITE)};
    assert_int_equal(dp_rows_write(&db, jobs, 1, &err), DP_OK);
    dp_rocks_db_close(&db);
    batch_free(batch);
    EXPECT_REFUSAL(form, DP_CORRUPT, "store/state is missing");
}

/* Own marks of a wrong value or length, and a format of another build. Each case is checked for before those
 * above it. */
static void damaged_own_marks_are_refused(void **state)
{
    struct form *form = *state;
    static const struct {
        const char *key, *value;
        size_t bytes;
        enum dp_status why;
    } cases[] = {{"store/state", "opens", 5, DP_CORRUPT},
                 {"store/range", "0123456789abcdefg", 17, DP_CORRUPT},
                 {"store/cluster", "1234567", 7, DP_CORRUPT},
                 {"store/format", "\3\0\0", 4, DP_UNSUPPORTED}};
    open_it(form);
    form_close(form, true);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dp_store_mark mark = {cases[i].key, cases[i].value, strlen(cases[i].key), cases[i].bytes};
        struct dp_store_mark clean = {"store/state", "clean", 11, 5};
        struct dp_rocks_db db;
        struct dp_error err = {0};
        assert_int_equal(dp_rocks_db_open(form->directory, &db, &err), DP_OK);
        assert_int_equal(dp_marks_put(&db, &clean, 1, &err), DP_OK);
        assert_int_equal(dp_marks_put(&db, &mark, 1, &err), DP_OK);
        dp_rocks_db_close(&db);
        expect_refusal(form, cases[i].why,
                       (const char *const[]){cases[i].why == DP_CORRUPT ? cases[i].key : "format 3", NULL});
    }
}

static void unclean_close_is_refused(void **state)
{
    struct form *form = *state;
    open_it(form);
    form_close(form, false);
    for (int i = 0; i < 2; i++) /* a refusal does not heal it */
        EXPECT_REFUSAL(form, DP_UNCLEAN, "not closed cleanly", "lost", "No checkpoint", "--discard");
}

static void what_is_refused_names_its_checkpoint(void **state)
{
    struct form *form = *state;
    static const char where[] = "/there/checkpoint-000007";
    const struct dp_store_mark mark = {DP_STORE_MARK_CHECKPOINT, where, sizeof DP_STORE_MARK_CHECKPOINT - 1,
                                       sizeof where - 1};
    struct dp_rocks_db db;
    struct dp_error err = {0};
    open_it(form);
    form_close(form, false);
    assert_int_equal(dp_rocks_db_open(form->directory, &db, &err), DP_OK);
    assert_int_equal(dp_marks_put(&db, &mark, 1, &err), DP_OK);
    dp_rocks_db_close(&db);
    EXPECT_REFUSAL(form, DP_UNCLEAN, "not closed cleanly", "lost",
                   "restore --overwrite --from /there/checkpoint-000007)", "--discard");
}

/* Clean once is not clean for ever: each open takes the mark away again. */
static void clean_mark_holds_for_one_close(void **state)
{
    struct form *form = *state;
    open_it(form);
    write_rows(form, 10, 0, 1);
    form_close(form, true);
    open_it(form);
    expect_rows(form, 10, 0, 1);
    form_close(form, false);
    EXPECT_REFUSAL(form, DP_UNCLEAN, "not closed cleanly");
}

static void another_identity_is_refused(void **state)
{
    struct form *form = *state;
    struct dp_rocks_store_options right = form->options;
    open_it(form);
    write_rows(form, 10, 0, 1);
    form_close(form, true);
    form->options.cluster = 0xabcdu;
    EXPECT_REFUSAL(form, DP_GENERATION, "0x1122334455667788", "0x000000000000abcd");
    form->options = right;
    form->options.range.first--;
    EXPECT_REFUSAL(form, DP_EXISTS, "0x0000000000100000..0x7fffffffffffffff", "0x00000000000fffff..");
    form->options = right;
    form->options.range.last++;
    EXPECT_REFUSAL(form, DP_EXISTS, "..0x7fffffffffffffff", "..0x8000000000000000");
    form->options = right; /* the refusals changed nothing */
    open_it(form);
    expect_rows(form, 10, 0, 1);
    form_close(form, false);
    form->options.cluster = 0xabcdu; /* whose it is comes before how it was left */
    EXPECT_REFUSAL(form, DP_GENERATION, "0x000000000000abcd");
}

static void expect_generation(struct form *form, uint64_t generation, uint64_t history)
{
    struct dp_store_id id = {0};
    struct dp_store_view *view = NULL;
    struct dp_error err = {0};
    assert_int_equal(dp_store_view_open(form->directory, NULL, &view, &err), DP_OK);
    const struct dp_store_id *seen = &dp_store_view_own(view)->id;
    assert_true(seen->generation == generation && seen->history == history);
    dp_store_view_close(&view);
    form->options.id = &id;
    open_it(form);
    assert_true(id.generation == generation && id.history == history);
    form->options.id = NULL;
    form_close(form, true);
}

/* The options count for a new store only; after that the store says what it is, until a restore says otherwise. */
static void the_generation_is_the_stores_own(void **state)
{
    struct form *form = *state;
    const uint64_t first = form->options.history;
    open_it(form);
    write_rows(form, 10, 0, 1);
    form_close(form, true);
    form->options.generation = 9;
    form->options.history = 9;
    expect_generation(form, 3, first);
    store_history_set(form->directory, 4, UINT64_MAX);
    expect_generation(form, 4, UINT64_MAX);
    open_it(form);
    expect_rows(form, 10, 0, 1);
    form_close(form, false);
    /* How it was closed stays. */
    store_history_set(form->directory, 5, 6);
    EXPECT_REFUSAL(form, DP_UNCLEAN, "not closed cleanly");
}

/* Stores of builds before histories have the mark store/generation alone. */
static void a_store_without_a_history_was_never_restored(void **state)
{
    struct form *form = *state;
    struct dp_rocks_db db;
    struct dp_error err = {0};
    const struct dp_store_mark none = {.key = "store/history", .key_bytes = 13};
    open_it(form);
    form_close(form, true);
    assert_int_equal(dp_rocks_db_open(form->directory, &db, &err), DP_OK);
    assert_int_equal(dp_marks_put(&db, &none, 1, &err), DP_OK);
    dp_rocks_db_close(&db);
    expect_generation(form, 3, 0);
}

static void directory_in_use_is_refused(void **state)
{
    struct form *form = *state;
    struct form other = {.rocks = true, .options = form->options};
    open_it(form);
    EXPECT_REFUSAL(&other, DP_IN_USE, "another server is using it");
    write_rows(form, 10, 0, 1);
    form_close(form, true);
    open_it(form);
    expect_rows(form, 10, 0, 1);
}

static void directory_is_made_with_its_parents(void **state)
{
    struct form *form = *state;
    char path[512];
    (void)snprintf(path, sizeof path, "%s/a//b/c/", form->directory);
    form->options.directory = path;
    open_it(form);
    write_rows(form, 10, 0, 1);
    form_close(form, true);
    open_it(form);
    expect_rows(form, 10, 0, 1);
    form_close(form, true);
}

static void file_in_the_way_is_named(void **state)
{
    struct form *form = *state;
    char file[512], path[600];
    (void)snprintf(file, sizeof file, "%s/file", form->directory);
    (void)snprintf(path, sizeof path, "%s/store", file);
    FILE *made = fopen(file, "w");
    assert_non_null(made);
    (void)fclose(made);
    struct dp_error err = {0};
    form->options.directory = path;
    assert_int_equal(form_open(form, &err), DP_IO);
    assert_non_null(strstr(err.text, file));
    form->options.directory = file;
    EXPECT_REFUSAL(form, DP_IO, "a file is in the way");
}

/* The largest *.sst: rows. */
static void largest_sst(const struct form *form, char *path, size_t path_bytes)
{
    off_t largest = 0;
    char one[1024];
    DIR *list = opendir(form->directory);
    assert_non_null(list);
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        struct stat found;
        (void)snprintf(one, sizeof one, "%s/%s", form->directory, entry->d_name);
        if (strstr(entry->d_name, ".sst") && stat(one, &found) == 0 && found.st_size > largest) {
            largest = found.st_size;
            (void)snprintf(path, path_bytes, "%s", one);
        }
    }
    (void)closedir(list);
    assert_true(largest > 1000000);
}

static void missing_rows_are_refused(void **state)
{
    struct form *form = *state;
    char sst[1100], current[300];
    open_it(form);
    write_rows(form, 20000, 0, 1);
    form_close(form, true);
    /* RocksDB alone would take this directory as new, and remove the rows. */
    (void)snprintf(current, sizeof current, "%s/CURRENT", form->directory);
    assert_int_equal(unlink(current), 0);
    EXPECT_REFUSAL(form, DP_CORRUPT, "CURRENT");
    largest_sst(form, sst, sizeof sst); /* they are there still */
}

static void missing_file_is_named(void **state)
{
    struct form *form = *state;
    char sst[1100];
    open_it(form);
    write_rows(form, 20000, 0, 1);
    form_close(form, true);
    largest_sst(form, sst, sizeof sst);
    assert_int_equal(unlink(sst), 0);
    *strrchr(sst, '.') = 0; /* RocksDB tells the number with another ending, the last that it tried */
    EXPECT_REFUSAL(form, DP_CORRUPT, strrchr(sst, '/') + 1);
}

/* Beside the store that is open: the rows of before, and what has none is counted. */
static void rows_are_read_bare_beside_a_server(void **state)
{
    struct form *form = *state;
    struct dp_error err = {0};
    struct dp_bare *bare = NULL;
    struct dp_bare_scratch *scratch = dp_bare_scratch_new();
    struct batch *batch = batch_new(300, ROW);
    uint64_t missing = 0;
    assert_non_null(scratch);
    batch_fill(batch, 1, 0, 3, 1);
    open_it(form);
    assert_int_equal(form_do(form, batch_job(batch, DP_STORE_WRITE)), DP_OK);
    assert_int_equal(dp_bare_open(form->directory, &bare, &err), DP_OK);
    assert_int_equal(dp_bare_read(bare, scratch, batch->keys, 300, &missing, &err), DP_OK);
    assert_int_equal(missing, 0);
    batch_fill(batch, 1, 200, 3, 1); /* a third of them are there */
    assert_int_equal(dp_bare_read(bare, scratch, batch->keys, 300, &missing, &err), DP_OK);
    assert_int_equal(missing, 200);
    dp_bare_close(&bare);
    free(scratch);
    batch_free(batch);
    char nowhere[512];
    (void)snprintf(nowhere, sizeof nowhere, "%s/nowhere", form->directory);
    assert_int_equal(dp_bare_open(nowhere, &bare, &err), DP_NOT_FOUND);
    assert_null(bare);
    assert_int_not_equal(access(nowhere, F_OK), 0); /* nor was it made */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(completed_jobs_outlast_the_process, set_up, tear_down),
        cmocka_unit_test_setup_teardown(database_without_marks_is_new, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rows_without_marks_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(damaged_own_marks_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(unclean_close_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_refused_names_its_checkpoint, set_up, tear_down),
        cmocka_unit_test_setup_teardown(clean_mark_holds_for_one_close, set_up, tear_down),
        cmocka_unit_test_setup_teardown(another_identity_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(the_generation_is_the_stores_own, set_up, tear_down),
        cmocka_unit_test_setup_teardown(a_store_without_a_history_was_never_restored, set_up, tear_down),
        cmocka_unit_test_setup_teardown(directory_in_use_is_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_opened_to_read_stays_as_it_is, set_up, tear_down),
        cmocka_unit_test_setup_teardown(what_is_not_there_is_not_made_to_be_read, set_up, tear_down),
        cmocka_unit_test_setup_teardown(directory_is_made_with_its_parents, set_up, tear_down),
        cmocka_unit_test_setup_teardown(file_in_the_way_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(missing_rows_are_refused, set_up, tear_down),
        cmocka_unit_test_setup_teardown(missing_file_is_named, set_up, tear_down),
        cmocka_unit_test_setup_teardown(rows_are_read_bare_beside_a_server, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
