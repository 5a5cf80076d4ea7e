/* Disk names: the entries of one directory of the disk model: those of now, those that are durable, and the changes between.
 * Thread    One. Files are numbers: the model's. */
#ifndef DP_TESTS_FAULT_DISK_NAMES_H
#define DP_TESTS_FAULT_DISK_NAMES_H

#include "tests/fault/disk_model.h"

#include <stdbool.h>
#include <stddef.h>

#define DP_DISK_NAME_MAX 64u
#define DP_DISK_NO_FILE  UINT32_MAX

struct dp_disk_entry {
    char name[DP_DISK_NAME_MAX];
    uint32_t file;
};

struct dp_disk_entries {
    struct dp_disk_entry *entry;
    size_t count, room;
};

/* from: goes; to: is `file` from now; either may be empty. A rename has both. */
struct dp_disk_name_change {
    uint64_t moment;
    char from[DP_DISK_NAME_MAX], to[DP_DISK_NAME_MAX];
    uint32_t file;
};

struct dp_disk_names {
    struct dp_disk_entries now, durable;
    struct dp_disk_name_change *change;
    size_t changes, room;
};

void dp_disk_names_free(struct dp_disk_names *names);
/* DP_DISK_NO_FILE: there is none of that name now. */
uint32_t dp_disk_names_find(const struct dp_disk_names *names, const char *name);
void dp_disk_names_change(struct dp_disk_names *names, const struct dp_disk_name_change *change);
/* All changes up to that moment are durable, but those for which keep, unless NULL, says true. */
void dp_disk_names_sync(struct dp_disk_names *names, uint64_t moment,
                        bool (*keep)(const struct dp_disk_name_change *change));
/* What a power cut leaves; the caller frees out->entry. */
void dp_disk_names_survive(const struct dp_disk_names *names, enum dp_disk_survival survival, uint64_t seed,
                           struct dp_disk_entries *out);

#endif
