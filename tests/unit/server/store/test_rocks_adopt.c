/* A copy of a store's database becomes a store of its own. Goal: it has the rows and marks of the copy's moment, but for the marks
 * that are put or removed, another id, and is opened as after a crash; what is not that store's copy is refused, and nothing is
 * changed then. Method: the files of an open store are linked beside it, adopted, and opened; the store goes on meanwhile. */
#include "server/store/repair/rocks_adopt.h"

#include "server/store/store_view.h"
#include "tests/lib/test.h"
#include "tests/unit/server/store/form.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROW  64u
#define ROWS 300u

struct adopting {
    struct form *form, *copy; /* copy: of what was adopted */
    struct dp_store_id id;    /* of the store that is copied */
};

static int set_up(void **state)
{
    struct adopting *a = calloc(1, sizeof *a);
    struct dp_error err = {0};
    a->form = form_new(true);
    a->copy = form_new(true);
    a->form->options.journaled = a->copy->options.journaled = true;
    a->form->options.id = &a->id;
    assert_int_equal(form_open(a->form, &err), DP_OK);
    *state = a;
    return 0;
}

static int tear_down(void **state)
{
    struct adopting *a = *state;
    form_free(a->form);
    form_free(a->copy);
    free(a);
    return 0;
}

static void write_rows(struct form *form, uint32_t version)
{
    struct batch *batch = batch_new(ROWS, ROW);
    batch_fill(batch, 1, 1 << 20, 3, version);
    assert_int_equal(form_do(form, batch_job(batch, DP_STORE_WRITE)), DP_OK);
    batch_free(batch);
    const struct dp_store_mark marks[] = {mark_text("kept", "yes"), mark_text("gone", "no"),
                                          mark_text("other", "old")};
    struct dp_store_job job = marks_job(marks, 3);
    assert_int_equal(form_do(form, &job), DP_OK);
}

static void expect_rows(struct form *form, uint32_t version)
{
    struct batch *batch = batch_new(ROWS, ROW);
    batch_fill(batch, 1, 1 << 20, 3, 0);
    assert_int_equal(form_do(form, batch_job(batch, DP_STORE_READ)), DP_OK);
    batch_expect(batch, version);
    batch_free(batch);
}

/* What a copy takes along. */
static bool is_copied(const char *name)
{
    size_t len = strlen(name);
    return (len > 4 && (strcmp(name + len - 4, ".sst") == 0 || strcmp(name + len - 4, ".log") == 0)) ||
           strncmp(name, "MANIFEST-", 9) == 0 || strncmp(name, "OPTIONS-", 8) == 0 ||
           strcmp(name, "CURRENT") == 0 || strcmp(name, "marks") == 0;
}

static void copy_file(const char *from, const char *to)
{
    char bytes[4096];
    FILE *in = fopen(from, "rbe"), *out = fopen(to, "wbe");
    assert_true(in && out);
    for (size_t n; (n = fread(bytes, 1, sizeof bytes, in)) > 0;)
        assert_int_equal(fwrite(bytes, 1, n, out), n);
    (void)fclose(in);
    assert_int_equal(fclose(out), 0);
}

/* but: a name's ending that is left out; NULL: none. */
static void copy_store(const struct adopting *a, const char *but)
{
    DIR *list = opendir(a->form->directory);
    assert_non_null(list);
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        char from[600], to[600];
        size_t len = strlen(entry->d_name);
        if (!is_copied(entry->d_name) ||
            (but && len >= strlen(but) && strcmp(entry->d_name + len - strlen(but), but) == 0))
            continue;
        (void)snprintf(from, sizeof from, "%s/%s", a->form->directory, entry->d_name);
        (void)snprintf(to, sizeof to, "%s/%s", a->copy->directory, entry->d_name);
        if (len > 4 && strcmp(entry->d_name + len - 4, ".sst") == 0)
            assert_int_equal(link(from, to), 0);
        else
            copy_file(from, to);
    }
    (void)closedir(list);
}

static enum dp_status adopt(struct adopting *a, uint64_t of, struct dp_error *err)
{
    static const struct dp_store_mark marks[] = {
        {.key = "gone", .key_bytes = 4}, {.key = "other", .key_bytes = 5, .value = "new", .value_bytes = 3}};
    struct dp_rocks_adoption adoption = {.store = a->copy->options, .of = of, .marks = marks, .count = 2};
    return dp_rocks_store_adopt(&adoption, err);
}

static enum dp_status see(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    char *all = context;
    (void)snprintf(all + strlen(all), 200 - strlen(all), "%.*s=%.*s ", (int)mark->key_bytes,
                   (const char *)mark->key, (int)mark->value_bytes, (const char *)mark->value);
    return DP_OK;
}

static void a_copy_of_an_open_store_becomes_another(void **state)
{
    struct adopting *a = *state;
    struct dp_error err = {0};
    char marks[200] = "";
    bool recovers = false;
    struct dp_store_id id = {0};
    write_rows(a->form, 1);
    copy_store(a, NULL);
    write_rows(a->form, 2);
    a->copy->options.cluster = 99;
    a->copy->options.generation = 8;
    if (adopt(a, a->id.id, &err) != DP_OK)
        fail_msg("%s", err.text);
    a->copy->options.recovers = &recovers;
    a->copy->options.id = &id;
    if (form_open(a->copy, &err) != DP_OK)
        fail_msg("%s", err.text);
    assert_true(recovers); /* its journal has the rest */
    assert_true(id.id != 0 && id.id != a->id.id && id.register_id == 0 && id.before == 0);
    expect_rows(a->copy, 1);
    assert_int_equal(a->copy->store.visit_marks(a->copy->store.self, "", 0, see, marks, &err), DP_OK);
    assert_string_equal(marks, "kept=yes other=new ");
    write_rows(a->copy, 3);
    expect_rows(a->form, 2);
    expect_rows(a->copy, 3);
}

static void without_a_journal_it_is_clean(void **state)
{
    struct adopting *a = *state;
    struct dp_error err = {0};
    bool recovers = true;
    write_rows(a->form, 1);
    copy_store(a, NULL);
    a->copy->options.journaled = false;
    assert_int_equal(adopt(a, a->id.id, &err), DP_OK);
    a->copy->options.recovers = &recovers;
    assert_int_equal(form_open(a->copy, &err), DP_OK);
    assert_false(recovers);
    expect_rows(a->copy, 1);
}

static void what_is_not_its_copy_is_refused(void **state)
{
    struct adopting *a = *state;
    struct dp_error err = {0};
    assert_int_equal(adopt(a, a->id.id, &err), DP_CORRUPT); /* nothing there */
    assert_non_null(strstr(err.text, "CURRENT"));
    write_rows(a->form, 1);
    copy_store(a, NULL);
    assert_int_equal(adopt(a, a->id.id + 1, &err), DP_CORRUPT);
    assert_non_null(strstr(err.text, "swapped"));
    a->copy->options.range.last--;
    assert_int_equal(adopt(a, a->id.id, &err), DP_CORRUPT);
    assert_non_null(strstr(err.text, "swapped"));
    a->copy->options.range.last++;
    assert_int_equal(adopt(a, a->id.id, &err), DP_OK);
    assert_int_equal(adopt(a, a->id.id, &err), DP_CORRUPT); /* it has its own id now */
}

static void a_copy_without_its_tables_is_refused(void **state)
{
    struct adopting *a = *state;
    struct dp_error err = {0};
    write_rows(a->form, 1);
    copy_store(a, ".sst");
    assert_int_equal(adopt(a, a->id.id, &err), DP_CORRUPT);
    assert_non_null(strstr(err.text, a->copy->directory));
}

int main(void)
{
#define ADOPT_TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        ADOPT_TEST(a_copy_of_an_open_store_becomes_another),
        ADOPT_TEST(without_a_journal_it_is_clean),
        ADOPT_TEST(what_is_not_its_copy_is_refused),
        ADOPT_TEST(a_copy_without_its_tables_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
