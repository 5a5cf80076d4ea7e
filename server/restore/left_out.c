#include "server/restore/left_out.h"

#include "common/config/nearest.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct dp_manifest_table *find(const struct dp_manifest_tables *tables, const char *name, size_t len)
{
    for (size_t i = 0; i < tables->count; i++)
        if (strlen(tables->table[i].spec.name) == len && memcmp(tables->table[i].spec.name, name, len) == 0)
            return &tables->table[i];
    return NULL;
}

static enum dp_status refuse(const struct dp_manifest_tables *tables, const char *name, size_t len,
                             struct dp_error *err)
{
    char word[DP_TABLE_NAME_MAX + 1], all[256] = "";
    const char **names = calloc(tables->count + 1, sizeof *names);
    size_t used = 0, shown = 0;
    (void)snprintf(word, sizeof word, "%.*s", (int)(len < sizeof word ? len : sizeof word - 1), name);
    for (size_t i = 0; names && i < tables->count; i++)
        names[i] = tables->table[i].spec.name;
    const char *near = names ? dp_nearest(word, names, tables->count) : NULL;
    for (; shown < tables->count; shown++) {
        const char *one = tables->table[shown].spec.name;
        if (used + strlen(one) + 3 > sizeof all)
            break;
        used += (size_t)snprintf(all + used, sizeof all - used, "%s%s", shown > 0 ? ", " : "", one);
    }
    free(names);
    return dp_fail(err, DP_ARGUMENT, "--without: the checkpoint has no table '%s'%s%s%s; it has %zu: %s%s",
                   word, near ? " (did you mean '" : "", near ? near : "", near ? "'?)" : "", tables->count,
                   all, shown < tables->count ? ", ..." : "");
}

enum dp_status dp_restore_leave_out(struct dp_manifest *manifest, const char *names, struct dp_error *err)
{
    for (const char *at = names;; at++) {
        size_t len = strcspn(at, ",");
        struct dp_manifest_table *table = find(&manifest->tables, at, len);
        if (!table)
            return refuse(&manifest->tables, at, len, err);
        table->left_out = true;
        at += len;
        if (!*at)
            return DP_OK;
    }
}

const char *dp_restore_left_out_text(const struct dp_manifest *manifest, char text[64])
{
    size_t count = 0;
    for (size_t i = 0; i < manifest->tables.count; i++)
        count += manifest->tables.table[i].left_out;
    text[0] = '\0';
    if (count > 0)
        (void)snprintf(text, 64, " without %zu of %zu tables", count, manifest->tables.count);
    return text;
}
