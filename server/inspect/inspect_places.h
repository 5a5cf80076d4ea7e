/* Inspect places: the shards' directories that a directory stands for: itself, or below it shard-N,
 * server-N/shard-N, or store/server-N/shard-N (a run's), in the order of their names.
 * Memory    clear frees the places that add has made.
 * Failure   DP_NOT_FOUND: none, with the names that were tried; DP_IO. */
#ifndef DP_INSPECT_INSPECT_PLACES_H
#define DP_INSPECT_INSPECT_PLACES_H

#include "common/base/status.h"

#include <stddef.h>

struct dp_places {
    char **path;
    size_t count, room;
};

enum dp_status dp_places_add(struct dp_places *places, const char *directory, struct dp_error *err);
void dp_places_clear(struct dp_places *places);

#endif
