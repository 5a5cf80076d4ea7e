#include "server/store/rocks_store.h"

#include "common/base/queue.h"
#include "server/store/marks.h"
#include "server/store/rows.h"

#include <pthread.h>
#include <signal.h>
#include <stdlib.h>

#define JOBS_MAX     256u /* under way at once: submitted, and not yet given by completed() */
#define TAKE_WAIT_MS 1000u

struct rocks_store {
    struct dp_rocks_db db;
    void (*wake)(void *context);
    void *wake_context;
    struct dp_queue *queue; /* JOBS_MAX long: a submit that is let through finds room */
    pthread_t thread;
    bool thread_runs;
    /* The shard's. */
    uint32_t under_way;
    bool marked_clean;
    /* The thread's; the shard's while nothing is under way (`lock` carries it over). */
    struct dp_error failed; /* of the first write that failed: the store fails all later ones */
    struct dp_rows_scratch scratch;
    /* Both's. */
    pthread_mutex_t lock;
    struct dp_store_job *completed, **completed_end;
};

static bool changes(const struct dp_store_job *job)
{
    return job->kind != DP_STORE_READ;
}

static enum dp_status fail_again(const struct rocks_store *store, struct dp_error *err)
{
    return dp_fail(err, store->failed.status, "an earlier write failed: %s", store->failed.text);
}

static void execute(struct rocks_store *store, struct dp_store_job *job)
{
    if (changes(job) && store->failed.status != DP_OK) {
        job->status = fail_again(store, &job->error);
        return;
    }
    switch (job->kind) {
    case DP_STORE_READ:
        job->status = dp_rows_read(&store->db, &store->scratch, job, &job->error);
        break;
    case DP_STORE_WRITE:
        job->status = dp_rows_write(&store->db, job, &job->error);
        break;
    case DP_STORE_MARKS:
        job->status = dp_marks_put(&store->db, job->marks, job->count, &job->error);
        break;
    }
    if (changes(job) && job->status != DP_OK)
        store->failed = job->error;
}

static void *run(void *context)
{
    struct rocks_store *store = context;
    void *item = NULL;
    for (;;) {
        enum dp_status st = dp_queue_take(store->queue, &item, TAKE_WAIT_MS);
        if (st == DP_STOPPING)
            break;
        if (st != DP_OK)
            continue;
        struct dp_store_job *job = item;
        execute(store, job);
        job->next = NULL;
        DP_ASSERT(pthread_mutex_lock(&store->lock) == 0);
        *store->completed_end = job;
        store->completed_end = &job->next;
        DP_ASSERT(pthread_mutex_unlock(&store->lock) == 0);
        store->wake(store->wake_context);
    }
    return NULL;
}

static void check(const struct dp_store_job *job)
{
    for (uint32_t i = 1; i < job->count && job->kind != DP_STORE_MARKS; i++)
        DP_ASSERT(dp_key_compare(job->keys[i - 1], job->keys[i]) < (job->kind == DP_STORE_READ));
    for (uint32_t i = 0; i < job->count && job->kind == DP_STORE_MARKS; i++)
        DP_ASSERT(!dp_store_mark_is_own(&job->marks[i]));
}

static enum dp_status rocks_submit(void *self, struct dp_store_job *job)
{
    struct rocks_store *store = self;
    DP_ASSERT(!(store->marked_clean && changes(job)));
    check(job);
    if (store->under_way == JOBS_MAX)
        return DP_AGAIN;
    store->under_way++;
    job->status = DP_OK;
    job->error = (struct dp_error){0};
    DP_ASSERT(dp_queue_put(store->queue, job, 0) == DP_OK);
    return DP_OK;
}

static struct dp_store_job *rocks_completed(void *self)
{
    struct rocks_store *store = self;
    DP_ASSERT(pthread_mutex_lock(&store->lock) == 0);
    struct dp_store_job *job = store->completed;
    if (job) {
        store->completed = job->next;
        if (!store->completed)
            store->completed_end = &store->completed;
        job->next = NULL;
    }
    DP_ASSERT(pthread_mutex_unlock(&store->lock) == 0);
    store->under_way -= job != NULL;
    return job;
}

static enum dp_status rocks_visit_marks(void *self, const void *prefix, size_t prefix_bytes,
                                        enum dp_status (*visit)(void *context,
                                                                const struct dp_store_mark *mark,
                                                                struct dp_error *err),
                                        void *context, struct dp_error *err)
{
    struct rocks_store *store = self;
    DP_ASSERT(store->under_way == 0);
    return dp_marks_visit(&store->db, prefix, prefix_bytes, visit, context, err);
}

static enum dp_status rocks_visit_rows(void *self,
                                       enum dp_status (*visit)(void *context, struct dp_store_key key,
                                                               const void *row, size_t row_bytes,
                                                               struct dp_error *err),
                                       void *context, struct dp_error *err)
{
    struct rocks_store *store = self;
    DP_ASSERT(store->under_way == 0);
    return dp_rows_visit(&store->db, visit, context, err);
}

static void destroy(struct rocks_store *store)
{
    if (store->thread_runs) {
        dp_queue_close(store->queue);
        DP_ASSERT(pthread_join(store->thread, NULL) == 0);
    }
    dp_rocks_db_close(&store->db);
    dp_queue_free(&store->queue);
    (void)pthread_mutex_destroy(&store->lock);
    free(store);
}

static void rocks_close(void *self)
{
    struct rocks_store *store = self;
    DP_ASSERT(store->under_way == 0);
    destroy(store);
}

/* Order: the state mark is last, so that nothing that fails here leaves a store that looks open. */
static enum dp_status start(struct rocks_store *store, const struct dp_rocks_store_options *options,
                            struct dp_error *err)
{
    enum dp_status st = dp_queue_new(JOBS_MAX, &store->queue, err);
    if (st == DP_OK)
        st = dp_rocks_db_open(options->directory, &store->db, err);
    if (st != DP_OK)
        return st;
    store->thread_runs = pthread_create(&store->thread, NULL, run, store) == 0;
    if (!store->thread_runs)
        return dp_fail(err, DP_NOMEM, "store %s: no thread could be started", options->directory);
    return dp_marks_enter(&store->db, options, err);
}

enum dp_status dp_rocks_store_open(const struct dp_rocks_store_options *options, struct dp_store *out,
                                   struct dp_error *err)
{
    DP_ASSERT(options->directory && options->wake);
    struct rocks_store *store = calloc(1, sizeof *store);
    if (!store)
        return dp_fail(err, DP_NOMEM, "store %s", options->directory);
    store->wake = options->wake;
    store->wake_context = options->wake_context;
    store->completed_end = &store->completed;
    DP_ASSERT(pthread_mutex_init(&store->lock, NULL) == 0);
    /* Signals are for the caller's threads: the thread here and RocksDB's own start with all blocked. */
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
                             .visit_marks = rocks_visit_marks,
                             .visit_rows = rocks_visit_rows,
                             .close = rocks_close,
                             .self = store};
    return DP_OK;
}

enum dp_status dp_rocks_store_mark_clean(struct dp_store *store, struct dp_error *err)
{
    struct rocks_store *self = store->self;
    DP_ASSERT(store->close == rocks_close && self->under_way == 0);
    if (self->failed.status != DP_OK)
        return fail_again(self, err);
    enum dp_status st = dp_marks_leave(&self->db, err);
    self->marked_clean = st == DP_OK;
    return st;
}
