#include "worker/coordinate/asked_position.h"

#include "common/wire/limits.h"

_Static_assert(DP_POSITION_PIECE <= DP_POSITIONS_MAX, "a piece is one request");

static enum dp_status ask(void *context, uint64_t stream, uint64_t from, size_t count, uint64_t *bits,
                          struct dp_error *err)
{
    return dp_job_pushed(context, stream, from, count, bits, err);
}

enum dp_status dp_asked_position(struct dp_job *job, const struct dp_rounds *rounds,
                                 const struct dp_membership_seat *seat, struct dp_position *out,
                                 struct dp_error *err)
{
    const struct dp_cluster_training *training = &job->cluster->training;
    const struct dp_position_plan plan = {.run = training->run,
                                          .epochs = training->epochs,
                                          .worker = rounds->listed ? 0 : job->worker,
                                          .workers = rounds->listed ? 1 : training->workers,
                                          .groups = rounds->listed ? rounds->listed : rounds->count,
                                          .any_order = rounds->listed > 0,
                                          .from = seat->from,
                                          .missed = seat->missed,
                                          .ask = ask,
                                          .context = job};
    return dp_position_find(&plan, out, err);
}
