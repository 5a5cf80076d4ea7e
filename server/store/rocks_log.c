#include "server/store/rocks_log.h"

#include "common/base/bytes.h"
#include "server/journal/crc32c.h"
#include "server/store/rocks_current.h"
#include "server/store/rocks_manifest.h"
#include "server/store/rocks_record.h"
#include "server/store/rocks_text.h"

#include <dirent.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

static bool is_whole(const uint8_t *record, uint32_t bytes)
{
    return record[6] >= 1 && record[6] <= DP_ROCKS_LAST && dp_rocks_part_fits(record, record[6], bytes);
}

static bool is_whole_under_another_type(const uint8_t *record, uint32_t bytes)
{
    for (uint8_t type = 1; type <= DP_ROCKS_LAST; type++)
        if (dp_rocks_part_fits(record, type, bytes))
            return true;
    return false;
}

/* Looks for a payload length, up to `most`, that fits the record's checksum. */
static bool is_whole_under_another_length(const uint8_t *record, uint32_t most)
{
    uint32_t crc = dp_crc32c(0, record + 6, 1);
    for (uint32_t bytes = 0; bytes <= most; bytes++) {
        if (dp_rocks_masked(crc) == dp_load_u32le(record))
            return true;
        if (bytes < most)
            crc = dp_crc32c(crc, record + DP_ROCKS_HEADER + bytes, 1);
    }
    return false;
}

static bool has_whole_record(const uint8_t *block, uint32_t from, uint32_t upto)
{
    for (uint32_t at = from; at + DP_ROCKS_HEADER <= upto; at++) {
        uint32_t bytes = dp_rocks_part_payload(block + at);
        if (bytes > 0 && bytes <= upto - at - DP_ROCKS_HEADER && is_whole(block + at, bytes))
            return true;
    }
    return false;
}

/* Offset of the damaged record in a block; UINT32_MAX: none. *ended: RocksDB stops reading at *stop. */
static uint32_t find_damage(const uint8_t *block, uint32_t upto, uint32_t *stop, bool *ended)
{
    for (uint32_t at = 0; at + DP_ROCKS_HEADER <= upto;) {
        uint32_t left = upto - at - DP_ROCKS_HEADER, bytes = dp_rocks_part_payload(block + at);
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
        at += DP_ROCKS_HEADER + bytes;
    }
    return UINT32_MAX;
}

struct log_place {
    char path[4096];
    uint64_t at;
};

/* The place of the damage that find_damage finds or, with `any`, of the first record that is not intact. */
static bool find_in_file(struct log_place *place, bool any)
{
    struct dp_rocks_bytes log = {0};
    bool found = false, ended = false;
    if (dp_rocks_bytes_read(place->path, &log, NULL) != DP_OK)
        return false; /* RocksDB names a missing file itself */
    for (size_t from = 0; from < log.size && !ended && !found; from += DP_ROCKS_BLOCK) {
        size_t bytes = log.size - from < DP_ROCKS_BLOCK ? log.size - from : DP_ROCKS_BLOCK;
        uint32_t stop = 0, at = find_damage(log.bytes + from, (uint32_t)bytes, &stop, &ended);
        found = at != UINT32_MAX || (any && ended);
        place->at = from + (at != UINT32_MAX ? at : stop);
    }
    dp_rocks_bytes_clear(&log);
    return found;
}

/* Searches the manifest that CURRENT names, then each *.log. */
static bool find_in_logs(const char *directory, bool any, struct log_place *out)
{
    bool found = dp_rocks_manifest_path(directory, out->path, sizeof out->path) && find_in_file(out, any);
    DIR *list = found ? NULL : opendir(directory);
    for (struct dirent *entry = list ? readdir(list) : NULL; !found && entry; entry = readdir(list)) {
        size_t len = strlen(entry->d_name);
        (void)snprintf(out->path, sizeof out->path, "%s/%s", directory, entry->d_name);
        if (len > 4 && strcmp(entry->d_name + len - 4, ".log") == 0)
            found = find_in_file(out, any);
    }
    if (list)
        (void)closedir(list);
    return found;
}

enum dp_status dp_rocks_log_check(const char *directory, struct dp_error *err)
{
    struct log_place place;
    enum dp_status st = dp_rocks_current_check(directory, err);
    if (st != DP_OK || !find_in_logs(directory, false, &place))
        return st;
    return dp_fail(
        err, DP_CORRUPT,
        "store %s: %s is damaged at offset %" PRIu64
        ": a record's type or length does not fit its contents; restore that file, or a copy of the "
        "store, or a checkpoint (downpour restore --overwrite)",
        directory, place.path, place.at);
}

void dp_rocks_log_name_damage(const char *directory, struct dp_error *err)
{
    struct log_place place;
    if (!dp_rocks_text_names_file(err) && find_in_logs(directory, true, &place))
        (void)dp_wrap(err, err->status, "%s is damaged at offset %" PRIu64, place.path, place.at);
}
