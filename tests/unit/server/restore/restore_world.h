/* Restore world: a cluster of shards that trained and was killed, its checkpoint, and what it is restored as.
 *     world_new -> world_restore (as so many servers with so many shards) -> world_live, world_digest ... -> world_free
 * Failure   The test fails, but where a status is returned. */
#ifndef DP_TESTS_UNIT_SERVER_RESTORE_RESTORE_WORLD_H
#define DP_TESTS_UNIT_SERVER_RESTORE_RESTORE_WORLD_H

#include "server/inspect/inspect_digest.h"
#include "server/restore/restore.h"
#include "tests/unit/server/restore/live.h"
#include "tests/unit/server/restore/made.h"

#define WORLD_KEYS   400u /* that were pushed, of each table */
#define WORLD_PUSHES 20u  /* numbers that were used up */
/* A number that is among the checkpoint's ids, and in no shard's own marks or journal. */
#define WORLD_ELSEWHERE 1000u
#define WORLD_ROWS      792u /* of both tables: not every key is in a push to each */

struct world {
    char directory[256];
    struct dp_push_ids *ids;
    struct dp_table_spec sgd, adam;
    struct made made;
    char checkpoint[512];
    const char *history;       /* that is given */
    const char *without;       /* likewise; world_cluster clears it */
    struct dp_cluster cluster; /* as what it was restored last */
    struct dp_cluster_server server[4];
    char digest[DP_DIGEST_TEXT]; /* of the rows at the checkpoint */
    uint64_t rows;               /* of the last digest, as are: */
    size_t tables;
    char items[DP_DIGEST_TEXT]; /* of the table "items" alone, which is the first by name */
};

struct dp_table_spec world_table(const char *name, uint32_t dim, enum dp_optimizer_kind kind);
struct world *world_new(uint32_t shards);
void world_free(struct world *world);

/* The cluster file from now on: servers with these numbers of shards, up to a 0; stores in NAME-0, NAME-1, ... */
void world_cluster(struct world *world, const char *name, const uint32_t *shards);
enum dp_status world_restore_one(struct world *world, uint32_t server, bool overwrite, struct dp_error *err);
/* What all servers have built becomes their stores. */
void world_exchange(struct world *world);
/* All servers. */
void world_restore(struct world *world, const char *name, const uint32_t *shards);
#define WORLD_AS(...) ((const uint32_t[]){__VA_ARGS__, 0})
/* The directory of a shard of it. */
const char *world_shard(struct world *world, uint32_t shard, char path[700]);
struct live *world_live(struct world *world, uint32_t shard);
/* All shards are opened, drained and closed; then the digest of all rows. */
void world_digest(struct world *world, char digest[DP_DIGEST_TEXT]);
/* It has the checkpoint's rows. */
void world_expect_restored(struct world *world);

#endif
