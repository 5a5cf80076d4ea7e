/* Training settings: a text of the settings that all workers of a run must share.
 *     text -> (the same worker before: check; another worker: same)
 *     head -> (the settings that the weights were trained with: scores)
 * Why       Two models can have the same tables (wide-deep and deepfm; two dropout rates; two losses), and
 *           workers that mix them train neither. Data and settings determine which examples push 7 of an
 *           epoch stands for, so a worker that restarts with other settings would skip the wrong minibatches
 *           without notice. Workers that evaluate other metrics would stop after different epochs, or wait
 *           for each other.
 * Promise   One line "name value" for each setting that matters; the model as written.
 *           Settings that may change between two starts (rate, fetch_every, threads, timeouts, paths) are
 *           left out.
 * Thread    Any: plain functions. */
#ifndef DP_CONTEXT_TRAINING_SETTINGS_H
#define DP_CONTEXT_TRAINING_SETTINGS_H

#include "common/config/cluster.h"
#include "worker/read/schema.h"

/* The longest model, label and categories of a cluster file take two thirds of it. */
#define DP_TRAINING_SETTINGS_BYTES 2704u

/* Identifies a data set by its content, whatever its path. */
struct dp_training_settings_set {
    uint64_t digest, examples;
    uint32_t lists;
    bool ranked; /* its pairs are ranked among all items */
    struct dp_label_scale label_scale;
};

/* judged: the set that is evaluated at each epoch barrier, or NULL. */
void dp_training_settings_text(const struct dp_cluster *cluster, const struct dp_training_settings_set *train,
                               const struct dp_training_settings_set *judged,
                               char text[DP_TRAINING_SETTINGS_BYTES]);
/* Its first lines: what an example's score depends on besides the weights and the example. */
void dp_training_settings_head(const struct dp_cluster *cluster, char text[DP_TRAINING_SETTINGS_BYTES]);
/* The number of epochs in a text; *epochs stays where it names none. */
void dp_training_settings_epochs(const char *text, uint32_t *epochs);
/* The training files, for messages: the one that the run was begun with ("": not known), and the worker's. */
struct dp_training_settings_files {
    const char *begun, *mine;
};
/* Compares with the text that this run's pushes were made by. DP_EXISTS names the first difference: those
 * pushes belong to another training. files: or NULL. */
enum dp_status dp_training_settings_check(const char *text, const char *before, size_t size, uint32_t run,
                                          const struct dp_training_settings_files *files,
                                          struct dp_error *err);
/* Compares with another worker's text. DP_ARGUMENT names the first difference. */
enum dp_status dp_training_settings_same(const char *text, const char *theirs, size_t size, uint32_t run,
                                         uint32_t worker, const struct dp_training_settings_files *files,
                                         struct dp_error *err);
/* Compares the head with the text that the weights were trained by. DP_ARGUMENT names the first
 * difference. */
enum dp_status dp_training_settings_scores(const char *head, const char *trained, size_t size, uint32_t run,
                                           struct dp_error *err);
/* Compares how the training file is read with the text that the weights were trained by. */
enum dp_status dp_training_settings_read_by(const struct dp_cluster *cluster,
                                            const struct dp_training_settings_set *train, const char *trained,
                                            size_t size, struct dp_error *err);

#endif
