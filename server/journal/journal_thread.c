/* The commit thread:  wait for work -> a round, or a claim if the journal is idle -> make the next
 * segment. */
#include "server/journal/journal_inner.h"

#include "common/base/deadline.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>

/* About how long until a failed attempt to make a segment is repeated. */
#define TICK_MS 200u
#define IDLE_MS 100u

/* The time until a failed attempt to make a segment is repeated: a random time around TICK_MS. Otherwise
 * shards of one disk could stay in step for ever: all check the space, make a segment, and give it back
 * because of the others. */
static uint32_t try_again_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return TICK_MS / 2 + (uint32_t)(now.tv_nsec / 1000 % TICK_MS);
}

/* Waits for work. Returns also when it is time to retry making a segment or, with *idle, to write a claim,
 * idle_ms after the last append. Lock held. */
static void wait_for_work(struct dp_journal *journal, uint64_t *since_ms, bool *idle)
{
    const uint32_t idle_ms = journal->options.idle_ms ? journal->options.idle_ms : IDLE_MS;
    bool tick = false;
    while (!journal->want_round && !journal->want_segment && !journal->stop && !tick && !*idle) {
        uint64_t now = dp_now_ms();
        if (journal->watched != journal->last)
            *since_ms = now;
        journal->watched = journal->last;
        bool claims = dp_journal_can_claim(journal) && atomic_load(&journal->poison) == DP_OK;
        uint64_t passed = now - *since_ms;
        *idle = claims && passed >= idle_ms;
        if (*idle)
            return;
        uint32_t again_ms = try_again_ms();
        uint32_t left_ms = claims && idle_ms - passed < again_ms ? idle_ms - (uint32_t)passed : again_ms;
        struct timespec until = dp_deadline_in_ms(left_ms);
        tick = pthread_cond_timedwait(&journal->wanted, &journal->lock, &until) == ETIMEDOUT &&
               journal->making.status != DP_OK;
    }
}

static void *run(void *context)
{
    struct dp_journal *journal = context;
    uint64_t since_ms = dp_now_ms(); /* when the last append was seen */
    (void)prctl(PR_SET_NAME, "journal");
    for (;;) {
        bool idle = false;
        (void)pthread_mutex_lock(&journal->lock);
        wait_for_work(journal, &since_ms, &idle);
        bool commit = journal->want_round, stop = journal->stop;
        journal->want_round = journal->want_segment = false;
        (void)pthread_mutex_unlock(&journal->lock);
        if (commit || stop)
            dp_journal_round(journal);
        if (stop)
            return NULL;
        if (idle) {
            dp_journal_claim(journal);
            since_ms = dp_now_ms(); /* if the claim was not written, a record was being put */
        }
        dp_journal_prepare(journal);
    }
}

enum dp_status dp_journal_thread_start(struct dp_journal *journal, struct dp_error *err)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    int failed = pthread_create(&journal->thread, NULL, run, journal);
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (failed)
        return dp_fail(err, DP_NOMEM, "journal: cannot start the commit thread: %s", strerror(failed));
    journal->thread_runs = true;
    return DP_OK;
}

void dp_journal_thread_stop(struct dp_journal *journal)
{
    if (!journal->thread_runs)
        return;
    (void)pthread_mutex_lock(&journal->lock);
    journal->stop = true;
    (void)pthread_cond_signal(&journal->wanted);
    (void)pthread_mutex_unlock(&journal->lock);
    (void)pthread_join(journal->thread, NULL);
    journal->thread_runs = false;
}
