#include "server/durable/push_exceptions.h"

#include <stdlib.h>
#include <string.h>

static bool is_same_push(const struct dp_push_exception *a, const struct dp_push_exception *b)
{
    return a->stream == b->stream && a->number == b->number;
}

static bool is_below(const struct dp_push_exception *one, uint64_t stream, uint64_t number)
{
    return one->stream != stream ? one->stream < stream : one->number < number;
}

bool dp_push_exceptions_may_follow(const struct dp_push_exception *before,
                                   const struct dp_push_exception *next)
{
    bool is_range =
        next->has.first <= next->has.last && !(next->has.first == 0 && next->has.last == UINT64_MAX);
    if (next->stream == 0 || !is_range)
        return false;
    if (before && is_same_push(before, next)) /* a gap between them: no last + 1, which may be 0 */
        return before->has.last < next->has.first && next->has.first - before->has.last > 1;
    return !before || is_below(before, next->stream, next->number);
}

enum dp_status dp_push_exceptions_append(struct dp_push_exceptions *list,
                                         const struct dp_push_exception *next, struct dp_error *err)
{
    struct dp_push_exception *last = list->count > 0 ? &list->one[list->count - 1] : NULL;
    DP_ASSERT(next->stream > 0 && next->has.first <= next->has.last);
    DP_ASSERT(!last || !is_below(next, last->stream, last->number));
    if (last && is_same_push(last, next)) {
        DP_ASSERT(last->has.last < next->has.first);
        if (next->has.first - last->has.last == 1) {
            last->has.last = next->has.last;
            return DP_OK;
        }
    }
    if (list->count == DP_PUSH_EXCEPTIONS_MAX)
        return dp_fail(
            err, DP_DATA,
            "more than %u key ranges of pushes that only some shards have: start the workers that made them "
            "again, which push the rest, or train further under a higher run number (downpour run "
            "--continue)",
            DP_PUSH_EXCEPTIONS_MAX);
    if (list->count == list->size) {
        uint32_t size = list->size ? 2 * list->size : 16;
        struct dp_push_exception *more = realloc(list->one, size * sizeof *more);
        if (!more)
            return dp_fail(err, DP_NOMEM, "no memory for pushes that only some shards have");
        list->one = more;
        list->size = size;
    }
    list->one[list->count++] = *next;
    return DP_OK;
}

/* The first that is not below the push. */
static uint32_t place_of(const struct dp_push_exceptions *list, uint64_t stream, uint64_t number)
{
    uint32_t low = 0, high = list->count;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        if (is_below(&list->one[middle], stream, number))
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

const struct dp_push_exception *dp_push_exceptions_find(const struct dp_push_exceptions *list,
                                                        uint64_t stream, uint64_t number, uint32_t *count)
{
    const struct dp_push_exception wanted = {.stream = stream, .number = number};
    uint32_t at = place_of(list, stream, number), end = at;
    while (end < list->count && is_same_push(&list->one[end], &wanted))
        end++;
    *count = end - at;
    return end > at ? &list->one[at] : NULL;
}

uint32_t dp_push_exceptions_pushes(const struct dp_push_exceptions *list)
{
    uint32_t pushes = 0;
    for (uint32_t i = 0; i < list->count; i++)
        pushes += i == 0 || !is_same_push(&list->one[i - 1], &list->one[i]);
    return pushes;
}

static void drop(struct dp_push_exceptions *list, uint32_t at, uint32_t end)
{
    if (end == at)
        return;
    memmove(&list->one[at], &list->one[end], (list->count - end) * sizeof list->one[0]);
    list->count -= end - at;
}

void dp_push_exceptions_drop(struct dp_push_exceptions *list, uint64_t stream, uint64_t number)
{
    uint32_t count;
    const struct dp_push_exception *first = dp_push_exceptions_find(list, stream, number, &count);
    if (first)
        drop(list, (uint32_t)(first - list->one), (uint32_t)(first - list->one) + count);
}

void dp_push_exceptions_drop_stream(struct dp_push_exceptions *list, uint64_t stream)
{
    uint32_t at = place_of(list, stream, 0), end = at;
    while (end < list->count && list->one[end].stream == stream)
        end++;
    drop(list, at, end);
}

void dp_push_exceptions_clear(struct dp_push_exceptions *list)
{
    free(list->one);
    *list = (struct dp_push_exceptions){0};
}
