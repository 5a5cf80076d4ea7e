/* Restore files: brings a checkpoint's files into a directory that is being built, and removes such a directory.
 * Promise   A file that was brought was read in full, and has the size and checksum given (BLAKE2b-128). Its bytes are
 *           durable; its name is once its directory is synced (server/checkpoint/paths.h).
 * Thread    Any.
 * Failure   DP_CORRUPT: missing, of another size, or damaged, naming the file. DP_FULL, DP_IO, naming the path. */
#ifndef DP_RESTORE_RESTORE_FILES_H
#define DP_RESTORE_RESTORE_FILES_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dp_restore_file {
    const char *from, *to; /* `to` must not exist; NULL: it is read and checked alone */
    uint64_t bytes;
    const char *checksum; /* in 32 hex digits */
};

enum dp_status dp_restore_file_bring(const struct dp_restore_file *file, struct dp_error *err);
/* Reads a small file into heap memory that the caller frees, with the same checks. */
enum dp_status dp_restore_file_read(const struct dp_restore_file *file, void **bytes, struct dp_error *err);

#endif
