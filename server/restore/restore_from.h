/* Restore from: a checkpoint as a restore reads it: its manifest, and the small files that all shards need.
 * Promise   What open gives is complete: the manifest is consistent (manifest.h), ids and steps have their checksums and can
 *           be read. The files of rows are checked as they are brought.
 * Memory    close frees it; accepts {0}.
 * Failure   DP_NOT_FOUND: this is no checkpoint. DP_UNSUPPORTED: of another format. DP_CORRUPT, DP_IO, naming the file. */
#ifndef DP_RESTORE_RESTORE_FROM_H
#define DP_RESTORE_RESTORE_FROM_H

#include "server/checkpoint/manifest.h"
#include "server/checkpoint/paths.h"
#include "server/restore/restore_files.h"
#include "server/restore/restore_rows.h"

struct dp_restore_from {
    struct dp_checkpoint_path checkpoint, directory; /* its directory, and that of all checkpoints */
    struct dp_manifest manifest;
    void *ids, *steps;              /* as in the marks; steps NULL: no run of workers that joined */
    struct dp_restore_table *table; /* of all shards, ascending by id */
    uint32_t tables;
    uint64_t lsn_max; /* no shard of it has a greater one */
};

/* checkpoint: DIR/checkpoint-N, or DIR: its last one. without: as in restore.h. */
enum dp_status dp_restore_from_open(struct dp_restore_from *from, const char *checkpoint, const char *without,
                                    struct dp_error *err);
/* What follows from its manifest: tables, lsn_max. */
enum dp_status dp_restore_from_complete(struct dp_restore_from *from, struct dp_error *err);
/* Reads one of its small files, with its checks, into heap memory that the caller frees. */
enum dp_status dp_restore_from_read(const struct dp_restore_from *from, const struct dp_manifest_file *file,
                                    void **bytes, struct dp_error *err);
void dp_restore_from_close(struct dp_restore_from *from);

#endif
