/* Goal    what a worker wrote before it was killed comes back: the same sums, bit for bit, whatever line the
 *         file ends in; and nothing that the servers do not have.
 * Method  a log of some epochs, cut at every byte; another run's, an earlier version's; servers that were
 *         restored to every place; one long enough to be shortened. */
#include "tests/lib/test.h"

#include "common/base/log.h"
#include "worker/history/step_log.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUPS   5u
#define EPOCHS   3u
#define SETTINGS "seed 1\nbatch \"7\"\n"

static char dir[160], path[200];
static const struct dp_step_log_id id = {.cluster = 0xf234567890abcdefu, .run = 3, .worker = 1};
static const struct dp_step_log_plan plan = {.epochs = EPOCHS, .groups = GROUPS};

/* Of pushes 0 .. groups - 1. */
static struct dp_step_sum sum_of(uint32_t epoch, uint64_t groups)
{
    struct dp_step_sum sum = {.epoch = epoch,
                              .groups = groups,
                              .pushes = groups,
                              .examples = 7 * groups,
                              .begun = 100.1 + epoch,
                              .seconds = (double)groups / 3};
    for (uint64_t g = 0; g < groups; g++)
        sum.loss_sum += 1.0 / (double)(3 + epoch * GROUPS + g);
    return sum;
}

static struct dp_step_log *opened(void)
{
    struct dp_step_log *log = NULL;
    struct dp_error err = {0};
    if (dp_step_log_open(path, &id, &log, &err) != DP_OK)
        fail_msg("%s", err.text);
    return log;
}

/* The servers have all pushes below (epoch, groups). */
static void begin(struct dp_step_log *log, uint32_t epoch, uint64_t groups)
{
    const struct dp_step_log_cut cut = {.place = {epoch, groups}, .made = groups};
    struct dp_error err = {0};
    if (dp_step_log_begin(log, &cut, &plan, SETTINGS, &err) != DP_OK)
        fail_msg("%s", err.text);
}

static void train(struct dp_step_log *log, uint32_t epoch, uint64_t group)
{
    for (uint32_t e = epoch; e < EPOCHS; e++) {
        struct dp_step_sum sum = {0};
        for (uint64_t g = e > epoch ? 0 : group; g < GROUPS; g++) {
            sum = sum_of(e, g + 1);
            dp_step_log_sum(log, &sum);
        }
        sum = sum_of(e, GROUPS);
        dp_step_log_end(log, &sum);
        char totals[32];
        (void)snprintf(totals, sizeof totals, "{\"ended\":%u}", e + 1);
        dp_step_log_note(log, DP_STEP_TOTALS, (struct dp_step_place){e + 1, 0}, totals);
        dp_step_log_note(log, DP_STEP_TEST, (struct dp_step_place){e + 1, 0}, "[0.5]");
    }
}

static char bytes[1 << 16];
static size_t size;

static void give_bytes(const char *from, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(from, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void write_whole(void)
{
    (void)unlink(path);
    struct dp_step_log *log = opened();
    assert_null(dp_step_log_settings(log));
    begin(log, 0, 0);
    train(log, 0, 0);
    dp_step_log_close(&log);
    assert_null(log);
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size = fread(bytes, 1, sizeof bytes, file);
    assert_true(size < sizeof bytes);
    assert_int_equal(fclose(file), 0);
}

/* What is in a log. */
struct found {
    uint64_t pushes[EPOCHS], groups[EPOCHS];
    uint32_t sums, tests, test, totals; /* test: the last one's epoch */
};

static void find_sum(void *context, const struct dp_step_sum *sum)
{
    struct found *found = context;
    const struct dp_step_sum want = sum_of(sum->epoch, sum->pushes);
    assert_true(sum->epoch < EPOCHS && sum->pushes <= GROUPS && sum->examples == want.examples);
    assert_true(sum->loss_sum == want.loss_sum && sum->begun == want.begun && sum->seconds == want.seconds);
    assert_true(sum->groups == sum->pushes || (sum->groups == 0 && sum->pushes == GROUPS));
    found->pushes[sum->epoch] = sum->pushes;
    found->sums++;
}

static void find_note(void *context, enum dp_step_note kind, uint32_t epoch, const char *text)
{
    struct found *found = context;
    uint32_t ended = 0;
    if (kind == DP_STEP_TEST) {
        assert_true(strcmp(text, "[0.5]") == 0 && epoch > found->test);
        found->test = epoch;
        found->tests++;
        return;
    }
    assert_true(kind == DP_STEP_TOTALS && sscanf(text, "{\"ended\":%u}", &ended) == 1 && ended == epoch);
    found->totals = epoch;
}

static struct found found_in(const struct dp_step_log *log)
{
    struct found found = {0};
    dp_step_log_visit(log, &(struct dp_step_log_visitor){find_sum, find_note, &found});
    return found;
}

static void expect_place(uint32_t epoch, uint64_t groups)
{
    struct dp_step_log_plan of;
    struct dp_step_place place;
    struct dp_error err = {0};
    assert_int_equal(dp_step_log_place(path, &id, &of, &place, &err), DP_OK);
    assert_true(of.epochs == EPOCHS && of.groups == GROUPS);
    assert_true(place.epoch == epoch && place.groups == groups);
}

/* Wherever the servers are, the log knows that and no more; a second opening, too. It then ends as one that was
 * never ahead. */
static void what_the_servers_have_comes_back(void **state)
{
    for (uint32_t e = 0; e <= EPOCHS; e++)
        for (uint64_t g = 0; g < GROUPS && (g == 0 || e < EPOCHS); g++) {
            write_whole();
            expect_place(EPOCHS, 0);
            for (uint32_t time = 0; time < 2; time++) {
                struct dp_step_log *log = opened();
                assert_string_equal(dp_step_log_settings(log), SETTINGS);
                begin(log, e, g);
                const struct found found = found_in(log);
                assert_int_equal(found.sums, e + (g > 0));
                assert_true(found.tests == e && found.totals == e);
                for (uint32_t of = 0; of < EPOCHS; of++)
                    assert_int_equal(found.pushes[of], of < e ? GROUPS : of == e ? g : 0);
                expect_place(e, g);
                if (time == 1)
                    train(log, e, g);
                dp_step_log_close(&log);
            }
            struct dp_step_log *log = opened();
            begin(log, EPOCHS, 0);
            const struct found found = found_in(log);
            assert_true(found.sums == EPOCHS && found.tests == EPOCHS && found.totals == EPOCHS);
            dp_step_log_close(&log);
        }
}

/* Where its worker took no part in some pushes, a sum may be ahead although its place is not. */
static void a_sum_of_more_than_was_made_does_not_count(void **state)
{
    const struct dp_step_log_cut cut = {.place = {0, 4}, .made = 3};
    struct dp_error err = {0};
    write_whole();
    struct dp_step_log *log = opened();
    assert_int_equal(dp_step_log_begin(log, &cut, &plan, SETTINGS, &err), DP_OK);
    const struct found found = found_in(log);
    assert_true(found.sums == 1 && found.pushes[0] == 3);
    dp_step_log_close(&log);
}

/* From the first epoch that is not there: then all of them are. */
static void go_on(struct dp_step_log *log)
{
    begin(log, EPOCHS, 0);
    struct found found = found_in(log);
    uint32_t epoch = 0;
    while (epoch < EPOCHS && found.pushes[epoch] == GROUPS)
        epoch++;
    train(log, epoch, epoch < EPOCHS ? found.pushes[epoch] : 0);
    struct dp_step_log *again = opened();
    found = found_in(again);
    for (uint32_t e = 0; e < EPOCHS; e++)
        assert_int_equal(found.pushes[e], GROUPS);
    dp_step_log_close(&again);
}

static void what_is_before_a_cut_at_any_byte_counts(void **state)
{
    uint64_t before = 0;
    write_whole();
    for (size_t cut = 0; cut <= size; cut++) {
        give_bytes(bytes, cut);
        struct dp_step_log *log = opened();
        const struct found found = found_in(log);
        uint64_t pushes = 0;
        for (uint32_t e = 0; e < EPOCHS; e++)
            pushes += found.pushes[e];
        assert_true(pushes == before || (pushes == before + 1 && bytes[cut - 1] == '\n'));
        before = pushes;
        if (cut % 64 == 0 || bytes[cut - 1] == '\n' || bytes[cut] == '\n')
            go_on(log);
        dp_step_log_close(&log);
    }
    assert_int_equal(before, EPOCHS * GROUPS);
}

static void expect_empty(const struct dp_step_log_id *of)
{
    struct dp_step_log *log = NULL;
    struct dp_step_log_plan unread;
    struct dp_step_place place;
    struct dp_error err = {0};
    assert_int_equal(dp_step_log_place(path, of, &unread, &place, &err), DP_DATA);
    assert_int_equal(dp_step_log_open(path, of, &log, &err), DP_OK);
    assert_null(dp_step_log_settings(log));
    assert_int_equal(found_in(log).sums, 0);
    dp_step_log_close(&log);
}

static void files_of_others_and_of_another_version_count_as_empty(void **state)
{
    const struct dp_step_log_id others[] = {{.cluster = id.cluster, .run = id.run + 1, .worker = id.worker},
                                            {.cluster = id.cluster, .run = id.run, .worker = id.worker + 1},
                                            {.cluster = id.cluster + 1, .run = id.run, .worker = id.worker}};
    struct dp_step_log_plan unread;
    struct dp_step_place place;
    struct dp_error err = {0};
    write_whole();
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++)
        expect_empty(&others[i]);
    /* The first record of version 1. */
    static const unsigned char binary[40] = {0x8d, 0x31, 0x0a, 0xf0, 1,   2,   3,   4,   1,   0,   0,   0,
                                             24,   0,    0,    0,    'S', 'T', 'E', 'P', 'L', 'O', 'G', '1'};
    give_bytes((const char *)binary, sizeof binary);
    expect_empty(&id);
    char *version = strstr(bytes, "\"step_log\":2");
    assert_non_null(version);
    version[11] = '3';
    give_bytes(bytes, size);
    expect_empty(&id);
    assert_int_equal(dp_step_log_place("/nonexistent", &id, &unread, &place, &err), DP_NOT_FOUND);
    struct dp_step_log *log = NULL;
    assert_int_equal(dp_step_log_open(dir, &id, &log, &err), DP_IO);
    assert_null(log);
}

static off_t file_size(void)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_size;
}

static void count_sum(void *context, const struct dp_step_sum *sum)
{
    uint64_t *pushes = context;
    *pushes += sum->pushes;
}

static void pass(void *context, enum dp_step_note kind, uint32_t epoch, const char *text) {}

/* Of many epochs: without a file that grows with their sums; those of the epoch that ended last are there. */
static void epochs_that_are_over_shrink(void **state)
{
    const uint64_t groups = 1000;
    const uint32_t epochs = 200;
    const struct dp_step_log_cut cut = {.place = {epochs - 1, 123}, .made = 123};
    uint64_t pushes = 0;
    struct dp_error err = {0};
    (void)unlink(path);
    struct dp_step_log *log = opened();
    begin(log, 0, 0);
    for (uint32_t e = 0; e < epochs; e++) {
        for (uint64_t g = 0; g < groups; g++) {
            const struct dp_step_sum sum = {.epoch = e, .groups = g + 1, .pushes = g + 1};
            dp_step_log_sum(log, &sum);
        }
        const struct dp_step_sum whole = {.epoch = e, .pushes = groups};
        dp_step_log_end(log, &whole);
    }
    assert_true(file_size() < (off_t)(5 * groups * 100 + epochs * 100)); /* bytes of a line */
    dp_step_log_close(&log);
    log = opened();
    assert_int_equal(dp_step_log_begin(log, &cut, &plan, SETTINGS, &err), DP_OK);
    dp_step_log_visit(log, &(struct dp_step_log_visitor){count_sum, pass, &pushes});
    assert_int_equal(pushes, (epochs - 1) * groups + 123);
    dp_step_log_close(&log);
}

static int setup(void **state)
{
    const char *tmp = getenv("TMPDIR");
    dp_log_start("test", DP_LOG_WARN); /* each cut file is logged */
    (void)snprintf(dir, sizeof dir, "%.120s/dp_step_log_XXXXXX", tmp ? tmp : "/tmp");
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(path, sizeof path, "%s/steps-3-1.log", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)unlink(path);
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_the_servers_have_comes_back),
        cmocka_unit_test(a_sum_of_more_than_was_made_does_not_count),
        cmocka_unit_test(what_is_before_a_cut_at_any_byte_counts),
        cmocka_unit_test(files_of_others_and_of_another_version_count_as_empty),
        cmocka_unit_test(epochs_that_are_over_shrink),
    };
    return cmocka_run_group_tests_name("step_log", tests, setup, teardown);
}
