/* Run end: when the servers of a run are no longer needed (--until-done), when its workers have left, and
 * the last checkpoint (the cluster file's `checkpoint`), for which all servers go on answering.
 *     watch the register's "runs" -> worker 0 has recorded the end -> each worker's note says that it left
 *     -> the first server has made the last checkpoint -> it: the others have closed -> over
 *     leave (a signal) -> the workers have left -> the first server has made the last checkpoint
 * Promise   Over means that no process of the run needs a server: all workers left, or some were silent for
 *           so long that the others would not wait for them (training.timeout_ms, ten times that while one
 *           reads its data). The first server keeps the register until the others have closed, so one that
 *           is restarted at the end can open. A run that was complete when this server started is over as
 *           soon as its workers have looked: they have DP_RUN_END_LATE_MS to come.
 *           A worker that would fail again ends the run for all (register value "failed",
 *           worker/context/run_failure.h): over, once the other workers have ended for that, too.
 *           After `leave` it waits for workers and checkpoint DP_RUN_END_LEAVE_MS at most: 3 s for a worker
 *           that is silent, 2 s if none of them leaves, and 2 s for the first server to say that it stops,
 *           too. Else this server alone is stopped. A signal a second later or more ends the wait. A checkpoint
 *           that would not be in time is given up before.
 *           The register's value "ended" outlives the first server's process: of the run, the workers that
 *           have finished and the other servers that have closed, as numbers:
 *               {"start":"6f0c","run":2,"left":[0,1],"closed":[1]}
 *           It belongs to one start of the cluster: a first server of another start clears it.
 *           The first server's note "server/0." says how far it is: stopping, saved. It dies with it.
 * Thread    A thread of its own with until_done, with a client of the first server. The functions: main's.
 * Failure   While the first server does not answer, nothing is over. If all workers were seen to leave, it
 *           is not waited for longer than for a worker; else it is lost after DP_RUN_END_LOST times that. */
#ifndef DP_SERVER_RUN_END_H
#define DP_SERVER_RUN_END_H

#include "common/config/cluster.h"
#include "server/control/register.h"

#define DP_RUN_END_LEAVE_MS 10000u
#define DP_RUN_END_LATE_MS  300000u
#define DP_RUN_END_CLOSE_MS 600000u /* the first server waits so long for the others */
#define DP_RUN_END_LOST     40u     /* times training.timeout_ms */

struct dp_run_end_options {
    const struct dp_cluster *cluster; /* lent */
    uint32_t server;
    bool until_done;              /* else it watches no run: only `leave` does something */
    int signal_fd;                /* readable: a further signal came */
    void (*ended)(void *context); /* from the thread: it is over */
    /* On the first server: makes the last checkpoint, unless `stopped` says so before. NULL: none is made,
     * here or on the first server. */
    void (*save)(void *context, uint32_t retry_ms, bool (*stopped)(void *of), void *of);
    void *context;
};

struct dp_run_end;

/* On the first server, before anything is answered. start: names its start of the cluster, in hex digits, of
 * which there may have been processes before; NULL: none. Without until_done no worker's failure ends the
 * run for all. */
enum dp_status dp_run_end_prepare(struct dp_control_register *values, bool until_done, const char *start,
                                  struct dp_error *err);
enum dp_status dp_run_end_start(const struct dp_run_end_options *options, struct dp_run_end **out,
                                struct dp_error *err);
bool dp_run_end_is_over(const struct dp_run_end *end);
/* DP_UNAVAILABLE: the first server has not answered for so long that it is lost. DP_DATA: over, as a worker
 * would fail again. Accepts NULL. */
enum dp_status dp_run_end_check(const struct dp_run_end *end, struct dp_error *err);
/* Returns when the workers have left and the last checkpoint is made, or the time is over. */
void dp_run_end_leave(struct dp_run_end *end);
/* closed: this server's stores are, and the first server need not wait for it. Accepts NULL inside, leaves
 * NULL. */
void dp_run_end_stop(struct dp_run_end **end, bool closed);

#endif
