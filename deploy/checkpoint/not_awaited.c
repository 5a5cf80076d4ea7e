#include "deploy/checkpoint/not_awaited.h"

#include "common/model/stream.h"

uint32_t dp_not_awaited_count(const struct dp_union_lacking *lacking, const struct dp_push_exceptions *before,
                              uint32_t last_run)
{
    uint32_t count = 0, ranges;
    for (uint32_t i = 0; i < lacking->count; i++) {
        const struct dp_copy_push *push = &lacking->push[i];
        bool is_over = dp_stream_is_training(push->stream) && dp_stream_run(push->stream) < last_run;
        count += is_over || dp_push_exceptions_find(before, push->stream, push->number, &ranges) != NULL;
    }
    return count;
}
