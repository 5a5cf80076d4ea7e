/* Goal: parts of a file of pairs are disjoint, together all of it, functions of (pairs, seed), and as large as was asked for.
 * Method: random files with pairs that stand twice; each part is read back through the data set. */
#include "common/model/mix.h"
#include "tests/lib/test.h"
#include "tests/unit/worker/read/formats.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define USERS 60u
#define ITEMS 80u

enum { TRAIN, TEST, VALIDATION, PARTS };

struct file {
    uint8_t times[USERS][ITEMS]; /* how often a pair stands in it */
    char text[65536];
};

/* User u has u % 12 items, the first ones of some order; one pair in eight stands twice. backwards: other order of lines. */
static void make(struct file *f, bool backwards)
{
    static char lines[4096][16];
    size_t n = 0, len = 0;
    memset(f->times, 0, sizeof f->times);
    for (uint32_t u = 0; u < USERS; u++)
        for (uint32_t k = 0; k < u % 12; k++) {
            uint32_t item = (u * 7 + k * 13) % ITEMS;
            for (uint32_t t = 0; t < 1 + ((u + k) % 8 == 0); t++, n++) {
                (void)snprintf(lines[n], sizeof lines[n], "%u %u\n", u, item);
                f->times[u][item]++;
            }
        }
    for (size_t i = 0; i < n; i++)
        len += (size_t)snprintf(f->text + len, sizeof f->text - len, "%s", lines[backwards ? n - 1 - i : i]);
}

static struct dp_dataset_options options_of(const char *path, enum dp_holdout holdout, double share,
                                            double validation, uint64_t seed, int part)
{
    return (struct dp_dataset_options){.path = path,
                                       .form = DP_FORM_PAIRS,
                                       .labels = DP_LABELS_BINARY,
                                       .scale = 1,
                                       .scored = true, /* no sampled items between */
                                       .holdout = holdout,
                                       .holdout_share = share,
                                       .held_out = validation,
                                       .held_test = part == TEST,
                                       .held = part == VALIDATION,
                                       .seed = seed,
                                       .batch = 16};
}

static void read_part(const struct dp_dataset_options *options, uint8_t out[USERS][ITEMS])
{
    struct dp_dataset *data = formats_open(options);
    struct dp_batch *b = formats_batch(data);
    memset(out, 0, USERS * ITEMS);
    for (uint64_t n = 0; n < dp_dataset_batches(data); n++) {
        dp_dataset_fill(data, 0, n, b);
        for (uint32_t i = 0; i < b->examples; i++)
            out[dp_unmix(formats_key(b, 0, 0, i, 0))][dp_unmix(formats_key(b, 1, 1, i, 0))]++;
    }
}

/* Sums of both parts that are held out, over users. */
struct held {
    uint32_t users_of_test, items_of_test, items_of_validation;
};

static struct held check_parts(const struct file *f, uint8_t part[PARTS][USERS][ITEMS])
{
    struct held held = {0};
    for (uint32_t u = 0; u < USERS; u++) {
        uint32_t items[PARTS] = {0}, all = 0;
        for (uint32_t i = 0; i < ITEMS; i++) {
            uint32_t in = 0;
            for (int p = 0; p < PARTS; p++) {
                in += part[p][u][i] > 0;
                items[p] += part[p][u][i] > 0;
            }
            all += f->times[u][i] > 0;
            assert_int_equal(in, f->times[u][i] > 0); /* in one of them */
            assert_true(part[TRAIN][u][i] == 0 || part[TRAIN][u][i] == f->times[u][i]);
            assert_true(part[TEST][u][i] <= 1 && part[VALIDATION][u][i] <= 1);
        }
        assert_true(all == 0 || items[TRAIN] > 0);
        held.users_of_test += items[TEST] > 0;
        held.items_of_test += items[TEST];
        held.items_of_validation += items[VALIDATION];
    }
    return held;
}

static void one_of_each_user(void **state)
{
    static struct file f;
    static uint8_t part[PARTS][USERS][ITEMS];
    make(&f, false);
    const char *path = write_text("pairs", f.text);
    memset(part, 0, sizeof part);
    for (int p = TRAIN; p <= TEST; p++) {
        struct dp_dataset_options options = options_of(path, DP_HOLDOUT_ONE, 0, 0, 5, p);
        read_part(&options, part[p]);
    }
    struct held held = check_parts(&f, part);
    assert_int_equal(held.users_of_test, USERS / 12 * 10); /* those with 2 items or more */
    assert_int_equal(held.items_of_test, held.users_of_test);
}

static void a_share_and_a_validation_share(void **state)
{
    enum { SEEDS = 40 };
    static struct file f;
    static uint8_t part[PARTS][USERS][ITEMS], alone[USERS][ITEMS];
    double test = 0, validation = 0, expected = 0;
    make(&f, false);
    const char *path = write_text("pairs", f.text);
    for (uint64_t seed = 0; seed < SEEDS; seed++) {
        for (int p = TRAIN; p < PARTS; p++) {
            struct dp_dataset_options options = options_of(path, DP_HOLDOUT_SHARE, 0.25, 0.5, seed, p);
            read_part(&options, part[p]);
        }
        struct held held = check_parts(&f, part);
        test += held.items_of_test;
        validation += held.items_of_validation;
        struct dp_dataset_options options = options_of(path, DP_HOLDOUT_SHARE, 0.25, 0, seed, TEST);
        read_part(&options, alone);
        assert_memory_equal(alone, part[TEST], sizeof alone);
    }
    for (uint32_t u = 0; u < USERS; u++)
        expected += u % 12 > 1 ? u % 12 * 0.25 : 0;
    assert_true(fabs(test / SEEDS / expected - 1) < 0.05);
    assert_true(validation / SEEDS > 0.4 * expected * 3 && validation / SEEDS < 0.55 * expected * 3);
}

/* Whatever the order of the lines; not whatever the seed. */
static void parts_hang_on_pairs_and_seed(void **state)
{
    static struct file f;
    static uint8_t a[USERS][ITEMS], b[USERS][ITEMS];
    make(&f, false);
    struct dp_dataset_options options =
        options_of(write_text("pairs", f.text), DP_HOLDOUT_ONE, 0, 0, 5, TEST);
    read_part(&options, a);
    make(&f, true);
    options.path = write_text("backwards", f.text);
    read_part(&options, b);
    assert_memory_equal(a, b, sizeof a);
    options.seed = 6;
    read_part(&options, b);
    assert_memory_not_equal(a, b, sizeof a);
}

/* Parts of one file have caches of their own. */
static void parts_are_kept_apart(void **state)
{
    static struct file f;
    static uint8_t part[2][PARTS][USERS][ITEMS];
    char cache[280];
    make(&f, false);
    const char *path = write_text("pairs", f.text);
    (void)snprintf(cache, sizeof cache, "%s.cache", path);
    for (int start = 0; start < 2; start++)
        for (int p = TRAIN; p < PARTS; p++) {
            struct dp_dataset_options options = options_of(path, DP_HOLDOUT_ONE, 0, 0.3, 5, p);
            options.cache = cache;
            read_part(&options, part[start][p]);
        }
    (void)check_parts(&f, part[0]);
    assert_memory_equal(part[0], part[1], sizeof part[0]);
    char command[600];
    (void)snprintf(command, sizeof command, "rm -r '%s'", cache);
    assert_int_equal(system(command), 0);
}

static void what_cannot_be_held_out(void **state)
{
    struct dp_dataset_options options = options_of(NULL, DP_HOLDOUT_ONE, 0, 0, 5, TEST);
    formats_refused(options, "1 2\n1 2\n3 2\n", 0, DP_DATA,
                    "no pair can be held out for the test set: each user keeps one item");
    options = options_of(NULL, DP_HOLDOUT_NONE, 0, 0, 5, TEST);
    formats_refused(options, "1 2\n1 3\n", 0, DP_ARGUMENT, "no test set is held out");
    options = options_of(NULL, DP_HOLDOUT_SHARE, 0.95, 0, 5, TEST);
    formats_refused(options, "1 2\n1 3\n", 0, DP_ARGUMENT, "test share 0.95");
    options = options_of(NULL, DP_HOLDOUT_ONE, 0, 0, 5, TEST);
    options.form = DP_FORM_SPARSE;
    formats_refused(options, "1 2:1\n0 3:1\n", 0, DP_ARGUMENT,
                    "no items of users can be held out of a file of format libsvm");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        FILES_TEST(one_of_each_user),
        FILES_TEST(a_share_and_a_validation_share),
        FILES_TEST(parts_hang_on_pairs_and_seed),
        FILES_TEST(parts_are_kept_apart),
        FILES_TEST(what_cannot_be_held_out),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
