#include "server/durable/order_journal.h"

#include "common/base/blocking.h"
#include "common/base/log.h"
#include "server/journal/journal_segment.h"

#include <inttypes.h>

#define FILL_MAX 65536u                /* VOIDs in a turn: some ms */
#define FILL_NS  UINT64_C(30000000000) /* all of them */

static void check(const struct dp_order_journal *o)
{
    DP_ASSERT(o->stage != DP_ORDER_JOURNAL_OFF || (!o->runs && !o->journal));
    DP_ASSERT((o->stage == DP_ORDER_JOURNAL_ON) == o->journaling->on_order);
    DP_ASSERT(o->stage != DP_ORDER_JOURNAL_FILLING || (o->journal && !o->runs));
}

bool dp_order_journal_is_possible(const struct dp_order_journal *o)
{
    return o->options->disk != NULL;
}

bool dp_order_journal_is_on(const struct dp_order_journal *o)
{
    return o->stage == DP_ORDER_JOURNAL_ON && o->journaling->order_failed.status == DP_OK;
}

bool dp_order_journal_is_off(const struct dp_order_journal *o)
{
    return o->stage == DP_ORDER_JOURNAL_OFF;
}

const struct dp_error *dp_order_journal_failed(const struct dp_order_journal *o)
{
    return o->failed.status != DP_OK                     ? &o->failed
           : o->journaling->order_failed.status != DP_OK ? &o->journaling->order_failed
                                                         : NULL;
}

/* ---- on the thread: what waits for the disk */

struct left {
    const struct dp_disk *disk;
    enum dp_status st;
    struct dp_error *err;
};

static void remove_left(void *context, const char *name)
{
    struct left *left = context;
    uint64_t number;
    if (left->st == DP_OK && dp_journal_segment_number(name, &number))
        left->st = left->disk->remove(left->disk->self, name, left->err);
}

/* The store was clean when it was opened: it needs nothing of an earlier journal. */
static enum dp_status open_now(struct dp_order_journal *o, struct dp_error *err)
{
    struct left left = {.disk = o->opening.disk, .err = err};
    enum dp_status st = left.disk->list(left.disk->self, remove_left, &left, err);
    if (st == DP_OK)
        st = left.st;
    return st == DP_OK ? dp_journal_open(&o->opening, &o->journal, err) : st;
}

static void *run(void *context)
{
    struct dp_order_journal *o = context;
    enum dp_status st = o->stage == DP_ORDER_JOURNAL_OPENING ? open_now(o, &o->error)
                                                             : dp_journal_end(&o->journal, &o->error);
    DP_ASSERT(st == o->error.status);
    atomic_store(&o->done, true);
    if (o->options->wake)
        o->options->wake(o->options->wake_context);
    return NULL;
}

/* A thread that cannot be started is started in a later turn. */
static void start(struct dp_order_journal *o)
{
    DP_ASSERT(!o->runs && (o->stage == DP_ORDER_JOURNAL_OPENING || o->stage == DP_ORDER_JOURNAL_ENDING));
    o->error = (struct dp_error){0};
    atomic_store(&o->done, false);
    if (o->options->commit_thread) {
        o->runs = pthread_create(&o->thread, NULL, run, o) == 0;
        return;
    }
    bool before = dp_blocking_set(true);
    (void)run(o);
    (void)dp_blocking_set(before);
}

static void join_thread(struct dp_order_journal *o)
{
    if (o->runs)
        DP_ASSERT(pthread_join(o->thread, NULL) == 0);
    o->runs = false;
}

/* ---- the shard's side */

static enum dp_status no_record(void *context, uint64_t lsn, const void *record, size_t bytes,
                                struct dp_error *err)
{
    (void)context, (void)record, (void)bytes;
    return dp_fail(err, DP_CORRUPT, "record %" PRIu64 " in a journal that was begun anew", lsn);
}

void dp_order_journal_forget(struct dp_order_journal *o)
{
    DP_ASSERT(o->stage == DP_ORDER_JOURNAL_OFF);
    o->failed = (struct dp_error){0};
}

void dp_order_journal_begin(struct dp_order_journal *o)
{
    const struct dp_journaling *j = o->journaling;
    uint64_t known = j->incarnation > j->released ? j->incarnation : j->released;
    DP_ASSERT(o->stage == DP_ORDER_JOURNAL_OFF && !j->journal && dp_order_journal_is_possible(o));
    o->opening = *o->options;
    o->opening.durability = DP_DURABILITY_PROCESS;
    o->opening.secret = o->secret;
    o->opening.replay_after = j->lsn;
    o->opening.replay = no_record;
    o->opening.progress = NULL;
    o->opening.room = o->jobs->store->room;
    o->opening.room_context = o->jobs->store->self;
    o->opening.incarnation = o->opening.released = known;
    o->opening.clean = true;
    o->failed = (struct dp_error){0};
    o->unwanted = false;
    o->stage = DP_ORDER_JOURNAL_OPENING;
    start(o);
    check(o);
}

static void end_opening(struct dp_order_journal *o)
{
    join_thread(o);
    if (o->error.status != DP_OK) {
        o->failed = o->error;
        o->stage = DP_ORDER_JOURNAL_OFF;
        return;
    }
    o->stage = DP_ORDER_JOURNAL_FILLING;
    o->filling_ns = dp_shard_now(o->base);
    if (o->unwanted)
        dp_order_journal_drop(o);
}

/* The lsns that were given while it was opened are those of rows only. No cut needs their VOIDs, as none has an `after` below `from`: they
 * must not use up the budget. */
static enum dp_status fill(struct dp_order_journal *o, struct dp_error *err)
{
    const struct dp_record record = {.kind = DP_RECORD_VOID};
    struct dp_journal_piece pieces[DP_RECORD_PIECES_MAX];
    char head[DP_RECORD_HEAD_MAX];
    uint32_t n = dp_record_encode(&record, NULL, head, pieces);
    uint64_t lsn = dp_journal_last(o->journal);
    enum dp_status st = DP_OK;
    DP_ASSERT(lsn <= o->journaling->lsn);
    for (uint32_t i = 0; st == DP_OK && i < FILL_MAX && lsn < o->journaling->lsn; i++)
        st = dp_journal_append(o->journal, pieces, n, &lsn, err);
    dp_journal_release(o->journal, lsn + 1);
    dp_journal_commit(o->journal);
    if (st == DP_AGAIN) /* released segments are recycled once they are synced */
        dp_journal_sync(o->journal);
    return st;
}

static bool filled(struct dp_order_journal *o)
{
    struct dp_error err = {0};
    enum dp_status st = fill(o, &err);
    uint64_t lacks = o->journaling->lsn - dp_journal_last(o->journal);
    bool is_late = dp_shard_now(o->base) - o->filling_ns > FILL_NS;
    bool goes_on = st == DP_OK || st == DP_AGAIN || st == DP_BEHIND;
    if (lacks > 0 && goes_on && !is_late)
        return false;
    if (lacks > 0) {
        o->failed = err;
        if (goes_on)
            (void)dp_fail(&o->failed, DP_UNAVAILABLE,
                          "%" PRIu64 " s after its opening it still lacks %" PRIu64
                          " pushes that came meanwhile: its disk is too slow for them%s%s",
                          FILL_NS / 1000000000u, lacks, st == DP_OK ? "" : ": ", err.text);
        o->stage = DP_ORDER_JOURNAL_ENDING;
        start(o);
        return false;
    }
    o->from = o->journaling->lsn;
    dp_journaling_take_over(o->journaling, &o->journal);
    o->stage = DP_ORDER_JOURNAL_ON;
    return true;
}

static void end_ending(struct dp_order_journal *o)
{
    join_thread(o);
    if (o->error.status != DP_OK)
        dp_log(DP_LOG_WARN, "shard %" PRIu32 ": %s; the next checkpoint removes them", o->base->index,
               o->error.text);
    o->stage = DP_ORDER_JOURNAL_OFF;
}

bool dp_order_journal_turn(struct dp_order_journal *o)
{
    bool waits = o->stage == DP_ORDER_JOURNAL_OPENING || o->stage == DP_ORDER_JOURNAL_ENDING;
    bool came_on = false;
    if (waits && !o->runs && !atomic_load(&o->done))
        start(o);
    bool done = waits && atomic_load(&o->done);
    if (done && o->stage == DP_ORDER_JOURNAL_OPENING)
        end_opening(o);
    else if (done)
        end_ending(o);
    if (o->stage == DP_ORDER_JOURNAL_FILLING)
        came_on = filled(o);
    check(o);
    return came_on;
}

void dp_order_journal_drop(struct dp_order_journal *o)
{
    if (o->stage == DP_ORDER_JOURNAL_OPENING)
        o->unwanted = true;
    if (o->stage == DP_ORDER_JOURNAL_ON)
        dp_journaling_give_back(o->journaling, &o->journal);
    if (o->stage == DP_ORDER_JOURNAL_ON || o->stage == DP_ORDER_JOURNAL_FILLING) {
        o->stage = DP_ORDER_JOURNAL_ENDING;
        start(o);
    }
    check(o);
}

void dp_order_journal_clear(struct dp_order_journal *o)
{
    join_thread(o);
    dp_journal_close(&o->journal);
}
