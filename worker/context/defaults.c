#include "worker/context/defaults.h"

#define BATCH_MIN   4u
#define BATCHES_MIN 32u
#define EPOCHS_MAX  100u

static uint32_t batch_of(const struct dp_model *model, uint64_t examples)
{
    uint32_t batch = model->batch_max;
    while (batch > BATCH_MIN && examples / batch < BATCHES_MIN)
        batch /= 2;
    return batch;
}

static uint32_t epochs_of(const struct dp_model *model, uint64_t examples, uint32_t batch)
{
    uint64_t batches = examples / batch + (examples % batch != 0);
    uint64_t epochs = model->steps_wanted / batches + (model->steps_wanted % batches != 0);
    uint64_t most = model->examples_max / examples;
    if (epochs < model->epochs_min)
        epochs = model->epochs_min;
    if (epochs > EPOCHS_MAX)
        epochs = EPOCHS_MAX;
    if (epochs > most)
        epochs = most;
    return epochs > 0 ? (uint32_t)epochs : 1;
}

void dp_defaults_settle(const struct dp_model *model, uint64_t examples, struct dp_cluster_training *training)
{
    DP_ASSERT(examples > 0 && model->steps_wanted > 0);
    if (training->batch == 0)
        training->batch = batch_of(model, examples);
    if (training->epochs == 0)
        training->epochs = epochs_of(model, examples, training->batch);
}
