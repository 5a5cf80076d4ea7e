/* Identity: whether a shard's store is the one that the cluster trained on. Pure: compares the store's
 * identity (store_id.h) with the register's value "stores".
 *     found, stores -> judge -> the store as it is from now on, and the value with it      or: refused, and why
 * Why       A disk that was lost, not mounted or put in another's place leaves an empty directory, or
 *           another store. A new store there, or the wrong one, would silently train on with a part of the
 *           model missing.
 * Promise   A store is recognised if its id is the register's, and the last registered opening is its last
 *           one or the one before. Once a store was opened, an older copy of it is refused. If the register
 *           has no store for a shard, the shard's store joins. A new, empty one joins only if the cluster was
 *           never restored: a restore builds the stores of all servers.
 * Thread    Any. Memory: the caller's. */
#ifndef DP_SERVER_IDENTITY_H
#define DP_SERVER_IDENTITY_H

#include "server/control/stores.h"
#include "server/store/store_id.h"

enum dp_identity {
    DP_IDENTITY_KNOWN,
    DP_IDENTITY_JOINS,          /* the register has none for this shard */
    DP_IDENTITY_LOST,           /* it has one, or a restore built one, and here is none */
    DP_IDENTITY_OTHER,          /* it has another one */
    DP_IDENTITY_OLDER,          /* another copy of it was opened since; or the register is an older copy */
    DP_IDENTITY_REGISTER_OLDER, /* the register is an older copy: this store was registered there, and is not */
    DP_IDENTITY_REGISTER_OTHER /* another register knows this store */
};

struct dp_identity_case {
    struct dp_store_id found;
    bool is_new;      /* there is no store */
    bool is_restored; /* the first server's store is a restored one */
    uint32_t shard;
    const struct dp_stores *stores;
};

enum dp_identity dp_identity_judge(const struct dp_identity_case *it);
static inline bool dp_identity_is_refused(enum dp_identity verdict)
{
    return verdict > DP_IDENTITY_JOINS;
}
/* The store's identity from now on. A store that replaces another one gets a new id, so that clients of that one notice. */
struct dp_store_id dp_identity_next(const struct dp_identity_case *it, enum dp_identity verdict,
                                    uint64_t opening);
/* Why it was refused, and the ways out; fails with DP_GENERATION. */
enum dp_status dp_identity_refuse(const struct dp_identity_case *it, enum dp_identity verdict,
                                  const char *directory, struct dp_error *err);
/* What is lost when it takes the place all the same. */
const char *dp_identity_loss(enum dp_identity verdict);

#endif
