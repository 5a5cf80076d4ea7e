#include "tests/unit/server/shard/rest.h"

#include <stdio.h>
#include <string.h>

static enum dp_status submit(void *self, struct dp_store_job *job)
{
    struct rest *rest = self;
    enum dp_status st = rest->store.submit(rest->store.self, job);
    rest->under_way += st == DP_OK;
    rest->taken += st == DP_OK;
    return st;
}

static struct dp_store_job *completed(void *self)
{
    struct rest *rest = self;
    struct dp_store_job *job = rest->store.completed(rest->store.self);
    rest->under_way -= job != NULL;
    return job;
}

static void wait(void *self)
{
    const struct rest *rest = self;
    rest->store.wait(rest->store.self);
}

static enum dp_status visit_marks(void *self, const void *prefix, size_t prefix_bytes,
                                  dp_store_visit_mark *visit, void *context, struct dp_error *err)
{
    const struct rest *rest = self;
    return rest->store.visit_marks(rest->store.self, prefix, prefix_bytes, visit, context, err);
}

static enum dp_status visit_rows(void *self, dp_store_visit_row *visit, void *context, struct dp_error *err)
{
    const struct rest *rest = self;
    return rest->store.visit_rows(rest->store.self, visit, context, err);
}

static void stats(void *self, struct dp_store_stats *out)
{
    const struct rest *rest = self;
    rest->store.stats(rest->store.self, out);
}

static void close_store(void *self)
{
    const struct rest *rest = self;
    rest->store.close(rest->store.self);
}

struct dp_store rest_open(struct rest *rest, struct dp_fake_store *fake)
{
    *rest = (struct rest){.store = dp_fake_store_open(fake), .fake = fake};
    return (struct dp_store){.submit = submit,
                             .completed = completed,
                             .wait = wait,
                             .visit_marks = visit_marks,
                             .visit_rows = visit_rows,
                             .stats = stats,
                             .close = close_store,
                             .self = rest};
}

/* Rows that leave ahead of need do so when there are turns. */
static bool counts_progress(const char *name)
{
    static const char *const others[] = {"rows_evicted", "cache_rows", "cache_bytes"};
    for (uint32_t i = 0; i < sizeof others / sizeof others[0]; i++)
        if (strcmp(name, others[i]) == 0)
            return false;
    return strncmp(name, "turn", 4) != 0;
}

const char *rest_check(struct rest *rest, struct dp_shard *shard, uint64_t (*others)(void *context),
                       void *context)
{
    struct dp_counter before[DP_COUNTERS_MAX], after[DP_COUNTERS_MAX];
    if (rest->under_way > dp_fake_store_held(rest->fake))
        return NULL;
    uint64_t taken = rest->taken, other = others(context);
    uint32_t n = dp_shard_counters(shard, before);
    bool goes_on = dp_shard_turn(shard);
    (void)dp_shard_counters(shard, after);
    for (uint32_t i = 0; i < n; i++)
        if (before[i].value != after[i].value && counts_progress(before[i].name)) {
            (void)snprintf(rest->did, sizeof rest->did, "%.63s", before[i].name);
            return rest->did;
        }
    if (rest->taken != taken)
        return "the store took a job";
    if (others(context) != other)
        return "it answered, or went to the disk";
    return goes_on ? "it says that it goes on" : NULL;
}
