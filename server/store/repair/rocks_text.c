#include "server/store/repair/rocks_text.h"

#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* Whether the text has a name such as "000012.sst" that is not a directory's. */
static bool names_numbered(const char *text, const char *ending)
{
    for (const char *at = text; (at = strstr(at, ending)); at++)
        if (at > text && isdigit((unsigned char)at[-1]) && at[strlen(ending)] != '/')
            return true;
    return false;
}

bool dp_rocks_text_names_table(const struct dp_error *err)
{
    return names_numbered(err->text, ".sst");
}

bool dp_rocks_text_names_file(const struct dp_error *err)
{
    return names_numbered(err->text, ".sst") || names_numbered(err->text, ".log") ||
           strstr(err->text, "MANIFEST-");
}

/* RocksDB looks for a missing table under another ending, too, and names the last one that it tried. */
bool dp_rocks_text_table(const char *text, uint64_t *number)
{
    bool found = false;
    for (const char *at = text; (at = strchr(at, '/')); at++) {
        char *end;
        unsigned long long n = isdigit((unsigned char)at[1]) ? strtoull(at + 1, &end, 10) : 0;
        if (n == 0 || (strncmp(end, ".sst", 4) != 0 && strncmp(end, ".ldb", 4) != 0) || end[4] == '/')
            continue;
        *number = n;
        found = true;
    }
    return found;
}
