#include "server/store/rocks_current.h"

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/env/limits.h"
#include "common/env/read_only_disk.h"
#include "server/store/store_directory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/types.h>
#include <unistd.h>

#define PREFIX "MANIFEST-"
#define MENDED "000000.dbtmp" /* a name that RocksDB sweeps */

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

/* Reads CURRENT; *whole: it holds a manifest's name. Returns false if the file is missing or cannot be
 * read. */
static bool read_current(const char *directory, char name[64], bool *whole)
{
    char path[4096];
    int file;
    (void)snprintf(path, sizeof path, "%s/CURRENT", directory);
    if (dp_read_only_disk_file(AT_FDCWD, path, &file, NULL) != DP_OK)
        return false;
    ssize_t bytes = read(file, name, 63);
    (void)close(file);
    name[bytes > 0 ? bytes : 0] = '\0';
    *whole = bytes > 0 && is_name(name, (size_t)bytes);
    return bytes >= 0;
}

/* Finds the directory's only manifest, if its number is lower than that of `missing`. */
static bool find_earlier(const char *directory, const char *missing, char name[64])
{
    uint32_t manifests = 0;
    DIR *list = opendir(directory);
    for (struct dirent *entry = list ? readdir(list) : NULL; entry; entry = readdir(list)) {
        char line[66];
        size_t bytes = (size_t)snprintf(line, sizeof line, "%.64s\n", entry->d_name);
        if (bytes >= 64 || !is_name(line, bytes))
            continue;
        manifests++;
        (void)snprintf(name, 64, "%.63s", line);
    }
    if (list)
        (void)closedir(list);
    return manifests == 1 &&
           strtoull(name + strlen(PREFIX), NULL, 10) < strtoull(missing + strlen(PREFIX), NULL, 10);
}

/* earlier: set if the status is DP_UNCLEAN. */
static enum dp_status check(const char *directory, char missing[64], char earlier[64], struct dp_error *err)
{
    char path[4096];
    bool whole;
    if (!read_current(directory, missing, &whole))
        return DP_OK; /* store_directory.c reports that */
    if (!whole) {
        dp_text_clean(missing);
        return dp_fail(err, DP_CORRUPT,
                       "store %s: the file CURRENT is damaged: '%s' is not the name of a manifest; restore "
                       "that file, or " DP_STORE_RESTORE,
                       directory, missing);
    }
    (void)snprintf(path, sizeof path, "%s/%s", directory, missing);
    if (access(path, F_OK) == 0)
        return DP_OK;
    if (errno == ENOENT && find_earlier(directory, missing, earlier))
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

enum dp_status dp_rocks_current_check(const char *directory, struct dp_error *err)
{
    char missing[64], earlier[64];
    return check(directory, missing, earlier, err);
}

/* Writes a temp file, syncs it, renames it and syncs the directory: a crash leaves either the old content or
 * the new. */
static enum dp_status point_at(const char *directory, const char *name, struct dp_error *err)
{
    char path[4096], current[4096], line[66];
    size_t bytes = (size_t)snprintf(line, sizeof line, "%s\n", name);
    (void)snprintf(path, sizeof path, "%s/%s", directory, MENDED);
    (void)snprintf(current, sizeof current, "%s/CURRENT", directory);
    int file = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    bool done = file >= 0 && write(file, line, bytes) == (ssize_t)bytes && fsync(file) == 0;
    int why = errno;
    if (file >= 0)
        (void)close(file);
    if (done && rename(path, current) != 0) {
        done = false;
        why = errno;
    }
    if (!done)
        return dp_fail(err, dp_limits_full(why) ? DP_FULL : DP_IO, "store: write %s: %s%s", path,
                       strerror(why), dp_limits_remedy(why));
    return dp_store_directory_sync(directory, err);
}

enum dp_status dp_rocks_current_mend(const char *directory, struct dp_error *err)
{
    char missing[64], earlier[64];
    struct dp_error ignored;
    if (check(directory, missing, earlier, &ignored) != DP_UNCLEAN)
        return DP_OK;
    int lock = dp_store_directory_lock(directory);
    if (lock < 0)
        return DP_OK;
    /* Check again under the lock: another process may have opened and repaired the store meanwhile. */
    bool mends = check(directory, missing, earlier, &ignored) == DP_UNCLEAN;
    enum dp_status st = mends ? point_at(directory, earlier, err) : DP_OK;
    if (st == DP_OK && mends)
        dp_log(DP_LOG_WARN,
               "store %s: the file CURRENT named %s, which is missing: power was lost while the store was "
               "opened. "
               "Pointed it back at %s, which has all that was acknowledged",
               directory, missing, earlier);
    (void)close(lock);
    return st;
}
