#include "server/durable/reappend.h"

#include <stdlib.h>
#include <string.h>

bool dp_reappend_is_due(const struct dp_step_buffer *kept, const struct dp_journaling *journaling,
                        uint64_t marked_lsn)
{
    uint64_t floor = dp_step_buffer_floor(kept);
    return floor < journaling->lsn && floor <= marked_lsn && dp_journaling_fills(journaling);
}

static enum dp_appended append_push(struct dp_journaling *journaling, const struct dp_buffered_push *push,
                                    struct dp_request *request, struct dp_error *err)
{
    struct dp_record record = {.kind = DP_RECORD_KEPT_PUSH,
                               .members = 1,
                               .run = push->run,
                               .rank = push->rank,
                               .step = push->step,
                               .examples = push->examples,
                               .view = push->view,
                               .rate = push->rate};
    request->stream = push->stream;
    request->number = push->number;
    request->sections = push->sections;
    for (uint32_t s = 0; s < push->sections; s++) {
        const struct dp_section *section = &push->section[s];
        size_t values = (size_t)section->rows * dp_value_bytes(section->type);
        request->section[s] = *section;
        record.dims[s] = push->dim[s];
        DP_ASSERT(section->value_bytes == values * push->dim[s]);
    }
    return dp_journaling_append_step(journaling, &record, request, err);
}

/* A close that applies nothing. */
static enum dp_appended append_old(struct dp_journaling *journaling, const struct dp_step_buffer_old *old,
                                   struct dp_request *request, struct dp_error *err)
{
    struct dp_record record = {.kind = DP_RECORD_CLOSE, .run = old->run, .step = old->step};
    request->stream = request->number = 0;
    request->sections = old->sections;
    if (old->sections > 0) {
        memcpy(request->section, old->section, old->sections * sizeof old->section[0]);
        memcpy(record.dims, old->dim, old->sections * sizeof old->dim[0]);
    }
    return dp_journaling_append_step(journaling, &record, request, err);
}

enum dp_appended dp_reappend(struct dp_step_buffer *kept, struct dp_journaling *journaling,
                             struct dp_error *err)
{
    struct dp_request *request = calloc(1, sizeof *request);
    enum dp_appended appended = DP_APPENDED;
    if (!request) {
        (void)dp_fail(err, DP_NOMEM, "no memory for a record");
        return DP_APPEND_REFUSED;
    }
    dp_step_buffer_begin_again(kept, journaling->lsn);
    for (const struct dp_buffered_step *step = kept->first; appended == DP_APPENDED && step;
         step = step->next)
        for (uint32_t i = 0; appended == DP_APPENDED && i < step->count; i++) {
            if (!dp_step_buffer_lacks_again(kept, step->push[i]))
                continue;
            appended = append_push(journaling, step->push[i], request, err);
            if (appended == DP_APPENDED)
                dp_step_buffer_appended_again(step->push[i], journaling->lsn);
        }
    if (appended == DP_APPENDED && kept->old.run > 0)
        appended = append_old(journaling, &kept->old, request, err);
    if (appended == DP_APPENDED)
        dp_step_buffer_end_again(kept, journaling->lsn);
    free(request);
    return appended;
}
