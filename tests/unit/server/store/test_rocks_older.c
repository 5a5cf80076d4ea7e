/* What a version before left in a store: its snapshots are removed, and the rows stay; a return to a snapshot that was cut short is
 * refused by name, by each way in, and nothing is changed. */
#define _XOPEN_SOURCE 700
#include "server/store/store_view.h"
#include "tests/lib/test.h"
#include "tests/unit/server/store/form.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define ROWS 40u
#define PATH 640u

static const char *path_of(const struct form *form, const char *name, char path[PATH])
{
    (void)snprintf(path, PATH, "%s/%s", form->directory, name);
    return path;
}

static bool has(const struct form *form, const char *name)
{
    char path[PATH];
    return access(path_of(form, name, path), F_OK) == 0;
}

/* A store that was closed cleanly, with a directory of that name in it. */
static struct form *with_directory(const char *name)
{
    struct form *form = form_new(true);
    struct batch *batch = batch_new(ROWS, 64);
    struct dp_error err = {0};
    char path[PATH], file[PATH];
    assert_int_equal(form_open(form, &err), DP_OK);
    batch_fill(batch, 7, 0, 1, 1);
    assert_int_equal(form_do(form, batch_job(batch, DP_STORE_WRITE)), DP_OK);
    form_close(form, true);
    batch_free(batch);
    assert_int_equal(mkdir(path_of(form, name, path), 0777), 0);
    (void)snprintf(file, sizeof file, "%.600s/CURRENT", path);
    FILE *stream = fopen(file, "w");
    assert_non_null(stream);
    assert_int_equal(fclose(stream), 0);
    return form;
}

static void snapshots_are_removed(void **state)
{
    struct form *form = with_directory("snapshot-1-3");
    struct batch *batch = batch_new(ROWS, 64);
    struct dp_error err = {0};
    form->options.read_only = true;
    assert_int_equal(form_open(form, &err), DP_OK);
    form_close(form, false);
    assert_true(has(form, "snapshot-1-3"));
    form->options.read_only = false;
    assert_int_equal(form_open(form, &err), DP_OK);
    assert_false(has(form, "snapshot-1-3"));
    batch_fill(batch, 7, 0, 1, 0);
    assert_int_equal(form_do(form, batch_job(batch, DP_STORE_READ)), DP_OK);
    batch_expect(batch, 1);
    form_close(form, true);
    batch_free(batch);
    form_free(form);
}

static void a_return_that_was_cut_short_is_refused(void **state)
{
    struct form *form = with_directory("revert-1-3");
    struct dp_store_view *view = NULL;
    for (int read_only = 0; read_only < 2; read_only++) {
        struct dp_error err = {0};
        form->options.read_only = read_only;
        assert_int_equal(form_open(form, &err), DP_UNSUPPORTED);
        assert_non_null(strstr(err.text, "start its server once with that version"));
        assert_non_null(strstr(err.text, form->directory));
    }
    struct dp_error err = {0};
    assert_int_equal(dp_store_view_open(form->directory, NULL, &view, &err), DP_UNSUPPORTED);
    assert_true(has(form, "revert-1-3"));
    form_free(form);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(snapshots_are_removed),
        cmocka_unit_test(a_return_that_was_cut_short_is_refused),
    };
    return cmocka_run_group_tests_name("rocks older", tests, NULL, NULL);
}
