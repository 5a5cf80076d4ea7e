/* Pairs of users and items: two workers train, and each evaluates its minibatches, which cut the lists; HR@10 and NDCG@10
 * of the report are those of the scores that `downpour predict` gives for the same lists. With DP_LONG=1 Gowalla, too. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define USERS 60u
#define ITEMS 200u
#define LIST  23u /* the one held out, and others */

struct files {
    char train[32768], test[4096], negatives[16384], lists[32768];
    size_t train_len, test_len, negatives_len, lists_len;
};

static size_t put(char *text, size_t size, size_t len, const char *format, unsigned a, unsigned b)
{
    int more = format[0] == '(' ? snprintf(text + len, size - len, "(%u,%u)", a, b)
                                : snprintf(text + len, size - len, "%u %u\n", a, b);
    return len + (size_t)more;
}

/* User u likes the items i with i % 4 == u % 4; it met two thirds of them, other users the others, and the one held out is
 * among those that it did not meet. */
static void make_files(struct files *f)
{
    for (unsigned u = 0; u < USERS; u++) {
        unsigned own = 0, held = 4 * (u % 7 * 3 + (3 - u / 4 % 3) % 3) + u % 4;
        for (unsigned i = u % 4; i < ITEMS; i += 4, own++)
            if ((own + u / 4) % 3 != 0)
                f->train_len = put(f->train, sizeof f->train, f->train_len, "", u, i);
        f->test_len = put(f->test, sizeof f->test, f->test_len, "", u, held);
        f->negatives_len = put(f->negatives, sizeof f->negatives, f->negatives_len, "(", u, held);
        f->lists_len = put(f->lists, sizeof f->lists, f->lists_len, "", u, held);
        for (unsigned n = 1; n < LIST; n++) {
            unsigned item = (held + n * (8 + u)) % ITEMS;
            item = item == held ? (held + 1) % ITEMS : item;
            f->negatives_len += (size_t)snprintf(f->negatives + f->negatives_len,
                                                 sizeof f->negatives - f->negatives_len, "\t%u", item);
            f->lists_len = put(f->lists, sizeof f->lists, f->lists_len, "", u, item);
        }
        f->negatives[f->negatives_len++] = '\n';
    }
}

static void check_scores(const char *scores, double *hr, double *ndcg)
{
    char *at = (char *)(uintptr_t)scores;
    *hr = *ndcg = 0;
    for (unsigned u = 0; u < USERS; u++) {
        double held = strtod(at, &at);
        unsigned rank = 0;
        for (unsigned n = 1; n < LIST; n++)
            rank += strtod(at, &at) >= held;
        *hr += rank < 10 ? 1.0 / USERS : 0;
        *ndcg += rank < 10 ? log(2) / log(rank + 2) / USERS : 0;
    }
    assert_string_equal(at, "\n");
}

static void figures_are_those_of_the_scores(void **state)
{
    struct dp_place *place = *state;
    static const char *const models[] = {"mf:4", "mf:4,loss=bpr", "neumf:4-8-4"};
    static struct files files;
    make_files(&files);
    const char *train = dp_place_file(place, "train", files.train, files.train_len),
               *test = dp_place_file(place, "test", files.test, files.test_len),
               *negatives = dp_place_file(place, "negatives", files.negatives, files.negatives_len),
               *lists = dp_place_file(place, "lists", files.lists, files.lists_len),
               *run = dp_place_path(place, "run"), *report = dp_place_path(place, "run/report.json"),
               *out = dp_place_path(place, "scores");
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++) {
        double hr, ndcg;
        struct dp_process *trained = dp_place_try(
            place, 0, "downpour", "run", "--fresh", "--dir", run, "--servers", "2", "--workers", "2",
            "--model", models[m], "--train", train, "--test", test, "--test negatives", negatives, "--batch",
            "7", "--epochs", "6", "--rate", "0.01", "--negatives", "2", "--durability", "none");
        dp_place_says(trained, "NDCG@10");
        (void)dp_place_try(place, 0, "downpour", "predict", "--from", run, "--data", lists, "--out", out);
        check_scores(dp_place_read(place, out, NULL), &hr, &ndcg);
        print_message("%s: HR@10 %.4f, NDCG@10 %.4f\n", models[m], hr, ndcg);
        assert_true(fabs(dp_place_number(place, report, "final.test.hr10") - hr) < 1e-9);
        assert_true(fabs(dp_place_number(place, report, "final.test.ndcg10") - ndcg) < 1e-9);
        assert_true(hr > 0.1 && hr <= 1);
        assert_true(dp_place_number(place, report, "final.test.examples") == USERS * LIST);
    }
}

/* Users and items by name: two workers agree on who is who, and a prediction does, with the training file gone. Lists of
 * the same pairs leave the same store, bit for bit. */
static void names_and_lists_are_pairs(void **state)
{
    struct dp_place *place = *state;
    static const char named[] =
        "user\titem\nAnn Lee\tThe Matrix\nAnn Lee\tUp\nbob\tUp\nbob\tHeat\nbob\t007\n",
                      lists[] = "0 1 2 3 4\n1 2 7\n2 5\n", pairs[] = "0 1\n0 2\n0 3\n0 4\n1 2\n1 7\n2 5\n",
                      asked[] = "Ann Lee\tThe Matrix\nAnn Lee\tHeat\nAnn Lee\tnobody\n";
    const char *run = dp_place_path(place, "run"), *out = dp_place_path(place, "scores"),
               *texts[2] = {lists, pairs}, *train = dp_place_file(place, "train", named, sizeof named - 1),
               *digest[2];
    (void)dp_place_try(place, 0, "downpour", "run", "--fresh", "--dir", run, "--servers", "2", "--workers",
                       "2", "--model", "mf:4", "--train", train, "--epochs", "60", "--batch", "2", "--rate",
                       "0.05", "--durability", "none");
    assert_int_equal(unlink(train), 0);
    (void)dp_place_try(place, 0, "downpour", "predict", "--from", run, "--data",
                       dp_place_file(place, "asked", asked, sizeof asked - 1), "--out", out);
    char *at = (char *)(uintptr_t)dp_place_read(place, out, NULL);
    double met = strtod(at, &at), unmet = strtod(at, &at);
    assert_true(met > unmet);
    for (int i = 0; i < 2; i++) {
        (void)dp_place_try(place, 0, "downpour", "run", "--fresh", "--dir", run, "--model", "mf:4", "--train",
                           dp_place_file(place, "train", texts[i], strlen(texts[i])), "--no-overlap",
                           "--epochs", "2", "--durability", "process");
        digest[i] = dp_place_digest(place, run, run);
    }
    assert_string_equal(digest[0], digest[1]);
}

/* Worker 0 has the last minibatch of the held-out set. Its part of the evaluation is sums alone, however few examples that has. */
static void an_odd_number_of_minibatches_is_evaluated(void **state)
{
    struct dp_place *place = *state;
    char pairs[301 * 16];
    size_t size = 0;
    for (unsigned user = 0; user < 301; user++)
        size += (size_t)snprintf(pairs + size, sizeof pairs - size, "%u %u\n%u %u\n", user, user % 5, user,
                                 5 + user % 3);
    dp_place_says(dp_place_try(place, 0, "downpour", "run", "--dir", dp_place_path(place, "run"), "--workers",
                               "2", "--model", "mf:4", "--train", dp_place_file(place, "train", pairs, size),
                               "--holdout", "0.5", "--epochs", "1", "--batch", "1", "--durability", "none"),
                  "Test set: recall@");
}

struct of_all {
    double low[2][2],
        high[2][2]; /* at 5 and at 20 items: recall, NDCG; scores nearer than rounding may stand either way */
};

static void rank_all(const struct files *files, const char *scores, struct of_all *out)
{
    static const unsigned tops[2] = {5, 20};
    static double score[USERS][ITEMS];
    static bool met[USERS][ITEMS];
    char *at = (char *)(uintptr_t)scores;
    memset(met, 0, sizeof met);
    *out = (struct of_all){0};
    for (const char *line = files->train; *line; line = strchr(line, '\n') + 1) {
        char *end;
        unsigned long u = strtoul(line, &end, 10);
        met[u][strtoul(end, NULL, 10)] = true;
    }
    for (unsigned u = 0; u < USERS; u++)
        for (unsigned i = 0; i < ITEMS; i++)
            score[u][i] = strtod(at, &at);
    const char *line = files->test;
    for (unsigned u = 0; u < USERS; u++, line = strchr(line, '\n') + 1) {
        unsigned held = (unsigned)strtoul(strchr(line, ' '), NULL, 10), least = 0, most = 0;
        for (unsigned i = 0; i < ITEMS; i++)
            if (i != held && !met[u][i]) {
                least += score[u][i] > score[u][held] + 1e-6;
                most += score[u][i] > score[u][held] - 1e-6;
            }
        for (int t = 0; t < 2; t++) {
            out->low[t][0] += most < tops[t] ? 1.0 / USERS : 0;
            out->high[t][0] += least < tops[t] ? 1.0 / USERS : 0;
            out->low[t][1] += most < tops[t] ? 1 / log2(most + 2) / USERS : 0;
            out->high[t][1] += least < tops[t] ? 1 / log2(least + 2) / USERS : 0;
        }
    }
}

/* Recall and NDCG of the report are those of a ranking of all scores that `downpour predict` gives; a stranger's pairs are counted
 * out; training ends by such a figure. */
static void all_items_are_ranked(void **state)
{
    struct dp_place *place = *state;
    static const char *const models[] = {"mf:4", "mf:4,loss=bpr", "neumf:4-8-4"};
    static const char *const keys[2][2] = {{"recall@5", "ndcg@5"}, {"recall@20", "ndcg@20"}};
    static struct files files;
    static char every[USERS * ITEMS * 8];
    size_t len = 0;
    files = (struct files){.train_len = 0};
    make_files(&files);
    for (unsigned u = 0; u < USERS; u++)
        for (unsigned i = 0; i < ITEMS; i++)
            len = put(every, sizeof every, len, "", u, i);
    size_t own = files.test_len;
    files.test_len = put(files.test, sizeof files.test, files.test_len, "", 5000, 1);
    files.test_len = put(files.test, sizeof files.test, files.test_len, "", 1, 5000);
    const char *train = dp_place_file(place, "train", files.train, files.train_len),
               *test = dp_place_file(place, "test", files.test, files.test_len),
               *all = dp_place_file(place, "all", every, len), *run = dp_place_path(place, "run"),
               *report = dp_place_path(place, "run/report.json"), *out = dp_place_path(place, "scores");
    files.test[own] = '\0';
    for (size_t m = 0; m < sizeof models / sizeof models[0]; m++)
        for (int t = m > 0; t < 2; t++) {
            struct of_all of_all;
            struct dp_process *trained =
                dp_place_try(place, 0, "downpour", "run", "--fresh", "--dir", run, "--servers", "2",
                             "--workers", "2", "--model", models[m], "--train", train, "--test", test,
                             "--top-k", t ? "20" : "5", "--batch", "7", "--epochs", "40", "--rate", "0.01",
                             "--stop-at", t ? "recall@20:0.4" : "recall:0.1", "--durability", "none");
            dp_place_says(trained, t ? "recall@20" : "recall@5");
            dp_place_says(trained, "of all 200 items, 60 users");
            dp_place_says(trained, t ? "has reached 0.4" : "has reached 0.1");
            (void)dp_place_try(place, 0, "downpour", "predict", "--from", run, "--data", all, "--out", out);
            rank_all(&files, dp_place_read(place, out, NULL), &of_all);
            for (int k = 0; k < 2; k++) {
                const char *key = dp_place_text(place, "final.test.all_items.%s", keys[t][k]);
                double told = dp_place_number(place, report, key);
                print_message("%s: %s %.4f\n", models[m], keys[t][k], told);
                assert_true(told > of_all.low[t][k] - 1e-9 && told < of_all.high[t][k] + 1e-9);
            }
            assert_true(
                strstr(dp_place_read(place, dp_place_path(place, "run/log/worker-0.log"), NULL),
                       "2 pairs are not ranked: 2 have a user or an item that is not in the training set") !=
                NULL);
        }
}

/* From a ratings file alone: what is held out is drawn by seed, is not trained on, and two starts agree. */
static void ratings_alone(void **state)
{
    struct dp_place *place = *state;
    static const char *const holdouts[] = {"leave-one-out", "0.3"};
    static struct files files;
    files = (struct files){.train_len = 0};
    make_files(&files);
    const char *train = dp_place_file(place, "train", files.train, files.train_len),
               *run = dp_place_path(place, "run"), *report = dp_place_path(place, "run/report.json");
    double pairs = 0;
    for (const char *at = files.train; *at; at++)
        pairs += *at == '\n';
    for (int h = 0; h < 2; h++) {
        double recall[3], examples[3];
        for (int start = 0; start < 3; start++) {
            (void)dp_place_try(place, 0, "downpour", "run", "--fresh", "--dir", run, "--model",
                               "mf:4,loss=bpr", "--train", train, "--holdout", holdouts[h], "--validation",
                               "share=0.2", "--patience", "30", "--patience", "metric=ndcg@20", "--epochs",
                               "3", "--rate", "0.01", "--no-overlap", "--seed", start == 2 ? "8" : "7",
                               "--durability", "none");
            recall[start] = dp_place_number(place, report, "final.test.all_items.recall@20");
            examples[start] = dp_place_number(place, report, "data.examples");
            assert_true(dp_place_number(place, report, "final.test.all_items.users") == USERS);
            assert_true(dp_place_number(place, report, "final.validation.all_items.ndcg@10") > 0);
        }
        assert_true(recall[0] == recall[1] && examples[0] == examples[1]);
        assert_true(recall[0] != recall[2]);
        double trained = h ? 0.7 * 0.8 * pairs : 0.8 * (pairs - USERS);
        assert_true(fabs(examples[0] / trained - 1) < 0.05);
        if (h == 0) {
            double hr = dp_place_number(place, report, "final.test.hr10");
            assert_true(hr > 0 && hr <= 1);
        }
    }
    dp_place_says(dp_place_try(place, 2, "downpour", "run", "--dir", run, "--model", "mf:4", "--train", train,
                               "--test", train, "--holdout", "0.3"),
                  "--test and --holdout: the test set is a file or is drawn from the training file");
    dp_place_says(dp_place_try(place, 2, "downpour", "run", "--dir", run, "--model", "mf:4", "--train", train,
                               "--holdout", "leave-two-out"),
                  "--holdout is 'leave-two-out', but must be leave-one-out, or the share");
    dp_place_says(dp_place_try(place, 2, "downpour", "run", "--dir", run, "--fresh", "--model", "mf:4",
                               "--train", train, "--holdout", "0.3", "--stop-at", "auc:0.9"),
                  "ranked items have no auc");
}

static void what_cannot_be_ranked_is_refused(void **state)
{
    struct dp_place *place = *state;
    const char *pairs = dp_place_file(place, "pairs", "1 2\n1 3\n2 2\n2 4\n", 16),
               *full = dp_place_file(place, "full", "1 2\n1 3\n", 8), *run = dp_place_path(place, "run");
    struct dp_process *ended =
        dp_place_try(place, 2, "downpour", "run", "--dir", run, "--model", "mf:4,loss=bpr", "--train", pairs,
                     "--test", pairs, "--durability", "none");
    dp_place_says(ended,
                  "none of its 4 pairs can be ranked: of 0 the user or the item is not in the training file, "
                  "and 4 were trained on");
    ended = dp_place_try(place, 2, "downpour", "run", "--dir", run, "--model", "mf:4", "--train", full,
                         "--durability", "none");
    dp_place_says(ended, "full:2: user 1 has all 2 items, as has each other user");
}

struct reached {
    double hr, ndcg;
};

/* What two workers on two servers reach. Longer than other waits: ctest has the deadline of all. */
#define LONG_MS (60u * 60 * 1000)

/* Skips without the file, without DP_LONG and under sanitizers: all_items_are_ranked and ratings_alone go the same way. */
static const char *gowalla(struct dp_place *place)
{
    const char *data = getenv("DOWNPOUR_DATA");
    const char *train = dp_place_text(place, "%s/gowalla.ncf.train.pairs.zst", data ? data : "");
    if (!getenv("DP_LONG") || DP_PATIENCE > 1 || access(train, R_OK) != 0) {
        print_message("skipped: with DP_LONG=1, %s, and without sanitizers\n", train);
        skip();
    }
    return train;
}

static struct reached train_gowalla(struct dp_place *place, const char *model, const char *rate,
                                    const char *l2, const char *epochs)
{
    const char *train = gowalla(place), *data = getenv("DOWNPOUR_DATA"),
               *report = dp_place_path(place, "run/report.json");
    struct dp_process *run = dp_place_start(
        place, "downpour", "run", "--fresh", "--dir", dp_place_path(place, "run"), "--servers", "2",
        "--workers", "2", "--model", model, "--train", train, "--test",
        dp_place_text(place, "%s/gowalla.ncf.test.rating.zst", data), "--test negatives",
        dp_place_text(place, "%s/gowalla.ncf.test.negative.zst", data), "--optimizer", "adagrad", "--batch",
        "1024", "--durability", "none", "--rate", rate, "--optimizer l2", l2, "--epochs", epochs, NULL);
    (void)dp_process_wait(run, LONG_MS);
    dp_place_ended(run, 0);
    const struct reached reached = {.hr = dp_place_number(place, report, "final.test.hr10"),
                                    .ndcg = dp_place_number(place, report, "final.test.ndcg10")};
    print_message("%s: HR@10 %.4f, NDCG@10 %.4f\n", model, reached.hr, reached.ndcg);
    return reached;
}

/* From the ratings alone: one item of each user is held out. 20 of 40,981 items are 0.0005. */
static void gowalla_alone(void **state)
{
    struct dp_place *place = *state;
    const char *train = gowalla(place), *report = dp_place_path(place, "run/report.json");
    struct dp_process *run =
        dp_place_start(place, "downpour", "run", "--fresh", "--dir", dp_place_path(place, "run"), "--servers",
                       "2", "--workers", "2", "--model", "mf:16", "--train", train, "--holdout",
                       "leave-one-out", "--durability", "none", NULL);
    (void)dp_process_wait(run, LONG_MS);
    dp_place_ended(run, 0);
    double hr = dp_place_number(place, report, "final.test.hr10"),
           recall = dp_place_number(place, report, "final.test.all_items.recall@20");
    print_message("mf:16, leave-one-out: HR@10 %.4f, recall@20 %.4f of all items\n", hr, recall);
    assert_true(dp_place_number(place, report, "final.test.all_items.users") == 29858);
    assert_true(hr > 0.85 && recall > 0.1);
}

/* What is to be reached, and a better model that is better. */
static void gowalla_in_full(void **state)
{
    struct reached mf = train_gowalla(*state, "mf:16,l2=0", "0.05", "0", "20");
    assert_true(mf.hr >= 0.88 && mf.ndcg >= 0.62);
    struct reached bpr = train_gowalla(*state, "mf:32,loss=bpr,l2=0", "0.1", "5e-6", "60");
    assert_true(bpr.hr > mf.hr && bpr.ndcg > mf.ndcg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(figures_are_those_of_the_scores, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(names_and_lists_are_pairs, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(an_odd_number_of_minibatches_is_evaluated, dp_place_setup,
                                        dp_place_teardown),
        cmocka_unit_test_setup_teardown(all_items_are_ranked, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(ratings_alone, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_ranked_is_refused, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(gowalla_alone, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(gowalla_in_full, dp_place_setup, dp_place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
