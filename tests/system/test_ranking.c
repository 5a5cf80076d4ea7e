/* Pairs of users and items: two workers train, and each evaluates its minibatches, which cut the lists; HR@10 and NDCG@10
 * of the report are those of the scores that `downpour predict` gives for the same lists. And Gowalla, a few epochs; with DP_LONG=1 as many as it takes. */
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
            "--model", models[m], "--train", train, "--test", test, "--test-negatives", negatives, "--batch",
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

/* The second start maps what the first decoded; a file that has changed is decoded again, and a line says so. */
static void decoded_files_are_kept(void **state)
{
    struct dp_place *place = *state;
    static struct files files;
    const char *log = dp_place_path(place, "run/log/worker-0.log");
    files = (struct files){.train_len = 0};
    make_files(&files);
    for (int start = 0; start < 3; start++) {
        size_t len = files.train_len;
        if (start == 2)
            len = put(files.train, sizeof files.train, len, "", 3, 198);
        const char *train = dp_place_file(place, "train", files.train, len);
        (void)dp_place_try(place, 0, "downpour", "run", "--fresh", "--dir", dp_place_path(place, "run"),
                           "--model", "mf:4", "--train", train, "--epochs", "1", "--durability", "none");
        bool again = strstr(dp_place_read(place, log, NULL), "changed since: it is made again") != NULL;
        assert_int_equal(again, start == 2);
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

static void what_cannot_be_ranked_is_refused(void **state)
{
    struct dp_place *place = *state;
    const char *pairs = dp_place_file(place, "pairs", "1 2\n1 3\n2 2\n2 4\n", 16),
               *full = dp_place_file(place, "full", "1 2\n1 3\n2 2\n", 12),
               *run = dp_place_path(place, "run");
    struct dp_process *ended =
        dp_place_try(place, 2, "downpour", "run", "--dir", run, "--model", "mf:4,loss=bpr", "--train", pairs,
                     "--test", pairs, "--durability", "none");
    dp_place_says(ended, "this model ranks items: name the file");
    ended = dp_place_try(place, 2, "downpour", "run", "--dir", run, "--model", "mf:4", "--train", full,
                         "--durability", "none");
    dp_place_says(ended, "full:2: user 1 has met all 2 items of the file");
}

struct reached {
    double hr, ndcg;
};

/* What two workers on two servers reach. Longer than other waits: ctest has the deadline of all. */
#define LONG_MS (60u * 60 * 1000)

static struct reached train_gowalla(struct dp_place *place, const char *model, const char *rate,
                                    const char *l2, const char *epochs)
{
    const char *data = getenv("DOWNPOUR_DATA");
    const char *train = dp_place_text(place, "%s/gowalla.ncf.train.pairs.zst", data ? data : ""),
               *report = dp_place_path(place, "run/report.json");
    if (access(train, R_OK) != 0) {
        print_message("skipped: DOWNPOUR_DATA names no directory with gowalla.ncf.train.pairs.zst\n");
        skip();
    }
    struct dp_process *run = dp_place_start(
        place, "downpour", "run", "--fresh", "--dir", dp_place_path(place, "run"), "--servers", "2",
        "--workers", "2", "--model", model, "--train", train, "--test",
        dp_place_text(place, "%s/gowalla.ncf.test.rating.zst", data), "--test-negatives",
        dp_place_text(place, "%s/gowalla.ncf.test.negative.zst", data), "--optimizer", "adagrad", "--batch",
        "1024", "--durability", "none", "--rate", rate, "--l2", l2, "--epochs", epochs, NULL);
    (void)dp_process_wait(run, LONG_MS);
    dp_place_ended(run, 0);
    const struct reached reached = {.hr = dp_place_number(place, report, "final.test.hr10"),
                                    .ndcg = dp_place_number(place, report, "final.test.ndcg10")};
    print_message("%s: HR@10 %.4f, NDCG@10 %.4f\n", model, reached.hr, reached.ndcg);
    return reached;
}

/* Few epochs of what reaches HR@10 0.917 and NDCG@10 0.682 after 20. Popularity alone: 0.385 and 0.237. */
static void gowalla(void **state)
{
    bool slow = DP_PATIENCE > 1;
    struct reached mf = train_gowalla(*state, "mf:16", "0.05", "0", slow ? "1" : "4");
    assert_true(mf.hr > (slow ? 0.38 : 0.7));
    assert_true(mf.ndcg > (slow ? 0.2 : 0.45));
}

/* What is to be reached, and a better model that is better. */
static void gowalla_in_full(void **state)
{
    if (!getenv("DP_LONG") || DP_PATIENCE > 1) {
        print_message("skipped: all epochs with DP_LONG=1, without sanitizers\n");
        skip();
    }
    struct reached mf = train_gowalla(*state, "mf:16", "0.05", "0", "20");
    assert_true(mf.hr >= 0.88 && mf.ndcg >= 0.62);
    struct reached bpr = train_gowalla(*state, "mf:32,loss=bpr", "0.1", "5e-6", "60");
    assert_true(bpr.hr > mf.hr && bpr.ndcg > mf.ndcg);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(figures_are_those_of_the_scores, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(decoded_files_are_kept, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(names_and_lists_are_pairs, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(what_cannot_be_ranked_is_refused, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(gowalla, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(gowalla_in_full, dp_place_setup, dp_place_teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
