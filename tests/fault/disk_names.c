#include "tests/fault/disk_names.h"

#include "tests/fault/disk_file.h"

#include <stdlib.h>
#include <string.h>

static size_t place_of(const struct dp_disk_entries *entries, const char *name)
{
    size_t i = 0;
    while (i < entries->count && strcmp(entries->entry[i].name, name) != 0)
        i++;
    return i;
}

static void put(struct dp_disk_entries *entries, const char *name, uint32_t file)
{
    size_t i = place_of(entries, name);
    if (i == entries->room) {
        entries->room = entries->room ? 2 * entries->room : 16;
        entries->entry = realloc(entries->entry, entries->room * sizeof *entries->entry);
        DP_ASSERT(entries->entry);
    }
    if (i == entries->count)
        strcpy(entries->entry[entries->count++].name, name);
    entries->entry[i].file = file;
}

static void drop(struct dp_disk_entries *entries, const char *name)
{
    size_t i = place_of(entries, name);
    if (i < entries->count)
        entries->entry[i] = entries->entry[--entries->count];
}

static void apply(struct dp_disk_entries *entries, const struct dp_disk_name_change *change)
{
    if (change->from[0])
        drop(entries, change->from);
    if (change->to[0])
        put(entries, change->to, change->file);
}

void dp_disk_names_free(struct dp_disk_names *names)
{
    free(names->now.entry);
    free(names->durable.entry);
    free(names->change);
    *names = (struct dp_disk_names){0};
}

uint32_t dp_disk_names_find(const struct dp_disk_names *names, const char *name)
{
    size_t i = place_of(&names->now, name);
    return i < names->now.count ? names->now.entry[i].file : DP_DISK_NO_FILE;
}

void dp_disk_names_change(struct dp_disk_names *names, const struct dp_disk_name_change *change)
{
    if (names->changes == names->room) {
        names->room = names->room ? 2 * names->room : 16;
        names->change = realloc(names->change, names->room * sizeof *names->change);
        DP_ASSERT(names->change);
    }
    names->change[names->changes++] = *change;
    apply(&names->now, change);
}

void dp_disk_names_sync(struct dp_disk_names *names, uint64_t moment,
                        bool (*keep)(const struct dp_disk_name_change *change))
{
    size_t kept = 0;
    for (size_t i = 0; i < names->changes; i++) {
        if (names->change[i].moment <= moment && !(keep && keep(&names->change[i])))
            apply(&names->durable, &names->change[i]);
        else
            names->change[kept++] = names->change[i];
    }
    names->changes = kept;
}

void dp_disk_names_survive(const struct dp_disk_names *names, enum dp_disk_survival survival, uint64_t seed,
                           struct dp_disk_entries *out)
{
    enum { NOTHING, ALL, FIRST, ANY } how = (int)(dp_disk_draw(seed, 1) % 4);
    size_t first = names->changes ? dp_disk_draw(seed, 2) % names->changes : 0;
    *out = (struct dp_disk_entries){0};
    for (size_t i = 0; i < names->durable.count; i++)
        put(out, names->durable.entry[i].name, names->durable.entry[i].file);
    for (size_t i = 0; i < names->changes; i++) {
        bool by_chance = how == ALL || (how == FIRST && i < first) ||
                         (how == ANY && dp_disk_draw(seed, 3 + names->change[i].moment) % 2 == 0);
        if (survival == DP_DISK_ALL || (survival == DP_DISK_RANDOM && by_chance))
            apply(out, &names->change[i]);
    }
}
