/* Generation: which restore this server's rows come from, as its control thread answers: a number, and
 * random bits (history) that distinguish restores with the same number; history 0: never restored.
 *     (unknown) -> the stores tell theirs, or that all of them are new -> settle -> known, and stays so
 * Why       The stores keep it, and open after control: until they answer, every request but status waits.
 *           The first server also keeps a history in its register's value "generation", so that new stores
 *           of other servers (--replace-store) do not begin a history of their own. If a store has one, the
 *           store is right.
 * Thread    The control thread. */
#ifndef DP_CONTROL_GENERATION_H
#define DP_CONTROL_GENERATION_H

#include "common/wire/request.h"
#include "server/control/register.h"

#define DP_CONTROL_GENERATION_NAME                                                                           \
    "generation" /* the register's value: u64 number | u64 history, little endian */

struct dp_control_generation {
    uint64_t number, history; /* number 0: not known yet */
};

/* found: what the stores tell; number 0: all of them are new. values: NULL: this server has no register. */
struct dp_control_generation dp_control_generation_settle(struct dp_control_register *values,
                                                          struct dp_control_generation found);
/* Whether the request may be done. DP_GENERATION: it names another one. DP_AGAIN: it is not known yet. */
enum dp_status dp_control_generation_check(const struct dp_control_generation *own,
                                           const struct dp_request *request, struct dp_error *err);

#endif
