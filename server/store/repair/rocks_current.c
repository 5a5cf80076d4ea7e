#include "server/store/repair/rocks_current.h"

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/env/disk_replace.h"
#include "server/store/store_directory.h"

#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PREFIX "MANIFEST-"

/* Accepts "MANIFEST-000005" and a newline; cuts the newline off. */
static bool is_name(char *name, size_t bytes)
{
    size_t digits = strlen(PREFIX) < bytes ? strspn(name + strlen(PREFIX), "0123456789") : 0;
    bool whole = digits > 0 && strncmp(name, PREFIX, strlen(PREFIX)) == 0 &&
                 bytes == strlen(PREFIX) + digits + 1 && name[bytes - 1] == '\n';
    if (whole)
        name[bytes - 1] = '\0';
    return whole;
}

uint64_t dp_rocks_current_number(const char *name)
{
    return strtoull(name + strlen(PREFIX), NULL, 10);
}

enum dp_status dp_rocks_current_read(const struct dp_disk *disk, char name[DP_ROCKS_CURRENT_BYTES],
                                     struct dp_error *err)
{
    void *data = NULL;
    size_t bytes = 0;
    enum dp_status st = dp_disk_read_all(disk, "CURRENT", false, &data, &bytes, err);
    bytes = bytes < DP_ROCKS_CURRENT_BYTES ? bytes : DP_ROCKS_CURRENT_BYTES - 1;
    if (bytes > 0)
        memcpy(name, data, bytes);
    name[bytes] = '\0';
    free(data);
    if (st == DP_OK && !is_name(name, bytes)) {
        dp_text_clean(name);
        st = DP_CORRUPT;
    }
    return st;
}

struct manifests {
    uint32_t count;
    char name[DP_ROCKS_CURRENT_BYTES]; /* of the last one */
};

static void see(void *context, const char *name)
{
    struct manifests *manifests = context;
    char line[DP_ROCKS_CURRENT_BYTES];
    int bytes = snprintf(line, sizeof line, "%s\n", name);
    if (bytes >= (int)sizeof line || !is_name(line, (size_t)bytes))
        return;
    manifests->count++;
    memcpy(manifests->name, line, sizeof line);
}

/* Finds the directory's only manifest, if its number is lower than that of `missing`. */
static bool find_earlier(const struct dp_disk *disk, const char *missing, char name[DP_ROCKS_CURRENT_BYTES])
{
    struct manifests found = {0};
    struct dp_error ignored;
    if (disk->list(disk->self, see, &found, &ignored) != DP_OK || found.count != 1)
        return false;
    memcpy(name, found.name, sizeof found.name);
    return dp_rocks_current_number(name) < dp_rocks_current_number(missing);
}

/* earlier: set if the status is DP_UNCLEAN. */
static enum dp_status check(const struct dp_disk *disk, const char *directory,
                            char missing[DP_ROCKS_CURRENT_BYTES], char earlier[DP_ROCKS_CURRENT_BYTES],
                            struct dp_error *err)
{
    struct dp_file *file = NULL;
    enum dp_status st = dp_rocks_current_read(disk, missing, err);
    if (st == DP_NOT_FOUND)
        return DP_OK; /* store_directory.c reports that */
    if (st == DP_CORRUPT)
        return dp_fail(err, DP_CORRUPT,
                       "store %s: the file CURRENT is damaged: '%s' is not the name of a manifest; restore "
                       "that file, or " DP_STORE_RESTORE,
                       directory, missing);
    if (st == DP_OK)
        st = disk->open(disk->self, missing, false, &file, err);
    if (file)
        disk->close(disk->self, file);
    if (st != DP_NOT_FOUND)
        return st;
    if (find_earlier(disk, missing, earlier))
        return dp_fail(err, DP_UNCLEAN,
                       "store %s: the file CURRENT names %s, which is missing: power was lost while the "
                       "store was opened. "
                       "Nothing is lost: start and stop the server, which goes back to %s",
                       directory, missing, earlier);
    return dp_fail(err, DP_CORRUPT,
                   "store %s: the file CURRENT names %s, which is missing; restore that file, or the last "
                   "checkpoint",
                   directory, missing);
}

enum dp_status dp_rocks_current_check(const struct dp_disk *disk, const char *directory, struct dp_error *err)
{
    char missing[DP_ROCKS_CURRENT_BYTES], earlier[DP_ROCKS_CURRENT_BYTES];
    return check(disk, directory, missing, earlier, err);
}

enum dp_status dp_rocks_current_mend(const struct dp_disk *disk, const char *directory, struct dp_error *err)
{
    char missing[DP_ROCKS_CURRENT_BYTES], earlier[DP_ROCKS_CURRENT_BYTES], line[DP_ROCKS_CURRENT_BYTES + 1];
    struct dp_error ignored;
    enum dp_status st = DP_OK;
    if (check(disk, directory, missing, earlier, &ignored) != DP_UNCLEAN)
        return DP_OK;
    int lock = dp_store_directory_lock(directory);
    if (lock < 0)
        return DP_OK;
    /* Check again under the lock: another process may have opened and repaired the store. */
    if (check(disk, directory, missing, earlier, &ignored) == DP_UNCLEAN) {
        int bytes = snprintf(line, sizeof line, "%s\n", earlier);
        st = dp_disk_replace(disk, "CURRENT", line, (size_t)bytes, err);
        if (st == DP_OK)
            dp_log(DP_LOG_WARN,
                   "store %s: the file CURRENT named %s, which is missing: power was lost while the store "
                   "was opened. "
                   "Pointed it back at %s, which has all that was acknowledged",
                   directory, missing, earlier);
    }
    (void)close(lock);
    return st;
}
