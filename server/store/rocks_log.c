#include "server/store/rocks_log.h"

#include "common/base/bytes.h"
#include "server/store/crc32c.h"
#include "server/store/inspect_disk.h"
#include "server/store/rocks_current.h"

#include <dirent.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#define BLOCK  32768u
#define HEADER 7u
#define TYPES  4u /* full, first, middle, last; those of recycled logs are not used here */

static uint32_t masked(uint32_t crc)
{
    return (crc >> 15 | crc << 17) + 0xa282ead8u;
}

static uint32_t length_of(const uint8_t *record)
{
    return (uint32_t)record[4] | (uint32_t)record[5] << 8;
}

static bool fits(const uint8_t *record, uint8_t type, uint32_t bytes)
{
    uint32_t crc = dp_crc32c(dp_crc32c(0, &type, 1), record + HEADER, bytes);
    return masked(crc) == dp_load_u32le(record);
}

static bool is_whole(const uint8_t *record, uint32_t bytes)
{
    return record[6] >= 1 && record[6] <= TYPES && fits(record, record[6], bytes);
}

static bool is_whole_under_another_type(const uint8_t *record, uint32_t bytes)
{
    for (uint8_t type = 1; type <= TYPES; type++)
        if (fits(record, type, bytes))
            return true;
    return false;
}

/* The record's payload, of whatever length up to `most`. */
static bool is_whole_under_another_length(const uint8_t *record, uint32_t most)
{
    uint32_t crc = dp_crc32c(0, record + 6, 1);
    for (uint32_t bytes = 0; bytes <= most; bytes++) {
        if (masked(crc) == dp_load_u32le(record))
            return true;
        if (bytes < most)
            crc = dp_crc32c(crc, record + HEADER + bytes, 1);
    }
    return false;
}

static bool has_whole_record(const uint8_t *block, uint32_t from, uint32_t upto)
{
    for (uint32_t at = from; at + HEADER <= upto; at++) {
        uint32_t bytes = length_of(block + at);
        if (bytes > 0 && bytes <= upto - at - HEADER && is_whole(block + at, bytes))
            return true;
    }
    return false;
}

/* Offset of the damaged record in a block; UINT32_MAX: none. *ended: RocksDB reads no further than *stop. */
static uint32_t find_damage(const uint8_t *block, uint32_t upto, uint32_t *stop, bool *ended)
{
    for (uint32_t at = 0; at + HEADER <= upto;) {
        uint32_t left = upto - at - HEADER, bytes = length_of(block + at);
        *ended = true;
        *stop = at;
        if (bytes > left) {
            bool damaged =
                is_whole_under_another_length(block + at, left) || has_whole_record(block, at + 1, upto);
            return damaged ? at : UINT32_MAX;
        }
        if (!is_whole(block + at, bytes))
            return is_whole_under_another_type(block + at, bytes) ? at : UINT32_MAX;
        *ended = false;
        at += HEADER + bytes;
    }
    return UINT32_MAX;
}

struct place {
    char path[4096];
    uint64_t at;
};

/* Of what find_damage finds or, with `any`, of the first record that is not whole. */
static bool find_in_file(const char *directory, const char *name, bool any, struct place *out)
{
    struct stat status;
    bool found = false, ended = false;
    uint8_t *block = malloc(BLOCK);
    (void)snprintf(out->path, sizeof out->path, "%s/%s", directory, name);
    int file = -1;
    if (!block || dp_inspect_file(AT_FDCWD, out->path, &file, NULL) != DP_OK || fstat(file, &status) != 0)
        goto done; /* one that is missing RocksDB names */
    uint64_t size = (uint64_t)status.st_size;
    for (uint64_t from = 0; from < size && !ended && !found; from += BLOCK) {
        uint32_t bytes = size - from < BLOCK ? (uint32_t)(size - from) : BLOCK, stop = 0;
        if (pread(file, block, bytes, (off_t)from) != (ssize_t)bytes)
            break;
        uint32_t at = find_damage(block, bytes, &stop, &ended);
        found = at != UINT32_MAX || (any && ended);
        out->at = from + (at != UINT32_MAX ? at : stop);
    }
done:
    if (file >= 0)
        (void)close(file);
    free(block);
    return found;
}

/* In the manifest that CURRENT names, then in each *.log. */
static bool find_in_logs(const char *directory, bool any, struct place *out)
{
    char path[4096], manifest[256];
    bool found = false;
    (void)snprintf(path, sizeof path, "%s/CURRENT", directory);
    int current;
    if (dp_inspect_file(AT_FDCWD, path, &current, NULL) == DP_OK) {
        ssize_t bytes = read(current, manifest, sizeof manifest - 1);
        (void)close(current);
        manifest[bytes > 0 ? bytes : 0] = 0;
        manifest[strcspn(manifest, "\n")] = 0;
        found = bytes > 0 && find_in_file(directory, manifest, any, out);
    }
    DIR *list = found ? NULL : opendir(directory);
    for (struct dirent *entry = list ? readdir(list) : NULL; !found && entry; entry = readdir(list)) {
        size_t len = strlen(entry->d_name);
        if (len > 4 && strcmp(entry->d_name + len - 4, ".log") == 0)
            found = find_in_file(directory, entry->d_name, any, out);
    }
    if (list)
        (void)closedir(list);
    return found;
}

enum dp_status dp_rocks_log_check(const char *directory, struct dp_error *err)
{
    struct place place;
    enum dp_status st = dp_rocks_current_check(directory, err);
    if (st != DP_OK || !find_in_logs(directory, false, &place))
        return st;
    return dp_fail(err, DP_CORRUPT,
                   "store %s: %s is damaged at offset %" PRIu64
                   ": a record's type or length is not that of its contents; take a copy of the store, or "
                   "bring the file back",
                   directory, place.path, place.at);
}

void dp_rocks_log_name_damage(const char *directory, struct dp_error *err)
{
    struct place place;
    bool named = strstr(err->text, ".sst") || strstr(err->text, ".log") || strstr(err->text, "MANIFEST");
    if (!named && find_in_logs(directory, true, &place))
        (void)dp_wrap(err, err->status, "%s is damaged at offset %" PRIu64, place.path, place.at);
}
