/* Manifest data: a manifest in memory: every file of a checkpoint with its size, its checksum and its
 * origin.
 * Thread    Any, each with data of its own.
 * Memory    All parts are on the heap. The clear functions free them and accept {0}. */
#ifndef DP_CHECKPOINT_MANIFEST_DATA_H
#define DP_CHECKPOINT_MANIFEST_DATA_H

#include "common/config/side_files.h"
#include "common/model/range.h"
#include "common/model/table.h"
#include "server/checkpoint/checksum.h"
#include "server/checkpoint/copier.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A file; the field that it is in gives its place. name NULL: there is none. */
struct dp_manifest_file {
    char *name;
    uint64_t bytes;
    char checksum[DP_CHECKSUM_TEXT];
};

struct dp_manifest_files {
    struct dp_manifest_file *file;
    size_t count;
};

/* The journal's records after the rows: a journal directory tail-NNNN in the checkpoint's directory. */
struct dp_manifest_tail {
    uint64_t last_lsn, incarnation; /* last: `after` where there is no record */
    uint64_t records, bytes;        /* bytes: of the records */
    struct dp_manifest_files files; /* names in tail-NNNN */
};

struct dp_manifest_table {
    struct dp_table_spec spec;
    uint64_t rows; /* DP_TABLE_ROWS_UNKNOWN: they were not counted */
    bool left_out; /* by a restore (server/restore/left_out.h); not kept */
};

struct dp_manifest_tables {
    struct dp_manifest_table *table; /* ascending by name */
    size_t count;
};

struct dp_manifest_shard {
    uint32_t index, shards;
    struct dp_range range;
    uint64_t store;      /* id of its store: the directory of its files in the pool */
    uint64_t lsn, after; /* L, A */
    struct dp_manifest_tail tail;
    struct dp_manifest_files files;   /* of the link: names as the store has them */
    struct dp_manifest_tables tables; /* as the link's marks have them */
    uint64_t bytes_new;               /* written for this checkpoint: files and tail */
    bool had_snapshots; /* of a version before, which counted their files, too; they are not read */
};

struct dp_manifest_position {
    bool known;
    uint32_t run, epoch;
    uint64_t step;
    double loss; /* NaN: not known */
};

struct dp_manifest {
    uint32_t number;
    uint64_t order;
    char *made; /* RFC 3339 */
    uint64_t cluster;
    char *cluster_name;
    uint64_t generation, history;
    struct dp_manifest_shard *shard; /* [shards], by index */
    uint32_t shards;
    struct dp_manifest_tables tables; /* union over the shards */
    struct dp_copy_pushes partial;    /* pushes that only some shards have */
    /* Names in the checkpoint's directory. */
    struct dp_manifest_file ids, steps, register_file, cluster_file;
    struct dp_manifest_file side[DP_SIDE_FILES]; /* without a name: the run has none */
    /* The workers' step logs (training.steps) as they were right after the cut, of those workers whose log the command could read: a name
     * each (paths.h). */
    struct dp_manifest_files step_logs;
    struct dp_manifest_position position;
    uint64_t bytes, bytes_new; /* bytes: of all files that it names, each once */
    uint64_t bytes_linked;     /* of those in its directory: they are the last checkpoint's; not kept */
};

void dp_manifest_clear(struct dp_manifest *manifest); /* accepts {0} */
void dp_manifest_shard_clear(struct dp_manifest_shard *shard);
void dp_manifest_files_clear(struct dp_manifest_files *files);

/* Sets tables to the union over the shards, with rows unknown, and bytes, bytes_new. DP_CORRUPT: two shards have a table
 * of one name with other properties. */
enum dp_status dp_manifest_sum(struct dp_manifest *manifest, struct dp_error *err);

/* Adds a file; names and the list are copied to the heap. */
enum dp_status dp_manifest_files_add(struct dp_manifest_files *files, const char *name, uint64_t bytes,
                                     const char *checksum, struct dp_error *err);

#endif
