/* Flat file: names with a text, a number or a switch each, in libconfig's form:
 *     rate = "0.1"; epochs = 20; normalize = true;
 * Failure   DP_IO, DP_ARGUMENT naming file and line; what `visit` returns. */
#ifndef DP_CONFIG_FLAT_FILE_H
#define DP_CONFIG_FLAT_FILE_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdio.h>

/* text: NULL: a switch that is on (one that is off is not visited). Lent. */
typedef enum dp_status dp_flat_visit(void *context, const char *name, const char *text, struct dp_error *err);
enum dp_status dp_flat_file_read(const char *path, dp_flat_visit *visit, void *context, struct dp_error *err);

/* One line of such a file, that reads back equal. text: NULL: a switch. */
void dp_flat_file_line(const char *name, const char *text, FILE *file);

#endif
