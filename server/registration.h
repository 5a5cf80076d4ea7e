/* Registration: this server's stores, compared with those of the first server's register.
 *     for each shard, as it opens: admit (asked, judged) -> recovers -> entered (registered) -> serves; then all are watched
 * Promise   No shard serves before the register has its store's id and its opening, durably; until the first
 *           server answers the shard waits, and the log names that server. Once all serve, a change of the
 *           register (another server opened a copy of a store here, the register is another one) sets
 *           `lost`.
 *           A server that only reads registers nothing, and watches nothing.
 *           All stores of a server are of one generation, and of that of the first server's: a store that a
 *           restore missed is refused by name. A new store gets theirs.
 * Thread    new, watch, stop, free: main's. gate: used by the thread that opens that shard. lost, endings:
 *           any. A value "stores" that cannot be read (older builds accepted any bytes) ends no server. A
 *           shard that opens waits until it can be read, and says so with the remedy; with `replaces` it
 *           writes the value again. A serving server continues, and says that it cannot see whether another
 *           copy of a store is opened.
 * Failure   DP_GENERATION: a store that the register does not know as this shard's (identity.h). DP_STOPPING
 *           after stop. */
#ifndef DP_SERVER_REGISTRATION_H
#define DP_SERVER_REGISTRATION_H

#include "common/client/downpour.h"
#include "common/wire/address.h"
#include "server/store/store_id.h"

struct dp_registration_options {
    const char *control; /* endpoint of the first server's control; copied */
    uint64_t cluster;
    uint64_t opening;             /* random, of this process */
    uint32_t first, count, total; /* this server's shards, of the cluster's */
    bool read_only;
    /* Once, from a thread that opens a shard: the generation of this server's stores. 0, 0: all of them are new, and this
     * is the first server. */
    void (*known)(void *context, uint64_t generation, uint64_t history);
    bool discards; /* a missing store starts empty: --discard threw it away */
    bool replaces; /* a store that would be refused takes the place, and it is said what is lost */
    void (*lost)(void *context); /* from the watching thread */
    /* Not of the first server; NULL: nothing is compared. Before a shard's store is judged: what the first
     * server's register says of the cluster. */
    enum dp_status (*compare)(void *context, struct dp_client *client, struct dp_error *err);
    void (*silent)(
        void *
            context); /* the first server did not answer; NULL: nothing is to be done. From any of the threads */
    void *context;
};

struct dp_registration;

/* Before the first server makes a register in this directory: none of the stores there (shard-0000 .. count - 1) may remember one,
 * unless it replaces. */
enum dp_status dp_registration_may_begin(const char *directory, uint32_t count, bool replaces,
                                         struct dp_error *err);
enum dp_status dp_registration_new(const struct dp_registration_options *options,
                                   struct dp_registration **out, struct dp_error *err);
/* Of the shard first + at, whose store is there; directory: copied. Lives as long as the registration. */
const struct dp_store_gate *dp_registration_gate(struct dp_registration *registration, uint32_t at,
                                                 const char *directory);
/* Of its stores, once one has entered. */
uint64_t dp_registration_generation(struct dp_registration *registration);
/* All have entered. address: is put into the register, and again where it is missing there; NULL: the
 * cluster file has it. */
enum dp_status dp_registration_watch(struct dp_registration *registration, const struct dp_address *address,
                                     struct dp_error *err);
/* DP_OK, or why this server is to stop. */
enum dp_status dp_registration_check(struct dp_registration *registration, struct dp_error *err);
/* A waiting caller gives up soon. `known` is not called any more when it returns. */
void dp_registration_stop(struct dp_registration *registration);
/* When no shard opens any more. Accepts NULL inside, leaves NULL. */
void dp_registration_free(struct dp_registration **registration);

#endif
