/* Bell: a journal's wake, counted, and waited for; records that tell their lsn. */
#ifndef DP_TESTS_UNIT_SERVER_JOURNAL_BELL_H
#define DP_TESTS_UNIT_SERVER_JOURNAL_BELL_H

#include "server/journal/journal.h"
#include "tests/lib/sim_disk.h"
#include "tests/lib/test.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>
#include <unistd.h>

#define SEGMENT (128u << 10)
#define WAIT_MS 20000

struct bell {
    pthread_mutex_t lock;
    pthread_cond_t rung;
    uint64_t rings;
};

static void ring(void *context)
{
    struct bell *bell = context;
    (void)pthread_mutex_lock(&bell->lock);
    bell->rings++;
    (void)pthread_cond_signal(&bell->rung);
    (void)pthread_mutex_unlock(&bell->lock);
}

/* Until it was rung more than `seen` times. */
static uint64_t wait_for(struct bell *bell, uint64_t seen)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += WAIT_MS / 1000;
    (void)pthread_mutex_lock(&bell->lock);
    int waited = 0;
    while (bell->rings <= seen && waited != ETIMEDOUT)
        waited = pthread_cond_timedwait(&bell->rung, &bell->lock, &until);
    uint64_t rings = bell->rings;
    (void)pthread_mutex_unlock(&bell->lock);
    assert_int_not_equal(waited, ETIMEDOUT);
    return rings;
}

static uint64_t rings_of(struct bell *bell)
{
    (void)pthread_mutex_lock(&bell->lock);
    uint64_t rings = bell->rings;
    (void)pthread_mutex_unlock(&bell->lock);
    return rings;
}

struct replayed {
    uint64_t last, count;
};

static enum dp_status check(void *context, uint64_t lsn, const void *record, size_t bytes,
                            struct dp_error *err)
{
    struct replayed *replayed = context;
    uint64_t tag;
    if (bytes < 8 || (memcpy(&tag, record, 8), tag != lsn) || (replayed->last && lsn != replayed->last + 1))
        return dp_fail(err, DP_INTERNAL, "lsn %llu", (unsigned long long)lsn);
    replayed->last = lsn;
    replayed->count++;
    return DP_OK;
}

#endif
