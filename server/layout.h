/* Layout: which shards lie in a server's directory, kept there in the file `layout` from the day all of them
 * served.
 *     check (before a shard is opened) -> shards open -> all serve -> put
 * Why       A shard's store knows its own range and nothing of its neighbours. In another server's
 *           directory, or after shards moved from one server to another, missing shards would be created
 *           empty, next to or instead of those that have the rows.
 * Promise   A directory with other shards, or with a missing one, is refused with both layouts named;
 *           nothing is changed. Put is durable when it returns, and replaces the file atomically.
 * Thread    Any; one at a time.
 * Failure   DP_EXISTS: the directory has another layout. DP_CORRUPT: a shard is missing, or the file is not
 *           a layout. DP_IO, DP_FULL. */
#ifndef DP_SERVER_LAYOUT_H
#define DP_SERVER_LAYOUT_H

#include "common/env/disk.h"

#include <stdbool.h>
#include <stdint.h>

struct dp_layout {
    uint32_t first, count, total; /* shards first .. first + count - 1 of a cluster of total */
};

#define DP_LAYOUT_NAME_BYTES 64u
/* "shard 1 of 2", "shards 0..1 of 4": for messages. */
void dp_layout_name(const struct dp_layout *layout, char out[DP_LAYOUT_NAME_BYTES]);
/* *known: the file is there, and right. A directory that does not exist is good, and is not made. replaces: missing shards
 * start empty, and are no reason to refuse it. */
enum dp_status dp_layout_check(const char *directory, const struct dp_layout *layout, bool replaces,
                               bool *known, struct dp_error *err);
/* DP_CORRUPT: one of the shards has no store there. */
enum dp_status dp_layout_check_stores(const char *directory, const struct dp_layout *layout,
                                      struct dp_error *err);
/* What the directory's file says. DP_NOT_FOUND: there is none; DP_CORRUPT: it is damaged. It has no checksum: whether its numbers
 * are right, only the shards' own marks say. */
enum dp_status dp_layout_read(const char *directory, struct dp_layout *out, struct dp_error *err);
enum dp_status dp_layout_put(const char *directory, const struct dp_layout *layout, struct dp_error *err);

#endif
