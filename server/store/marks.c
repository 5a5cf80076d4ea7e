#include "server/store/marks.h"

#include "common/base/bytes.h"
#include "server/store/marks_file.h"
#include "server/store/rocks_error.h"
#include "server/store/store_directory.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static const char key_format[] = DP_STORE_MARKS_OWN "format", key_cluster[] = DP_STORE_MARKS_OWN "cluster",
                  key_generation[] = DP_STORE_MARKS_OWN "generation",
                  key_history[] = DP_STORE_MARKS_OWN "history", key_range[] = DP_STORE_MARKS_OWN "range",
                  key_state[] = DP_STORE_MARKS_OWN "state", key_identity[] = DP_STORE_MARKS_OWN "identity";

static const char *const state_names[] = {[DP_STORE_VIEW_CLEAN] = "clean",
                                          [DP_STORE_VIEW_OPEN_JOURNALED] = "open-journaled",
                                          [DP_STORE_VIEW_OPEN] = "open"};

static struct dp_store_mark mark_of(const char *key, const void *value, size_t bytes)
{
    return (struct dp_store_mark){key, value, strlen(key), bytes};
}

enum dp_status dp_marks_put(struct dp_rocks_db *db, const struct dp_store_mark *marks, uint32_t count,
                            struct dp_error *err)
{
    enum dp_status st = dp_marks_file_put(db->marks, marks, count, err);
    return st == DP_OK && db->old_marks ? dp_rocks_db_drop_old_marks(db, err) : st;
}

struct visiting {
    const void *prefix;
    size_t prefix_bytes;
    dp_store_visit_mark *visit;
    void *context;
};

static enum dp_status visit_one(void *context, const struct dp_store_mark *mark, struct dp_error *err)
{
    const struct visiting *v = context;
    bool fits = mark->key_bytes >= v->prefix_bytes &&
                (v->prefix_bytes == 0 || memcmp(mark->key, v->prefix, v->prefix_bytes) == 0);
    return fits && !dp_store_mark_is_own(mark) ? v->visit(v->context, mark, err) : DP_OK;
}

enum dp_status dp_marks_visit(const struct dp_rocks_db *db, const void *prefix, size_t prefix_bytes,
                              dp_store_visit_mark *visit, void *context, struct dp_error *err)
{
    struct visiting visiting = {prefix, prefix_bytes, visit, context};
    return dp_marks_file_visit(db->marks, visit_one, &visiting, err);
}

/* An own mark of a fixed length. may_miss: a missing one is all zeros. */
static enum dp_status get(const struct dp_rocks_db *db, const char *key, bool may_miss, void *value,
                          size_t bytes, struct dp_error *err)
{
    struct dp_store_mark mark;
    if (!dp_marks_file_get(db->marks, key, &mark)) {
        memset(value, 0, bytes);
        return may_miss ? DP_OK
                        : dp_fail(err, DP_CORRUPT, "store %s: the mark %s is missing; " DP_STORE_RESTORE_ALL,
                                  db->directory, key);
    }
    if (mark.value_bytes != bytes)
        return dp_fail(err, DP_CORRUPT, "store %s: the mark %s has %zu bytes", db->directory, key,
                       mark.value_bytes);
    memcpy(value, mark.value, bytes);
    return DP_OK;
}

/* A store without a state mark is new, unless it holds rows or other marks. */
static enum dp_status check_new(struct dp_rocks_db *db, struct dp_error *err)
{
    rocksdb_iterator_t *at = rocksdb_create_iterator_cf(db->db, db->read, db->families[DP_ROCKS_ROWS]);
    rocksdb_iter_seek_to_first(at);
    bool empty = !rocksdb_iter_valid(at) && dp_marks_file_is_empty(db->marks);
    enum dp_status st = dp_rocks_error_of(at, db->directory, "look for rows", err);
    rocksdb_iter_destroy(at);
    if (st == DP_OK && !empty)
        st = dp_fail(err, DP_CORRUPT,
                     "store %s has rows or marks, but the mark %s is missing; " DP_STORE_RESTORE_ALL,
                     db->directory, key_state);
    return st;
}

/* DP_NOT_FOUND: there is no state mark. */
static enum dp_status load_state(const struct dp_rocks_db *db, enum dp_store_view_state *state,
                                 struct dp_error *err)
{
    struct dp_store_mark mark;
    *state = DP_STORE_VIEW_NEW;
    if (!dp_marks_file_get(db->marks, key_state, &mark))
        return DP_NOT_FOUND;
    for (int i = DP_STORE_VIEW_CLEAN; i <= DP_STORE_VIEW_OPEN; i++) {
        const char *name = state_names[i];
        if (mark.value_bytes == strlen(name) && memcmp(mark.value, name, mark.value_bytes) == 0)
            *state = (enum dp_store_view_state)i;
    }
    return *state != DP_STORE_VIEW_NEW
               ? DP_OK
               : dp_fail(err, DP_CORRUPT, "store %s: the mark %s is not one of open, open-journaled, clean",
                         db->directory, key_state);
}

/* A store of a build before histories was never restored; one of a build before ids has none yet. */
static enum dp_status load_id(const struct dp_rocks_db *db, struct dp_store_id *id, struct dp_error *err)
{
    char identity[DP_STORE_ID_BYTES], generation[8], history[8];
    enum dp_status st = get(db, key_identity, true, identity, sizeof identity, err);
    if (st == DP_OK)
        st = get(db, key_generation, false, generation, sizeof generation, err);
    if (st == DP_OK)
        st = get(db, key_history, true, history, sizeof history, err);
    if (st != DP_OK)
        return st;
    *id = dp_store_id_decode(identity);
    id->generation = dp_load_u64le(generation);
    id->history = dp_load_u64le(history);
    return id->generation > 0
               ? DP_OK
               : dp_fail(err, DP_CORRUPT, "store %s: the mark %s is 0", db->directory, key_generation);
}

enum dp_status dp_marks_own(const struct dp_rocks_db *db, struct dp_store_view_own *out, struct dp_error *err)
{
    char format[4], cluster[8], range[16];
    *out = (struct dp_store_view_own){0};
    enum dp_status st = load_state(db, &out->state, err);
    if (st == DP_OK)
        st = get(db, key_format, false, format, sizeof format, err);
    if (st != DP_OK)
        return st;
    out->format = dp_load_u32le(format);
    if (out->format == 0 || out->format > DP_MARKS_FORMAT)
        return dp_fail(err, DP_UNSUPPORTED,
                       "store %s has format %" PRIu32
                       ", this build reads format %u; use the build that wrote it, or another directory",
                       db->directory, out->format, DP_MARKS_FORMAT);
    st = get(db, key_cluster, false, cluster, sizeof cluster, err);
    if (st == DP_OK)
        st = get(db, key_range, false, range, sizeof range, err);
    if (st != DP_OK)
        return st;
    out->cluster = dp_load_u64le(cluster);
    out->range = (struct dp_range){dp_load_u64le(range), dp_load_u64le(range + 8)};
    return load_id(db, &out->id, err);
}

/* Durability none: what is left of it. */
static enum dp_status refuse_lost(const struct dp_rocks_db *db, struct dp_error *err)
{
    struct dp_store_mark checkpoint;
    static const char lost[] =
        "was not closed cleanly, and without a journal (durability none) the pushes since its last "
        "clean close are lost";
    if (!dp_marks_file_get(db->marks, DP_STORE_MARK_CHECKPOINT, &checkpoint))
        return dp_fail(
            err, DP_UNCLEAN,
            "store %.200s %s. No checkpoint of it is known: start empty with --discard (of downpour-server, "
            "or of downpour run --resume)",
            db->directory, lost);
    return dp_fail(
        err, DP_UNCLEAN,
        "store %.120s %s. Go back to its last checkpoint, with all servers (downpour restore --overwrite "
        "--from %.*s), or start empty with --discard",
        db->directory, lost, (int)checkpoint.value_bytes, (const char *)checkpoint.value);
}

/* Checks which store it is before how it was closed: the message for a wrong directory must not say to
 * empty it. */
static enum dp_status check_own(const struct dp_rocks_db *db, const struct dp_store_view_own *own,
                                const struct dp_rocks_store_options *options, struct dp_error *err)
{
    const char *directory = options->directory;
    if (own->cluster != options->cluster)
        return dp_fail(err, DP_GENERATION,
                       "store %s belongs to cluster 0x%016" PRIx64 ", not to 0x%016" PRIx64
                       "; put the right one back, or use another directory (a cluster's id is that of its "
                       "cluster file's `id`, else of its `name`)",
                       directory, own->cluster, options->cluster);
    if (own->range.first != options->range.first || own->range.last != options->range.last)
        return dp_fail(
            err, DP_EXISTS,
            "store %s holds the range 0x%016" PRIx64 "..0x%016" PRIx64 ", not 0x%016" PRIx64 "..0x%016" PRIx64
            ": the number of shards or this shard's index has changed; change it back, or use another "
            "directory",
            directory, own->range.first, own->range.last, options->range.first, options->range.last);
    if (own->state == DP_STORE_VIEW_OPEN_JOURNALED && !options->journaled)
        return dp_fail(
            err, DP_UNCLEAN,
            "store %s was not closed cleanly, and its journal holds pushes that the store lacks; start it "
            "once with durability machine or process, which replays the journal",
            directory);
    if (own->state == DP_STORE_VIEW_OPEN)
        return refuse_lost(db, err);
    return DP_OK;
}

#define OWN_MARKS 7u

/* The own marks of a store, with the bytes that they point to. */
struct own_marks {
    char format[4], cluster[8], generation[8], history[8], range[16], identity[DP_STORE_ID_BYTES];
    struct dp_store_mark mark[OWN_MARKS];
};

static void fill_own(const struct dp_rocks_store_options *options, const struct dp_store_id *id,
                     enum dp_store_view_state state, struct own_marks *out)
{
    const char *name = state_names[state];
    dp_store_u32le(out->format, DP_MARKS_FORMAT);
    dp_store_u64le(out->cluster, options->cluster);
    dp_store_u64le(out->generation, id->generation);
    dp_store_u64le(out->history, id->history);
    dp_store_u64le(out->range, options->range.first);
    dp_store_u64le(out->range + 8, options->range.last);
    dp_store_id_encode(id, out->identity);
    const struct dp_store_mark marks[OWN_MARKS] = {
        mark_of(key_format, out->format, sizeof out->format),
        mark_of(key_cluster, out->cluster, sizeof out->cluster),
        mark_of(key_generation, out->generation, sizeof out->generation),
        mark_of(key_history, out->history, sizeof out->history),
        mark_of(key_range, out->range, sizeof out->range),
        mark_of(key_identity, out->identity, sizeof out->identity),
        mark_of(key_state, name, strlen(name))};
    memcpy(out->mark, marks, sizeof marks);
}

static enum dp_status put_own(struct dp_rocks_db *db, const struct dp_rocks_store_options *options,
                              const struct dp_store_id *id, enum dp_store_view_state state,
                              struct dp_error *err)
{
    struct own_marks own;
    fill_own(options, id, state, &own);
    return dp_marks_put(db, own.mark, OWN_MARKS, err);
}

/* What the gate puts, else what the store has, else what the options say of new ones. */
static void set_generation(const struct dp_store_id *found, const struct dp_rocks_store_options *options,
                           struct dp_store_id *id)
{
    const struct dp_store_id fresh = {.generation =
                                          options->generation ? options->generation : DP_GENERATION_FIRST,
                                      .history = options->history};
    const struct dp_store_id *from = id->generation ? id : found->generation ? found : &fresh;
    id->generation = from->generation;
    id->history = from->history;
}

/* *is_new: the store was never opened successfully. *id: if it is not 0, the gate was asked already, and it
 * is kept. */
static enum dp_status look(struct dp_rocks_db *db, const struct dp_rocks_store_options *options,
                           struct dp_store_id *id, bool *is_new, bool *recovers, struct dp_error *err)
{
    struct dp_store_view_own own;
    enum dp_status st = dp_marks_own(db, &own, err);
    bool was_there = st == DP_OK;
    *is_new = st == DP_NOT_FOUND;
    if (was_there)
        st = check_own(db, &own, options, err);
    else if (st == DP_NOT_FOUND)
        st = check_new(db, err);
    if (st == DP_OK && !(*is_new && (options->read_only || id->id != 0)))
        st = dp_store_gate_admit(options->gate, &own.id, *is_new, id, err);
    set_generation(&own.id, options, id);
    *recovers = was_there && own.state == DP_STORE_VIEW_OPEN_JOURNALED;
    return st;
}

enum dp_status dp_marks_look(struct dp_rocks_db *db, const struct dp_rocks_store_options *options,
                             struct dp_store_id *id, bool *recovers, struct dp_error *err)
{
    bool is_new = false;
    enum dp_status st = look(db, options, id, &is_new, recovers, err);
    return st == DP_OK && is_new
               ? dp_fail(err, DP_NOT_FOUND, "store %s is empty: no server has served it yet",
                         options->directory)
               : st;
}

enum dp_status dp_marks_enter(struct dp_rocks_db *db, const struct dp_rocks_store_options *options,
                              struct dp_store_id *id, bool *recovers, struct dp_error *err)
{
    bool is_new = false;
    enum dp_status st = look(db, options, id, &is_new, recovers, err);
    /* Nothing is pushed before it is registered: until then it is no less clean than it was. */
    if (st == DP_OK)
        st = put_own(db, options, id, *recovers ? DP_STORE_VIEW_OPEN_JOURNALED : DP_STORE_VIEW_CLEAN, err);
    return st;
}

enum dp_status dp_marks_begin(struct dp_rocks_db *db, const struct dp_store_id *id, bool journaled,
                              struct dp_error *err)
{
    char identity[DP_STORE_ID_BYTES];
    const char *state = state_names[journaled ? DP_STORE_VIEW_OPEN_JOURNALED : DP_STORE_VIEW_OPEN];
    dp_store_id_encode(id, identity);
    const struct dp_store_mark marks[] = {mark_of(key_identity, identity, sizeof identity),
                                          mark_of(key_state, state, strlen(state))};
    return dp_marks_put(db, marks, 2, err);
}

/* Which store the copy is of: what a checkpoint lists may have been swapped. */
static enum dp_status check_copy(const struct dp_store_view_own *own,
                                 const struct dp_rocks_adoption *adoption, struct dp_error *err)
{
    const char *directory = adoption->store.directory;
    if (own->id.id != adoption->of)
        return dp_fail(err, DP_CORRUPT,
                       "store %s is a copy of store %08" PRIx32 ", not of %08" PRIx32
                       ": its files were swapped",
                       directory, DP_STORE_ID_SHORT(own->id.id), DP_STORE_ID_SHORT(adoption->of));
    if (own->range.first != adoption->store.range.first || own->range.last != adoption->store.range.last)
        return dp_fail(err, DP_CORRUPT,
                       "store %s holds the range 0x%016" PRIx64 "..0x%016" PRIx64 ", not 0x%016" PRIx64
                       "..0x%016" PRIx64 ": its files were swapped",
                       directory, own->range.first, own->range.last, adoption->store.range.first,
                       adoption->store.range.last);
    return DP_OK;
}

enum dp_status dp_marks_adopt(struct dp_rocks_db *db, const struct dp_rocks_adoption *adoption,
                              struct dp_error *err)
{
    struct dp_store_view_own own;
    struct own_marks put;
    struct dp_store_id id = {0};
    enum dp_status st = dp_marks_own(db, &own, err);
    if (st == DP_NOT_FOUND)
        st = dp_fail(err, DP_CORRUPT, "store %s has no mark %s: no server has served it",
                     adoption->store.directory, key_state);
    if (st == DP_OK)
        st = check_copy(&own, adoption, err);
    if (st != DP_OK)
        return st;
    struct dp_store_mark *marks = malloc((OWN_MARKS + adoption->count) * sizeof *marks);
    if (!marks)
        return dp_fail(err, DP_NOMEM, "store %s: no memory for %" PRIu32 " marks", adoption->store.directory,
                       adoption->count);
    dp_store_id_draw(&id.id);
    set_generation(&(struct dp_store_id){0}, &adoption->store, &id);
    fill_own(&adoption->store, &id,
             adoption->store.journaled ? DP_STORE_VIEW_OPEN_JOURNALED : DP_STORE_VIEW_CLEAN, &put);
    memcpy(marks, put.mark, sizeof put.mark);
    if (adoption->count > 0)
        memcpy(marks + OWN_MARKS, adoption->marks, adoption->count * sizeof *marks);
    for (uint32_t i = 0; i < adoption->count; i++)
        DP_ASSERT(!dp_store_mark_is_own(&adoption->marks[i]));
    st = dp_marks_put(db, marks, OWN_MARKS + adoption->count, err);
    free(marks);
    return st;
}

enum dp_status dp_marks_leave(struct dp_rocks_db *db, struct dp_error *err)
{
    const char *clean = state_names[DP_STORE_VIEW_CLEAN];
    struct dp_store_mark mark = mark_of(key_state, clean, strlen(clean));
    return dp_marks_put(db, &mark, 1, err);
}
