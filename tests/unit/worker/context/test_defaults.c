/* A training that names no minibatch and no number of epochs. Method: sizes of training sets that were measured (the README's and
 * others), the borders of the rule, and for every size its bounds. */
#include "tests/lib/test.h"
#include "worker/context/defaults.h"

static struct dp_cluster_training settled(const char *model, uint64_t examples, uint32_t batch,
                                          uint32_t epochs)
{
    struct dp_cluster_training training = {.batch = batch, .epochs = epochs};
    struct dp_model m;
    assert_int_equal(dp_model_open(model, &m, NULL), DP_OK);
    dp_defaults_settle(&m, &(struct dp_defaults_data){examples, examples, examples, 0}, &training);
    dp_model_close(&m);
    return training;
}

static void sizes_that_were_measured(void **state)
{
    static const struct {
        const char *model;
        uint64_t examples;
        uint32_t batch, epochs;
    } want[] = {{"mlp:4-16-3", 150, 4, 100},
                {"logistic", 32561, 128, 40},
                {"logistic", 25000, 128, 52},
                {"fm:8", 32561, 128, 10},
                {"mlp:784-256-10", 60000, 128, 11},
                {"dlrm:16", 100000, 128, 2},
                {"dlrm:16", 1000000, 128, 2},
                {"deepfm:8-64-32", 40000, 128, 3},
                {"mf:16", 28000, 512, 16},
                {"mf:16,loss=bpr", 28000, 512, 32},
                {"mf:16", 400020, 512, 16},
                {"mf:16", 4085720, 512, 14},
                {"dlrm:16", 45000000, 128, 1},
                {"logistic", 1, 4, 100},
                {"skipgram:64", 700000, 2048, 5},
                {"skipgram:64", 56000, 1024, 19},
                {"mlp:10-64-32-1,loss=squared", 331, 8, 13},
                {"mlp:10-64-32-1,loss=squared", 1050, 32, 51},
                {"mlp:10-64-32-1,loss=squared", 100, 4, 20},
                {"mlp:10-64-32-1,loss=squared", 100000, 128, 7},
                {"mlp:10-64-32-1,loss=logistic", 331, 8, 100},
                {"fm:8,loss=squared", 331, 8, 60},
                {"deepfm:16-64-32,loss=squared", 9600, 128, 22}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        struct dp_cluster_training t = settled(want[i].model, want[i].examples, 0, 0);
        assert_int_equal(t.batch, want[i].batch);
        assert_int_equal(t.epochs, want[i].epochs);
    }
}

/* A day of 6,000 examples after 24,000 of earlier days has the epochs of 30,000. One that rehearses has two
 * thirds of those of all that it could rehearse. */
static void a_further_day_has_the_epochs_of_all_days(void **state)
{
    static const struct {
        const char *model;
        struct dp_defaults_data day;
        uint64_t earlier;
        uint32_t alone, further;
    } want[] = {{"deepfm:8-32-16", {6000, 6000, 6000, 0}, 24000, 18, 4},
                {"mlp:3-32-16-1,loss=logistic", {6000, 6000, 6000, 0}, 24000, 100, 22},
                {"mf:16,loss=squared", {6000, 6000, 6000, 0}, 24000, 32, 32},
                {"mf:16", {90000, 30000, 150000, 0}, 240000, 16, 11},
                {"mf:16", {9000000, 3000000, 15000000, 0}, 24000000, 16, 3}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        struct dp_cluster_training alone = settled(want[i].model, want[i].day.own, 0, 0),
                                   further = {.earlier_examples = want[i].earlier};
        struct dp_model m;
        assert_int_equal(dp_model_open(want[i].model, &m, NULL), DP_OK);
        dp_defaults_settle(&m, &want[i].day, &further);
        dp_model_close(&m);
        assert_int_equal(further.batch, alone.batch);
        assert_int_equal(alone.epochs, want[i].alone);
        assert_int_equal(further.epochs, want[i].further);
    }
}

/* A fifth and more are not rare. A further day has no more steps. */
static void a_rare_label_has_more_steps(void **state)
{
    static const struct {
        double rare;
        uint32_t epochs;
    } want[] = {{0, 11}, {0.4, 11}, {0.2, 11}, {0.1, 22}, {0.05, 43}, {0.01, 54}, {1e-9, 54}};
    for (size_t i = 0; i < sizeof want / sizeof want[0]; i++) {
        struct dp_cluster_training training = {0};
        struct dp_model m;
        assert_int_equal(dp_model_open("fm:8", &m, NULL), DP_OK);
        dp_defaults_settle(&m, &(struct dp_defaults_data){30000, 30000, 30000, want[i].rare}, &training);
        assert_int_equal(training.epochs, want[i].epochs);
        training = (struct dp_cluster_training){.earlier_examples = 10};
        dp_defaults_settle(&m, &(struct dp_defaults_data){30000, 30000, 30000, want[i].rare}, &training);
        assert_int_equal(training.epochs, 11);
        dp_model_close(&m);
    }
}

static void what_is_given_stays(void **state)
{
    struct dp_cluster_training t = settled("logistic", 32561, 64, 0);
    assert_int_equal(t.batch, 64);
    assert_int_equal(t.epochs, 20);
    t = settled("logistic", 150, 0, 7);
    assert_int_equal(t.batch, 4);
    assert_int_equal(t.epochs, 7);
    t = settled("logistic", 100000000, 1, 1000000);
    assert_int_equal(t.batch, 1);
    assert_int_equal(t.epochs, 1000000);
}

static void every_size_keeps_the_bounds(void **state)
{
    uint32_t last = UINT32_MAX;
    for (uint64_t n = 1; n < UINT64_C(1) << 40; n += 1 + n / 7) {
        struct dp_cluster_training t = settled("deepfm:8-16", n, 0, 0);
        assert_in_range(t.batch, 4, 128);
        assert_true(t.batch == 4 || n / t.batch >= 32);
        assert_true(t.batch == 128 || n < 4096);
        assert_in_range(t.epochs, 1, 100);
        assert_true(t.epochs == 1 || t.epochs * n <= 20000000);
        assert_true(n < 4096 || t.epochs <= last);
        last = n < 4096 ? UINT32_MAX : t.epochs;
    }
}

static struct dp_cluster *read_file(const char *data, const char *more)
{
    struct dp_cluster *cluster;
    FILE *file = fopen("defaults.conf", "w");
    assert_non_null(file);
    fprintf(file,
            "servers = ( { host = \"127.0.0.1\"; port = 1; store = \"s\"; } );\n"
            "name = \"d\"; data = { train = \"t\"; %s };\n%s\n",
            data, more);
    assert_int_equal(fclose(file), 0);
    assert_int_equal(dp_cluster_read("defaults.conf", &cluster, NULL), DP_OK);
    assert_int_equal(dp_defaults_of_file("defaults.conf", cluster, NULL), DP_OK);
    assert_int_equal(remove("defaults.conf"), 0);
    return cluster;
}

/* What `downpour run` takes for a new run, where the file does not say it. */
static void a_cluster_with_dir_has_the_models_settings(void **state)
{
    struct dp_cluster *c = read_file("min_count = 3;", "dir = \"k\"; model = \"skipgram:8\";");
    assert_int_equal(c->data.words, DP_WORD_SIMPLE);
    assert_int_equal(c->data.min_count, 3);
    assert_true(c->data.subsample == 0.001 && c->training.rate == 0.1);
    assert_true(c->training.optimizer.beta1 == 0 && c->training.optimizer.epsilon == 5e-5f);
    assert_int_equal(c->training.decay, DP_DECAY_LINEAR);
    dp_cluster_free(&c);
    c = read_file(
        "", "dir = \"k\"; model = \"skipgram:8\"; training = { optimizer = { kind = \"adagrad\"; }; };");
    assert_true(c->training.optimizer.epsilon == 1e-10f);
    dp_cluster_free(&c);
    c = read_file("", "dir = \"k\"; model = \"deepfm:8-16\";");
    assert_int_equal(c->training.decay, DP_DECAY_LINEAR);
    dp_cluster_free(&c);
    c = read_file("", "dir = \"k\"; model = \"deepfm:8-16\"; training = { rate = 0.5; };");
    assert_int_equal(c->training.decay, DP_DECAY_NONE);
    assert_true(c->training.rate == 0.5);
    dp_cluster_free(&c);
    c = read_file("", "model = \"skipgram:8\";");
    assert_int_equal(c->data.min_count, 1);
    assert_int_equal(c->training.decay, DP_DECAY_NONE);
    dp_cluster_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sizes_that_were_measured),
        cmocka_unit_test(a_further_day_has_the_epochs_of_all_days),
        cmocka_unit_test(a_rare_label_has_more_steps),
        cmocka_unit_test(what_is_given_stays),
        cmocka_unit_test(every_size_keeps_the_bounds),
        cmocka_unit_test(a_cluster_with_dir_has_the_models_settings),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
