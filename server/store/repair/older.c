#include "server/store/repair/older.h"

#include <dirent.h>
#include <string.h>

#define REVERT_PREFIX "revert-" /* a database that is to take the store's place */

enum dp_status dp_store_older_check(const char *path, struct dp_error *err)
{
    bool reverts = false;
    DIR *list = opendir(path);
    for (struct dirent *entry = list ? readdir(list) : NULL; entry; entry = readdir(list))
        reverts = reverts || strncmp(entry->d_name, REVERT_PREFIX, sizeof REVERT_PREFIX - 1) == 0;
    if (list)
        (void)closedir(list);
    return reverts
               ? dp_fail(
                     err, DP_UNSUPPORTED,
                     "store %s: a version before was interrupted while it took the store back to its best "
                     "epoch; start its server once with that version, which completes that",
                     path)
               : DP_OK;
}
