/* Scratch: a directory of this command's own, in TMPDIR or /tmp, for files that must not lie in a directory
 * that is only read.
 * Failure   DP_IO naming the path. */
#ifndef DP_CLI_SCRATCH_H
#define DP_CLI_SCRATCH_H

#include "common/config/cluster.h"

/* path: DP_PATH_MAX + 1, the directory's; it has an empty directory log/ inside. "" after a failure. */
enum dp_status dp_scratch_make(char *path, struct dp_error *err);
/* With all in it; also any other file or directory. "": no effect; leaves "". */
void dp_scratch_remove(char *path);

#endif
