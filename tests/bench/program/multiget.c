#include "tests/bench/program/multiget.h"

#include "common/base/deadline.h"
#include "common/model/table.h"
#include "tests/bench/bare.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define READERS   2u /* as a server's */
#define PARTS_MAX (DP_BENCH_IN_FLIGHT_MAX * READERS)

/* A share of one request's keys. */
struct part {
    const uint64_t *mixed;
    size_t first, end; /* of those that are read, each `step`th of the request's */
    double step;
    uint32_t slot;
};

struct multiget {
    struct dp_bare *bare;
    uint32_t table;
    const struct dp_bench_keys *keys;
    double share;
    pthread_t thread[READERS];
    uint32_t threads;
    pthread_mutex_t lock; /* of what follows */
    pthread_cond_t wanted, done;
    struct part part[PARTS_MAX];                         /* a ring */
    uint32_t first, count, open[DP_BENCH_IN_FLIGHT_MAX]; /* open: parts of a slot that are not read yet */
    uint64_t missing;                                    /* rows that the store has not */
    bool stop;
    struct dp_error failed;
};

/* ---- reading */

static enum dp_status read_part(const struct multiget *m, struct dp_bare_scratch *scratch,
                                const struct part *part, uint64_t *missing, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t at = part->first; at < part->end && st == DP_OK;) {
        struct dp_store_key keys[DP_BARE_KEYS_MAX];
        uint32_t n = 0;
        for (; n < DP_BARE_KEYS_MAX && at < part->end; n++, at++)
            keys[n] = (struct dp_store_key){m->table, part->mixed[(size_t)((double)at * part->step)]};
        st = dp_bare_read(m->bare, scratch, keys, n, missing, err);
    }
    return st;
}

static void *run(void *context)
{
    struct multiget *m = context;
    struct dp_bare_scratch *scratch = dp_bare_scratch_new();
    (void)pthread_mutex_lock(&m->lock);
    if (!scratch)
        (void)dp_fail(&m->failed, DP_NOMEM, "no memory for keys");
    while (!m->stop) {
        if (m->count == 0 || !scratch) {
            (void)pthread_cond_wait(&m->wanted, &m->lock); /* the stop comes at the latest */
            continue;
        }
        struct part part = m->part[m->first];
        uint64_t missing = 0;
        m->first = (m->first + 1) % PARTS_MAX;
        m->count--;
        (void)pthread_mutex_unlock(&m->lock);
        struct dp_error err = {0};
        enum dp_status st = read_part(m, scratch, &part, &missing, &err);
        (void)pthread_mutex_lock(&m->lock);
        if (st != DP_OK)
            m->failed = err;
        m->missing += missing;
        m->open[part.slot]--;
        (void)pthread_cond_signal(&m->done);
    }
    (void)pthread_mutex_unlock(&m->lock);
    free(scratch);
    return NULL;
}

/* ---- start and stop */

static enum dp_status start_threads(struct multiget *m, struct dp_error *err)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_sigmask(SIG_SETMASK, &all, &before);
    while (m->threads < READERS && pthread_create(&m->thread[m->threads], NULL, run, m) == 0)
        m->threads++;
    (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
    return m->threads == READERS ? DP_OK
                                 : dp_fail(err, DP_NOMEM, "cannot start the threads of a bare MultiGet");
}

static void stop_reading(void *self)
{
    struct multiget *m = self;
    (void)pthread_mutex_lock(&m->lock);
    m->stop = true;
    (void)pthread_cond_broadcast(&m->wanted);
    (void)pthread_mutex_unlock(&m->lock);
    for (uint32_t i = 0; i < m->threads; i++)
        (void)pthread_join(m->thread[i], NULL);
    dp_bare_close(&m->bare);
    (void)pthread_cond_destroy(&m->done);
    (void)pthread_cond_destroy(&m->wanted);
    (void)pthread_mutex_destroy(&m->lock);
    free(m);
}

static enum dp_status start_reading(const char *directory, const char *table, const struct dp_pin *pin,
                                    void **out, struct dp_error *err)
{
    struct multiget *m = calloc(1, sizeof *m);
    pthread_condattr_t monotonic;
    *out = NULL;
    if (!m)
        return dp_fail(err, DP_NOMEM, "no memory for a bare MultiGet");
    m->table = dp_table_id(table);
    (void)pthread_condattr_init(&monotonic);
    (void)pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    (void)pthread_mutex_init(&m->lock, NULL);
    (void)pthread_cond_init(&m->wanted, NULL);
    (void)pthread_cond_init(&m->done, &monotonic);
    (void)pthread_condattr_destroy(&monotonic);
    enum dp_status st = dp_bare_open(directory, &m->bare, err);
    dp_pin_server(pin);
    if (st == DP_OK)
        st = start_threads(m, err);
    dp_pin_client(pin);
    if (st == DP_OK)
        *out = m;
    else
        stop_reading(m);
    return st;
}

/* ---- a load */

static uint64_t rows_of(const void *self, uint64_t n)
{
    const struct multiget *m = self;
    return (uint64_t)((double)dp_keys_distinct(m->keys->keys[n % m->keys->sets]) * m->share);
}

static enum dp_status issue(void *self, uint32_t slot, uint64_t n, struct dp_error *err)
{
    struct multiget *m = self;
    size_t rows = (size_t)rows_of(m, n);
    (void)pthread_mutex_lock(&m->lock);
    for (uint32_t i = 0; i < READERS; i++) {
        m->part[(m->first + m->count++) % PARTS_MAX] =
            (struct part){.mixed = dp_keys_mixed(m->keys->keys[n % m->keys->sets]),
                          .first = rows * i / READERS,
                          .end = rows * (i + 1) / READERS,
                          .step = 1 / m->share,
                          .slot = slot};
        m->open[slot]++;
    }
    (void)pthread_cond_broadcast(&m->wanted);
    (void)pthread_mutex_unlock(&m->lock);
    return DP_OK;
}

static enum dp_status finish(void *self, uint32_t slot, struct dp_error *err)
{
    struct multiget *m = self;
    struct timespec until = dp_deadline_in_ms(DP_BENCH_WAIT_MS);
    enum dp_status st = DP_OK;
    int late = 0;
    (void)pthread_mutex_lock(&m->lock);
    while (m->open[slot] > 0 && m->failed.status == DP_OK && late == 0)
        late = pthread_cond_timedwait(&m->done, &m->lock, &until);
    if (m->failed.status != DP_OK)
        st = dp_fail(err, m->failed.status, "bare MultiGet: %s", m->failed.text);
    else if (late != 0)
        st = dp_fail(err, DP_TIMEOUT, "bare MultiGet: no answer in %u ms", DP_BENCH_WAIT_MS);
    else if (m->missing > 0)
        st = dp_fail(err, DP_INTERNAL, "bare MultiGet: %" PRIu64 " rows are not in the store", m->missing);
    (void)pthread_mutex_unlock(&m->lock);
    return st;
}

static struct dp_load load(void *self, const struct dp_bench_keys *keys, double share)
{
    struct multiget *m = self;
    m->keys = keys;
    m->share = share < 1 ? share : 1;
    return (struct dp_load){.issue = issue, .finish = finish, .rows = rows_of, .self = m};
}

const struct dp_bench_store dp_multiget = {
    .start = start_reading, .stop = stop_reading, .load = load, .scan = dp_bare_scan};
