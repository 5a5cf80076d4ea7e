/* JSON number: a u64 as this program's JSON has it: a number, above 2^63-1 (which jansson's integers do not hold) a text. A cluster
 * file has it so, too. */
#ifndef DP_CLI_JSON_NUMBER_H
#define DP_CLI_JSON_NUMBER_H

#include <jansson.h>
#include <stdint.h>

/* New; NULL: no memory, which jansson's takers pass on. */
json_t *dp_json_number(uint64_t value);

#endif
