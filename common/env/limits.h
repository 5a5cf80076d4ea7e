/* Limits: the bounds that a shell, a batch system or a container sets for this process (ulimit). A library
 * that meets one of them aborts, or the kernel ends the process. So the needs are compared with the limits
 * before.
 * Thread    dp_limits_begin and dp_limits_check: the first one, before there are others. The rest: any. */
#ifndef DP_ENV_LIMITS_H
#define DP_ENV_LIMITS_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

/* About how much a process needs at least; 0: not compared. */
struct dp_limits_need {
    uint64_t files;        /* files and connections that are open at once */
    uint64_t threads;      /* their stacks are added to memory_bytes */
    uint64_t memory_bytes; /* address space beyond what is used now */
    uint64_t file_bytes;   /* the largest file */
};

/* Raises the soft limit of open files to the hard one. From now on a write beyond the limit of a file's size fails
 * with EFBIG and does not end the process. Returns how many files can be open. */
uint64_t dp_limits_begin(void);
/* who: the subject of the refusal. DP_FULL: a limit is too low; the text has both numbers and the name of the limit. */
enum dp_status dp_limits_check(const char *who, const struct dp_limits_need *need, struct dp_error *err);

/* A write failed with this errno because no more may be stored. */
bool dp_limits_full(int why);
/* Then what to do, for the end of a text ("; raise 'ulimit -f'"); "": the reason is another one. */
const char *dp_limits_remedy(int why);

#endif
