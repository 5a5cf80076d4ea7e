/* Inspect view: all that is known of one shard's store: read once, then shown as text or JSON.
 *     own marks -> marks -> journal (its end bounds the rows' lsn) -> rows
 * Promise   The store is not changed. `damage` names all damage; the rest has all that could still be read.
 * Memory    clear frees all that gather has made, also after a failure.
 * Failure   Only where there is nothing to look at: NOT_FOUND, UNSUPPORTED, IO, NOMEM. Damage is none. */
#ifndef DP_INSPECT_INSPECT_VIEW_H
#define DP_INSPECT_INSPECT_VIEW_H

#include "common/wire/view.h"
#include "server/ids/push_ids.h"
#include "server/inspect/inspect_digest.h"
#include "server/inspect/inspect_journal.h"
#include "server/store/store_view.h"

#define DP_INSPECT_DAMAGE_MAX 200u /* kept; more are counted */

struct dp_inspect_view_options {
    bool verify; /* go on after damage, check every record of the journal */
    bool digest;
};

struct dp_inspect_view_table {
    uint32_t id;
    struct dp_table_spec spec;
    uint64_t marked_rows; /* as the mark says */
    uint64_t rows, bytes; /* as was read; bytes: of the records */
    uint64_t first_lsn, last_lsn;
    struct dp_digest digest;
};

struct dp_inspect_view_segment {
    char file[32];
    struct dp_inspect_segment segment; /* .file: NULL */
};

struct dp_inspect_view_files {
    uint64_t count, bytes, entries;
};

struct dp_inspect_view {
    const char *directory; /* the caller's */
    pid_t in_use;
    bool opened; /* else only damage is known */
    struct dp_store_view_own own;
    struct dp_inspect_view_table *table; /* ascending by id */
    size_t tables;
    uint64_t rows_lsn, streams, incarnation, released; /* marks; 0: none */
    struct dp_inspect_view_steps {
        uint32_t run, members; /* run 0: none of workers that joined */
        enum dp_consistency mode;
        uint32_t slack;
        uint64_t open; /* sync: the step that is gathered */
    } steps;           /* as the marks tell them; the journal may go on */
    struct dp_push_ids *ids;
    struct dp_inspect_view_files row_files;
    uint64_t unnamed_files; /* *.sst that the manifest does not name */

    struct dp_inspect_journal journal;
    struct dp_error journal_refused; /* what an opening would say, or {0} */
    struct dp_inspect_view_segment *segment;
    size_t segments, segment_room;
    /* kept: pushes of synchronous steps, closed: such steps, whose rows replay_rows counts */
    uint64_t replay_pushes, replay_refused, replay_rows, replay_kept, replay_closed;

    bool complete; /* all rows were read */
    struct dp_error *damage;
    size_t damages; /* all; the first DP_INSPECT_DAMAGE_MAX are kept */
};

enum dp_status dp_inspect_view_gather(const char *directory, const struct dp_inspect_view_options *options,
                                      struct dp_inspect_view *out, struct dp_error *err);
/* One more damaged place. */
void dp_inspect_view_note(struct dp_inspect_view *view, const struct dp_error *what);
void dp_inspect_view_clear(struct dp_inspect_view *view);
/* Whether a server that opened it would have the rows that are stored, and no others. */
bool dp_inspect_view_is_clean(const struct dp_inspect_view *view);

/* Tables of several shards added up: ascending by name. malloc'd; NULL: no memory (or no table). */
struct dp_digest_table *dp_inspect_view_sum(const struct dp_inspect_view *views, size_t count,
                                            size_t *tables);

#endif
