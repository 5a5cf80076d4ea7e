/* Sim store, inside: what its files share. Jobs: sim_store.c; links, and copies: sim_store_copy.c. */
#ifndef DP_TESTS_SIM_SIM_STORE_INNER_H
#define DP_TESTS_SIM_SIM_STORE_INNER_H

#include "tests/sim/sim_store.h"

#define SIM_STORE_KINDS (DP_STORE_UNLINK + 1)
#define SIM_LINKS_MAX   16u

struct sim_row {
    struct dp_store_key key;
    size_t bytes;
    char *data;
};

struct sim_mark {
    size_t key_bytes, value_bytes;
    char *data; /* key, then value */
};

/* A row as it was before a write that no marks followed yet. */
struct sim_undo {
    uint64_t job;
    struct sim_row old; /* data NULL: was not there */
};

struct sim_pending {
    struct dp_store_job *job;
    uint64_t number;
};

struct sim_store_copy {
    struct sim_row *row;
    struct sim_mark *mark;
    uint32_t rows, marks;
};

struct sim_link {
    char name[DP_STORE_LINK_BYTES];
    struct sim_store_copy *copy;
};

struct sim_store {
    struct sim_world *world;
    void (*wake)(void *context);
    void (*wrote)(void *context, uint64_t lsn);
    void *context;
    struct sim_row *row; /* by key */
    struct sim_mark *mark;
    struct sim_undo *undo;
    uint32_t rows, rows_room, marks, marks_room, undos, undos_room;
    struct sim_pending *pending; /* in order of submission */
    uint32_t count, room, under_way;
    uint64_t number, change_due_ns;
    struct sim_link link[SIM_LINKS_MAX];
    uint32_t links;
    bool at_once; /* jobs are done when they are submitted */
    struct dp_store_job *completed, **completed_end;
    bool open, fails[SIM_STORE_KINDS];
    void (*died[SIM_STORE_KINDS])(void *context);
    enum dp_status why[SIM_STORE_KINDS], poisoned;
};

/* A realloc that does not fail. */
void *sim_store_resized(void *old, size_t bytes);
char *sim_store_copied(const void *bytes, size_t n);
void sim_store_link(struct sim_store *store, const char *name);
void sim_store_unlink(struct sim_store *store, const char *name); /* as far as it is there */

#define SIM_GROW(array, count, room)                                                                         \
    do {                                                                                                     \
        if ((count) == (room)) {                                                                             \
            (room) = (room) ? 2 * (room) : 64;                                                               \
            (array) = sim_store_resized((array), (room) * sizeof((array)[0]));                               \
        }                                                                                                    \
    } while (0)

#endif
