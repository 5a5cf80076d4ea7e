/* Register names: the values that the product keeps in the register, the client that may set each, and the
 * form of each.
 *     stores         servers, each the place of its own shards    server/control/stores.h
 *     address/N      the server whose first shard is N            common/wire/address.h
 *     generation     no request: the first server itself sets it  server/control/generation.h
 *     cluster        no request: the first server itself sets it  server/beginning.h
 *     runs           workers                                      worker/coordinate/run_number.h
 *     ended          servers, as clients                          server/run_end.h
 *     failed         workers                                      worker/context/run_failure.h
 *     run/N/view     members of run N                             common/wire/view.h
 *     run/N/plan     workers of run N                             worker/coordinate/training_plan.h
 *     run/N/verdict  workers of run N                             worker/coordinate/decision.h
 *     others         anyone: their form is free, and nothing here reads them
 * Promise   An accepted value of these names unpacks in every reader and follows from the version before
 *           it. Counts that only grow do not shrink, and one set changes only the fields of one process. A
 *           run number is one that can have been chosen by now (common/model/stream.h), so a higher one is
 *           always free. Values of other names without a run are kept for ever. They share half of the
 *           register; runs always have the rest. A reader still checks: builds before this one accepted any
 *           bytes.
 * Thread    Any: plain functions.
 * Failure   DP_INVALID names the value, the field and the expected content. DP_AGAIN: the run's number can
 *           be chosen within a minute. DP_NOMEM. */
#ifndef DP_CONTROL_REGISTER_NAMES_H
#define DP_CONTROL_REGISTER_NAMES_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_CONTROL_CLUSTER_NAME "cluster"
#define DP_CONTROL_ENDED_NAME   "ended"
#define DP_CONTROL_FAILED_NAME  "failed"

struct dp_control_names_set {
    const char *name;
    uint32_t server_shard; /* of a server's request: its shard, from 1; 0: a client's */
    uint64_t expected;     /* version */
    const void *before;    /* the value of that version; size 0 at version 0 */
    size_t before_size;
    const void *bytes;
    size_t size;
};

struct dp_control_names_rules {
    uint64_t wall_s; /* since 1970 */
    uint32_t shards; /* of the cluster; 0: not known here */
};

enum dp_status dp_control_names_check(const struct dp_control_names_rules *rules,
                                      const struct dp_control_names_set *set, struct dp_error *err);

/* A value that is kept for ever, whatever it is: its name is in no row, and belongs to no run. */
bool dp_control_names_is_kept(const char *name);

#endif
