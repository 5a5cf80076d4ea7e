/* Asked position: where the job's worker is in its run (position.h), as its servers know it.
 * Thread    The client's. Waits follow the retry policy. */
#ifndef DP_COORDINATE_ASKED_POSITION_H
#define DP_COORDINATE_ASKED_POSITION_H

#include "worker/context/job.h"
#include "worker/coordinate/membership.h"
#include "worker/history/position.h"
#include "worker/schedule/rounds.h"

/* seat: the worker's; {0} where nobody waits for anybody. */
DP_MUST_USE
enum dp_status dp_asked_position(struct dp_job *job, const struct dp_rounds *rounds,
                                 const struct dp_membership_seat *seat, struct dp_position *out,
                                 struct dp_error *err);

#endif
