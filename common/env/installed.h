/* Installed: the directory of this installation's programs, which is that of the running program.
 * Thread    Any.
 * Failure   DP_NOT_FOUND: there is none of that name that can be executed. */
#ifndef DP_ENV_INSTALLED_H
#define DP_ENV_INSTALLED_H

#include "common/base/status.h"

#include <stddef.h>

enum dp_status dp_installed_program(const char *name, char *out, size_t size, struct dp_error *err);

#endif
