#include "server/shard_parts.h"

#include "common/base/log.h"
#include "common/env/read_only_disk.h"
#include "common/wire/counters.h"
#include "server/store/rocks_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* A journal has room for many segments, so that some can be free while others wait for rows to be written back. */
uint64_t dp_shard_segment_bytes(uint64_t budget_bytes)
{
    uint64_t bytes = budget_bytes / 8;
    bytes -= bytes % 4096; /* complete pages, whatever the budget */
    return bytes < (256u << 20) ? bytes : 256u << 20;
}

static void say_recovered(const struct dp_shard_parts *parts, uint32_t index, uint64_t took_ns)
{
    struct dp_counter c[DP_COUNTERS_MAX];
    uint32_t n = dp_shard_counters(parts->shard, c);
    dp_log(DP_LOG_INFO,
           "shard %" PRIu32 " was not closed cleanly: recovered in %.3f s: %" PRIu64 " pushes (%" PRIu64
           " rows, %.1f MB) of the journal replayed, %" PRIu64 " rows of the store read",
           index, (double)took_ns / 1e9, dp_counter_value(c, n, "pushes_replayed"),
           dp_counter_value(c, n, "rows_replayed"), (double)dp_counter_value(c, n, "bytes_replayed") / 1e6,
           dp_counter_value(c, n, "rows_read"));
}

static enum dp_status note_progress(void *context, enum dp_journal_phase phase, uint64_t done_bytes,
                                    uint64_t all_bytes, struct dp_error *err)
{
    struct dp_shard_progress *progress = context;
    atomic_store(&progress->done_bytes, done_bytes);
    atomic_store(&progress->all_bytes, all_bytes);
    atomic_store(&progress->phase, phase == DP_JOURNAL_CHECKING ? DP_SHARD_CHECKING : DP_SHARD_REPLAYING);
    return atomic_load(&progress->stop) ? dp_fail(err, DP_STOPPING, "stopped during recovery") : DP_OK;
}

/* ---- the gate, as the phase shows it */

struct gate {
    const struct dp_store_gate *of;
    struct dp_shard_progress *progress;
};

static enum dp_status admit(void *context, const struct dp_store_id *found, bool is_new,
                            struct dp_store_id *put, struct dp_error *err)
{
    const struct gate *gate = context;
    atomic_store(&gate->progress->phase, DP_SHARD_ASKING);
    enum dp_status st = dp_store_gate_admit(gate->of, found, is_new, put, err);
    atomic_store(&gate->progress->phase, DP_SHARD_OPENING);
    return st;
}

static enum dp_status entered(void *context, const struct dp_store_id *id, struct dp_error *err)
{
    const struct gate *gate = context;
    if (!gate->of)
        return DP_OK;
    atomic_store(&gate->progress->phase, DP_SHARD_ASKING);
    enum dp_status st = gate->of->entered(gate->of->context, id, err);
    atomic_store(&gate->progress->phase, DP_SHARD_OPENING);
    return st;
}

/* ---- opening */

static enum dp_status open_disk(struct dp_shard_parts *parts, const char *directory, bool read_only,
                                struct dp_error *err)
{
    char path[1280 + 16];
    (void)snprintf(path, sizeof path, "%s/journal", directory);
    return read_only ? dp_read_only_disk_open(path, &parts->disk, err)
                     : dp_disk_open(path, &parts->disk, err);
}

/* What only reads a store, or has no journal, takes no checkpoint. */
static enum dp_status open_copier(struct dp_shard_parts *parts, const struct dp_shard_parts_options *options,
                                  struct dp_error *err)
{
    const struct dp_copier_thread_place place = {
        .place = {.directory = options->directory}, .wake = options->wake, .wake_context = options->context};
    const struct dp_shard_thread_options *o = options->thread;
    return o->copier && !o->read_only && o->journal.journaled
               ? dp_copier_thread_add(o->copier, &place, &parts->copier, err)
               : DP_OK;
}

/* The store of an opening. */
struct opening {
    struct dp_shard_parts *parts;
    const struct dp_rocks_store_options *store;
};

static enum dp_status begin(void *context, struct dp_error *err)
{
    const struct opening *opening = context;
    return dp_rocks_store_begin(&opening->parts->store, opening->store, err);
}

static enum dp_status open_shard(struct dp_shard_parts *parts, const struct dp_shard_parts_options *options,
                                 const struct dp_rocks_store_options *store, struct dp_error *err)
{
    struct opening opening = {parts, store};
    const struct dp_shard_thread_options *o = options->thread;
    struct dp_shard_options shard = {
        .index = o->index,
        .shards = o->shards,
        .cluster = o->cluster,
        .generation = parts->id.generation,
        .history = parts->id.history,
        .boot = o->boot,
        .store_id = parts->id.id,
        .register_id = parts->id.register_id,
        .wall = dp_clock_wall(),
        .cache_bytes = o->cache_bytes,
        .salt = o->salt,
        .store = &parts->store,
        .copier = parts->copier.self ? &parts->copier : NULL,
        .journaled = o->journal.journaled,
        .recovers = *store->recovers,
        .read_only = o->read_only,
        .journal = {.disk = &parts->disk,
                    .durability = o->journal.synced ? DP_DURABILITY_MACHINE : DP_DURABILITY_PROCESS,
                    .budget_bytes = o->journal.budget_bytes,
                    .segment_bytes = dp_shard_segment_bytes(o->journal.budget_bytes),
                    .commit_thread = true,
                    .wake = options->wake,
                    .wake_context = options->context,
                    .progress = note_progress,
                    .progress_context = &parts->progress},
        .recovered = o->read_only ? NULL : begin,
        .recovered_context = &opening,
        .clock = dp_clock_real(),
        .reply = options->reply,
        .may_reply = options->may_reply,
        .reply_context = options->context};
    return dp_shard_open(&shard, &parts->shard, err);
}

enum dp_status dp_shard_parts_open(struct dp_shard_parts *parts, const struct dp_shard_parts_options *options,
                                   struct dp_error *err)
{
    const struct dp_shard_thread_options *o = options->thread;
    bool recovers = false;
    struct gate asks = {.of = o->gate, .progress = &parts->progress};
    const struct dp_store_gate gate = {.admit = admit, .entered = entered, .context = &asks};
    struct dp_clock clock = dp_clock_real();
    uint64_t began_ns = dp_clock_ns(&clock);
    struct dp_rocks_store_options store = {.directory = options->directory,
                                           .cluster = o->cluster,
                                           .range = dp_range_of_shard(o->index, o->shards),
                                           .journaled = o->journal.journaled,
                                           .read_only = o->read_only,
                                           .recovers = &recovers,
                                           .gate = &gate,
                                           .id = &parts->id,
                                           .wake = options->wake,
                                           .wake_context = options->context};
    enum dp_status st = dp_rocks_store_open(&store, &parts->store, err);
    if (st != DP_OK)
        return st;
    if (atomic_load(&parts->progress.stop))
        st = dp_fail(err, DP_STOPPING, "stopped while opening its store");
    if (st == DP_OK && o->journal.journaled && (recovers || !o->read_only))
        st = open_disk(parts, options->directory, o->read_only, err);
    if (st == DP_OK)
        st = open_copier(parts, options, err);
    if (st == DP_OK)
        st = open_shard(parts, options, &store, err);
    if (st == DP_OK && recovers)
        say_recovered(parts, o->index, dp_clock_ns(&clock) - began_ns);
    return st;
}

void dp_shard_parts_close(struct dp_shard_parts *parts)
{
    dp_shard_close(&parts->shard); /* which cancels what the copier still does for it */
    dp_copier_thread_remove(&parts->copier);
    if (parts->store.close)
        parts->store.close(parts->store.self);
    dp_disk_close(&parts->disk);
    parts->store = (struct dp_store){0};
}

void dp_shard_parts_say(const struct dp_shard_parts *parts, const struct dp_shard_thread_options *options,
                        struct dp_error *err)
{
    static const double mb = 1e6;
    const uint32_t index = options->index;
    const struct dp_store_gate *gate = options->gate;
    int phase = atomic_load(&parts->progress.phase);
    const struct dp_wait wait = {.reason = DP_WAIT_RECOVERING,
                                 .subject = phase == DP_SHARD_CHECKING ? 1 : 2,
                                 .done = atomic_load(&parts->progress.done_bytes),
                                 .total = atomic_load(&parts->progress.all_bytes)};
    if (phase == DP_SHARD_OPENING)
        (void)dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_OPENING},
                           "shard %" PRIu32 " is opening its store", index);
    else if (phase == DP_SHARD_ASKING && gate && gate->says && gate->says(gate->context, err))
        DP_ASSERT(err->status == DP_AGAIN);
    else if (phase == DP_SHARD_ASKING)
        (void)dp_fail_wait(
            err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_REGISTER},
            "shard %" PRIu32 " waits for the first server, which is asked whether this is its store", index);
    else
        (void)dp_fail_wait(err, DP_AGAIN, wait,
                           "shard %" PRIu32 " is recovering: %.0f of %.0f MB of its journal %s", index,
                           (double)wait.done / mb, (double)wait.total / mb,
                           phase == DP_SHARD_CHECKING ? "checked" : "replayed");
}
