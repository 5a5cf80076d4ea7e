/* Goal: a cell like 'x|y|z' becomes one entry for each category. Each category has a key and a name.
 * The values of a cell's entries add up to 1, so that the model takes their mean. Method: a table written
 * here. Each entry of a minibatch is compared, in each form, also when it is read from the cache. */
#include "common/model/mix.h"
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"

#include <math.h>
#include <string.h>

/* Rows of one to three entries, of none, of one entry twice, and with empty and missing ones. */
static const char text[] = "tags,a,y,city\nx|y|z,1,1,Rome\n,2,0,Oslo\n x || x|,3,1,Rome\ny|?,4,0,Rome\n";
static const char *const tags[4][4] = {{"x", "y", "z"}, {""}, {"x", "x"}, {"y"}};

static struct dp_dataset_options options_of(enum dp_data_form form)
{
    return (struct dp_dataset_options){.form = form,
                                       .labels = DP_LABELS_BINARY,
                                       .scale = 1,
                                       .width = 1,
                                       .fields = 1,
                                       .pooled = 1,
                                       .label = "y",
                                       .lists = "tags",
                                       .missing = "?",
                                       .batch = 4};
}

struct names {
    size_t count;
    struct name {
        uint32_t group;
        uint64_t key;
        char text[20];
    } name[16];
};

static enum dp_status take(void *self, const struct dp_vocab_name *name, struct dp_error *err)
{
    struct names *names = self;
    struct name *to = &names->name[names->count++];
    (void)err;
    *to = (struct name){.group = name->group, .key = name->key};
    memcpy(to->text, name->text, name->len);
    return DP_OK;
}

static struct names names_of(const struct dp_dataset *dataset, const struct dp_dataset_options *options)
{
    struct names names = {0};
    struct dp_names_limit limit = {0};
    assert_int_equal(dp_dataset_names(dataset, options, (struct dp_vocab_sink){take, &names}, &limit, NULL),
                     DP_OK);
    return names;
}

/* Entries from .. of list `l` are the row's tags, in any order; one that it has twice is one entry. */
static void holds_tags(const struct dp_batch *b, uint32_t l, uint32_t group, uint32_t row, uint32_t from,
                       const struct names *names)
{
    const struct dp_batch_list *list = &b->list[l];
    uint32_t at = list->offsets[row] + from, count = list->offsets[row + 1] - at, all = 0, found = 0;
    while (tags[row][all])
        all++;
    assert_true(count == (row == 2 ? 1 : all));
    for (uint32_t e = 0; e < count; e++)
        assert_true(fabsf(list->values[at + e] - 1 / (float)count) < 1e-7f);
    for (uint32_t t = 0; t < count; t++) {
        char expected[20] = "tags=";
        size_t n = 0;
        strcat(expected, tags[row][t]);
        while (n < names->count && strcmp(names->name[n].text, expected) != 0)
            n++;
        assert_true(n < names->count && names->name[n].group == group);
        for (uint32_t e = 0; e < count; e++)
            found += formats_key(b, group, l, row, from + e) == dp_mix(names->name[n].key);
    }
    assert_true(found == count);
}

static void entries_and_their_mean(void **state)
{
    static const struct {
        enum dp_data_form form;
        uint32_t list, group, from;
    } way[] = {{DP_FORM_FIELDS, 1, 0, 0}, {DP_FORM_TABLES, 1, 1, 0}, {DP_FORM_SPARSE, 0, 0, 2}};
    for (size_t w = 0; w < 3; w++)
        for (int cached = 0; cached < 3; cached++) {
            struct dp_dataset_options options = options_of(way[w].form);
            options.path = write_text("t", text);
            options.cache = cached ? files_dir : NULL;
            struct dp_dataset *dataset = formats_open(&options);
            const struct names names = names_of(dataset, &options);
            struct dp_batch *b = formats_filled(dataset, 0, 0);
            assert_int_equal(names.count, 7); /* a, two cities and four tags */
            for (uint32_t row = 0; row < 4; row++)
                holds_tags(b, way[w].list, way[w].group, row, way[w].from, &names);
        }
}

/* The same kinds by name, whatever the order; one without the column has empty cells. */
static void a_further_file(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_FIELDS);
    options.path = write_text("t", text);
    struct dp_dataset *train = formats_open(&options);
    assert_int_equal(dp_dataset_schema(train)->column[0].kind, DP_COLUMN_LIST);
    options.like = dp_dataset_schema(train);
    options.path = write_text("u", "y,city,a,tags\n1,Rome,1,x|y|z\n0,Oslo,2,\n1,Rome,3,x|x\n0,Rome,4,y\n");
    struct dp_batch *a = formats_filled(train, 0, 0), *b = formats_filled(formats_open(&options), 0, 0);
    formats_same_batch(a, b);
    options.missing_empty = true;
    options.path = write_text("v", "y,city,a\n1,Rome,1\n");
    b = formats_filled(formats_open(&options), 0, 0);
    assert_int_equal(b->list[1].offsets[1], 1);
    assert_true(formats_key(b, 0, 1, 0, 0) == formats_key(a, 0, 1, 1, 0));
    options.lists = "city";
    formats_refused(options, "y,city,a\n1,Rome,1\n", 0, DP_ARGUMENT,
                    "by --lists (data.lists) column 'tags' is not a list, but it was a list");
}

/* "a" and "a|a" have the same mean: the same entries and, normalized, the same norm. A model of one list for
 * all takes any number of columns. */
static void equal_means_are_equal(void **state)
{
    char rows[2048] = "y,tags", lists[1024] = "tags";
    struct dp_dataset_options options = options_of(DP_FORM_SPARSE);
    for (int i = 0; i < 70; i++) {
        (void)snprintf(rows + strlen(rows), 8, ",l%d", i);
        (void)snprintf(lists + strlen(lists), 8, ",l%d", i);
    }
    for (int row = 0; row < 4; row++) {
        (void)snprintf(rows + strlen(rows), 32, "\n%d,%s", row % 2,
                       (const char *[]){"a|b", "b|a|a|b", "a", "a|a"}[row]);
        for (int i = 0; i < 70; i++)
            strcat(rows, ",x");
    }
    options.lists = lists;
    options.path = write_text("t", strcat(rows, "\n"));
    for (int normalized = 0; normalized < 2; normalized++) {
        options.normalize = normalized;
        const struct dp_batch *b = formats_filled(formats_open(&options), 0, 0);
        const struct dp_batch_list *list = &b->list[0];
        for (uint32_t row = 0; row < 4; row += 2) {
            uint32_t at = list->offsets[row], next = list->offsets[row + 1], count = next - at;
            assert_int_equal(list->offsets[row + 2] - next, count);
            float squares = 0;
            for (uint32_t e = 0; e < count; e++) {
                assert_int_equal(list->slots[at + e], list->slots[next + e]);
                assert_true(list->values[at + e] == list->values[next + e]);
                squares += list->values[next + e] * list->values[next + e];
            }
            assert_true(!normalized || fabsf(squares - 1) < 1e-5f);
        }
    }
}

static void keys_are_hashed(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_FIELDS);
    options.hash_bits = 3;
    options.path = write_text("t", text);
    struct dp_dataset *dataset = formats_open(&options);
    const struct names names = names_of(dataset, &options);
    for (size_t n = 0; n < names.count; n++)
        assert_true(names.name[n].key < 8);
    formats_check(options_of(DP_FORM_FIELDS), text);
}

/* Numbers are those of the training file, also for a file in another order. */
static void columns_by_number(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_FIELDS);
    options.path = write_text("t", text);
    struct dp_dataset *named = formats_open(&options);
    options.lists = "1";
    options.categories = "4";
    struct dp_dataset *train = formats_open(&options);
    formats_same(named, train, 0);
    options.like = dp_dataset_schema(train);
    options.path = write_text("u", "y,city,a,tags\n1,Rome,1,x|y|z\n0,Oslo,2,\n1,Rome,3,x|x\n0,Rome,4,y\n");
    formats_same_batch(formats_filled(train, 0, 0), formats_filled(formats_open(&options), 0, 0));
    options.lists = "2";
    formats_refused(options, text, 0, DP_ARGUMENT, "by --lists (data.lists) column 'tags' is not a list");
    options = options_of(DP_FORM_SPARSE);
    options.lists = "1"; /* a name comes first */
    options.path = write_text("v", "2,1,y,x\n3,a|b,1,c\n");
    assert_int_equal(dp_dataset_schema(formats_open(&options))->column[1].kind, DP_COLUMN_LIST);
}

/* Columns that look like lists, all lists, and those with another separator are named. */
static void likely_mistakes_are_noted(void **state)
{
    static const char rows[] = "tags,y,more,many\nx|y,1,p|q,1;2\nz|x,0,q|p,2;3\n";
    struct dp_dataset_options options = options_of(DP_FORM_SPARSE);
    struct dp_understood u;
    options.path = write_text("t", rows);
    options.lists = "tags,many";
    dp_dataset_understood(formats_open(&options), &options, &u);
    assert_non_null(strstr(u.line[1], "categories: more (2)"));
    assert_string_equal(u.line[2],
                        "lists: tags (3 values, up to 2 in a cell), many (2 values, up to 1 in a cell)");
    assert_int_equal(u.notes, 2);
    assert_string_equal(
        u.note[0], "more: most values have a '|'; --lists tags,more,many makes each a list of categories");
    assert_non_null(strstr(u.note[1], "no cell of 'many' has two entries: only '|' parts them"));
}

static void wrong_lists_are_refused(void **state)
{
    struct dp_dataset_options options = options_of(DP_FORM_SPARSE);
    static const struct {
        const char *lists, *words;
    } of[] = {{"y", "column 'y' is the label and cannot be a list too"},
              {"a,key", "column 'key' is the id and cannot be a list too"},
              {"left", "column 'left' is ignored and cannot be a list too"},
              {"city", "column 'city' is a category and cannot be a list too"},
              {"tag", "--lists (data.lists) names 'tag', which is no column of this file"}};
    options.id = "key";
    options.ignore = "left";
    options.categories = "city";
    for (size_t i = 0; i < sizeof of / sizeof of[0]; i++) {
        options.lists = of[i].lists;
        formats_refused(options, "key,left,tags,a,y,city\n1,1,x,1,1,Rome\n", 1, DP_DATA, of[i].words);
    }
    options = options_of(DP_FORM_DENSE);
    formats_refused(options, "a,y,tags\n1,1,x\n", 0, DP_ARGUMENT,
                    "1 columns of lists (--lists, data.lists), but");
    options = options_of(DP_FORM_FIELDS);
    options.pooled = 2;
    formats_refused(options, text, 0, DP_ARGUMENT, "but the model takes 2: write lists=1 in the model");
    options = options_of(DP_FORM_SPARSE);
    options.format = "libsvm";
    options.missing = NULL;
    formats_refused(options, "1 1:1\n", 0, DP_ARGUMENT,
                    "has no names of columns: leave --ignore, --id, --missing, --weight and --lists");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILES_TEST(entries_and_their_mean),
        FILES_TEST(equal_means_are_equal),
        FILES_TEST(a_further_file),
        FILES_TEST(keys_are_hashed),
        FILES_TEST(columns_by_number),
        FILES_TEST(wrong_lists_are_refused),
        FILES_TEST(likely_mistakes_are_noted),
    };
    return cmocka_run_group_tests_name("csv lists", tests, NULL, NULL);
}
