/* Restore register: the checkpoint's register, as the restored cluster begins with it.
 * It has all values but "stores", so that the restored stores, whose ids are new, join it; and another id, so that nobody who knew
 * the register before, or a store that it knew, takes it for that one.
 * Thread    Any.
 * Failure   That of the register's file (server/control/register_file.h). Nothing is left then, or what a later call replaces. */
#ifndef DP_RESTORE_RESTORE_REGISTER_H
#define DP_RESTORE_RESTORE_REGISTER_H

#include "common/base/status.h"

/* Both are directories; the file's name in each is DP_REGISTER_FILE. Durable when it returns. */
DP_MUST_USE
enum dp_status dp_restore_register(const char *from, const char *to, struct dp_error *err);

#endif
