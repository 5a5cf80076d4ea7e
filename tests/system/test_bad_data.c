/* Bad files, labels, models and flags: exit 2, a message that names the file and the line, nobody left, and
 * nothing of a failed first run in the way of the next. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#define MLP "mlp:64-64-10"

static struct dp_process *run(struct dp_place *place, const char *model, const char *train, const char *test)
{
    return dp_place_start(place, "downpour", "run", "--dir", dp_place_path(place, "run"), "--servers", "2",
                          "--workers", "2", "--model", model, "--train", train, "--epochs", "1",
                          test ? "--test" : NULL, test, NULL);
}

/* It fails with both texts, and the same directory is good for a right try. */
static void refused(struct dp_place *place, const char *model, const char *train, const char *a,
                    const char *b)
{
    struct dp_process *bad = run(place, model, train, NULL);
    dp_place_ended(bad, 2);
    dp_place_says(bad, a);
    dp_place_says(bad, b);
    assert_int_not_equal(access(dp_place_path(place, "run/store/server-0"), F_OK), 0);
    assert_int_not_equal(access(dp_place_path(place, "run/report.json"), F_OK), 0);
}

/* The unpacked digits with line `number` (from 1) replaced. */
static const char *digits_with(struct dp_place *place, const char *name, unsigned number, const char *line)
{
    const char *text = dp_place_read(place, DP_DIGITS_TRAIN, NULL), *at = text;
    for (unsigned i = 1; i < number; i++)
        at = strchr(at, '\n') + 1;
    const char *all = dp_place_text(place, "%.*s%s%s", (int)(at - text), text, line, strchr(at, '\n'));
    return dp_place_file(place, name, all, strlen(all));
}

static void bad_lines(void **state)
{
    static const struct {
        const char *name, *model, *line, *text;
    } lines[] = {
        {"no_colon", MLP, "3 17", ":700: "},
        {"label_below", MLP, "-1 1:3", "-1"},
        {"label_not_binary", "logistic", "7 1:3", "7"},
        {"index_beyond_width", MLP, "1 65:1", "mlp:65-64-10"}, /* of all lines together */
        {"nan", MLP, "1 5:nan", "nan"},
    };
    struct dp_place *place = *state;
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++) {
        const char *path;
        if (strcmp(lines[i].model, "logistic") == 0) {
            const char *text = dp_place_text(place, "1 1:1\n-1 2:1\n%s\n1 1:2\n", lines[i].line);
            path = dp_place_file(place, lines[i].name, text, strlen(text));
            refused(place, lines[i].model, path, lines[i].text, dp_place_text(place, "%s:3: ", path));
        } else {
            path = digits_with(place, lines[i].name, 700, lines[i].line);
            refused(place, lines[i].model, path, lines[i].text,
                    lines[i].text[0] == 'm' ? lines[i].text : dp_place_text(place, "%s:700: ", path));
        }
    }
    struct dp_process *good = run(place, MLP, DP_DIGITS_TRAIN, DP_DIGITS_TEST);
    dp_place_ended(good, 0);
}

static void a_bad_line_in_the_test_set(void **state)
{
    struct dp_place *place = *state;
    const char *path = digits_with(place, "bad-test", 1437, "1 3");
    struct dp_process *bad = run(place, MLP, DP_DIGITS_TRAIN, path);
    dp_place_ended(bad, 2);
    dp_place_says(bad, dp_place_text(place, "%s:1437: ", path));
}

static void missing_unreadable_empty(void **state)
{
    struct dp_place *place = *state;
    const char *absent = dp_place_path(place, "absent");
    refused(place, MLP, absent, absent, "No such file");
    const char *directory = dp_place_path(place, "directory");
    assert_int_equal(mkdir(directory, 0777), 0);
    refused(place, MLP, directory, directory, "irectory");
    const char *empty = dp_place_file(place, "empty", "", 0);
    refused(place, MLP, empty, empty, "is empty");
    if (geteuid() != 0) { /* to root nothing is unreadable */
        const char *secret = dp_place_file(place, "secret", "1 1:1\n", 6);
        assert_int_equal(chmod(secret, 0), 0);
        refused(place, MLP, secret, secret, "Permission denied");
    }
    struct dp_process *bad = run(place, MLP, DP_DIGITS_TRAIN, absent);
    dp_place_ended(bad, 2);
    dp_place_says(bad, absent);
}

/* Cut, and with a bit turned in the middle. */
static void packed(struct dp_place *place, const char *name, const void *bytes, size_t size)
{
    const char *cut = dp_place_file(place, dp_place_text(place, "cut.%s", name), bytes, size / 2);
    refused(place, MLP, cut, cut, "is truncated");
    unsigned char *copy = malloc(size);
    assert_non_null(copy);
    memcpy(copy, bytes, size);
    copy[size / 2] ^= 0x10;
    const char *corrupt = dp_place_file(place, dp_place_text(place, "corrupt.%s", name), copy, size);
    free(copy);
    refused(place, MLP, corrupt, corrupt, "");
    const char *liar = dp_place_file(place, dp_place_text(place, "text.%s", name), "1 1:1\n2 2:2\n", 12);
    struct dp_process *process = run(place, MLP, liar, NULL); /* told by its bytes, it is plain text */
    int code = dp_process_wait(process, DP_SOON_MS);
    dp_place_ended(process, code == 0 ? 0 : 2);
    if (code == 2)
        dp_place_says(process, liar);
    (void)dp_place_try(place, 0, "/bin/rm", "-rf", dp_place_path(place, "run"));
}

static void damaged_gzip(void **state)
{
    struct dp_place *place = *state;
    FILE *file = fopen(DP_DIGITS_TRAIN, "rbe");
    static unsigned char bytes[1 << 20];
    assert_non_null(file);
    size_t size = fread(bytes, 1, sizeof bytes, file);
    assert_int_equal(fclose(file), 0);
    packed(place, "gz", bytes, size);
}

static void damaged_zstd(void **state)
{
    struct dp_place *place = *state;
    size_t size;
    const char *text = dp_place_read(place, DP_DIGITS_TRAIN, &size);
    static unsigned char bytes[1 << 20];
    ZSTD_CCtx *context = ZSTD_createCCtx();
    assert_non_null(context);
    (void)ZSTD_CCtx_setParameter(context, ZSTD_c_checksumFlag, 1);
    size_t got = ZSTD_compress2(context, bytes, sizeof bytes, text, size);
    (void)ZSTD_freeCCtx(context);
    assert_false(ZSTD_isError(got));
    packed(place, "zst", bytes, got);
}

static void bad_flags(void **state)
{
    static const char *const flags[][3] = {{"downpour-server", "--clutser", "--clutser"},
                                           {"downpour-server", "--server", "--server"},
                                           {"downpour-worker", "--wroker", "--wroker"},
                                           {"downpour-worker", "--cluster", "--cluster"},
                                           {"downpour", "run", "--model"},
                                           {"downpour", "--frobnicate", "--frobnicate"}};
    struct dp_place *place = *state;
    for (size_t i = 0; i < sizeof flags / sizeof flags[0]; i++)
        dp_place_says(dp_place_try(place, 2, flags[i][0], flags[i][1]), flags[i][2]);
    struct dp_place_cluster cluster = {.servers = 2};
    const char *conf = dp_place_conf(place, &cluster);
    dp_place_says(dp_place_try(place, 2, "downpour-server", "--cluster", conf, "--server", "2"), "--server");
    dp_place_says(dp_place_try(place, 2, "downpour-worker", "--cluster", conf, "--worker", "one"),
                  "--worker");
    dp_place_says(dp_place_try(place, 2, "downpour", "run", "--rate", "nan", "--model", MLP, "--train",
                               DP_DIGITS_TRAIN),
                  "--rate");
    dp_place_says(dp_place_try(place, 2, "downpour", "run", "--batch", "-1", "--model", MLP, "--train",
                               DP_DIGITS_TRAIN),
                  "--batch");
}

static void bad_data_to_predict(void **state)
{
    struct dp_place *place = *state;
    const char *dir = dp_place_path(place, "run"), *out = dp_place_path(place, "scores");
    dp_place_ended(run(place, MLP, DP_DIGITS_TRAIN, NULL), 0);
    const char *path = digits_with(place, "bad", 900, "1 3:1:2");
    struct dp_process *bad =
        dp_place_try(place, 2, "downpour", "predict", "--from", dir, "--data", path, "--out", out);
    dp_place_says(bad, dp_place_text(place, "%s:900: ", path));
    assert_int_not_equal(access(out, F_OK), 0); /* no half of the scores */
    dp_place_says(dp_place_try(place, 2, "downpour", "predict", "--from", dir, "--data", DP_DIGITS_TEST,
                               "--model", "logistic"),
                  MLP);
}

int main(void)
{
#define DP_DATA_TEST(test) cmocka_unit_test_setup_teardown(test, dp_place_setup, dp_place_teardown)
    const struct CMUnitTest tests[] = {
        DP_DATA_TEST(bad_lines),
        DP_DATA_TEST(a_bad_line_in_the_test_set),
        DP_DATA_TEST(missing_unreadable_empty),
        DP_DATA_TEST(damaged_gzip),
        DP_DATA_TEST(damaged_zstd),
        DP_DATA_TEST(bad_flags),
        DP_DATA_TEST(bad_data_to_predict),
    };
    return cmocka_run_group_tests_name("bad data", tests, NULL, NULL);
}
