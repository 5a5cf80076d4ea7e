/* Mode: a consistency mode, how far the workers of a run may be apart. One line of a table each; nothing else knows a mode by its name.
 *     async   no worker waits for another
 *     ssp:S   a pull for step t waits until every worker has finished step t - S - 1 (stale synchronous parallel, Ho et al. 2013); a step is
 *             what a worker pushes together
 *     sync    servers apply one step of all workers at a time, as their mean weighted by examples
 *     sync:B  the same, but a step does not wait for the slowest B workers: what they push of it later is dropped (backup workers, Chen et
 *             al. 2016)
 * Add       A mode is its constant here, its line in mode.c, and its rules for a shard: server/modes/step_rules.h.
 * Thread    Any: plain functions. */
#ifndef DP_MODEL_MODE_H
#define DP_MODEL_MODE_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

/* (constant, name of its rules, number on the wire and in journals: add, never renumber) */
#define DP_MODES(X)                                                                                          \
    X(ASYNC, async, 0)                                                                                       \
    X(SSP, ssp, 1)                                                                                           \
    X(SYNC, sync, 2)

/* As flags say it. */
#define DP_MODE_FORMS "async, ssp:S, sync, sync:B"
#define DP_MODE_HELP                                                                                         \
    "async (they never wait for each other), ssp:S (no worker is more than S "                               \
    "steps ahead of the slowest; a step is one push), sync (the mean gradient of all workers, one step "     \
    "at a time: equal bits in each run) or sync:B (a step does not wait for the slowest B workers, whose "   \
    "gradients are dropped); default async"

enum dp_consistency {
#define DP_MODE_CONSTANT(constant, name, number) DP_##constant = (number),
    DP_MODES(DP_MODE_CONSTANT)
#undef DP_MODE_CONSTANT
        DP_MODE_COUNT
};

#define DP_MODE_WORKERS_MAX 1024u /* of a run whose workers wait for each other */

/* What the number behind a mode's name says. */
enum dp_slack {
    DP_SLACK_NONE,    /* it has none */
    DP_SLACK_AHEAD,   /* steps that a worker may be ahead of the slowest */
    DP_SLACK_BACKUPS, /* workers that a step does not wait for */
};

struct dp_mode {
    const char *name;
    const char *form; /* how it is written, and what its number means */
    const char *how;  /* a run trains so: "synchronously" */
    bool waits;       /* Its workers wait for each other: all have the same number of steps in an epoch. */
    bool
        by_step; /* Servers apply a step of all workers at once, at one rate, to the weights that it was computed on. */
    enum dp_slack slack;                                     /* what its number says */
    bool bare;                                               /* may be written without it, which means 0 */
    uint32_t least, most;                                    /* of the number as it is written */
    const char *usual;                                       /* what is suggested where it was mistyped */
    void (*promise)(uint32_t slack, char *out, size_t size); /* in sentences, as a report shows them */
};

extern const struct dp_mode dp_mode_table[DP_MODE_COUNT];

static inline const struct dp_mode *dp_mode_of(enum dp_consistency mode)
{
    DP_ASSERT(mode < DP_MODE_COUNT);
    return &dp_mode_table[mode];
}
/* By how many steps a worker may be ahead of the slowest; UINT64_MAX: by any number. */
static inline uint64_t dp_mode_ahead(enum dp_consistency mode, uint32_t slack)
{
    const struct dp_mode *of = dp_mode_of(mode);
    return of->slack == DP_SLACK_AHEAD ? slack : of->waits ? 0 : UINT64_MAX;
}
/* How many workers a step does not wait for. */
static inline uint32_t dp_mode_backups(enum dp_consistency mode, uint32_t slack)
{
    return dp_mode_of(mode)->slack == DP_SLACK_BACKUPS ? slack : 0;
}

/* "ssp:4". False: it is no mode, or its number is out of bounds. */
bool dp_mode_parse(const char *text, enum dp_consistency *mode, uint32_t *slack);
/* The same back. Returns out. */
#define DP_MODE_TEXT_BYTES 24u
const char *dp_mode_text(enum dp_consistency mode, uint32_t slack, char out[DP_MODE_TEXT_BYTES]);
/* A run of so many members: DP_INVALID says what its slack does not go with. */
enum dp_status dp_mode_check(enum dp_consistency mode, uint32_t slack, uint32_t members,
                             struct dp_error *err);

#endif
