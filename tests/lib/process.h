/* Process: a program under test, in a session of its own, its output kept in files.
 *     start -> (await text, signal)* -> wait -> (left) -> free
 * Promise   Every wait has a deadline, scaled by DP_PATIENCE where a sanitizer slows all down. free ends
 *           whatever of the session still runs, the grandchildren too; they die with the test program as
 *           well.
 * Thread    One.
 * Failure   What cannot be started ends the test program: there is nothing to test then. */
#ifndef DP_TESTS_LIB_PROCESS_H
#define DP_TESTS_LIB_PROCESS_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

#include "tests/lib/timeouts.h"

struct dp_process;

/* What dp_process_wait gives besides exit codes: minus a signal's number, or this. */
#define DP_PROCESS_RUNS 1000

/* argv[0]: the path, or a name to be looked for in PATH; NULL ends it. Output goes to PREFIX.out and
 * PREFIX.err, made anew. cwd: NULL for this program's own. environment: NULL, or "NAME=value" texts, NULL at
 * the end, set besides. */
struct dp_process_options {
    const char *const *argv;
    const char *prefix;
    const char *cwd;
    const char *const *environment;
};
struct dp_process *dp_process_start(const struct dp_process_options *options);
/* Kills what is left of it. Accepts NULL inside, leaves NULL. */
void dp_process_free(struct dp_process **process);

pid_t dp_process_pid(const struct dp_process *process);
/* Its exit code; -9 if SIGKILL ended it; DP_PROCESS_RUNS past the deadline. timeout_ms 0 looks once. */
int dp_process_wait(struct dp_process *process, uint32_t timeout_ms);
/* The same, for a process that is to end: the deadline begins again when it says something, up to four times as long in all. */
int dp_process_end(struct dp_process *process, uint32_t timeout_ms);
void dp_process_signal(const struct dp_process *process, int number);
/* Until its standard output or error holds the text; false when it ended without, or at the deadline, as in dp_process_end. */
bool dp_process_await(struct dp_process *process, const char *text, uint32_t timeout_ms);
/* What it has written so far; lent until the next call for the same stream. */
const char *dp_process_out(struct dp_process *process);
const char *dp_process_err(struct dp_process *process);

/* Processes of its session that still run, itself not counted. */
uint32_t dp_process_left(const struct dp_process *process);
/* The first process of its session whose command line, its words joined by single blanks, holds the text; 0:
 * none. */
pid_t dp_process_find(const struct dp_process *process, const char *text);

/* Milliseconds of a clock that only goes forward, and a pause between two looks at something. */
uint64_t dp_process_now_ms(void);
void dp_process_pause(void);
/* The whole file with a 0 behind it, from malloc; NULL when it is not there. size may be NULL. */
char *dp_process_slurp(const char *path, size_t *size);

#endif
