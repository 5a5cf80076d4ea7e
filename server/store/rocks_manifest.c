#include "server/store/rocks_manifest.h"

#include "common/env/read_only_disk.h"
#include "server/store/rocks_record.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MANIFEST  "MANIFEST-"
#define PATH_ROOM 1400u

/* Tags of db/version_edit.h. A tag with SAFE_TO_SKIP has one field, with its length in front. */
enum tag {
    TAG_COMPARATOR = 1,
    TAG_LOG_NUMBER = 2,
    TAG_NEXT_FILE = 3,
    TAG_LAST_SEQUENCE = 4,
    TAG_COMPACT_CURSOR = 5,
    TAG_DELETED_FILE = 6,
    TAG_PREVIOUS_LOG = 9,
    TAG_LOG_TO_KEEP = 10,
    TAG_NEW_FILE_4 = 103,
    TAG_FAMILY = 200,
    TAG_FAMILY_ADD = 201,
    TAG_FAMILY_MOST = 203
};
#define SAFE_TO_SKIP (1u << 13)

/* Tags of a new file's custom fields; each field has its length in front. */
#define FIELD_END        1u
#define FIELD_MUST_KNOWN (1u << 6)

/* What an edit does to a table: adds it (1) or removes it (-1). An edit that moves a table to another level
 * does both. */
struct change {
    uint64_t number, bytes;
    int by;
};

struct edits {
    struct change *change;
    size_t count, room;
    enum dp_status failed;
};

/* Reads a record's payload from the front. */
struct payload {
    const uint8_t *at, *end;
    bool bad;
};

static uint64_t get_number(struct payload *p)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 64 && p->at < p->end; shift += 7) {
        uint8_t byte = *p->at++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    p->bad = true;
    return 0;
}

static void skip_field(struct payload *p)
{
    uint64_t bytes = get_number(p);
    if (p->bad || bytes > (uint64_t)(p->end - p->at))
        p->bad = true;
    else
        p->at += bytes;
}

static void add(struct edits *edits, struct change change)
{
    if (edits->count == edits->room) {
        size_t room = edits->room ? 2 * edits->room : 256;
        struct change *more = realloc(edits->change, room * sizeof more[0]);
        if (!more) {
            edits->failed = DP_NOMEM;
            return;
        }
        edits->change = more;
        edits->room = room;
    }
    edits->change[edits->count++] = change;
}

static void take_new_file(struct payload *p, struct edits *edits)
{
    (void)get_number(p); /* level */
    uint64_t number = get_number(p), bytes = get_number(p);
    skip_field(p); /* smallest and largest key, smallest and largest sequence number */
    skip_field(p);
    (void)get_number(p);
    (void)get_number(p);
    for (uint64_t field; !p->bad && (field = get_number(p)) != FIELD_END;) {
        p->bad = p->bad || (field & FIELD_MUST_KNOWN) != 0;
        skip_field(p);
    }
    if (!p->bad)
        add(edits, (struct change){number, bytes, 1});
}

static void take_deleted_file(struct payload *p, struct edits *edits)
{
    (void)get_number(p); /* level */
    uint64_t number = get_number(p);
    if (!p->bad)
        add(edits, (struct change){number, 0, -1});
}

static void take_tag(struct payload *p, struct edits *edits)
{
    uint64_t tag = get_number(p);
    switch (tag) {
    case TAG_LOG_NUMBER:
    case TAG_NEXT_FILE:
    case TAG_LAST_SEQUENCE:
    case TAG_PREVIOUS_LOG:
    case TAG_LOG_TO_KEEP:
    case TAG_FAMILY:
    case TAG_FAMILY_MOST:
        (void)get_number(p);
        break;
    case TAG_COMPACT_CURSOR:
        (void)get_number(p);
        skip_field(p);
        break;
    case TAG_DELETED_FILE:
        take_deleted_file(p, edits);
        break;
    case TAG_NEW_FILE_4:
        take_new_file(p, edits);
        break;
    default:
        if (tag == TAG_COMPARATOR || tag == TAG_FAMILY_ADD || (tag & SAFE_TO_SKIP) != 0)
            skip_field(p);
        else
            p->bad = true;
    }
}

static void take_record(const uint8_t *bytes, size_t size, struct edits *edits)
{
    struct payload p = {bytes, bytes + size, false};
    while (p.at < p.end && !p.bad)
        take_tag(&p, edits);
    if (p.bad && edits->failed == DP_OK)
        edits->failed = DP_UNSUPPORTED;
}

/* Assembles the records in `whole`, which has the log's size. */
static void take_log(const struct dp_rocks_bytes *log, uint8_t *whole, struct edits *edits)
{
    size_t at = 0, bytes = 0;
    bool within = false;
    while (at < log->size && edits->failed == DP_OK) {
        size_t left = DP_ROCKS_BLOCK - at % DP_ROCKS_BLOCK;
        if (left < DP_ROCKS_HEADER) {
            at += left;
            continue;
        }
        size_t part = dp_rocks_part_at(log, at);
        if (part == 0)
            return;
        enum dp_rocks_part type = dp_rocks_part_type(log, at);
        if ((type == DP_ROCKS_FULL || type == DP_ROCKS_FIRST) == within)
            return;
        memcpy(whole + bytes, log->bytes + at + DP_ROCKS_HEADER, part - DP_ROCKS_HEADER);
        bytes += part - DP_ROCKS_HEADER;
        within = type == DP_ROCKS_FIRST || type == DP_ROCKS_MIDDLE;
        if (!within) {
            take_record(whole, bytes, edits);
            bytes = 0;
        }
        at += part;
    }
}

static int compare(const void *a, const void *b)
{
    const struct change *x = a, *y = b;
    return (x->number > y->number) - (x->number < y->number);
}

/* The tables that were added more often than removed. */
static size_t left_over(struct edits *edits, struct dp_rocks_table *tables)
{
    size_t count = 0;
    if (edits->count > 0)
        qsort(edits->change, edits->count, sizeof edits->change[0], compare);
    for (size_t i = 0; i < edits->count;) {
        struct dp_rocks_table table = {.number = edits->change[i].number};
        int times = 0;
        for (; i < edits->count && edits->change[i].number == table.number; i++) {
            times += edits->change[i].by;
            if (edits->change[i].by > 0)
                table.bytes = edits->change[i].bytes;
        }
        if (times > 0)
            tables[count++] = table;
    }
    return count;
}

bool dp_rocks_manifest_path(const char *directory, char *path, size_t path_bytes)
{
    char name[64] = {0};
    int fd;
    if (snprintf(path, path_bytes, "%s/CURRENT", directory) >= (int)path_bytes ||
        dp_read_only_disk_file(AT_FDCWD, path, &fd, NULL) != DP_OK)
        return false;
    ssize_t n = read(fd, name, sizeof name - 1);
    (void)close(fd);
    if (n <= 0 || strncmp(name, MANIFEST, sizeof MANIFEST - 1) != 0)
        return false;
    name[strcspn(name, "\n/")] = '\0';
    return snprintf(path, path_bytes, "%s/%s", directory, name) < (int)path_bytes;
}

enum dp_status dp_rocks_manifest_tables(const char *directory, struct dp_rocks_table **tables, size_t *count,
                                        struct dp_error *err)
{
    char path[PATH_ROOM];
    struct dp_rocks_bytes log = {0};
    struct edits edits = {.failed = DP_OK};
    uint8_t *whole = NULL;
    *tables = NULL;
    *count = 0;
    if (!dp_rocks_manifest_path(directory, path, sizeof path))
        return dp_fail(err, DP_NOT_FOUND, "store %s: CURRENT names no manifest", directory);
    enum dp_status st = dp_rocks_bytes_read(path, &log, err);
    if (st != DP_OK)
        goto done;
    whole = malloc(log.size + 1);
    if (whole)
        take_log(&log, whole, &edits);
    *tables = calloc(edits.count + 1, sizeof **tables);
    if (!whole || !*tables || edits.failed == DP_NOMEM)
        st = dp_fail(err, DP_NOMEM, "store: no memory for the tables that %s names", path);
    else if (edits.failed != DP_OK)
        st = dp_fail(err, edits.failed, "store: %s has a record that this build does not know", path);
    else
        *count = left_over(&edits, *tables);
done:
    if (st != DP_OK) {
        free(*tables);
        *tables = NULL;
    }
    free(edits.change);
    free(whole);
    free(log.bytes);
    return st;
}
