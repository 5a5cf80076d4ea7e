/* Rocks current: the file CURRENT, which names the manifest that RocksDB reads. Private to the room.
 * Why       RocksDB opens whatever file CURRENT names, puts its bytes into messages, and reports a missing
 *           one as an IO error. Also, a loss of power may leave CURRENT pointing at a missing file. At each
 *           open, RocksDB creates a new manifest, and renames a CURRENT that names it into place. Only then
 *           it syncs the directory. So the rename may survive without the new manifest.
 * Sound     RocksDB acknowledges nothing before that sync, and removes the previous manifest only later. So
 *           if exactly one manifest is left, with a lower number, it has all that was acknowledged, and
 *           CURRENT is pointed back at it. With several manifests, or none, it is unknown which one was in
 *           use, and the store is refused. If the repair were wrong, that manifest would be older than the
 *           marks' seal (rocks_manifest.h), and would be refused.
 * Thread    Any. */
#ifndef DP_STORE_REPAIR_ROCKS_CURRENT_H
#define DP_STORE_REPAIR_ROCKS_CURRENT_H

#include "common/env/disk.h"

#define DP_ROCKS_CURRENT_BYTES 64u

/* The manifest's name. DP_NOT_FOUND: there is no CURRENT. DP_CORRUPT, without a text: it holds no manifest's name; `name` is then what
 * it holds, printable. */
enum dp_status dp_rocks_current_read(const struct dp_disk *disk, char name[DP_ROCKS_CURRENT_BYTES],
                                     struct dp_error *err);
/* The number in a manifest's name. */
uint64_t dp_rocks_current_number(const char *name);
/* DP_CORRUPT: CURRENT exists but does not name an existing manifest. DP_UNCLEAN: so, but
 * dp_rocks_current_mend can repair it. */
enum dp_status dp_rocks_current_check(const struct dp_disk *disk, const char *directory,
                                      struct dp_error *err);
/* Points CURRENT back at the only manifest, and logs it. Does nothing unless check returns DP_UNCLEAN, or
 * while another process holds the store's lock. */
enum dp_status dp_rocks_current_mend(const struct dp_disk *disk, const char *directory, struct dp_error *err);

#endif
