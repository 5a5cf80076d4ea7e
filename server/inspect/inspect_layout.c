#include "server/inspect/inspect_layout.h"

#include "common/env/read_only_disk.h"
#include "server/control/register_file.h"
#include "server/layout.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* "DIR/shard-0003": DIR and 3; false: a directory of another name, which no layout speaks of. */
static bool split(const char *path, char *directory, size_t bytes, uint32_t *shard)
{
    size_t len = strlen(path);
    while (len > 1 && path[len - 1] == '/')
        len--;
    int whole = snprintf(directory, bytes, "%.*s", (int)len, path);
    char *slash = whole > 0 && (size_t)whole < bytes ? strrchr(directory, '/') : NULL;
    if (!slash || sscanf(slash, "/shard-%4" SCNu32, shard) != 1 || strlen(slash) != strlen("/shard-0000"))
        return false;
    *slash = '\0';
    return true;
}

/* The first server's: DP_NOT_FOUND elsewhere. */
static enum dp_status check_register(const char *directory, struct dp_error *err)
{
    struct dp_control_register_content content;
    struct dp_disk disk;
    enum dp_status st = dp_read_only_disk_open(directory, &disk, err);
    if (st != DP_OK)
        return st;
    st = dp_control_register_file_read(&disk, true, &content, err);
    dp_control_register_content_clear(&content);
    dp_disk_close(&disk);
    return st == DP_OK || st == DP_NOT_FOUND ? st : dp_wrap(err, st, "%s", directory);
}

static enum dp_status check_shard(const struct dp_inspect_view *view, const char *directory, uint32_t shard,
                                  const struct dp_layout *layout, struct dp_error *err)
{
    if (!view->opened || view->own.state == DP_STORE_VIEW_NEW)
        return DP_OK; /* nothing is known of it */
    char name[DP_LAYOUT_NAME_BYTES];
    bool named = shard - layout->first < layout->count;
    struct dp_range range = named ? dp_range_of_shard(shard, layout->total) : (struct dp_range){0};
    if (named && range.first == view->own.range.first && range.last == view->own.range.last)
        return DP_OK;
    dp_layout_name(layout, name);
    return dp_fail(err, DP_CORRUPT,
                   "%s/layout says %s, but shard-%04" PRIu32
                   " says otherwise of itself: the file is damaged, or the shard is another server's; bring "
                   "the right one back",
                   directory, name, shard);
}

static enum dp_status check_all_there(const char *directory, const struct dp_layout *layout,
                                      struct dp_error *err)
{
    char path[4200], name[DP_LAYOUT_NAME_BYTES];
    dp_layout_name(layout, name);
    for (uint32_t i = layout->first; i - layout->first < layout->count; i++) {
        (void)snprintf(path, sizeof path, "%s/shard-%04" PRIu32, directory, i);
        if (access(path, F_OK) != 0)
            return dp_fail(err, DP_CORRUPT, "%s is missing, and %s/layout names %s: bring it back", path,
                           directory, name);
    }
    return DP_OK;
}

/* In a directory server-N next to all those before it, the shards are those that come next. Swapped directories hold others. */
static enum dp_status check_place(const char *directory, const struct dp_layout *layout, struct dp_error *err)
{
    char path[4200], holds[DP_LAYOUT_NAME_BYTES];
    const char *slash = strrchr(directory, '/'), *name = slash ? slash + 1 : directory;
    uint32_t number, first = 0;
    struct dp_error unknown = {0};
    if (sscanf(name, "server-%9" SCNu32, &number) != 1)
        return DP_OK;
    for (uint32_t i = 0; i < number; i++) {
        struct dp_layout one;
        (void)snprintf(path, sizeof path, "%.*sserver-%" PRIu32, (int)(name - directory), directory, i);
        if (dp_layout_read(path, &one, &unknown) != DP_OK)
            return DP_OK; /* it is unknown how many shards come before */
        first += one.count;
    }
    if (first == layout->first)
        return DP_OK;
    dp_layout_name(layout, holds);
    return dp_fail(err, DP_CORRUPT,
                   "%s: stored in %s, but holds %s, where shard %" PRIu32
                   " comes first: were directories swapped? Put the right one there",
                   directory, name, holds, first);
}

void dp_inspect_layouts(struct dp_inspect_view *views, size_t count)
{
    char directory[4096], before[4096] = "";
    struct dp_layout layout = {0};
    enum dp_status known = DP_NOT_FOUND;
    for (size_t i = 0; i < count; i++) {
        struct dp_error err = {0};
        uint32_t shard = 0;
        if (!split(views[i].directory, directory, sizeof directory, &shard))
            continue;
        if (strcmp(directory, before) != 0) {
            known = dp_layout_read(directory, &layout, &err);
            memcpy(before, directory, sizeof before);
            if (known == DP_CORRUPT ||
                (known == DP_OK && (check_all_there(directory, &layout, &err) != DP_OK ||
                                    check_place(directory, &layout, &err) != DP_OK)))
                dp_inspect_view_note(&views[i], &err);
            enum dp_status kept = check_register(directory, &err);
            if (kept != DP_OK && kept != DP_NOT_FOUND)
                dp_inspect_view_note(&views[i], &err);
        }
        if (known == DP_OK && check_shard(&views[i], directory, shard, &layout, &err) != DP_OK)
            dp_inspect_view_note(&views[i], &err);
    }
}
