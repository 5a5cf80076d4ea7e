/* Goal    whatever changes what is in a push, or what it is a gradient of, is named; what does not change it is no matter. */
#include "tests/lib/test.h"
#include "worker/context/training_settings.h"

#include <stdio.h>
#include <string.h>

static struct dp_cluster usual(void)
{
    return (struct dp_cluster){.model = "deepfm:16-256-128",
                               .training = {.batch = 128,
                                            .workers = 4,
                                            .push_every = 2,
                                            .epochs = 10,
                                            .seed = 5,
                                            .run = 3,
                                            .consistency = "async"},
                               .data = {.negatives = 4, .window = 5}};
}

static const struct dp_training_settings_set judged = {.digest = 0xdef, .examples = 700, .lists = 7};

/* The text of a first start against the settings of a second. */
static enum dp_status second(const struct dp_cluster *now, uint64_t digest, uint64_t examples,
                             struct dp_error *err)
{
    static char before[DP_TRAINING_SETTINGS_BYTES], text[DP_TRAINING_SETTINGS_BYTES];
    static struct dp_cluster then;
    const struct dp_training_settings_set train = {.digest = 0xabc, .examples = 60000},
                                          other = {.digest = digest, .examples = examples};
    then = usual();
    dp_training_settings_text(&then, &train, &judged, before);
    dp_training_settings_text(now, &other, &judged, text);
    return dp_training_settings_check(text, before, strlen(before), now->training.run, NULL, err);
}

static void expect(struct dp_cluster *now, const char *then_text, const char *now_text)
{
    struct dp_error err = {0};
    char want[200];
    assert_int_equal(second(now, 0xabc, 60000, &err), DP_EXISTS);
    (void)snprintf(want, sizeof want, "run 3 was begun with '%s', this is '%s'", then_text, now_text);
    if (!strstr(err.text, want))
        fail_msg("'%s' lacks '%s'", err.text, want);
    assert_non_null(strstr(err.text, "give training.run a higher number"));
    *now = usual();
}

/* Pushes of labels in one unit are not continued in another. */
static void labels_have_one_scale(void **state)
{
    char before[DP_TRAINING_SETTINGS_BYTES], text[DP_TRAINING_SETTINGS_BYTES];
    const struct dp_cluster now = usual();
    struct dp_error err = {0};
    struct dp_training_settings_set train = {.digest = 1};
    dp_training_settings_text(&now, &train, NULL, before);
    assert_null(strstr(before, "label_scale"));
    train.label_scale = (struct dp_label_scale){4000, 1000.5};
    dp_training_settings_text(&now, &train, NULL, text);
    assert_int_equal(dp_training_settings_check(text, before, strlen(before), 3, NULL, &err), DP_EXISTS);
    assert_non_null(strstr(err.text, "label_scale 4000 1000.5"));
    assert_int_equal(dp_training_settings_check(text, text, strlen(text), 3, NULL, &err), DP_OK);
}

/* Planted: a setting is left out of the text. */
static void what_decides_is_compared(void **state)
{
    static struct dp_cluster now;
    struct dp_error err = {0};
    now = usual();
    assert_int_equal(second(&now, 0xabc, 60000, &err), DP_OK);
    assert_int_equal(second(&now, 0xabd, 60000, &err), DP_EXISTS);
    assert_non_null(strstr(err.text, "'data 0000000000000abc', this is 'data 0000000000000abd'"));
    assert_int_equal(second(&now, 0xabc, 6000, &err), DP_EXISTS);
    (void)strcpy(now.model, "wide-deep:16-256-128"); /* tables of the same names and shapes */
    expect(&now, "model deepfm:16-256-128", "model wide-deep:16-256-128");
    (void)strcpy(now.model, "deepfm:16-256-128,dropout=0.5");
    expect(&now, "model deepfm:16-256-128", "model deepfm:16-256-128,dropout=0.5");
    (void)strcpy(now.training.consistency, "ssp:03");
    expect(&now, "consistency async", "consistency ssp:3");
    now.training.work = DP_CLUSTER_LEASED;
    expect(&now, "work fixed", "work leased");
    (void)strcpy(now.data.label, "clicked");
    expect(&now, "label (none)", "label clicked");
    (void)strcpy(now.data.categories, "town,day");
    expect(&now, "categories (none)", "categories town,day");
    now.training.batch = 64;
    expect(&now, "batch 128", "batch 64");
    now.training.workers = 1;
    expect(&now, "workers 4", "workers 1");
    now.training.push_every = 1;
    expect(&now, "push_every 2", "push_every 1");
    now.training.threads = 4;
    now.training.push_every = 1; /* then it is that of threads, which nobody gave by that name */
    assert_int_equal(second(&now, 0xabc, 60000, &err), DP_EXISTS);
    assert_non_null(strstr(
        err.text,
        "'push_every 16' (--push-every, or the minibatches that --threads or --accumulate push together): "));
    now = usual();
    now.training.epochs = 11;
    expect(&now, "epochs 10", "epochs 11");
    now.training.seed = 6;
    expect(&now, "seed 5", "seed 6");
    now.data.negatives = 40;
    expect(&now, "negatives 4", "negatives 40");
    now.data.window = 1;
    expect(&now, "window 5", "window 1");
    now.data.min_count = 5;
    expect(&now, "stop_at none", "words 0, min_count 5, subsample 0");
    now.data.scale = 0.5;
    expect(&now, "scale 0", "scale 0.5");
    now.data.normalize = true;
    expect(&now, "normalize 0", "normalize 1");
    now.data.index_base = 1;
    expect(&now, "index_base 0", "index_base 1");
    now.data.hash_bits = 20;
    expect(&now, "hash_bits 0", "hash_bits 20");
    (void)strcpy(now.data.class_weight, "balanced");
    expect(&now, "stop_at none", "class_weight balanced");
    (void)strcpy(now.training.stop_at, "auc:0.90");
    expect(&now, "stop_at none", "stop_at auc:0.9");
    now.training.patience = 2;
    expect(&now, "patience none", "patience 2 epochs of loss");
    now.data.validation_share = 0.1;
    expect(&now, "held out 0", "held out 0.1");
    now.training.rate = 0.5;
    now.training.fetch_every = 9;
    now.training.push_every = 1; /* its numbers stand for the same minibatches */
    now.training.accumulate = 2;
    now.training.threads = 3;
    assert_int_equal(second(&now, 0xabc, 60000, &err), DP_OK);
}

/* Of another build, cut short, or nothing at all: no crash, and not the same. */
static void texts_of_any_kind(void **state)
{
    static struct dp_cluster now;
    char text[DP_TRAINING_SETTINGS_BYTES], more[DP_TRAINING_SETTINGS_BYTES];
    struct dp_error err = {0};
    now = usual();
    const struct dp_training_settings_set set = {.digest = 1, .examples = 2}, most = {.digest = UINT64_MAX,
                                                                                      .examples = UINT64_MAX,
                                                                                      .lists = UINT32_MAX};
    dp_training_settings_text(&now, &set, NULL, text);
    size_t whole = strlen(text);
    for (size_t size = 0; size + 1 < whole; size++)
        assert_int_equal(dp_training_settings_check(text, text, size, 3, NULL, &err), DP_EXISTS);
    assert_int_equal(dp_training_settings_check(text, text, whole, 3, NULL, &err), DP_OK);
    assert_int_equal(dp_training_settings_check(text, NULL, 0, 3, NULL, &err), DP_EXISTS);
    (void)snprintf(more, sizeof more, "%.700smore 1\n", text);
    assert_int_equal(dp_training_settings_check(text, more, strlen(more), 3, NULL, &err), DP_EXISTS);
    memset(more, 'x', sizeof more);
    assert_int_equal(dp_training_settings_check(text, more, sizeof more, 3, NULL, &err), DP_EXISTS);
    now.training = (struct dp_cluster_training){.batch = UINT32_MAX,
                                                .consistency = "async",
                                                .workers = UINT32_MAX,
                                                .epochs = UINT32_MAX,
                                                .seed = UINT64_MAX,
                                                .push_every = UINT32_MAX};
    now.data.negatives = now.data.window = now.data.index_base = now.data.hash_bits = UINT32_MAX;
    now.data.scale = -1.0 / 3e-300;
    now.data.normalize = true;
    memset(now.model, 'm', sizeof now.model - 1);
    memset(now.data.label, 'l', sizeof now.data.label - 1);
    memset(now.data.categories, 'c', sizeof now.data.categories - 1);
    memset(now.data.class_weight, 'w', sizeof now.data.class_weight - 1);
    (void)strcpy(now.training.stop_at, "ndcg@10:0.123456789012345");
    (void)strcpy(now.training.patience_metric, "accuracy");
    now.training.patience = UINT32_MAX;
    now.data.validation_share = 1.0 / 3e-300;
    dp_training_settings_text(&now, &most, &most, text); /* the longest fits */
}

/* What ends a training is agreed too, whatever file it lies in and however it is written. */
static void when_it_ends_is_compared(void **state)
{
    static struct dp_cluster a, b;
    static const struct dp_training_settings_set train = {.digest = 1, .examples = 2};
    struct dp_training_settings_set set = judged;
    char mine[DP_TRAINING_SETTINGS_BYTES], theirs[DP_TRAINING_SETTINGS_BYTES];
    struct dp_error err = {0};
    a = usual();
    (void)strcpy(a.training.stop_at, "auc:0.9");
    a.training.patience = 3;
    (void)strcpy(a.data.validation, "here");
    b = a;
    (void)strcpy(b.data.validation, "there");
    (void)strcpy(b.training.stop_at, "auc:0.90");
    (void)strcpy(b.training.patience_metric, "auc");
    dp_training_settings_text(&a, &train, &set, mine);
#define DIFFER(evaluated, worker, theirs_text, mine_text)                                                    \
    do {                                                                                                     \
        dp_training_settings_text(&b, &train, evaluated, theirs);                                            \
        assert_int_equal(dp_training_settings_same(mine, theirs, strlen(theirs), 3, worker, NULL, &err),     \
                         DP_ARGUMENT);                                                                       \
        assert_non_null(strstr(err.text, "worker " #worker " trains run 3 with '" theirs_text                \
                                         "', this one with '" mine_text "'"));                               \
        b = a;                                                                                               \
        set = judged;                                                                                        \
    } while (0)
    dp_training_settings_text(&b, &train, &set, theirs);
    assert_int_equal(dp_training_settings_same(mine, theirs, strlen(theirs), 3, 1, NULL, &err), DP_OK);
    b.training.patience = 5;
    DIFFER(&set, 1, "patience 5 epochs of auc", "patience 3 epochs of auc");
    (void)strcpy(b.training.patience_metric, "loss");
    DIFFER(&set, 2, "patience 3 epochs of loss", "patience 3 epochs of auc");
    (void)strcpy(b.training.stop_at, "auc:0.91");
    DIFFER(&set, 1, "stop_at auc:0.91", "stop_at auc:0.9");
    b.training.stop_at[0] = '\0';
    DIFFER(&set, 1, "stop_at none", "stop_at auc:0.9");
    b.data.validation_share = 0.25;
    DIFFER(&set, 1, "held out 0.25", "held out 0");
    set.digest++;
    DIFFER(&set, 1, "evaluated data 0000000000000df0", "evaluated data 0000000000000def");
    set.examples = 9;
    DIFFER(&set, 1, "evaluated examples 9", "evaluated examples 700");
    set.lists = 9;
    DIFFER(&set, 1, "evaluated lists 9", "evaluated lists 7");
    DIFFER(NULL, 1, "evaluated none", "held out 0");
    b.training.batch = 64;
    DIFFER(&set, 1, "batch 64", "batch 128");
    (void)strcpy(a.training.consistency, "sync");
    dp_training_settings_text(&a, &train, &set, mine);
    DIFFER(&set, 1, "consistency async", "consistency sync");
    (void)strcpy(b.training.consistency, "ssp:0");
    DIFFER(&set, 1, "consistency ssp:0", "consistency sync");
#undef DIFFER
}

/* Scores are those of the model and of the rows as they were read in the training; what only the training had is no matter. */
static void scores_are_of_what_was_trained(void **state)
{
    static struct dp_cluster then, now;
    static const struct dp_training_settings_set train = {.digest = 1, .examples = 2};
    char text[DP_TRAINING_SETTINGS_BYTES], head[DP_TRAINING_SETTINGS_BYTES];
    struct dp_error err = {0};
    then = now = usual();
    dp_training_settings_text(&then, &train, &judged, text);
    size_t size = strlen(text);
    now.training.batch = 1;
    now.training.epochs = 99;
    now.data.scale = 0.5; /* of the file to be scored */
    now.data.index_base = 1;
    dp_training_settings_head(&now, head);
    assert_int_equal(dp_training_settings_scores(head, text, size, 3, &err), DP_OK);
    assert_int_equal(dp_training_settings_scores(head, text, 20, 3, &err), DP_ARGUMENT);
#define REFUSED(then_text, now_text)                                                                         \
    do {                                                                                                     \
        dp_training_settings_head(&now, head);                                                               \
        assert_int_equal(dp_training_settings_scores(head, text, size, 3, &err), DP_ARGUMENT);               \
        assert_non_null(strstr(err.text, "run 3 was trained with '" then_text                                \
                                         "', the cluster file says '" now_text "'"));                        \
        now = then;                                                                                          \
    } while (0)
    (void)strcpy(now.model, "wide-deep:16-256-128");
    REFUSED("model deepfm:16-256-128", "model wide-deep:16-256-128");
    (void)strcpy(now.data.label, "age");
    REFUSED("label (none)", "label age");
    (void)strcpy(now.data.categories, "age");
    REFUSED("categories (none)", "categories age");
    now.data.normalize = true;
    REFUSED("normalize 0", "normalize 1");
    now.data.hash_bits = 9;
    REFUSED("hash_bits 0", "hash_bits 9");
#undef REFUSED
}

/* A training file that is read again, since no schema was kept, is the one of the training, read as then. */
static void data_read_again_is_what_was_trained(void **state)
{
    static struct dp_cluster then, now;
    static const struct dp_training_settings_set train = {
        .digest = 1, .examples = 2, .label_scale = {.mean = 3, .deviation = 0.1}};
    struct dp_training_settings_set other = train;
    char text[DP_TRAINING_SETTINGS_BYTES];
    struct dp_error err = {0};
    then = now = usual();
    dp_training_settings_text(&then, &train, &judged, text);
    now.training.epochs = 99;
    assert_int_equal(dp_training_settings_read_by(&now, &train, text, strlen(text), &err), DP_OK);
    assert_int_equal(dp_training_settings_read_by(&now, &train, "", 0, &err), DP_ARGUMENT);
#define REFUSED(set, why)                                                                                    \
    do {                                                                                                     \
        assert_int_equal(dp_training_settings_read_by(&now, &set, text, strlen(text), &err), DP_ARGUMENT);   \
        assert_non_null(strstr(err.text, "was not trained with '" why));                                     \
        now = then;                                                                                          \
    } while (0)
    now.data.standardize = !then.data.standardize;
    REFUSED(train, "standardize ");
    now.data.scale = 0.5;
    REFUSED(train, "scale 0.5");
    now.data.index_base = 1;
    REFUSED(train, "index_base 1");
    other.label_scale.mean = 4;
    REFUSED(other, "label_scale 4 0.1");
    other.digest = 0x12;
    REFUSED(other, "data 0000000000000012");
#undef REFUSED
}

/* Of long lines messages show what is not the same, wherever it is. */
static void long_lines_are_cut_where_they_differ(void **state)
{
    static struct dp_cluster now;
    struct dp_error err = {0};
    now = usual();
    (void)strcpy(now.model, "deepfm:16-256-128,fields=26,columns=13,dropout=0.25");
    assert_int_equal(second(&now, 0xabc, 60000, &err), DP_EXISTS);
    assert_non_null(strstr(
        err.text, "'model deepfm:16-256-128', this is 'model ...:16-256-128,fields=26,columns=13,dropo'"));
    for (size_t at = 0; at + 1 < sizeof now.data.categories; at++) {
        char before[DP_TRAINING_SETTINGS_BYTES], text[DP_TRAINING_SETTINGS_BYTES];
        static const struct dp_training_settings_set set = {.digest = 1, .examples = 2};
        memset(now.data.categories, 'c', sizeof now.data.categories - 1);
        memset(now.data.class_weight, 'w', sizeof now.data.class_weight - 1);
        dp_training_settings_text(&now, &set, NULL, before);
        now.data.categories[at] = 'd';
        dp_training_settings_text(&now, &set, NULL, text);
        assert_int_equal(dp_training_settings_same(text, before, strlen(before), 3, 1, NULL, &err),
                         DP_ARGUMENT);
        const char *mine = strstr(err.text, "this one with 'categories "),
                   *end = mine ? strstr(mine, "': give all") : NULL;
        assert_true(mine && end && memchr(mine + 26, 'd', (size_t)(end - mine - 26)));
    }
}

/* Names of files in place of digests, and how to go on. */
static void other_data_is_named(void **state)
{
    const struct dp_training_settings_files files = {.begun = "day1.csv", .mine = "x/day2.csv"};
    struct dp_error err;
    (void)state;
    assert_int_equal(
        dp_training_settings_check("data 01\nbatch 4\n", "data 02\nbatch 8\n", 16, 3, &files, &err),
        DP_EXISTS);
    assert_non_null(strstr(err.text, "other data ('day1.csv') than 'x/day2.csv'"));
    assert_non_null(strstr(err.text, "training.run = 4"));
    assert_int_equal(dp_training_settings_same("data 01\n", "data 02\n", 8, 3, 1, &files, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, "training.run = 4"));
    assert_int_equal(dp_training_settings_check("batch 4\n", "batch 8\n", 8, 3, &files, &err), DP_EXISTS);
    assert_non_null(strstr(err.text, "'batch 8'"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_data_is_named),
        cmocka_unit_test(what_decides_is_compared),
        cmocka_unit_test(labels_have_one_scale),
        cmocka_unit_test(when_it_ends_is_compared),
        cmocka_unit_test(texts_of_any_kind),
        cmocka_unit_test(scores_are_of_what_was_trained),
        cmocka_unit_test(data_read_again_is_what_was_trained),
        cmocka_unit_test(long_lines_are_cut_where_they_differ),
    };
    return cmocka_run_group_tests_name("training_settings", tests, NULL, NULL);
}
