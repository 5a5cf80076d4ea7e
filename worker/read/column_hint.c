#include "worker/read/column_hint.h"

#include "common/config/nearest.h"
#include "worker/read/number.h"

#include <inttypes.h>
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
    uint64_t number = 0;
    bool place = dp_number_index(name, name + strlen(name), &number) == name + strlen(name) && number > 0 &&
                 number <= schema->columns;
    const char *near = names && strlen(name) > 2 ? dp_nearest(name, names, schema->columns) : NULL;
    out[0] = '\0';
    if (2 * numbers >= schema->columns && numbers > 0)
        (void)snprintf(out, DP_COLUMN_HINT_BYTES,
                       ". The first line seems to be data: put a line with the columns' names before it");
    else if (schema->columns == 1)
        (void)snprintf(out, DP_COLUMN_HINT_BYTES,
                       ". The line has one column: commas, semicolons or tabs separate them");
    else if (place)
        (void)snprintf(out, DP_COLUMN_HINT_BYTES, " (a name, not a number: column %" PRIu64 " is '%.100s')",
                       number, schema->column[number - 1].name);
    else if (near)
        (void)snprintf(out, DP_COLUMN_HINT_BYTES, " (did you mean '%.100s'?)", near);
    free(names);
    return out;
}
