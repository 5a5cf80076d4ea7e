/* Amounts: how the commands on checkpoints show bytes and progress, and read times.
 * Thread    Any. */
#ifndef DP_CLI_AMOUNTS_H
#define DP_CLI_AMOUNTS_H

#include "common/base/status.h"
#include "deploy/cli/progress.h"

/* "12.3 MB". Returns out. */
const char *dp_amount_bytes(uint64_t bytes, char out[32]);
/* "copying: 1.2 GB of 3.4 GB  120 MB/s  0:18 left" */
void dp_amount_progress(const char *what, uint64_t done, uint64_t all, struct dp_cli_pace *pace, char *out,
                        size_t size);
/* "90s", "10min", "2h", 90: 1 s to 1,000 h, in seconds. */
enum dp_status dp_amount_time(const char *text, const char *flag, uint64_t *out, struct dp_error *err);

#endif
