#define _GNU_SOURCE /* syscall */
#include "server/checkpoint/copier_thread.h"

#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define COPIER_NICE 10 /* as the store's writer: with 19 a copy would hardly end while shards are busy */
/* linux/ioprio.h, which some systems lack. */
#define IO_WHO_PROCESS 1
#define IO_CLASS_IDLE  (3 << 13)

struct copying_shard {
    struct dp_copier_thread *thread;
    struct dp_copier_thread_place to;
    char *directory;
    struct dp_copy_job *waiting, *running, *completed; /* lists by `next`, oldest first */
    struct dp_copy_run *half;                          /* the tail of half_job is copied, its files are not */
    struct dp_copy_job *half_job;
    struct copying_shard *next;
};

struct dp_copier_thread {
    pthread_mutex_t lock; /* of all that follows, and of the shards' lists */
    pthread_cond_t changed;
    pthread_t thread;
    bool stop;
    struct copying_shard *shards;
};

static void put_last(struct dp_copy_job **list, struct dp_copy_job *job)
{
    job->next = NULL;
    while (*list)
        list = &(*list)->next;
    *list = job;
}

static struct dp_copy_job *take_first(struct dp_copy_job **list)
{
    struct dp_copy_job *job = *list;
    if (job)
        *list = job->next;
    return job;
}

/* ---- the thread */

/* Lock held. The next job whose tail is not copied. */
static struct copying_shard *next_tail(const struct dp_copier_thread *thread)
{
    struct copying_shard *shard = thread->shards;
    while (shard && (!shard->waiting || shard->half || shard->running))
        shard = shard->next;
    return shard;
}

/* Lock held. Tails come first: each shard's journal is held until its own is copied. */
static struct copying_shard *next_shard(const struct dp_copier_thread *thread)
{
    struct copying_shard *shard = next_tail(thread);
    if (shard)
        return shard;
    shard = thread->shards;
    while (shard && !shard->half)
        shard = shard->next;
    return shard;
}

/* Lock held. */
static void complete(struct copying_shard *shard, struct dp_copy_job *job)
{
    put_last(&shard->completed, job);
    if (shard->to.wake)
        shard->to.wake(shard->to.wake_context);
}

/* Lock held, and let go while it works. */
static void work(struct dp_copier_thread *thread, struct copying_shard *shard)
{
    struct dp_copy_run *half = shard->half;
    struct dp_copy_job *job = half ? shard->half_job : take_first(&shard->waiting);
    DP_ASSERT(!shard->running && job);
    shard->running = job;
    shard->half = NULL;
    (void)pthread_mutex_unlock(&thread->lock);
    if (half)
        dp_copy_run_end(&half);
    else
        half = dp_copy_run_begin(job, &shard->to.place);
    (void)pthread_mutex_lock(&thread->lock);
    shard->running = NULL;
    shard->half = half;
    shard->half_job = job;
    if (!half)
        complete(shard, job);
    (void)pthread_cond_broadcast(&thread->changed);
}

/* While a shard's files are copied: a tail that is submitted then does not wait for their end. */
static void copy_tails(void *context)
{
    struct dp_copier_thread *thread = context;
    struct copying_shard *shard;
    (void)pthread_mutex_lock(&thread->lock);
    while ((shard = next_tail(thread)))
        work(thread, shard);
    (void)pthread_mutex_unlock(&thread->lock);
}

/* A copy takes what pushes leave of processors and disks. On Linux these change the calling thread only; where they have no effect, a copy
 * is only faster, and pushes slower. */
static void yield_to_others(void)
{
    (void)setpriority(PRIO_PROCESS, 0, COPIER_NICE);
    (void)syscall(SYS_ioprio_set, IO_WHO_PROCESS, 0, IO_CLASS_IDLE);
    (void)prctl(PR_SET_NAME, "checkpoint copy");
}

/* The wake comes under the lock, so that a shard that was removed hears none. */
static void *run(void *context)
{
    struct dp_copier_thread *thread = context;
    yield_to_others();
    (void)pthread_mutex_lock(&thread->lock);
    while (!thread->stop) {
        struct copying_shard *shard = next_shard(thread);
        if (!shard) {
            (void)pthread_cond_wait(&thread->changed, &thread->lock);
            continue;
        }
        work(thread, shard);
    }
    (void)pthread_mutex_unlock(&thread->lock);
    return NULL;
}

enum dp_status dp_copier_thread_open(struct dp_copier_thread **out, struct dp_error *err)
{
    struct dp_copier_thread *thread = calloc(1, sizeof *thread);
    if (!thread || pthread_mutex_init(&thread->lock, NULL) != 0) {
        free(thread);
        return dp_fail(err, DP_NOMEM, "no memory for the thread that copies checkpoints");
    }
    bool made = pthread_cond_init(&thread->changed, NULL) == 0;
    if (made && pthread_create(&thread->thread, NULL, run, thread) == 0) {
        *out = thread;
        return DP_OK;
    }
    if (made)
        (void)pthread_cond_destroy(&thread->changed);
    (void)pthread_mutex_destroy(&thread->lock);
    free(thread);
    return dp_fail(err, DP_NOMEM, "cannot start the thread that copies checkpoints");
}

void dp_copier_thread_close(struct dp_copier_thread **out)
{
    struct dp_copier_thread *thread = *out;
    if (!thread)
        return;
    (void)pthread_mutex_lock(&thread->lock);
    DP_ASSERT(!thread->shards);
    thread->stop = true;
    (void)pthread_cond_broadcast(&thread->changed);
    (void)pthread_mutex_unlock(&thread->lock);
    (void)pthread_join(thread->thread, NULL);
    (void)pthread_cond_destroy(&thread->changed);
    (void)pthread_mutex_destroy(&thread->lock);
    free(thread);
    *out = NULL;
}

/* ---- a shard's copier */

static void submit(void *self, struct dp_copy_job *job)
{
    struct copying_shard *shard = self;
    (void)pthread_mutex_lock(&shard->thread->lock);
    put_last(&shard->waiting, job);
    (void)pthread_cond_broadcast(&shard->thread->changed);
    (void)pthread_mutex_unlock(&shard->thread->lock);
}

static struct dp_copy_job *completed(void *self)
{
    struct copying_shard *shard = self;
    (void)pthread_mutex_lock(&shard->thread->lock);
    struct dp_copy_job *job = take_first(&shard->completed);
    (void)pthread_mutex_unlock(&shard->thread->lock);
    return job;
}

static void complete_cancelled(struct copying_shard *shard, struct dp_copy_job *job)
{
    job->status = dp_fail(&job->error, DP_STOPPING, "the copy was cancelled");
    complete(shard, job);
}

/* Jobs that still wait for those of other shards are completed at once. */
static void cancel(void *self, struct dp_copy_job *job)
{
    struct copying_shard *shard = self;
    atomic_store(&job->cancelled, true);
    (void)pthread_mutex_lock(&shard->thread->lock);
    struct dp_copy_job **at = &shard->waiting;
    while (*at && *at != job)
        at = &(*at)->next;
    if (*at) {
        *at = job->next;
        complete_cancelled(shard, job);
    } else if (shard->half && shard->half_job == job) {
        dp_copy_run_drop(&shard->half);
        complete_cancelled(shard, job);
    }
    (void)pthread_mutex_unlock(&shard->thread->lock);
}

enum dp_status dp_copier_thread_add(struct dp_copier_thread *thread,
                                    const struct dp_copier_thread_place *place, struct dp_copier *out,
                                    struct dp_error *err)
{
    struct copying_shard *shard = calloc(1, sizeof *shard);
    char *directory = strdup(place->place.directory);
    if (!shard || !directory) {
        free(shard);
        free(directory);
        return dp_fail(err, DP_NOMEM, "no memory for the copier of a shard");
    }
    shard->thread = thread;
    shard->to = *place;
    shard->to.place.directory = shard->directory = directory;
    shard->to.place.between = copy_tails;
    shard->to.place.between_context = thread;
    (void)pthread_mutex_lock(&thread->lock);
    shard->next = thread->shards;
    thread->shards = shard;
    (void)pthread_mutex_unlock(&thread->lock);
    *out = (struct dp_copier){submit, completed, cancel, shard};
    return DP_OK;
}

static void free_all(struct dp_copy_job **list)
{
    for (struct dp_copy_job *job; (job = take_first(list));)
        dp_copy_job_free(&job);
}

void dp_copier_thread_remove(struct dp_copier *copier)
{
    struct copying_shard *shard = copier->self;
    *copier = (struct dp_copier){0};
    if (!shard)
        return;
    (void)pthread_mutex_lock(&shard->thread->lock);
    free_all(&shard->waiting);
    if (shard->running)
        atomic_store(&shard->running->cancelled, true);
    while (shard->running)
        (void)pthread_cond_wait(&shard->thread->changed, &shard->thread->lock);
    if (shard->half) {
        dp_copy_run_drop(&shard->half);
        dp_copy_job_free(&shard->half_job);
    }
    struct copying_shard **at = &shard->thread->shards;
    while (*at != shard)
        at = &(*at)->next;
    *at = shard->next;
    (void)pthread_mutex_unlock(&shard->thread->lock);
    free_all(&shard->completed);
    free(shard->directory);
    free(shard);
}
