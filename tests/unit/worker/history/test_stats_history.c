/* Goal    A training whose worker is ended at any two places and started again reports what one does that nothing
 *         ended: losses bit for bit, examples, seconds and begin of each epoch, and what answers told of dropped
 *         and repeated pushes, up to the last end of an epoch, or a signal.
 * Method  processes of a worker over a step log, over notes of the first server, over both. Each is ended after
 *         any push or epoch, also with its last push, or the one before, on no server; by a kill or by a signal.
 *         A push takes a second. One more, of many quick pushes. */
#include "tests/lib/test.h"

#include "common/env/clock.h"
#include "worker/history/stats_history.h"

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define EPOCHS 3u
#define GROUPS 4u
#define ENDS   (EPOCHS * (GROUPS + 1)) /* behind each push, and behind each epoch */
#define TEXT   "settings"

enum keeps { KEEPS_LOG = 1, KEEPS_NOTES = 2 };

/* What outlives a process. */
static struct {
    unsigned keeps;
    char prefix[128], log[160];
    char note[16384], name[128];
    size_t size;           /* of the note; 0: none */
    uint64_t made[EPOCHS]; /* bits: the pushes that the servers have */
    uint32_t known;        /* how many answers were counted at the last end of an epoch, or at a signal */
} world;

static struct dp_cluster cluster;
static atomic_int never;

/* ---- the first server */

static enum dp_status note_put(struct dp_client *self, const char *name, const void *bytes, size_t size,
                               uint32_t timeout_ms, struct dp_error *err)
{
    if (!(world.keeps & KEEPS_NOTES))
        return DP_OK;
    assert_true(size <= sizeof world.note);
    memcpy(world.note, bytes, size);
    world.size = size;
    (void)snprintf(world.name, sizeof world.name, "%s", name);
    return DP_OK;
}

static enum dp_status notes(struct dp_client *self, const char *prefix,
                            void (*visit)(void *context, const char *name, const void *bytes, size_t size),
                            void *context, uint32_t timeout_ms, struct dp_error *err)
{
    if (world.size > 0 && strncmp(world.name, prefix, strlen(prefix)) == 0)
        visit(context, world.name, world.note, world.size);
    return DP_OK;
}

static const struct dp_shared_ops ops = {.note_put = note_put, .notes = notes};

/* ---- one process */

struct process {
    struct dp_job job;
    struct dp_stats_history history;
    struct dp_worker_stats stats;
    struct dp_position position;
    uint32_t answers; /* that its stats count, those of earlier processes too */
};

static uint32_t pushed(void)
{
    uint32_t count = 0;
    for (uint32_t e = 0; e < EPOCHS; e++)
        count += (uint32_t)__builtin_popcountll(world.made[e]);
    return count;
}

static struct dp_position position_of(void)
{
    struct dp_position p = {.groups = GROUPS};
    while (p.epoch < EPOCHS && world.made[p.epoch] == (UINT64_C(1) << GROUPS) - 1)
        p.epoch++;
    if (p.epoch == EPOCHS || world.made[p.epoch] == 0)
        return p;
    p.made = (uint64_t)__builtin_popcountll(world.made[p.epoch]);
    while (world.made[p.epoch] >> p.first & 1)
        p.first++;
    p.bits = malloc(sizeof *p.bits);
    assert_non_null(p.bits);
    *p.bits = world.made[p.epoch];
    return p;
}

static void start(struct process *p)
{
    const struct dp_step_log_plan plan = {.epochs = EPOCHS, .groups = GROUPS};
    struct dp_error err = {0};
    *p = (struct process){.job = {.cluster = &cluster,
                                  .stop = &never,
                                  .clock = dp_clock_real(),
                                  .shards = 1,
                                  .shared = &ops,
                                  .client = (struct dp_client *)&world},
                          .position = position_of()};
    assert_int_equal(dp_stats_history_open(&p->history, &p->job, &err), DP_OK);
    assert_int_equal(dp_stats_history_begin(&p->history, &p->job, &p->position, &plan, TEXT, &err), DP_OK);
    assert_int_equal(dp_worker_stats_init(&p->stats, 0, EPOCHS, &err), DP_OK);
    const struct dp_earlier_stats out = {
        .position = &p->position, .found_examples = 10 * pushed(), .stats = &p->stats};
    if (dp_position_begun(&p->position))
        dp_stats_history_get(&p->history, &p->job, &out);
    p->stats.ended = p->position.epoch;
    p->answers = world.known;
    if (dp_position_begun(&p->position)) /* so does a training */
        dp_stats_history_put(&p->history, &p->job, &p->stats, true);
}

static void end(struct process *p)
{
    dp_stats_history_close(&p->history);
    dp_worker_stats_clear(&p->stats);
    dp_position_clear(&p->position);
}

static double loss_of(uint32_t epoch, uint64_t group)
{
    return 1.0 / (double)(3 + epoch * GROUPS + group);
}

static void push(struct process *p, uint32_t epoch, uint64_t group, double seconds)
{
    const struct dp_step step = {.epoch = epoch,
                                 .group = group,
                                 .examples = 10,
                                 .loss_sum = loss_of(epoch, group),
                                 .seconds = seconds};
    dp_stats_history_push(&p->history, &step, &p->stats);
}

/* Of a push. */
static void count_answer(struct process *p)
{
    struct dp_dropped *dropped = &p->stats.dropped;
    dropped->pushes += 1;
    dropped->partly += 2;
    dropped->examples += 3;
    p->stats.repeated_examples += 5;
    p->stats.staleness.repeated += 7;
    p->stats.times.seconds[0] += 0.25;
    p->answers++;
}

static void expect_totals(const struct process *p, const char *what)
{
    const struct dp_worker_stats *got = &p->stats;
    const struct dp_dropped *dropped = &got->dropped;
    uint32_t n = p->answers;
    if (dropped->pushes != n || dropped->partly != 2 * n || dropped->examples != 3 * n ||
        got->repeated_examples != 5 * n || got->staleness.repeated != 7 * n ||
        got->times.seconds[0] != 0.25 * n)
        fail_msg("%s: %u answers; %llu pushes dropped, %llu partly, %llu examples; %llu repeated, %llu "
                 "pushes; %g s",
                 what, n, (unsigned long long)dropped->pushes, (unsigned long long)dropped->partly,
                 (unsigned long long)dropped->examples, (unsigned long long)got->repeated_examples,
                 (unsigned long long)got->staleness.repeated, got->times.seconds[0]);
}

static void close_epoch(struct process *p, uint32_t epoch)
{
    world.known = p->answers;
    dp_stats_history_epoch(&p->history, epoch, &p->stats);
    p->stats.ended = epoch + 1;
    dp_stats_history_put(&p->history, &p->job, &p->stats, true);
}

/* Which push of those that are left reaches no server. */
enum lost { LOST_NONE, LOST_LAST, LOST_BEFORE_LAST };

/* Does so many actions more, or all. */
static void run(struct process *p, uint32_t actions, enum lost lost)
{
    for (uint32_t e = p->position.epoch; e < EPOCHS && actions > 0; e++) {
        struct dp_epoch_stats *stats = &p->stats.epoch[e];
        double seconds = stats->seconds;
        stats->begun = 1000 + e;
        for (uint64_t g = 0; g < GROUPS && actions > 0; g++) {
            if (dp_position_done(&p->position, e, g))
                continue;
            push(p, e, g, ++seconds);
            stats->seconds = seconds;
            if (actions != (uint32_t)lost) {
                count_answer(p);
                world.made[e] |= UINT64_C(1) << g;
            }
            actions--;
        }
        if (actions > 0 && world.made[e] == (UINT64_C(1) << GROUPS) - 1) {
            close_epoch(p, e);
            actions--;
        } else {
            return; /* it waits for an answer that does not come */
        }
    }
}

/* ---- */

static void begin(unsigned keeps)
{
    world.keeps = keeps;
    world.size = 0;
    world.known = 0;
    memset(world.made, 0, sizeof world.made);
    (void)unlink(world.log);
    cluster.training.steps[0] = '\0';
    if (keeps & KEEPS_LOG)
        (void)snprintf(cluster.training.steps, sizeof cluster.training.steps, "%s", world.prefix);
}

/* A push behind one that was lost is in no sum: its examples count as lost. */
static void expect_same(const struct dp_worker_stats *got, enum lost lost, const char *what)
{
    uint64_t examples = 0;
    for (uint32_t e = 0; e < EPOCHS; e++) {
        const struct dp_epoch_stats *epoch = &got->epoch[e];
        double loss = 0;
        for (uint64_t g = 0; g < GROUPS; g++)
            loss += loss_of(e, g);
        examples += epoch->examples;
        if (lost == LOST_BEFORE_LAST && epoch->examples < 10 * GROUPS)
            continue;
        if (epoch->loss_sum != loss || epoch->examples != 10 * GROUPS || epoch->seconds != GROUPS ||
            epoch->begun != 1000 + e)
            fail_msg("%s: epoch %u: loss %.17g, %llu examples, %g s, begun %g", what, e + 1, epoch->loss_sum,
                     (unsigned long long)epoch->examples, epoch->seconds, epoch->begun);
    }
    assert_int_equal(examples + got->found_examples, 10 * EPOCHS * GROUPS);
}

static void ended_twice(unsigned keeps, uint32_t one, uint32_t other, enum lost lost, bool by_signal)
{
    const uint32_t actions[3] = {one, other, UINT32_MAX};
    char what[120];
    (void)snprintf(what, sizeof what, "keeps %u: ended after %u and %u actions%s%s", keeps, one, other,
                   lost == LOST_NONE   ? ""
                   : lost == LOST_LAST ? ", the last push lost"
                                       : ", the one before the last lost",
                   by_signal ? ", by a signal" : "");
    begin(keeps);
    for (uint32_t i = 0; i < 3; i++) {
        struct process p;
        start(&p);
        expect_totals(&p, what);
        run(&p, actions[i], i < 2 ? lost : LOST_NONE);
        if (by_signal && i < 2) {
            dp_stats_history_end(&p.history, &p.stats);
            world.known = p.answers;
        }
        if (i == 2)
            expect_same(&p.stats, lost, what);
        expect_totals(&p, what);
        end(&p);
    }
}

static void ended_anywhere(unsigned keeps)
{
    for (uint32_t one = 1; one <= ENDS; one++)
        for (uint32_t other = 1; other <= ENDS + 1 - one; other++)
            for (uint32_t how = 0; how < 6; how++)
                ended_twice(keeps, one, other, (enum lost)(how % 3), how >= 3);
}

static void the_log_knows_all(void **state)
{
    ended_anywhere(KEEPS_LOG);
}

static void the_log_and_the_notes_count_once(void **state)
{
    ended_anywhere(KEEPS_LOG | KEEPS_NOTES);
}

/* They know what was at the end of an epoch. */
static void the_notes_know_whole_epochs(void **state)
{
    for (uint32_t at = 1; at <= ENDS; at++) {
        struct process p;
        uint32_t whole = at / (GROUPS + 1), rest = at % (GROUPS + 1);
        begin(KEEPS_NOTES);
        start(&p);
        run(&p, at, LOST_NONE);
        end(&p);
        start(&p);
        /* An epoch whose last push is made, and which was not ended, is over for the position. */
        for (uint32_t e = 0; e < whole; e++)
            assert_true(p.stats.epoch[e].seconds == GROUPS && p.stats.epoch[e].examples == 10 * GROUPS);
        assert_int_equal(p.answers, whole * GROUPS);
        expect_totals(&p, "by notes");
        assert_int_equal(p.stats.found_examples, 10 * rest);
        run(&p, UINT32_MAX, LOST_NONE);
        for (uint32_t e = whole + 1; e < EPOCHS; e++)
            assert_true(p.stats.epoch[e].seconds == GROUPS && p.stats.epoch[e].examples == 10 * GROUPS);
        end(&p);
    }
}

/* What the notes have of the epoch under way came from the log: it is summed up again, or known to be lost. */
static void a_log_that_is_lost_is_missed_once(void **state)
{
    for (uint32_t at = 1; at < ENDS; at++) {
        struct process p;
        begin(KEEPS_LOG | KEEPS_NOTES);
        for (uint32_t i = 0; i < 3; i++) {
            uint64_t examples = 0;
            start(&p);
            for (uint32_t e = 0; e < EPOCHS; e++)
                examples += p.stats.epoch[e].examples;
            assert_true(examples + p.stats.found_examples <= 10 * pushed());
            for (uint32_t e = p.position.epoch; e < EPOCHS && i == 2; e++)
                assert_int_equal(p.stats.epoch[e].examples, 0);
            run(&p, i == 0 ? at : 0, LOST_NONE);
            end(&p);
            if (i == 1)
                assert_int_equal(unlink(world.log), 0);
        }
    }
}

/* A sum each would make a large file of a long epoch: past some, a killed process loses up to a second. */
static void of_many_quick_pushes_a_second_is_lost(void **state)
{
    const uint64_t groups = 6000, made = 5000;
    const struct dp_step_log_plan plan = {.epochs = EPOCHS, .groups = groups};
    struct dp_error err = {0};
    struct process p;
    begin(KEEPS_LOG);
    start(&p);
    for (uint64_t g = 0; g < made; g++)
        push(&p, 0, g, (double)g / 1000);
    end(&p);
    struct dp_position at = {.groups = groups, .made = made, .first = made, .bits = malloc(groups / 8 + 8)};
    assert_non_null(at.bits);
    memset(at.bits, 0xff, made / 8);
    assert_int_equal(dp_stats_history_open(&p.history, &p.job, &err), DP_OK);
    assert_int_equal(dp_stats_history_begin(&p.history, &p.job, &at, &plan, TEXT, &err), DP_OK);
    assert_int_equal(dp_worker_stats_init(&p.stats, 0, EPOCHS, &err), DP_OK);
    const struct dp_earlier_stats out = {.position = &at, .found_examples = 10 * made, .stats = &p.stats};
    dp_stats_history_get(&p.history, &p.job, &out);
    const struct dp_epoch_stats *epoch = &p.stats.epoch[0];
    assert_true(epoch->examples >= 10 * (made - 1000) && epoch->examples < 10 * made);
    assert_int_equal(epoch->examples + p.stats.found_examples, 10 * made);
    double loss = 0;
    for (uint64_t g = 0; g < epoch->examples / 10; g++)
        loss += loss_of(0, g);
    assert_true(epoch->loss_sum == loss);
    p.position = at;
    end(&p);
    char text[512];
    uint32_t lines = 0;
    FILE *file = fopen(world.log, "r");
    assert_non_null(file);
    while (fgets(text, sizeof text, file))
        lines++;
    assert_int_equal(fclose(file), 0);
    assert_int_equal(lines, 2); /* the first one, and the last sum */
}

static int setup(void **state)
{
    const char *tmp = getenv("TMPDIR");
    (void)snprintf(world.prefix, sizeof world.prefix, "%.90s/dp_stats_history_%ld", tmp ? tmp : "/tmp",
                   (long)getpid());
    (void)snprintf(world.log, sizeof world.log, "%s-0.log", world.prefix);
    cluster.id = 6;
    cluster.training.run = 1;
    cluster.training.epochs = EPOCHS;
    cluster.training.timeout_ms = 60000;
    return 0;
}

static int teardown(void **state)
{
    (void)unlink(world.log);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_log_knows_all),
        cmocka_unit_test(the_log_and_the_notes_count_once),
        cmocka_unit_test(the_notes_know_whole_epochs),
        cmocka_unit_test(a_log_that_is_lost_is_missed_once),
        cmocka_unit_test(of_many_quick_pushes_a_second_is_lost),
    };
    return cmocka_run_group_tests_name("what earlier processes did", tests, setup, teardown);
}
