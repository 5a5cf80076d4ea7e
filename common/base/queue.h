/* Queue: a bounded queue of pointers between threads; an item belongs to the queue from put to take.
 * Promise   First in, first out. Never holds more than `len_max`. After dp_queue_close() puts are refused
 *           and takes drain the rest, then say so.
 * Thread    Any number of putters and takers. free: after all of them have ended.
 * Failure   DP_TIMEOUT when a wait outlasts its deadline, DP_STOPPING when closed (and, for take, empty). */
#ifndef DP_BASE_QUEUE_H
#define DP_BASE_QUEUE_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

struct dp_queue;

enum dp_status dp_queue_new(size_t len_max, struct dp_queue **out, struct dp_error *err);
/* The queue must be empty of things that own memory: take them first. Accepts NULL inside, leaves NULL. */
void dp_queue_free(struct dp_queue **queue);
/* timeout_ms 0 tries once. On DP_OK the item belongs to the queue, else it stays the caller's. */
enum dp_status dp_queue_put(struct dp_queue *queue, void *item, uint32_t timeout_ms);
enum dp_status dp_queue_take(struct dp_queue *queue, void **item, uint32_t timeout_ms);
void dp_queue_close(struct dp_queue *queue);
size_t dp_queue_len(struct dp_queue *queue);

#endif
