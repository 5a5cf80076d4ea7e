/* Goal    what a worker wrote before it was killed comes back: the same sums, bit for bit, whatever record the file ends in.
 * Method  a log of some epochs; cut at every byte, every bit of it flipped; another run's; one long enough to be shortened. */
#include "tests/lib/test.h"

#include "common/base/log.h"
#include "worker/loop/step_log.h"
#include "worker/loop/step_record.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define GROUPS 5u
#define EPOCHS 3u

static char dir[] = "/tmp/dp_test_step_log_XXXXXX";
static char path[128];
static const struct dp_step_log_id id = {.cluster = 0x1234567890abcdefu, .run = 3, .worker = 1};

static double loss_of(uint32_t epoch, uint64_t group)
{
    return 1.0 / (double)(3 + epoch * GROUPS + group);
}

static struct dp_step step_of(uint32_t epoch, uint64_t group)
{
    return (struct dp_step){.epoch = epoch,
                            .group = group,
                            .examples = 7,
                            .loss_sum = loss_of(epoch, group),
                            .seconds = (double)group + 0.5};
}

static void add(struct dp_step_sum *sum, const struct dp_step *step)
{
    sum->groups++;
    sum->examples += step->examples;
    sum->loss_sum += step->loss_sum;
    sum->seconds = step->seconds;
}

static struct dp_step_log *opened(void)
{
    struct dp_step_log *log = NULL;
    struct dp_error err = {0};
    if (dp_step_log_open(path, &id, &log, &err) != DP_OK)
        fail_msg("%s", err.text);
    return log;
}

/* Pushes from (epoch, group) to the end of the training, as a worker tells them; sums: as undisturbed. */
static void train(struct dp_step_log *log, uint32_t epoch, uint64_t group)
{
    for (uint32_t e = epoch; e < EPOCHS; e++) {
        struct dp_step_sum sum = {.begun = 100.0 + e};
        for (uint64_t g = 0; g < GROUPS; g++) {
            struct dp_step step = step_of(e, g);
            if (e > epoch || g >= group)
                dp_step_log_add(log, &step, &sum);
            add(&sum, &step);
        }
        dp_step_log_epoch(log, e, &sum);
        dp_step_log_note(log, DP_STEP_TEST, e + 1, "test figures", 12);
        dp_step_log_note(log, DP_STEP_TOTALS, e + 1, &e, sizeof e);
    }
}

static bool all_done(const void *of, uint32_t epoch, uint64_t group)
{
    (void)of;
    (void)epoch;
    (void)group;
    return true;
}

/* Of what the log knows of an epoch, in order; how many pushes. */
static struct dp_step_sum known(const struct dp_step_log *log, uint32_t epoch)
{
    struct dp_step *steps = NULL;
    size_t count = 0;
    struct dp_error err = {0};
    struct dp_step_sum sum = dp_step_log_sum(log, epoch);
    assert_int_equal(dp_step_log_steps(log, epoch, all_done, NULL, &steps, &count, &err), DP_OK);
    for (size_t i = 0; i < count; i++) {
        assert_int_equal(steps[i].group, sum.groups); /* none is missing before one that is there */
        assert_true(steps[i].loss_sum == loss_of(epoch, steps[i].group) && steps[i].examples == 7);
        add(&sum, &steps[i]);
    }
    free(steps);
    return sum;
}

static struct dp_step_sum expected(uint32_t epoch, uint64_t groups)
{
    struct dp_step_sum sum = {0};
    for (uint64_t g = 0; g < groups; g++) {
        struct dp_step step = step_of(epoch, g);
        add(&sum, &step);
    }
    return sum;
}

static void assert_sum(struct dp_step_sum sum, uint32_t epoch, uint64_t groups)
{
    struct dp_step_sum want = expected(epoch, groups);
    assert_int_equal(sum.groups, groups);
    assert_int_equal(sum.examples, want.examples);
    assert_true(sum.loss_sum == want.loss_sum);
}

static unsigned char bytes[1 << 16];
static size_t size;

static void take_bytes(void)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    size = fread(bytes, 1, sizeof bytes, file);
    assert_true(size < sizeof bytes);
    assert_int_equal(fclose(file), 0);
}

static void give_bytes(const unsigned char *from, size_t n)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(from, 1, n, file), n);
    assert_int_equal(fclose(file), 0);
}

static void write_whole(void)
{
    const struct dp_step_log_plan plan = {.epochs = EPOCHS, .groups = GROUPS};
    (void)unlink(path);
    struct dp_step_log *log = opened();
    assert_null(dp_step_log_text(log));
    dp_step_log_set_plan(log, &plan, "seed 1\nbatch 7\n");
    train(log, 0, 0);
    dp_step_log_close(&log);
    assert_null(log);
    take_bytes();
}

static void count_note(void *context, enum dp_step_note kind, uint32_t epoch, const void *note, size_t n)
{
    uint32_t *seen = context;
    if (kind == DP_STEP_TEST) {
        assert_true(n == 12 && memcmp(note, "test figures", 12) == 0 && epoch == ++seen[0]);
    } else {
        uint32_t value;
        assert_true(kind == DP_STEP_TOTALS && n == sizeof value && seen[1] == 0); /* the last alone */
        memcpy(&value, note, sizeof value);
        assert_int_equal(value + 1, epoch);
        seen[1] = epoch;
    }
}

static void what_was_written_comes_back(void **state)
{
    (void)state;
    uint32_t seen[2] = {0}, epoch;
    uint64_t groups;
    struct dp_step_sum sums[EPOCHS] = {0};
    write_whole();
    struct dp_step_log *log = opened();
    assert_string_equal(dp_step_log_text(log), "seed 1\nbatch 7\n");
    assert_int_equal(dp_step_log_plan_of(log).epochs, EPOCHS);
    assert_int_equal(dp_step_log_plan_of(log).groups, GROUPS);
    dp_step_log_sums(log, sums, EPOCHS);
    for (uint32_t e = 0; e < EPOCHS; e++) {
        assert_sum(known(log, e), e, GROUPS);
        assert_sum(sums[e], e, GROUPS);
        assert_true(sums[e].begun == 100.0 + e);
    }
    dp_step_log_visit(log, count_note, seen);
    assert_true(seen[0] == EPOCHS && seen[1] == EPOCHS);
    dp_step_log_last(log, &epoch, &groups);
    assert_true(epoch == EPOCHS - 1 && groups == GROUPS);
    dp_step_log_close(&log);
}

/* With early stopping's state between its records, as an earlier version noted it: what follows counts. */
static void an_earlier_versions_state_of_stopping_is_passed_over(void **state)
{
    (void)state;
    unsigned char record[DP_STEP_RECORD_HEAD + DP_STEP_RECORD_NOTE + 8] = {0};
    uint32_t seen[2] = {0};
    const size_t head = DP_STEP_RECORD_HEAD + DP_STEP_RECORD_ID;
    write_whole();
    dp_store_u32le(record + DP_STEP_RECORD_HEAD, 1);
    size_t n =
        dp_step_record_seal(record, dp_step_record_seed(&id), DP_STEP_KIND_NOTE, DP_STEP_RECORD_NOTE + 8);
    memmove(bytes + head + n, bytes + head, size - head);
    memcpy(bytes + head, record, n);
    give_bytes(bytes, size + n);
    struct dp_step_log *log = opened();
    for (uint32_t e = 0; e < EPOCHS; e++)
        assert_sum(known(log, e), e, GROUPS);
    dp_step_log_visit(log, count_note, seen);
    assert_true(seen[0] == EPOCHS && seen[1] == EPOCHS);
    dp_step_log_close(&log);
}

/* The pushes that a log which was cut at some byte has lost are made again: then all is as if it had never been cut. */
static void goes_on_from_a_file_cut_at_any_byte(void **state)
{
    (void)state;
    write_whole();
    for (size_t cut = 0; cut <= size; cut++) {
        give_bytes(bytes, cut);
        struct dp_step_log *log = opened();
        uint32_t epoch = 0;
        while (epoch < EPOCHS && known(log, epoch).groups == GROUPS)
            epoch++;
        uint64_t groups = epoch < EPOCHS ? known(log, epoch).groups : 0;
        if (epoch < EPOCHS)
            assert_sum(known(log, epoch), epoch, groups);
        train(log, epoch, groups);
        dp_step_log_close(&log);
        log = opened();
        for (uint32_t e = 0; e < EPOCHS; e++)
            assert_sum(known(log, e), e, GROUPS);
        dp_step_log_close(&log);
    }
}

static void no_flipped_bit_is_believed(void **state)
{
    (void)state;
    static unsigned char flipped[sizeof bytes];
    write_whole();
    for (size_t bit = 0; bit < 8 * size; bit++) {
        memcpy(flipped, bytes, size);
        flipped[bit / 8] ^= (unsigned char)(1u << bit % 8);
        give_bytes(flipped, size);
        struct dp_step_log *log = opened();
        for (uint32_t e = 0; e < EPOCHS; e++)
            assert_sum(known(log, e), e, known(log, e).groups); /* less may be known, nothing else */
        dp_step_log_close(&log);
    }
}

static void files_of_others_are_not_taken(void **state)
{
    (void)state;
    const struct dp_step_log_id others[] = {{.cluster = id.cluster, .run = id.run + 1, .worker = id.worker},
                                            {.cluster = id.cluster, .run = id.run, .worker = id.worker + 1},
                                            {.cluster = id.cluster + 1, .run = id.run, .worker = id.worker}};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        struct dp_step_log *log = NULL;
        struct dp_step_log_id found;
        struct dp_error err = {0};
        write_whole();
        assert_int_equal(dp_step_log_read(path, &found, &log, &err), DP_OK);
        assert_true(found.run == id.run && found.worker == id.worker && found.cluster == id.cluster);
        assert_sum(known(log, 1), 1, GROUPS);
        dp_step_log_close(&log);
        assert_int_equal(dp_step_log_open(path, &others[i], &log, &err), DP_OK);
        for (uint32_t e = 0; e < EPOCHS; e++)
            assert_int_equal(known(log, e).groups, 0);
        assert_null(dp_step_log_text(log));
        dp_step_log_close(&log);
    }
    struct dp_step_log *log = NULL;
    struct dp_step_log_id found;
    struct dp_error err = {0};
    give_bytes((const unsigned char *)"hello, this is a text of somebody", 30);
    assert_int_equal(dp_step_log_read(path, &found, &log, &err), DP_DATA);
    assert_int_equal(dp_step_log_read("/nonexistent", &found, &log, &err), DP_NOT_FOUND);
    assert_null(log);
}

/* A push that is made again counts once, as it was the last time; one that no server has does not count. */
static bool but_two(const void *of, uint32_t epoch, uint64_t group)
{
    (void)of;
    (void)epoch;
    return group != 2;
}

static void only_what_servers_have_counts_and_once(void **state)
{
    (void)state;
    struct dp_step_sum sum = {0};
    struct dp_step *steps = NULL;
    size_t count = 0;
    struct dp_error err = {0};
    (void)unlink(path);
    struct dp_step_log *log = opened();
    for (uint64_t g = 0; g < 4; g++) {
        struct dp_step step = step_of(0, g);
        if (g == 1)
            step.loss_sum = 99; /* its push was never sent */
        dp_step_log_add(log, &step, &sum);
    }
    struct dp_step again = step_of(0, 1);
    dp_step_log_add(log, &again, &sum);
    dp_step_log_close(&log);
    log = opened();
    assert_int_equal(dp_step_log_steps(log, 0, but_two, NULL, &steps, &count, &err), DP_OK);
    assert_int_equal(count, 3);
    assert_true(steps[0].group == 0 && steps[1].group == 1 && steps[2].group == 3);
    assert_true(steps[1].loss_sum == loss_of(0, 1));
    free(steps);
    dp_step_log_close(&log);
}

static off_t file_size(void)
{
    struct stat info;
    assert_int_equal(stat(path, &info), 0);
    return info.st_size;
}

/* Sums of a long epoch, and of many, without a file that grows with their steps. Cut off in the middle of an epoch. */
static void finished_epochs_shrink_and_long_ones_too(void **state)
{
    (void)state;
    const uint64_t groups = 200000;
    struct dp_step_sum sum = {0};
    (void)unlink(path);
    struct dp_step_log *log = opened();
    for (uint64_t g = 0; g < groups; g++) {
        struct dp_step step = step_of(0, g);
        dp_step_log_add(log, &step, &sum);
        add(&sum, &step);
    }
    assert_true(file_size() < 70000 * 48);
    dp_step_log_close(&log);
    log = opened();
    struct dp_step_sum found = known(log, 0);
    assert_true(found.groups == groups && found.loss_sum == sum.loss_sum && found.examples == sum.examples);
    dp_step_log_epoch(log, 0, &sum);
    for (uint32_t e = 1; e < 2000; e++) {
        struct dp_step_sum one = {0};
        for (uint64_t g = 0; g < 50; g++) {
            struct dp_step step = step_of(e, g);
            dp_step_log_add(log, &step, &one);
            add(&one, &step);
        }
        dp_step_log_epoch(log, e, &one);
    }
    assert_true(file_size() < 2000 * 64 * 2 + (300 << 10) + 50 * 48);
    dp_step_log_close(&log);
    log = opened();
    for (uint32_t e = 1; e < 2000; e += 333)
        assert_sum(known(log, e), e, 50);
    assert_true(dp_step_log_sum(log, 0).loss_sum == sum.loss_sum);
    dp_step_log_close(&log);
}

/* ---- servers that were restored */

struct restored_to {
    uint32_t epoch;
    uint64_t group; /* the first that they lack; they have all before it */
};

static bool has(const void *of, uint32_t epoch, uint64_t group)
{
    const struct restored_to *to = of;
    return epoch < to->epoch || (epoch == to->epoch && group < to->group);
}

static void cut(struct dp_step_log *log, const struct restored_to *to)
{
    struct dp_error err = {0};
    const struct dp_step_log_cut cut = {
        .epoch = to->epoch, .made = to->group, .first = to->group, .done = has, .of = to};
    assert_int_equal(dp_step_log_cut(log, &cut, &err), DP_OK);
}

static void count_kind(void *context, enum dp_step_note kind, uint32_t epoch, const void *bytes_of,
                       size_t size_of)
{
    uint32_t *count = context;
    (void)epoch, (void)bytes_of, (void)size_of;
    count[kind]++;
}

/* Wherever the servers were put back to: what is known is that, and no more; and it ends as one that was never ahead. */
static void what_is_ahead_of_restored_servers_is_forgotten(void **state)
{
    (void)state;
    for (uint32_t e = 0; e < EPOCHS; e++)
        for (uint64_t g = 0; g < GROUPS; g++) {
            const struct restored_to to = {e, g};
            (void)unlink(path);
            struct dp_step_log *log = opened();
            train(log, 0, 0);
            for (uint32_t twice = 0; twice < 2; twice++) { /* the second time nothing is to be done */
                dp_step_log_close(&log);
                log = opened();
                cut(log, &to);
                for (uint32_t epoch = 0; epoch < EPOCHS; epoch++)
                    assert_sum(known(log, epoch), epoch, epoch < e ? GROUPS : epoch == e ? g : 0);
                uint32_t notes[4] = {0};
                dp_step_log_visit(log, count_kind, notes);
                assert_int_equal(notes[DP_STEP_TEST], e);
                assert_int_equal(notes[DP_STEP_TOTALS], 0);
            }
            train(log, e, g);
            dp_step_log_close(&log);
            log = opened();
            for (uint32_t epoch = 0; epoch < EPOCHS; epoch++)
                assert_sum(known(log, epoch), epoch, GROUPS);
            dp_step_log_close(&log);
        }
}

static void what_is_not_ahead_stays(void **state)
{
    const struct restored_to all = {EPOCHS, 0}, within = {EPOCHS - 1, 3};
    (void)state;
    (void)unlink(path);
    struct dp_step_log *log = opened();
    train(log, 0, 0);
    off_t before = file_size();
    cut(log, &all);
    assert_int_equal(file_size(), before);
    dp_step_log_close(&log);
    (void)unlink(path);
    log = opened();
    for (uint32_t e = 0; e < EPOCHS; e++) { /* the last two pushes did not reach the servers */
        struct dp_step_sum sum = {0};
        for (uint64_t g = 0; g < GROUPS; g++) {
            struct dp_step step = step_of(e, g);
            dp_step_log_add(log, &step, &sum);
            add(&sum, &step);
        }
        if (e + 1 < EPOCHS)
            dp_step_log_epoch(log, e, &sum);
    }
    before = file_size();
    dp_step_log_close(&log);
    log = opened();
    cut(log, &within);
    assert_int_equal(file_size(), before);
    dp_step_log_close(&log);
}

/* Although the file was shortened: the pushes of the epoch that ended last are there. */
static void back_into_the_last_epoch_of_a_shortened_log(void **state)
{
    const uint64_t groups = 3000;
    const struct restored_to to = {2, 1234};
    (void)state;
    (void)unlink(path);
    struct dp_step_log *log = opened();
    for (uint32_t e = 0; e < 3; e++) {
        struct dp_step_sum sum = {0};
        for (uint64_t g = 0; g < groups; g++) {
            struct dp_step step = step_of(e, g);
            dp_step_log_add(log, &step, &sum);
            add(&sum, &step);
        }
        dp_step_log_epoch(log, e, &sum);
    }
    assert_true(file_size() < (off_t)(2 * groups * 48)); /* of 3 epochs one has its pushes */
    dp_step_log_close(&log);
    log = opened();
    cut(log, &to);
    assert_sum(known(log, 1), 1, groups);
    assert_sum(known(log, 2), 2, 1234);
    const struct restored_to early = {1, 7}; /* those are gone */
    cut(log, &early);
    assert_int_equal(known(log, 1).groups, 0);
    assert_sum(known(log, 0), 0, groups);
    dp_step_log_close(&log);
}

static int setup(void **state)
{
    (void)state;
    dp_log_start("test", DP_LOG_WARN); /* each cut file is told */
    if (!mkdtemp(dir))
        return -1;
    (void)snprintf(path, sizeof path, "%s/steps-3-1.log", dir);
    return 0;
}

static int teardown(void **state)
{
    (void)state;
    (void)unlink(path);
    return rmdir(dir);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_was_written_comes_back),
        cmocka_unit_test(an_earlier_versions_state_of_stopping_is_passed_over),
        cmocka_unit_test(goes_on_from_a_file_cut_at_any_byte),
        cmocka_unit_test(no_flipped_bit_is_believed),
        cmocka_unit_test(files_of_others_are_not_taken),
        cmocka_unit_test(only_what_servers_have_counts_and_once),
        cmocka_unit_test(finished_epochs_shrink_and_long_ones_too),
        cmocka_unit_test(what_is_ahead_of_restored_servers_is_forgotten),
        cmocka_unit_test(what_is_not_ahead_stays),
        cmocka_unit_test(back_into_the_last_epoch_of_a_shortened_log),
    };
    return cmocka_run_group_tests_name("step_log", tests, setup, teardown);
}
