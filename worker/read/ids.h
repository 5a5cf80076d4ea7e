/* Ids: the names of users or items in a file, and their keys.
 *     {0} -> take, take, ... -> name -> clear
 * Promise   An integer below 2^63 without leading zeros is its own key. Any other text is a name, whose key
 *           is a hash of its bytes, below 2^63: the same in each file, so that neither a test file nor a
 *           store needs a dictionary. Two names with one key are refused.
 * Memory    The distinct names, and 32 to 64 bytes for each.
 * Failure   DP_DATA for two names with one key; DP_NOMEM. */
#ifndef DP_READ_IDS_H
#define DP_READ_IDS_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct dp_ids {
    struct dp_ids_slot {
        uint64_t key, at; /* at: of the name in `text`, plus 1; 0: free */
    } * slots;            /* [mask + 1] */
    uint64_t mask, count;
    char *text; /* names, each ended by a NUL byte */
    uint64_t len, max;
};

/* Whether it is an integer by the rule above, and which. */
bool dp_ids_number(const char *at, size_t len, uint64_t *out);
/* Sets *key to the key of an id, and remembers a name. */
DP_MUST_USE
enum dp_status dp_ids_take(struct dp_ids *ids, const char *at, size_t len, uint64_t *key,
                           struct dp_error *err);
/* NULL when no taken name has this key. Lent until the next take. */
const char *dp_ids_name(const struct dp_ids *ids, uint64_t key);
void dp_ids_clear(struct dp_ids *ids);

#endif
