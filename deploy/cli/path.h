/* Path: names of files as users give them and as messages show them.
 * Thread    Any. */
#ifndef DP_CLI_PATH_H
#define DP_CLI_PATH_H

#include "common/config/cluster.h"

/* An absolute form of a path that need not exist yet. out: DP_PATH_MAX + 1. */
enum dp_status dp_path_absolute(const char *path, char *out, struct dp_error *err);
#define DP_PATH_QUOTED (4 * DP_PATH_MAX + 3)
/* As a shell takes it for one word: in quotes where it needs them. path: at most DP_PATH_MAX bytes. Returns out. */
const char *dp_path_quote(const char *path, char out[DP_PATH_QUOTED]);
/* Whether both names lead to one file that is there, through links too. */
bool dp_path_same(const char *a, const char *b);

#endif
