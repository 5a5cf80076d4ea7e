/* JSON file: a JSON value as a file that appears complete or not at all (atomic_file.h).
 * Thread    Any.
 * Memory    *root is consumed, and NULL afterwards.
 * Failure   DP_NOMEM: *root is NULL, as jansson had no memory, or a text is not UTF-8. Else as atomic_file.h. */
#ifndef DP_ENV_JSON_FILE_H
#define DP_ENV_JSON_FILE_H

#include "common/base/status.h"

#include <jansson.h>

/* digits: of its reals. */
enum dp_status dp_json_file_write(const char *path, json_t **root, unsigned digits, struct dp_error *err);

#endif
