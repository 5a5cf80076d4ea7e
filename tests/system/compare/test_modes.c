/* Goal    what --modes takes is what people write, each mode becomes the flags that it says, and what is no mode is refused by name.
 * Method  texts, and the plan of whole command lines. */
#include "tests/lib/test.h"

#include "deploy/compare/compare_plan.h"
#include "deploy/compare/modes.h"

#include <stdio.h>
#include <string.h>

#define TRAIN "tests/data/digits.train.libsvm.gz"
#define TEST  "tests/data/digits.test.libsvm.gz"

static struct dp_compare_mode mode[DP_COMPARE_MODES_MAX];
static size_t count;
static struct dp_error err;

static void refused(const char *text, const char *why)
{
    assert_int_equal(dp_compare_modes_parse(text, 4, mode, &count, &err), DP_ARGUMENT);
    if (!strstr(err.text, why))
        fail_msg("'%s': '%s' is not in: %s", text, why, err.text);
}

static void each_form_is_a_mode(void **state)
{
    static const struct {
        const char *consistency;
        enum dp_compare_kind kind;
        bool leased;
        uint32_t workers;
    } right[] = {{"async", DP_COMPARE_SERVERS, false, 4},  {"async", DP_COMPARE_SERVERS, true, 4},
                 {"ssp:4", DP_COMPARE_SERVERS, false, 4},  {"sync", DP_COMPARE_SERVERS, false, 8},
                 {"sync:1", DP_COMPARE_SERVERS, false, 4}, {"async", DP_COMPARE_HOGWILD, false, 2},
                 {"sync", DP_COMPARE_ALLREDUCE, false, 4}};
    assert_int_equal(dp_compare_modes_parse("async,async:leased,ssp:4,sync@8,sync:1,hogwild@2,allreduce", 4,
                                            mode, &count, &err),
                     DP_OK);
    assert_int_equal(count, 7);
    for (size_t i = 0; i < count; i++) {
        assert_string_equal(mode[i].consistency, right[i].consistency);
        assert_int_equal(mode[i].kind, right[i].kind);
        assert_int_equal(mode[i].leased, right[i].leased);
        assert_int_equal(mode[i].workers, right[i].workers);
    }
}

static void what_is_no_mode_is_named(void **state)
{
    refused("", "'' is no mode");
    refused("async,", "'' is no mode");
    refused("async,assync", "'assync' is no mode");
    refused("ssp", "'ssp' is no mode");
    refused("asynch", "did you mean 'async'?");
    refused("Async@2[batch=4]", "did you mean 'async'?");
    refused("async:lease", "did you mean 'async:leased'?");
    refused("hogwid+prefetch", "did you mean 'hogwild'?");
    refused("ssp", "ssp needs its bound, as ssp:4");
    refused("sync,ssp@2", "ssp needs its bound, as ssp:4");
    refused("async[batch=4,sync", "the ] of its [ is missing");
    refused("sync@0", "the workers after @");
    refused("sync@x", "the workers after @");
    refused("sync,async,sync", "'sync' is given twice");
    refused("async@1,async@2,async@3,async@4,async@5,async@6,async@7,async@8,async@9", "at most 8");
    refused("ssp:99999999999999999999999999999999999999999999", "is no mode");
    char longer[DP_COMPARE_NAME + 8] = "async[rate=0.";
    memset(longer + strlen(longer), '1', sizeof longer - strlen(longer) - 1);
    longer[sizeof longer - 1] = '\0';
    refused(longer, "is too long");
}

/* A path of one mode is no other's. */
static void paths_differ(void **state)
{
    char one[DP_COMPARE_NAME], other[DP_COMPARE_NAME];
    assert_int_equal(dp_compare_modes_parse("sync:1,sync@1,sync,sync[batch=1],sync[batch=1]+prefetch,"
                                            "sync[rate=1e-3,optimizer=l2=1]",
                                            4, mode, &count, &err),
                     DP_OK);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < i; k++)
            assert_string_not_equal(dp_compare_mode_path(&mode[i], one),
                                    dp_compare_mode_path(&mode[k], other));
    assert_null(strpbrk(dp_compare_mode_path(&mode[0], one), ":/"));
    assert_string_equal(dp_compare_mode_path(&mode[4], one), "sync-batch=1+prefetch");
    assert_string_equal(dp_compare_mode_path(&mode[5], one), "sync-rate=1e-3-optimizer=l2=1");
}

/* Settings of their own, by the names of run's flags; what is the same for all modes is not among them. */
static void a_mode_has_settings_of_its_own(void **state)
{
    assert_int_equal(dp_compare_modes_parse(
                         "sync@4[batch=4],async[rate=0.01,decay=cosine,optimizer=sgd:momentum=0.5,l2=1],"
                         "async[rate_by_staleness]+prefetch,hogwild@3[push_every=1],"
                         "async:leased@2[lr=3]",
                         2, mode, &count, &err),
                     DP_OK);
    assert_int_equal(count, 5);
    assert_string_equal(mode[0].name, "sync@4[batch=4]");
    assert_int_equal(mode[0].workers, 4);
    assert_string_equal(dp_compare_mode_own(&mode[0], "--batch"), "4");
    assert_null(dp_compare_mode_own(&mode[0], "--rate"));
    assert_false(mode[0].prefetch);
    assert_string_equal(dp_compare_mode_own(&mode[1], "--rate"), "0.01");
    assert_string_equal(dp_compare_mode_own(&mode[1], "--rate decay"), "cosine");
    assert_string_equal(dp_compare_mode_own(&mode[1], "--optimizer momentum"), "0.5");
    assert_string_equal(dp_compare_mode_own(&mode[1], "--optimizer l2"), "1");
    assert_string_equal(dp_compare_mode_own(&mode[2], "--rate-by-staleness"), "");
    assert_true(mode[2].prefetch);
    assert_string_equal(dp_compare_mode_own(&mode[3], "--push-every"), "3"); /* one of each thread */
    assert_string_equal(dp_compare_mode_own(&mode[4], "--rate"), "3");
    assert_true(mode[4].leased);
    assert_int_equal(dp_compare_modes_parse("hogwild[push_every=x]", 4, mode, &count, &err), DP_OK);
    assert_string_equal(dp_compare_mode_own(&mode[0], "--push-every"), "x"); /* which the plan refuses */
}

static void settings_are_checked_by_name(void **state)
{
    static const char *const of_all[] = {
        "model=mf:2",       "train=x",   "test=x",      "seed=2",          "dir=x",     "epochs=2",
        "workers=2",        "threads=2", "work=leased", "inject=pace=1ms", "cluster=x", "scale=2",
        "consistency=sync", "resume",    "normalize",   "holdout=x"};
    char text[64];
    for (size_t i = 0; i < sizeof of_all / sizeof of_all[0]; i++) {
        (void)snprintf(text, sizeof text, "async[%s]", of_all[i]);
        refused(text, "is the same for all modes that are compared, or part of a mode's name");
    }
    refused("async[batsh=4]", "did you mean '--batch'");
    refused("async[momentum=0.5]", "'--momentum' is now '--optimizer momentum=X'");
    refused("async[batch]", "'--batch' needs a value");
    refused("async[bf16=1]", "'--bf16' takes no value");
    refused("async[batch=4,batch=5]", "given twice");
    refused("async[]", "unknown flag");
    refused("async[no_overlap]", "only with +prefetch");
    refused("allreduce+prefetch", "pull none ahead");
    refused("async[batch=4", "is no mode");
    refused("async]", "is no mode");
    refused("async[batch=4]x", "is no mode");
    refused("async[a[b]]", "is no mode");
    refused("+prefetch", "is no mode");
    refused("[batch=4]", "is no mode");
    refused("async+prefetch+prefetch", "is no mode");
    refused("async[batch=4],async[batch=4]", "given twice");
}

static void promises_fit(void **state)
{
    char promise[DP_COMPARE_PROMISE_BYTES];
    static const char *const words[] = {"fixed share", "common list",      "more than 1000000 steps",
                                        "equal bits",  "the 1023 slowest", "Hogwild!",
                                        "MPI"};
    assert_int_equal(dp_compare_modes_parse("async,async:leased,ssp:1000000,sync,sync:1023,hogwild,allreduce",
                                            1024, mode, &count, &err),
                     DP_OK);
    for (size_t i = 0; i < count; i++) {
        dp_compare_mode_promise(&mode[i], promise);
        assert_non_null(strstr(promise, words[i]));
        assert_int_equal(promise[strlen(promise) - 1], '.'); /* it was not cut */
    }
}

/* ---- plans */

static enum dp_status plan_of(struct dp_compare_plan *plan, const char *const *flags, size_t n)
{
    static const char *const job[] = {"--model", "mlp:64-8-10", "--train", TRAIN, "--test", TEST};
    char *argv[32];
    bool help;
    *plan = (struct dp_compare_plan){.modes = 0};
    memcpy(argv, job, sizeof job);
    memcpy(argv + 6, flags, n * sizeof *flags);
    enum dp_status st = dp_options_parse(dp_compare_command(), (int)(6 + n), argv, plan->values, &help, &err);
    return st == DP_OK ? dp_compare_plan_make(plan, &err) : st;
}
#define PLAN(plan, ...)                                                                                      \
    plan_of(plan, (const char *const[]){__VA_ARGS__},                                                        \
            sizeof((const char *const[]){__VA_ARGS__}) / sizeof(char *))

static void plan_refused(enum dp_status st, const char *why)
{
    assert_int_not_equal(st, DP_OK);
    if (!strstr(err.text, why))
        fail_msg("'%s' is not in: %s", why, err.text);
}

static void a_plan_has_the_flags_of_runs(void **state)
{
    struct dp_compare_plan plan;
    struct dp_cluster *cluster = NULL;
    assert_int_equal(PLAN(&plan, "--workers", "4", "--modes", "sync:1,hogwild", "--inject",
                          "straggler=3:2x,pace=2ms", "--seed", "7", "--lr-grid", "0.1,1e-3", "--optimizer",
                          "sgd", "--sample-every", "1.5s"),
                     DP_OK);
    assert_int_equal(plan.seeds, 5);
    assert_true(plan.first_grid_seed > plan.first_seed + plan.seeds);
    assert_int_equal(plan.rates, 2);
    assert_int_equal(plan.sample_ms, 1500);
    assert_int_equal(dp_compare_plan_cluster(&plan, &plan.mode[0], 9, plan.rate[1], &cluster, &err), DP_OK);
    assert_string_equal(cluster->training.consistency, "sync:1");
    assert_string_equal(cluster->training.straggler, "3:2x");
    assert_int_equal(cluster->training.workers, 4);
    assert_int_equal(cluster->training.seed, 9);
    assert_true(cluster->training.rate == 1e-3);
    dp_cluster_free(&cluster);
    assert_int_equal(dp_compare_plan_cluster(&plan, &plan.mode[1], 9, NULL, &cluster, &err), DP_OK);
    assert_int_equal(cluster->training.workers, 1);
    assert_int_equal(cluster->training.threads, 4);
    assert_string_equal(cluster->training.straggler, ""); /* of a worker that is not there */
    dp_cluster_free(&cluster);
}

/* Of a mode, as its runs have them: its own before those of all; no pull ahead but with +prefetch. */
static void a_plan_has_the_settings_of_modes(void **state)
{
    struct dp_compare_plan plan;
    struct dp_cluster *cluster = NULL;
    assert_int_equal(PLAN(&plan, "--batch", "32", "--optimizer", "momentum=0.1", "--optimizer", "sgd",
                          "--modes", "async[batch=4,optimizer=momentum=0.5],sync+prefetch"),
                     DP_OK);
    assert_int_equal(dp_compare_plan_cluster(&plan, &plan.mode[0], 1, NULL, &cluster, &err), DP_OK);
    assert_int_equal(cluster->training.batch, 4);
    assert_true(cluster->training.optimizer.momentum == 0.5F);
    assert_false(cluster->training.overlap);
    dp_cluster_free(&cluster);
    assert_int_equal(dp_compare_plan_cluster(&plan, &plan.mode[1], 1, NULL, &cluster, &err), DP_OK);
    assert_int_equal(cluster->training.batch, 32);
    assert_true(cluster->training.optimizer.momentum == 0.1F);
    assert_true(cluster->training.overlap);
    dp_cluster_free(&cluster);
    assert_string_equal(dp_compare_plan_mode_flag(&plan, &plan.mode[0], "--batch"), "4");
    assert_string_equal(dp_compare_plan_mode_flag(&plan, &plan.mode[1], "--batch"), "32");
}

/* Each mode gets a rate of its own, unless it names one, or --lr-grid none. */
static void rates_are_sought_by_default(void **state)
{
    struct dp_compare_plan plan;
    assert_int_equal(PLAN(&plan, "--modes", "sync,async[rate=0.5]"), DP_OK);
    assert_int_equal(plan.rates, 3);
    assert_string_equal(plan.rate[0], "0.00033");
    assert_string_equal(plan.rate[1], "0.001");
    assert_string_equal(plan.rate[2], "0.003");
    assert_true(dp_compare_plan_seeks_rate(&plan, &plan.mode[0]));
    assert_false(dp_compare_plan_seeks_rate(&plan, &plan.mode[1]));
    assert_int_equal(PLAN(&plan, "--rate", "2e-2", "--grid-seeds", "2"), DP_OK);
    assert_int_equal(plan.rates, 3);
    assert_int_equal(plan.grid_seeds, 2);
    assert_string_equal(plan.rate[0], "0.0067");
    assert_string_equal(plan.rate[1], "0.02");
    assert_string_equal(plan.rate[2], "0.06");
    assert_int_equal(PLAN(&plan, "--rate", "0.02", "--lr-grid", "none"), DP_OK);
    assert_int_equal(plan.rates, 0);
    assert_false(dp_compare_plan_seeks_rate(&plan, &plan.mode[0]));
    assert_int_equal(PLAN(&plan, "--modes", "async[rate=0.5]"), DP_OK);
    assert_int_equal(plan.rates, 0);
}

static void what_no_run_would_take_is_refused(void **state)
{
    struct dp_compare_plan plan;
    plan_refused(PLAN(&plan, "--workers", "4", "--inject", "straggler=4:2x"), "the workers are 0 .. 3");
    plan_refused(
        PLAN(&plan, "--workers", "4", "--modes", "sync,sync@2", "--inject", "straggler=3:2x,pace=1ms"),
        "mode sync@2");
    plan_refused(PLAN(&plan, "--workers", "2", "--modes", "sync:2"), "mode sync:2");
    plan_refused(PLAN(&plan, "--seeds", "0"), "--seeds");
    plan_refused(PLAN(&plan, "--rate", "0.1", "--lr-grid", "0.1"), "give one of them");
    plan_refused(PLAN(&plan, "--grid-seeds", "2", "--lr-grid", "none"), "--grid-seeds says how --lr-grid");
    plan_refused(PLAN(&plan, "--no-overlap"), "unknown flag '--no-overlap'");
    plan_refused(PLAN(&plan, "--modes", "async[batch=x]"), "--batch");
    plan_refused(PLAN(&plan, "--lr-grid", "0.1,x"), "--lr-grid");
    plan_refused(PLAN(&plan, "--lr-grid", "0.1,"), "--lr-grid");
    plan_refused(PLAN(&plan, "--target", "accurracy:0.9"), "--target");
    plan_refused(PLAN(&plan, "--target", "accuracy:1.5"), "--target");
    plan_refused(PLAN(&plan, "--sample-every", "1ms"), "10ms or more");
    plan_refused(PLAN(&plan, "--train", "labels=none/x"), "cannot read 'none/x'");
    plan_refused(PLAN(&plan, "--consistency", "sync"), "unknown flag '--consistency'");
    plan_refused(PLAN(&plan, "--inject", "jitter=exp"), "--inject pace");
}

/* As downpour-allreduce does, before anything is started. */
static void what_ranks_lack_is_refused(void **state)
{
    struct dp_compare_plan plan;
    assert_int_equal(PLAN(&plan, "--modes", "sync[push_every=1],allreduce[batch=4]"), DP_OK);
    plan_refused(PLAN(&plan, "--modes", "sync,allreduce[push_every=2]"),
                 "mode allreduce[push_every=2]: an all-reduce");
    plan_refused(PLAN(&plan, "--modes", "sync,allreduce[fetch_every=2]"), "--fetch-every");
    plan_refused(PLAN(&plan, "--modes", "sync,allreduce", "--accumulate", "2"), "take a larger --batch");
}

/* A factor needs a pace that it multiplies; a time is added to whatever a minibatch takes. */
static void a_factor_needs_a_pace(void **state)
{
    struct dp_compare_plan plan;
    plan_refused(PLAN(&plan, "--workers", "4", "--inject", "straggler=3:10x"),
                 "add pace=TIME (such as 20ms)");
    plan_refused(PLAN(&plan, "--workers", "4", "--inject", "straggler=2:5ms,3:10x,pace=0"),
                 "multiplies pace");
    assert_int_equal(PLAN(&plan, "--workers", "4", "--inject", "straggler=3:10x,pace=20ms"), DP_OK);
    assert_int_equal(PLAN(&plan, "--workers", "4", "--inject", "straggler=3:5ms"), DP_OK);
    assert_int_equal(PLAN(&plan, "--workers", "4", "--inject", "straggler=none"), DP_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_form_is_a_mode),
        cmocka_unit_test(what_is_no_mode_is_named),
        cmocka_unit_test(paths_differ),
        cmocka_unit_test(a_mode_has_settings_of_its_own),
        cmocka_unit_test(settings_are_checked_by_name),
        cmocka_unit_test(promises_fit),
        cmocka_unit_test(a_plan_has_the_flags_of_runs),
        cmocka_unit_test(a_plan_has_the_settings_of_modes),
        cmocka_unit_test(rates_are_sought_by_default),
        cmocka_unit_test(what_no_run_would_take_is_refused),
        cmocka_unit_test(what_ranks_lack_is_refused),
        cmocka_unit_test(a_factor_needs_a_pace),
    };
    return cmocka_run_group_tests_name("modes", tests, NULL, NULL);
}
