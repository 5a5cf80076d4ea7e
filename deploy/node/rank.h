/* Rank: which of the processes that a launcher started this one is.
 *     --rank -> DOWNPOUR_RANK -> the variables of launchers, which must agree
 * Why       Open MPI within a Slurm job sets its own variables and leaves Slurm's: two launchers then give
 *           two ranks. A guess would start one server twice.
 * Thread    Any that may call getenv.
 * Failure   DP_ARGUMENT: none is set, two differ, or one is no number; it names them. */
#ifndef DP_NODE_RANK_H
#define DP_NODE_RANK_H

#include "common/base/status.h"

#include <stdint.h>

struct dp_node_rank {
    uint64_t rank;
    const char *name; /* "--rank", or the variable's */
    uint64_t size;    /* processes that the same launcher started; 0: not known */
    const char *size_name;
};

/* flag: the value of --rank, or NULL. */
enum dp_status dp_node_rank_find(const char *flag, struct dp_node_rank *out, struct dp_error *err);

#endif
