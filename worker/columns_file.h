/* Columns file: how the file was read that a model is trained on (worker/read/schema.h), beside its weights (data.columns).
 * Promise   Whole or not there. A file that says the same already is left alone, so that a worker that starts again on a full disk
 *           needs no room.
 * Thread    Any.
 * Failure   DP_FULL: there is no room; DP_IO naming the path. */
#ifndef DP_WORKER_COLUMNS_FILE_H
#define DP_WORKER_COLUMNS_FILE_H

#include "common/base/status.h"
#include "worker/read/schema.h"

/* text: by dp_schema_write. */
DP_MUST_USE
enum dp_status dp_columns_file_put(const char *text, const char *path, struct dp_error *err);
/* Whether labels mean what the file there says, where it can be read: that of an earlier run, whose weights are trained on.
 * counted: the user said which number class 0 has. DP_ARGUMENT: they mean something else, and what is what. */
DP_MUST_USE
enum dp_status dp_columns_file_check(const struct dp_schema *now, bool counted, const char *path,
                                     struct dp_error *err);

#endif
