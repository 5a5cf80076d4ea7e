/* Columns file: how the training file was read (worker/read/schema.h), kept next to the weights
 * (data.columns).
 * Promise   The file is complete or absent. A file with the same content is left alone, so that a worker that
 *           restarts on a full disk needs no space.
 * Thread    Any.
 * Failure   DP_FULL when the disk is full; DP_IO names the path. */
#ifndef DP_HISTORY_COLUMNS_FILE_H
#define DP_HISTORY_COLUMNS_FILE_H

#include "common/base/status.h"
#include "worker/read/schema.h"

/* text: written by dp_schema_write. */
DP_MUST_USE
enum dp_status dp_columns_file_put(const char *text, const char *path, struct dp_error *err);
/* Compares the labels with those in the file, if it can be read: the file of an earlier run, on whose weights
 * this one trains. counted: the user set the number of class 0. DP_ARGUMENT names what differs. */
DP_MUST_USE
enum dp_status dp_columns_file_check(const struct dp_schema *now, bool counted, const char *path,
                                     struct dp_error *err);
/* Whether the weights there were trained, by an older build, on categories with the blanks around them: they go on so. */
bool dp_columns_file_keeps_blanks(const char *path);

#endif
