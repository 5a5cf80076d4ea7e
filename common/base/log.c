#include "common/base/log.h"

#include <poll.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

#define LINE_BYTES 1024u /* no more than PIPE_BUF */

static char log_who[32] = "downpour";
static enum dp_log_level log_level = DP_LOG_INFO;
static _Atomic unsigned long log_lost;

void dp_log_start(const char *who, enum dp_log_level level)
{
    (void)snprintf(log_who, sizeof log_who, "%s", who);
    log_level = level;
}

/* Never waits: a stopped reader of a pipe must not stop a shard. A writable pipe has room for a line. */
static bool put(const char *line, size_t bytes)
{
    struct pollfd out = {.fd = STDERR_FILENO, .events = POLLOUT};
    if (poll(&out, 1, 0) == 0)
        return false;
    /* One write, so that lines of several threads and processes on one stderr stay complete. A failure cannot be reported. */
    return write(STDERR_FILENO, line, bytes) >= 0;
}

/* Behind the first line that gets through again. */
static void report_lost(void)
{
    char line[96];
    unsigned long lost = atomic_exchange(&log_lost, 0);
    int n = snprintf(line, sizeof line, "%s: %lu lines before this one were lost: stderr was not read\n",
                     log_who, lost);
    if (lost > 0 && !put(line, (size_t)n))
        atomic_fetch_add(&log_lost, lost);
}

void dp_log(enum dp_log_level level, const char *format, ...)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    if (level > log_level)
        return;
    char line[LINE_BYTES];
    struct timespec now;
    struct tm utc;
    (void)clock_gettime(CLOCK_REALTIME, &now);
    (void)gmtime_r(&now.tv_sec, &utc);
    size_t at = strftime(line, sizeof line, "%Y-%m-%dT%H:%M:%S", &utc);
    int n = snprintf(line + at, sizeof line - at, ".%03ldZ %s %s: ", now.tv_nsec / 1000000L, names[level],
                     log_who);
    at += n > 0 ? (size_t)n : 0;
    va_list args;
    va_start(args, format);
    n = vsnprintf(line + at, sizeof line - at, format, args);
    va_end(args);
    at += n > 0 ? (size_t)n : 0;
    if (at > sizeof line - 2)
        at = sizeof line - 2;
    line[at++] = '\n';
    if (put(line, at))
        report_lost();
    else
        atomic_fetch_add(&log_lost, 1);
}
