/* Names: which place a name has among others: the columns of a header. Private to this room.
 *     init(max) -> find, add -> clear
 * Promise   A name is found in time that does not grow with how many there are (an open-addressed table of hashes).
 * Memory    The names are the caller's, and stay until clear. 16 to 32 bytes a name, at init.
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
    uint64_t looked_at; /* slots, by all calls */
};

/* For max names at most. */
DP_MUST_USE
enum dp_status dp_names_init(struct dp_names *out, uint32_t max, struct dp_error *err);
void dp_names_clear(struct dp_names *names); /* accepts {0} */
/* A name that is there already keeps its place: the one that it has is returned, `place` if it is new. */
uint32_t dp_names_add(struct dp_names *names, const char *text, size_t len, uint32_t place);
/* DP_NAMES_NONE: there is none. {0} holds none. */
uint32_t dp_names_find(struct dp_names *names, const char *text, size_t len);

#endif
