#include "worker/read/reader.h"

#include "common/base/queue.h"

#include <inttypes.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

/* How long the thread waits for a batch to come back before it checks whether to stop. stop also closes the
 * queue, which ends the wait at once. */
#define LOOK_MS 1000

struct dp_reader {
    const struct dp_dataset *dataset;
    struct dp_reader_plan plan;
    struct dp_batch **batches; /* [batches_len], wherever each is */
    size_t batches_len;
    size_t lent; /* the consumer's thread only */
    struct dp_queue *empty, *full;
    struct dp_queue *wanted; /* empty, with the epoch and number to fill in */
    atomic_bool stopping;
    bool started;
    pthread_t thread;
};

/* Returns an empty batch, or NULL when the reader should stop. */
static struct dp_batch *take_empty(struct dp_reader *reader)
{
    void *item = NULL;
    while (!atomic_load(&reader->stopping)) {
        enum dp_status st = dp_queue_take(reader->empty, &item, LOOK_MS);
        if (st == DP_OK)
            return item;
        if (st != DP_TIMEOUT)
            break;
    }
    return NULL;
}

/* Fills all batches with the scratch of the first one, so that it stays in the processor's cache: only this
 * thread fills, and all have the same capacity. */
static void fill(const struct dp_reader *reader, uint32_t epoch, uint64_t number, struct dp_batch *batch)
{
    struct dp_batch_scratch *own = batch->scratch;
    batch->scratch = reader->batches[0]->scratch;
    dp_dataset_fill(reader->dataset, epoch, number, batch);
    batch->scratch = own;
}

static void fill_wanted(struct dp_reader *reader)
{
    void *item = NULL;
    while (!atomic_load(&reader->stopping)) {
        enum dp_status st = dp_queue_take(reader->wanted, &item, LOOK_MS);
        struct dp_batch *batch = item;
        if (st == DP_STOPPING)
            return;
        if (st != DP_OK)
            continue;
        fill(reader, batch->epoch, batch->number, batch);
        DP_ASSERT(dp_queue_put(reader->full, batch, 0) == DP_OK);
    }
}

static void *run(void *self)
{
    struct dp_reader *reader = self;
    const struct dp_reader_plan *plan = &reader->plan;
    uint64_t batches = dp_dataset_batches(reader->dataset);
    if (plan->asked) {
        fill_wanted(reader);
        goto done;
    }
    for (uint32_t e = 0; e < plan->epochs; e++)
        for (uint64_t n = plan->offset; n < batches; n += plan->stride) {
            if (plan->skip && plan->skip(plan->of, plan->first_epoch + e, n))
                continue;
            struct dp_batch *batch = take_empty(reader);
            if (!batch)
                goto done;
            fill(reader, plan->before + plan->first_epoch + e, n, batch);
            /* `full` has space for all batches. */
            DP_ASSERT(dp_queue_put(reader->full, batch, 0) == DP_OK);
        }
done:
    dp_queue_close(reader->full);
    return NULL;
}

static enum dp_status check_plan(const struct dp_reader_plan *plan, uint32_t ahead, struct dp_error *err)
{
    if (plan->stride == 0 || plan->offset >= plan->stride)
        return dp_fail(err, DP_ARGUMENT,
                       "reader: offset %" PRIu32 " of stride %" PRIu32
                       ": expected an offset below the stride",
                       plan->offset, plan->stride);
    if (plan->before > UINT32_MAX - plan->first_epoch ||
        plan->epochs > UINT32_MAX - plan->first_epoch - plan->before)
        return dp_fail(err, DP_ARGUMENT,
                       "reader: %" PRIu32 " epochs from %" PRIu32 ": expected less than 2^32", plan->epochs,
                       plan->before + plan->first_epoch);
    if (ahead == 0)
        return dp_fail(err, DP_ARGUMENT, "reader: 0 minibatches ahead: expected at least 1");
    return DP_OK;
}

/* Minibatches of the plan, or `most` if there are more. */
static uint64_t plan_len(const struct dp_reader *reader, uint64_t most)
{
    uint64_t batches = dp_dataset_batches(reader->dataset), offset = reader->plan.offset;
    if (reader->plan.asked)
        return most;
    uint64_t an_epoch = batches > offset ? (batches - offset - 1) / reader->plan.stride + 1 : 0;
    if (an_epoch == 0 || reader->plan.epochs == 0)
        return 0;
    return reader->plan.epochs > most / an_epoch ? most : an_epoch * reader->plan.epochs;
}

static enum dp_status make_batches(struct dp_reader *reader, size_t count, struct dp_error *err)
{
    reader->batches = calloc(count + 1, sizeof(struct dp_batch *));
    if (!reader->batches)
        return dp_fail(err, DP_NOMEM, "reader: no memory for %zu minibatches", count);
    enum dp_status st = dp_queue_new(count + 1, &reader->empty, err);
    if (st == DP_OK)
        st = dp_queue_new(count + 1, &reader->full, err);
    if (st == DP_OK)
        st = dp_queue_new(count + 1, &reader->wanted, err);
    for (; reader->batches_len < count && st == DP_OK; reader->batches_len += st == DP_OK) {
        struct dp_batch **batch = &reader->batches[reader->batches_len];
        st = dp_batch_new(reader->dataset, batch, err);
        if (st == DP_OK)
            DP_ASSERT(dp_queue_put(reader->empty, *batch, 0) == DP_OK);
    }
    return st;
}

/* Blocks signals, which are for the thread that waits for them. */
static enum dp_status start_thread(struct dp_reader *reader, struct dp_error *err)
{
    sigset_t all, before;
    (void)sigfillset(&all);
    DP_ASSERT(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    int rc = pthread_create(&reader->thread, NULL, run, reader);
    DP_ASSERT(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    if (rc != 0)
        return dp_fail(err, DP_NOMEM, "reader: cannot start a thread: %s", strerror(rc));
    reader->started = true;
    return DP_OK;
}

enum dp_status dp_reader_start(const struct dp_dataset *dataset, const struct dp_reader_plan *plan,
                               uint32_t ahead, uint32_t hold_max, struct dp_reader **out,
                               struct dp_error *err)
{
    *out = NULL;
    enum dp_status st = check_plan(plan, ahead, err);
    if (st != DP_OK)
        return st;
    struct dp_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return dp_fail(err, DP_NOMEM, "reader: no memory");
    reader->dataset = dataset;
    reader->plan = *plan;
    atomic_init(&reader->stopping, false);
    st = make_batches(reader, (size_t)plan_len(reader, (uint64_t)ahead + 1 + hold_max), err);
    if (st == DP_OK)
        st = start_thread(reader, err);
    if (st != DP_OK)
        dp_reader_stop(&reader);
    *out = reader;
    return st;
}

void dp_reader_stop(struct dp_reader **reader)
{
    struct dp_reader *r = *reader;
    if (!r)
        return;
    DP_ASSERT(r->lent == 0);
    atomic_store(&r->stopping, true);
    if (r->started) {
        dp_queue_close(r->empty);
        dp_queue_close(r->wanted);
        DP_ASSERT(pthread_join(r->thread, NULL) == 0);
    }
    for (size_t i = 0; i < r->batches_len; i++)
        dp_batch_free(&r->batches[i]);
    dp_queue_free(&r->empty);
    dp_queue_free(&r->full);
    dp_queue_free(&r->wanted);
    free(r->batches);
    free(r);
    *reader = NULL;
}

enum dp_status dp_reader_next(struct dp_reader *reader, uint32_t timeout_ms, struct dp_batch **out)
{
    void *item = NULL;
    enum dp_status st = dp_queue_take(reader->full, &item, timeout_ms);
    *out = item;
    if (st == DP_OK)
        reader->lent++;
    return st == DP_STOPPING ? DP_OK : st; /* closed and empty: the end */
}

bool dp_reader_has_room(const struct dp_reader *reader)
{
    return dp_queue_len(reader->empty) > 0;
}

void dp_reader_want(struct dp_reader *reader, uint32_t epoch, uint64_t number)
{
    void *item = NULL;
    DP_ASSERT(reader->plan.asked && number < dp_dataset_batches(reader->dataset));
    DP_ASSERT(dp_queue_take(reader->empty, &item, 0) == DP_OK);
    struct dp_batch *batch = item;
    batch->epoch = epoch;
    batch->number = number;
    DP_ASSERT(dp_queue_put(reader->wanted, batch, 0) == DP_OK);
}

void dp_reader_give_back(struct dp_reader *reader, struct dp_batch **batch)
{
    DP_ASSERT(*batch != NULL && reader->lent > 0);
    reader->lent--;
    DP_ASSERT(dp_queue_put(reader->empty, *batch, 0) == DP_OK);
    *batch = NULL;
}
