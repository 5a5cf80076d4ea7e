/* Store id: identifies a store, and distinguishes its copies. It is the mark "store/identity", which each store
 * has from the opening that created it.
 *     created -> random id -> (each opening that writes: a new `opening`; the registered one goes into
 *     `before`
 *                              -> registered: both are the new one)
 * Why       Two directories with the same id are copies of one store. The register knows the last opening.
 *           The copy that was opened last has it in `opening` or, if that opening ended before it was
 *           registered, in `before`. The other copies do not have the opening in the register. An older
 *           register names an opening that the current copy no longer has.
 * Promise   The id and the opening are durable before a request is answered. They survive closing
 *           and moving. A store of a build before ids gets one when it is first opened for
 *           writing. */
#ifndef DP_STORE_STORE_ID_H
#define DP_STORE_STORE_ID_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stdint.h>

struct dp_store_id {
    uint64_t id;          /* random; 0: none yet */
    uint64_t register_id; /* the register that knows the store; 0: none does */
    uint64_t opening;     /* random number of the last opening that wrote */
    uint64_t before;      /* the opening that the register named then; 0: it did not know the store */
    /* Its rows' restore: the marks "store/generation" and "store/history". 0, 0: the store has none. */
    uint64_t generation, history;
};

#define DP_GENERATION_FIRST 1u /* of a store that was never restored; its history is 0 */

/* Decides whether a store may be opened. Called by the thread that opens it. */
struct dp_store_gate {
    /* Called before anything in the directory is created or changed. is_new: there is no store. *put is a
     * copy of *found; an opening that writes stores it as the new id. generation 0: an
     * existing store keeps its own, a new one gets the first. A status other than DP_OK ends the
     * opening. */
    enum dp_status (*admit)(void *context, const struct dp_store_id *found, bool is_new,
                            struct dp_store_id *put, struct dp_error *err);
    /* Called once the store has the id durably and has recovered, before it accepts a push. */
    enum dp_status (*entered)(void *context, const struct dp_store_id *id, struct dp_error *err);
    /* While one of them waits: sets *err to DP_AGAIN, the cause and the remedy. False: it has nothing to say. Any thread.
     * NULL: it never has. */
    bool (*says)(void *context, struct dp_error *err);
    void *context;
};

#define DP_STORE_ID_BYTES 32u
/* The short form for messages, printed with "%08" PRIx32. */
#define DP_STORE_ID_SHORT(id) ((uint32_t)((id) >> 32))

/* Draws a random number other than 0. */
void dp_store_id_draw(uint64_t *number);
void dp_store_id_encode(const struct dp_store_id *id, char bytes[DP_STORE_ID_BYTES]);
struct dp_store_id dp_store_id_decode(const char bytes[DP_STORE_ID_BYTES]);
/* Asks the gate. Without a gate any store is admitted, and one without an id gets a random one. */
enum dp_status dp_store_gate_admit(const struct dp_store_gate *gate, const struct dp_store_id *found,
                                   bool is_new, struct dp_store_id *put, struct dp_error *err);

#endif
