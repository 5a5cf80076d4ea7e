/* Asked position: where the job's worker is in its run (position.h), as its servers know it.
 * Thread    The client's. Waits follow the retry policy. */
#ifndef DP_LOOP_ASKED_POSITION_H
#define DP_LOOP_ASKED_POSITION_H

#include "worker/job/job.h"
#include "worker/job/rounds.h"
#include "worker/loop/position.h"
#include "worker/loop/roster.h"

/* seat: the worker's; {0} where nobody waits for anybody. */
DP_MUST_USE
enum dp_status dp_asked_position(struct dp_job *job, const struct dp_rounds *rounds,
                                 const struct dp_roster_seat *seat, struct dp_position *out,
                                 struct dp_error *err);

#endif
