/* Step log inner: what the files of the step log share. Private to them. */
#ifndef DP_LOOP_STEP_LOG_INNER_H
#define DP_LOOP_STEP_LOG_INNER_H

#include "worker/loop/step_log.h"

#include <limits.h>

#define DP_STEP_BEHIND 64u /* pushes that may be unanswered: no sum goes past them */

struct dp_step_bytes {
    unsigned char *at;
    size_t size, room;
};

/* A push, and the sum before it. */
struct dp_step_recent {
    struct dp_step step;
    struct dp_step_sum before;
};

struct dp_step_log {
    char path[PATH_MAX];
    int fd;
    struct dp_step_log_id id;
    uint64_t seed;
    struct dp_step_log_plan plan;
    char *text;
    struct dp_step_bytes kept;   /* records: plan, sums of whole epochs, notes of each epoch */
    struct dp_step_bytes totals; /* record: the last */
    struct dp_step_bytes part;   /* record: the sum of the epoch under way */
    struct dp_step *steps;       /* those read at open, in the order of the file */
    size_t steps_len, steps_room;
    uint64_t size, live; /* of the file; of what it would be, written anew */
    uint64_t tidy_at;    /* not before the file has this size */
    uint32_t since;      /* steps in this epoch since the last sum */
    struct dp_step_recent recent[DP_STEP_BEHIND];
    uint64_t recent_len;
    uint32_t recent_epoch;
    uint64_t steps_at; /* where in the file the records of pushes of steps_epoch begin */
    uint32_t steps_epoch;
    uint32_t last_epoch;
    uint64_t last_groups;
    bool told;
};

/* false: no memory. */
bool dp_step_log_append(struct dp_step_bytes *bytes, const void *more, size_t size);
/* Writes the file anew: what is kept, and these records of pushes of the epoch behind it. A failure is told, and leaves it as it was. */
void dp_step_log_rewrite(struct dp_step_log *log, uint32_t epoch, const struct dp_step_bytes *pushes);

#endif
