/* View requests: a client hands a shard the view that the shard lacks.
 *     view_put -> it is one of this run, or of a later one -> journaled -> acted on -> AGAIN, until the record is durable
 *     -> answered with the number acted on, and to a member that returns, with whether it takes part here
 * Promise   A shard acts on the newest view that it was given. An older one of the same run changes nothing, and is answered
 *           with the newer number; what cannot be of the same run, or is of an older one, is refused.
 *           So is a run that nobody can have begun (as of pushes: admission.h), and a number that no register has come to:
 *           else one peer's rubbish would shut out all later runs and views.
 *           Once it was answered, no crash takes it back: a process that has joined asks where to go on, and nothing that
 *           the one before it sends is taken any more. Requests that name it go on at once: what they change stands behind
 *           the view in the journal.
 * Thread    The shard's. */
#ifndef DP_SHARD_VIEW_REQUESTS_H
#define DP_SHARD_VIEW_REQUESTS_H

#include "server/durable/write_back.h"
#include "server/shard/admission.h"
#include "server/shard/close.h"
#include "server/shard/replies.h"
#include "server/steps/steps.h"

struct dp_view_requests {
    struct dp_shard_base *base;
    struct dp_steps *steps;
    struct dp_journaling *journaling;
    struct dp_write_back *write_back;
    const struct dp_replies *replies;
    const struct dp_close *close;
    const struct dp_admission *admission;
};

/* err: set where it is refused; the caller answers that. */
void dp_view_requests_put(const struct dp_view_requests *requests, const struct dp_waiting *waiting,
                          struct dp_error *err);

#endif
