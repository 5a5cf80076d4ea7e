/* A store of format 1, which has its marks in a column family of RocksDB: it is read as it is, and the first opening that writes moves
 * them to their file, however far an earlier one came. Method: the marks of a store of this build are put into such a family. */
#include "server/store/rocks_db.h"

#include "server/store/store_view.h"
#include "tests/lib/test.h"
#include "tests/unit/server/store/form.h"

#include <dirent.h>
#include <rocksdb/c.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ROWS 40u
#define ROW  64u

static void do_rows(struct form *form, enum dp_store_job_kind kind)
{
    struct batch *batch = batch_new(ROWS, ROW);
    batch_fill(batch, 1, 0, 3, 1);
    assert_int_equal(form_do(form, batch_job(batch, kind)), DP_OK);
    if (kind == DP_STORE_READ)
        batch_expect(batch, 1);
    batch_free(batch);
}

static const char *path_of(const struct form *form, const char *name)
{
    static char path[700];
    (void)snprintf(path, sizeof path, "%s/%s", form->directory, name);
    return path;
}

static bool is_there(const struct form *form, const char *name)
{
    return access(path_of(form, name), F_OK) == 0;
}

struct family {
    rocksdb_t *db;
    rocksdb_column_family_handle_t *handle;
    rocksdb_writeoptions_t *options;
};

static enum dp_status put_old(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    struct family *family = context;
    char *text = NULL;
    bool format = mark->key_bytes == 12 && memcmp(mark->key, "store/format", 12) == 0;
    rocksdb_put_cf(family->db, family->options, family->handle, mark->key, mark->key_bytes,
                   format ? "\1\0\0" : mark->value, mark->value_bytes, &text);
    assert_null(text);
    return DP_OK;
}

/* kept: the file stays, as where an opening died between the file and the family. */
static void make_old(const struct form *form, bool kept)
{
    struct dp_rocks_db db;
    struct dp_error err = {0};
    char *text = NULL;
    assert_int_equal(dp_rocks_db_open(form->directory, &db, &err), DP_OK);
    struct family family = {.db = db.db, .options = rocksdb_writeoptions_create()};
    rocksdb_writeoptions_set_sync(family.options, 1);
    family.handle = rocksdb_create_column_family(db.db, db.options[DP_ROCKS_DEFAULT], "marks", &text);
    assert_null(text);
    assert_int_equal(dp_marks_file_visit(db.marks, put_old, &family, &err), DP_OK);
    const struct dp_store_mark other = mark_text("m", "of the file");
    if (kept)
        assert_int_equal(dp_marks_file_put(db.marks, &other, 1, &err), DP_OK);
    rocksdb_column_family_handle_destroy(family.handle);
    rocksdb_writeoptions_destroy(family.options);
    dp_rocks_db_close(&db);
    if (!kept)
        assert_int_equal(unlink(path_of(form, "marks")), 0);
}

static struct form *old_store(bool clean, bool kept)
{
    struct dp_error err = {0};
    struct form *form = form_new(true);
    const struct dp_store_mark mark = mark_text("m", "of the family");
    struct dp_store_job job = marks_job(&mark, 1);
    form->options.journaled = true;
    assert_int_equal(form_open(form, &err), DP_OK);
    do_rows(form, DP_STORE_WRITE);
    assert_int_equal(form_do(form, &job), DP_OK);
    form_close(form, clean);
    make_old(form, kept);
    return form;
}

static enum dp_status see(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    (void)snprintf(context, 32, "%.*s", (int)mark->value_bytes, (const char *)mark->value);
    return DP_OK;
}

static bool has_family(const struct form *form)
{
    size_t count = 0;
    char *text = NULL;
    rocksdb_options_t *options = rocksdb_options_create();
    char **names = rocksdb_list_column_families(options, form->directory, &count, &text);
    assert_null(text);
    rocksdb_list_column_families_destroy(names, count);
    rocksdb_options_destroy(options);
    return count == DP_ROCKS_FAMILIES + 1;
}

static void it_is_read_as_it_is(void **state)
{
    for (int clean = 0; clean < 2; clean++) {
        struct dp_error err = {0};
        struct dp_store_view *view = NULL;
        char value[32] = "";
        struct form *form = old_store(clean, false);
        assert_int_equal(dp_store_view_open(form->directory, NULL, &view, &err), DP_OK);
        const struct dp_store_view_own *own = dp_store_view_own(view);
        assert_int_equal(own->format, 1);
        assert_int_equal(own->state, clean ? DP_STORE_VIEW_CLEAN : DP_STORE_VIEW_OPEN_JOURNALED);
        assert_true(own->cluster == form->options.cluster && own->id.id != 0);
        assert_int_equal(dp_store_view_marks(view, "m", see, value, &err), DP_OK);
        assert_string_equal(value, "of the family");
        dp_store_view_close(&view);
        form->options.read_only = true;
        assert_int_equal(form_open(form, &err), DP_OK);
        do_rows(form, DP_STORE_READ);
        form_close(form, false);
        assert_true(has_family(form));
        assert_false(is_there(form, "marks"));
        form_free(form);
    }
}

static void the_first_opening_moves_them(void **state)
{
    for (int how = 0; how < 4; how++) {
        bool clean = how & 1, kept = how & 2, recovers = clean;
        struct form *form = old_store(clean, kept);
        form->options.recovers = &recovers;
        for (int times = 0; times < 2; times++) {
            struct dp_error err = {0};
            char value[32] = "";
            if (form_open(form, &err) != DP_OK)
                fail_msg("%s", err.text);
            assert_int_equal(recovers, !clean && times == 0);
            assert_int_equal(form->store.visit_marks(form->store.self, "m", 1, see, value, &err), DP_OK);
            assert_string_equal(value, kept ? "of the file" : "of the family");
            do_rows(form, DP_STORE_READ);
            form_close(form, true);
            assert_true(is_there(form, "marks"));
            assert_false(has_family(form));
        }
        form_free(form);
    }
}

static void a_refused_opening_moves_nothing(void **state)
{
    struct dp_error err = {0};
    struct form *form = old_store(true, false);
    form->options.cluster++;
    assert_int_equal(form_open(form, &err), DP_GENERATION);
    assert_true(has_family(form));
    assert_false(is_there(form, "marks"));
    form->options.cluster--;
    assert_int_equal(form_open(form, &err), DP_OK);
    do_rows(form, DP_STORE_READ);
    form_close(form, true);
    form_free(form);
}

/* The middle of RocksDB's log, in which the marks of an unclean store are. */
static void damage_log(const struct form *form)
{
    DIR *list = opendir(form->directory);
    for (struct dirent *entry = readdir(list); entry; entry = readdir(list)) {
        const char *end = strrchr(entry->d_name, '.');
        FILE *file = end && strcmp(end, ".log") == 0 ? fopen(path_of(form, entry->d_name), "r+b") : NULL;
        if (!file)
            continue;
        assert_int_equal(fseek(file, 12, SEEK_SET), 0);
        assert_int_not_equal(fputc(0xee, file), EOF);
        assert_int_equal(fclose(file), 0);
    }
    (void)closedir(list);
}

static void a_damaged_log_of_them_names_the_way_out(void **state)
{
    struct dp_error err = {0};
    struct form *form = old_store(false, false);
    damage_log(form);
    assert_int_equal(form_open(form, &err), DP_CORRUPT);
    assert_non_null(strstr(err.text, "start its server once with the version before"));
    form_free(form);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_read_as_it_is),
        cmocka_unit_test(the_first_opening_moves_them),
        cmocka_unit_test(a_refused_opening_moves_nothing),
        cmocka_unit_test(a_damaged_log_of_them_names_the_way_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
