/* Disk model: a directory as a power cut leaves it, worked out from a recorder's log (record.h).
 *     open -> (step, image)* -> close
 * Promise   The pessimistic reading of POSIX: bytes and size of a file are durable after a sync of that file, a name after a sync of
 *           the directory that it stands in, and of nothing else (a new file's sync does not make its name
 *           durable, as ext4's does). What is not durable survives as `survival` says: none of it, all (which is also what the
 *           death of the process alone leaves), or by chance: of each file nothing, all, all up to a moment, or any of its
 *           512-byte sectors, each as of a moment of its own, the size with or without what lies inside; of a
 *           directory's names nothing, all, the first ones, or any.
 * Plants    Syncs that the disk is to break, to see that the check finds it.
 * Thread    One.
 * Failure   DP_UNSUPPORTED: a call that the model does not follow, by name. DP_DATA: not such a log. */
#ifndef DP_TESTS_FAULT_DISK_MODEL_H
#define DP_TESTS_FAULT_DISK_MODEL_H

#include "common/base/status.h"
#include "tests/fault/record.h"

enum dp_disk_survival { DP_DISK_NOTHING, DP_DISK_ALL, DP_DISK_RANDOM, DP_DISK_SURVIVALS };

enum dp_disk_plant {
    DP_DISK_SOUND,
    DP_DISK_NO_JOURNAL_SYNC,   /* bytes of the journal's files are never durable */
    DP_DISK_LATE_JOURNAL_SYNC, /* a sync of them makes durable what the sync before it had to */
    DP_DISK_NO_SST_NAMES,      /* names of *.sst are never durable */
    DP_DISK_NO_SST_SYNC,       /* bytes of ingested files are never durable */
    DP_DISK_NO_JOURNAL_NAMES,  /* nor those of the journal's files */
    DP_DISK_PLANTS
};

/* What a record is about, by the name of the file. */
enum dp_disk_sort {
    DP_DISK_OTHER,
    DP_DISK_JOURNAL,
    DP_DISK_INGEST, /* a file of rows until it has its name */
    DP_DISK_SST,
    DP_DISK_MARKS,
    DP_DISK_MANIFEST,
    DP_DISK_TEMPORARY,
    DP_DISK_SORTS
};

struct dp_disk_step {
    struct dp_record record;
    enum dp_disk_sort sort;
};

struct dp_disk_model;

enum dp_status dp_disk_model_open(const char *log, enum dp_disk_plant plant, struct dp_disk_model **out,
                                  struct dp_error *err);
void dp_disk_model_close(struct dp_disk_model **model);
/* Does the next record; DP_NOT_FOUND: the log is at its end. */
enum dp_status dp_disk_model_step(struct dp_disk_model *model, struct dp_disk_step *out,
                                  struct dp_error *err);
/* Writes what a power cut now would leave into a directory, which must exist and be empty. */
enum dp_status dp_disk_model_image(const struct dp_disk_model *model, enum dp_disk_survival survival,
                                   uint64_t seed, const char *directory, struct dp_error *err);

const char *dp_disk_survival_name(enum dp_disk_survival survival);
const char *dp_disk_plant_name(enum dp_disk_plant plant);

#endif
