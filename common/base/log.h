/* Log: one line an event on stderr: time, level, program, text. Lines of threads do not mix.
 * Promise   It never waits: a line that stderr does not take (a full pipe) is lost, and counted in the log
 *           later.
 * Thread    Any. dp_log_start: before the other threads. */
#ifndef DP_BASE_LOG_H
#define DP_BASE_LOG_H

#include "common/base/status.h"

enum dp_log_level { DP_LOG_ERROR, DP_LOG_WARN, DP_LOG_INFO, DP_LOG_DEBUG };

/* `who` names this process in every line ("server 0"); it is copied (31 characters at most). */
void dp_log_start(const char *who, enum dp_log_level level);
void dp_log(enum dp_log_level level, const char *format, ...) DP_PRINTF(2, 3);

#endif
