/* Rocks current: the file CURRENT, which names the manifest that RocksDB reads. The room's own.
 * Why       RocksDB opens whatever it names, puts its bytes into messages, and calls a name that is not there an IO error.
 * Loss of power  At each open RocksDB makes a new manifest, renames the file CURRENT that names it into place, and only then
 *           syncs the directory. Where the rename survives and the manifest's own name does not, CURRENT names a file that is
 *           not there. RocksDB removes the manifest before it later still, and acknowledges nothing before that sync: so if
 *           exactly one manifest is there, with a lower number, it has all that was acknowledged, and CURRENT is pointed back at
 *           it. Of several manifests nobody can tell which one was in use; then, and without any, the store stays refused.
 *           Were it wrong all the same, the journal would not begin where that manifest's marks end, and would be refused.
 * Thread    Any. */
#ifndef DP_STORE_ROCKS_CURRENT_H
#define DP_STORE_ROCKS_CURRENT_H

#include "common/base/status.h"

/* DP_CORRUPT: it is there, and is not the name of a manifest that is there too. DP_UNCLEAN: dp_rocks_current_mend can mend it. */
DP_MUST_USE
enum dp_status dp_rocks_current_check(const char *directory, struct dp_error *err);
/* Points it back at the one manifest that is there, and says so in the log. Nothing where check says anything but DP_UNCLEAN,
 * or another process has the store's lock. */
DP_MUST_USE
enum dp_status dp_rocks_current_mend(const char *directory, struct dp_error *err);

#endif
