/* The manifest names a table that RocksDB removed after a failed sync, and ingest-tmp has its bytes: the next open puts it back.
 * The state is made by hand here: a table is renamed to ingest-tmp. tests/fault/test_store_errors makes it by failing syncs. Any other
 * missing table stays refused, and nothing is changed then. */
#define _XOPEN_SOURCE 700 /* scandir */
#include "server/store/repair/rocks_kept.h"

#include "server/store/store_view.h"
#include "tests/lib/test.h"
#include "tests/unit/server/store/form.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define ROWS      40u
#define ROW_BYTES 64u
#define PATH      640u

static const char *path_of(const struct form *form, const char *name, char path[PATH])
{
    (void)snprintf(path, PATH, "%s/%s", form->directory, name);
    return path;
}

static bool is_there(const struct form *form, const char *name)
{
    char path[PATH];
    return access(path_of(form, name, path), F_OK) == 0;
}

static enum dp_status open_it(struct form *form, struct dp_error *err)
{
    form->options.journaled = true;
    return form_open(form, err);
}

static void write_rows(struct form *form, uint32_t version)
{
    struct batch *batch = batch_new(ROWS, ROW_BYTES);
    batch_fill(batch, 1, 0, 3, version);
    assert_int_equal(form_do(form, batch_job(batch, DP_STORE_WRITE)), DP_OK);
    batch_free(batch);
}

static void expect_rows(struct form *form, uint32_t version)
{
    struct batch *batch = batch_new(ROWS, ROW_BYTES);
    batch_fill(batch, 1, 0, 3, 0);
    assert_int_equal(form_do(form, batch_job(batch, DP_STORE_READ)), DP_OK);
    batch_expect(batch, version);
    batch_free(batch);
}

/* The n-th newest table. */
static void newest(const struct form *form, uint32_t n, char name[32])
{
    struct dirent **list = NULL;
    int count = scandir(form->directory, &list, NULL, alphasort);
    name[0] = '\0';
    for (int i = count; i-- > 0;) {
        bool table = strlen(list[i]->d_name) > 4 && strstr(list[i]->d_name, ".sst");
        if (table && n-- == 0)
            (void)snprintf(name, 32, "%.31s", list[i]->d_name);
        free(list[i]);
    }
    free(list);
    assert_true(name[0]);
}

static void rename_in(const struct form *form, const char *from, const char *to)
{
    char from_path[PATH], to_path[PATH];
    assert_int_equal(rename(path_of(form, from, from_path), path_of(form, to, to_path)), 0);
}

/* Two versions of the same rows, then the end of the process; table: the second one's. */
static struct form *two_versions(char table[32])
{
    struct dp_error err = {0};
    struct form *form = form_new(true);
    assert_int_equal(open_it(form, &err), DP_OK);
    write_rows(form, 1);
    write_rows(form, 2);
    form_close(form, false);
    newest(form, 0, table);
    return form;
}

static void a_kept_portion_is_put_back(void **state)
{
    char table[32];
    struct dp_error err = {0};
    struct form *form = two_versions(table);
    rename_in(form, table, DP_ROCKS_KEPT);
    if (open_it(form, &err) != DP_OK)
        fail_msg("%s", err.text);
    expect_rows(form, 2);
    write_rows(form, 3);
    form_close(form, true);
    assert_false(is_there(form, DP_ROCKS_KEPT));
    assert_int_equal(open_it(form, &err), DP_OK);
    expect_rows(form, 3);
    form_free(form);
}

static void inspect_says_so_and_changes_nothing(void **state)
{
    char table[32];
    struct dp_error err = {0};
    struct dp_store_view *inspect = NULL;
    struct form *form = two_versions(table);
    rename_in(form, table, DP_ROCKS_KEPT);
    assert_int_equal(dp_store_view_open(form->directory, NULL, &inspect, &err), DP_UNCLEAN);
    assert_non_null(strstr(err.text, table));
    assert_non_null(strstr(err.text, "restores the file"));
    assert_true(is_there(form, DP_ROCKS_KEPT) && !is_there(form, table));
    form_free(form);
}

static void refused(struct form *form, const char *table)
{
    struct dp_error err = {0};
    struct dp_store_view *inspect = NULL;
    assert_int_equal(open_it(form, &err), DP_CORRUPT);
    assert_true(is_there(form, DP_ROCKS_KEPT) && !is_there(form, table));
    assert_int_not_equal(dp_store_view_open(form->directory, NULL, &inspect, &err), DP_OK);
    assert_true(is_there(form, DP_ROCKS_KEPT) && !is_there(form, table));
    form_free(form);
}

/* The first version's table has the same size: RocksDB sees by its id that it is another one. */
static void another_table_of_that_size_is_refused(void **state)
{
    char table[32], other[32], copy[PATH], path[PATH];
    struct form *form = two_versions(table);
    newest(form, 1, other);
    assert_int_equal(unlink(path_of(form, table, path)), 0);
    assert_int_equal(link(path_of(form, other, path), path_of(form, DP_ROCKS_KEPT, copy)), 0);
    refused(form, table);
}

static void one_of_another_size_is_refused(void **state)
{
    char table[32], path[PATH];
    struct form *form = two_versions(table);
    rename_in(form, table, DP_ROCKS_KEPT);
    int fd = open(path_of(form, DP_ROCKS_KEPT, path), O_WRONLY | O_APPEND | O_CLOEXEC);
    assert_int_equal(write(fd, "", 1), 1);
    (void)close(fd);
    refused(form, table);
}

static void two_missing_tables_are_refused(void **state)
{
    char table[32], other[32], path[PATH];
    struct form *form = two_versions(table);
    newest(form, 1, other);
    assert_int_equal(unlink(path_of(form, other, path)), 0);
    rename_in(form, table, DP_ROCKS_KEPT);
    refused(form, table);
}

static void without_a_kept_portion_it_is_damage(void **state)
{
    char table[32], path[PATH];
    struct dp_error err = {0};
    struct form *form = two_versions(table);
    assert_int_equal(unlink(path_of(form, table, path)), 0);
    assert_int_equal(open_it(form, &err), DP_CORRUPT);
    form_free(form);
}

/* Another process has the store: nothing is moved under it. */
static void nothing_is_put_back_beside_a_server(void **state)
{
    char table[32], path[PATH], byte;
    struct dp_error err = {0};
    int ready[2];
    struct form *form = two_versions(table);
    rename_in(form, table, DP_ROCKS_KEPT);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    if (child == 0) {
        struct flock lock = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
        int fd = open(path_of(form, "LOCK", path), O_RDWR | O_CLOEXEC);
        if (fcntl(fd, F_SETLK, &lock) != 0 || write(ready[1], "", 1) != 1)
            _exit(1);
        (void)alarm(60);
        for (;;)
            (void)pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    enum dp_status st = open_it(form, &err);
    bool kept = is_there(form, DP_ROCKS_KEPT) && !is_there(form, table);
    (void)kill(child, SIGKILL);
    (void)waitpid(child, NULL, 0);
    (void)close(ready[0]);
    (void)close(ready[1]);
    assert_int_equal(st, DP_IN_USE);
    assert_true(kept);
    form_free(form);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_kept_portion_is_put_back),
        cmocka_unit_test(inspect_says_so_and_changes_nothing),
        cmocka_unit_test(another_table_of_that_size_is_refused),
        cmocka_unit_test(one_of_another_size_is_refused),
        cmocka_unit_test(two_missing_tables_are_refused),
        cmocka_unit_test(without_a_kept_portion_it_is_damage),
        cmocka_unit_test(nothing_is_put_back_beside_a_server),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
