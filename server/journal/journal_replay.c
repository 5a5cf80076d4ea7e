/* The chain is the last segment whose first lsn is at most the wanted one, and those after it, as long as
 * each continues where the one before ended. A segment's records count up to the first lsn of the next valid
 * segment: the opening that made that segment has cut the others.
 * Why   A claim ("all up to lsn n was durable") is true for ever: no opening cuts below a
 *       claim that it can see. So claims count in stale records and after damage, too. A missing record at or
 *       below the highest claim was durable once, so the opening is refused. */
#include "server/journal/journal_replay.h"

#include "server/journal/crc32c.h"
#include "server/journal/journal_cut.h"

#include <inttypes.h>
#include <stdlib.h>

#define REMEDY                                                                                               \
    "or a copy of the store made since its server last ended (an earlier one lacks pushes), or a "           \
    "checkpoint (downpour restore --overwrite); without one, move the store away and start with "            \
    "--replace-store, which starts it empty"

#define WINDOW_BYTES (4u << 20)

/* A window on a file; it grows to the largest piece asked for. */
struct window {
    const struct dp_disk *disk;
    struct dp_file *file;
    uint64_t file_bytes, at;
    uint8_t *data;
    size_t filled, room;
    const struct dp_journal_options *options;
    enum dp_journal_phase phase;
    uint64_t done_bytes, all_bytes; /* read so far; to be read at most */
};

static struct window window_of(const struct dp_journal_options *options, enum dp_journal_phase phase)
{
    return (struct window){.disk = options->disk, .options = options, .phase = phase};
}

static enum dp_status tell_progress(const struct window *w, struct dp_error *err)
{
    const struct dp_journal_options *o = w->options;
    uint64_t done = w->done_bytes < w->all_bytes ? w->done_bytes : w->all_bytes;
    return o->progress ? o->progress(o->progress_context, w->phase, done, w->all_bytes, err) : DP_OK;
}

/* Reads [at, at + bytes), which must lie in the file. Returns NULL after a failure, which is in *st. */
static const uint8_t *window_get(struct window *w, uint64_t at, size_t bytes, enum dp_status *st,
                                 struct dp_error *err)
{
    if (at >= w->at && at + bytes <= w->at + w->filled)
        return w->data + (at - w->at);
    if (bytes > w->room) {
        size_t room = bytes > WINDOW_BYTES ? bytes : WINDOW_BYTES;
        uint8_t *data = malloc(room);
        if (!data) {
            *st = dp_fail(err, DP_NOMEM, "journal: no memory for a buffer of %zu bytes", room);
            return NULL;
        }
        free(w->data);
        w->data = data;
        w->room = room;
    }
    uint64_t left = w->file_bytes - at;
    w->filled = 0;
    size_t want = left < w->room ? (size_t)left : w->room;
    *st = tell_progress(w, err);
    if (*st == DP_OK)
        *st = w->disk->read(w->disk->self, w->file, at, w->data, want, err);
    if (*st != DP_OK)
        return NULL;
    w->done_bytes += want;
    w->at = at;
    w->filled = want;
    return w->data;
}

static void window_turn(struct window *w, const struct dp_journal_segment *segment)
{
    w->file = segment->file;
    w->file_bytes = segment->bytes;
    w->filled = 0;
}

/* ---- one segment ---- */

struct replay_cursor {
    uint64_t at;     /* of the next header */
    uint64_t lsn;    /* of the last record */
    uint64_t limit;  /* records from this lsn on do not count */
    uint64_t synced; /* highest claim in a header that counts, including pads */
    bool closed;     /* a clean end was found */
};

/* The next record that counts: *payload is set, or NULL at the end. */
static enum dp_status next_record(struct window *w, const struct dp_journal_page *page,
                                  struct replay_cursor *cursor, struct dp_journal_header *header,
                                  const uint8_t **payload, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    *payload = NULL;
    while (cursor->lsn + 1 < cursor->limit && cursor->at + DP_JOURNAL_HEADER <= w->file_bytes) {
        const uint8_t *bytes = window_get(w, cursor->at, DP_JOURNAL_HEADER, &st, err);
        if (!bytes)
            return st;
        uint64_t room = w->file_bytes - cursor->at - DP_JOURNAL_HEADER;
        bool record = dp_journal_header_take(bytes, header) && header->incarnation == page->incarnation &&
                      header->secret == page->secret &&
                      header->lsn == cursor->lsn + (header->kind == DP_JOURNAL_RECORD) &&
                      dp_journal_record_fits(header, room);
        if (record && header->kind != DP_JOURNAL_RECORD && header->synced_lsn > cursor->synced)
            cursor->synced = header->synced_lsn;
        if (!record || header->kind == DP_JOURNAL_CLOSED) {
            cursor->closed = record;
            return DP_OK;
        }
        if (header->kind == DP_JOURNAL_PAD) {
            cursor->at += dp_journal_record_bytes(header->bytes);
            continue;
        }
        bytes = window_get(w, cursor->at + DP_JOURNAL_HEADER, (size_t)header->bytes, &st, err);
        if (!bytes)
            return st;
        uint32_t seed = dp_journal_payload_seed(header->incarnation, header->lsn);
        if (dp_crc32c(seed, bytes, (size_t)header->bytes) != header->payload_crc)
            return DP_OK;
        cursor->at += dp_journal_record_bytes(header->bytes);
        cursor->lsn = header->lsn;
        if (header->synced_lsn > cursor->synced)
            cursor->synced = header->synced_lsn;
        *payload = bytes;
        return DP_OK;
    }
    return DP_OK;
}

static uint64_t limit_of(const struct dp_journal_found *found, size_t i)
{
    uint64_t limit = found->is_live ? found->read_until + 1 : UINT64_MAX;
    for (size_t k = i + 1; k < found->count; k++)
        if (found->files[k].valid)
            return found->files[k].page.first_lsn < limit ? found->files[k].page.first_lsn : limit;
    return limit;
}

static struct replay_cursor cursor_at_start(const struct dp_journal_found *found, size_t i)
{
    const struct dp_journal_found_file *file = &found->files[i];
    return (struct replay_cursor){
        .at = DP_JOURNAL_PAGE, .lsn = file->page.first_lsn - 1, .limit = limit_of(found, i)};
}

static void claim(struct dp_journal_found *found, uint64_t synced, uint64_t incarnation)
{
    if (found->released > 0 && incarnation <= found->released)
        return; /* its claims are in the store already, or belong to another history */
    if (synced > found->claimed)
        found->claimed = synced;
    if (incarnation > found->incarnation)
        found->incarnation = incarnation;
}

/* ---- look ---- */

struct names {
    uint64_t *numbers;
    size_t count, room;
    bool failed;
};

static void visit_name(void *context, const char *name)
{
    struct names *names = context;
    uint64_t number;
    if (!dp_journal_segment_number(name, &number))
        return;
    if (names->count == names->room) {
        size_t room = names->room ? 2 * names->room : 32;
        uint64_t *numbers = realloc(names->numbers, room * sizeof *numbers);
        if (!numbers) {
            names->failed = true;
            return;
        }
        names->numbers = numbers;
        names->room = room;
    }
    names->numbers[names->count++] = number;
}

static int by_number(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static enum dp_status look_at_page(const struct dp_disk *disk, struct dp_journal_found *found,
                                   struct dp_journal_found_file *file, struct dp_error *err)
{
    uint8_t bytes[DP_JOURNAL_HEADER];
    enum dp_status st = disk->size(disk->self, file->segment.file, &file->segment.bytes, err);
    if (st != DP_OK || file->segment.bytes < DP_JOURNAL_PAGE)
        return st;
    st = disk->read(disk->self, file->segment.file, 0, bytes, sizeof bytes, err);
    if (st != DP_OK || !dp_journal_page_take(bytes, &file->page))
        return st;
    if (file->page.version != DP_JOURNAL_VERSION)
        return dp_fail(err, DP_UNSUPPORTED,
                       "journal: segment %016" PRIx64
                       " has format %u, this build reads format %u; use the build that wrote it",
                       file->segment.number, file->page.version, DP_JOURNAL_VERSION);
    file->released = found->released > 0 && file->page.incarnation <= found->released;
    if (file->released)
        return DP_OK;
    file->valid = file->page.number == file->segment.number && file->page.first_lsn > 0;
    if (file->page.secret)
        found->secret = file->page.secret;
    claim(found, file->page.synced_lsn, file->page.incarnation);
    /* A segment's size is durable before it has a page, so no crash leaves it shorter. During a write the size may be from
     * before the page. */
    bool is_short = file->valid && file->segment.bytes < file->page.bytes;
    if (is_short && found->is_live)
        file->valid = false;
    else if (is_short)
        return dp_fail(err, DP_CORRUPT,
                       "journal: segment %016" PRIx64 " has %" PRIu64 " of its %" PRIu64
                       " bytes: it was cut short, perhaps by an incomplete copy; restore the complete file",
                       file->segment.number, file->segment.bytes, file->page.bytes);
    return DP_OK;
}

static enum dp_status find_files(const struct dp_journal_options *options, struct dp_journal_found *found,
                                 struct dp_error *err)
{
    struct names names = {0};
    const struct dp_disk *disk = options->disk;
    enum dp_status st = disk->list(disk->self, visit_name, &names, err);
    if (st == DP_OK && names.failed)
        st = dp_fail(err, DP_NOMEM, "journal: no memory for the list of its files");
    if (st == DP_OK && names.count > 0) {
        qsort(names.numbers, names.count, sizeof *names.numbers, by_number);
        found->files = calloc(names.count, sizeof *found->files);
        if (!found->files)
            st = dp_fail(err, DP_NOMEM, "journal: no memory for the list of its files");
    }
    for (size_t i = 0; st == DP_OK && i < names.count; i++) {
        char name[DP_JOURNAL_NAME_BYTES];
        struct dp_journal_found_file *file = &found->files[found->count];
        file->segment.number = names.numbers[i];
        dp_journal_segment_name(name, names.numbers[i]);
        st = disk->open(disk->self, name, false, &file->segment.file, err);
        if (st == DP_NOT_FOUND && found->is_live) { /* its writer has recycled it */
            st = DP_OK;
            continue;
        }
        if (st == DP_OK)
            found->count++;
        if (st == DP_OK)
            st = look_at_page(disk, found, file, err);
    }
    free(names.numbers);
    return st;
}

/* Whether a header belongs to this journal, and is not part of a record's payload that a client made up. If
 * no page is left to decide that, every header counts: refusing a journal is better than taking it for an
 * empty one. */
static bool ours(const struct dp_journal_found *found, const struct dp_journal_header *header)
{
    bool any = false;
    for (size_t i = 0; i < found->count; i++) {
        const struct dp_journal_page *page = &found->files[i].page; /* version 0: there is none */
        if (found->files[i].released)
            continue;
        if (page->version > 0 && page->secret == header->secret)
            return true;
        any = any || page->version > 0;
    }
    return !any;
}

/* Collects the claims of all headers in [from, end of file), and classifies what is cut. */
static enum dp_status scan(struct window *w, struct dp_journal_found *found, size_t i, uint64_t from,
                           struct dp_journal_cutting *cutting, struct dp_error *err)
{
    uint64_t number = found->files[i].segment.number;
    enum dp_status st = DP_OK;
    struct dp_journal_header header;
    for (uint64_t at = from; at + DP_JOURNAL_HEADER <= w->file_bytes; at += DP_JOURNAL_HEADER) {
        const uint8_t *bytes = window_get(w, at, DP_JOURNAL_HEADER, &st, err);
        if (!bytes)
            return st;
        bool whole = dp_journal_header_take(bytes, &header) && ours(found, &header);
        if (whole)
            claim(found, header.synced_lsn, header.incarnation);
        dp_journal_cut_see(cutting, number, at, w->file_bytes - at, bytes, whole ? &header : NULL);
    }
    return st;
}

/* If a later opening cut all records of a file, the file is left until it is reused: its first lsn is not
 * below that of a later file. It is not part of any chain. */
static void find_start(struct dp_journal_found *found, uint64_t wanted)
{
    uint64_t lowest = UINT64_MAX;
    for (size_t i = found->count; i-- > 0;) {
        struct dp_journal_found_file *file = &found->files[i];
        if (file->valid && file->page.first_lsn >= lowest)
            file->valid = false;
        if (file->valid)
            lowest = file->page.first_lsn;
    }
    found->start = found->stop = found->count;
    for (size_t i = 0; i < found->count; i++)
        if (found->files[i].valid && found->files[i].page.first_lsn <= wanted)
            found->start = i;
}

/* Follows the chain from found->start to its last file. */
static enum dp_status walk(struct window *w, struct dp_journal_found *found, bool *closed,
                           struct dp_error *err)
{
    enum dp_status st = DP_OK;
    struct dp_journal_header header;
    const uint8_t *payload;
    for (size_t i = found->start; i < found->count; i++) {
        struct dp_journal_found_file *file = &found->files[i];
        if (!file->valid)
            continue;
        if (i > found->start && file->page.first_lsn != found->chain_lsn + 1)
            return st;
        struct replay_cursor cursor = cursor_at_start(found, i);
        window_turn(w, &file->segment);
        do {
            st = next_record(w, &file->page, &cursor, &header, &payload, err);
        } while (st == DP_OK && payload);
        if (st != DP_OK)
            return st;
        *closed = cursor.closed;
        claim(found, cursor.synced, file->page.incarnation);
        file->end = cursor.at;
        file->end_lsn = found->chain_lsn = cursor.lsn;
        found->stop = i + 1;
    }
    return st;
}

/* Collects the claims after the end of the chain: in the rest of its last file, and in all later files. */
static enum dp_status scan_rest(struct window *w, struct dp_journal_found *found, bool closed,
                                struct dp_error *err)
{
    enum dp_status st = DP_OK;
    bool chain = found->stop > 0 && found->start < found->stop;
    size_t from = chain ? found->stop - 1 : 0;
    struct dp_journal_cutting cutting = {.end = {.kind = DP_JOURNAL_RECORD,
                                                 .lsn = found->chain_lsn + 1,
                                                 .incarnation = w->options->incarnation}};
    if (chain) {
        cutting.end.incarnation = found->files[from].page.incarnation;
        cutting.end.secret = found->files[from].page.secret;
        cutting.number = found->files[from].segment.number;
        cutting.offset = found->files[from].end;
    }
    for (size_t i = from; st == DP_OK && i < found->count; i++) {
        uint64_t at = chain && i == from ? found->files[i].end : 0;
        if (found->files[i].released || (chain && i == from && closed))
            continue;
        window_turn(w, &found->files[i].segment);
        st = scan(w, found, i, at, &cutting, err);
    }
    found->cut = cutting.cut;
    return st;
}

static enum dp_status refuse(const struct dp_journal_found *found, uint64_t missing, struct dp_error *err)
{
    char name[DP_JOURNAL_NAME_BYTES] = "its first segment";
    uint64_t at = 0;
    bool chain = found->start < found->stop;
    if (chain) {
        const struct dp_journal_found_file *file = &found->files[found->stop - 1];
        dp_journal_segment_name(name, file->segment.number);
        at = file->end;
    }
    /* The chain's last file ends well, so the damage is in the next file's page. */
    if (!chain && found->count > 0)
        dp_journal_segment_name(name, found->files[0].segment.number);
    return dp_fail(err, DP_CORRUPT,
                   "journal: record lsn %" PRIu64 " is damaged or missing (%s, offset %" PRIu64
                   " or the segment after it), but records up to %" PRIu64
                   " were durable; restore the journal's files, " REMEDY,
                   missing, name, at, found->claimed);
}

/* A clean store has everything. If its journal has more, that is of a later time, and this store is an older
 * copy. */
static enum dp_status refuse_later(const struct dp_journal_options *options,
                                   const struct dp_journal_found *found, struct dp_error *err)
{
    char name[DP_JOURNAL_NAME_BYTES];
    dp_journal_segment_name(name, found->files[found->stop - 1].segment.number);
    return dp_fail(err, DP_CORRUPT,
                   "journal: the store was closed cleanly at lsn %" PRIu64
                   ", but its journal continues to lsn %" PRIu64
                   " (%s): the store is an older copy than the journal; restore the store that belongs to "
                   "it, or move the journal's files away to continue from the older copy",
                   options->replay_after, found->chain_lsn, name);
}

enum dp_status dp_journal_look(const struct dp_journal_options *options, struct dp_journal_found *found,
                               struct dp_error *err)
{
    struct window w = window_of(options, DP_JOURNAL_CHECKING);
    bool closed = false;
    found->released = options->released;
    found->is_live = options->beside_writer;
    found->read_until = options->read_until;
    enum dp_status st = find_files(options, found, err);
    if (st != DP_OK)
        goto done;
    find_start(found, options->replay_after + 1);
    for (size_t i = found->start < found->count ? found->start : 0; i < found->count; i++)
        w.all_bytes += found->files[i].segment.bytes;
    if (found->start < found->count)
        st = walk(&w, found, &closed, err);
    else
        found->chain_lsn = options->replay_after;
    if (st == DP_OK && !found->is_live)
        st = scan_rest(&w, found, closed, err);
    if (st != DP_OK)
        goto done;
    if (found->is_live) /* what is claimed and written after it changes */
        found->claimed = options->read_until;
    if (found->is_live && found->chain_lsn < options->read_until) {
        st = dp_fail(
            err, DP_CORRUPT,
            "journal: record lsn %" PRIu64
            ", which was durable, cannot be read while its writer runs: it was released, or is damaged",
            found->chain_lsn + 1);
        goto done;
    }
    if (found->claimed > found->chain_lsn) {
        st = refuse(found, found->chain_lsn + 1, err);
        goto done;
    }
    if (options->clean && found->chain_lsn > options->replay_after) {
        st = refuse_later(options, found, err);
        goto done;
    }
    if (options->must_be_there && found->incarnation < options->incarnation) {
        st = dp_fail(err, DP_CORRUPT,
                     "journal: opening %" PRIu64 " wrote to it, but it ends with opening %" PRIu64
                     ": files were removed, or are an older copy; restore them, " REMEDY,
                     options->incarnation, found->incarnation);
        goto done;
    }
    found->last_lsn = found->chain_lsn > options->replay_after ? found->chain_lsn : options->replay_after;
    for (size_t i = found->start; i < found->stop; i++) {
        struct dp_journal_found_file *file = &found->files[i];
        file->needed =
            file->valid && file->end_lsn > options->replay_after && file->end_lsn >= file->page.first_lsn;
        file->segment.first_lsn = file->page.first_lsn;
        file->segment.last_lsn = file->end_lsn;
        file->segment.page_synced = true;
    }
done:
    free(w.data);
    return st;
}

/* ---- harden ---- */

/* The place where the records above `lsn` begin. */
static enum dp_status find_after(struct window *w, const struct dp_journal_found *found, size_t i,
                                 uint64_t lsn, uint64_t *at, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    struct replay_cursor cursor = cursor_at_start(found, i);
    struct dp_journal_header header;
    const uint8_t *payload;
    if (found->files[i].page.first_lsn > lsn) {
        *at = 0; /* with the page */
        return st;
    }
    do {
        st = next_record(w, &found->files[i].page, &cursor, &header, &payload, err);
    } while (st == DP_OK && payload && cursor.lsn < lsn);
    *at = cursor.at / DP_JOURNAL_PAGE * DP_JOURNAL_PAGE;
    return st;
}

/* Records above the highest claim are at least in the page cache, but perhaps not on the disk. If the
 * previous process had a failed sync, another sync alone would succeed without writing them. So the same
 * bytes are written again to the same place, and then synced. */
enum dp_status dp_journal_harden(const struct dp_journal_options *options, struct dp_journal_found *found,
                                 struct dp_error *err)
{
    const struct dp_disk *disk = options->disk;
    struct window w = window_of(options, DP_JOURNAL_CHECKING);
    enum dp_status st = DP_OK;
    for (size_t i = found->start; st == DP_OK && i < found->stop; i++) {
        struct dp_journal_found_file *file = &found->files[i];
        if (!file->valid || file->end_lsn <= found->claimed)
            continue;
        uint64_t at = 0, end = dp_journal_page_up(file->end);
        if (end > file->segment.bytes)
            end = file->segment.bytes;
        window_turn(&w, &file->segment);
        st = find_after(&w, found, i, found->claimed, &at, err);
        while (st == DP_OK && at < end) {
            size_t bytes = end - at < WINDOW_BYTES ? (size_t)(end - at) : WINDOW_BYTES;
            const uint8_t *data = window_get(&w, at, bytes, &st, err);
            if (!data)
                break;
            struct dp_disk_piece piece = {data, bytes};
            st = disk->write(disk->self, file->segment.file, at, &piece, 1, err);
            at += bytes;
        }
        if (st == DP_OK)
            st = disk->sync(disk->self, file->segment.file, err);
    }
    free(w.data);
    return st == DP_OK ? st : dp_wrap(err, st, "journal: cannot make its tail durable");
}

/* ---- replay ---- */

enum dp_status dp_journal_replay(const struct dp_journal_options *options, struct dp_journal_found *found,
                                 struct dp_error *err)
{
    struct window w = window_of(options, DP_JOURNAL_REPLAYING);
    enum dp_status st = DP_OK;
    struct dp_journal_header header;
    const uint8_t *payload;
    for (size_t i = found->start; i < found->stop; i++)
        if (found->files[i].valid && found->files[i].needed)
            w.all_bytes += found->files[i].end;
    for (size_t i = found->start; st == DP_OK && i < found->stop; i++) {
        struct dp_journal_found_file *file = &found->files[i];
        if (!file->valid || !file->needed)
            continue;
        struct replay_cursor cursor = cursor_at_start(found, i);
        window_turn(&w, &file->segment);
        while (cursor.lsn < file->end_lsn) {
            st = next_record(&w, &file->page, &cursor, &header, &payload, err);
            if (st == DP_OK && !payload)
                st = dp_fail(err, DP_CORRUPT,
                             "journal: record lsn %" PRIu64
                             " reads differently the second time (segment %016" PRIx64 ", offset %" PRIu64
                             "); check the disk's health",
                             cursor.lsn + 1, file->segment.number, cursor.at);
            if (st != DP_OK)
                break;
            if (header.lsn <= options->replay_after)
                continue;
            if (options->replay)
                st = options->replay(options->replay_context, header.lsn, payload, (size_t)header.bytes, err);
            if (st != DP_OK)
                break;
            found->replayed_records++;
            found->replayed_bytes += header.bytes;
        }
    }
    free(w.data);
    return st;
}

void dp_journal_found_clear(const struct dp_journal_options *options, struct dp_journal_found *found)
{
    for (size_t i = 0; i < found->count; i++)
        dp_journal_segment_close(options->disk, &found->files[i].segment);
    free(found->files);
    *found = (struct dp_journal_found){0};
}
