#include "common/base/log.h"

#include <stdarg.h>
#include <stdio.h>
#include <time.h>
#include <unistd.h>

static char log_who[32] = "downpour";
static enum dp_log_level log_level = DP_LOG_INFO;

void dp_log_start(const char *who, enum dp_log_level level)
{
    (void)snprintf(log_who, sizeof log_who, "%s", who);
    log_level = level;
}

void dp_log(enum dp_log_level level, const char *format, ...)
{
    static const char *const names[] = {"error", "warn", "info", "debug"};
    if (level > log_level)
        return;
    char line[1024];
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
    /* One write, so that lines of several threads and processes on one stderr stay whole. */
    if (write(STDERR_FILENO, line, at) < 0)
        return; /* nobody is left to be told */
}
