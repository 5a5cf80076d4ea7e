/* Goal    worker 0 learns that another worker's training has diverged, from the note with which that one ends; and of nothing else.
 * Method  two progresses over one place for notes. Planted: any end counts; the epoch of the worker that asks. */
#include "tests/lib/test.h"
#include "worker/telemetry/progress.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct board {
    char name[96], text[1024]; /* of the last note */
    bool away;                 /* the first server */
};

void __wrap_dp_client_close(struct dp_client **client);
void __wrap_dp_client_close(struct dp_client **client)
{
    *client = NULL; /* it is a board */
}

static enum dp_status put(struct dp_client *self, const char *name, const void *bytes, size_t size,
                          uint32_t timeout_ms, struct dp_error *err)
{
    struct board *board = (struct board *)self;
    assert_true(size < sizeof board->text);
    (void)snprintf(board->name, sizeof board->name, "%s", name);
    (void)snprintf(board->text, sizeof board->text, "%.*s", (int)size, (const char *)bytes);
    return DP_OK;
}

static enum dp_status notes(struct dp_client *self, const char *prefix,
                            void (*visit)(void *context, const char *name, const void *bytes, size_t size),
                            void *context, uint32_t timeout_ms, struct dp_error *err)
{
    struct board *board = (struct board *)self;
    if (board->away)
        return dp_fail(err, DP_TIMEOUT, "no answer");
    if (strncmp(board->name, prefix, strlen(prefix)) == 0)
        visit(context, board->name, board->text, strlen(board->text));
    return DP_OK;
}

static const struct dp_shared_ops ops = {.note_put = put, .notes = notes};

struct pair {
    struct board board;
    struct dp_cluster cluster;
    struct dp_job job[2];
    struct dp_progress progress[2];
};

static void begin(struct pair *p)
{
    *p = (struct pair){.board.name = ""};
    dp_cluster_defaults(&p->cluster);
    for (uint32_t w = 0; w < 2; w++) {
        p->job[w] = (struct dp_job){.cluster = &p->cluster,
                                    .worker = w,
                                    .clock = dp_clock_real(),
                                    .shared = &ops,
                                    .client = (struct dp_client *)&p->board};
        dp_progress_init(&p->progress[w], &p->job[w], 0);
        dp_progress_epoch(&p->progress[w], 2 + w, 0, 0);
    }
}

static void another_worker_says_that_it_diverged(void **state)
{
    static struct pair p;
    static const enum dp_status others[] = {DP_STOPPING, DP_DATA, DP_REPLACED, DP_TIMEOUT};
    for (size_t i = 0; i < sizeof others / sizeof others[0]; i++) {
        begin(&p);
        dp_progress_end(&p.progress[1], &p.job[1], others[i]);
        assert_int_equal(dp_progress_diverged(&p.progress[0], DP_STOPPING), 0);
    }
    begin(&p);
    dp_progress_end(&p.progress[1], &p.job[1], DP_NOT_FINITE);
    assert_int_equal(dp_progress_diverged(&p.progress[0], DP_STOPPING), 3);
    assert_int_equal(dp_progress_diverged(&p.progress[0], DP_UNAVAILABLE), 3);
    p.cluster.training.run++; /* of another run */
    assert_int_equal(dp_progress_diverged(&p.progress[0], DP_STOPPING), 0);
    p.cluster.training.run--;
    p.board.away = true;
    assert_int_equal(dp_progress_diverged(&p.progress[0], DP_STOPPING), 0);
    assert_int_equal(dp_progress_diverged(&p.progress[0], DP_NOT_FINITE), 2); /* itself */
}

/* Of short epochs a waiting worker would be all that is ever seen. */
static void a_moment_of_waiting_is_not_all_that_is_seen(void **state)
{
    static struct pair p;
    begin(&p);
    dp_progress_tick(&p.progress[0]);
    assert_non_null(strstr(p.board.text, "\"training\""));
    dp_progress_pass(&p.progress[0], "waiting");
    assert_non_null(strstr(p.board.text, "\"training\""));
    p.progress[0].next_ns = 0; /* it waits for longer */
    dp_progress_tick(&p.progress[0]);
    assert_non_null(strstr(p.board.text, "\"waiting\""));
    dp_progress_enter(&p.progress[0], "done");
    assert_non_null(strstr(p.board.text, "\"done\""));
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(another_worker_says_that_it_diverged),
                                       cmocka_unit_test(a_moment_of_waiting_is_not_all_that_is_seen)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
