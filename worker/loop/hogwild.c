#include "worker/loop/hogwild.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ALIVE_NS 200000000 /* how often a thread that waits for the others says that the worker lives */

/* What one thread has to itself. */
struct lane {
    struct dp_hogwild *pool;
    struct dp_program *program; /* the first one's is the job's */
    struct dp_weights_view *view;
    struct dp_gradients *gradients;
    enum dp_status status;
    struct dp_error err;
    uint32_t at;          /* the minibatch under way */
    uint64_t injected_ns; /* in the round */
    pthread_t thread;
};

struct dp_hogwild {
    const struct dp_job *job;
    const struct dp_delays *delays;
    uint32_t threads, started;  /* started: without the caller */
    struct lane *lane;          /* [threads] */
    struct dp_weights *weights; /* of the round */
    struct dp_batch *const *batches;
    uint32_t count, batches_max;
    float *rates, *losses; /* [batches_max] */
    atomic_uint next;      /* minibatch of the round */
    atomic_bool halts;     /* no further minibatch is taken */

    pthread_mutex_t lock; /* of the rest */
    pthread_cond_t begins, ended;
    uint64_t round;
    uint32_t busy; /* threads that have not ended this round */
    bool closes;
};

static enum dp_status compute(struct lane *lane, uint32_t i)
{
    const struct dp_hogwild *pool = lane->pool;
    const struct dp_batch *batch = pool->batches[i];
    uint64_t begun_ns = pool->delays ? dp_clock_ns(&pool->job->clock) : 0;
    float *const *written = dp_gradients_next(lane->gradients, batch, NULL);
    const uint32_t *const *place = dp_weights_view_at(lane->view, pool->weights, batch);
    const float *const *weights = dp_weights_view_of(lane->view);
    enum dp_status st = dp_program_start(lane->program, batch, weights, written, &lane->err);
    if (st == DP_OK)
        st = dp_program_finish(lane->program, &pool->losses[i], NULL, &lane->err);
    if (st != DP_OK)
        return st;
    if (!isfinite(pool->losses[i]))
        return dp_fail(&lane->err, DP_NOT_FINITE, "the loss is %f", (double)pool->losses[i]);
    if (pool->delays)
        lane->injected_ns +=
            dp_delays_wait(pool->delays, batch->epoch, batch->number, begun_ns, lane == pool->lane);
    dp_weights_view_step(lane->view, pool->rates[i], written);
    dp_gradients_add_at(lane->gradients, place);
    return DP_OK;
}

/* One thread's part of a round. */
static void take_part(struct lane *lane)
{
    struct dp_hogwild *pool = lane->pool;
    lane->at = 0;
    lane->injected_ns = 0;
    lane->status = dp_gradients_begin(lane->gradients, pool->weights, &lane->err);
    while (lane->status == DP_OK && !atomic_load_explicit(&pool->halts, memory_order_relaxed) &&
           !dp_job_stopped(pool->job)) {
        uint32_t i = atomic_fetch_add_explicit(&pool->next, 1, memory_order_relaxed);
        if (i >= pool->count)
            break;
        lane->at = i;
        lane->status = compute(lane, i);
        if (lane == pool->lane)
            dp_job_alive(pool->job);
    }
    if (lane->status != DP_OK)
        atomic_store_explicit(&pool->halts, true, memory_order_relaxed);
}

static void *run(void *of)
{
    struct lane *lane = of;
    struct dp_hogwild *pool = lane->pool;
    uint64_t seen = 0;
    DP_ASSERT(pthread_mutex_lock(&pool->lock) == 0);
    for (;;) {
        while (pool->round == seen && !pool->closes)
            DP_ASSERT(pthread_cond_wait(&pool->begins, &pool->lock) == 0);
        if (pool->closes)
            break;
        seen = pool->round;
        DP_ASSERT(pthread_mutex_unlock(&pool->lock) == 0);
        take_part(lane);
        DP_ASSERT(pthread_mutex_lock(&pool->lock) == 0);
        DP_ASSERT(pool->busy > 0);
        if (--pool->busy == 0)
            DP_ASSERT(pthread_cond_signal(&pool->ended) == 0);
    }
    DP_ASSERT(pthread_mutex_unlock(&pool->lock) == 0);
    return NULL;
}

static enum dp_status lane_open(struct lane *lane, const struct dp_hogwild_options *options,
                                struct dp_error *err)
{
    const struct dp_job *job = options->job;
    const struct dp_weights_options weights = {
        .graph = job->model.graph, .worst = &job->worst, .batches_max = options->batches_max};
    const struct dp_gradients_options gradients = {.graph = job->model.graph,
                                                   .tables = job->table,
                                                   .shards = job->shards,
                                                   .worst = &job->worst,
                                                   .batches_max = options->batches_max,
                                                   .united = true};
    enum dp_status st = dp_weights_view_new(&weights, &lane->view, err);
    if (st == DP_OK)
        st = dp_gradients_new(&gradients, &lane->gradients, err);
    if (st == DP_OK && lane == lane->pool->lane)
        lane->program = job->program;
    else if (st == DP_OK)
        st = dp_program_open(job->model.graph, &job->backend, &job->worst, &lane->program, err);
    return st;
}

/* Signals are for the client's thread, which waits for them. */
static enum dp_status start_threads(struct dp_hogwild *pool, struct dp_error *err)
{
    sigset_t all, before;
    int rc = 0;
    (void)sigfillset(&all);
    DP_ASSERT(pthread_sigmask(SIG_SETMASK, &all, &before) == 0);
    for (uint32_t t = 1; rc == 0 && t < pool->threads; t++) {
        rc = pthread_create(&pool->lane[t].thread, NULL, run, &pool->lane[t]);
        pool->started += rc == 0;
    }
    DP_ASSERT(pthread_sigmask(SIG_SETMASK, &before, NULL) == 0);
    return rc == 0 ? DP_OK
                   : dp_fail(err, DP_NOMEM, "cannot start thread %" PRIu32 " of %" PRIu32 ": %s",
                             pool->started + 2, pool->threads, strerror(rc));
}

static void tools_open(struct dp_hogwild *pool)
{
    pthread_condattr_t monotonic;
    DP_ASSERT(pthread_mutex_init(&pool->lock, NULL) == 0);
    DP_ASSERT(pthread_cond_init(&pool->begins, NULL) == 0);
    DP_ASSERT(pthread_condattr_init(&monotonic) == 0);
    DP_ASSERT(pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0);
    DP_ASSERT(pthread_cond_init(&pool->ended, &monotonic) == 0);
    DP_ASSERT(pthread_condattr_destroy(&monotonic) == 0);
}

enum dp_status dp_hogwild_open(const struct dp_hogwild_options *options, struct dp_hogwild **out,
                               struct dp_error *err)
{
    *out = NULL;
    DP_ASSERT(options->threads > 0 && options->batches_max > 1);
    DP_ASSERT(options->job->backend.ops->host_memory); /* it has no state that programs would share */
    struct dp_hogwild *pool = calloc(1, sizeof *pool);
    if (!pool)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " threads", options->threads);
    pool->job = options->job;
    pool->delays = options->delays;
    pool->threads = options->threads;
    tools_open(pool);
    pool->batches_max = options->batches_max;
    pool->lane = calloc(pool->threads, sizeof *pool->lane);
    pool->rates = calloc(pool->batches_max, sizeof *pool->rates);
    pool->losses = calloc(pool->batches_max, sizeof *pool->losses);
    enum dp_status st = DP_OK;
    if (!pool->lane || !pool->rates || !pool->losses)
        st = dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " threads", options->threads);
    for (uint32_t t = 0; st == DP_OK && t < pool->threads; t++) {
        pool->lane[t].pool = pool;
        st = lane_open(&pool->lane[t], options, err);
    }
    if (st == DP_OK)
        st = start_threads(pool, err);
    if (st != DP_OK)
        dp_hogwild_close(&pool);
    *out = pool;
    return st;
}

void dp_hogwild_close(struct dp_hogwild **hogwild)
{
    struct dp_hogwild *pool = *hogwild;
    *hogwild = NULL;
    if (!pool)
        return;
    DP_ASSERT(pthread_mutex_lock(&pool->lock) == 0);
    DP_ASSERT(pool->busy == 0);
    pool->closes = true;
    DP_ASSERT(pthread_cond_broadcast(&pool->begins) == 0);
    DP_ASSERT(pthread_mutex_unlock(&pool->lock) == 0);
    for (uint32_t t = 1; t <= pool->started; t++)
        DP_ASSERT(pthread_join(pool->lane[t].thread, NULL) == 0);
    for (uint32_t t = 0; pool->lane && t < pool->threads; t++) {
        if (t > 0)
            dp_program_close(&pool->lane[t].program);
        dp_weights_view_free(&pool->lane[t].view);
        dp_gradients_free(&pool->lane[t].gradients);
    }
    (void)pthread_cond_destroy(&pool->begins);
    (void)pthread_cond_destroy(&pool->ended);
    (void)pthread_mutex_destroy(&pool->lock);
    free(pool->lane);
    free(pool->rates);
    free(pool->losses);
    free(pool);
}

float *dp_hogwild_rates(struct dp_hogwild *hogwild)
{
    return hogwild->rates;
}

void dp_hogwild_start(struct dp_hogwild *hogwild, struct dp_weights *weights, struct dp_batch *const *batches,
                      uint32_t count)
{
    DP_ASSERT(count > 0 && count <= hogwild->batches_max);
    DP_ASSERT(pthread_mutex_lock(&hogwild->lock) == 0);
    DP_ASSERT(hogwild->busy == 0);
    hogwild->weights = weights;
    hogwild->batches = batches;
    hogwild->count = count;
    atomic_store_explicit(&hogwild->next, 0, memory_order_relaxed);
    atomic_store_explicit(&hogwild->halts, false, memory_order_relaxed);
    hogwild->busy = hogwild->started;
    hogwild->round++;
    DP_ASSERT(pthread_cond_broadcast(&hogwild->begins) == 0);
    DP_ASSERT(pthread_mutex_unlock(&hogwild->lock) == 0);
}

/* A thread ends by itself: a minibatch on the CPU takes its time, and an injected delay ends at a signal. */
static void wait_others(struct dp_hogwild *pool)
{
    DP_ASSERT(pthread_mutex_lock(&pool->lock) == 0);
    while (pool->busy > 0) {
        struct timespec until;
        (void)clock_gettime(CLOCK_MONOTONIC, &until);
        until.tv_nsec += ALIVE_NS;
        until.tv_sec += until.tv_nsec / 1000000000;
        until.tv_nsec %= 1000000000;
        int rc = pthread_cond_timedwait(&pool->ended, &pool->lock, &until);
        DP_ASSERT(rc == 0 || rc == ETIMEDOUT);
        if (rc == ETIMEDOUT) {
            DP_ASSERT(pthread_mutex_unlock(&pool->lock) == 0);
            dp_job_alive(pool->job);
            DP_ASSERT(pthread_mutex_lock(&pool->lock) == 0);
        }
    }
    DP_ASSERT(pthread_mutex_unlock(&pool->lock) == 0);
}

enum dp_status dp_hogwild_finish(struct dp_hogwild *hogwild, struct dp_hogwild_round *out,
                                 struct dp_error *err)
{
    const struct lane *worst = NULL, *own = hogwild->lane;
    take_part(hogwild->lane);
    wait_others(hogwild);
    *out = (struct dp_hogwild_round){
        .at = own->at, .injected_ns = own->injected_ns, .losses = hogwild->losses, .sum = own->gradients};
    for (uint32_t t = 0; t < hogwild->threads; t++) {
        const struct lane *lane = &hogwild->lane[t];
        if (lane->status != DP_OK && (!worst || lane->at < worst->at))
            worst = lane;
    }
    if (worst) {
        out->at = worst->at;
        return dp_fail(err, worst->status, "%s", worst->err.text);
    }
    if (atomic_load_explicit(&hogwild->next, memory_order_relaxed) < hogwild->count)
        return dp_fail(err, DP_STOPPING, "stopped by a signal");
    for (uint32_t t = 1; t < hogwild->threads; t++)
        dp_gradients_merge(out->sum, hogwild->lane[t].gradients);
    return DP_OK;
}
