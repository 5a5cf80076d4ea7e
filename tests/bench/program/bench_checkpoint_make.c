#include "tests/bench/program/bench_checkpoint_inner.h"

#include "common/client/checkpoint.h"

#define WAIT_MS 30000u
#define LOOK_MS 50
#define KEPT    2u

static enum dp_status look(void *context, const struct dp_checkpoint_state *state, struct dp_error *err)
{
    struct checkpoint_run *run = context;
    dp_local_wait(run->local, LOOK_MS);
    return dp_local_signal(run->local) || dp_local_failed(run->local)
               ? dp_fail(err, DP_STOPPING, "interrupted")
               : DP_OK;
}

enum dp_status dp_bench_checkpoint_make(struct checkpoint_run *run, struct dp_checkpoint_made *out,
                                        struct dp_error *err)
{
    const struct dp_checkpoint_watch watch = {look, run};
    struct dp_checkpoint_ask ask = {.wait_ms = WAIT_MS, .keep = KEPT};
    (void)snprintf(ask.directory, sizeof ask.directory, "%s", run->directory);
    return dp_client_checkpoint_make(run->server.client[0], &ask, &watch, out, err);
}
