/* Compare folder: the directory of a comparison: lock  report.json  report.html  figures/  curves.csv  runs.csv  cache/
 *     runs/MODE/seed-N/  grid/MODE/RATE-seed-N/
 * Promise   One comparison at a time works in it. A file that is no comparison's is never removed.
 * Failure   DP_EXISTS: a comparison, or something else, is there. DP_IN_USE: another one is at work in it.
 *           DP_IO naming the path. */
#ifndef DP_COMPARE_COMPARE_FOLDER_H
#define DP_COMPARE_COMPARE_FOLDER_H

#include "common/config/cluster.h"

enum dp_compare_earlier_is { DP_COMPARE_REFUSED, DP_COMPARE_REMOVED, DP_COMPARE_KEPT };

/* Makes it, with its parents. What becomes of an earlier comparison there; where it is removed its cache of decoded data stays. *lock: to be
 * closed. */
DP_MUST_USE
enum dp_status dp_compare_folder_open(const char *dir, enum dp_compare_earlier_is earlier, int *lock,
                                      struct dp_error *err);
/* All that a comparison has made in it, but the lock. */
DP_MUST_USE
enum dp_status dp_compare_folder_clear(const char *dir, struct dp_error *err);
/* Of a training that was cut off, if there is one there: DIR/name. */
DP_MUST_USE
enum dp_status dp_compare_folder_remove(const char *dir, const char *name, struct dp_error *err);

#endif
