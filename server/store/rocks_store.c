#include "server/store/rocks_store.h"

#include "common/base/blocking.h"
#include "common/base/deadline.h"
#include "common/base/queue.h"
#include "server/store/marks.h"
#include "server/store/read_lock.h"
#include "server/store/rocks_batch.h"
#include "server/store/rocks_link.h"
#include "server/store/rocks_stats.h"
#include "server/store/rows.h"
#include "server/store/space.h"

#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#define JOBS_MAX        256u /* jobs under way: submitted, and not yet returned by completed() */
#define READERS_DEFAULT 2u
#define PART_KEYS_MIN   512u  /* a read of more than two of these is split over the readers */
#define COUNT_ROWS      4096u /* rows in a slice: some milliseconds of a reader */
#define COUNT_YIELDS    64u   /* how often a slice gives way to waiting reads */
#define TAKE_WAIT_MS    1000u
#define WAIT_MS         1000u
#define WRITER_NICE     10

/* A part of a read: one reader's work. */
struct rocks_part {
    struct ticket *ticket;
    uint32_t from, count;
};

/* A job under way. */
struct ticket {
    struct dp_store_job *job;
    struct rocks_part parts[DP_ROCKS_READERS_MAX]; /* READ */
    uint32_t parts_left;                           /* `lock` guards it */
    struct ticket *next;                           /* in `unused` or in `completed` */
};

struct rocks_reader {
    struct rocks_store *store;
    pthread_t thread;
    struct dp_rows_scratch scratch;
};

/* The count under way; there is at most one. */
struct rocks_counting {
    struct dp_count count;
    uint32_t yields; /* since the last slice */
};

struct rocks_store {
    struct dp_rocks_db db;
    bool read_only;
    struct dp_store_id id;       /* of this opening */
    int read_lock;               /* -1: none */
    struct dp_rocks_stats stats; /* taken by the writer */
    void (*wake)(void *context);
    void *wake_context;
    bool writes_first, full_fails;
    /* Long enough for all tickets, so that a put never fails. */
    struct dp_queue *changes; /* of tickets: WRITE, MARKS */
    struct dp_queue *reads;   /* of parts */
    pthread_t writer;
    struct rocks_counting counting; /* used by the shard, then by the reader that has its part */
    struct rocks_reader *readers;   /* [readers_len_max] */
    uint32_t readers_len_max, readers_len;
    bool writer_runs;
    /* The shard's. */
    uint32_t under_way;
    bool marked_clean;
    struct ticket tickets[JOBS_MAX], *unused;
    /* The writer's; the shard may read it while nothing is under way (`lock` orders the accesses). */
    struct dp_error failed; /* of the first failed write: all later writes fail with it */
    struct dp_error full;   /* full_fails: it was of a full disk */
    /* All threads'; guarded by `lock`. */
    pthread_mutex_t lock;
    pthread_cond_t completed_changed;
    struct ticket *completed, **completed_end;
};

/* Whether the writer does the job. */
static bool changes(const struct dp_store_job *job)
{
    return dp_store_kind_is_ordered(job->kind);
}

static enum dp_status fail_again(const struct rocks_store *store, struct dp_error *err)
{
    return dp_fail(err, store->failed.status, "an earlier write failed: %s", store->failed.text);
}

/* Records the result of one part of a job. The job gets the status of the first part that failed; the last
 * part to finish completes it. */
static void finish_part(struct rocks_store *store, struct ticket *ticket, enum dp_status st,
                        const struct dp_error *err)
{
    struct dp_store_job *job = ticket->job;
    DP_ASSERT(pthread_mutex_lock(&store->lock) == 0);
    if (st != DP_OK && job->status == DP_OK) {
        job->status = st;
        job->error = *err;
    }
    bool last = --ticket->parts_left == 0;
    if (last) {
        ticket->next = NULL;
        *store->completed_end = ticket;
        store->completed_end = &ticket->next;
        DP_ASSERT(pthread_cond_signal(&store->completed_changed) == 0);
    }
    DP_ASSERT(pthread_mutex_unlock(&store->lock) == 0);
    if (last && store->wake)
        store->wake(store->wake_context);
}

/* A batch, with the tickets of its jobs. */
struct ticket_batch {
    struct ticket *ticket[DP_ROCKS_BATCH_MAX];
    struct dp_rocks_batch batch;
};

static bool join(struct ticket_batch *all, struct ticket *ticket)
{
    if (!dp_rocks_batch_join(&all->batch, ticket->job))
        return false;
    all->ticket[all->batch.count - 1] = ticket;
    return true;
}

static void change(struct rocks_store *store, const struct ticket_batch *all)
{
    struct dp_error err = {0};
    enum dp_status st = DP_OK;
    const struct dp_store_job *first = all->batch.job[0];
    if (first->kind == DP_STORE_UNLINK)
        st = dp_rocks_link_remove(store->db.directory, first->link_name, &err);
    else if (store->failed.status != DP_OK)
        st = fail_again(store, &err);
    else if (first->kind == DP_STORE_LINK)
        st = dp_rocks_link_make(&store->db, first->link_name, &err);
    else
        st = dp_rocks_batch_write(&store->db, &all->batch, &err);
    if (st == DP_FULL && store->full_fails) {
        store->full = err;
        st = err.status = DP_IO;
    }
    if (st != DP_OK && st != DP_FULL && dp_store_kind_poisons(first->kind) && store->failed.status == DP_OK)
        store->failed = err;
    for (uint32_t i = 0; i < all->batch.count; i++)
        finish_part(store, all->ticket[i], st, &err);
}

static time_t seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return now.tv_sec;
}

static void *run_writer(void *context)
{
    struct rocks_store *store = context;
    void *item = NULL;
    /* Like compaction, write-back uses the time that the shard leaves. On Linux this changes the calling
     * thread only. */
    if (!store->writes_first)
        (void)setpriority(PRIO_PROCESS, 0, WRITER_NICE);
    (void)prctl(PR_SET_NAME, "store write");
    struct ticket *next = NULL; /* taken from the queue, but could not join the last batch */
    for (time_t stats_at = 0;;) {
        struct ticket_batch all = {.batch.count = 0};
        enum dp_status st = next ? DP_OK : dp_queue_take(store->changes, &item, TAKE_WAIT_MS);
        if (st == DP_STOPPING)
            return NULL;
        for (next = st == DP_OK && !next ? item : next; next && join(&all, next);)
            next = dp_queue_take(store->changes, &item, 0) == DP_OK ? item : NULL;
        if (all.batch.count > 0)
            change(store, &all);
        if (seconds_now() != stats_at) {
            stats_at = seconds_now();
            dp_rocks_stats_take(&store->db, &store->stats);
        }
    }
}

/* Counts one slice. It gives way to waiting reads, but not for ever. */
static void count_some(struct rocks_store *store, struct rocks_part *part)
{
    struct rocks_counting *counting = &store->counting;
    struct dp_store_job *job = part->ticket->job;
    struct dp_error err = {0};
    enum dp_status st = DP_OK;
    bool done = false;
    if (atomic_load(&job->cancelled)) {
        st = dp_fail(&err, DP_STOPPING, "store %s: the count of its rows was cancelled", store->db.directory);
    } else if (dp_queue_len(store->reads) > 0 && counting->yields < COUNT_YIELDS) {
        counting->yields++;
    } else {
        counting->yields = 0;
        st = dp_count_step(&store->db, &counting->count, job, COUNT_ROWS, &done, &err);
    }
    if (st == DP_OK && !done) {
        DP_ASSERT(dp_queue_put(store->reads, part, 0) == DP_OK);
        return;
    }
    dp_count_end(&counting->count);
    finish_part(store, part->ticket, st, &err);
}

static void *run_reader(void *context)
{
    struct rocks_reader *reader = context;
    struct rocks_store *store = reader->store;
    void *item = NULL;
    (void)prctl(PR_SET_NAME, "store read");
    for (;;) {
        enum dp_status st = dp_queue_take(store->reads, &item, TAKE_WAIT_MS);
        if (st == DP_STOPPING)
            return NULL;
        if (st != DP_OK)
            continue;
        struct rocks_part *part = item;
        struct dp_error err = {0};
        if (part->ticket->job->kind == DP_STORE_COUNT) {
            count_some(store, part);
            continue;
        }
        st = dp_rows_read(&store->db, &reader->scratch, part->ticket->job, part->from, part->count, &err);
        finish_part(store, part->ticket, st, &err);
    }
}

static void check(const struct dp_store_job *job)
{
    for (uint32_t i = 1; i < job->count && job->kind == DP_STORE_COUNT; i++)
        DP_ASSERT(job->keys[i - 1].table < job->keys[i].table);
    for (uint32_t i = 1; i < job->count && job->kind != DP_STORE_MARKS; i++)
        DP_ASSERT(dp_key_compare(job->keys[i - 1], job->keys[i]) < (job->kind == DP_STORE_READ));
    for (uint32_t i = 0; i < job->count && job->kind == DP_STORE_MARKS; i++)
        DP_ASSERT(!dp_store_mark_is_own(&job->marks[i]));
}

/* How many parts to split a read into: at most one for each reader, each of at least PART_KEYS_MIN keys. */
static uint32_t parts_of(const struct rocks_store *store, uint32_t count)
{
    if (count <= 2 * PART_KEYS_MIN)
        return 1;
    uint32_t parts = count / PART_KEYS_MIN;
    return parts < store->readers_len ? parts : store->readers_len;
}

static void put_read(struct rocks_store *store, struct ticket *ticket)
{
    uint32_t count = ticket->job->count, parts = parts_of(store, count), from = 0;
    ticket->parts_left = parts; /* before the first put: a reader may finish its part at once */
    for (uint32_t i = 0; i < parts; i++) {
        uint32_t upto = (uint32_t)((uint64_t)count * (i + 1) / parts);
        ticket->parts[i] = (struct rocks_part){ticket, from, upto - from};
        from = upto;
        DP_ASSERT(dp_queue_put(store->reads, &ticket->parts[i], 0) == DP_OK);
    }
}

/* Creates the iterator here, so that the count is as of the submit. */
static void put_count(struct rocks_store *store, struct ticket *ticket)
{
    DP_ASSERT(!store->counting.count.at);
    for (uint32_t i = 0; i < ticket->job->count; i++)
        ticket->job->counts[i] = 0;
    dp_count_begin(&store->db, &store->counting.count);
    ticket->parts_left = 1;
    ticket->parts[0] = (struct rocks_part){ticket, 0, 0};
    DP_ASSERT(dp_queue_put(store->reads, &ticket->parts[0], 0) == DP_OK);
}

static enum dp_status rocks_submit(void *self, struct dp_store_job *job)
{
    struct rocks_store *store = self;
    struct ticket *ticket = store->unused;
    DP_ASSERT(!((store->marked_clean || store->read_only) && changes(job)));
    check(job);
    if (!ticket)
        return DP_AGAIN;
    store->unused = ticket->next;
    store->under_way++;
    ticket->job = job;
    job->status = DP_OK;
    job->error = (struct dp_error){0};
    if (changes(job)) {
        ticket->parts_left = 1;
        DP_ASSERT(dp_queue_put(store->changes, ticket, 0) == DP_OK);
    } else if (job->kind == DP_STORE_COUNT) {
        put_count(store, ticket);
    } else {
        put_read(store, ticket);
    }
    return DP_OK;
}

static struct dp_store_job *rocks_completed(void *self)
{
    struct rocks_store *store = self;
    DP_ASSERT(pthread_mutex_lock(&store->lock) == 0);
    struct ticket *ticket = store->completed;
    if (ticket) {
        store->completed = ticket->next;
        if (!store->completed)
            store->completed_end = &store->completed;
    }
    DP_ASSERT(pthread_mutex_unlock(&store->lock) == 0);
    if (!ticket)
        return NULL;
    struct dp_store_job *job = ticket->job;
    ticket->next = store->unused;
    store->unused = ticket;
    store->under_way--;
    job->next = NULL;
    return job;
}

static void rocks_wait(void *self)
{
    struct rocks_store *store = self;
    struct timespec until = dp_deadline_in_ms(WAIT_MS);
    dp_blocking();
    DP_ASSERT(pthread_mutex_lock(&store->lock) == 0);
    while (!store->completed && store->under_way > 0 &&
           pthread_cond_timedwait(&store->completed_changed, &store->lock, &until) == 0)
        continue;
    DP_ASSERT(pthread_mutex_unlock(&store->lock) == 0);
}

static enum dp_status rocks_visit_marks(void *self, const void *prefix, size_t prefix_bytes,
                                        dp_store_visit_mark *visit, void *context, struct dp_error *err)
{
    struct rocks_store *store = self;
    DP_ASSERT(store->under_way == 0);
    return dp_marks_visit(&store->db, prefix, prefix_bytes, visit, context, err);
}

static enum dp_status rocks_visit_rows(void *self, dp_store_visit_row *visit, void *context,
                                       struct dp_error *err)
{
    struct rocks_store *store = self;
    DP_ASSERT(store->under_way == 0);
    return dp_rows_visit(&store->db, visit, context, err);
}

static void rocks_stats(void *self, struct dp_store_stats *out)
{
    struct rocks_store *store = self;
    dp_rocks_stats_get(&store->stats, out);
}

static enum dp_status rocks_room(void *self, uint64_t bytes, struct dp_error *err)
{
    const struct rocks_store *store = self;
    return dp_space_check(store->db.directory, bytes, DP_SPACE_ROWS, err);
}

static void destroy(struct rocks_store *store)
{
    if (store->changes)
        dp_queue_close(store->changes);
    if (store->reads)
        dp_queue_close(store->reads);
    if (store->writer_runs)
        DP_ASSERT(pthread_join(store->writer, NULL) == 0);
    for (uint32_t i = 0; i < store->readers_len; i++)
        DP_ASSERT(pthread_join(store->readers[i].thread, NULL) == 0);
    dp_rocks_db_close(&store->db);
    dp_read_lock_give_back(&store->read_lock);
    dp_queue_free(&store->changes);
    dp_queue_free(&store->reads);
    (void)pthread_cond_destroy(&store->completed_changed);
    (void)pthread_mutex_destroy(&store->lock);
    free(store->readers);
    free(store);
}

static void rocks_close(void *self)
{
    struct rocks_store *store = self;
    DP_ASSERT(store->under_way == 0);
    destroy(store);
}

static enum dp_status start_threads(struct rocks_store *store, const char *directory, struct dp_error *err)
{
    store->writer_runs = !store->read_only && pthread_create(&store->writer, NULL, run_writer, store) == 0;
    bool started = store->writer_runs || store->read_only;
    while (started && store->readers_len < store->readers_len_max) {
        struct rocks_reader *reader = &store->readers[store->readers_len];
        reader->store = store;
        started = pthread_create(&reader->thread, NULL, run_reader, reader) == 0;
        store->readers_len += started;
    }
    return started ? DP_OK : dp_fail(err, DP_NOMEM, "store %s: cannot start a thread", directory);
}

static enum dp_status open_db(struct rocks_store *store, const char *directory, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    if (store->read_only) {
        st = dp_read_lock_take(directory, &store->read_lock, err);
        return st == DP_OK ? dp_rocks_db_open_to_read(directory, &store->db, err) : st;
    }
    st = dp_rocks_db_open(directory, &store->db, err);
    /* After RocksDB's lock: those of a server that runs stay. */
    return st == DP_OK ? dp_rocks_link_sweep(directory, err) : st;
}

/* Asks the gate about a directory without a store, before anything is created in it. */
static enum dp_status admit_new(const struct dp_rocks_store_options *options, struct dp_store_id *id,
                                struct dp_error *err)
{
    char current[DP_ROCKS_PLACE_BYTES];
    const struct dp_store_id none = {0};
    (void)snprintf(current, sizeof current, "%s/CURRENT", options->directory);
    return access(current, F_OK) == 0 ? DP_OK : dp_store_gate_admit(options->gate, &none, true, id, err);
}

static enum dp_status start(struct rocks_store *store, const struct dp_rocks_store_options *options,
                            struct dp_error *err)
{
    bool recovers = false;
    struct dp_store_id id = {0};
    enum dp_status st = dp_queue_new(JOBS_MAX, &store->changes, err);
    if (st == DP_OK)
        st = dp_queue_new((size_t)JOBS_MAX * store->readers_len_max, &store->reads, err);
    if (st == DP_OK && !store->read_only)
        st = admit_new(options, &id, err);
    if (st == DP_OK)
        st = open_db(store, options->directory, err);
    if (st == DP_OK) {
        dp_rocks_stats_take(&store->db, &store->stats);
        st = start_threads(store, options->directory, err);
    }
    if (st == DP_OK)
        st = store->read_only ? dp_marks_look(&store->db, options, &id, &recovers, err)
                              : dp_marks_enter(&store->db, options, &id, &recovers, err);
    store->id = id;
    if (st == DP_OK && options->recovers)
        *options->recovers = recovers;
    if (st == DP_OK && options->id)
        *options->id = id;
    return st;
}

static struct rocks_store *make(const struct dp_rocks_store_options *options)
{
    uint32_t readers = options->readers ? options->readers : READERS_DEFAULT;
    struct rocks_store *store = calloc(1, sizeof *store);
    if (!store)
        return NULL;
    store->readers = calloc(readers, sizeof store->readers[0]);
    if (!store->readers) {
        free(store);
        return NULL;
    }
    store->readers_len_max = readers;
    store->read_only = options->read_only;
    store->read_lock = -1;
    store->wake = options->wake;
    store->wake_context = options->wake_context;
    store->writes_first = options->writes_first;
    store->full_fails = options->full_fails;
    store->completed_end = &store->completed;
    for (uint32_t i = 0; i < JOBS_MAX; i++) {
        store->tickets[i].next = store->unused;
        store->unused = &store->tickets[i];
    }
    pthread_condattr_t monotonic;
    DP_ASSERT(pthread_mutex_init(&store->lock, NULL) == 0);
    DP_ASSERT(pthread_condattr_init(&monotonic) == 0 &&
              pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0 &&
              pthread_cond_init(&store->completed_changed, &monotonic) == 0 &&
              pthread_condattr_destroy(&monotonic) == 0);
    return store;
}

enum dp_status dp_rocks_store_open(const struct dp_rocks_store_options *options, struct dp_store *out,
                                   struct dp_error *err)
{
    DP_ASSERT(options->directory);
    if (options->readers > DP_ROCKS_READERS_MAX)
        return dp_fail(err, DP_INVALID, "store %s: %u readers, at most %u are allowed", options->directory,
                       (unsigned)options->readers, DP_ROCKS_READERS_MAX);
    struct rocks_store *store = make(options);
    if (!store)
        return dp_fail(err, DP_NOMEM, "store %s: no memory to open it", options->directory);
    /* Only the caller's threads take signals: the store's own start with all of them blocked. */
    sigset_t all, before;
    DP_ASSERT(sigfillset(&all) == 0 && pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    enum dp_status st = start(store, options, err);
    DP_ASSERT(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    if (st != DP_OK) {
        destroy(store);
        return st;
    }
    *out = (struct dp_store){.submit = rocks_submit,
                             .completed = rocks_completed,
                             .wait = rocks_wait,
                             .visit_marks = rocks_visit_marks,
                             .visit_rows = rocks_visit_rows,
                             .stats = rocks_stats,
                             .room = rocks_room,
                             .close = rocks_close,
                             .self = store};
    return DP_OK;
}

/* Registered first: a server that is killed in between, or refused, leaves the store as clean as it was. */
enum dp_status dp_rocks_store_begin(struct dp_store *store, const struct dp_rocks_store_options *options,
                                    struct dp_error *err)
{
    struct rocks_store *self = store->self;
    enum dp_status st = DP_OK;
    DP_ASSERT(store->close == rocks_close && !self->read_only);
    if (options->gate) {
        st = options->gate->entered(options->gate->context, &self->id, err);
        self->id.before = self->id.opening;
    }
    return st == DP_OK ? dp_marks_begin(&self->db, &self->id, options->journaled, err) : st;
}

enum dp_status dp_rocks_store_mark_clean(struct dp_store *store, struct dp_error *err)
{
    struct rocks_store *self = store->self;
    DP_ASSERT(store->close == rocks_close && self->under_way == 0 && !self->read_only);
    if (self->failed.status != DP_OK)
        return fail_again(self, err);
    enum dp_status st = dp_marks_leave(&self->db, err);
    self->marked_clean = st == DP_OK;
    return st;
}

bool dp_rocks_store_is_idle(const struct dp_store *store)
{
    const struct rocks_store *self = store->self;
    return self->under_way == 0;
}

bool dp_rocks_store_was_full(const struct dp_store *store, struct dp_error *err)
{
    const struct rocks_store *self = store->self;
    if (self->full.status == DP_OK)
        return false;
    *err = self->full;
    return true;
}
