/* Local: the processes of a cluster on this machine, and the signals to this one.
 *     open -> start, start, ... -> wait, look, wait, ... -> stop workers -> stop servers -> close
 * Promise   No process is left: when this one dies in any way, workers get SIGKILL and servers SIGTERM, on
 *           which they close their stores. stop and close end each by SIGTERM. Past a deadline they kill
 *           its complete process group by SIGKILL, and say so. After dp_local_restart_dead a child that was
 *           killed by a signal (a crash is one) is started again. The pause before it doubles from 0.1 s to
 *           5 s while it keeps dying. The number of restarts within 10 minutes is bounded, for all children
 *           together. A child that ends with an exit code is not started again, since it would fail in the
 *           same way. Nor is a child that ended twice by the same fault (an abort, an invalid address), the
 *           second time within 10 s. SIGINT, SIGTERM and SIGHUP to this process ask it to stop. They
 *           interrupt the waits here. SIGTSTP (Ctrl-Z) suspends the children, then this process; SIGCONT to
 *           it (fg, bg) lets all go on.
 * Thread    One; opened before any other thread is started (they inherit the blocked signals).
 * Failure   A child that could not be executed says so in its log and ends with 127. */
#ifndef DP_SUPERVISE_LOCAL_H
#define DP_SUPERVISE_LOCAL_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

enum dp_local_role {
    DP_LOCAL_SERVER,   /* runs until it is stopped */
    DP_LOCAL_WORKER,   /* ends by itself, with 0 */
    DP_LOCAL_OBSERVER, /* however it ends, that is no failure, and it is not started again */
};

struct dp_local;

enum dp_status dp_local_open(struct dp_local **out, struct dp_error *err);
/* Stops what still runs (workers first); accepts NULL inside, leaves NULL. */
void dp_local_close(struct dp_local **local);

/* From now on children that die are started again; max 0: none is (as before this call). */
void dp_local_restart_dead(struct dp_local *local, uint32_t max);
/* From now on a child that ends with DP_EXIT_RETRY is started again, too: a worker without a limit, a server
 * as after a crash. */
void dp_local_restart_retries(struct dp_local *local);
/* What happened to a child since the last call, a line for a person ("server 1 was killed by signal 9 (Killed); ...");
 * false: nothing. */
bool dp_local_news(struct dp_local *local, char *text, size_t size);

/* From now on the logs of children go on behind what is in them, below a line with this title ("run 3") and the time; one of more than
 * 16 MiB is renamed to LOG.1 first. Without a title a log is made anew. */
void dp_local_title(struct dp_local *local, const char *title);

/* argv[0] is the path; NULL ends it. Copied, for when it has to be started again: the log then goes on. Standard output and error go to the file `log`; standard
 * input is empty. name: copied ("server 0"). keep_fd: inherited (-1: none). */
enum dp_status dp_local_start(struct dp_local *local, enum dp_local_role role, const char *name,
                              const char *const *argv, const char *log, int keep_fd, struct dp_error *err);

/* Who is there, and is started again from now on, is started without the one argument and with the other (NULL:
 * none). Without memory: as before. */
void dp_local_start_again_with(struct dp_local *local, const char *without, const char *with);

/* Until something happened (a child ended, a signal came) or the time is over. */
void dp_local_wait(struct dp_local *local, uint32_t timeout_ms);
/* The signal that asked this process to stop, or 0. */
int dp_local_signal(const struct dp_local *local);
/* Those that will be started again are among them. */
uint32_t dp_local_running(const struct dp_local *local, enum dp_local_role role);
/* This worker, in the order of their starts, may end as it should not have, or not at all, or has: that is news, and no failure. Never the
 * first one (0). */
void dp_local_spare_worker(struct dp_local *local, uint32_t worker);
/* Whether the first worker has ended with 0. */
bool dp_local_first_worker_ended(const struct dp_local *local);
/* Whether a child ended as it should not have. If so, dp_local_explain tells a person which, and why: the error that
 * it logged last, else how it ended and the end of its log. */
bool dp_local_failed(const struct dp_local *local);
bool dp_local_server_failed(const struct dp_local *local);
void dp_local_explain(const struct dp_local *local, FILE *file);
/* The error that the first child that failed logged last, without time and name: why it ended with code 2.
 * false: it did not, or the log says nothing; out then has how it ended, where one failed. */
bool dp_local_log_tail(const struct dp_local *local, char *out, size_t size);
/* How the first child ended: its exit code, or 128 + the signal's number. -1: it runs, or is to be started
 * again. */
int dp_local_exit_code(const struct dp_local *local);
/* Sends SIGTERM to those of the role, and waits for none. From then on a child that ends is not started
 * again. */
void dp_local_ask_to_stop(struct dp_local *local, enum dp_local_role role);
/* grace_ms 0: SIGKILL at once. Else SIGTERM to each of the role; past grace_ms, or at a further signal to
 * this process, SIGKILL. From then on, until the next start, who dies is not started again. DP_TIMEOUT: one had to be killed, DP_IO: one ended badly; both said on stderr. */
enum dp_status dp_local_stop(struct dp_local *local, enum dp_local_role role, uint32_t grace_ms);

#endif
