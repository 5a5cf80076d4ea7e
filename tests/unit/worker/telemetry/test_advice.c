/* Goal    a training that is worth less than a constant, fits noise, or was cut short is said to be so, and no other is.
 * Method  courses of losses, by epoch, as a report holds them, and what must be in the words. */
#include "tests/lib/test.h"
#include "worker/telemetry/advice.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#define EPOCHS 8

struct course {
    const char *set;       /* "test", "validation" or "training" */
    double loss[EPOCHS];   /* ends with 0 */
    double constant, auc;  /* 0: none */
    const char *wanted[3]; /* in the first, second, third advice */
};

static const char *one_label = ""; /* that all training examples have */

static uint32_t advice_of(const struct course *course, enum dp_early_stop_why why,
                          char text[DP_ADVICE_MAX][DP_ADVICE_BYTES])
{
    struct dp_cluster cluster;
    struct dp_tested tested[EPOCHS] = {0}, none[EPOCHS] = {0};
    struct dp_epoch_stats epoch[EPOCHS] = {0};
    struct dp_worker_stats worker = {.epochs = EPOCHS, .epoch = epoch};
    const struct dp_early_stop stop = {.why = why};
    uint32_t n = 0;
    bool trains = strcmp(course->set, "training") == 0, validates = strcmp(course->set, "validation") == 0;
    dp_cluster_defaults(&cluster);
    while (n < EPOCHS && course->loss[n] != 0)
        n++;
    for (uint32_t e = 0; e < n; e++) {
        /* With an evaluated set the training loss falls, whatever the other does. */
        epoch[e].examples = 2;
        epoch[e].loss_sum = trains ? 2 * course->loss[e] : 0.2 * (n - e);
        tested[e].known = true;
        tested[e].figures = (struct dp_figures){
            .examples = 2, .loss = course->loss[e], .auc = course->auc != 0 ? course->auc : (double)NAN};
    }
    cluster.training.epochs = n;
    struct dp_report report = {.cluster = &cluster,
                               .examples = 60,
                               .workers = &worker,
                               .tested = trains || validates ? none : tested,
                               .validated = validates ? tested : NULL,
                               .epochs = n,
                               .finished = true,
                               .stop = &stop,
                               .constant = {.known = course->constant != 0,
                                            .set = course->set,
                                            .figures = {.loss = course->constant}}};
    (void)snprintf(report.constant.label, sizeof report.constant.label, "%s", one_label);
    return dp_advice_of(&report, text);
}

static void each_course_has_its_words(void **state)
{
    static const struct course courses[] = {
        {"test", {0.6, 0.5, 0.46, 0.4552, 0.4551}, 0.69, 0.8, {NULL}},
        {"test",
         {28, 40, 205},
         0.55,
         0.4,
         {"worse than the 0.55 of a constant: the model fits the training examples only. Try fewer",
          "best after epoch 1"}},
        {"test",
         {0.7, 0.9, 1.5},
         0.69,
         0.93,
         {"far too extreme. Try fewer --epochs", "best after epoch 1 (0.7) and ended at 1.5"}},
        {"test", {0.7, 0.6, 0.5, 0.45}, 0.05, 0.8, {"has learned too little so far", "more epochs"}},
        {"test", {0.7, 0.692, 0.684, 0.676}, 0.05, 0.5, {"learns slowly. Try more --epochs"}},
        {"test", {0.7, 0.6999, 0.6998, 0.6997}, 0.05, 0.783, {"learns slowly"}},
        {"test", {0.8, 0.75, 0.71}, 0.69, 0.55, {"too little so far", "falling by"}},
        {"test",
         {0.5, (double)NAN},
         0.05,
         0,
         {"training loss of 0.1 is worse", "training loss was still falling"}}, /* only ranked */
        {"test",
         {0.5, (double)INFINITY},
         0,
         0,
         {"test loss is not finite: the training has diverged. The likely cause is the rate"}},
        {"validation",
         {0.6, 0.478, 0.55, 0.606},
         0.69,
         0.8,
         {"The validation loss was best after epoch 2 (0.478) and ended at 0.606"}},
        {"validation", {0.6, 0.478, 0.49, 0.5}, 0.69, 0.8, {NULL}},
        {"test",
         {0.9, 0.6, 0.55, 0.5, 0.45},
         0.69,
         0.8,
         {"test loss was still falling by 9.1% an epoch when the training ended: more epochs may help. It "
          "had 5; "
          "the same command with --continue --epochs 5 trains 5 more."}},
        {"test", {0.9, 0.6, 0.50, 0.51, 0.45}, 0.69, 0.8, {"falling by 5.1%"}},
        {"test", {0.9, 0.45, 0.46, 0.44, 0.445}, 0.69, 0.8, {NULL}}, /* noise */
        {"test", {0.6, 0.5}, 0.69, 0.8, {"falling by 16.7%"}},
        {"test", {0.6}, 0.69, 0.8, {NULL}},
        {"training", {2.0, 1.5, 1.2}, 1.0, 0, {"training loss of 1.2 is worse", "training loss was still"}},
        {"training", {0.2, 0.205}, 1.0, 0, {NULL}},
        {"training", {0.2, 0.4}, 1.0, 0, {"training loss grew from 0.2 in the first epoch to 0.4."}},
        {"test", {0.69315, 0.693152}, 0.69315, 0, {NULL}}, /* rounding is no news */
    };
    for (size_t i = 0; i < sizeof courses / sizeof courses[0]; i++) {
        char text[DP_ADVICE_MAX][DP_ADVICE_BYTES];
        uint32_t n = advice_of(&courses[i], DP_EARLY_STOP_NO, text);
        for (uint32_t a = 0; a < 3; a++) {
            const char *wanted = courses[i].wanted[a];
            if ((a < n) != (wanted != NULL) || (wanted && !strstr(text[a], wanted)))
                fail_msg("course %zu, advice %u: '%s'", i, a, a < n ? text[a] : "none");
        }
    }
}

/* The loss rose little, but the examples are in a worse order as well. Planted: a bound for the loss only. */
static void a_worse_order_shows_noise(void **state)
{
    static const struct {
        double last_auc, last_loss;
        uint32_t advice;
    } cases[] = {{0.604, 0.61456, 1}, {0.625, 0.61456, 0}, {0.604, 0.603, 0}, {(double)NAN, 0.61456, 0}};
    struct dp_cluster cluster;
    dp_cluster_defaults(&cluster);
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[DP_ADVICE_MAX][DP_ADVICE_BYTES];
        struct dp_epoch_stats epoch[] = {{.examples = 1, .loss_sum = 0.66}, {.examples = 1, .loss_sum = 0.5}};
        struct dp_tested tested[] = {
            {.known = true, .figures = {.examples = 1, .loss = 0.60165, .auc = 0.628}},
            {.known = true,
             .figures = {.examples = 1, .loss = cases[i].last_loss, .auc = cases[i].last_auc}}};
        const struct dp_worker_stats worker = {.epochs = 2, .epoch = epoch};
        const struct dp_report report = {
            .cluster = &cluster, .workers = &worker, .tested = tested, .epochs = 2, .finished = true};
        assert_int_equal(dp_advice_of(&report, text), cases[i].advice);
        if (!cases[i].advice)
            continue;
        assert_non_null(
            strstr(text[0], "fitted noise since then. --validation share=0.1 --patience 2 stops"));
        tested[0].figures.ranked_users = 1;
        assert_int_equal(dp_advice_of(&report, text), 1);
        assert_non_null(strstr(text[0], "--patience 2,metric=recall@20 stops"));
    }
}

/* More epochs do not help then, nor does anything else. */
static void one_label_is_all_there_is_to_say(void **state)
{
    static const struct course courses[] = {{"training", {0.7, 0.68}, 0.008, 0, {NULL}},
                                            {"training", {0.2, 0.4}, 0.008, 0, {NULL}}};
    char text[DP_ADVICE_MAX][DP_ADVICE_BYTES];
    one_label = "1";
    for (size_t i = 0; i < 2; i++) {
        assert_int_equal(advice_of(&courses[i], DP_EARLY_STOP_NO, text), 1);
        assert_non_null(strstr(text[0], "All 60 training labels are 1: there is nothing to learn."));
    }
    one_label = "";
}

/* Who asked it to stop there needs no more epochs. */
static void a_stop_is_no_early_end(void **state)
{
    static const struct course falling = {"validation", {0.9, 0.7, 0.5}, 0.69, 0.8, {NULL}};
    char text[DP_ADVICE_MAX][DP_ADVICE_BYTES];
    assert_int_equal(advice_of(&falling, DP_EARLY_STOP_NO, text), 1);
    assert_int_equal(advice_of(&falling, DP_EARLY_STOP_REACHED, text), 0);
}

/* Planted: no matter how many pushes, how many threads. */
static void few_pushes_of_threads_are_told(void **state)
{
    static const struct {
        uint32_t threads, fetch_every;
        uint64_t pushes;
        const char *wanted;
    } cases[] = {
        {2, 1, 7, "gradients of 16 minibatches, so the training made 15 pushes"},
        {2, 1, 91, "made 99 pushes. If it has learned little: --fetch-every 2 makes"},
        {2, 1, 92, NULL}, /* with the 8 of the other worker */
        {1, 16, 7, NULL}, /* no threads */
        {4, 4, 7, NULL},  /* fewer minibatches are not possible */
        {4, 64, 7, "of 64 minibatches"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[DP_ADVICE_MAX][DP_ADVICE_BYTES];
        struct dp_cluster cluster;
        struct dp_tested tested = {.known = true, .figures = {.examples = 2, .loss = 0.5}};
        struct dp_epoch_stats epoch = {.examples = 2, .loss_sum = 1};
        const struct dp_worker_stats workers[] = {{.epochs = 1, .epoch = &epoch, .pushes = cases[i].pushes},
                                                  {.epochs = 1, .epoch = &epoch, .pushes = 8}};
        dp_cluster_defaults(&cluster);
        cluster.training.epochs = 1;
        cluster.training.workers = 2;
        cluster.training.threads = cases[i].threads;
        cluster.training.fetch_every = cases[i].fetch_every;
        const struct dp_report report = {
            .cluster = &cluster, .workers = workers, .tested = &tested, .epochs = 1, .finished = true};
        uint32_t n = dp_advice_of(&report, text);
        if ((n == 1) != (cases[i].wanted != NULL) || (n == 1 && !strstr(text[0], cases[i].wanted)))
            fail_msg("case %zu: '%s'", i, n ? text[0] : "none");
    }
}

struct cause {
    double train[3], test[3]; /* losses of three epochs */
    uint32_t workers, first_epoch;
    uint64_t staleness; /* of each push */
    const char *consistency, *format;
    bool standardize;
    const char *wanted, *unwanted;
};

#define ALL_BYTES (DP_ADVICE_MAX * (DP_ADVICE_BYTES + 1))

/* Each advice as a line. */
static void advise(const struct cause *cause, char all[ALL_BYTES])
{
    char text[DP_ADVICE_MAX][DP_ADVICE_BYTES];
    struct dp_cluster cluster;
    struct dp_tested tested[3];
    struct dp_epoch_stats epoch[3];
    struct dp_worker_stats workers[8] = {
        {.epochs = 3,
         .epoch = epoch,
         .pushes = 4000,
         .staleness = {.pushes = 10, .measured = 10, .sum = 10 * cause->staleness, .max = cause->staleness}}};
    struct dp_epoch_stats none[3] = {0};
    dp_cluster_defaults(&cluster);
    cluster.training.epochs = 3;
    cluster.training.workers = cause->workers;
    cluster.training.first_epoch = cause->first_epoch;
    cluster.data.standardize = cause->standardize;
    (void)snprintf(cluster.training.consistency, sizeof cluster.training.consistency, "%s",
                   cause->consistency);
    for (uint32_t e = 0; e < 3; e++) {
        epoch[e] = (struct dp_epoch_stats){.examples = 2, .loss_sum = 2 * cause->train[e]};
        tested[e] = (struct dp_tested){
            .known = true, .figures = {.examples = 2, .loss = cause->test[e], .auc = (double)NAN, .rmse = 1}};
    }
    for (uint32_t w = 1; w < 8; w++)
        workers[w] = (struct dp_worker_stats){.epochs = 3, .epoch = none};
    const struct dp_report report = {.cluster = &cluster,
                                     .workers = workers,
                                     .tested = tested,
                                     .epochs = 3,
                                     .finished = true,
                                     .format = cause->format,
                                     .constant = {.known = true, .set = "test", .figures = {.loss = 10}}};
    for (uint32_t a = 0, n = dp_advice_of(&report, text); a < n; a++)
        (void)snprintf(all + strlen(all), ALL_BYTES - strlen(all), "%s\n", text[a]);
}

static const char
    stale[] = "The likely cause is asynchrony at this rate: weights had changed by 12.0 pushes",
    remedies[] =
        "Try --rate 0.0001 (it was 0.001), --rate warmup=N, --rate-by-staleness, --consistency ssp:1 or "
        "sync, --no-overlap.";
static const struct cause causes[] = {
    {{1, 60, 900}, {1, 70, 800}, 8, 0, 12, "async", "csv", true, stale, "fitted noise"},
    {{1, 60, 900}, {1, 70, 800}, 8, 0, 12, "async", "csv", true, remedies, "standardize"},
    {{1, 60, 900},
     {1, 70, 800},
     8,
     0,
     12,
     "ssp:1",
     "csv",
     true,
     ", --consistency sync, --no-overlap.",
     "ssp"},
    {{.1, .09, .1},
     {.1, .2, .4},
     8,
     0,
     12,
     "async",
     "csv",
     true,
     remedies,
     "noise"}, /* far below the constant's 10 */
    {{.1, .09, .1}, {.1, .2, .4}, 1, 0, 1, "async", "csv", true, NULL, "likely cause"},
    {{1, 60, 900}, {1, 70, 800}, 1, 0, 1, "async", "csv", true, "--rate warmup=N.", "consistency"},
    {{1, 60, 900},
     {1, 70, 800},
     1,
     0,
     1,
     "async",
     "csv",
     false,
     ", numbers of like size (--standardize yes).",
     "normalize"},
    {{1, 60, 900},
     {1, 70, 800},
     1,
     0,
     1,
     "async",
     "libsvm",
     true,
     "(--normalize or --scale X).",
     "standardize"},
    {{1, 60, 900}, {1, 70, 800}, 1, 0, 1, "async", "text", false, "--rate warmup=N.", "size"},
    {{.4, .006, .007},
     {9, 20, 21},
     2,
     0,
     12,
     "async",
     "csv",
     true,
     "fits the training examples only. Try fewer --epochs",
     "asynchrony"}, /* though the training loss rose at the end */
    {{9e8, 6e8, 4e8},
     {90, 70, 50},
     8,
     4,
     12,
     "async",
     "csv",
     true,
     "the weights that it continued from: --fresh",
     "asynchrony"},
};

/* Planted: one remedy for all inputs; a rise of a small loss taken for noise; earlier weights forgotten. */
static void causes_and_remedies_are_the_training_s(void **state)
{
    for (size_t i = 0; i < sizeof causes / sizeof causes[0]; i++) {
        const struct cause *cause = &causes[i];
        char all[ALL_BYTES] = "";
        advise(cause, all);
        if ((cause->wanted && !strstr(all, cause->wanted)) || strstr(all, cause->unwanted))
            fail_msg("cause %zu: '%s'", i, all);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_course_has_its_words),
        cmocka_unit_test(a_worse_order_shows_noise),
        cmocka_unit_test(one_label_is_all_there_is_to_say),
        cmocka_unit_test(a_stop_is_no_early_end),
        cmocka_unit_test(few_pushes_of_threads_are_told),
        cmocka_unit_test(causes_and_remedies_are_the_training_s),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
