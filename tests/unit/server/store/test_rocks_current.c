/* CURRENT names a manifest that is not there: as a loss of power leaves it while RocksDB opens a store, it is pointed back at the
 * manifest before it and nothing is lost; in every other form the store stays refused, and nothing in it is changed. */
#define _XOPEN_SOURCE 700
#include "server/store/repair/rocks_current.h"

#include "server/store/store_view.h"
#include "tests/lib/test.h"
#include "tests/unit/server/store/form.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS      40u
#define ROW_BYTES 64u
#define PATH      640u
#define MANIFEST  "MANIFEST-"

static const char *path_of(const struct form *form, const char *name, char path[PATH])
{
    (void)snprintf(path, PATH, "%s/%s", form->directory, name);
    return path;
}

static void write_text(const struct form *form, const char *name, const char *text)
{
    char path[PATH];
    FILE *file = fopen(path_of(form, name, path), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static void read_text(const struct form *form, const char *name, char text[64])
{
    char path[PATH];
    FILE *file = fopen(path_of(form, name, path), "r");
    assert_non_null(file);
    assert_non_null(fgets(text, 64, file));
    assert_int_equal(fclose(file), 0);
}

static unsigned long current_number(const struct form *form)
{
    char text[64];
    read_text(form, "CURRENT", text);
    assert_int_equal(strncmp(text, MANIFEST, strlen(MANIFEST)), 0);
    return strtoul(text + strlen(MANIFEST), NULL, 10);
}

static void set_current(const struct form *form, unsigned long number)
{
    char text[64];
    (void)snprintf(text, sizeof text, MANIFEST "%06lu\n", number);
    write_text(form, "CURRENT", text);
}

static enum dp_status check(const struct form *form, struct dp_error *err)
{
    struct dp_disk disk;
    assert_int_equal(dp_disk_open(form->directory, &disk, err), DP_OK);
    enum dp_status st = dp_rocks_current_check(&disk, form->directory, err);
    dp_disk_close(&disk);
    return st;
}

static struct form *with_rows(void)
{
    struct dp_error err = {0};
    struct form *form = form_new(true);
    struct batch *batch = batch_new(ROWS, ROW_BYTES);
    form->options.journaled = true;
    assert_int_equal(form_open(form, &err), DP_OK);
    batch_fill(batch, 1, 0, 3, 1);
    assert_int_equal(form_do(form, batch_job(batch, DP_STORE_WRITE)), DP_OK);
    batch_free(batch);
    form_close(form, false);
    return form;
}

static void expect_rows(struct form *form)
{
    struct batch *batch = batch_new(ROWS, ROW_BYTES);
    batch_fill(batch, 1, 0, 3, 0);
    assert_int_equal(form_do(form, batch_job(batch, DP_STORE_READ)), DP_OK);
    batch_expect(batch, 1);
    batch_free(batch);
}

static void power_that_went_at_an_opening_is_mended(void **state)
{
    struct dp_error err = {0};
    struct form *form = with_rows();
    unsigned long number = current_number(form);
    set_current(form, number + 5);
    assert_int_equal(check(form, &err), DP_UNCLEAN);
    assert_non_null(strstr(err.text, "goes back to " MANIFEST));
    assert_int_equal(current_number(form), number + 5); /* looking changes nothing */
    for (int time = 0; time < 2; time++) {
        if (form_open(form, &err) != DP_OK)
            fail_msg("%s", err.text);
        expect_rows(form);
        form_close(form, false);
        assert_int_equal(check(form, &err), DP_OK);
    }
    form_free(form);
}

/* before, behind: empty manifests beside the real one, that many numbers away; 0: none. */
static void stays_refused(bool real, unsigned before, unsigned behind)
{
    char name[64], path[PATH], aside[PATH];
    struct dp_error err = {0};
    struct form *form = with_rows();
    unsigned long number = current_number(form);
    set_current(form, number + 5);
    (void)snprintf(name, sizeof name, MANIFEST "%06lu", number);
    if (!real)
        assert_int_equal(rename(path_of(form, name, path), path_of(form, "aside", aside)), 0);
    for (int i = 0; i < 2; i++) {
        unsigned away = i ? behind : before;
        (void)snprintf(name, sizeof name, MANIFEST "%06lu", i ? number + away : number - away);
        if (away > 0)
            write_text(form, name, "");
    }
    assert_int_equal(check(form, &err), DP_CORRUPT);
    assert_int_equal(form_open(form, &err), DP_CORRUPT);
    assert_non_null(strstr(err.text, "which is missing"));
    assert_int_equal(current_number(form), number + 5);
    form_free(form);
}

static void anything_else_stays_refused(void **state)
{
    stays_refused(false, 0, 0); /* no manifest */
    stays_refused(true, 1, 0);  /* two that are earlier: which one was in use? */
    stays_refused(true, 0, 2);
    stays_refused(false, 0, 7); /* a later one */
}

static void a_sound_store_is_left_alone(void **state)
{
    struct dp_error err = {0};
    struct form *form = with_rows();
    unsigned long number = current_number(form);
    write_text(form, MANIFEST "000001", "");
    assert_int_equal(check(form, &err), DP_OK);
    struct dp_disk disk;
    assert_int_equal(dp_disk_open(form->directory, &disk, &err), DP_OK);
    assert_int_equal(dp_rocks_current_mend(&disk, form->directory, &err), DP_OK);
    dp_disk_close(&disk);
    assert_int_equal(current_number(form), number);
    form_free(form);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(power_that_went_at_an_opening_is_mended),
                                       cmocka_unit_test(anything_else_stays_refused),
                                       cmocka_unit_test(a_sound_store_is_left_alone)};
    return cmocka_run_group_tests_name("rocks current", tests, NULL, NULL);
}
