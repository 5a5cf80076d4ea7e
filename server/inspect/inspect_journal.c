/* Two readings. The first is an opening's own (look, then replay without applying): it says what counts.
 * The second is made only to search for damage. It reads each file separately and past damage, to name
 * every record that an opening would miss.
 * Why  After damage, each multiple of 64 bytes is checked for a record. An intact header with the file's
 *      incarnation and a greater lsn than the last can only be of a later record of this file. */
#include "server/inspect/inspect_journal.h"

#include "common/env/read_only_disk.h"
#include "server/journal/crc32c.h"
#include "server/journal/journal_replay.h"

#include <inttypes.h>
#include <stdlib.h>

#define PART_BYTES (1u << 20)

const char *dp_inspect_segment_state_name(enum dp_inspect_segment_state state)
{
    static const char *const names[] = {"spare", "released", "kept", "cut-off"};
    return names[state];
}

/* ---- segments */

static uint64_t limit_of(const struct dp_journal_found *found, size_t i)
{
    for (size_t k = i + 1; k < found->count; k++)
        if (found->files[k].valid)
            return found->files[k].page.first_lsn;
    return UINT64_MAX;
}

static void report_behind(const struct dp_journal_found *found, struct dp_inspect_segment *segment)
{
    bool durable = segment->first_lsn <= found->claimed;
    segment->state = durable ? DP_INSPECT_SEGMENT_CUT_OFF : DP_INSPECT_SEGMENT_SPARE;
    if (!durable)
        segment->last_lsn = segment->first_lsn - 1;
    else if (segment->last_lsn > found->claimed)
        segment->last_lsn = found->claimed;
}

static void report_segments(const struct dp_inspect_journal_options *options,
                            const struct dp_journal_found *found)
{
    for (size_t i = 0; i < found->count && options->segment; i++) {
        const struct dp_journal_found_file *file = &found->files[i];
        char name[DP_JOURNAL_NAME_BYTES];
        dp_journal_segment_name(name, file->segment.number);
        struct dp_inspect_segment segment = {.file = name, .bytes = file->segment.bytes};
        if (file->released) {
            segment.state = DP_INSPECT_SEGMENT_RELEASED;
            segment.incarnation = file->page.incarnation;
            segment.first_lsn = file->page.first_lsn;
            segment.last_lsn = file->page.first_lsn - 1;
        }
        if (file->valid) {
            bool chain = i >= found->start && i < found->stop;
            segment.state = chain ? DP_INSPECT_SEGMENT_KEPT : DP_INSPECT_SEGMENT_RELEASED;
            segment.incarnation = file->page.incarnation;
            segment.first_lsn = file->page.first_lsn;
            segment.last_lsn = chain ? file->end_lsn : limit_of(found, i) - 1;
            segment.used_bytes = chain ? file->end : 0;
            if (!chain && i >= found->stop) /* after the end of the chain: it does not go on there */
                report_behind(found, &segment);
        }
        options->segment(options->context, &segment);
    }
}

/* ---- every record */

struct check {
    const struct dp_inspect_journal_options *options;
    const struct dp_disk *disk;
    const struct dp_journal_found *found;
    struct dp_inspect_journal *out;
    const struct dp_journal_found_file *file;
    char name[DP_JOURNAL_NAME_BYTES];
    uint8_t *part;   /* PART_BYTES, of a payload */
    uint8_t *window; /* PART_BYTES, for headers */
    uint64_t window_at, window_bytes;
    uint64_t at, limit, lsn; /* lsn: of the last record, complete or not */
    bool damage_reported;    /* at the place where it is now */
};

static void report_damage(struct check *check, uint64_t at, uint64_t lsn, const char *what)
{
    struct dp_error err = {0};
    if (lsn > check->found->claimed || check->damage_reported)
        return;
    check->damage_reported = true;
    (void)dp_fail(&err, DP_CORRUPT,
                  "%s/%s, offset %" PRIu64 ": record lsn %" PRIu64
                  " %s, and it was durable; bring the file back, or a copy of the store",
                  check->options->directory, check->name, at, lsn, what);
    check->options->damaged(check->options->context, &err);
}

static enum dp_status check_payload(struct check *check, const struct dp_journal_header *header,
                                    struct dp_error *err)
{
    uint32_t crc = dp_journal_payload_seed(header->incarnation, header->lsn);
    enum dp_status st = DP_OK;
    for (uint64_t done = 0; st == DP_OK && done < header->bytes;) {
        size_t bytes = header->bytes - done < PART_BYTES ? (size_t)(header->bytes - done) : PART_BYTES;
        st = check->disk->read(check->disk->self, check->file->segment.file,
                               check->at + DP_JOURNAL_HEADER + done, check->part, bytes, err);
        if (st == DP_OK)
            crc = dp_crc32c(crc, check->part, bytes);
        done += bytes;
    }
    if (st == DP_OK && crc != header->payload_crc)
        report_damage(check, check->at, header->lsn, "fails its checksum");
    check->damage_reported = false;
    check->out->checked_records++;
    check->out->checked_bytes += header->bytes;
    return st;
}

/* NULL: failed. */
static const uint8_t *header_at(struct check *check, enum dp_status *st, struct dp_error *err)
{
    uint64_t at = check->at, left = check->file->segment.bytes - at;
    if (at < check->window_at || at + DP_JOURNAL_HEADER > check->window_at + check->window_bytes) {
        check->window_at = at;
        check->window_bytes = left < PART_BYTES ? left : PART_BYTES;
        *st = check->disk->read(check->disk->self, check->file->segment.file, at, check->window,
                                (size_t)check->window_bytes, err);
    }
    return *st == DP_OK ? check->window + (at - check->window_at) : NULL;
}

/* Whether the header at check->at is one that this file goes on with. */
static bool goes_on(const struct check *check, const uint8_t bytes[DP_JOURNAL_HEADER],
                    struct dp_journal_header *header)
{
    uint64_t room = check->file->segment.bytes - check->at - DP_JOURNAL_HEADER;
    return dp_journal_header_take(bytes, header) && header->incarnation == check->file->page.incarnation &&
           header->secret == check->file->page.secret &&
           header->lsn >= check->lsn + (header->kind == DP_JOURNAL_RECORD) &&
           dp_journal_record_fits(header, room);
}

static enum dp_status check_file(struct check *check, size_t i, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    uint64_t damaged_at = 0;
    check->file = &check->found->files[i];
    dp_journal_segment_name(check->name, check->file->segment.number);
    check->limit = limit_of(check->found, i);
    check->at = DP_JOURNAL_PAGE;
    check->window_bytes = 0;
    check->lsn = check->file->page.first_lsn - 1;
    while (st == DP_OK && check->lsn + 1 < check->limit &&
           check->at + DP_JOURNAL_HEADER <= check->file->segment.bytes) {
        struct dp_journal_header header;
        const uint8_t *bytes = header_at(check, &st, err);
        if (!bytes)
            break;
        if (!goes_on(check, bytes, &header)) {
            damaged_at = damaged_at ? damaged_at : check->at;
            check->at += DP_JOURNAL_HEADER;
            continue;
        }
        if (header.lsn > check->lsn + (header.kind == DP_JOURNAL_RECORD))
            report_damage(check, damaged_at ? damaged_at : check->at, check->lsn + 1,
                          "is damaged or missing");
        damaged_at = 0;
        check->damage_reported = false;
        if (header.kind == DP_JOURNAL_CLOSED)
            break;
        if (header.kind == DP_JOURNAL_RECORD)
            st = check_payload(check, &header, err);
        check->lsn = header.lsn;
        check->at += dp_journal_record_bytes(header.bytes);
    }
    /* Nothing of the file after it. Files that are needed no more may have gaps between them: some were used again. */
    bool gap = check->lsn + 1 > check->options->replay_after && check->lsn + 1 < check->limit;
    if (st == DP_OK && gap)
        report_damage(check, damaged_at ? damaged_at : check->at, check->lsn + 1, "is damaged or missing");
    return st;
}

/* A page that has neither the form of one nor is empty. Which lsns are missing with it, look says. */
static enum dp_status check_page(struct check *check, size_t i, struct dp_error *err)
{
    const struct dp_journal_found_file *file = &check->found->files[i];
    struct dp_journal_page page;
    uint8_t bytes[DP_JOURNAL_HEADER], any = 0;
    if (file->segment.bytes < DP_JOURNAL_PAGE)
        return DP_OK;
    enum dp_status st = check->disk->read(check->disk->self, file->segment.file, 0, bytes, sizeof bytes, err);
    for (size_t k = 0; k < sizeof bytes; k++)
        any |= bytes[k];
    if (st != DP_OK || !any || dp_journal_page_take(bytes, &page))
        return st;
    struct dp_error what = {0};
    char name[DP_JOURNAL_NAME_BYTES];
    dp_journal_segment_name(name, file->segment.number);
    (void)dp_fail(&what, DP_CORRUPT,
                  "%s/%s, offset 0: its page fails its checksum, so its contents are unknown; restore the "
                  "last checkpoint, or bring the file back",
                  check->options->directory, name);
    check->options->damaged(check->options->context, &what);
    return st;
}

static enum dp_status check_all(const struct dp_inspect_journal_options *options, const struct dp_disk *disk,
                                const struct dp_journal_found *found, struct dp_inspect_journal *out,
                                struct dp_error *err)
{
    struct check check = {.options = options, .disk = disk, .found = found, .out = out};
    enum dp_status st = DP_OK;
    check.part = malloc(2 * PART_BYTES);
    if (!check.part)
        return dp_fail(err, DP_NOMEM, "inspect %s", options->directory);
    check.window = check.part + PART_BYTES;
    for (size_t i = 0; st == DP_OK && i < found->count; i++)
        st = found->files[i].valid ? check_file(&check, i, err) : check_page(&check, i, err);
    free(check.part);
    return st;
}

/* ---- all of it */

enum dp_status dp_inspect_journal(const struct dp_inspect_journal_options *options,
                                  struct dp_inspect_journal *out, struct dp_error *err)
{
    struct dp_disk disk = {0};
    struct dp_journal_found found = {0};
    *out = (struct dp_inspect_journal){0};
    enum dp_status st = dp_read_only_disk_open(options->directory, &disk, err);
    if (st == DP_NOT_FOUND && !(options->must_be_there && options->incarnation > 0))
        return DP_OK;
    if (st == DP_NOT_FOUND)
        return dp_fail(err, DP_CORRUPT,
                       "%s is missing, but opening %" PRIu64
                       " wrote to it: pushes are lost without it; bring it back, or "
                       "bring back a copy of the store",
                       options->directory, options->incarnation);
    if (st != DP_OK)
        return st;
    struct dp_journal_options as_opened = {.disk = &disk,
                                           .replay_after = options->replay_after,
                                           .incarnation = options->incarnation,
                                           .must_be_there = options->must_be_there,
                                           .released = options->released,
                                           .clean = options->clean,
                                           .replay = options->record,
                                           .replay_context = options->context};
    st = dp_journal_look(&as_opened, &found, err);
    struct dp_error later = {0}; /* the first finding of an opening is reported */
    report_segments(options, &found);
    if (options->damaged) {
        enum dp_status checked = check_all(options, &disk, &found, out, st == DP_OK ? err : &later);
        st = st == DP_OK ? checked : st;
    }
    if (st == DP_OK)
        st = dp_journal_replay(&as_opened, &found, err);
    out->present = true;
    out->incarnation = found.incarnation;
    out->durable_lsn = found.claimed;
    out->last_lsn = found.last_lsn;
    out->replay_records = found.replayed_records;
    out->replay_bytes = found.replayed_bytes;
    out->cut = found.cut;
    dp_journal_found_clear(&as_opened, &found);
    dp_disk_close(&disk);
    return st == DP_OK ? st : dp_wrap(err, st, "%s", options->directory);
}
