/* First history: asks the first server which restore its store is of, for a server whose own restored store
 * waits to take its place (server/restore/restore_exchange.h). Waits until the first server answers; says so
 * every 10 s.
 * Thread    One. Failure DP_STOPPING: a signal came. A final refusal of the first server (another cluster)
 *           has that server's text. */
#ifndef DP_SERVER_FIRST_HISTORY_H
#define DP_SERVER_FIRST_HISTORY_H

#include "common/base/status.h"

#include <stdint.h>

struct dp_first_history {
    uint64_t cluster;
    const char *control; /* endpoint of the first server */
    int signal_fd;       /* readable: the server is to stop */
};

/* context: a struct dp_first_history. */
enum dp_status dp_first_history_ask(void *context, uint64_t *history, struct dp_error *err);

#endif
