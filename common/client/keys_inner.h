/* Keys, from inside: the parts of a key set that pull and push read.
 *     given position order[j], starts[d] <= j < starts[d + 1]   has the distinct key mixed[d] */
#ifndef DP_CLIENT_KEYS_INNER_H
#define DP_CLIENT_KEYS_INNER_H

#include "common/client/downpour.h"

struct dp_key_place {
    uint64_t mixed;
    uint32_t at; /* position among the keys given */
};

struct dp_keys {
    size_t count, distinct;
    const uint64_t *mixed; /* [distinct] ascending: own or lent */
    bool lent;             /* order, starts and slots are the identity and not filled */
    uint64_t version;      /* another after each set or lend: a pull under way notices */

    size_t room; /* of the arrays below */
    uint64_t *own;
    uint32_t *slots, *order, *starts; /* starts: room + 1 */
    struct dp_key_place *place, *spare;
};

/* First index in [from, distinct] whose key is over `last`. */
size_t dp_keys_end(const struct dp_keys *keys, size_t from, uint64_t last);

#endif
