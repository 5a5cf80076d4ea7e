#include "server/store/marks.h"

#include "common/base/bytes.h"
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

enum state { STATE_OPEN, STATE_OPEN_JOURNALED, STATE_CLEAN, STATES };
static const char *const state_texts[STATES] = {"open", "open-journaled", "clean"};

/* The store's own marks: numbers are little endian, the range is first | last. */
struct own {
    uint32_t format;
    uint64_t cluster, first, last;
    struct dp_store_id id;
    enum state state;
};

static struct dp_store_mark mark_of(const char *key, const void *value, size_t bytes)
{
    return (struct dp_store_mark){key, value, strlen(key), bytes};
}

static void put_one(struct dp_rocks_db *db, rocksdb_writebatch_t *batch, const struct dp_store_mark *mark)
{
    rocksdb_column_family_handle_t *family = db->families[DP_ROCKS_MARKS];
    if (mark->value)
        rocksdb_writebatch_put_cf(batch, family, mark->key, mark->key_bytes, mark->value, mark->value_bytes);
    else
        rocksdb_writebatch_delete_cf(batch, family, mark->key, mark->key_bytes);
}

enum dp_status dp_marks_put(struct dp_rocks_db *db, const struct dp_store_mark *marks, uint32_t count,
                            struct dp_error *err)
{
    char *text = NULL;
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    for (uint32_t i = 0; i < count; i++)
        put_one(db, batch, &marks[i]);
    rocksdb_write(db->db, db->write_sync, batch, &text);
    rocksdb_writebatch_destroy(batch);
    return dp_rocks_error_take(&text, db->directory, "write marks", err);
}

enum dp_status dp_marks_visit(struct dp_rocks_db *db, const void *prefix, size_t prefix_bytes,
                              enum dp_status (*visit)(void *context, const struct dp_store_mark *mark,
                                                      struct dp_error *err),
                              void *context, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    rocksdb_iterator_t *at = rocksdb_create_iterator_cf(db->db, db->read, db->families[DP_ROCKS_MARKS]);
    for (rocksdb_iter_seek(at, prefix, prefix_bytes); st == DP_OK && rocksdb_iter_valid(at);
         rocksdb_iter_next(at)) {
        struct dp_store_mark mark = {0};
        mark.key = rocksdb_iter_key(at, &mark.key_bytes);
        mark.value = rocksdb_iter_value(at, &mark.value_bytes);
        if (mark.key_bytes < prefix_bytes || (prefix_bytes && memcmp(mark.key, prefix, prefix_bytes) != 0))
            break;
        if (!dp_store_mark_is_own(&mark))
            st = visit(context, &mark, err);
    }
    if (st == DP_OK) { /* an iterator that failed looks like one that ended */
        char *text = NULL;
        rocksdb_iter_get_error(at, &text);
        st = dp_rocks_error_take(&text, db->directory, "read marks", err);
    }
    rocksdb_iter_destroy(at);
    return st;
}

/* DP_NOT_FOUND, without a text: there is no such mark. DP_CORRUPT: its value is longer than bytes_max. */
static enum dp_status get(struct dp_rocks_db *db, const char *key, void *value, size_t bytes_max,
                          size_t *bytes, struct dp_error *err)
{
    char *text = NULL;
    rocksdb_pinnableslice_t *found =
        rocksdb_get_pinned_cf(db->db, db->read, db->families[DP_ROCKS_MARKS], key, strlen(key), &text);
    enum dp_status st = dp_rocks_error_take(&text, db->directory, "read marks", err);
    if (st != DP_OK)
        return st;
    if (!found)
        return DP_NOT_FOUND;
    const char *from = rocksdb_pinnableslice_value(found, bytes);
    if (*bytes > bytes_max)
        st = dp_fail(err, DP_CORRUPT, "store %s: the mark %s has %zu bytes", db->directory, key, *bytes);
    else if (*bytes > 0)
        memcpy(value, from, *bytes);
    rocksdb_pinnableslice_destroy(found);
    return st;
}

static enum dp_status get_number(struct dp_rocks_db *db, const char *key, void *value, size_t bytes,
                                 struct dp_error *err)
{
    size_t found = 0;
    enum dp_status st = get(db, key, value, bytes, &found, err);
    if (st == DP_NOT_FOUND)
        return dp_fail(err, DP_CORRUPT, "store %s: the mark %s is missing; " DP_STORE_RESTORE_ALL,
                       db->directory, key);
    if (st == DP_OK && found != bytes)
        return dp_fail(err, DP_CORRUPT, "store %s: the mark %s has %zu bytes", db->directory, key, found);
    return st;
}

static enum dp_status family_is_empty(struct dp_rocks_db *db, enum dp_rocks_family family, bool *empty,
                                      struct dp_error *err)
{
    char *text = NULL;
    rocksdb_iterator_t *at = rocksdb_create_iterator_cf(db->db, db->read, db->families[family]);
    rocksdb_iter_seek_to_first(at);
    *empty = !rocksdb_iter_valid(at);
    rocksdb_iter_get_error(at, &text);
    rocksdb_iter_destroy(at);
    return dp_rocks_error_take(&text, db->directory, "look for rows and marks", err);
}

/* A store without a state mark is new, unless it holds rows or other marks. */
static enum dp_status check_new(struct dp_rocks_db *db, struct dp_error *err)
{
    bool rows_empty = false, marks_empty = false;
    enum dp_status st = family_is_empty(db, DP_ROCKS_ROWS, &rows_empty, err);
    if (st == DP_OK)
        st = family_is_empty(db, DP_ROCKS_MARKS, &marks_empty, err);
    if (st == DP_OK && !(rows_empty && marks_empty))
        st = dp_fail(err, DP_CORRUPT,
                     "store %s has rows or marks, but the mark %s is missing; " DP_STORE_RESTORE_ALL,
                     db->directory, key_state);
    return st;
}

/* DP_NOT_FOUND: there is no state mark. */
static enum dp_status load_state(struct dp_rocks_db *db, enum state *state, struct dp_error *err)
{
    char text[16];
    size_t bytes = 0;
    enum dp_status st = get(db, key_state, text, sizeof text, &bytes, err);
    if (st != DP_OK)
        return st;
    for (*state = 0; *state < STATES; ++*state)
        if (bytes == strlen(state_texts[*state]) && memcmp(text, state_texts[*state], bytes) == 0)
            return DP_OK;
    return dp_fail(err, DP_CORRUPT, "store %s: the mark %s is not one of open, open-journaled, clean",
                   db->directory, key_state);
}

/* A store of a build before histories has no such mark: it was never restored. */
static enum dp_status load_generation(struct dp_rocks_db *db, struct dp_store_id *id, struct dp_error *err)
{
    char value[8];
    size_t bytes = 0;
    enum dp_status st = get_number(db, key_generation, &id->generation, sizeof id->generation, err);
    if (st == DP_OK && id->generation == 0)
        st = dp_fail(err, DP_CORRUPT, "store %s: the mark %s is 0", db->directory, key_generation);
    if (st != DP_OK)
        return st;
    st = get(db, key_history, value, sizeof value, &bytes, err);
    if (st == DP_NOT_FOUND)
        return DP_OK;
    if (st == DP_OK && bytes != sizeof value)
        return dp_fail(err, DP_CORRUPT, "store %s: the mark %s has %zu bytes", db->directory, key_history,
                       bytes);
    id->history = st == DP_OK ? dp_load_u64le(value) : 0;
    return st;
}

/* All 0: the store has no id yet. */
static enum dp_status load_id(struct dp_rocks_db *db, struct dp_store_id *id, struct dp_error *err)
{
    char value[DP_STORE_ID_BYTES];
    size_t bytes = 0;
    *id = (struct dp_store_id){0};
    enum dp_status st = get(db, key_identity, value, sizeof value, &bytes, err);
    if (st == DP_OK && bytes != sizeof value)
        st = dp_fail(err, DP_CORRUPT, "store %s: the mark %s has %zu bytes", db->directory, key_identity,
                     bytes);
    if (st == DP_OK)
        *id = dp_store_id_decode(value);
    return st == DP_NOT_FOUND ? DP_OK : st;
}

/* DP_NOT_FOUND: there is no state mark. */
static enum dp_status load_own(struct dp_rocks_db *db, struct own *own, struct dp_error *err)
{
    char range[16];
    enum dp_status st = load_state(db, &own->state, err);
    if (st != DP_OK)
        return st;
    st = get_number(db, key_format, &own->format, sizeof own->format, err);
    if (st == DP_OK && own->format == DP_MARKS_FORMAT) { /* else the others may mean something else */
        st = get_number(db, key_cluster, &own->cluster, sizeof own->cluster, err);
        if (st == DP_OK)
            st = get_number(db, key_range, range, sizeof range, err);
        if (st == DP_OK) {
            own->first = dp_load_u64le(range);
            own->last = dp_load_u64le(range + 8);
            st = load_id(db, &own->id, err);
        }
        if (st == DP_OK)
            st = load_generation(db, &own->id, err);
    }
    return st;
}

/* Durability none: what is left of it. */
static enum dp_status refuse_lost(struct dp_rocks_db *db, const char *directory, struct dp_error *err)
{
    char checkpoint[1200] = "";
    size_t bytes = 0;
    struct dp_error unheard = {0};
    static const char lost[] =
        "was not closed cleanly, and without a journal (durability none) the pushes since its last "
        "clean close are lost";
    if (get(db, DP_STORE_MARK_CHECKPOINT, checkpoint, sizeof checkpoint - 1, &bytes, &unheard) != DP_OK)
        return dp_fail(
            err, DP_UNCLEAN,
            "store %.200s %s. No checkpoint of it is known: start empty with --discard (of downpour-server, "
            "or of downpour run --resume)",
            directory, lost);
    return dp_fail(
        err, DP_UNCLEAN,
        "store %.120s %s. Go back to its last checkpoint, with all servers (downpour restore --overwrite "
        "--from %.*s), or start empty with --discard",
        directory, lost, (int)bytes, checkpoint);
}

/* Checks which store it is before how it was closed: a user who gave the wrong directory must not be told to
 * empty it. */
static enum dp_status check_own(struct dp_rocks_db *db, const struct own *own,
                                const struct dp_rocks_store_options *options, struct dp_error *err)
{
    const char *directory = options->directory;
    if (own->format != DP_MARKS_FORMAT)
        return dp_fail(err, DP_UNSUPPORTED,
                       "store %s has format %" PRIu32
                       ", this build reads format %u; use the build that wrote it, "
                       "or another directory",
                       directory, own->format, DP_MARKS_FORMAT);
    if (own->cluster != options->cluster)
        return dp_fail(err, DP_GENERATION,
                       "store %s belongs to cluster 0x%016" PRIx64 ", not to 0x%016" PRIx64
                       "; put the right one back, or use another directory",
                       directory, own->cluster, options->cluster);
    if (own->first != options->range.first || own->last != options->range.last)
        return dp_fail(
            err, DP_EXISTS,
            "store %s holds the range 0x%016" PRIx64 "..0x%016" PRIx64 ", not 0x%016" PRIx64 "..0x%016" PRIx64
            ": the number of shards or this shard's index has changed; change it back, or use another "
            "directory",
            directory, own->first, own->last, options->range.first, options->range.last);
    if (own->state == STATE_OPEN_JOURNALED && !options->journaled)
        return dp_fail(
            err, DP_UNCLEAN,
            "store %s was not closed cleanly, and its journal holds pushes that the store lacks; start it "
            "once with durability machine or process, which replays the journal",
            directory);
    if (own->state == STATE_OPEN)
        return refuse_lost(db, directory, err);
    return DP_OK;
}

#define OWN_MARKS 7u

/* The own marks of a store, with the bytes that they point to. */
struct own_marks {
    char format[4], cluster[8], generation[8], history[8], range[16], identity[DP_STORE_ID_BYTES];
    struct dp_store_mark mark[OWN_MARKS];
};

static void fill_own(const struct dp_rocks_store_options *options, const struct dp_store_id *id,
                     enum state state, struct own_marks *out)
{
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
        mark_of(key_state, state_texts[state], strlen(state_texts[state]))};
    memcpy(out->mark, marks, sizeof marks);
}

static enum dp_status put_own(struct dp_rocks_db *db, const struct dp_rocks_store_options *options,
                              const struct dp_store_id *id, enum state state, struct dp_error *err)
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
    struct own own = {0};
    enum dp_status st = load_own(db, &own, err);
    bool was_there = st == DP_OK;
    *is_new = st == DP_NOT_FOUND;
    if (was_there)
        st = check_own(db, &own, options, err);
    else if (st == DP_NOT_FOUND)
        st = check_new(db, err);
    if (st == DP_OK && !(*is_new && (options->read_only || id->id != 0)))
        st = dp_store_gate_admit(options->gate, &own.id, *is_new, id, err);
    set_generation(&own.id, options, id);
    *recovers = was_there && own.state == STATE_OPEN_JOURNALED;
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
        st = put_own(db, options, id, *recovers ? STATE_OPEN_JOURNALED : STATE_CLEAN, err);
    return st;
}

/* Flushes the marks into a file that the manifest names: even without RocksDB's log they are there. */
static enum dp_status flush(struct dp_rocks_db *db, struct dp_error *err)
{
    char *text = NULL;
    rocksdb_flushoptions_t *options = rocksdb_flushoptions_create();
    rocksdb_flush_cf(db->db, options, db->families[DP_ROCKS_MARKS], &text);
    rocksdb_flushoptions_destroy(options);
    return dp_rocks_error_take(&text, db->directory, "flush marks", err);
}

enum dp_status dp_marks_begin(struct dp_rocks_db *db, const struct dp_store_id *id, bool journaled,
                              struct dp_error *err)
{
    char identity[DP_STORE_ID_BYTES];
    const char *state = state_texts[journaled ? STATE_OPEN_JOURNALED : STATE_OPEN];
    dp_store_id_encode(id, identity);
    const struct dp_store_mark marks[] = {mark_of(key_identity, identity, sizeof identity),
                                          mark_of(key_state, state, strlen(state))};
    enum dp_status st = dp_marks_put(db, marks, 2, err);
    return st == DP_OK ? flush(db, err) : st;
}

/* Which store the copy is of: what a checkpoint lists may have been swapped by hand. */
static enum dp_status check_copy(const struct own *own, const struct dp_rocks_adoption *adoption,
                                 struct dp_error *err)
{
    const char *directory = adoption->store.directory;
    if (own->format != DP_MARKS_FORMAT)
        return dp_fail(err, DP_UNSUPPORTED, "store %s has format %" PRIu32 ", this build reads format %u",
                       directory, own->format, DP_MARKS_FORMAT);
    if (own->id.id != adoption->of)
        return dp_fail(err, DP_CORRUPT,
                       "store %s is a copy of store %08" PRIx32 ", not of %08" PRIx32
                       ": its files were swapped",
                       directory, DP_STORE_ID_SHORT(own->id.id), DP_STORE_ID_SHORT(adoption->of));
    if (own->first != adoption->store.range.first || own->last != adoption->store.range.last)
        return dp_fail(err, DP_CORRUPT,
                       "store %s holds the range 0x%016" PRIx64 "..0x%016" PRIx64 ", not 0x%016" PRIx64
                       "..0x%016" PRIx64 ": its files were swapped",
                       directory, own->first, own->last, adoption->store.range.first,
                       adoption->store.range.last);
    return DP_OK;
}

enum dp_status dp_marks_adopt(struct dp_rocks_db *db, const struct dp_rocks_adoption *adoption,
                              struct dp_error *err)
{
    struct own own = {0};
    struct own_marks put;
    struct dp_store_id id = {0};
    enum dp_status st = load_own(db, &own, err);
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
    fill_own(&adoption->store, &id, adoption->store.journaled ? STATE_OPEN_JOURNALED : STATE_CLEAN, &put);
    memcpy(marks, put.mark, sizeof put.mark);
    if (adoption->count > 0)
        memcpy(marks + OWN_MARKS, adoption->marks, adoption->count * sizeof *marks);
    for (uint32_t i = 0; i < adoption->count; i++)
        DP_ASSERT(!dp_store_mark_is_own(&adoption->marks[i]));
    st = dp_marks_put(db, marks, OWN_MARKS + adoption->count, err);
    free(marks);
    return st == DP_OK ? flush(db, err) : st;
}

enum dp_status dp_marks_set_history(struct dp_rocks_db *db, uint64_t generation, uint64_t history,
                                    struct dp_error *err)
{
    struct own own = {0};
    char number[8], random[8];
    enum dp_status st = load_own(db, &own, err);
    if (st == DP_NOT_FOUND)
        return dp_fail(err, DP_NOT_FOUND, "store %s is empty: no server has served it yet", db->directory);
    if (st == DP_OK && own.format != DP_MARKS_FORMAT)
        st = dp_fail(err, DP_UNSUPPORTED, "store %s has format %" PRIu32 ", this build reads format %u",
                     db->directory, own.format, DP_MARKS_FORMAT);
    if (st != DP_OK)
        return st;
    dp_store_u64le(number, generation);
    dp_store_u64le(random, history);
    const struct dp_store_mark marks[] = {mark_of(key_generation, number, sizeof number),
                                          mark_of(key_history, random, sizeof random)};
    st = dp_marks_put(db, marks, 2, err);
    return st == DP_OK ? flush(db, err) : st;
}

enum dp_status dp_marks_leave(struct dp_rocks_db *db, struct dp_error *err)
{
    struct dp_store_mark mark =
        mark_of(key_state, state_texts[STATE_CLEAN], strlen(state_texts[STATE_CLEAN]));
    return dp_marks_put(db, &mark, 1, err);
}

enum dp_status dp_marks_copy(struct dp_rocks_db *from, struct dp_rocks_db *to,
                             const struct dp_store_mark *more, struct dp_error *err)
{
    enum state state = STATE_OPEN;
    enum dp_status st = load_state(from, &state, err);
    if (st == DP_NOT_FOUND || (st == DP_OK && state != STATE_CLEAN))
        return dp_fail(err, DP_UNCLEAN, "store %s was not closed cleanly", from->directory);
    if (st != DP_OK)
        return st;
    char *text = NULL;
    rocksdb_writebatch_t *batch = rocksdb_writebatch_create();
    rocksdb_iterator_t *at = rocksdb_create_iterator_cf(from->db, from->read, from->families[DP_ROCKS_MARKS]);
    for (rocksdb_iter_seek_to_first(at); rocksdb_iter_valid(at); rocksdb_iter_next(at)) {
        size_t key_bytes, value_bytes;
        const char *key = rocksdb_iter_key(at, &key_bytes), *value = rocksdb_iter_value(at, &value_bytes);
        rocksdb_writebatch_put_cf(batch, to->families[DP_ROCKS_MARKS], key, key_bytes, value, value_bytes);
    }
    rocksdb_iter_get_error(at, &text);
    rocksdb_iter_destroy(at);
    st = dp_rocks_error_take(&text, from->directory, "read marks", err);
    rocksdb_writebatch_put_cf(batch, to->families[DP_ROCKS_MARKS], more->key, more->key_bytes, more->value,
                              more->value_bytes);
    if (st == DP_OK) {
        rocksdb_write(to->db, to->write_sync, batch, &text);
        st = dp_rocks_error_take(&text, to->directory, "write marks", err);
    }
    rocksdb_writebatch_destroy(batch);
    return st;
}
