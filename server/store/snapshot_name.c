#include "server/store/snapshot_name.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define SNAPSHOT "snapshot"

void dp_store_snapshot_name_with(const char *word, struct dp_store_snapshot snapshot,
                                 char out[DP_SNAPSHOT_NAME_BYTES])
{
    (void)snprintf(out, DP_SNAPSHOT_NAME_BYTES, "%s-%" PRIu32 "-%" PRIu32, word, snapshot.run,
                   snapshot.epoch);
}

/* No sign, no leading zero. */
bool dp_store_snapshot_name_parse_with(const char *word, const char *name, struct dp_store_snapshot *out)
{
    char again[DP_SNAPSHOT_NAME_BYTES], *end;
    size_t len = strlen(word);
    if (strncmp(name, word, len) != 0 || name[len] != '-')
        return false;
    out->run = (uint32_t)strtoul(name + len + 1, &end, 10);
    if (*end != '-')
        return false;
    out->epoch = (uint32_t)strtoul(end + 1, &end, 10);
    dp_store_snapshot_name_with(word, *out, again);
    return strcmp(name, again) == 0;
}

void dp_store_snapshot_name(struct dp_store_snapshot snapshot, char out[DP_SNAPSHOT_NAME_BYTES])
{
    dp_store_snapshot_name_with(SNAPSHOT, snapshot, out);
}

bool dp_store_snapshot_name_parse(const char *name, struct dp_store_snapshot *out)
{
    return dp_store_snapshot_name_parse_with(SNAPSHOT, name, out);
}
