/* Manifests. Goal: what is written is read again, field by field; any text that is damaged or says what cannot be is refused, by
 * the name of the field. Method: one manifest with everything in it; then each of its fields is removed and replaced in turn. */
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/manifest_json.h"
#include "server/durable/table_mark.h"
#include "tests/lib/test.h"

#include <jansson.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SUM_A "00112233445566778899aabbccddeeff"
#define SUM_B "ffeeddccbbaa99887766554433221100"

static struct dp_table_spec spec_of(const char *name, uint32_t dim)
{
    struct dp_table_spec spec = {.dim = dim, .seed = 7, .optimizer = dp_optimizer_defaults(DP_OPT_ADAM)};
    (void)snprintf(spec.name, sizeof spec.name, "%s", name);
    return spec;
}

static void set_file(struct dp_manifest_file *file, const char *name, uint64_t bytes, const char *sum)
{
    file->name = strdup(name);
    file->bytes = bytes;
    memcpy(file->checksum, sum, sizeof file->checksum);
}

static void fill_shard(struct dp_manifest_shard *shard, uint32_t index, uint32_t shards)
{
    struct dp_error err = {0};
    *shard =
        (struct dp_manifest_shard){.index = index,
                                   .shards = shards,
                                   .range = dp_range_of_shard(index, shards),
                                   .store = UINT64_MAX - index,
                                   .lsn = 20,
                                   .after = 10,
                                   .bytes_new = 77,
                                   .tail = {.last_lsn = 25, .incarnation = 3, .records = 15, .bytes = 900}};
    assert_int_equal(dp_manifest_files_add(&shard->files, "000012.sst", 1000, SUM_B, &err), DP_OK);
    assert_int_equal(dp_manifest_files_add(&shard->files, "CURRENT", 16, SUM_A, &err), DP_OK);
    assert_int_equal(
        dp_manifest_files_add(&shard->tail.files, "journal-0000000000000001", 65536, SUM_A, &err), DP_OK);
    shard->tables.table = calloc(2, sizeof shard->tables.table[0]);
    shard->tables.count = index == 0 ? 2 : 1; /* b: its first push came to shard 1 behind the cut */
    shard->tables.table[0] = (struct dp_manifest_table){.spec = spec_of("a", 16), .rows = 5};
    shard->tables.table[1] =
        (struct dp_manifest_table){.spec = spec_of("b", 8), .rows = DP_TABLE_ROWS_UNKNOWN};
}

static const struct dp_copy_push partial[] = {{1000, 7}, {1000, UINT64_MAX}, {UINT64_MAX, 0}};

static struct dp_manifest whole(void)
{
    struct dp_error err = {0};
    struct dp_manifest m = {.number = 3,
                            .order = 0xfedcba9876543210,
                            .cluster = 42,
                            .generation = UINT64_MAX,
                            .history = 9,
                            .shards = 2,
                            .position = {true, 1, 2, 300, 0.125}};
    m.made = strdup("2026-01-02T03:04:05Z");
    m.cluster_name = strdup("demo");
    m.shard = calloc(2, sizeof m.shard[0]);
    for (uint32_t i = 0; i < 2; i++)
        fill_shard(&m.shard[i], i, 2);
    set_file(&m.ids, "ids", 100, SUM_A);
    set_file(&m.steps, "steps", 60, SUM_B);
    set_file(&m.register_file, "register", 50, SUM_A);
    set_file(&m.cluster_file, "cluster.conf", 40, SUM_B);
    set_file(&m.side[DP_SIDE_NAMES], "names.tsv", 400, SUM_A);
    set_file(&m.side[DP_SIDE_COLUMNS], "columns.csv", 4000, SUM_B);
    set_file(&m.side[DP_SIDE_INTERACTIONS], "interactions.bin", 40000, SUM_A);
    m.partial.push = malloc(sizeof partial);
    assert_non_null(m.partial.push);
    memcpy(m.partial.push, partial, sizeof partial);
    m.partial.count = 3;
    assert_int_equal(dp_manifest_files_add(&m.step_logs, "step-log-0000", 30, SUM_A, &err), DP_OK);
    assert_int_equal(dp_manifest_files_add(&m.step_logs, "step-log-0003", 20, SUM_B, &err), DP_OK);
    assert_int_equal(dp_manifest_sum(&m, &err), DP_OK);
    return m;
}

static void expect_file(const struct dp_manifest_file *file, const char *name, uint64_t bytes,
                        const char *sum)
{
    assert_string_equal(file->name, name);
    assert_int_equal(file->bytes, bytes);
    assert_string_equal(file->checksum, sum);
}

static void expect_shard(const struct dp_manifest_shard *shard, uint32_t index)
{
    assert_int_equal(shard->index, index);
    assert_int_equal(shard->shards, 2);
    assert_int_equal(shard->range.first, dp_range_of_shard(index, 2).first);
    assert_int_equal(shard->range.last, dp_range_of_shard(index, 2).last);
    assert_true(shard->store == UINT64_MAX - index);
    assert_int_equal(shard->lsn, 20);
    assert_int_equal(shard->after, 10);
    assert_int_equal(shard->bytes_new, 77);
    assert_int_equal(shard->tail.last_lsn, 25);
    assert_int_equal(shard->tail.incarnation, 3);
    assert_int_equal(shard->tail.records, 15);
    assert_int_equal(shard->tail.bytes, 900);
    assert_int_equal(shard->files.count, 2);
    expect_file(&shard->files.file[0], "000012.sst", 1000, SUM_B);
    expect_file(&shard->files.file[1], "CURRENT", 16, SUM_A);
    assert_int_equal(shard->tail.files.count, 1);
    expect_file(&shard->tail.files.file[0], "journal-0000000000000001", 65536, SUM_A);
}

static void what_is_written_is_read_again(void **state)
{
    struct dp_error err = {0};
    struct dp_manifest m = whole(), again;
    char path[] = "/tmp/dp_manifest_XXXXXX";
    assert_int_equal(close(mkstemp(path)), 0);
    assert_int_equal(dp_manifest_write(path, &m, &err), DP_OK);
    assert_int_equal(dp_manifest_read(path, &again, &err), DP_OK);
    assert_int_equal(again.number, 3);
    assert_true(again.order == 0xfedcba9876543210 && again.generation == UINT64_MAX);
    assert_int_equal(again.cluster, 42);
    assert_int_equal(again.history, 9);
    assert_string_equal(again.made, "2026-01-02T03:04:05Z");
    assert_string_equal(again.cluster_name, "demo");
    assert_int_equal(again.shards, 2);
    expect_shard(&again.shard[0], 0);
    expect_shard(&again.shard[1], 1);
    assert_int_equal(again.shard[0].tables.table[0].rows, 5);
    assert_int_equal(again.shard[1].tables.count, 1);
    assert_int_equal(again.tables.count, 2);
    assert_string_equal(again.tables.table[0].spec.name, "a");
    assert_int_equal(dp_table_same(&again.tables.table[1].spec, &m.shard[0].tables.table[1].spec, &err),
                     DP_OK);
    assert_true(again.tables.table[0].rows == DP_TABLE_ROWS_UNKNOWN);
    expect_file(&again.ids, "ids", 100, SUM_A);
    expect_file(&again.steps, "steps", 60, SUM_B);
    expect_file(&again.register_file, "register", 50, SUM_A);
    expect_file(&again.cluster_file, "cluster.conf", 40, SUM_B);
    expect_file(&again.side[DP_SIDE_NAMES], "names.tsv", 400, SUM_A);
    expect_file(&again.side[DP_SIDE_COLUMNS], "columns.csv", 4000, SUM_B);
    expect_file(&again.side[DP_SIDE_INTERACTIONS], "interactions.bin", 40000, SUM_A);
    assert_int_equal(again.partial.count, 3);
    assert_memory_equal(again.partial.push, partial, sizeof partial);
    assert_int_equal(again.step_logs.count, 2);
    expect_file(&again.step_logs.file[0], "step-log-0000", 30, SUM_A);
    expect_file(&again.step_logs.file[1], "step-log-0003", 20, SUM_B);
    assert_true(again.position.known && again.position.loss == 0.125);
    assert_int_equal(again.position.step, 300);
    assert_int_equal(again.bytes, 44700 + 2 * (1016 + 65536));
    assert_int_equal(again.bytes_new, 44700 + 2 * 77);
    dp_manifest_clear(&again);
    dp_manifest_clear(&m);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(dp_manifest_read(path, &again, &err), DP_NOT_FOUND);
}

static void a_shards_part_stands_alone(void **state)
{
    struct dp_error err = {0};
    struct dp_manifest_shard shard, again;
    fill_shard(&shard, 1, 2);
    char *text = dp_manifest_shard_text(&shard);
    assert_non_null(text);
    assert_int_equal(dp_manifest_shard_parse(text, strlen(text), &again, &err), DP_OK);
    expect_shard(&again, 1);
    dp_manifest_shard_clear(&again);
    assert_int_equal(dp_manifest_shard_parse(text, strlen(text) - 3, &again, &err), DP_CORRUPT);
    free(text);
    dp_manifest_shard_clear(&shard);
    assert_int_equal(dp_manifest_shard_parse("[]", 2, &again, &err), DP_CORRUPT);
}

static void what_is_not_there_is_null(void **state)
{
    struct dp_error err = {0};
    struct dp_manifest m = whole(), again;
    free(m.steps.name);
    m.steps.name = NULL;
    free(m.side[DP_SIDE_NAMES].name);
    m.side[DP_SIDE_NAMES].name = NULL;
    m.position.known = false;
    char *text = dp_manifest_text(&m);
    assert_int_equal(dp_manifest_parse(text, strlen(text), &again, &err), DP_OK);
    assert_null(again.steps.name);
    assert_null(again.side[DP_SIDE_NAMES].name);
    assert_false(again.position.known);
    free(text);
    dp_manifest_clear(&again);
    dp_manifest_clear(&m);
}

/* ---- refused */

static json_t *as_json(void)
{
    struct dp_manifest m = whole();
    char *text = dp_manifest_text(&m);
    json_t *root = json_loads(text, 0, NULL);
    assert_non_null(root);
    free(text);
    dp_manifest_clear(&m);
    return root;
}

static enum dp_status parse(json_t *root, struct dp_error *err)
{
    struct dp_manifest out;
    assert_true(!json_object_get(root, "checksum") ||
                dp_manifest_json_seal(root)); /* it is right for what is there */
    char *text = json_dumps(root, 0);
    enum dp_status st = dp_manifest_parse(text, strlen(text), &out, err);
    dp_manifest_clear(&out);
    free(text);
    return st;
}

static bool is_optional(const char *field)
{
    static const char *const names[] = {"steps",       "register",  "cluster_file",   "position",
                                        "loss",        "step_logs", "partial_pushes", "rows",
                                        "optimizer",   "checksum",  "names",          "columns",
                                        "interactions"}; /* rows, optimizer: of a table, for people; the last: below */
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(field, names[i]) == 0)
            return true;
    return false;
}

/* One field: missing, and of another kind. Returns how many were refused. */
static uint32_t sweep_field(json_t *root, json_t *object, const char *name)
{
    uint32_t swept = 0;
    json_t *is = json_incref(json_object_get(object, name));
    json_t *const wrong[] = {NULL, json_true(), json_integer(-1), json_string("x y"), json_array()};
    for (size_t i = 0; i < 5; i++) {
        struct dp_error err = {0};
        bool fits = (i == 3 && (strcmp(name, "made") == 0 || strcmp(name, "name") == 0)) ||
                    (i == 4 && (strcmp(name, "tables") == 0 || strcmp(name, "files") == 0 ||
                                strcmp(name, "step_logs") == 0));
        if (fits)
            continue;
        if (wrong[i])
            assert_int_equal(json_object_set(object, name, wrong[i]), 0);
        else
            assert_int_equal(json_object_del(object, name), 0);
        assert_int_not_equal(parse(root, &err), DP_OK);
        assert_non_null(strstr(err.text, name)); /* named */
        assert_int_equal(json_object_set(object, name, is), 0);
        swept++;
    }
    for (size_t i = 1; i < 5; i++)
        json_decref(wrong[i]);
    json_decref(is);
    return swept;
}

#define FIELDS_MAX 32u

/* Each field of the object and of those below, in turn. */
static uint32_t sweep(json_t *root, json_t *object)
{
    uint32_t swept = 0, count = 0;
    char names[FIELDS_MAX][32]; /* first: what is put back comes last in the object */
    for (void *at = json_object_iter(object); at; at = json_object_iter_next(object, at)) {
        assert_true(count < FIELDS_MAX);
        (void)snprintf(names[count++], sizeof names[0], "%s", json_object_iter_key(at));
    }
    for (uint32_t f = 0; f < count; f++) {
        json_t *is = json_object_get(object, names[f]);
        if (json_is_object(is))
            swept += sweep(root, is);
        for (size_t i = 0; i < json_array_size(is); i++)
            swept += sweep(root, json_array_get(is, i));
        if (!is_optional(names[f]))
            swept += sweep_field(root, object, names[f]);
    }
    return swept;
}

static void each_field_must_be_there_and_right(void **state)
{
    json_t *root = as_json();
    struct dp_error err = {0};
    uint32_t swept = sweep(root, root);
    print_message("%u\n", swept);
    assert_true(swept > 200);
    assert_int_equal(parse(root, &err), DP_OK); /* all was put back */
    json_decref(root);
}

static void another_format_is_refused_by_its_number(void **state)
{
    struct dp_error err = {0};
    json_t *root = json_pack("{s:i}", "format", 2);
    assert_int_equal(parse(root, &err), DP_UNSUPPORTED);
    assert_non_null(strstr(err.text, "format 2"));
    json_decref(root);
}

/* Of an earlier version: pushes that it has for some keys only. */
static void exceptions_are_refused_with_the_way_out(void **state)
{
    struct dp_error err = {0};
    json_t *root = as_json();
    assert_int_equal(json_object_set_new(root, "exceptions", json_pack("[{s:s}]", "stream", "1")), 0);
    assert_int_equal(parse(root, &err), DP_UNSUPPORTED);
    assert_non_null(strstr(err.text, "exceptions"));
    assert_non_null(strstr(err.text, "use another checkpoint"));
    json_decref(root);
}

/* path: "shards/1/lsn" */
static void refuse_with(const char *path, json_t *value)
{
    struct dp_error err = {0};
    json_t *root = as_json(), *at = root;
    char copy[80], *save = NULL;
    (void)snprintf(copy, sizeof copy, "%s", path);
    char *part = strtok_r(copy, "/", &save), *next;
    while ((next = strtok_r(NULL, "/", &save))) {
        at = json_is_array(at) ? json_array_get(at, strtoul(part, NULL, 10)) : json_object_get(at, part);
        assert_non_null(at);
        part = next;
    }
    assert_int_equal(json_object_set_new(at, part, value), 0);
    assert_int_equal(parse(root, &err), DP_CORRUPT);
    json_decref(root);
}

static void what_does_not_fit_together_is_refused(void **state)
{
    refuse_with("shards/1/index", json_integer(0));
    refuse_with("shards/0/shards", json_integer(3));
    refuse_with("shards/0/first", json_string("0000000000000001"));
    refuse_with("shards/0/last", json_string("0000000000000001"));
    refuse_with("shards/0/after", json_integer(21));
    refuse_with("shards/0/lsn", json_integer(26));
    refuse_with("shards/0/tail/records", json_integer(14));
    refuse_with("shards/0/files/0/name", json_string("../escaped"));
    refuse_with("shards/0/files/0/name", json_string(".."));
    refuse_with("shards/0/files/0/name", json_string("CURRENT"));
    refuse_with("shards/0/files/0/blake2b", json_string("00112233445566778899aabbccddeefg"));
    refuse_with("step_logs/0/name", json_string("step-log-3")); /* not as it is written */
    refuse_with("step_logs/0/name", json_string("step-log-0003"));
    refuse_with("step_logs/0/name", json_string("ids"));
    refuse_with("ids/name", json_string("/etc/passwd"));
    refuse_with("tables/0/name", json_string("b"));
    refuse_with("tables/1/name", json_string("c"));
    refuse_with("tables/0/dim", json_integer(15));
    refuse_with("tables/0/mark", json_string("00"));
    refuse_with("tables/0/mark", json_string("0"));
    refuse_with("partial_pushes/0/stream", json_string("0000000000000000"));
    refuse_with("partial_pushes/1/number", json_integer(7)); /* as before it */
    refuse_with("partial_pushes/2/stream", json_string("0000000000000001"));
    refuse_with("shards", json_array());
}

static void shards_stand_in_order_and_lsns_ascend(void **state)
{
    struct dp_error err = {0};
    json_t *root = as_json(), *shards = json_object_get(root, "shards");
    json_t *first = json_incref(json_array_get(shards, 0));
    assert_int_equal(json_array_remove(shards, 0), 0);
    assert_int_equal(json_array_append_new(shards, first), 0);
    assert_int_equal(parse(root, &err), DP_CORRUPT);
    json_decref(root);
    root = as_json();
    first = json_array_get(json_object_get(root, "shards"), 0);
    assert_int_equal(json_object_set_new(first, "after", json_integer(21)), 0);
    assert_int_equal(json_object_set_new(json_object_get(first, "tail"), "records", json_integer(4)), 0);
    assert_int_equal(parse(root, &err), DP_CORRUPT);
    json_decref(root);
}

static void tables_of_one_name_must_be_one_table(void **state)
{
    struct dp_error err = {0};
    struct dp_manifest m = whole();
    m.shard[1].tables.table[0].spec.dim = 17;
    assert_int_equal(dp_manifest_sum(&m, &err), DP_CORRUPT);
    dp_manifest_clear(&m);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_written_is_read_again),
        cmocka_unit_test(a_shards_part_stands_alone),
        cmocka_unit_test(what_is_not_there_is_null),
        cmocka_unit_test(each_field_must_be_there_and_right),
        cmocka_unit_test(another_format_is_refused_by_its_number),
        cmocka_unit_test(exceptions_are_refused_with_the_way_out),
        cmocka_unit_test(what_does_not_fit_together_is_refused),

        cmocka_unit_test(shards_stand_in_order_and_lsns_ascend),
        cmocka_unit_test(tables_of_one_name_must_be_one_table),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
