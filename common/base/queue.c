#include "common/base/queue.h"

#include "common/base/blocking.h"
#include "common/base/deadline.h"

#include <pthread.h>
#include <stdbool.h>
#include <stdlib.h>

struct dp_queue {
    pthread_mutex_t lock;
    pthread_cond_t changed_full, changed_empty;
    size_t head, len, len_max;
    bool closed;
    void *items[];
};

enum dp_status dp_queue_new(size_t len_max, struct dp_queue **out, struct dp_error *err)
{
    DP_ASSERT(len_max > 0);
    struct dp_queue *queue = calloc(1, sizeof *queue + len_max * sizeof queue->items[0]);
    if (!queue)
        return dp_fail(err, DP_NOMEM, "queue of %zu items", len_max);
    queue->len_max = len_max;
    pthread_condattr_t attr;
    DP_ASSERT(pthread_condattr_init(&attr) == 0 && pthread_condattr_setclock(&attr, CLOCK_MONOTONIC) == 0);
    DP_ASSERT(pthread_mutex_init(&queue->lock, NULL) == 0);
    DP_ASSERT(pthread_cond_init(&queue->changed_full, &attr) == 0);
    DP_ASSERT(pthread_cond_init(&queue->changed_empty, &attr) == 0);
    (void)pthread_condattr_destroy(&attr);
    *out = queue;
    return DP_OK;
}

void dp_queue_free(struct dp_queue **queue)
{
    if (!*queue)
        return;
    (void)pthread_cond_destroy(&(*queue)->changed_full);
    (void)pthread_cond_destroy(&(*queue)->changed_empty);
    (void)pthread_mutex_destroy(&(*queue)->lock);
    free(*queue);
    *queue = NULL;
}

enum dp_status dp_queue_put(struct dp_queue *queue, void *item, uint32_t timeout_ms)
{
    struct timespec until = dp_deadline_in_ms(timeout_ms);
    enum dp_status st = DP_OK;
    if (timeout_ms > 0)
        dp_blocking();
    DP_ASSERT(pthread_mutex_lock(&queue->lock) == 0);
    while (!queue->closed && queue->len == queue->len_max && st == DP_OK)
        if (timeout_ms == 0 || pthread_cond_timedwait(&queue->changed_full, &queue->lock, &until) != 0)
            st = queue->len == queue->len_max ? DP_TIMEOUT : DP_OK;
    if (queue->closed)
        st = DP_STOPPING;
    if (st == DP_OK) {
        queue->items[(queue->head + queue->len++) % queue->len_max] = item;
        (void)pthread_cond_signal(&queue->changed_empty);
    }
    DP_ASSERT(pthread_mutex_unlock(&queue->lock) == 0);
    return st;
}

enum dp_status dp_queue_take(struct dp_queue *queue, void **item, uint32_t timeout_ms)
{
    struct timespec until = dp_deadline_in_ms(timeout_ms);
    enum dp_status st = DP_OK;
    if (timeout_ms > 0)
        dp_blocking();
    DP_ASSERT(pthread_mutex_lock(&queue->lock) == 0);
    while (!queue->closed && queue->len == 0 && st == DP_OK)
        if (timeout_ms == 0 || pthread_cond_timedwait(&queue->changed_empty, &queue->lock, &until) != 0)
            st = queue->len == 0 ? DP_TIMEOUT : DP_OK;
    if (queue->len > 0) {
        *item = queue->items[queue->head];
        queue->head = (queue->head + 1) % queue->len_max;
        queue->len--;
        st = DP_OK;
        (void)pthread_cond_signal(&queue->changed_full);
    } else if (queue->closed) {
        st = DP_STOPPING;
    }
    DP_ASSERT(pthread_mutex_unlock(&queue->lock) == 0);
    return st;
}

void dp_queue_close(struct dp_queue *queue)
{
    DP_ASSERT(pthread_mutex_lock(&queue->lock) == 0);
    queue->closed = true;
    (void)pthread_cond_broadcast(&queue->changed_full);
    (void)pthread_cond_broadcast(&queue->changed_empty);
    DP_ASSERT(pthread_mutex_unlock(&queue->lock) == 0);
}

size_t dp_queue_len(struct dp_queue *queue)
{
    DP_ASSERT(pthread_mutex_lock(&queue->lock) == 0);
    size_t len = queue->len;
    DP_ASSERT(pthread_mutex_unlock(&queue->lock) == 0);
    return len;
}
