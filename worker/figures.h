/* Figures: what one worker has to say about its training when it is over: it puts them as a note, and worker
 * 0 makes the report of everybody's.                                                                       */
#ifndef DP_WORKER_FIGURES_H
#define DP_WORKER_FIGURES_H

#include "worker/spent.h"
#include "worker/staleness.h"

#include <stddef.h>

struct dp_epoch_figures {
    double loss_sum; /* over examples, of the loss before the step */
    uint64_t examples;
    double begun;   /* seconds since 1970, by this machine's clock */
    double seconds; /* training, without evaluation */
};

struct dp_worker_figures {
    uint32_t worker, epochs;
    uint32_t ended;             /* epochs, the first so many: its pushes of them are answered */
    uint64_t pushes;            /* that some shard applied, and not before */
    uint64_t found_examples;    /* found done when this worker was started again, their figures lost */
    uint64_t repeated_examples; /* of pushes that were there already: trained again, for nothing new */
    struct dp_staleness staleness;
    struct dp_spent spent;          /* of all epochs */
    char device[64];                /* what it computed on last (job.h) */
    struct dp_epoch_figures *epoch; /* [epochs], heap */
};

DP_MUST_USE
enum dp_status dp_worker_figures_init(struct dp_worker_figures *figures, uint32_t worker, uint32_t epochs,
                                      struct dp_error *err);
void dp_worker_figures_clear(struct dp_worker_figures *figures);
uint64_t dp_worker_figures_examples(const struct dp_worker_figures *figures);
/* Without those that were repeated or found done. */
uint64_t dp_worker_figures_new_examples(const struct dp_worker_figures *figures);
double dp_worker_figures_seconds(const struct dp_worker_figures *figures);

/* JSON text, malloc'd; epochs at the end that have nothing are left out. */
DP_MUST_USE
enum dp_status dp_worker_figures_pack(const struct dp_worker_figures *figures, char **text,
                                      struct dp_error *err);
/* Into a struct of {0}; DP_DATA unless it is what pack gave, with this many epochs at most. */
DP_MUST_USE
enum dp_status dp_worker_figures_unpack(const char *text, size_t size, uint32_t epochs,
                                        struct dp_worker_figures *out, struct dp_error *err);

#endif
