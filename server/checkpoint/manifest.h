/* Manifest: what a checkpoint is made of: every file with its size and checksum, and what they are of.
 *     manifest.json, jansson, format 1: this room's README.md has the table of its fields.
 * Promise   What parse accepts is complete and consistent: known format, shards 0 .. n-1 whose ranges cover the
 *           key space, after <= lsn, names that stay inside the directory, each file once, every table as its
 *           mark says. write makes the file appear whole and durable, or not at all.
 * Numbers   u64 that are identifiers are text of 16 hex digits; counts are JSON numbers (above 2^63 - 1: text).
 * Thread    Any, each with a manifest of its own.
 * Memory    Everything in a manifest is on its heap: dp_manifest_clear.
 * Failure   DP_UNSUPPORTED: another format, by its number. DP_CORRUPT: no manifest, naming the field and what it
 *           should be. DP_NOT_FOUND: there is no such file. DP_IO, DP_FULL, DP_NOMEM. */
#ifndef DP_CHECKPOINT_MANIFEST_H
#define DP_CHECKPOINT_MANIFEST_H

#include "common/model/range.h"
#include "common/model/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_MANIFEST_FORMAT 1u
#define DP_MANIFEST_NAME   "manifest.json"
#define DP_CHECKSUM_TEXT   33u /* BLAKE2b-128 in 32 hex digits */
#define DP_MANIFEST_SHARDS 65536u

/* A file; its place is told by the field that it is in. name NULL: there is none. */
struct dp_manifest_file {
    char *name;
    uint64_t bytes;
    char checksum[DP_CHECKSUM_TEXT];
};

struct dp_manifest_files {
    struct dp_manifest_file *file;
    size_t count;
};

/* The journal's records behind the rows: a journal directory tail-NNNN in the checkpoint's directory. */
struct dp_manifest_tail {
    uint64_t last_lsn, incarnation; /* last: `after` where there is no record */
    uint64_t records, bytes;        /* bytes: of the records */
    struct dp_manifest_files files; /* names in tail-NNNN */
};

struct dp_manifest_table {
    struct dp_table_spec spec;
    uint64_t rows; /* DP_TABLE_ROWS_UNKNOWN: nobody counted them */
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
    /* Names in the checkpoint's directory. */
    struct dp_manifest_file ids, steps, register_file, cluster_file;
    struct dp_manifest_position position;
    uint64_t bytes, bytes_new; /* bytes: of all files that it names */
};

void dp_manifest_clear(struct dp_manifest *manifest); /* accepts {0} */
void dp_manifest_shard_clear(struct dp_manifest_shard *shard);
void dp_manifest_files_clear(struct dp_manifest_files *files);

DP_MUST_USE
enum dp_status dp_manifest_parse(const char *text, size_t size, struct dp_manifest *out,
                                 struct dp_error *err);
DP_MUST_USE
enum dp_status dp_manifest_read(const char *path, struct dp_manifest *out, struct dp_error *err);
/* The heap; NULL: out of memory. */
char *dp_manifest_text(const struct dp_manifest *manifest);
DP_MUST_USE
enum dp_status dp_manifest_write(const char *path, const struct dp_manifest *manifest, struct dp_error *err);

/* A shard's part alone, as its copy job tells it (copier.h). */
DP_MUST_USE
enum dp_status dp_manifest_shard_parse(const char *text, size_t size, struct dp_manifest_shard *out,
                                       struct dp_error *err);
char *dp_manifest_shard_text(const struct dp_manifest_shard *shard);

/* Sets tables to the union over the shards, with rows unknown, and bytes, bytes_new. DP_CORRUPT: two shards have a table
 * of one name with other properties. */
DP_MUST_USE
enum dp_status dp_manifest_sum(struct dp_manifest *manifest, struct dp_error *err);

/* Adds a file; names and the list are copied to the heap. */
DP_MUST_USE
enum dp_status dp_manifest_files_add(struct dp_manifest_files *files, const char *name, uint64_t bytes,
                                     const char *checksum, struct dp_error *err);

#endif
