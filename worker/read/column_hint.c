#include "worker/read/column_hint.h"

#include "common/config/nearest.h"
#include "worker/read/number.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *dp_column_hint(const struct dp_schema *schema, const char *name, char out[DP_COLUMN_HINT_BYTES])
{
    const char **names = calloc(schema->columns + 1u, sizeof *names);
    uint32_t numbers = 0;
    for (uint32_t i = 0; names && i < schema->columns; i++) {
        const char *text = schema->column[i].name, *end = text + strlen(text);
        names[i] = text;
        numbers += dp_number_end(text, end) == end;
    }
    const char *near = names && strlen(name) > 2 ? dp_nearest(name, names, schema->columns) : NULL;
    out[0] = '\0';
    if (2 * numbers >= schema->columns && numbers > 0)
        (void)snprintf(out, DP_COLUMN_HINT_BYTES,
                       ". The first line seems to be data: put a line with the columns' names before it");
    else if (near)
        (void)snprintf(out, DP_COLUMN_HINT_BYTES, " (did you mean '%.100s'?)", near);
    free(names);
    return out;
}
