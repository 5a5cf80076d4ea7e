/* Source: what the metrics of a server are made of, as the server gives it. Tests give their own.
 * Thread    The functions are called on the metrics thread. None may wait for a shard. */
#ifndef DP_METRICS_SOURCE_H
#define DP_METRICS_SOURCE_H

#include "server/control/board.h"
#include "server/shard/observed.h"

#include <stdbool.h>

struct dp_exporter_shard {
    uint64_t since_s;    /* when it opened, since 1970; 0: it does not serve, and has counted nothing */
    struct dp_error why; /* why it does not serve, and how far it is */
    struct dp_shard_observed observed;
};

struct dp_exporter_source {
    const char *cluster; /* its name */
    uint32_t server;     /* its number */
    uint32_t first_shard, shards;
    uint64_t started_s; /* since 1970 */
    /* Of the shard first_shard + at. */
    void (*shard)(void *context, uint32_t at, struct dp_exporter_shard *out);
    uint64_t (*control_idle_ms)(void *context);
    /* dp_control_each_note. */
    void (*each_note)(void *context, const char *prefix,
                      void (*see)(void *to, const struct dp_board_note *note, uint64_t age_ns), void *to);
    void *context;
};

#endif
