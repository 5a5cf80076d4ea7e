/* Names: the places of names, for the columns of a header. Private to this room.
 *     init(max) -> find, add -> clear
 * Promise   Finding a name takes constant time (an open-addressed hash table).
 * Memory    The caller keeps the names until clear. 16 to 32 bytes a name, allocated by init.
 * Failure   DP_NOMEM. */
#ifndef DP_READ_NAMES_H
#define DP_READ_NAMES_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define DP_NAMES_NONE UINT32_MAX

struct dp_names {
    struct dp_name {
        uint64_t hash;
        const char *text; /* NULL: free */
        uint32_t len, place;
    } * slots; /* [mask + 1] */
    uint64_t mask;
    uint64_t looked_at; /* slots probed by all calls */
};

/* For at most max names. */
DP_MUST_USE
enum dp_status dp_names_init(struct dp_names *out, uint32_t max, struct dp_error *err);
void dp_names_clear(struct dp_names *names); /* accepts {0} */
/* Returns `place` for a new name, and the old place of a known one. */
uint32_t dp_names_add(struct dp_names *names, const char *text, size_t len, uint32_t place);
/* DP_NAMES_NONE when there is none. {0} holds none. */
uint32_t dp_names_find(struct dp_names *names, const char *text, size_t len);

#endif
