/* Batch scratch: what filling a batch needs beside what it gives. Private to this room. */
#ifndef DP_READ_BATCH_SCRATCH_H
#define DP_READ_BATCH_SCRATCH_H

#include "worker/read/distinct.h"

struct dp_batch_scratch {
    struct dp_distinct_scratch sort;
};

#endif
