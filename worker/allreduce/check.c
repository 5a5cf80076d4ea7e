#include "worker/allreduce/allreduce.h"

#include "worker/allreduce/replica.h"
#include "worker/compute/models/model.h"

#include <inttypes.h>

/* What it can train: apart from the training, as `downpour compare` checks it before it starts anything. */

static enum dp_status check_model(const char *text, struct dp_error *err)
{
    struct dp_model model = {0};
    enum dp_status st = dp_model_open(text, &model, err);
    if (st == DP_OK)
        st = dp_replica_check(model.graph, text, err);
    dp_model_close(&model);
    return st;
}

enum dp_status dp_allreduce_check(const struct dp_cluster *cluster, uint32_t ranks, struct dp_error *err)
{
    const struct dp_cluster_training *t = &cluster->training;
    const struct {
        bool is;
        const char *what;
    } other[] = {
        {t->work != DP_CLUSTER_FIXED, "training.work \"leased\" (--work): every rank has its share"},
        {t->fetch_every > 1, "training.fetch_every (--fetch-every): every step is of the newest weights"},
        {t->push_every > 1, "training.push_every (--push-every): every minibatch is reduced"},
        {t->accumulate > 1,
         "training.accumulate (--accumulate): every minibatch is reduced; take a larger --batch"},
        {t->threads > 1, "training.threads (--threads): one thread computes; take more ranks"},
        {t->bf16_values, "training.bf16_values: gradients are added as f32"},
        {t->first_epoch > 0, "training.first_epoch: it begins with initial weights, never with a store's"},
        {t->stop_at[0] || t->patience > 0 || cluster->data.validation[0] ||
             (t->keep != DP_KEEP_LAST && dp_cluster_has_best(cluster)),
         "a choice of the best epoch (--validation, --stop-at, --patience): nothing is evaluated"},
    };
    for (size_t i = 0; i < sizeof other / sizeof other[0]; i++)
        if (other[i].is)
            return dp_fail(err, DP_UNSUPPORTED, "an all-reduce training does not have %s", other[i].what);
    if (t->workers != ranks)
        return dp_fail(err, DP_ARGUMENT,
                       "%" PRIu32 " ranks were started, but training.workers (--workers) is %" PRIu32
                       ": start as many, mpirun -n %" PRIu32 " ...",
                       ranks, t->workers, t->workers);
    return check_model(cluster->model, err);
}
