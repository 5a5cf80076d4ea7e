/* Made: a checkpoint made by hand of stores that nobody has open, closed cleanly or as after a kill: all that a restore reads.
 *     struct made {...}; made_checkpoint -> DIR/checkpoint-N
 * The rows' files go into the pool, the journal's records behind them into the tail, as a server's copier does it.
 * Failure   The test fails. */
#ifndef DP_TESTS_UNIT_SERVER_RESTORE_MADE_H
#define DP_TESTS_UNIT_SERVER_RESTORE_MADE_H

#include "server/ids/push_ids.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define MADE_SHARDS_MAX 8u

struct made {
    const char *directory; /* DIR */
    uint32_t number;
    uint32_t shards;
    char shard[MADE_SHARDS_MAX][700]; /* their stores' directories */
    /* NULL: the store itself. Else a copy of its rows and marks from before, while the journal is the store's. */
    const char *link[MADE_SHARDS_MAX];
    const struct dp_push_ids *ids;  /* of all shards */
    bool has_steps;                 /* the mark "steps" of shard 0 is that of all */
    const char *register_directory; /* has a file `register` */
};

void made_checkpoint(const struct made *made);
/* A store's rows and marks, copied into a directory that is made. */
void made_copy_rows(const char *store, const char *to);

#endif
