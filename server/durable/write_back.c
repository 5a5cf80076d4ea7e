/* Why       A portion is copied at once and then waits for the journal's sync. Marks come after all rows of
 *           the cycle, because they say from where replay must start. A row that changes during its cycle is
 *           dirty again, for the next cycle. Until a portion is in the store, no row of its partition is
 *           evicted (row_cache.h), so a row that is read back has all that was pushed.
 *           While many files wait to be merged, no cycle begins except to free space in the cache. If merging
 *           makes no progress, a cycle begins all the same: only a write finds out that the store has failed.
 *           Partitions are intervals of keys. If a partition has more rows than a portion, its least keys
 *           are written first. So the portions of a cycle ascend, and the store puts waiting ones into one
 *           file. Overlapping files would have to be merged (10 M filled rows: 3.6 M rows/s; 0.35 when the
 *           portions of a partition overlapped). */
#include "server/durable/write_back.h"

#include "common/base/log.h"
#include "common/model/row.h"
#include "server/durable/durable_marks.h"

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
#define L0_MOST        64u                   /* files of rows that are to be merged */
#define MERGE_NS       (60u * 1000000000ull) /* so long a cycle waits while they do not become fewer */
#define DIRTY_SHARE    2u                    /* of the cache's, where rows are evicted */
#define AGAIN_NS       (1000000000ull)       /* the disk was full */

static void check(const struct dp_write_back *w)
{
    DP_ASSERT(w->stored_lsn <= w->marked_lsn && w->marked_lsn <= w->rows_lsn);
    DP_ASSERT(w->written_lsn <= w->began_lsn && w->rows_lsn <= w->began_lsn);
    DP_ASSERT(w->began_lsn <= w->journaling->lsn && w->under_way <= PORTIONS_MAX + 1);
    DP_ASSERT(!w->again || w->full.status != DP_OK || w->failed.status != DP_OK);
}

void dp_write_back_start(struct dp_write_back *w, uint64_t lsn)
{
    DP_ASSERT(w->cycle == DP_CYCLE_IDLE && w->rows_lsn == 0);
    w->rows_lsn = w->marked_lsn = w->stored_lsn = w->began_lsn = w->written_lsn = lsn;
    check(w);
}

/* A full journal says why it gets no space. */
static void say_stuck(struct dp_write_back *w)
{
    struct dp_error why = {0};
    if (w->failed.status != DP_OK) {
        why = w->failed;
        (void)dp_wrap(
            &why, why.status,
            "shard %" PRIu32
            ": its journal is full and rows cannot be written back; repair the disk and restart the "
            "server",
            w->base->index);
    } else if (w->full.status != DP_OK) {
        (void)dp_fail(&why, DP_AGAIN,
                      "shard %" PRIu32 ": its journal is full and rows cannot be written back: %s",
                      w->base->index, w->full.text);
    } else if (w->merging > 0) {
        (void)dp_fail(&why, DP_AGAIN,
                      "shard %" PRIu32 ": its journal is full, and rows are not written back while %" PRIu64
                      " files of them wait to be merged",
                      w->base->index, w->merging);
    }
    dp_journaling_set_stuck(w->journaling, &why);
}

static void fail(struct dp_write_back *w, const struct dp_error *err)
{
    DP_ASSERT(err->status != DP_OK);
    if (w->failed.status != DP_OK)
        return;
    w->failed = *err;
    dp_log(DP_LOG_ERROR,
           "shard %" PRIu32 ": rows cannot be written back: %s; repair the disk and restart the server",
           w->base->index, err->text);
}

static bool is_over(const struct dp_write_back *w)
{
    return w->failed.status != DP_OK || w->journaling->failed.status != DP_OK;
}

/* Only with a journal are marks of use: without one, the store is refused after a crash. */
static bool has_journal(const struct dp_write_back *w)
{
    return w->journaling->journal || w->journaling->replays;
}

/* The greatest lsn that marks can have. */
static uint64_t target(const struct dp_write_back *w)
{
    uint64_t floor = dp_step_buffer_floor(w->kept);
    return floor < w->journaling->lsn ? floor : w->journaling->lsn;
}

bool dp_write_back_has_all(const struct dp_write_back *w)
{
    return w->written_lsn == w->journaling->lsn && w->stored_lsn == target(w);
}

void dp_write_back_wish(struct dp_write_back *w)
{
    w->wanted = true;
}

bool dp_write_back_is_past(const struct dp_write_back *w, uint64_t lsn)
{
    return w->written_lsn >= lsn || (target(w) == w->marked_lsn && w->cycle == DP_CYCLE_IDLE);
}

/* Whether the journal needs a cycle. Without a journal a cycle only serves to free space in the cache. */
static bool is_due(const struct dp_write_back *w)
{
    if (target(w) == w->marked_lsn || !has_journal(w))
        return false;
    return w->wanted || w->journaling->wanted || dp_shard_now(w->base) - w->journaling->since_ns > CYCLE_NS ||
           dp_journaling_fills(w->journaling);
}

/* Holds a cycle back while many files wait to be merged: it would only add more of them, so pushes wait for
 * the journal instead. But if their number does not fall, the store may have failed, which only a write finds
 * out. */
static void look_at_merges(struct dp_write_back *w)
{
    struct dp_store_stats stats = {0};
    uint64_t before = w->merging;
    w->merging = 0;
    if (!is_due(w))
        return;
    w->jobs->store->stats(w->jobs->store->self, &stats);
    if (stats.l0_files <= L0_MOST) {
        w->merging_told = false;
        return;
    }
    w->merging = stats.l0_files;
    if (before == 0 || w->merging < before)
        w->merging_ns = dp_shard_now(w->base);
}

static bool merges_hold_up(const struct dp_write_back *w)
{
    return w->merging > 0 && dp_shard_now(w->base) - w->merging_ns < MERGE_NS;
}

static bool is_time(const struct dp_write_back *w)
{
    if (w->quiet)
        return !w->last_done;
    if (w->journaling->lsn == w->written_lsn && target(w) == w->marked_lsn)
        return false;
    if (w->journaling->lsn != w->written_lsn &&
        (w->budget->wants_clean || (dp_cache_budget_dirty_bytes(w->budget) > w->budget->bytes / DIRTY_SHARE &&
                                    dp_cache_budget_is_tight(w->budget))))
        return true;
    return is_due(w) && !merges_hold_up(w);
}

/* Logs, once until the files are merged, that a cycle begins although their number does not fall. */
static void tell_merging(struct dp_write_back *w)
{
    if (w->merging == 0 || merges_hold_up(w) || w->merging_told)
        return;
    w->merging_told = true;
    dp_log(
        DP_LOG_WARN,
        "shard %" PRIu32 ": %" PRIu64
        " files of rows wait to be merged, and their number has not fallen for %llu s: check the free space "
        "and the speed of the disk; write-back goes on",
        w->base->index, w->merging, MERGE_NS / 1000000000u);
}

static void begin(struct dp_write_back *w)
{
    tell_merging(w);
    DP_ASSERT(w->cycle == DP_CYCLE_IDLE && !w->ready && w->under_way == 0 && !w->again);
    w->merging = 0;
    w->cycle = DP_CYCLE_ROWS;
    w->began_lsn = w->journaling->lsn;
    w->rows_lsn = target(w);
    w->is_last = w->quiet;
    w->wanted = false;
    w->table = w->partition = 0;
    dp_journaling_begin_cycle(w->journaling);
    dp_cache_budget_take_wish(w->budget);
    for (uint32_t i = 0; i < w->tables->count; i++)
        dp_row_cache_begin_cycle(w->tables->table[i]->cache);
    check(w);
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

/* Mixed keys are spread evenly over a partition, so sorting them by their place in it nearly sorts them, in a
 * tenth of qsort's time, which is the shard's. Keys that a peer chose to share a place are left to qsort.
 * spare: as many again. */
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

static void rows_written(void *context, struct dp_io_job *job);

/* Makes a job that writes copies of these rows, since the rows may change before it is done. *lsn: their greatest
 * lsn. */
static struct dp_io_job *portion_job(struct dp_write_back *w, const struct dp_cached_table *table,
                                     const struct portion *portion, uint64_t *lsn)
{
    uint32_t n = portion->count;
    size_t row_bytes = table->cache->row_bytes;
    struct dp_io_rows to;
    struct dp_io_job *job = dp_io_rows_new(DP_STORE_WRITE, n, n * row_bytes, rows_written, w, &to);
    for (uint32_t i = 0; job && i < n; i++) {
        char *row =
            dp_io_rows_add(&to, (struct dp_store_key){table->id, portion->due[i].mixed}, (uint32_t)row_bytes);
        memcpy(row, dp_row_cache_row(table->cache, portion->due[i].row), row_bytes);
        *lsn = dp_row_lsn(row) > *lsn ? dp_row_lsn(row) : *lsn;
    }
    return job;
}

/* The cycle's current table: the first one with due rows. (Tables come and go during a cycle, so only the
 * tables themselves list what is due.) NULL: no rows are due. */
static const struct dp_cached_table *due_table(const struct dp_write_back *w)
{
    for (uint32_t i = 0; i < w->tables->count; i++)
        if (w->tables->table[i]->cache->due_rows > 0)
            return w->tables->table[i];
    return NULL;
}

static uint32_t portions_max(const struct dp_write_back *w)
{
    uint64_t most = w->budget->bytes / PORTIONS_SHARE / PORTION_BYTES;
    return most < PORTIONS_LEAST ? PORTIONS_LEAST : most > PORTIONS_MAX ? PORTIONS_MAX : (uint32_t)most;
}

/* Takes due rows from the current partition on, as many as make a portion, into w->ready; if there are none,
 * moves on. Partitions ascend and each is sorted. If a partition has more rows, its least keys are taken, so
 * that the portions of a cycle follow each other: overlapping files would have to be merged. */
static enum dp_status take_portion(struct dp_write_back *w)
{
    const struct dp_cached_table *table = due_table(w);
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
            break; /* the partition may have more due rows */
    }
    enum dp_status st = DP_OK;
    DP_ASSERT(!w->ready && portion.count <= most);
    if (portion.count > 0) {
        w->ready_lsn = 0;
        w->ready = portion_job(w, table, &portion, &w->ready_lsn);
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

static void submit_ready(struct dp_write_back *w)
{
    if (w->ready && w->journaling->synced >= w->ready_lsn && w->under_way < portions_max(w) && !w->again &&
        dp_io_jobs_submit(w->jobs, w->ready) == DP_OK) {
        DP_ASSERT(w->cycle != DP_CYCLE_IDLE);
        w->ready = NULL;
        w->under_way++;
    }
}

/* Submits the jobs that a full disk refused again, when it is time. A drain tries once more, without
 * waiting. */
static void submit_again(struct dp_write_back *w)
{
    while (w->again && (w->quiet || dp_shard_now(w->base) >= w->again_ns)) {
        struct dp_io_job *job = w->again, *next = job->next;
        job->store.status = DP_OK;
        job->store.error = (struct dp_error){0};
        if (dp_io_jobs_submit(w->jobs, job) != DP_OK)
            break;
        w->again = next;
        w->under_way++;
    }
}

static void end_cycle(struct dp_write_back *w)
{
    DP_ASSERT(w->cycle != DP_CYCLE_IDLE && w->under_way == 0 && !w->ready && !w->again);
    w->cycle = DP_CYCLE_IDLE;
    w->marked_lsn = w->rows_lsn;
    w->written_lsn = w->began_lsn;
    dp_cache_budget_set_changed(w->budget); /* requests that wait for clean rows ask for the next cycle */
    DP_COUNT(&w->base->counters, write_back_cycles, 1);
    check(w);
}

/* Keeps the job, to be submitted again, and returns true; false: a drain does not wait for space. */
static bool keep_full(struct dp_write_back *w, struct dp_io_job *job)
{
    struct dp_io_job **end = &w->again;
    if (job->store.status != DP_FULL || w->quiet)
        return false;
    while (*end)
        end = &(*end)->next;
    *end = job;
    job->next = NULL;
    w->again_ns = dp_shard_now(w->base) + AGAIN_NS;
    if (w->full.status == DP_OK)
        dp_log(
            DP_LOG_ERROR,
            "shard %" PRIu32
            ": rows cannot be written back: %s; the server retries each second, and pushes go on until the "
            "journal is full",
            w->base->index, job->store.error.text);
    w->full = job->store.error;
    DP_COUNT(&w->base->counters, writes_full, 1);
    return true;
}

/* Common to rows and marks. Returns true if the job is written; false: it is not, and was kept or freed. */
static bool is_written(struct dp_write_back *w, struct dp_io_job *job)
{
    DP_ASSERT(w->under_way > 0);
    w->under_way--;
    dp_cache_budget_set_changed(w->budget); /* requests that wait for clean rows retry, or hear why not */
    bool kept = keep_full(w, job), written = !kept && job->store.status == DP_OK;
    if (!kept && !written) {
        fail(w, &job->store.error);
        dp_io_job_free(job);
    }
    if (written && w->full.status != DP_OK && !w->again) {
        dp_log(DP_LOG_INFO, "shard %" PRIu32 ": rows are written back again", w->base->index);
        w->full = (struct dp_error){0};
    }
    say_stuck(w);
    return written;
}

static void rows_written(void *context, struct dp_io_job *job)
{
    struct dp_write_back *w = context;
    if (!is_written(w, job))
        return;
    DP_ASSERT(w->cycle == DP_CYCLE_ROWS && job->partition < job->partition_end);
    struct dp_row_cache *cache = dp_cached_tables_find(w->tables, job->table)->cache;
    for (uint32_t i = job->partition; i < job->partition_end; i++) {
        DP_ASSERT(cache->writing[i] > 0);
        cache->writing[i]--;
    }
    DP_COUNT(&w->base->counters, rows_written_back, job->store.count);
    dp_io_job_free(job);
}

static void marks_written(void *context, struct dp_io_job *job)
{
    struct dp_write_back *w = context;
    if (!is_written(w, job))
        return;
    DP_ASSERT(w->cycle == DP_CYCLE_MARKS && !due_table(w));
    w->last_done = w->is_last;
    end_cycle(w);
    w->stored_lsn = w->rows_lsn;
    dp_journaling_release(w->journaling, w->rows_lsn);
    dp_io_job_free(job);
}

static void rows_turn(struct dp_write_back *w)
{
    if (!w->ready && !w->again && due_table(w))
        (void)take_portion(w); /* without memory: in a later turn */
    submit_ready(w);
    if (due_table(w) || w->ready || w->again || w->under_way > 0)
        return;
    if (!has_journal(w) && !w->is_last) {
        end_cycle(w); /* marks would be of no use */
        return;
    }
    /* The last cycle of a drain: nothing more is journaled, and with these marks the store has everything, unless pushes are
     * kept. */
    bool has_all = w->is_last && w->rows_lsn == w->journaling->lsn;
    uint64_t released = has_all ? dp_journaling_opening(w->journaling) : 0;
    DP_ASSERT(!w->is_last || w->rows_lsn == target(w));
    w->ready = dp_durable_marks_job(w->tables, w->ids, w->steps, w->rows_lsn, released, marks_written, w);
    w->ready_lsn = w->journaling->lsn; /* its push ids are as of this lsn */
    if (w->ready)
        w->cycle = DP_CYCLE_MARKS;
}

void dp_write_back_turn(struct dp_write_back *w)
{
    check(w);
    if (is_over(w)) {
        dp_write_back_clear(w);
        return;
    }
    submit_again(w);
    w->wanted = w->wanted && target(w) != w->marked_lsn;
    if (w->cycle == DP_CYCLE_IDLE && (w->merging > 0 || is_time(w))) {
        look_at_merges(w);
        if (is_time(w))
            begin(w);
    }
    if (w->cycle == DP_CYCLE_ROWS)
        rows_turn(w);
    submit_ready(w);
    if (w->ready)
        dp_journaling_sync(w->journaling, w->ready_lsn);
    submit_ready(w); /* if the sync was immediate, no wake will come */
    say_stuck(w);
}

bool dp_write_back_goes_on(const struct dp_write_back *w)
{
    if (is_over(w))
        return false;
    if (w->cycle == DP_CYCLE_IDLE)
        return is_time(w);
    /* (If no row is due and nothing is under way, there was no memory for the marks.) */
    return w->cycle == DP_CYCLE_ROWS && !w->ready && !w->again && (due_table(w) || w->under_way == 0);
}

/* ---- calls from other files */

void dp_write_back_refuse_all(struct dp_write_back *w)
{
    DP_ASSERT(w->cycle == DP_CYCLE_IDLE);
    (void)dp_fail(&w->failed, DP_UNSUPPORTED,
                  "the store is open read-only; raise cache_bytes, or start its server once without "
                  "--read-only");
}

void dp_write_back_set_quiet(struct dp_write_back *w, bool quiet)
{
    w->quiet = quiet;
}

const struct dp_error *dp_write_back_refuses(const struct dp_write_back *w)
{
    if (is_over(w))
        return w->failed.status != DP_OK ? &w->failed : &w->journaling->failed;
    return w->full.status != DP_OK ? &w->full : NULL;
}

bool dp_write_back_is_busy(const struct dp_write_back *w)
{
    return w->under_way > 0 || w->ready || w->again;
}

/* The partition of an abandoned portion stays locked: the store may lack its rows. */
void dp_write_back_clear(struct dp_write_back *w)
{
    dp_io_job_free(w->ready);
    w->ready = NULL;
    while (w->again) {
        struct dp_io_job *job = w->again;
        w->again = job->next;
        dp_io_job_free(job);
    }
}
