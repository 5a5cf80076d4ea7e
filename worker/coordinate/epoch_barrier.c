#include "worker/coordinate/epoch_barrier.h"

#include "common/base/log.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define VALUE  "verdict"
#define NOBODY UINT32_MAX
/* How long to wait for the register to change between two looks at notes and signs of life. */
#define WAIT_MS 500u
/* The decider polls for parts; the interval doubles from the first to the second. */
#define POLL_FIRST_MS 2u
#define POLL_MS       100u

/* ---- the decision in the register */

static enum dp_status refresh(struct dp_epoch_barrier *b, uint64_t above, uint32_t wait_ms,
                              struct dp_error *err)
{
    struct dp_register_value value = {0};
    enum dp_status st = dp_shared_get(b->peers->job, VALUE, above, wait_ms, &value, err);
    if (st == DP_OK && value.version > 0)
        st = dp_decision_unpack(value.bytes, value.size, &b->decision, err);
    if (st == DP_OK && value.version < b->version)
        st = dp_fail(err, DP_DATA,
                     "the first server has lost the decisions of run %" PRIu32
                     ": was its store replaced? Set training.run to a higher number",
                     b->peers->job->cluster->training.run);
    if (st == DP_OK && b->decision.state.epoch < b->known_epoch)
        st = dp_fail(
            err, DP_DATA,
            "the first server's decisions of run %" PRIu32 " went back from epoch %" PRIu32 " to %" PRIu32
            ": another program set them. Train further under a higher run number (downpour run --continue, "
            "or training.run)",
            b->peers->job->cluster->training.run, b->known_epoch, b->decision.state.epoch);
    if (st == DP_OK) {
        b->version = value.version;
        b->known_epoch = b->decision.state.epoch;
    }
    dp_register_value_clear(&value);
    if (st == DP_OK && b->decision.from > b->known_from && b->known_from == 1 && b->peers->job->worker == 0)
        dp_log(DP_LOG_WARN,
               "the metrics of the first epochs no longer fit on the first server: if worker 0 restarts "
               "without its "
               "step log (training.steps), the report will lack them; early stopping does not need them");
    if (st == DP_OK)
        b->known_from = b->decision.from;
    return st;
}

/* b->decision was derived from b->version. Reads the value again afterwards, since another worker may have
 * won. */
static enum dp_status store(struct dp_epoch_barrier *b, struct dp_error *err)
{
    bool won = false;
    char *text = dp_decision_pack(&b->decision);
    enum dp_status st = text ? dp_shared_set(b->peers->job, VALUE, b->version, text, strlen(text), &won, err)
                             : dp_fail(err, DP_NOMEM, "no memory for the decision about an epoch");
    free(text);
    return st == DP_OK ? refresh(b, 0, 0, err) : st;
}

/* ---- resting */

static enum dp_status wait_change(struct dp_epoch_barrier *b, uint32_t wait_ms, struct dp_error *err)
{
    const struct dp_job *job = b->peers->job;
    if (dp_job_stopped(job))
        return dp_fail(err, DP_STOPPING, "stopped by a signal while waiting for other workers");
    dp_job_alive(job);
    return refresh(b, b->version, wait_ms, err);
}

/* One round of waiting for all workers to end the epoch; the last to come sets `resting`. */
static enum dp_status gather(struct dp_epoch_barrier *b, uint32_t epoch, struct dp_error *err)
{
    bool all = false;
    enum dp_status st = dp_peers_look(b->peers, DP_PEERS_ENDED, epoch, &all, err);
    if (st != DP_OK)
        return st;
    if (!all) {
        st = dp_peers_check(b->peers, DP_PEERS_ENDED, epoch, NOBODY, err);
        return st == DP_OK ? wait_change(b, WAIT_MS, err) : st;
    }
    b->decision.resting = epoch;
    b->decision.decider = b->peers->job->worker;
    return store(b, err);
}

static enum dp_status give_one(struct dp_epoch_barrier *b, enum dp_peers_kind kind, uint32_t epoch,
                               struct dp_error *err)
{
    void *bytes = NULL;
    size_t size = 0;
    enum dp_status st = b->ops.part(b->context, kind, b->peers->job->worker, epoch, &bytes, &size, err);
    dp_progress_pass(b->peers->progress, "waiting");
    if (st == DP_OK)
        st = dp_peers_reach(b->peers, kind, epoch, bytes, size, err);
    free(bytes);
    return st;
}

/* The judged set last: its part says that both are there. */
static enum dp_status give_part(struct dp_epoch_barrier *b, uint32_t epoch, struct dp_error *err)
{
    enum dp_status st = b->ops.tests ? give_one(b, DP_PEERS_TEST, epoch, err) : DP_OK;
    if (st == DP_OK)
        st = give_one(b, DP_PEERS_PART, epoch, err);
    b->evaluated = epoch;
    return st;
}

/* All parts of one set, those of workers that have left made up for. */
static enum dp_status collect(struct dp_epoch_barrier *b, enum dp_peers_kind kind, uint32_t epoch,
                              struct dp_shared_note *parts, bool *all, struct dp_error *err)
{
    enum dp_status st = dp_peers_fetch(b->peers, kind, epoch, parts, all, err);
    for (uint32_t w = 0; st == DP_OK && *all && w < b->peers->job->cluster->training.workers; w++)
        if (dp_job_is_gone(b->peers->job, w) && !parts[w].bytes)
            st = b->ops.part(b->context, kind, w, epoch, &parts[w].bytes, &parts[w].size, err);
    dp_progress_pass(b->peers->progress, "waiting");
    return st;
}

/* parts, tests: [workers] */
static enum dp_status judge(struct dp_epoch_barrier *b, uint32_t epoch, const struct dp_shared_note *parts,
                            const struct dp_shared_note *tests, struct dp_error *err)
{
    struct dp_decision *d = &b->decision;
    struct dp_early_stop next = d->state;
    struct dp_figures figures;
    struct dp_tested test = {.known = b->ops.tests};
    enum dp_status st = b->ops.merge(b->context, DP_PEERS_PART, epoch, parts, &figures, err);
    if (st == DP_OK && b->ops.tests)
        st = b->ops.merge(b->context, DP_PEERS_TEST, epoch, tests, &test.figures, err);
    if (st == DP_OK)
        st = dp_early_stop_judge(&b->rule, &next, &figures, err);
    /* Before any worker can go on: the weights are still those of this epoch. */
    if (st == DP_OK && b->ops.keep && next.best_epoch == epoch)
        st = b->ops.keep(b->context, epoch, &next, err);
    if (st != DP_OK)
        return st;
    DP_ASSERT(next.epoch == epoch && d->resting == epoch);
    d->state = next;
    d->figures[epoch - 1] = (struct dp_tested){.known = true, .figures = figures};
    d->test_last = test;
    if (next.kept == epoch)
        d->test_kept = test;
    return store(b, err);
}

/* One round of the decider: judges the epoch when all parts are there. */
static enum dp_status decide(struct dp_epoch_barrier *b, uint32_t epoch, uint32_t *poll_ms,
                             struct dp_error *err)
{
    uint32_t workers = b->peers->job->cluster->training.workers;
    struct dp_shared_note *parts = calloc((size_t)2 * workers, sizeof *parts);
    bool all = false;
    if (!parts)
        return dp_fail(err, DP_NOMEM, "no memory for the parts of %" PRIu32 " workers", workers);
    enum dp_status st = dp_peers_look(b->peers, DP_PEERS_PART, epoch, &all, err);
    if (st == DP_OK && all)
        st = collect(b, DP_PEERS_PART, epoch, parts, &all, err);
    if (st == DP_OK && all && b->ops.tests)
        st = collect(b, DP_PEERS_TEST, epoch, parts + workers, &all, err);
    if (st == DP_OK && all)
        st = judge(b, epoch, parts, parts + workers, err);
    else if (st == DP_OK)
        st = dp_peers_check(b->peers, DP_PEERS_PART, epoch, NOBODY, err);
    dp_peers_clear(parts, 2 * workers);
    free(parts);
    if (st != DP_OK || all)
        return st;
    *poll_ms = *poll_ms < POLL_MS / 2 ? *poll_ms * 2 : POLL_MS;
    return wait_change(b, *poll_ms, err);
}

/* One round of waiting for the decider. When all parts are there and the decider does not answer, this worker takes
 * its place. */
static enum dp_status await_decider(struct dp_epoch_barrier *b, uint32_t epoch, struct dp_error *err)
{
    bool all = false;
    enum dp_status st = wait_change(b, WAIT_MS, err);
    if (st != DP_OK || b->decision.state.epoch >= epoch)
        return st;
    st = dp_peers_look(b->peers, DP_PEERS_PART, epoch, &all, err);
    if (st != DP_OK)
        return st;
    bool gone = dp_job_is_gone(b->peers->job, b->decision.decider);
    st = dp_peers_check(b->peers, DP_PEERS_PART, epoch, b->decision.decider, err);
    if (!all || (st == DP_OK && !gone))
        return st;
    dp_log(DP_LOG_WARN, "this worker judges epoch %" PRIu32 " in place of worker %" PRIu32, epoch,
           b->decision.decider);
    b->decision.decider = b->peers->job->worker;
    return store(b, err);
}

enum dp_status dp_epoch_barrier_wait(struct dp_epoch_barrier *b, uint32_t epoch, struct dp_error *err)
{
    const struct dp_decision *d = &b->decision;
    uint32_t poll_ms = POLL_FIRST_MS;
    if (d->state.epoch >= epoch)
        return DP_OK;
    dp_progress_pass(b->peers->progress, "waiting");
    enum dp_status st = dp_peers_reach(b->peers, DP_PEERS_ENDED, epoch, NULL, 0, err);
    while (st == DP_OK && d->state.epoch < epoch) {
        DP_ASSERT(d->state.epoch + 1 == epoch && d->resting <= epoch);
        if (d->resting < epoch)
            st = gather(b, epoch, err);
        else if (b->evaluated < epoch)
            st = give_part(b, epoch, err);
        else if (d->decider == b->peers->job->worker)
            st = decide(b, epoch, &poll_ms, err);
        else
            st = await_decider(b, epoch, err);
    }
    return st == DP_OK ? st : dp_wrap(err, st, "the end of epoch %" PRIu32, epoch);
}

/* ---- the first and the last */

enum dp_status dp_epoch_barrier_open(struct dp_epoch_barrier *b, uint32_t epochs, uint32_t ended,
                                     uint32_t begun, struct dp_error *err)
{
    const struct dp_early_stop *state = &b->decision.state;
    enum dp_status st = dp_decision_init(&b->decision, epochs, b->peers->job->cluster->training.workers, err);
    b->known_from = b->decision.from;
    if (st == DP_OK)
        st = refresh(b, 0, 0, err);
    if (st == DP_OK && begun > 0 && state->epoch < begun - 1)
        st = dp_fail(err, DP_DATA,
                     "the first server does not know what was decided after epoch %" PRIu32 " of run %" PRIu32
                     ": an earlier version began the run, or the store was replaced. Train further under a "
                     "higher run number (downpour run --continue, or training.run)",
                     begun - 1, b->peers->job->cluster->training.run);
    if (st == DP_OK && ended > 0)
        st = dp_peers_reach(b->peers, DP_PEERS_ENDED, ended, NULL, 0, err);
    return st == DP_OK ? st : dp_wrap(err, st, "reading the decisions about earlier epochs");
}

void dp_epoch_barrier_close(struct dp_epoch_barrier *b)
{
    dp_decision_clear(&b->decision);
}
