/* Goal: the names that a data set tells are those of its keys.
 * Method: the key under each name is the one that minibatches have where the name stands in the file. */
#include "common/model/mix.h"
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"
#include "worker/read/name_set.h"

#include <stdio.h>
#include <string.h>

#define TOLD_MAX 4096

struct told {
    struct dp_vocab_name name[TOLD_MAX];
    char text[TOLD_MAX][32];
    size_t count;
    struct dp_names_limit limit;
};

static struct told told;

static enum dp_status take(void *context, const struct dp_vocab_name *name, struct dp_error *err)
{
    struct told *t = context;
    if (t->count < TOLD_MAX) {
        t->name[t->count] = *name;
        (void)snprintf(t->text[t->count], sizeof t->text[0], "%.*s", (int)name->len, name->text);
    }
    t->count++;
    return DP_OK;
}

static void tell(struct dp_dataset *dataset, const struct dp_dataset_options *options)
{
    struct dp_error err = {0};
    memset(&told, 0, sizeof told);
    enum dp_status st =
        dp_dataset_names(dataset, options, (struct dp_vocab_sink){take, &told}, &told.limit, &err);
    if (st != DP_OK)
        fail_msg("names: %s", err.text);
}

static void expect(size_t at, uint32_t group, const char *text)
{
    assert_true(at < told.count);
    assert_string_equal(told.text[at], text);
    assert_true(told.name[at].group == group);
}

static void words_by_count(void **state)
{
    static const char text[] = "b a\tb\nc a b d\r\n a b";
    struct dp_dataset_options options = {.form = DP_FORM_WORDS,
                                         .labels = DP_LABELS_BINARY,
                                         .scale = 1,
                                         .window = 1,
                                         .negatives = 1,
                                         .batch = 4};
    options.path = write_text("text", text);
    struct dp_dataset *dataset = formats_open(&options);
    tell(dataset, &options);
    assert_int_equal(told.count, 4);
    expect(0, DP_VOCAB_EVERY_GROUP, "b");
    expect(1, DP_VOCAB_EVERY_GROUP, "a");
    expect(2, DP_VOCAB_EVERY_GROUP, "c"); /* as often as d, and before it */
    expect(3, DP_VOCAB_EVERY_GROUP, "d");
    struct dp_batch *b = formats_filled(dataset, 0, 0); /* unshuffled: the first pair is b a */
    assert_true(formats_key(b, 0, 0, 0, 0) == dp_mix(told.name[0].key));
    assert_true(formats_key(b, 1, 1, 0, 0) == dp_mix(told.name[1].key));
    /* Another file of that name is not the one that was loaded. */
    options.path = write_text("text", "b a b e");
    struct dp_error err = {0};
    assert_int_equal(
        dp_dataset_names(dataset, &options, (struct dp_vocab_sink){take, &told}, &told.limit, &err), DP_DATA);
    assert_non_null(strstr(err.text, "changed"));
}

static void users_and_items(void **state)
{
    struct dp_dataset_options options = {
        .form = DP_FORM_PAIRS, .labels = DP_LABELS_BINARY, .scale = 1, .negatives = 1, .batch = 4};
    options.path = write_text("pairs", "7 30\n7 4\n2 30\n2 11\n");
    struct dp_dataset *dataset = formats_open(&options);
    tell(dataset, &options);
    assert_int_equal(told.count, 5);
    static const char *const texts[] = {"2", "7", "4", "11", "30"};
    static const uint64_t keys[] = {2, 7, 4, 11, 30};
    for (size_t i = 0; i < 5; i++) {
        expect(i, i < 2 ? DP_FORM_USERS : DP_FORM_ITEMS, texts[i]);
        assert_true(told.name[i].key == keys[i]);
    }
}

/* Of names and numbers, and of lists; a file that has changed is refused. */
static void users_and_items_by_name(void **state)
{
    static const char *const ways[2] = {"Ann Lee\tUp\nAnn Lee\t7\n12\tUp\n12\tA \\ B\n",
                                        "Ann Lee\tUp\t7\n12\tUp\tA \\ B\n"};
    struct dp_error err = {0};
    struct dp_dataset_options options = {
        .form = DP_FORM_PAIRS, .labels = DP_LABELS_BINARY, .scale = 1, .negatives = 1, .batch = 4};
    for (int way = 0; way < 2; way++) {
        options.format = way ? "lists" : "pairs";
        options.path = write_text("pairs", ways[way]);
        struct dp_dataset *dataset = formats_open(&options);
        struct dp_batch *b = formats_batch(dataset);
        tell(dataset, &options);
        assert_int_equal(told.count, 5);
        expect(0, DP_FORM_USERS, "12");
        expect(1, DP_FORM_USERS, "Ann Lee");
        expect(2, DP_FORM_ITEMS, "7");
        dp_dataset_fill(dataset, 0, 0, b); /* the first example is Ann Lee and Up */
        assert_true(formats_key(b, 0, 0, 0, 0) == dp_mix(told.name[1].key));
        size_t up = told.name[3].key == dp_unmix(formats_key(b, 1, 1, 0, 0)) ? 3 : 4;
        expect(up, DP_FORM_ITEMS, "Up");
        expect(7 - up, DP_FORM_ITEMS, "A \\ B");
        options.path = write_text("pairs", "Ann Lee\tUp\t7\n12\tUp\t8\n");
        assert_int_equal(
            dp_dataset_names(dataset, &options, (struct dp_vocab_sink){take, &told}, &told.limit, &err),
            DP_DATA);
        assert_non_null(strstr(err.text, "has changed"));
    }
}

static const char table[] = "age,city,y,\"a, b\"\n31,Rome,1,0.5\n,Paris,0,2\n7,,1,1\n8,Rome,0,3\n";

static struct dp_dataset_options csv_options(enum dp_data_form form)
{
    return (struct dp_dataset_options){.form = form,
                                       .labels = DP_LABELS_BINARY,
                                       .format = "csv",
                                       .label = "y",
                                       .scale = 1,
                                       .width = 2,
                                       .fields = 1,
                                       .batch = 4};
}

static void columns_and_categories(void **state)
{
    struct dp_dataset_options options = csv_options(DP_FORM_SPARSE);
    options.path = write_text("a.csv", table);
    struct dp_dataset *dataset = formats_open(&options);
    tell(dataset, &options);
    static const char *const texts[] = {"age", "city=Rome", "city=Paris", "city=", "a, b"};
    assert_int_equal(told.count, 5);
    for (size_t i = 0; i < 5; i++)
        expect(i, 0, texts[i]);
    struct dp_batch *b = formats_filled(dataset, 0, 0);
    /* The first line: its numbers, then its category. */
    assert_true(formats_key(b, 0, 0, 0, 0) == dp_mix(told.name[0].key));
    assert_true(formats_key(b, 0, 0, 0, 1) == dp_mix(told.name[4].key));
    assert_true(formats_key(b, 0, 0, 0, 2) == dp_mix(told.name[1].key));

    options = csv_options(DP_FORM_FIELDS);
    options.hash_bits = 3;
    options.path = write_text("a.csv", table);
    dataset = formats_open(&options);
    tell(dataset, &options);
    assert_int_equal(told.count, 5);
    expect(0, DP_VOCAB_COLUMN, "age");
    assert_true(told.name[0].key == 0);
    expect(4, DP_VOCAB_COLUMN, "a, b");
    assert_true(told.name[4].key == 1);
    expect(2, 0, "city=Paris");
    b = formats_filled(dataset, 0, 0);
    assert_true(formats_key(b, 0, 0, 1, 0) == dp_mix(told.name[2].key) && told.name[2].key < 8);
}

static void click_logs(void **state)
{
    static const char row[] =
        "1\t5\t\t3\t4\t5\t6\t7\t8\t9\t10\t11\t12\t13"
        "\taa\tb\tc\td\te\tf\tg\th\ti\tj\tk\tl\tm\tn\to\tp\tq\tr\ts\tt\tu\tv\tw\tx\ty\t\n";
    struct dp_dataset_options options = {.form = DP_FORM_TABLES,
                                         .labels = DP_LABELS_BINARY,
                                         .width = 13,
                                         .fields = 26,
                                         .scale = 1,
                                         .batch = 4};
    options.path = write_text("clicks", row);
    struct dp_dataset *dataset = formats_open(&options);
    tell(dataset, &options);
    assert_int_equal(told.count, 39);
    expect(0, DP_VOCAB_COLUMN, "I1");
    expect(12, DP_VOCAB_COLUMN, "I13");
    expect(13, 0, "C1=aa");
    expect(37, 24, "C25=y");
    expect(38, 25, "C26=");
    struct dp_batch *b = formats_filled(dataset, 0, 0);
    assert_true(formats_key(b, 24, 24, 0, 0) == dp_mix(told.name[37].key));
}

static void numbers_of_columns(void **state)
{
    struct dp_dataset_options options = {.form = DP_FORM_DENSE,
                                         .labels = DP_LABELS_BINARY,
                                         .width = 3,
                                         .index_base = 1,
                                         .scale = 1,
                                         .batch = 4};
    options.path = write_text("libsvm", "1 1:2 3:4\n");
    struct dp_dataset *dataset = formats_open(&options);
    tell(dataset, &options);
    assert_int_equal(told.count, 3);
    expect(0, DP_VOCAB_COLUMN, "1");
    expect(2, DP_VOCAB_COLUMN, "3");
    options.form = DP_FORM_SPARSE; /* keys are the numbers */
    dataset = formats_open(&options);
    tell(dataset, &options);
    assert_int_equal(told.count, 0);
}

/* A set with a bound keeps the first, each once, and says that there are more. */
static void bounded(void **state)
{
    struct dp_name_set set = {.max = 3000};
    memset(&told, 0, sizeof told);
    for (uint64_t i = 0; i < 5000; i++) {
        char text[16];
        int len = snprintf(text, sizeof text, "n%d", (int)(i / 2));
        const struct dp_vocab_name name = {0, i / 2, text, (size_t)len};
        assert_int_equal(dp_name_set_add(&set, &name, i / 2, 9 - i / 2 % 2, NULL), DP_OK);
    }
    assert_true(set.count == 2500 && !set.cut);
    for (uint64_t i = 0; i < 1000; i++)
        assert_int_equal(dp_name_set_add(&set, &(struct dp_vocab_name){1, i, "x", 1}, i, 0, NULL), DP_OK);
    assert_true(set.count == 3000 && set.cut);
    assert_int_equal(dp_name_set_visit(&set, (struct dp_vocab_sink){take, &told}, NULL), DP_OK);
    assert_int_equal(told.count, 3000);
    expect(0, 1, "x"); /* by rank, then as they came */
    expect(500, 0, "n1");
    expect(501, 0, "n3");
    expect(2999, 0, "n2498");
    dp_name_set_clear(&set);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILES_TEST(words_by_count),
        FILES_TEST(users_and_items),
        FILES_TEST(users_and_items_by_name),
        FILES_TEST(columns_and_categories),
        FILES_TEST(click_logs),
        FILES_TEST(numbers_of_columns),
        FILES_TEST(bounded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
