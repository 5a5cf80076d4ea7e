#include "server/store/repair/rocks_kept.h"

#include "common/base/log.h"
#include "server/store/repair/rocks_text.h"
#include "server/store/store_directory.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

static enum dp_status look(const struct dp_disk *disk, const char *name)
{
    struct dp_file *file = NULL;
    struct dp_error ignored;
    enum dp_status st = disk->open(disk->self, name, false, &file, &ignored);
    if (st == DP_OK)
        disk->close(disk->self, file);
    return st;
}

void dp_rocks_kept_find(const struct dp_disk *disk, const char *text, struct dp_rocks_kept *out)
{
    uint64_t number;
    *out = (struct dp_rocks_kept){0};
    if (!text || !dp_rocks_text_table(text, &number))
        return;
    (void)snprintf(out->name, sizeof out->name, "%06" PRIu64 ".sst", number);
    if (look(disk, out->name) != DP_NOT_FOUND || look(disk, DP_ROCKS_KEPT) != DP_OK)
        out->name[0] = '\0';
}

static bool move(const struct dp_disk *disk, const char *from, const char *to)
{
    struct dp_error err;
    enum dp_status st = disk->rename(disk->self, from, to, &err);
    if (st == DP_OK)
        st = disk->sync_directory(disk->self, &err);
    if (st != DP_OK)
        dp_log(DP_LOG_WARN, "store: %s", err.text);
    return st == DP_OK;
}

bool dp_rocks_kept_put_back(const struct dp_disk *disk, const char *directory,
                            const struct dp_rocks_kept *kept)
{
    int lock = kept->name[0] != '\0' ? dp_store_directory_lock(directory) : -1;
    bool moved = lock >= 0 && move(disk, DP_ROCKS_KEPT, kept->name);
    if (lock >= 0)
        (void)close(lock);
    if (moved)
        dp_log(
            DP_LOG_WARN,
            "store %s: the manifest names %s, which is missing because a sync of the manifest failed during "
            "write-back. Restored the file from " DP_ROCKS_KEPT,
            directory, kept->name);
    return moved;
}

void dp_rocks_kept_take_away(const struct dp_disk *disk, const struct dp_rocks_kept *kept)
{
    (void)move(disk, kept->name, DP_ROCKS_KEPT);
}
