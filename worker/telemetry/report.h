/* Report: the settings and metrics of a training so far, as one JSON file for people and scripts. A metric
 * that does not fit the model, or was not measured, has no key. "finished" says whether the training is
 * complete. Only then the report has "final", the reason of the end, and "advice" (advice.h). A failed
 * training can also have "diverged" (divergence.h). An unstable training has "advised_rate" (advice.h).
 * Promise   The file is complete or absent: temp file, sync, rename. */
#ifndef DP_TELEMETRY_REPORT_H
#define DP_TELEMETRY_REPORT_H

#include "common/config/cluster.h"
#include "worker/compute/metrics.h"
#include "worker/read/understood.h"
#include "worker/schedule/early_stop.h"
#include "worker/telemetry/tested.h"
#include "worker/telemetry/worker_stats.h"

struct dp_report {
    const struct dp_cluster *cluster;
    bool epochs_by_size, batch_by_size; /* chosen by the number of examples (defaults.h) */
    uint64_t examples, digest;
    const struct dp_worker_stats *workers; /* [training.workers] */
    const struct dp_tested *tested;        /* [training.epochs], or NULL */
    const struct dp_tested *validated;     /* the same of the validation set, or NULL */
    uint32_t epochs;                       /* that all workers have trained */
    uint32_t left;        /* finished: the epoch whose weights stay in the store; 0: the last */
    uint64_t minibatches; /* in these epochs, of all workers */
    bool finished;
    const char *ended; /* the training ended unfinished: "stopped" or "failed"; else NULL */
    const char *error; /* why it failed, or NULL */
    uint32_t diverged; /* it failed since a loss, gradient or output was not finite: in which epoch, counted
                          from 1 in this run; 0: it did not */
    const struct dp_early_stop_rule *rule;  /* NULL: no early stopping */
    const struct dp_early_stop *stop;       /* with a rule: its state as last decided */
    const char *reduced_by;                 /* without servers: what added the gradients; else NULL */
    const char *format;                     /* of the training file (dp_dataset_format); or NULL */
    const struct dp_understood *understood; /* of the training data (dp_dataset_understood); or NULL */
    const char *labels;                     /* the meaning of labels, if it is not obvious; or NULL */
    struct dp_report_constant {
        bool known;
        const char *set; /* "test", "validation" or "training" */
        struct dp_figures figures;
        char label[64]; /* that all training examples have, for people; "": there are several */
    } constant;         /* the best constant's (baseline.h) */
};

/* Of all workers (report_sums.c): */
double dp_report_train_loss(const struct dp_report *report, uint32_t epoch); /* NaN: no examples */
/* Wall-clock time in which at least one worker trained the epoch, by the first server's clock. */
enum dp_status dp_report_seconds(const struct dp_report *report, uint32_t epoch, double *out,
                                 struct dp_error *err);
/* Of an ended epoch. Examples that were applied; with leased work those of the training set. */
uint64_t dp_report_examples(const struct dp_report *report, uint32_t epoch);
/* Leased work: examples that workers trained beyond those, because another worker trained them, too. */
uint64_t dp_report_done_twice(const struct dp_report *report, uint32_t epoch);
/* Examples that the servers applied, in all epochs. */
uint64_t dp_report_applied(const struct dp_report *report);
/* Speed of the whole training: the examples whose pushes were new, over the wall-clock time in which at least
 * one worker was training; evaluation and waiting count while another worker trains. So the figure is right
 * for workers that start one after another, too. */
struct dp_speed {
    uint64_t examples;
    double seconds, examples_per_s; /* NaN: nothing was trained */
};
enum dp_status dp_report_speed(const struct dp_report *report, struct dp_speed *out, struct dp_error *err);

/* JSON text, malloc'd. */
enum dp_status dp_report_text(const struct dp_report *report, char **text, struct dp_error *err);
enum dp_status dp_report_write(const struct dp_report *report, const char *path, struct dp_error *err);

#endif
