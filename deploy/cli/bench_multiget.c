#include "deploy/cli/bench_multiget.h"

#include "common/base/bytes.h"
#include "common/base/deadline.h"
#include "common/model/table.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <rocksdb/c.h>
#include <signal.h>
#include <stdlib.h>

#define READERS   2u   /* as a server's */
#define CHUNK     512u /* keys of one question, likewise */
#define KEY_BYTES 12u  /* table u32 | mixed u64, big endian: server/store/keys.h */
#define FAMILIES  3
#define CACHE     (32u << 20)
#define PARTS_MAX (DP_BENCH_IN_FLIGHT_MAX * READERS)

/* A share of one request's keys. */
struct part {
    const uint64_t *mixed;
    size_t first, end; /* of those that are read, each `step`th of the request's */
    double step;
    uint32_t slot;
};

struct dp_bench_multiget {
    rocksdb_options_t *options;
    rocksdb_readoptions_t *read;
    rocksdb_t *db;
    rocksdb_column_family_handle_t *families[FAMILIES];
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
    char *failed;
};

/* ---- reading */

struct question {
    char bytes[CHUNK][KEY_BYTES];
    const char *key[CHUNK];
    size_t key_bytes[CHUNK];
    rocksdb_pinnableslice_t *value[CHUNK];
    char *error[CHUNK];
};

/* Gives the first error; counts rows that are not there. */
static char *ask(const struct dp_bench_multiget *m, struct question *q, size_t n, uint64_t *missing)
{
    char *failed = NULL;
    rocksdb_batched_multi_get_cf(m->db, m->read, m->families[1], n, q->key, q->key_bytes, q->value, q->error,
                                 true);
    for (size_t i = 0; i < n; i++) {
        size_t bytes = 0;
        if (q->error[i] && !failed)
            failed = q->error[i];
        else if (q->error[i])
            rocksdb_free(q->error[i]);
        *missing += !q->value[i] || !rocksdb_pinnableslice_value(q->value[i], &bytes);
        if (q->value[i])
            rocksdb_pinnableslice_destroy(q->value[i]);
    }
    return failed;
}

static char *read_part(const struct dp_bench_multiget *m, struct question *q, const struct part *part,
                       uint64_t *missing)
{
    char *failed = NULL;
    for (size_t at = part->first; at < part->end && !failed;) {
        size_t n = 0;
        for (; n < CHUNK && at < part->end; n++, at++) {
            dp_store_u32be(q->bytes[n], m->table);
            dp_store_u64be(q->bytes[n] + 4, part->mixed[(size_t)((double)at * part->step)]);
            q->key[n] = q->bytes[n];
            q->key_bytes[n] = KEY_BYTES;
            q->value[n] = NULL;
            q->error[n] = NULL;
        }
        failed = ask(m, q, n, missing);
    }
    return failed;
}

static void *run(void *context)
{
    struct dp_bench_multiget *m = context;
    struct question *q = calloc(1, sizeof *q);
    (void)pthread_mutex_lock(&m->lock);
    if (!q && !m->failed)
        m->failed = strdup("no memory for keys");
    while (!m->stop) {
        if (m->count == 0 || !q) {
            (void)pthread_cond_wait(&m->wanted, &m->lock); /* the stop comes at the latest */
            continue;
        }
        struct part part = m->part[m->first];
        uint64_t missing = 0;
        m->first = (m->first + 1) % PARTS_MAX;
        m->count--;
        (void)pthread_mutex_unlock(&m->lock);
        char *failed = read_part(m, q, &part, &missing);
        (void)pthread_mutex_lock(&m->lock);
        if (!m->failed)
            m->failed = failed;
        else
            rocksdb_free(failed);
        m->missing += missing;
        m->open[part.slot]--;
        (void)pthread_cond_signal(&m->done);
    }
    (void)pthread_mutex_unlock(&m->lock);
    free(q);
    return NULL;
}

/* ---- start and stop */

static enum dp_status open_store(struct dp_bench_multiget *m, const char *directory, struct dp_error *err)
{
    static const char *const names[FAMILIES] = {"default", "rows", "marks"};
    rocksdb_cache_t *cache = rocksdb_cache_create_lru(CACHE);
    rocksdb_block_based_table_options_t *table = rocksdb_block_based_options_create();
    char *text = NULL;
    m->options = rocksdb_options_create();
    m->read = rocksdb_readoptions_create();
    rocksdb_readoptions_set_ignore_range_deletions(m->read, 1);
    rocksdb_readoptions_set_fill_cache(m->read, 0);
    rocksdb_block_based_options_set_block_cache(table, cache);
    rocksdb_options_set_block_based_table_factory(m->options, table);
    rocksdb_block_based_options_destroy(table);
    rocksdb_cache_destroy(cache); /* the options keep it */
    const rocksdb_options_t *options[FAMILIES] = {m->options, m->options, m->options};
    m->db = rocksdb_open_for_read_only_column_families(m->options, directory, FAMILIES, names, options,
                                                       m->families, 0, &text);
    if (!text)
        return DP_OK;
    (void)dp_fail(err, DP_IO, "bare MultiGet over '%s': %s", directory, text);
    rocksdb_free(text);
    return DP_IO;
}

static enum dp_status start_threads(struct dp_bench_multiget *m, struct dp_error *err)
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

enum dp_status dp_bench_multiget_start(const char *directory, const char *table, const struct dp_pin *pin,
                                       struct dp_bench_multiget **out, struct dp_error *err)
{
    struct dp_bench_multiget *m = calloc(1, sizeof *m);
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
    enum dp_status st = open_store(m, directory, err);
    dp_pin_server(pin);
    if (st == DP_OK)
        st = start_threads(m, err);
    dp_pin_client(pin);
    if (st != DP_OK)
        dp_bench_multiget_stop(&m);
    *out = m;
    return st;
}

void dp_bench_multiget_stop(struct dp_bench_multiget **multiget)
{
    struct dp_bench_multiget *m = *multiget;
    *multiget = NULL;
    if (!m)
        return;
    (void)pthread_mutex_lock(&m->lock);
    m->stop = true;
    (void)pthread_cond_broadcast(&m->wanted);
    (void)pthread_mutex_unlock(&m->lock);
    for (uint32_t i = 0; i < m->threads; i++)
        (void)pthread_join(m->thread[i], NULL);
    for (int i = 0; i < FAMILIES && m->db; i++)
        rocksdb_column_family_handle_destroy(m->families[i]);
    if (m->db)
        rocksdb_close(m->db);
    rocksdb_readoptions_destroy(m->read);
    rocksdb_options_destroy(m->options);
    (void)pthread_cond_destroy(&m->done);
    (void)pthread_cond_destroy(&m->wanted);
    (void)pthread_mutex_destroy(&m->lock);
    free(m->failed);
    free(m);
}

/* ---- a load */

static uint64_t rows_of(const void *self, uint64_t n)
{
    const struct dp_bench_multiget *m = self;
    return (uint64_t)((double)dp_keys_distinct(m->keys->keys[n % m->keys->sets]) * m->share);
}

static enum dp_status issue(void *self, uint32_t slot, uint64_t n, struct dp_error *err)
{
    struct dp_bench_multiget *m = self;
    size_t rows = (size_t)rows_of(m, n);
    (void)err;
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
    struct dp_bench_multiget *m = self;
    struct timespec until = dp_deadline_in_ms(DP_BENCH_WAIT_MS);
    enum dp_status st = DP_OK;
    int late = 0;
    (void)pthread_mutex_lock(&m->lock);
    while (m->open[slot] > 0 && !m->failed && late == 0)
        late = pthread_cond_timedwait(&m->done, &m->lock, &until);
    if (m->failed)
        st = dp_fail(err, DP_IO, "bare MultiGet: %s", m->failed);
    else if (late != 0)
        st = dp_fail(err, DP_TIMEOUT, "bare MultiGet: no answer in %u ms", DP_BENCH_WAIT_MS);
    else if (m->missing > 0)
        st = dp_fail(err, DP_INTERNAL, "bare MultiGet: %" PRIu64 " rows are not in the store", m->missing);
    (void)pthread_mutex_unlock(&m->lock);
    return st;
}

struct dp_load dp_bench_multiget_load(struct dp_bench_multiget *multiget, const struct dp_bench_keys *keys,
                                      double share)
{
    multiget->keys = keys;
    multiget->share = share < 1 ? share : 1;
    return (struct dp_load){.issue = issue, .finish = finish, .rows = rows_of, .self = multiget};
}
