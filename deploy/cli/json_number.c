#include "deploy/cli/json_number.h"

#include <inttypes.h>
#include <stdio.h>

json_t *dp_json_number(uint64_t value)
{
    char text[24];
    if (value <= INT64_MAX)
        return json_integer((json_int_t)value);
    (void)snprintf(text, sizeof text, "%" PRIu64, value);
    return json_string(text);
}
