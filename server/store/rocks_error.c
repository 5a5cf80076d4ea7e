#include "server/store/rocks_error.h"

#include "common/base/text.h"
#include "server/store/store_directory.h"

#include <stdbool.h>
#include <string.h>

static bool starts(const char *text, const char *with)
{
    return strncmp(text, with, strlen(with)) == 0;
}

enum dp_status dp_rocks_error_take(char **text, const char *directory, const char *doing,
                                   struct dp_error *err)
{
    const char *why = *text;
    enum dp_status st = DP_OK;
    if (!why)
        return DP_OK;
    dp_text_clean(*text); /* it may contain bytes of a damaged file */
    /* A missing file reads "Corruption: Can't access ...: IO error: ...": the start of the text decides. */
    if (starts(why, "Corruption"))
        st = dp_fail(err, DP_CORRUPT, "store %s: %s: %s; " DP_STORE_RESTORE_ALL, directory, doing, why);
    else if (strstr(why, "Too many open files")) /* EMFILE, ENFILE */
        st =
            dp_fail(err, DP_FULL, "store %s: %s: %s; raise 'ulimit -n' of the server", directory, doing, why);
    else if (strstr(why, "File too large")) /* EFBIG */
        st =
            dp_fail(err, DP_FULL, "store %s: %s: %s; raise 'ulimit -f' of the server", directory, doing, why);
    else if (strstr(why, "No space left") || strstr(why, "NoSpace") || strstr(why, "Disk quota exceeded"))
        st = dp_fail(err, DP_FULL, "store %s: %s: %s; make room on that disk", directory, doing, why);
    else if (strstr(why, "lock hold by current process") || strstr(why, "While lock file"))
        st = dp_fail(err, DP_IN_USE,
                     "store %s: another server is using it (%s); stop that one, or use another "
                     "directory",
                     directory, why);
    else if (starts(why, "Invalid argument"))
        st = dp_fail(err, DP_UNSUPPORTED,
                     "store %s: %s: the database there is not a store of this build (%s); put the right one "
                     "back, or move this one away",
                     directory, doing, why);
    else
        st = dp_fail(err, DP_IO, "store %s: %s: %s", directory, doing, why);
    rocksdb_free(*text);
    *text = NULL;
    return st;
}

enum dp_status dp_rocks_error_of(const rocksdb_iterator_t *at, const char *directory, const char *doing,
                                 struct dp_error *err)
{
    char *text = NULL;
    rocksdb_iter_get_error(at, &text);
    return dp_rocks_error_take(&text, directory, doing, err);
}
