/* Area: a directory of checkpoints, and a cluster of two shards without a server: their links are plain files and their journals real, so
 * that the room's files run as they do beside a shard.
 *     new -> change -> make ... -> free
 * Thread    The test's own. */
#ifndef DP_TESTS_UNIT_SERVER_CHECKPOINT_AREA_H
#define DP_TESTS_UNIT_SERVER_CHECKPOINT_AREA_H

#include "server/checkpoint/copy_run.h"
#include "server/checkpoint/listing.h"
#include "server/checkpoint/making.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/prune.h"
#include "server/checkpoint/verify.h"
#include "tests/lib/test.h"

#define AREA_SHARDS 2u

struct area {
    const atomic_bool *cancelled; /* of a prune; NULL: never */
    char top[64], directory[96];  /* directory: DIR, in top */
    char shard[AREA_SHARDS][96];
    uint64_t order, cluster; /* cluster: in manifests; prunes keep those of others; 0: there is one */
    uint32_t version;        /* of what the links hold */
    uint64_t after, lsn, until;
    bool full, link;
    struct dp_manifest_shard copied[AREA_SHARDS]; /* by the last make */
};

struct area *area_new(void);
void area_free(struct area *area);
/* The stores have changed: of their files one stays, one is new, one has the same name and size and other bytes. */
void area_change(struct area *area);
/* A job for the shard's link of now, with this order. */
struct dp_copy_job *area_job(const struct area *area, uint32_t shard);
/* Copies that shard; in real life its thread does. */
void area_copy(const struct area *area, struct dp_copy_job *job);
/* A whole checkpoint, as the command makes it, under the lock. *number: its number. */
enum dp_status area_make(struct area *area, uint32_t *number, struct dp_error *err);
enum dp_status area_prune(const struct area *area, uint32_t keep, struct dp_prune *out, struct dp_error *err);
/* With checksums. */
enum dp_status area_verify(const struct area *area, uint32_t number, struct dp_error *err);
/* Every checkpoint that is listed is whole; returns how many there are. */
size_t area_expect_whole(const struct area *area);
/* How many regular files there are below DIR/at, of which names begin with `prefix`. */
uint32_t area_count(const struct area *area, const char *at, const char *prefix);
void area_put_file(const char *path, const void *bytes, size_t size);

#endif
