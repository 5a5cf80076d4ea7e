/* Leases: which process trains which push numbers of an epoch, where processes take them one after the other
 * (training.work "leased") instead of by a share of their own. Soft: a table in memory, made of the
 * processes' reports.
 *     ask -> GIVEN numbers | WAIT | OVER | TELL (what every shard has) -> told -> ...
 * Why       A number that is leased twice costs a computation and counts once on each shard (push ids). So a
 *           lease needs no expiry, no disk and no agreement: a lost table is rebuilt, a slow or dead process
 *           is worked around.
 * Promise   A number is done when some process said that every shard has it; OVER is answered only when all
 *           are. A number is given to a process that does not hold it. If no number is free, a process
 *           without numbers gets the number that another has held longest. That must be longer than
 *           DP_LEASES_BACKUP times the mean (MapReduce's backup tasks, Dean and Ghemawat 2004). So the
 *           numbers of a dead process are done, and the end of an epoch does not wait for a slow process.
 *           No number is given that is DP_LEASES_SPAN or more above the lowest that is not done: the window
 *           of push numbers on the shards (push_ids.h) never fills, and their streams stay narrow. A
 *           process is a session. Its list of held numbers is complete; its other leases become free. A new
 *           process of a rank frees those of the one before, which gets REPLACED from then on, in every
 *           epoch of the run. The same request (session and id) has the same answer. A request that is
 *           older than the last one only marks numbers as done.
 * But       After a restart, or where all its tables are forgotten, an earlier process counts as new: of two
 *           in one place the last one to ask stays.
 * Bounds    DP_LEASES_TABLES_MAX epochs of all runs; the least recently used epoch is forgotten, as after a
 *           restart. Of each: two bits a number, and DP_LEASES_HOLDERS_MAX processes.
 * Thread    The control thread's. No clock: times are the caller's.
 * Failure   DP_INVALID: another total for an epoch that is known, or two ranks of one session. DP_REPLACED.
 *           DP_NOMEM. */
#ifndef DP_CONTROL_LEASES_H
#define DP_CONTROL_LEASES_H

#include "common/wire/request.h"

#define DP_LEASES_SPAN        2048u
#define DP_LEASES_BACKUP      2u
#define DP_LEASES_TABLES_MAX  16u
#define DP_LEASES_HOLDERS_MAX 8192u

struct dp_leases;

struct dp_lease_answer {
    enum dp_lease_state state;
    uint32_t wait_ms;
    uint64_t done; /* numbers of the epoch */
    uint32_t count;
    uint64_t number[DP_LEASE_WANT_MAX];
};

enum dp_status dp_leases_new(struct dp_leases **out, struct dp_error *err);
void dp_leases_free(struct dp_leases **leases); /* accepts NULL inside */
/* request: a decoded one of kind DP_REQUEST_LEASE. */
enum dp_status dp_leases_take(struct dp_leases *leases, uint64_t now_ns, const struct dp_request *request,
                              struct dp_lease_answer *out, struct dp_error *err);

#endif
