/* A training that ends before its last epoch: by a goal in each metric, by patience; all workers after the same minibatch, with
 * figures that are those of the weights that stay, also when all are killed at once. What cannot be is
 * refused before anything is trained. And the command that generates clicks, which some of it trains on. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WORKERS 3u

/* Users met half of the items whose number has their rest modulo 4; ranked is one of those, among items of other rests: what
 * is learned by heart is enough here. */
static void make_pairs(struct dp_place *place)
{
    static char train[16384], test[4096], negatives[16384];
    size_t a = 0, b = 0, c = 0;
    for (unsigned u = 0; u < 40; u++) {
        unsigned held = u % 4;
        for (unsigned i = u % 4; i < 80; i += 4)
            if ((i / 4 + u / 4) % 2) {
                a += (size_t)snprintf(train + a, sizeof train - a, "%u %u\n", u, i);
                held = i;
            }
        b += (size_t)snprintf(test + b, sizeof test - b, "%u %u\n", u, held);
        c += (size_t)snprintf(negatives + c, sizeof negatives - c, "(%u,%u)", u, held);
        for (unsigned n = 1; n < 26; n++)
            if (n % 4)
                c += (size_t)snprintf(negatives + c, sizeof negatives - c, "\t%u", (held + n) % 80);
        negatives[c++] = '\n';
    }
    (void)dp_place_file(place, "pairs", train, a);
    (void)dp_place_file(place, "held", test, b);
    (void)dp_place_file(place, "negatives", negatives, c);
}

/* y = a sum of its features, which differ from line to line. */
static void make_numbers(struct dp_place *place)
{
    static char text[32768];
    size_t len = 0;
    for (unsigned i = 0; i < 600; i++)
        len += (size_t)snprintf(text + len, sizeof text - len, "%.1f %u:1 %u:1\n",
                                (i % 7) * 0.5 - (i % 5) * 0.3, 1 + i % 7, 8 + i % 5);
    (void)dp_place_file(place, "numbers", text, len);
}

static void make_clicks(struct dp_place *place)
{
    (void)dp_place_try(place, 0, "downpour", "generate", "clicks", "--rows", "3000", "--features", "100",
                       "--seed", "1", "--out", dp_place_path(place, "clicks"));
}

/* That every worker says the same place, which is that of the report; and that nothing was trained behind it. */
static void check_stopped(struct dp_place *place, const char *report)
{
    unsigned epoch = (unsigned)dp_place_number(place, report, "stop.epoch"),
             minibatch = (unsigned)dp_place_number(place, report, "stop.minibatch");
    const char *said = dp_place_text(place, "stops after epoch %u, minibatch %u: ", epoch, minibatch);
    for (unsigned w = 0; w < WORKERS; w++)
        assert_non_null(
            strstr(dp_place_read(place, dp_place_path(place, "run/log/worker-%u.log", w), NULL), said));
    assert_true(dp_place_number(place, report, dp_place_text(place, "epochs.%u.epoch", epoch - 1)) == epoch);
    assert_null(strstr(dp_place_read(place, report, NULL),
                       dp_place_text(place, "\"epoch\": %u,\n      \"train_loss", epoch + 1)));
    double examples = 0;
    for (unsigned w = 0; w < WORKERS; w++)
        examples += dp_place_number(place, report, dp_place_text(place, "workers.%u.examples", w));
    assert_true(examples == epoch * dp_place_number(place, report, "data.examples"));
}

struct goal {
    const char *metric, *key; /* as the report has it */
    double value;
    bool falls;
    const char *model, *train, *rate;
    const char *validation; /* NULL: a share */
    const char *negatives;
};

static void reaches(struct dp_place *place, const struct goal *goal)
{
    const char *run = dp_place_path(place, "run"), *report = dp_place_path(place, "run/report.json"),
               *flag = goal->validation ? "--validation" : "--validation share",
               *set = goal->validation ? dp_place_path(place, "%s", goal->validation) : "0.2";
    struct dp_process *ended = dp_place_try(
        place, 0, "downpour", "run", "--fresh", "--dir", run, "--servers", "2", "--workers", "3", "--model",
        goal->model, "--train", goal->train[0] == '/' ? goal->train : dp_place_path(place, "%s", goal->train),
        flag, set, "--stop-at", dp_place_text(place, "%s:%g", goal->metric, goal->value), "--epochs", "400",
        "--batch", "16", "--rate", goal->rate, "--durability", "none",
        goal->negatives ? "--validation negatives" : "--index-base",
        goal->negatives ? dp_place_path(place, "%s", goal->negatives) : "1");
    dp_place_says(ended, "Stopped:   after epoch");
    dp_place_says(ended, dp_place_text(place, "validation %s ", goal->metric));
    double value = dp_place_number(place, report, "stop.value"),
           epoch = dp_place_number(place, report, "stop.epoch"),
           final = dp_place_number(place, report, dp_place_text(place, "final.validation.%s", goal->key));
    print_message("%s %.4f after epoch %.0f\n", goal->metric, value, epoch);
    assert_true(goal->falls ? value <= goal->value : value >= goal->value);
    assert_true(value == final || fabs(value - final) < 1e-8);
    assert_true(epoch < 400);
    for (unsigned e = 1; e < epoch; e++) { /* and not before */
        double before =
            dp_place_number(place, report, dp_place_text(place, "epochs.%u.validation.%s", e - 1, goal->key));
        assert_true(goal->falls ? before > goal->value : before < goal->value);
    }
    check_stopped(place, report);
}

static void each_metric_stops_all(void **state)
{
    struct dp_place *place = *state;
    static const struct goal goals[] = {
        {"accuracy", "accuracy", 0.7, false, "mlp:64-32-10", DP_DIGITS_TRAIN, "0.001", NULL, NULL},
        {"auc", "auc", 0.64, false, "logistic", "clicks", "0.004", NULL, NULL},
        {"logloss", "loss", 0.545, true, "logistic", "clicks", "0.004", NULL, NULL},
        {"rmse", "rmse", 0.3, true, "fm:2,loss=squared", "numbers", "0.05", NULL, NULL},
        {"hr@10", "hr10", 0.8, false, "mf:4", "pairs", "0.05", "held", "negatives"},
        {"ndcg@10", "ndcg10", 0.5, false, "mf:4,loss=bpr", "pairs", "0.05", "held", "negatives"},
    };
    make_pairs(place);
    make_numbers(place);
    make_clicks(place);
    for (size_t g = 0; g < sizeof goals / sizeof goals[0]; g++)
        reaches(place, &goals[g]);
}

/* The best of all epochs up to each, from the report's own series, ends it where it ended. */
static void check_patience(struct dp_place *place, const char *report, const char *set, unsigned patience)
{
    unsigned last = (unsigned)dp_place_number(place, report, "stop.epoch"), best_epoch = 0;
    double best = 1e300;
    for (unsigned e = 1; e <= last; e++) {
        double loss = dp_place_number(place, report, dp_place_text(place, "epochs.%u.%s.loss", e - 1, set));
        if (loss < best)
            best = loss, best_epoch = e;
        assert_true((e - best_epoch >= patience) == (e == last));
    }
    assert_true(dp_place_number(place, report, "stop.best_epoch") == best_epoch);
}

static void patience_ends_it(void **state)
{
    struct dp_place *place = *state;
    const char *run = dp_place_path(place, "run"), *report = dp_place_path(place, "run/report.json");
    make_clicks(place);
    for (unsigned patience = 1; patience <= 3; patience += 2) {
        struct dp_process *ended = dp_place_try(
            place, 0, "downpour", "run", "--fresh", "--dir", run, "--servers", "2", "--workers", "3",
            "--model", "logistic", "--train", dp_place_path(place, "clicks"), "--validation", "share=0.3",
            "--test", dp_place_path(place, "clicks"), "--patience", dp_place_text(place, "%u", patience),
            "--epochs", "400", "--batch", "16", "--rate", "0.02", "--durability", "none");
        dp_place_says(ended, "validation loss has not been better than the");
        dp_place_says(ended, "Test set: ");
        check_patience(place, report, "validation", patience);
        check_stopped(place, report);
        assert_true(dp_place_number(place, report, "data.examples") == 2100);
        assert_true(dp_place_number(place, report, "final.validation.examples") == 900);
        assert_true(dp_place_number(place, report, "final.test.examples") == 3000);
    }
}

/* Without a validation set the test set is looked at; a goal that is not reached is no failure. */
static void what_is_not_reached_is_told(void **state)
{
    struct dp_place *place = *state;
    const char *run = dp_place_path(place, "run"), *report = dp_place_path(place, "run/report.json");
    make_clicks(place);
    struct dp_process *ended =
        dp_place_try(place, 0, "downpour", "run", "--dir", run, "--workers", "2", "--model", "logistic",
                     "--train", dp_place_path(place, "clicks"), "--test", dp_place_path(place, "clicks"),
                     "--stop-at", "auc:1", "--epochs", "2", "--durability", "none");
    dp_place_says(ended, "Not reached: test auc of 1; it was 0.");
    assert_true(dp_place_number(place, report, "stop.epoch") == 2);
    assert_true(dp_place_number(place, report, "stop.value") ==
                dp_place_number(place, report, "final.test.auc"));
}

/* Said before anything is trained. */
static void one_class_has_no_auc(struct dp_place *place)
{
    static const char both[] = "1 1:1\n0 2:1\n1 1:1 2:1\n0 3:1\n", one[] = "1 1:1\n1 2:1\n1 3:1\n";
    const char *train = dp_place_file(place, "both", both, sizeof both - 1);
    for (int patience = 0; patience < 2; patience++) {
        struct dp_process *ended = dp_place_try(
            place, 2, "downpour", "run", "--dir", dp_place_path(place, "run"), "--model", "logistic",
            "--train", train, "--validation", dp_place_file(place, "one", one, sizeof one - 1),
            "--durability", "none", patience ? "--patience" : "--stop-at", patience ? "2" : "auc:0.9",
            patience ? "--patience metric" : "--batch", patience ? "auc" : "2");
        dp_place_says(ended, "has examples of one class only, labelled 1");
    }
}

/* All go at once, and the first server with their notes; again and again, wherever they are. Nothing that was decided is lost. */
static void all_are_killed_at_once(void **state)
{
    struct dp_place *place = *state;
    static const char *const victims[] = {"--worker 0", "--worker 1", "--worker 2", "--server 0"};
    const char *run = dp_place_path(place, "run"), *report = dp_place_path(place, "run/report.json");
    make_clicks(place);
    struct dp_process *training =
        dp_place_start(place, "downpour", "run", "--dir", run, "--servers", "2", "--workers", "3", "--model",
                       "logistic", "--train", dp_place_path(place, "clicks"), "--validation", "share=0.3",
                       "--patience", "60", "--epochs", "4000", "--batch", "16", "--rate", "0.02",
                       "--durability", "process", "--restarts", "100", NULL);
    for (unsigned round = 0; round < 4; round++) {
        dp_place_awaits_file(place, dp_place_path(place, "run/log/worker-0.log"),
                             dp_place_text(place, "epoch %u, validation: ", 2 + 3 * round));
        for (unsigned pause = 0; pause < 2 * round; pause++) /* elsewhere in the epoch */
            dp_process_pause();
        for (unsigned v = 0; v < sizeof victims / sizeof victims[0]; v++) {
            pid_t pid = dp_process_find(training, victims[v]);
            if (pid)
                (void)kill(pid, SIGKILL);
        }
    }
    dp_place_ended(training, 0);
    dp_place_says(training, "validation loss has not been better than the");
    check_patience(place, report, "validation", 60);
    check_stopped(place, report);
}

static void what_cannot_be_is_refused(void **state)
{
    struct dp_place *place = *state;
    one_class_has_no_auc(place);
    make_pairs(place);
    struct dp_process *ended = dp_place_try(place, 2, "downpour", "run", "--dir", dp_place_path(place, "run"),
                                            "--model", "skipgram:4", "--train", dp_place_path(place, "pairs"),
                                            "--validation", "share=0.1", "--durability", "none");
    dp_place_says(ended, "can be held out: give a validation file");
}

static void clicks_are_generated(void **state)
{
    struct dp_place *place = *state;
    const char *one = dp_place_path(place, "one");
    dp_place_says(dp_place_try(place, 0, "downpour", "generate", "clicks", "--rows", "500", "--seed", "7",
                               "--out", one, "--json"),
                  "\"truth\"");
    /* To standard output, and its second half alone: the same bytes; the figures beside them. */
    char *whole = dp_place_read(place, one, NULL);
    struct dp_process *piped =
        dp_place_try(place, 0, "downpour", "generate", "clicks", "--rows", "500", "--seed", "7");
    assert_string_equal(dp_process_out(piped), whole);
    assert_non_null(strstr(dp_process_err(piped), "the true model"));
    piped = dp_place_try(place, 0, "downpour", "generate", "clicks", "--rows", "200", "--first", "300",
                         "--seed", "7");
    const char *half = dp_process_out(piped);
    assert_true(strlen(half) < strlen(whole) && strcmp(whole + strlen(whole) - strlen(half), half) == 0);
    static const struct {
        const char *flags[4];
        const char *says;
    } cases[] = {{{"click", "--rows", "3"}, "cannot generate 'click'"},
                 {{"--rows", "3"}, "give the kind of data"},
                 {{"clicks"}, "--rows N is required"},
                 {{"clicks", "--rows", "0"}, "--rows"},
                 {{"clicks", "--rows", "3", "--features=1"}, "--features"},
                 {{"clicks", "--rows", "3", "--out=/nonexistent/x"},
                  "cannot write '/nonexistent/x': there is no directory"},
                 {{"clicks", "--rows", "300000", "--out=/dev/full"}, "cannot write '/dev/full': No space"}};
    for (size_t c = 0; c < sizeof cases / sizeof cases[0]; c++)
        dp_place_says(dp_place_try(place, 2, "downpour", "generate", cases[c].flags[0], cases[c].flags[1],
                                   cases[c].flags[2], cases[c].flags[3]),
                      cases[c].says);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(clicks_are_generated, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(each_metric_stops_all, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(patience_ends_it, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(what_is_not_reached_is_told, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(all_are_killed_at_once, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_is_refused, dp_place_setup, dp_place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
