#include "tests/bench/program/bench_checkpoint_inner.h"

#include "server/checkpoint/listing.h"
#include "server/checkpoint/prune.h"

#define WAIT_MS 30000u
#define KEPT    2u

static bool is_stopped(void *context)
{
    struct checkpoint_run *run = context;
    dp_local_wait(run->local, 0);
    return dp_local_signal(run->local) || dp_local_failed(run->local);
}

enum dp_status dp_bench_checkpoint_make(struct checkpoint_run *run, struct dp_course_result *out,
                                        struct dp_error *err)
{
    const struct dp_course_options options = {.client = run->server.client[0],
                                              .cluster = run->server.cluster,
                                              .file = run->server.folder.conf,
                                              .directory = run->directory,
                                              .wait_ms = WAIT_MS,
                                              .stopped = is_stopped,
                                              .context = run};
    struct dp_prune pruned;
    int lock = -1;
    enum dp_status st = dp_course_run(&options, out, err);
    if (st == DP_OK)
        st = dp_checkpoint_lock(run->directory, &lock, err);
    if (st == DP_OK)
        st = dp_checkpoint_prune(run->directory, 0, KEPT, false, &pruned, err);
    dp_checkpoint_unlock(&lock);
    return st;
}
