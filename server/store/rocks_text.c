#include "server/store/rocks_text.h"

#include <ctype.h>
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
