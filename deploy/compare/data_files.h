/* Data files: which files a comparison reads, with their sizes and digests, so that another one can check
 * that its own are the same.
 *     [{"flag": "--train", "path": "...", "bytes": N, "blake2b": "32 hex digits"}, ...]
 * Promise   A digest is of the bytes of the file (server/checkpoint/checksum.h), as they are when the
 *           comparison begins.
 * Failure   DP_NOT_FOUND, DP_IO naming the file; DP_NOMEM. */
#ifndef DP_COMPARE_DATA_FILES_H
#define DP_COMPARE_DATA_FILES_H

#include "deploy/compare/compare_plan.h"

#include <jansson.h>

/* *out: the caller's. */
DP_MUST_USE
enum dp_status dp_data_files(const struct dp_compare_plan *plan, json_t **out, struct dp_error *err);
/* DP_ARGUMENT: a file of the same flag has another digest in `earlier`, which may be NULL; err names the flag and both digests. */
DP_MUST_USE
enum dp_status dp_data_files_check(const json_t *files, const json_t *earlier, struct dp_error *err);

#endif
