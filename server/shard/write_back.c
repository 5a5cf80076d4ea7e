/* Write-back: rows that changed go to the store, in cycles, in the background; a shard that drains ends with one.
 *     begin (what is dirty becomes due) -> due rows, table by table, partition by partition, each portion sorted ->
 *     marks (push ids, tables, rows_lsn) -> the journal is released up to rows_lsn              (this order, always)
 * Why       No row and no mark goes to the store before the journal is synced past it: a portion is copied at once
 *           and waits for that. Marks come after all rows of the cycle: they say from where replay must start. A row
 *           that changes while its cycle is under way is dirty again, for the next cycle, so that after a cycle every
 *           push up to rows_lsn is in the store.
 *           Two portions are at the store at a time, and a turn copies one: nobody waits for a cycle.
 *           Until a portion is in the store no row leaves the cache from its partition (row_cache.h): what is read back
 *           has all that was pushed.
 *           Where the disk is full, what it did not take is kept, and tried again each second.
 *           While many files wait to be merged no cycle begins, but for room; where merging does not get on, one does all the
 *           same: it hears why, if the store has failed. */
#include "server/shard/shard_inner.h"

#include "common/base/log.h"
#include "common/model/row.h"

#include <inttypes.h>
#include <stdlib.h>

#define PORTION_BYTES  ((size_t)4 << 20)
#define PORTIONS_MAX   8u /* at the store, that puts what follows each other into one file */
#define PORTIONS_LEAST 2u
#define PORTIONS_SHARE 16u /* of the cache's budget, all of them */
#define LISTED         8u  /* portions of rows of one partition that are put in order at once */
#define PLACE_BITS     12u
#define PLACES         (1u << PLACE_BITS)
#define SLOTS_A_TURN   (1u << 18)            /* of the index, looked at for due rows */
#define CYCLE_NS       (30u * 1000000000ull) /* after the first push that is not in the store */
#define CYCLE_SHARE    2u  /* of the journal's budget: the later, the more pushes a row written stands for */
#define L0_MOST        64u /* files of rows that are to be merged */
#define MERGE_NS       (60u * 1000000000ull) /* so long a cycle waits while they do not become fewer */
#define DIRTY_SHARE    2u                    /* of the cache's, where rows are evicted */
#define AGAIN_NS       (1000000000ull)       /* the disk was full */

void dp_shard_drain(struct dp_shard *shard)
{
    shard->draining = true;
    dp_shard_stop_counting(shard);
}

/* Nothing can change any more. */
static bool is_quiet(const struct dp_shard *shard)
{
    return shard->draining && shard->waiting == 0 && shard->held.count == 0;
}

enum dp_status dp_shard_drained(const struct dp_shard *shard, struct dp_error *err)
{
    const struct dp_write_back *w = &shard->write_back;
    const struct dp_error *why = w->failed.status != DP_OK ? &w->failed : &shard->journal_failed;
    if (!shard->draining || shard->waiting > 0 || shard->jobs > 0)
        return DP_AGAIN;
    if (shard->options.read_only)
        return DP_OK; /* there is nothing to write */
    if (why->status != DP_OK) {
        struct dp_error text = *why;
        (void)dp_wrap(&text, text.status, "shard %" PRIu32 " could not write its rows back",
                      shard->options.index);
        if (err)
            *err = text;
        return text.status;
    }
    return w->last_done ? DP_OK : DP_AGAIN;
}

enum dp_status dp_shard_end_journal(struct dp_shard *shard, struct dp_error *err)
{
    DP_ASSERT(dp_shard_drained(shard, NULL) == DP_OK);
    enum dp_status st = dp_journal_end(&shard->journal, err);
    return st == DP_OK ? st : dp_wrap(err, st, "shard %" PRIu32, shard->options.index);
}

static void fail(struct dp_shard *shard, const struct dp_error *err)
{
    if (shard->write_back.failed.status != DP_OK)
        return;
    shard->write_back.failed = *err;
    dp_log(DP_LOG_ERROR,
           "shard %" PRIu32 ": rows cannot be written back: %s; restart the server when its disk is sound",
           shard->options.index, err->text);
}

/* Half of its files hold what is not in the store: pages that small commits are rounded up to and ends of segments count too,
 * and what was replayed. */
static bool journal_fills(const struct dp_shard *shard)
{
    struct dp_journal_figures figures;
    if (!shard->journal) /* it is replayed */
        return false;
    dp_journal_figures(shard->journal, &figures);
    return figures.bytes_kept > figures.bytes_budget / CYCLE_SHARE;
}

/* For the journal's sake. */
static bool is_due(const struct dp_shard *shard)
{
    const struct dp_write_back *w = &shard->write_back;
    if (shard->lsn == w->marked_lsn || (!shard->journal && !shard->recovery))
        return false; /* but for room a cycle in the middle would be worth nothing: after a crash all is refused */
    return w->wanted || dp_clock_ns(&shard->options.clock) - w->since_ns > CYCLE_NS || journal_fills(shard);
}

/* Another cycle's files would only lie on top of those that are to be merged: pushes wait for the journal instead. But if
 * these do not become fewer the store may have failed, which only a write hears. */
static void look_at_merges(struct dp_shard *shard)
{
    struct dp_write_back *w = &shard->write_back;
    struct dp_store_figures figures = {0};
    uint64_t before = w->merging;
    w->merging = 0;
    if (!is_due(shard))
        return;
    shard->options.store->figures(shard->options.store->self, &figures);
    if (figures.l0_files <= L0_MOST) {
        w->merging_told = false;
        return;
    }
    w->merging = figures.l0_files;
    if (before == 0 || w->merging < before)
        w->merging_ns = dp_clock_ns(&shard->options.clock);
}

static bool merges_hold_up(const struct dp_shard *shard)
{
    const struct dp_write_back *w = &shard->write_back;
    return w->merging > 0 && dp_clock_ns(&shard->options.clock) - w->merging_ns < MERGE_NS;
}

static bool is_time(const struct dp_shard *shard)
{
    const struct dp_write_back *w = &shard->write_back;
    if (is_quiet(shard))
        return !w->last_done;
    if (shard->snapshots.stage == DP_SNAPSHOT_DUE)
        return false; /* the store is to be copied as it is */
    if (dp_shard_snapshot_wants_cycle(shard))
        return true;
    if (shard->lsn == w->marked_lsn)
        return false;
    if (w->pressed ||
        (dp_shard_dirty_bytes(shard) > shard->options.cache_bytes / DIRTY_SHARE && dp_shard_is_tight(shard)))
        return true;
    return is_due(shard) && !merges_hold_up(shard);
}

/* It begins though they do not become fewer: told once, until they are merged. */
static void tell_merging(struct dp_shard *shard)
{
    struct dp_write_back *w = &shard->write_back;
    if (w->merging == 0 || merges_hold_up(shard) || w->merging_told)
        return;
    w->merging_told = true;
    dp_log(DP_LOG_WARN,
           "shard %" PRIu32 ": %" PRIu64
           " files of rows wait to be merged, and have not become fewer in %llu s: look at the room and the "
           "speed of its disk; rows are written back all the same",
           shard->options.index, w->merging, MERGE_NS / 1000000000u);
}

static void begin(struct dp_shard *shard)
{
    struct dp_write_back *w = &shard->write_back;
    tell_merging(shard);
    w->merging = 0;
    w->cycle = DP_CYCLE_ROWS;
    w->rows_lsn = shard->lsn;
    w->is_last = is_quiet(shard);
    w->since_ns = dp_clock_ns(&shard->options.clock);
    w->pushed = false;
    w->wanted = w->pressed = false;
    w->table = w->partition = 0;
    for (uint32_t i = 0; i < shard->tables; i++)
        dp_row_cache_begin_cycle(shard->table[i]->cache);
}

/* ---- portions */

struct portion {
    struct dp_due_row {
        uint64_t mixed;
        uint32_t row;
    } * due;
    uint32_t count;
};

static void list_row(void *context, uint64_t mixed, uint32_t row)
{
    struct portion *portion = context;
    portion->due[portion->count++] = (struct dp_due_row){.mixed = mixed, .row = row};
}

static int by_mixed(const void *a, const void *b)
{
    uint64_t x = ((const struct dp_due_row *)a)->mixed, y = ((const struct dp_due_row *)b)->mixed;
    return (x > y) - (x < y);
}

/* Mixed keys are spread evenly over a partition: their places in it nearly sort them, a tenth of qsort's time, and that is
 * the shard's. Keys chosen to share a place are left to qsort. spare: as many again. */
static void sort_due(const struct dp_row_cache *cache, struct dp_due_row *due, uint32_t n,
                     struct dp_due_row *spare)
{
    uint32_t starts[PLACES + 1],
        shift = cache->range_shift > PLACE_BITS ? cache->range_shift - PLACE_BITS : 0;
    uint64_t moves = 8 * (uint64_t)n;
    if (n < PLACES / 16) {
        qsort(due, n, sizeof due[0], by_mixed);
        return;
    }
    memset(starts, 0, sizeof starts);
    for (uint32_t i = 0; i < n; i++)
        starts[((due[i].mixed - cache->first) >> shift) % PLACES + 1]++;
    for (uint32_t p = 0; p < PLACES; p++)
        starts[p + 1] += starts[p];
    for (uint32_t i = 0; i < n; i++)
        spare[starts[((due[i].mixed - cache->first) >> shift) % PLACES]++] = due[i];
    memcpy(due, spare, n * sizeof due[0]);
    for (uint32_t i = 1; i < n; i++) {
        struct dp_due_row row = due[i];
        uint32_t at = i;
        for (; at > 0 && due[at - 1].mixed > row.mixed && moves > 0; at--, moves--)
            due[at] = due[at - 1];
        due[at] = row;
    }
    if (moves == 0)
        qsort(due, n, sizeof due[0], by_mixed);
}

/* A job that writes copies of these rows: they go on changing. *lsn: the greatest of theirs. */
static struct dp_shard_job *portion_job(const struct dp_shard_table *table, const struct portion *portion,
                                        uint64_t *lsn)
{
    uint32_t n = portion->count;
    size_t row_bytes = table->cache->row_bytes;
    char *memory = malloc(n * (sizeof(struct dp_store_key) + sizeof(void *) + row_bytes + sizeof(uint32_t)));
    struct dp_shard_job *job = memory ? dp_shard_job_new(DP_JOB_ROWS, memory) : NULL;
    if (!job)
        return NULL;
    struct dp_store_key *keys = (void *)memory;
    void **rows = (void *)(memory + n * sizeof *keys);
    uint32_t *lengths = (void *)(memory + n * (sizeof *keys + sizeof *rows));
    char *bytes = memory + n * (sizeof *keys + sizeof *rows + sizeof *lengths);
    for (uint32_t i = 0; i < n; i++, bytes += row_bytes) {
        memcpy(bytes, dp_row_cache_row(table->cache, portion->due[i].row), row_bytes);
        keys[i] = (struct dp_store_key){.table = table->id, .mixed = portion->due[i].mixed};
        rows[i] = bytes;
        lengths[i] = (uint32_t)row_bytes;
        *lsn = dp_row_lsn(bytes) > *lsn ? dp_row_lsn(bytes) : *lsn;
    }
    job->store.kind = DP_STORE_WRITE;
    job->store.count = n;
    job->store.keys = keys;
    job->store.rows = rows;
    job->store.row_bytes = lengths;
    return job;
}

/* The table that the cycle is at: the first with due rows. (Tables come and go while it runs: what is due is in no list but
 * theirs.) NULL: all are taken. */
static const struct dp_shard_table *due_table(const struct dp_shard *shard)
{
    for (uint32_t i = 0; i < shard->tables; i++)
        if (shard->table[i]->cache->due_rows > 0)
            return shard->table[i];
    return NULL;
}

static uint32_t portions_max(const struct dp_shard *shard)
{
    uint64_t most = shard->options.cache_bytes / PORTIONS_SHARE / PORTION_BYTES;
    return most < PORTIONS_LEAST ? PORTIONS_LEAST : most > PORTIONS_MAX ? PORTIONS_MAX : (uint32_t)most;
}

/* Due rows from the partition at hand on, of as many as make a portion, into w->ready; none: moves on. Partitions ascend, and
 * each is sorted; of one that has more rows the least keys are taken, so that the portions of a cycle follow each other:
 * files that overlap would have to be merged. */
static enum dp_status take_portion(struct dp_shard *shard)
{
    struct dp_write_back *w = &shard->write_back;
    const struct dp_shard_table *table = due_table(shard);
    struct dp_row_cache *cache = table->cache;
    if (w->table != table->id)
        w->partition = 0;
    w->table = table->id;
    uint32_t most = (uint32_t)(PORTION_BYTES / cache->row_bytes + 1), p = w->partition;
    uint32_t room = most * LISTED;
    most = most < cache->due_rows ? most : cache->due_rows;
    room = room < cache->due_rows ? room : cache->due_rows;
    struct portion portion = {.due = malloc(2 * (size_t)room * sizeof *portion.due)};
    if (!portion.due)
        return DP_NOMEM;
    for (uint64_t slots = 0; p < DP_ROW_PARTITIONS && slots < SLOTS_A_TURN; p++) {
        struct dp_due_row *piece = portion.due + portion.count;
        slots += cache->partition[p].capacity + 1;
        uint32_t taken = dp_row_cache_take_due(cache, p, room - portion.count, list_row, &portion);
        if (taken > 0)
            sort_due(cache, piece, taken, portion.due + room);
        for (; portion.count > most; portion.count--)
            dp_row_cache_set_due(cache, portion.due[portion.count - 1].row);
        if (portion.count == most)
            break; /* there may be more in it */
    }
    enum dp_status st = DP_OK;
    if (portion.count > 0) {
        w->ready_lsn = 0;
        w->ready = portion_job(table, &portion, &w->ready_lsn);
        for (uint32_t i = 0; !w->ready && i < portion.count; i++)
            dp_row_cache_set_due(cache, portion.due[i].row);
        st = w->ready ? DP_OK : DP_NOMEM;
    }
    if (w->ready) {
        w->ready->table = table->id;
        w->ready->partition = w->partition;
        w->ready->partition_end = p < DP_ROW_PARTITIONS ? p + 1 : p;
        for (uint32_t i = w->partition; i < w->ready->partition_end; i++)
            cache->writing[i]++;
    }
    if (st == DP_OK)
        w->partition = p % DP_ROW_PARTITIONS;
    free(portion.due);
    return st;
}

static void submit_ready(struct dp_shard *shard)
{
    struct dp_write_back *w = &shard->write_back;
    if (w->ready && shard->synced >= w->ready_lsn && w->under_way < portions_max(shard) && !w->again &&
        dp_shard_try_submit(shard, w->ready) == DP_OK) {
        w->ready = NULL;
        w->under_way++;
    }
}

/* What a full disk did not take, when it is time; who stops tries once more and does not wait. */
static void submit_again(struct dp_shard *shard)
{
    struct dp_write_back *w = &shard->write_back;
    while (w->again && (is_quiet(shard) || dp_clock_ns(&shard->options.clock) >= w->again_ns)) {
        struct dp_shard_job *job = w->again, *next = job->next;
        job->store.status = DP_OK;
        job->store.error = (struct dp_error){0};
        if (dp_shard_try_submit(shard, job) != DP_OK)
            break;
        w->again = next;
        w->under_way++;
    }
}

static void end_cycle(struct dp_shard *shard)
{
    struct dp_write_back *w = &shard->write_back;
    w->cycle = DP_CYCLE_IDLE;
    w->marked_lsn = w->rows_lsn;
    shard->room.changed = true; /* who waits for clean rows asks for the next */
    DP_COUNT(&shard->counters, write_back_cycles, 1);
}

static uint64_t opening_of(const struct dp_shard *shard)
{
    struct dp_journal_figures figures = {0};
    if (shard->journal)
        dp_journal_figures(shard->journal, &figures);
    DP_ASSERT(!shard->journal || figures.last_lsn == shard->write_back.rows_lsn);
    return figures.incarnation;
}

static void rows_turn(struct dp_shard *shard)
{
    struct dp_write_back *w = &shard->write_back;
    if (!w->ready && !w->again && due_table(shard))
        (void)take_portion(shard); /* no memory: in a later turn */
    submit_ready(shard);
    if (due_table(shard) || w->ready || w->again || w->under_way > 0)
        return;
    if (!shard->journal && !shard->recovery && !w->is_last && !dp_shard_snapshot_wants_cycle(shard)) {
        end_cycle(shard); /* its marks would be worth nothing */
        return;
    }
    /* The last cycle of a drain: nothing is journaled any more, and with these marks the store has all of it. */
    w->ready = dp_shard_marks_job(shard, w->rows_lsn, w->is_last ? opening_of(shard) : 0);
    w->ready_lsn = shard->lsn; /* the ids in it */
    if (w->ready)
        w->cycle = DP_CYCLE_MARKS;
}

void dp_shard_write_back_turn(struct dp_shard *shard)
{
    struct dp_write_back *w = &shard->write_back;
    if (w->failed.status != DP_OK || shard->journal_failed.status != DP_OK) {
        dp_shard_write_back_clear(shard);
        return;
    }
    submit_again(shard);
    if (w->cycle == DP_CYCLE_IDLE && (w->merging > 0 || is_time(shard))) {
        look_at_merges(shard);
        if (is_time(shard))
            begin(shard);
    }
    if (w->cycle == DP_CYCLE_ROWS)
        rows_turn(shard);
    submit_ready(shard);
    dp_shard_journal_sync_ready(shard);
    submit_ready(shard); /* what was synced at once: nobody will wake us for it */
}

bool dp_shard_write_back_goes_on(const struct dp_shard *shard)
{
    const struct dp_write_back *w = &shard->write_back;
    if (w->failed.status != DP_OK || shard->journal_failed.status != DP_OK)
        return false;
    if (w->cycle == DP_CYCLE_IDLE)
        return is_time(shard);
    /* (No row is due and nothing under way: there was no memory for the marks.) */
    return w->cycle == DP_CYCLE_ROWS && !w->ready && !w->again && (due_table(shard) || w->under_way == 0);
}

void dp_shard_write_nothing(struct dp_shard *shard)
{
    DP_ASSERT(shard->options.read_only && shard->write_back.cycle == DP_CYCLE_IDLE);
    (void)dp_fail(&shard->write_back.failed, DP_UNSUPPORTED,
                  "the store is open read-only; give its rows more room (cache_bytes), or start its server "
                  "once where it may write");
}

const struct dp_error *dp_shard_not_writing(const struct dp_shard *shard)
{
    const struct dp_write_back *w = &shard->write_back;
    if (w->failed.status != DP_OK || shard->journal_failed.status != DP_OK)
        return w->failed.status != DP_OK ? &w->failed : &shard->journal_failed;
    return w->full.status != DP_OK ? &w->full : NULL;
}

/* Of a portion that is given up the partition stays as it is: the store may lack its rows. */
void dp_shard_write_back_clear(struct dp_shard *shard)
{
    struct dp_write_back *w = &shard->write_back;
    dp_shard_job_free(w->ready);
    w->ready = NULL;
    while (w->again) {
        struct dp_shard_job *job = w->again;
        w->again = job->next;
        dp_shard_job_free(job);
    }
}

/* True: the job is kept, to be submitted again. Who stops does not wait for space. */
static bool keep_full(struct dp_shard *shard, struct dp_shard_job *job)
{
    struct dp_write_back *w = &shard->write_back;
    struct dp_shard_job **end = &w->again;
    if (job->store.status != DP_FULL || is_quiet(shard))
        return false;
    while (*end)
        end = &(*end)->next;
    *end = job;
    job->next = NULL;
    w->again_ns = dp_clock_ns(&shard->options.clock) + AGAIN_NS;
    if (w->full.status == DP_OK)
        dp_log(DP_LOG_ERROR,
               "shard %" PRIu32
               ": rows cannot be written back: %s; it is tried again each second, pushes go on "
               "until the journal is full",
               shard->options.index, job->store.error.text);
    w->full = job->store.error;
    shard->room.changed = true; /* who waits for clean rows hears why */
    DP_COUNT(&shard->counters, writes_full, 1);
    return true;
}

bool dp_shard_written_back(struct dp_shard *shard, struct dp_shard_job *job)
{
    struct dp_write_back *w = &shard->write_back;
    w->under_way--;
    if (keep_full(shard, job))
        return true;
    shard->room.changed = true;
    if (job->store.status != DP_OK) {
        fail(shard, &job->store.error);
        return false;
    }
    if (w->full.status != DP_OK)
        dp_log(DP_LOG_INFO, "shard %" PRIu32 ": rows are written back again", shard->options.index);
    w->full = (struct dp_error){0};
    if (job->kind == DP_JOB_ROWS) {
        struct dp_row_cache *cache = dp_shard_find_table(shard, job->table)->cache;
        for (uint32_t i = job->partition; i < job->partition_end; i++)
            cache->writing[i]--;
        DP_COUNT(&shard->counters, rows_written_back, job->store.count);
        return false;
    }
    w->last_done = w->is_last;
    w->stored_lsn = w->rows_lsn;
    end_cycle(shard);
    if (shard->journal) {
        dp_journal_release(shard->journal, w->rows_lsn + 1);
        dp_journal_commit(shard->journal); /* a round makes segments out of what was released */
    }
    return false;
}
