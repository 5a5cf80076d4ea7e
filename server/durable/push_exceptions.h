/* Push exceptions: pushes that a checkpoint has for some keys only. Who made one was gone before it had brought it to all shards
 * (server/checkpoint/union.h). Such a push is not applied; when it is pushed again, keys of these ranges are passed over.
 *     one of it: a push, and a range of mixed keys that have it
 * Holds     Ascending by (stream, number, range); the ranges of one push neither meet nor touch, and are not the whole key space.
 * Thread    Any, each with a list of its own.
 * Memory    Heap: clear, which accepts {0}. Only append allocates. */
#ifndef DP_DURABLE_PUSH_EXCEPTIONS_H
#define DP_DURABLE_PUSH_EXCEPTIONS_H

#include "common/base/status.h"
#include "common/model/range.h"

#include <stdbool.h>
#include <stdint.h>

/* Ranges of all pushes. They are packed in a turn, beside the push ids. */
#define DP_PUSH_EXCEPTIONS_MAX 4096u

struct dp_push_exception {
    uint64_t stream, number;
    struct dp_range has;
};

struct dp_push_exceptions {
    struct dp_push_exception *one;
    uint32_t count, size;
};

/* Whether `next` is an exception that may stand behind `before` (NULL: it is the first). */
bool dp_push_exceptions_may_follow(const struct dp_push_exception *before,
                                   const struct dp_push_exception *next);
/* Not below the last one. A range that touches the last one of its push makes that longer: it may become the whole key space.
 * DP_DATA: there would be more than DP_PUSH_EXCEPTIONS_MAX. DP_NOMEM. */
DP_MUST_USE
enum dp_status dp_push_exceptions_append(struct dp_push_exceptions *list,
                                         const struct dp_push_exception *next, struct dp_error *err);
/* The ranges of a push, *count of them; NULL: it is none of these. Valid until the list changes. */
const struct dp_push_exception *dp_push_exceptions_find(const struct dp_push_exceptions *list,
                                                        uint64_t stream, uint64_t number, uint32_t *count);
/* How many pushes they are of. */
uint32_t dp_push_exceptions_pushes(const struct dp_push_exceptions *list);
void dp_push_exceptions_drop(struct dp_push_exceptions *list, uint64_t stream, uint64_t number);
void dp_push_exceptions_drop_stream(struct dp_push_exceptions *list, uint64_t stream);
void dp_push_exceptions_clear(struct dp_push_exceptions *list);

#endif
