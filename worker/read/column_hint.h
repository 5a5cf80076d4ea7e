/* Column hint: what a name that a file's header lacks most likely meant.
 * Thread    Any. */
#ifndef DP_READ_COLUMN_HINT_H
#define DP_READ_COLUMN_HINT_H

#include "worker/read/schema.h"

#define DP_COLUMN_HINT_BYTES 160

/* For the end of a message: " (did you mean 'late'?)", or that the first line seems to be no header; "":
 * none. Returns out. */
const char *dp_column_hint(const struct dp_schema *schema, const char *name, char out[DP_COLUMN_HINT_BYTES]);

#endif
