/* Log tail: the end of a child's log. from: where this run's part of the log begins. A log that cannot be
 * read says nothing.
 * Thread    Any: plain functions. */
#ifndef DP_SUPERVISE_LOG_TAIL_H
#define DP_SUPERVISE_LOG_TAIL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* The last error that the child of this name logged, without time and name; false: none. */
bool dp_end_of_log(const char *log, long from, const char *name, char *out, size_t size);
/* By which fault of its own a child ended: the signal, and its log's last line without the time. */
struct dp_last_fault {
    int signal; /* 0: none yet */
    char line[160];
};
/* Notes how a child with this wait status ended. True: by the same fault as the last time. A signal that others send
 * (SIGKILL, SIGTERM, ...) is no fault. */
bool dp_last_fault_repeats(struct dp_last_fault *fault, int status, const char *log, long from);
/* Its last lines, indented. */
void dp_last_lines(const char *log, long from, FILE *file);

#endif
