/* Defaults: the minibatch size and the number of epochs of a training whose cluster file leaves them 0.
 *     batch    a power of 2, at most model.batch_max, at least 4, such that an epoch has
 *              32 minibatches or more
 *     epochs   enough for model.steps_wanted minibatches, at least model.epochs_min and at most 100; fewer,
 *              but at least 1, if there would be over model.examples_max examples in all; of a
 *              further file as for its examples and the earlier ones together, and two
 *              thirds of that if epochs also rehearse
 * Why       A step moves a weight by about the rate (Adam), however small the training set is: convergence
 *           takes a number of steps, not of epochs. The upper bounds limit the time, as each epoch costs an
 *           evaluation.
 * Promise   A pure function of the model, the number of examples and the given values: all workers find the
 *           same, before they compare their settings (training_settings.h).
 * A new training of a model has, where nothing gives them, the model's settings (words of skipgram), its
 * rate, and the decay that goes with it: `downpour run`, and a cluster whose file has `dir`.
 * Thread    Any. */
#ifndef DP_CONTEXT_DEFAULTS_H
#define DP_CONTEXT_DEFAULTS_H

#include "common/config/cluster.h"
#include "worker/compute/models/model.h"

/* A label with a smaller share is rare. The models' steps were chosen with a fifth or more. */
#define DP_RARE_SHARE 0.2

/* Sizes of the training set without the held-out examples, > 0: an epoch, of it the file's own, and those
 * with all earlier ones that it could rehearse (dp_dataset_own). rare: the share of the rarer of two labels,
 * where the model has a prior that keeps more steps from fitting noise; or 0. */
struct dp_defaults_data {
    uint64_t examples, own, all;
    double rare;
};

/* Sets training->batch and epochs if they are 0. */
void dp_defaults_settle(const struct dp_model *model, const struct dp_defaults_data *data,
                        struct dp_cluster_training *training);

/* Sets what the model has a value of its own for, where `given` has no flag or key. */
enum dp_status dp_defaults_of_model(const struct dp_model *model, const struct dp_setting_names *given,
                                    struct dp_cluster *cluster, struct dp_error *err);
/* All of it but the rate and its decay. */
enum dp_status dp_defaults_settings(const struct dp_model *model, const struct dp_setting_names *given,
                                    struct dp_cluster *cluster, struct dp_error *err);
/* The same, of a cluster that was read from a file; nothing without `dir`. */
enum dp_status dp_defaults_of_file(const char *path, struct dp_cluster *cluster, struct dp_error *err);

#endif
