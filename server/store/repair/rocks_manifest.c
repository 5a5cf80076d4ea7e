#include "server/store/repair/rocks_manifest.h"

#include "common/base/bytes.h"
#include "common/base/log.h"
#include "common/env/disk_replace.h"
#include "server/journal/crc32c.h"
#include "server/store/repair/rocks_current.h"
#include "server/store/store_directory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <unistd.h>

#define SECTOR 512u
#define BLOCK  32768u
#define HEADER 7u
#define TORN   "manifest.torn"

enum part { PART_NONE, PART_FULL, PART_FIRST, PART_MIDDLE, PART_LAST };

/* The manifest from `base`, the beginning of a block, to its end. */
struct manifest {
    char name[DP_ROCKS_CURRENT_BYTES];
    uint64_t number, base;
    uint8_t *bytes;
    size_t size;
};

/* DP_NOT_FOUND: CURRENT is missing, or names no manifest. */
static enum dp_status find(const struct dp_disk *disk, struct manifest *out, struct dp_error *err)
{
    *out = (struct manifest){0};
    enum dp_status st = dp_rocks_current_read(disk, out->name, err);
    if (st == DP_OK)
        out->number = dp_rocks_current_number(out->name);
    return st == DP_CORRUPT ? DP_NOT_FOUND : st;
}

/* Reads what lies from `from` on. syncs: what is read is durable. */
static enum dp_status read_from(const struct dp_disk *disk, uint64_t from, bool syncs, struct manifest *of,
                                struct dp_error *err)
{
    struct dp_file *file = NULL;
    uint64_t end = 0;
    of->base = from - from % BLOCK;
    enum dp_status st = disk->open(disk->self, of->name, false, &file, err);
    if (st != DP_OK)
        return st;
    st = disk->size(disk->self, file, &end, err);
    of->size = end > of->base ? (size_t)(end - of->base) : 0;
    if (st == DP_OK && !(of->bytes = malloc(of->size + 1)))
        st = dp_fail(err, DP_NOMEM, "no memory to read %s (%zu bytes)", of->name, of->size);
    if (st == DP_OK && syncs) /* before it is read: a failed sync may change what is there */
        st = disk->sync(disk->self, file, err);
    if (st == DP_OK)
        st = disk->read(disk->self, file, of->base, of->bytes, of->size, err);
    disk->close(disk->self, file);
    return st;
}

static void release(struct manifest *of)
{
    free(of->bytes);
    of->bytes = NULL;
}

static enum part type_at(const struct manifest *of, size_t at)
{
    uint8_t type = of->bytes[at + 6];
    return type <= PART_LAST ? (enum part)type : PART_NONE;
}

/* Bytes of the intact part at `at`, with its header; 0: there is none. */
static size_t part_at(const struct manifest *of, size_t at)
{
    const uint8_t *part = of->bytes + at;
    size_t left = BLOCK - at % BLOCK;
    left = left < of->size - at ? left : of->size - at;
    if (left < HEADER || type_at(of, at) == PART_NONE)
        return 0;
    size_t payload = (size_t)part[4] | (size_t)part[5] << 8;
    if (HEADER + payload > left)
        return 0;
    uint32_t crc = dp_crc32c(0, part + 6, 1 + payload);
    bool fits = (crc >> 15 | crc << 17) + 0xa282ead8u == dp_load_u32le(part);
    return fits ? HEADER + payload : 0;
}

/* Where the record after the last intact one begins, in the sequence that begins at `from`. */
static uint64_t intact(const struct manifest *of, uint64_t from)
{
    size_t at = (size_t)(from - of->base), end = at;
    bool within = false;
    while (at < of->size) {
        if (BLOCK - at % BLOCK < HEADER) { /* a block's trailer */
            at += BLOCK - at % BLOCK;
            end = within || at > of->size ? end : at;
            continue;
        }
        size_t bytes = part_at(of, at);
        enum part part = bytes ? type_at(of, at) : PART_NONE;
        bool starts = part == PART_FULL || part == PART_FIRST;
        if (!bytes || starts == within)
            break;
        at += bytes;
        within = part == PART_FIRST || part == PART_MIDDLE;
        if (!within)
            end = at;
    }
    return of->base + end;
}

enum dp_status dp_rocks_manifest_seal(const struct dp_disk *disk, struct dp_rocks_seal *seal,
                                      struct dp_error *err)
{
    struct manifest of;
    struct dp_rocks_seal next = *seal;
    enum dp_status st = find(disk, &of, err);
    if (st == DP_NOT_FOUND) {
        *seal = (struct dp_rocks_seal){0};
        return DP_OK;
    }
    if (st == DP_OK && of.number != next.number)
        next = (struct dp_rocks_seal){of.number, 0};
    if (st == DP_OK)
        st = read_from(disk, next.bytes, true, &of, err);
    if (st == DP_OK) {
        next.bytes = intact(&of, next.bytes);
        if (next.number < seal->number || (next.number == seal->number && next.bytes < seal->bytes))
            st = dp_fail(err, DP_CORRUPT, "seal: %s has lost records that were durable", of.name);
        else
            *seal = next;
    }
    release(&of);
    return st == DP_NOT_FOUND ? dp_wrap(err, DP_IO, "seal") : st;
}

static enum dp_status check(const struct manifest *of, const char *directory,
                            const struct dp_rocks_seal *seal, struct dp_error *err)
{
    uint64_t end = intact(of, 0);
    if (end >= seal->bytes)
        return DP_OK;
    return dp_fail(err, DP_CORRUPT,
                   "store %s: %s is damaged at offset %" PRIu64 "; restore that file, or " DP_STORE_RESTORE,
                   directory, of->name, end);
}

enum dp_status dp_rocks_manifest_check(const struct dp_disk *disk, const char *directory,
                                       const struct dp_rocks_seal *seal, struct dp_error *err)
{
    struct manifest of;
    enum dp_status st = find(disk, &of, err);
    if (st == DP_OK && of.number < seal->number)
        return dp_fail(err, DP_CORRUPT,
                       "store %s: the file CURRENT names %s, which is older than the file 'marks' (that one "
                       "was written with number %" PRIu64
                       "); restore both from one copy, or " DP_STORE_RESTORE,
                       directory, of.name, seal->number);
    if (st == DP_OK && of.number == seal->number) {
        st = read_from(disk, 0, false, &of, err);
        if (st == DP_OK)
            st = check(&of, directory, seal, err);
        release(&of);
    }
    return st == DP_NOT_FOUND ? DP_OK : st;
}

static bool has_zero_sector(const struct manifest *of, size_t from)
{
    for (size_t at = from; at < of->size;) {
        size_t next = (at / SECTOR + 1) * SECTOR, i = at;
        next = next < of->size ? next : of->size;
        while (i < next && of->bytes[i] == 0)
            i++;
        if (i == next)
            return true;
        at = next;
    }
    return false;
}

/* Keeps what is cut off: if it was bit rot instead of a torn write, it is not lost. */
static enum dp_status cut(const struct dp_disk *disk, const char *directory, const struct manifest *of,
                          size_t end, struct dp_error *err)
{
    enum dp_status st = dp_disk_replace(disk, TORN, of->bytes + end, of->size - end, err);
    if (st == DP_OK)
        st = dp_disk_replace(disk, of->name, of->bytes, end, err);
    if (st != DP_OK)
        return dp_wrap(err, st, "store: nothing is lost, but a torn manifest cannot be repaired");
    dp_log(DP_LOG_WARN,
           "store %s: a loss of power tore the last write to %s, which was never synced: cut off %zu bytes "
           "from offset %zu and kept them in '" TORN "'",
           directory, of->name, of->size - end, end);
    return DP_OK;
}

enum dp_status dp_rocks_manifest_mend(const struct dp_disk *disk, const char *directory, bool *mended,
                                      struct dp_error *err)
{
    struct manifest of;
    *mended = false;
    int lock = dp_store_directory_lock(directory);
    if (lock < 0)
        return DP_OK;
    enum dp_status st = find(disk, &of, err);
    if (st == DP_OK)
        st = read_from(disk, 0, false, &of, err);
    size_t end = st == DP_OK ? (size_t)intact(&of, 0) : 0;
    if (st == DP_OK && end < of.size && has_zero_sector(&of, end)) {
        st = cut(disk, directory, &of, end, err);
        *mended = st == DP_OK;
    }
    release(&of);
    (void)close(lock);
    return st == DP_NOT_FOUND ? DP_OK : st;
}
