/* Worker stats: the measurements of one worker. Each worker puts its own as a note, and worker 0 makes the
 * report of all. */
#ifndef DP_TELEMETRY_WORKER_STATS_H
#define DP_TELEMETRY_WORKER_STATS_H

#include "worker/telemetry/staleness.h"
#include "worker/telemetry/step_timer.h"

#include <stddef.h>

struct dp_epoch_stats {
    double loss_sum; /* over examples, of the loss before the step */
    uint64_t examples;
    double begun;   /* seconds since 1970, by the first server's clock */
    double seconds; /* training, without evaluation */
};

/* With backups (sync:B): what the servers did without. */
struct dp_dropped {
    uint64_t pushes;   /* that no shard used, */
    uint64_t partly;   /* or that some shards did not, or without some of their minibatches */
    uint64_t examples; /* that no shard used, */
    uint64_t passed;   /* those of them that were not computed */
};

/* A worker that left before its end (worker/coordinate/takeover.h). Not packed: the worker that merges the
 * stats of all sets it. */
struct dp_worker_left {
    bool is;
    uint64_t step;   /* it took part in the steps of the run below */
    uint32_t epoch;  /* counted from 1 */
    uint64_t undone; /* minibatches */
};

struct dp_worker_stats {
    uint32_t worker, epochs;
    uint32_t ended;             /* how many epochs have all their pushes answered */
    uint64_t pushes;            /* that were new to some shard, used or dropped */
    uint64_t found_examples;    /* done by an earlier process of this worker, whose stats are lost */
    uint64_t repeated_examples; /* of pushes that every shard had already: trained again for nothing */
    struct dp_dropped dropped;  /* as reported in the replies to this worker's processes */
    struct dp_staleness staleness;
    struct dp_step_times times; /* of all epochs */
    char device[64];            /* the last one that it computed on (job.h) */
    uint64_t missed,
        missed_examples; /* steps of the run in which it took no part as it was away, and what that left untrained */
    struct dp_worker_left left;
    bool absent; /* it was silent at the end: examples since its last note are missing (not packed) */
    struct dp_epoch_stats *epoch; /* [epochs], heap */
};

enum dp_status dp_worker_stats_init(struct dp_worker_stats *stats, uint32_t worker, uint32_t epochs,
                                    struct dp_error *err);
void dp_worker_stats_clear(struct dp_worker_stats *stats);
/* All that its pushes stand for. */
uint64_t dp_worker_stats_examples(const struct dp_worker_stats *stats);
/* Those of them that took effect: without the dropped ones, and those that were repeated. */
uint64_t dp_worker_stats_applied_examples(const struct dp_worker_stats *stats);
/* Without those that were repeated, dropped, or done by an earlier process. */
uint64_t dp_worker_stats_new_examples(const struct dp_worker_stats *stats);
double dp_worker_stats_seconds(const struct dp_worker_stats *stats);

/* JSON text, malloc'd, without the epochs at the end that have no examples. */
enum dp_status dp_worker_stats_pack(const struct dp_worker_stats *stats, char **text, struct dp_error *err);
/* Into a struct of {0}. DP_DATA unless pack made the text, for at most so many epochs. */
enum dp_status dp_worker_stats_unpack(const char *text, size_t size, uint32_t epochs,
                                      struct dp_worker_stats *out, struct dp_error *err);

#endif
