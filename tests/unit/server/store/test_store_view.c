/* Inspect: what real stores and journals hold is seen, damage is named, nothing is changed; the digest is of contents. */
#include "server/inspect/inspect_view.h"
#include "server/store/rocks_db.h"
#include "tests/lib/timeouts.h"
#include "tests/unit/server/store/view_bed.h"

#include <dirent.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>

#define DIM       8u
#define FILE_ROWS 400u
#define FILES     4u
#define WILD_KEY  1000000u /* its row ends with an infinite value */

static struct dp_table_spec spec_of(const char *name)
{
    struct dp_table_spec spec = {.dim = DIM, .seed = 7, .optimizer = dp_optimizer_defaults(DP_OPT_ADAM)};
    (void)snprintf(spec.name, sizeof spec.name, "%s", name);
    return spec;
}

/* Row of user key i: contents depend on i and step, not on lsn. */
static void fill_row(char *row, uint64_t key, uint32_t step, uint64_t lsn)
{
    memset(row, 0, DP_ROW_HEADER);
    dp_row_set_lsn(row, lsn);
    dp_row_set_step(row, step);
    dp_store_u32le(row + 12, DP_ROW_FORMAT);
    for (uint32_t i = 0; i < DIM * 3; i++) {
        float value = key == WILD_KEY && i == DIM * 3 - 1 ? -INFINITY : (float)(key * 31 + i * 7 + step);
        memcpy(row + DP_ROW_HEADER + i * 4, &value, 4);
    }
}

static int compare_mixed(const void *a, const void *b)
{
    uint64_t x = dp_mix(*(const uint64_t *)a), y = dp_mix(*(const uint64_t *)b);
    return (x > y) - (x < y);
}

/* One SST file of the keys from..from + count - 1. */
static void put_rows(struct form *form, const char *table, uint64_t from, uint32_t count, uint32_t step,
                     uint64_t lsn)
{
    struct dp_table_spec spec = spec_of(table);
    struct batch *batch = batch_new(count, (uint32_t)dp_row_bytes(&spec));
    uint64_t *keys = calloc(count, sizeof keys[0]);
    for (uint32_t i = 0; i < count; i++)
        keys[i] = from + i;
    qsort(keys, count, sizeof keys[0], compare_mixed);
    for (uint32_t i = 0; i < count; i++) {
        batch->keys[i] = (struct dp_store_key){dp_table_id(table), dp_mix(keys[i])};
        fill_row(batch->rows[i], keys[i], step, lsn);
    }
    batch->job = (struct dp_store_job){.kind = DP_STORE_WRITE,
                                       .count = count,
                                       .keys = batch->keys,
                                       .rows = batch->rows,
                                       .row_bytes = batch->row_bytes};
    assert_int_equal(form_do(form, &batch->job), DP_OK);
    free(keys);
    batch_free(batch);
}

static void put_table(struct form *form, const char *name)
{
    char bytes[DP_TABLE_MARK_BYTES];
    struct dp_table_spec spec = spec_of(name);
    struct dp_store_mark mark = dp_table_mark_encode(&spec, 0, bytes);
    struct dp_store_job job = marks_job(&mark, 1);
    assert_int_equal(form_do(form, &job), DP_OK);
}

static void open_it(struct form *form)
{
    struct dp_error err = {0};
    must(form_open(form, &err), &err);
}

/* A store of FILES files of rows, each with keys of its own table: "a", "b", ... so that their ranges are apart. */
static void make_store(struct form *form)
{
    open_it(form);
    for (uint32_t f = 0; f < FILES; f++) {
        char name[2] = {(char)('a' + f), 0};
        put_table(form, name);
        put_rows(form, name, f * 1000, FILE_ROWS, f + 1, f + 10);
    }
    form_close(form, true);
}

static enum dp_status see_row(void *context, struct dp_store_key key, const void *row, size_t row_bytes,
                              struct dp_error *err)
{
    struct seen *seen = context;
    seen->rows++;
    dp_digest_add_row(&seen->digest, dp_unmix(key.mixed) ^ key.table, row, row_bytes);
    return DP_OK;
}

static void see_damage(void *context, const struct dp_error *what)
{
    struct seen *seen = context;
    if (seen->damages < 8)
        seen->damage[seen->damages] = *what;
    seen->damages++;
}

static bool names(const struct seen *seen, const char *text)
{
    for (uint32_t i = 0; i < seen->damages && i < 8; i++)
        if (strstr(seen->damage[i].text, text))
            return true;
    return false;
}

static struct seen look(const char *directory)
{
    struct seen seen = {0};
    const struct dp_store_view_damage damage = {see_damage, &seen};
    struct dp_store_view *inspect = NULL;
    struct dp_error err = {0};
    if (dp_store_view_open(directory, &damage, &inspect, &err) == DP_OK)
        must(dp_store_view_rows(inspect, &damage, see_row, &seen, &err), &err);
    else if (seen.damages == 0)
        see_damage(&seen, &err);
    dp_store_view_close(&inspect);
    return seen;
}

/* ---- tests */

static enum dp_status count_marks(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    ++*(int *)context;
    return DP_OK;
}

static enum dp_status count_files(void *context, const struct dp_store_view_file *file, struct dp_error *err)
{
    *(uint64_t *)context += file->entries;
    return DP_OK;
}

static void all_is_seen_and_nothing_changed(void **state)
{
    struct form *form = *state;
    struct dp_store_view *inspect = NULL;
    struct dp_error err = {0};
    int marks = 0;
    uint64_t entries = 0;
    make_store(form);
    uint64_t before = print_of(form->directory);
    assert_true(dp_store_view_is_store(form->directory));
    assert_int_equal(dp_store_view_in_use(form->directory), 0);
    must(dp_store_view_open(form->directory, NULL, &inspect, &err), &err);
    const struct dp_store_view_own *own = dp_store_view_own(inspect);
    assert_int_equal(own->state, DP_STORE_VIEW_CLEAN);
    assert_int_equal(own->format, DP_MARKS_FORMAT);
    assert_true(own->cluster == form->options.cluster && own->id.generation == form->options.generation);
    assert_true(own->range.first == 0 && own->range.last == UINT64_MAX);
    must(dp_store_view_marks(inspect, DP_TABLE_MARK_PREFIX, count_marks, &marks, &err), &err);
    assert_int_equal(marks, FILES);
    must(dp_store_view_files(inspect, count_files, &entries, &err), &err);
    assert_int_equal(entries, FILES * FILE_ROWS);
    dp_store_view_close(&inspect);
    struct seen seen = look(form->directory);
    assert_int_equal(seen.rows, FILES * FILE_ROWS);
    assert_int_equal(seen.damages, 0);
    assert_true(print_of(form->directory) == before);
}

static void a_row_that_is_not_finite_is_named(void **state)
{
    struct form *form = *state;
    struct dp_error err = {0};
    open_it(form);
    put_table(form, "a");
    put_rows(form, "a", 0, FILE_ROWS, 1, 0);
    put_rows(form, "a", WILD_KEY, 1, 1, 0);
    form_close(form, true);
    for (int verify = 0; verify < 2; verify++) {
        const struct dp_inspect_view_options options = {.verify = verify};
        struct dp_inspect_view view = {0};
        must(dp_inspect_view_gather(form->directory, &options, &view, &err), &err);
        uint64_t named = 0;
        for (size_t i = 0; i < view.damages; i++)
            named += strstr(view.damage[i].text, "key 1000000 ") && strstr(view.damage[i].text, "infinite");
        assert_int_equal(named, verify);
        if (view.tables != 1 || view.table[0].rows != FILE_ROWS + 1)
            fail_msg("%zu tables, %s", view.tables, view.damages ? view.damage[0].text : "");
        dp_inspect_view_clear(&view);
    }
}

static void states_are_told_apart(void **state)
{
    struct form *form = *state;
    struct dp_store_view *inspect = NULL;
    struct dp_error err = {0};
    assert_int_equal(dp_store_view_open(form->directory, NULL, &inspect, &err), DP_NOT_FOUND);
    assert_non_null(strstr(err.text, "CURRENT"));
    open_it(form);
    form_close(form, false);
    must(dp_store_view_open(form->directory, NULL, &inspect, &err), &err);
    assert_int_equal(dp_store_view_own(inspect)->state, DP_STORE_VIEW_OPEN_JOURNALED);
    dp_store_view_close(&inspect);
    struct dp_rocks_db db;
    char format[4];
    dp_store_u32le(format, DP_MARKS_FORMAT + 1);
    struct dp_store_mark mark = {"store/format", format, 12, sizeof format};
    must(dp_rocks_db_open(form->directory, &db, &err), &err);
    must(dp_marks_put(&db, &mark, 1, &err), &err);
    dp_rocks_db_close(&db);
    assert_int_equal(dp_store_view_open(form->directory, NULL, &inspect, &err), DP_UNSUPPORTED);
    assert_non_null(strstr(err.text, "use the build that wrote it"));
}

static void the_digest_is_of_contents_only(void **state)
{
    struct form *form = *state, *other = form_new(true);
    other->options.range = form->options.range;
    open_it(form);
    put_rows(form, "a", 0, 300, 5, 100);
    form_close(form, true);
    struct seen want = look(form->directory);
    assert_int_equal(want.rows, 300);
    /* In other files, another order, with versions that were replaced, other lsns. */
    open_it(other);
    put_rows(other, "a", 200, 100, 5, 7);
    put_rows(other, "a", 0, 150, 4, 8);
    put_rows(other, "a", 100, 100, 5, 9);
    put_rows(other, "a", 0, 100, 5, 11);
    form_close(other, true);
    struct seen got = look(other->directory);
    assert_int_equal(got.rows, 300);
    assert_memory_equal(&got.digest, &want.digest, sizeof want.digest);
    /* Parts add up. */
    struct dp_digest parts[2] = {{0}, {0}}, sum = {0};
    char row[DP_ROW_HEADER + DIM * 12];
    for (uint64_t key = 0; key < 300; key++) {
        fill_row(row, key, 5, key);
        dp_digest_add_row(&parts[key % 2], key ^ dp_table_id("a"), row, sizeof row);
    }
    dp_digest_add(&sum, &parts[1]);
    dp_digest_add(&sum, &parts[0]);
    assert_memory_equal(&sum, &want.digest, sizeof sum);
    form_free(other);
}

static void the_digest_tells_each_bit(void **state)
{
    char row[DP_ROW_HEADER + DIM * 12];
    struct dp_digest first = {0}, twice[2] = {{0}, {0}};
    fill_row(row, 3, 5, 1);
    dp_digest_add_row(&first, 3, row, sizeof row);
    for (size_t bit = 8 * 8; bit < sizeof row * 8; bit++) { /* behind the lsn */
        struct dp_digest digest = {0};
        row[bit / 8] = (char)(row[bit / 8] ^ 1 << bit % 8);
        dp_digest_add_row(&digest, 3, row, sizeof row);
        bool format = bit / 8 >= 12 && bit / 8 < 16;
        assert_true((digest.low == first.low && digest.high == first.high) == format);
        row[bit / 8] = (char)(row[bit / 8] ^ 1 << bit % 8);
    }
    /* Two rows whose keys change places. */
    char second[sizeof row];
    fill_row(second, 4, 6, 1);
    dp_digest_add_row(&twice[0], 3, row, sizeof row);
    dp_digest_add_row(&twice[0], 4, second, sizeof row);
    dp_digest_add_row(&twice[1], 4, row, sizeof row);
    dp_digest_add_row(&twice[1], 3, second, sizeof row);
    assert_true(twice[0].low != twice[1].low);
    /* All tables: pinned, so that digests of different builds can be compared. */
    struct dp_digest_table tables[] = {{"a", DIM, twice[0]}, {"b", DIM, twice[1]}};
    struct dp_digest all = dp_digest_of_all(tables, 2);
    char text[DP_DIGEST_TEXT];
    dp_digest_text(&all, text);
    assert_int_equal(all.rows, 4);
    assert_string_equal(text, "9b5ee0d818adb83266bc1a2c707c33a8");
}

/* The file that has the rows of table 'a' + f: the f-th by number, and the first after RocksDB's own. */
static void row_file(const struct form *form, uint32_t f, char path[600], char name[32])
{
    struct dirent **list = NULL;
    int count = scandir(form->directory, &list, NULL, alphasort);
    uint32_t at = 0;
    *name = 0;
    for (int i = 0; i < count; i++) {
        size_t len = strlen(list[i]->d_name);
        struct stat found;
        char one[600];
        path_of(one, form->directory, list[i]->d_name);
        if (len > 4 && strcmp(list[i]->d_name + len - 4, ".sst") == 0 && stat(one, &found) == 0 &&
            found.st_size > 20000 && at++ == f) {
            (void)snprintf(path, 600, "%s", one);
            (void)snprintf(name, 32, "%.31s", list[i]->d_name);
        }
        free(list[i]);
    }
    free(list);
    assert_true(*name);
}

static enum dp_status count_rows(void *context, struct dp_store_key key, const void *row, size_t row_bytes,
                                 struct dp_error *err)
{
    ++*(uint64_t *)context;
    return DP_OK;
}

/* In each file, data blocks and footers: named, what lies in other files is seen; a visit as the server does it fails. */
static void flipped_bits_in_files_of_rows_are_named(void **state)
{
    struct form *form = *state;
    make_store(form);
    for (uint32_t f = 0; f < FILES; f++) {
        char path[600], name[32];
        size_t size;
        row_file(form, f, path, name);
        free(slurp(path, &size));
        const long places[] = {100, 20000, (long)size - 4};
        for (int p = 0; p < 3; p++) {
            flip(path, places[p], 3);
            struct seen seen = look(form->directory);
            if (!names(&seen, name))
                fail_msg("%s, offset %ld: %u damages: %s", name, places[p], seen.damages,
                         seen.damage[0].text);
            assert_true(seen.rows < FILES * FILE_ROWS);
            if (p < 2) /* a block: all but its rows */
                assert_true(seen.rows >= (FILES - 1) * FILE_ROWS);
            struct dp_error err = {0};
            uint64_t rows = 0;
            enum dp_status st = form_open(form, &err);
            if (st == DP_OK) {
                st = form->store.visit_rows(form->store.self, count_rows, &rows, &err);
                form_close(form, true);
            }
            assert_int_equal(st, DP_CORRUPT);
            if (p < 2)
                assert_non_null(strstr(err.text, name));
            flip(path, places[p], 3);
        }
    }
    assert_int_equal(look(form->directory).rows, FILES * FILE_ROWS);
}

/* Every header's bits and some of the rest (of every seventh byte; with DP_LONG=1 of each) of the manifest, and of the marks: no row is
 * lost without a word. */
static void flipped_bits_in_manifest_and_marks_are_refused(void **state)
{
    struct form *form = *state;
    make_store(form);
    struct dirent **list = NULL;
    int count = scandir(form->directory, &list, NULL, alphasort), files = 0;
    for (int i = 0; i < count; i++) {
        char path[600];
        size_t size;
        bool manifest = strncmp(list[i]->d_name, "MANIFEST", 8) == 0;
        path_of(path, form->directory, list[i]->d_name);
        if (manifest || strcmp(list[i]->d_name, "marks") == 0) {
            unsigned char *bytes = slurp(path, &size);
            for (size_t at = 0, record = 0, next = 0; at < size; at++) {
                if (manifest && at == next) {
                    record = at;
                    next = at + 7 + bytes[at + 4] + 256u * bytes[at + 5];
                }
                bool told = at - record >= 4 && at - record < 7; /* length and type */
                if (!told && at % dp_stride(7) != 0)
                    continue;
                for (unsigned bit = told ? 0 : (unsigned)at % 8; bit < 8; bit += told ? 1 : 8) {
                    flip(path, (long)at, bit);
                    struct seen seen = look(form->directory);
                    if (seen.damages == 0)
                        fail_msg("%s, offset %zu, bit %u: %" PRIu64 " rows, no damage", list[i]->d_name, at,
                                 bit, seen.rows);
                    flip(path, (long)at, bit);
                }
            }
            free(bytes);
            files++;
        }
        free(list[i]);
    }
    free(list);
    assert_int_equal(files, 2);
    assert_int_equal(look(form->directory).damages, 0);
}

/* In place of `name`, for as long as it takes to look. */
static struct seen look_at_pipe(const char *directory, const char *name)
{
    char path[600], aside[600];
    path_of(path, directory, name);
    (void)snprintf(aside, sizeof aside, "%.590s.aside", path);
    bool was = rename(path, aside) == 0;
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(dp_store_view_in_use(directory), 0);
    struct seen seen = look(directory);
    assert_int_equal(remove(path), 0);
    if (was)
        assert_int_equal(rename(aside, path), 0);
    return seen;
}

/* Whoever opens a pipe waits for one who writes. Planted: an open that waits (the alarm ends the test). */
static void a_pipe_in_place_of_a_file_is_refused(void **state)
{
    static const char *const names_of[] = {"CURRENT", "LOCK", "000777.log", "IDENTITY"};
    struct form *form = *state;
    (void)alarm(60);
    make_store(form);
    for (size_t i = 0; i < sizeof names_of / sizeof names_of[0]; i++) {
        struct seen seen = look_at_pipe(form->directory, names_of[i]);
        assert_int_equal(seen.rows, 0);
        assert_true(names(&seen, names_of[i]) && names(&seen, "not a file"));
    }
    assert_int_equal(look(form->directory).damages, 0);
    (void)alarm(0);
}

static uint64_t blocked_in(const char *task)
{
    char path[300], line[128];
    uint64_t mask = 0;
    (void)snprintf(path, sizeof path, "/proc/self/task/%.200s/status", task);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    while (fgets(line, sizeof line, file))
        (void)sscanf(line, "SigBlk: %" SCNx64, &mask);
    (void)fclose(file);
    return mask;
}

/* The first test, since RocksDB's threads start with the first store that a process opens. Planted: an open
 * that blocks none. */
static void threads_of_rocksdb_take_no_signals(void **state)
{
    struct form *form = *state;
    struct dp_error err = {0};
    struct dp_rocks_db db;
    uint32_t others = 0;
    must(dp_rocks_db_open(form->directory, &db, &err), &err);
    DIR *tasks = opendir("/proc/self/task");
    assert_non_null(tasks);
    for (struct dirent *task; (task = readdir(tasks)) != NULL;) {
        if (task->d_name[0] == '.' || atoi(task->d_name) == getpid())
            continue;
        others++;
        assert_true(blocked_in(task->d_name) & (UINT64_C(1) << (SIGCHLD - 1)));
        assert_true(blocked_in(task->d_name) & (UINT64_C(1) << (SIGTERM - 1)));
    }
    (void)closedir(tasks);
    assert_true(others > 0);
    dp_rocks_db_close(&db);
}

int main(void)
{
#define TEST(test) cmocka_unit_test_setup_teardown(test, set_up, tear_down)
    const struct CMUnitTest tests[] = {
        TEST(threads_of_rocksdb_take_no_signals),
        TEST(all_is_seen_and_nothing_changed),
        TEST(states_are_told_apart),
        TEST(the_digest_is_of_contents_only),
        TEST(the_digest_tells_each_bit),
        TEST(flipped_bits_in_files_of_rows_are_named),
        TEST(flipped_bits_in_manifest_and_marks_are_refused),
        TEST(a_pipe_in_place_of_a_file_is_refused),
        TEST(a_row_that_is_not_finite_is_named),
    };
    return cmocka_run_group_tests_name("inspect", tests, NULL, NULL);
}
