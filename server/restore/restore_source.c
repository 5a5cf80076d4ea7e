#include "server/restore/restore_source.h"

#include "common/base/deadline.h"
#include "common/env/clock.h"
#include "common/wire/message.h"
#include "server/shard/shard.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/random.h>

#define REST_MS 200u

struct dp_restore_source {
    struct dp_store store;
    struct dp_disk disk; /* the journal's */
    struct dp_shard *shard;
    pthread_mutex_t lock;
    pthread_cond_t woken;
    bool wakes;
};

/* ---- waking */

static void wake(void *context)
{
    struct dp_restore_source *s = context;
    DP_ASSERT(pthread_mutex_lock(&s->lock) == 0);
    s->wakes = true;
    DP_ASSERT(pthread_cond_signal(&s->woken) == 0);
    DP_ASSERT(pthread_mutex_unlock(&s->lock) == 0);
}

/* At most for REST_MS: the shard has clocks of its own. */
static void rest(struct dp_restore_source *s)
{
    struct timespec until = dp_deadline_in_ms(REST_MS);
    int waited = 0;
    DP_ASSERT(pthread_mutex_lock(&s->lock) == 0);
    while (!s->wakes && waited == 0)
        waited = pthread_cond_timedwait(&s->woken, &s->lock, &until);
    s->wakes = false;
    DP_ASSERT(pthread_mutex_unlock(&s->lock) == 0);
}

/* ---- opening */

static void drop_reply(void *context, const struct dp_peer *to, struct dp_message **message)
{
    (void)context;
    (void)to;
    dp_message_free(message);
}

static enum dp_status open_shard(struct dp_restore_source *s, const struct dp_restore_source_options *o,
                                 bool recovers, const struct dp_store_id *id, struct dp_error *err)
{
    uint64_t salt = 0;
    DP_ASSERT(getrandom(&salt, sizeof salt, 0) == (ssize_t)sizeof salt);
    uint64_t segment_bytes = o->journal_bytes / 8 - o->journal_bytes / 8 % 4096;
    struct dp_shard_options shard = {
        .index = o->index,
        .shards = o->shards,
        .cluster = o->cluster,
        .generation = id->generation,
        .history = id->history,
        .boot = salt,
        .wall = dp_clock_wall(),
        .cache_bytes = o->cache_bytes,
        .salt = salt,
        .store = &s->store,
        .journaled = true,
        .recovers = recovers,
        .journal = {.disk = &s->disk,
                    .durability = DP_DURABILITY_MACHINE,
                    .budget_bytes = o->journal_bytes,
                    .segment_bytes = segment_bytes < (256u << 20) ? segment_bytes : 256u << 20,
                    .commit_thread = true,
                    .wake = wake,
                    .wake_context = s},
        .clock = dp_clock_real(),
        .reply = drop_reply};
    return dp_shard_open(&shard, &s->shard, err);
}

static enum dp_status drain(struct dp_restore_source *s, struct dp_error *err)
{
    enum dp_status st = DP_AGAIN;
    dp_shard_drain(s->shard);
    while (st == DP_AGAIN) {
        bool more = dp_shard_turn(s->shard);
        st = dp_shard_drained(s->shard, err);
        if (st == DP_AGAIN && !more)
            rest(s);
    }
    return st;
}

/* Nothing of a shard that failed may be at the store when it is closed. */
static void end_jobs(struct dp_restore_source *s)
{
    while (s->shard && !dp_rocks_store_is_idle(&s->store)) {
        (void)dp_shard_turn(s->shard);
        if (!dp_rocks_store_is_idle(&s->store))
            rest(s);
    }
}

static enum dp_status open_all(struct dp_restore_source *s, const struct dp_restore_source_options *o,
                               struct dp_error *err)
{
    char journal[1700];
    bool recovers = false;
    struct dp_store_id id;
    struct dp_rocks_store_options store = {.directory = o->directory,
                                           .cluster = o->cluster,
                                           .range = dp_range_of_shard(o->index, o->shards),
                                           .journaled = true,
                                           .recovers = &recovers,
                                           .id = &id,
                                           .full_fails = true,
                                           .wake = wake,
                                           .wake_context = s};
    (void)snprintf(journal, sizeof journal, "%s/journal", o->directory);
    enum dp_status st = dp_rocks_store_open(&store, &s->store, err);
    if (st == DP_OK)
        st = dp_disk_open(journal, &s->disk, err);
    if (st == DP_OK)
        st = open_shard(s, o, recovers, &id, err);
    if (st == DP_OK)
        st = drain(s, err);
    end_jobs(s);
    if (st != DP_OK && s->store.self && dp_rocks_store_was_full(&s->store, err))
        st = DP_FULL;
    dp_shard_close(&s->shard);
    return st;
}

enum dp_status dp_restore_source_open(const struct dp_restore_source_options *options,
                                      struct dp_restore_source **out, struct dp_error *err)
{
    pthread_condattr_t monotonic;
    struct dp_restore_source *s = calloc(1, sizeof *s);
    *out = s;
    if (!s)
        return dp_fail(err, DP_NOMEM, "opening shard %" PRIu32 " of the checkpoint", options->index);
    DP_ASSERT(pthread_mutex_init(&s->lock, NULL) == 0);
    DP_ASSERT(pthread_condattr_init(&monotonic) == 0 &&
              pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0 &&
              pthread_cond_init(&s->woken, &monotonic) == 0 && pthread_condattr_destroy(&monotonic) == 0);
    enum dp_status st = open_all(s, options, err);
    if (st != DP_OK)
        dp_restore_source_close(out);
    return st;
}

struct dp_store *dp_restore_source_store(struct dp_restore_source *source)
{
    return &source->store;
}

void dp_restore_source_close(struct dp_restore_source **source)
{
    struct dp_restore_source *s = *source;
    *source = NULL;
    if (!s)
        return;
    DP_ASSERT(!s->shard);
    if (s->store.close)
        s->store.close(s->store.self);
    if (s->disk.self)
        dp_disk_close(&s->disk);
    (void)pthread_cond_destroy(&s->woken);
    (void)pthread_mutex_destroy(&s->lock);
    free(s);
}
