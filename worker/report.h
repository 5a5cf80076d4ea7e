/* Report: what a training was and reached so far, as one JSON file for people and scripts. A figure that does not
 * fit the model, or was not measured, has no key. "finished" says whether it is the whole training's; "final", why it
 * stopped and "advice" (advice.h) are in a finished one only.
 * Promise   The file is there whole or not at all: temporary name, sync, rename.                        */
#ifndef DP_WORKER_REPORT_H
#define DP_WORKER_REPORT_H

#include "common/config/cluster.h"
#include "worker/compute/metrics.h"
#include "worker/figures.h"
#include "worker/stop.h"

struct dp_tested {
    bool known;
    struct dp_figures figures;
};

struct dp_report {
    const struct dp_cluster *cluster;
    bool epochs_by_size, batch_by_size; /* nobody named them (defaults.h) */
    uint64_t examples, digest;
    const struct dp_worker_figures *workers; /* [training.workers] */
    const struct dp_tested *tested;          /* [training.epochs] */
    const struct dp_tested *validated;       /* the same of the validation set, or NULL */
    uint32_t epochs;                         /* that all workers have trained */
    uint32_t left;        /* finished: the one whose weights stay in the store; 0: the last */
    uint64_t minibatches; /* in these, of all workers */
    bool finished;
    const char *ended;               /* not finished, and nothing goes on: "stopped" or "failed"; else NULL */
    const char *error;               /* why it has failed, or NULL */
    const struct dp_stop_rule *rule; /* NULL: nothing was looked at */
    const struct dp_stop *stop;      /* with a rule: the last verdict */
    const char *labels;              /* what labels mean, where that is not plain; or NULL */
    struct dp_report_constant {
        bool known;
        const char *set; /* "test", "validation" or "training" */
        struct dp_figures figures;
    } constant; /* the best constant's (constant.h) */
};

/* Of all workers: */
double dp_report_train_loss(const struct dp_report *report, uint32_t epoch); /* NaN: no examples */
double dp_report_seconds(const struct dp_report *report, uint32_t epoch);    /* of the slowest */
uint64_t dp_report_examples(const struct dp_report *report, uint32_t epoch);
/* Speed of the training as a whole: the examples whose pushes were new, over the time in which at least one
 * worker was training, on the clock on the wall: evaluation and waiting count as long as another one trains.
 * So workers that start one after another are not faster than they were. Clocks of several machines must
 * agree to well under the length of the training. */
struct dp_speed {
    uint64_t examples;
    double seconds, examples_per_s; /* NaN: nothing was trained */
};
DP_MUST_USE
enum dp_status dp_report_speed(const struct dp_report *report, struct dp_speed *out, struct dp_error *err);

/* JSON text, malloc'd. */
DP_MUST_USE
enum dp_status dp_report_text(const struct dp_report *report, char **text, struct dp_error *err);
DP_MUST_USE
enum dp_status dp_report_write(const struct dp_report *report, const char *path, struct dp_error *err);

#endif
