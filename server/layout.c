#include "server/layout.h"

#include "common/env/disk_replace.h"
#include "common/env/read_only_disk.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define NAME       "layout"
#define TEXT_BYTES 64u /* of the file; the text is shorter, the rest is 0 */
#define FORMAT     "downpour layout 1: shards %" PRIu32 "..%" PRIu32 " of %" PRIu32 "\n"

static void text_of(const struct dp_layout *layout, char text[TEXT_BYTES])
{
    memset(text, 0, TEXT_BYTES);
    (void)snprintf(text, TEXT_BYTES, FORMAT, layout->first, layout->first + layout->count - 1, layout->total);
}

void dp_layout_name(const struct dp_layout *layout, char out[DP_LAYOUT_NAME_BYTES])
{
    uint32_t last = layout->first + layout->count - 1;
    if (layout->count == 1)
        (void)snprintf(out, DP_LAYOUT_NAME_BYTES, "shard %" PRIu32 " of %" PRIu32, last, layout->total);
    else
        (void)snprintf(out, DP_LAYOUT_NAME_BYTES, "shards %" PRIu32 "..%" PRIu32 " of %" PRIu32,
                       layout->first, last, layout->total);
}

static enum dp_status other(const char *directory, const struct dp_layout *layout, const char *has,
                            const char *who, struct dp_error *err)
{
    char wants[DP_LAYOUT_NAME_BYTES];
    dp_layout_name(layout, wants);
    return dp_fail(err, DP_EXISTS,
                   "%s holds %s, and this server's place is that of %s (says %s): was another directory put "
                   "(or mounted) in its place? Put the right one there; or put servers, shards and store of "
                   "the cluster file back as they were",
                   directory, has, wants, who);
}

/* The complete text or nothing: a flipped bit leaves no other valid text, except in a digit. */
static bool parse(const char text[TEXT_BYTES], struct dp_layout *out)
{
    char copy[TEXT_BYTES], same[TEXT_BYTES];
    uint32_t last = 0;
    memcpy(copy, text, TEXT_BYTES);
    copy[TEXT_BYTES - 1] = '\0';
    if (sscanf(copy, FORMAT, &out->first, &last, &out->total) != 3 || last < out->first || last >= out->total)
        return false;
    out->count = last - out->first + 1;
    text_of(out, same);
    return memcmp(text, same, TEXT_BYTES) == 0;
}

static enum dp_status read_from(const struct dp_disk *disk, const char *directory, struct dp_layout *out,
                                struct dp_error *err)
{
    void *data;
    size_t bytes;
    enum dp_status st = dp_disk_read_all(disk, NAME, false, &data, &bytes, err);
    if (st == DP_OK && bytes != TEXT_BYTES)
        st = dp_fail(err, DP_CORRUPT, "its file '" NAME "' has %zu bytes instead of %u", bytes, TEXT_BYTES);
    if (st != DP_OK && st != DP_NOT_FOUND)
        st = dp_wrap(err, st, "%s", directory);
    if (st == DP_OK && !parse(data, out))
        st = dp_fail(err, DP_CORRUPT,
                     "%s: its file '" NAME "' is damaged; bring it back, or, if no shard-N is missing there, "
                     "remove it: it is made again",
                     directory);
    free(data);
    return st;
}

enum dp_status dp_layout_read(const char *directory, struct dp_layout *out, struct dp_error *err)
{
    struct dp_disk disk;
    enum dp_status st = dp_read_only_disk_open(directory, &disk, err);
    if (st != DP_OK)
        return st;
    st = read_from(&disk, directory, out, err);
    dp_disk_close(&disk);
    return st;
}

/* What the names in the directory say: a shard of others. */
struct layout_found {
    const struct dp_layout *layout;
    bool has_other;
    char other[32];
};

static void see(void *context, const char *name)
{
    struct layout_found *found = context;
    uint32_t index;
    char same[32];
    if (sscanf(name, "shard-%4" SCNu32, &index) != 1)
        return;
    (void)snprintf(same, sizeof same, "shard-%04" PRIu32, index);
    if (strcmp(same, name) != 0)
        return;
    if (index - found->layout->first < found->layout->count)
        return;
    found->has_other = true;
    memcpy(found->other, same, sizeof same);
}

/* Every shard has served once (the layout is put after that), so each has a store. */
enum dp_status dp_layout_check_stores(const char *directory, const struct dp_layout *layout,
                                      struct dp_error *err)
{
    char path[1400];
    for (uint32_t i = layout->first; i < layout->first + layout->count; i++) {
        (void)snprintf(path, sizeof path, "%s/shard-%04" PRIu32 "/CURRENT", directory, i);
        if (access(path, F_OK) != 0)
            return dp_fail(err, DP_CORRUPT,
                           "%s is not there: shard %" PRIu32
                           " has lost its store: was it removed, or its disk not mounted? Put it back; or, "
                           "with --replace-store on `downpour run` or the server, start this shard empty: "
                           "all its rows are lost",
                           path, i);
    }
    return DP_OK;
}

static enum dp_status check(struct dp_disk *disk, const char *directory, const struct dp_layout *layout,
                            bool replaces, bool *known, struct dp_error *err)
{
    struct layout_found found = {.layout = layout};
    struct dp_error failure = {0};
    struct dp_layout has;
    char name[DP_LAYOUT_NAME_BYTES];
    enum dp_status st = disk->list(disk->self, see, &found, err);
    if (st != DP_OK)
        return st;
    st = read_from(disk, directory, &has, &failure);
    *known = st == DP_OK;
    if (st == DP_NOT_FOUND)
        return found.has_other ? other(directory, layout, found.other, "its name", err) : DP_OK;
    if (st != DP_OK) {
        *err = failure;
        return st;
    }
    if (has.first == layout->first && has.count == layout->count && has.total == layout->total)
        return replaces ? DP_OK : dp_layout_check_stores(directory, layout, err);
    dp_layout_name(&has, name);
    return other(directory, layout, name, "its file '" NAME "'", err);
}

enum dp_status dp_layout_check(const char *directory, const struct dp_layout *layout, bool replaces,
                               bool *known, struct dp_error *err)
{
    struct dp_disk disk;
    *known = false;
    if (access(directory, F_OK) != 0)
        return DP_OK;
    enum dp_status st = dp_read_only_disk_open(directory, &disk, err);
    if (st != DP_OK)
        return st;
    st = check(&disk, directory, layout, replaces, known, err);
    dp_disk_close(&disk);
    return st;
}

enum dp_status dp_layout_put(const char *directory, const struct dp_layout *layout, struct dp_error *err)
{
    char text[TEXT_BYTES];
    struct dp_disk disk;
    text_of(layout, text);
    enum dp_status st = dp_disk_open(directory, &disk, err);
    if (st != DP_OK)
        return st;
    st = dp_disk_replace(&disk, NAME, text, sizeof text, err);
    dp_disk_close(&disk);
    return st == DP_OK ? DP_OK : dp_wrap(err, st, "keeping the layout of %s", directory);
}
