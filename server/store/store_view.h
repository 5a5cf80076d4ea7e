/* Store view: inspects a store's directory without changing a byte of it.
 *     open (read-only) -> own, files, marks, rows -> close
 * Promise   Nothing in the directory is written, created, renamed or locked. The view shows what was written
 *           back when it was opened; it shows no rows that are only in a
 *           journal or in a running server's memory. Checksums are verified on every read.
 * Live      While a server runs (dp_store_view_in_use), the view is the state of one moment. RocksDB may
 *           remove a file between listing and opening it: open retries, and gives up with DP_CORRUPT or
 *           DP_IO.
 * Thread    One.
 * Memory    Rows, keys and marks are borrowed for the call.
 * Failure   NOT_FOUND: there is no store; the text says what was looked for. UNSUPPORTED: another format.
 *           CORRUPT. IO. UNCLEAN: a table is missing that the server's next start puts back
 *           (rocks_kept.h). */
#ifndef DP_STORE_STORE_VIEW_H
#define DP_STORE_STORE_VIEW_H

#include "common/model/range.h"
#include "server/store/store.h"
#include "server/store/store_id.h"

#include <sys/types.h>

enum dp_store_view_state {
    DP_STORE_VIEW_NEW,            /* never opened successfully: no marks, no rows */
    DP_STORE_VIEW_CLEAN,          /* the rows are complete */
    DP_STORE_VIEW_OPEN_JOURNALED, /* in use, or its server was killed: the journal has the rest */
    DP_STORE_VIEW_OPEN            /* the same without a journal: the rest is in a server's memory, or lost */
};
const char *dp_store_view_state_name(enum dp_store_view_state state);

struct dp_store_view_own {
    enum dp_store_view_state state;
    uint32_t format;
    uint64_t cluster;
    struct dp_range range;
    struct dp_store_id
        id; /* without generation and history all 0: the store is of a build before store ids */
};

/* An SST file of rows. */
struct dp_store_view_file {
    const char *name; /* "000012.sst" */
    int level;
    uint64_t bytes, entries;
};

struct dp_store_view;

/* Whether `directory` looks like a store: it has a file of RocksDB or a shard's journal. */
bool dp_store_view_is_store(const char *directory);
/* The process that has the store open for writing; 0: none; -1: a process whose id is unknown. */
pid_t dp_store_view_in_use(const char *directory);

/* Receives the damage of a store that can be inspected in spite of it. A server would refuse such a store.
 * May be NULL: damage is then a failure. */
struct dp_store_view_damage {
    void (*report)(void *context, const struct dp_error *what);
    void *context;
};
enum dp_status dp_store_view_open(const char *directory, const struct dp_store_view_damage *damaged,
                                  struct dp_store_view **out, struct dp_error *err);
void dp_store_view_close(struct dp_store_view **view);

const struct dp_store_view_own *dp_store_view_own(const struct dp_store_view *view);
/* Visits the files of rows that RocksDB's manifest names, in the order of their names. */
enum dp_status dp_store_view_files(const struct dp_store_view *view,
                                   enum dp_status (*visit)(void *context,
                                                           const struct dp_store_view_file *file,
                                                           struct dp_error *err),
                                   void *context, struct dp_error *err);
/* Like visit_marks of store.h. */
enum dp_status dp_store_view_marks(struct dp_store_view *view, const char *prefix, dp_store_visit_mark *visit,
                                   void *context, struct dp_error *err);
/* Visits all rows in key order and reads every block of every file of rows. With `damaged`, each damaged
 * place is reported, the visit goes on after it, and the result is DP_OK; without, the first damage ends the
 * visit. */
enum dp_status dp_store_view_rows(struct dp_store_view *view, const struct dp_store_view_damage *damaged,
                                  dp_store_visit_row *visit, void *context, struct dp_error *err);
/* Visits the rows from the first one at or above `from`, until visit returns a status other than DP_OK. */
enum dp_status dp_store_view_rows_from(struct dp_store_view *view, struct dp_store_key from,
                                       dp_store_visit_row *visit, void *context, struct dp_error *err);

#endif
