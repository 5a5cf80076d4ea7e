#include "server/durable/cut.h"

#include "common/base/log.h"
#include "server/checkpoint/copier.h"
#include "server/ids/push_ids_union.h"
#include "server/steps/steps_mark.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

_Static_assert(DP_COPY_LINK_BYTES <= DP_STORE_LINK_BYTES, "a link's name fits into its job");

static void check(const struct dp_cut *cut)
{
    DP_ASSERT(cut->number == 0 || (cut->after <= cut->lsn && cut->lsn <= cut->write_back->journaling->lsn));
    DP_ASSERT((cut->number > 0) == (cut->ids_bytes != NULL));
    DP_ASSERT(!cut->holds || cut->number > 0);
    DP_ASSERT(!cut->holds ||
              (cut->write_back->journaling->holds && cut->write_back->journaling->held == cut->after));
}

/* ---- links */

static enum dp_status submit_link(struct dp_cut *cut, enum dp_store_job_kind kind, const char *name,
                                  void (*done)(void *context, struct dp_io_job *job))
{
    struct dp_io_job *job = dp_io_job_new(done, cut, NULL);
    if (!job)
        return DP_NOMEM;
    job->store.kind = kind;
    (void)snprintf(job->store.link_name, sizeof job->store.link_name, "%s", name);
    return dp_io_jobs_submit_or_free(cut->write_back->jobs, job);
}

static void unlinked(void *context, struct dp_io_job *job)
{
    const struct dp_cut *cut = context;
    if (job->store.status != DP_OK)
        dp_log(DP_LOG_WARN,
               "shard %" PRIu32 ": a checkpoint's copy of its store stays until the next opening: %s",
               cut->write_back->base->index, job->store.error.text);
    dp_io_job_free(job);
}

static void link_made(void *context, struct dp_io_job *job)
{
    struct dp_cut *cut = context;
    char name[DP_COPY_LINK_BYTES];
    dp_copy_link_name(cut->order, cut->number, name);
    if (cut->number > 0 && strcmp(name, job->store.link_name) == 0) { /* else it was dropped */
        cut->linked = job->store.status == DP_OK;
        cut->failed = job->store.error;
    }
    dp_io_job_free(job);
}

/* ---- noting */

/* A copy without the pushes that are kept: they will be applied when their step closes. */
static enum dp_status pack_without_kept(struct dp_cut *cut)
{
    struct dp_push_ids *copy = NULL;
    enum dp_status st = dp_push_ids_new(&copy);
    if (st == DP_OK)
        st = dp_push_ids_merge(copy, cut->write_back->ids);
    for (const struct dp_buffered_step *step = cut->write_back->kept->first; st == DP_OK && step;
         step = step->next)
        for (uint32_t i = 0; i < step->count && st == DP_OK; i++)
            st = dp_push_ids_take_back(copy, step->push[i]->stream, step->push[i]->number);
    cut->ids_bytes = st == DP_OK ? dp_push_ids_pack(copy, &cut->ids_size) : NULL;
    dp_push_ids_free(&copy);
    return st;
}

static enum dp_status note(struct dp_cut *cut)
{
    const struct dp_steps *steps = cut->write_back->steps;
    enum dp_status st = DP_OK;
    cut->lsn = cut->write_back->journaling->lsn;
    cut->after = cut->write_back->stored_lsn;
    cut->run = steps->view.run;
    cut->mode = steps->view.mode;
    cut->open = dp_steps_is_by_step(steps) ? steps->open : 0;
    cut->steps_size = dp_steps_mark_bytes(steps);
    cut->steps_bytes = cut->steps_size > 0 ? malloc(cut->steps_size) : NULL;
    if (cut->steps_bytes)
        dp_steps_mark_pack(steps, cut->steps_bytes);
    if (dp_step_buffer_count(cut->write_back->kept) > 0)
        st = pack_without_kept(cut);
    else
        cut->ids_bytes = dp_push_ids_pack(cut->write_back->ids, &cut->ids_size);
    if (st == DP_OK && (!cut->ids_bytes || (cut->steps_size > 0 && !cut->steps_bytes)))
        st = DP_NOMEM;
    return st;
}

static void forget(struct dp_cut *cut)
{
    free(cut->ids_bytes);
    free(cut->steps_bytes);
    cut->ids_bytes = cut->steps_bytes = NULL;
    cut->ids_size = cut->steps_size = 0;
    cut->number = 0;
    cut->linked = cut->holds = false;
    cut->failed = (struct dp_error){0};
}

/* ---- */

enum dp_status dp_cut_take(struct dp_cut *cut, uint64_t order, uint32_t number)
{
    char name[DP_COPY_LINK_BYTES];
    DP_ASSERT(order > 0 && number > 0 && cut->write_back->journaling->journal);
    dp_cut_drop(cut);
    if (cut->number > 0)
        return DP_AGAIN;
    enum dp_status st = note(cut);
    dp_copy_link_name(order, number, name);
    /* In this turn: the store gets rows of later turns after it. */
    if (st == DP_OK && submit_link(cut, DP_STORE_LINK, name, link_made) != DP_OK)
        st = DP_AGAIN; /* its store is busy */
    if (st != DP_OK) {
        forget(cut);
        return st;
    }
    cut->order = order;
    cut->number = number;
    dp_journaling_hold(cut->write_back->journaling, cut->after);
    cut->holds = true;
    check(cut);
    return DP_OK;
}

bool dp_cut_is_made(const struct dp_cut *cut)
{
    return cut->number > 0 && cut->linked && cut->lsn <= cut->write_back->journaling->durable;
}

void dp_cut_let_journal_go(struct dp_cut *cut)
{
    check(cut);
    if (cut->holds)
        dp_journaling_end_hold(cut->write_back->journaling);
    cut->holds = false;
}

void dp_cut_drop(struct dp_cut *cut)
{
    char name[DP_COPY_LINK_BYTES];
    if (cut->number == 0)
        return;
    dp_cut_let_journal_go(cut);
    dp_copy_link_name(cut->order, cut->number, name);
    if (submit_link(cut, DP_STORE_UNLINK, name, unlinked) == DP_OK)
        forget(cut);
}

void dp_cut_clear(struct dp_cut *cut)
{
    forget(cut);
}
