/* Inspect: a store's directory, looked at without changing a byte of it.
 *     open (read-only) -> own, files, marks, rows -> close
 * Promise   Nothing in the directory is written, made, renamed or locked. What is seen is what was written back when
 *           it was opened, RocksDB's log of marks included: not the rows that live in a journal only, nor those in a
 *           running server's memory. Checksums are verified on all that is read.
 * Live      Beside a running server (dp_inspect_in_use) it sees the state of one moment. RocksDB may remove a file
 *           between the naming and the opening of it: open tries again, and gives up with DP_CORRUPT or DP_IO.
 * Thread    One.
 * Memory    Rows, keys and marks are lent for the call.
 * Failure   NOT_FOUND: no store, with what was looked for; UNSUPPORTED: of another format; CORRUPT; IO; UNCLEAN: a table is
 *           missing that a server's next start puts back (rocks_kept.h). */
#ifndef DP_STORE_INSPECT_H
#define DP_STORE_INSPECT_H

#include "common/model/range.h"
#include "server/store/store.h"

#include <sys/types.h>

enum dp_inspect_state {
    DP_INSPECT_NEW,            /* no opening of it ever ended: no marks, no rows */
    DP_INSPECT_CLEAN,          /* rows are complete */
    DP_INSPECT_OPEN_JOURNALED, /* in use, or was killed: its journal has the rest */
    DP_INSPECT_OPEN            /* the same without a journal: the rest is lost, or in a server's memory */
};
const char *dp_inspect_state_name(enum dp_inspect_state state);

struct dp_inspect_own {
    enum dp_inspect_state state;
    uint32_t format;
    uint64_t cluster, generation;
    struct dp_range range;
};

struct dp_inspect_file { /* an SST file */
    const char *name;    /* "000012.sst" */
    bool rows;           /* of rows, else of marks */
    int level;
    uint64_t bytes, entries;
};

struct dp_inspect;

/* bool: `directory` looks like a store: it has what RocksDB, or the journal of a shard, leaves. */
bool dp_inspect_is_store(const char *directory);
/* The process that has the store open to write, 0: none, -1: one whose number is not known. */
pid_t dp_inspect_in_use(const char *directory);

/* damaged: NULL, or is given what is damaged where the store can be looked at in spite of it; a server would refuse it.
 */
struct dp_inspect_damage {
    void (*tell)(void *context, const struct dp_error *what);
    void *context;
};
DP_MUST_USE
enum dp_status dp_inspect_open(const char *directory, const struct dp_inspect_damage *damaged,
                               struct dp_inspect **out, struct dp_error *err);
void dp_inspect_close(struct dp_inspect **inspect);

const struct dp_inspect_own *dp_inspect_own(const struct dp_inspect *inspect);
/* Files in the order of their names, the ones that are named by RocksDB's manifest. */
DP_MUST_USE
enum dp_status dp_inspect_files(const struct dp_inspect *inspect,
                                enum dp_status (*visit)(void *context, const struct dp_inspect_file *file,
                                                        struct dp_error *err),
                                void *context, struct dp_error *err);
/* As store.h's visit_marks. */
DP_MUST_USE
enum dp_status dp_inspect_marks(struct dp_inspect *inspect, const char *prefix,
                                enum dp_status (*visit)(void *context, const struct dp_store_mark *mark,
                                                        struct dp_error *err),
                                void *context, struct dp_error *err);
/* All rows in key order, every block of every file of rows read. With `damaged` each damaged place is told, what can
 * be read behind it is, and the end is DP_OK; else the first one ends it. */
DP_MUST_USE
enum dp_status dp_inspect_rows(struct dp_inspect *inspect, const struct dp_inspect_damage *damaged,
                               enum dp_status (*visit)(void *context, struct dp_store_key key,
                                                       const void *row, size_t row_bytes,
                                                       struct dp_error *err),
                               void *context, struct dp_error *err);
/* From the first row at or above `from` on, until visit gives another status than DP_OK. */
DP_MUST_USE
enum dp_status dp_inspect_rows_from(struct dp_inspect *inspect, struct dp_store_key from,
                                    enum dp_status (*visit)(void *context, struct dp_store_key key,
                                                            const void *row, size_t row_bytes,
                                                            struct dp_error *err),
                                    void *context, struct dp_error *err);

#endif
