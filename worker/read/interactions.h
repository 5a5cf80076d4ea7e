/* Interactions: which items each user has met in all data that a model was trained on, as a file that grows
 * run after run.
 *     dp_interactions_read -> find -> items -> clear        dp_interactions_write
 * File      64-bit numbers: a magic number; the run that wrote it; whether it has interactions of earlier
 *           data
 *           (0 or 1); how many users, items and interactions; the keys of the users, then of the items, each
 *           ascending; for each user where its interactions begin, and the end. Then 32 bits for each
 *           interaction: the item's place, ascending for a user, and in the highest bit whether it was held
 *           out of the training. A sum of all bytes before is last. Byte order is this machine's.
 * Promise   A file is complete or absent. A reader accepts only an intact one.
 * Memory    Reading: the file's bytes.
 * Failure   DP_NOT_FOUND: there is no such file; DP_DATA: damaged; DP_IO, DP_FULL, DP_NOMEM. */
#ifndef DP_READ_INTERACTIONS_H
#define DP_READ_INTERACTIONS_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

#define DP_INTERACTION_HELD (UINT32_C(1) << 31)

struct dp_interactions {
    uint64_t run;
    bool earlier; /* not of that run's data alone */
    uint64_t users, items, count;
    const uint64_t *user, *item; /* keys, not mixed */
    const uint64_t *first;       /* [users + 1] */
    const uint32_t *code;        /* [count] */
    char *bytes;                 /* of a file that was read */
};

enum dp_status dp_interactions_read(const char *path, struct dp_interactions *out, struct dp_error *err);
void dp_interactions_clear(struct dp_interactions *interactions); /* accepts {0} */
/* Reads its first numbers alone: run and earlier. False: it is no such file. */
bool dp_interactions_head(const char *path, struct dp_interactions *out);
/* The user's place, or `users`. */
uint64_t dp_interactions_find(const struct dp_interactions *interactions, uint64_t user);
enum dp_status dp_interactions_write(const struct dp_interactions *interactions, const char *path,
                                     struct dp_error *err);
/* Writes those of a training set. all: the same with what is held out of it; it may be the same. */
struct dp_content;
enum dp_status dp_interactions_keep(const struct dp_content *trained, const struct dp_content *all,
                                    uint64_t run, bool earlier, const char *path, struct dp_error *err);

#endif
