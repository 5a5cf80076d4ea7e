/* Manifest: the list of a checkpoint's files, each with its size, its checksum and its origin.
 *     manifest.json, jansson, format 1: this room's README.md has the table of its fields.
 * Promise   An accepted manifest is complete and consistent: known format, shards 0 .. n-1 whose ranges
 *           cover the key space, after <= lsn, names that stay inside the directory, each file once, every
 *           table as its mark says. write makes the file appear complete and durable, or not at all.
 * Numbers   u64 that are identifiers are text of 16 hex digits; counts are JSON numbers (above 2^63 - 1: text).
 * Thread    Any, each with a manifest of its own.
 * Memory    manifest_data.h: dp_manifest_clear.
 * Failure   DP_UNSUPPORTED: another format, by its number. DP_CORRUPT: not a manifest; names the field and
 *           its expected value. DP_NOT_FOUND: there is no such file. DP_IO, DP_FULL, DP_NOMEM. */
#ifndef DP_CHECKPOINT_MANIFEST_H
#define DP_CHECKPOINT_MANIFEST_H

#include "server/checkpoint/manifest_data.h"
#include "server/checkpoint/paths.h"

#define DP_MANIFEST_FORMAT 1u
#define DP_MANIFEST_SHARDS 65536u

enum dp_status dp_manifest_parse(const char *text, size_t size, struct dp_manifest *out,
                                 struct dp_error *err);
enum dp_status dp_manifest_read(const char *path, struct dp_manifest *out, struct dp_error *err);
/* That of DIR/checkpoint-N. DP_CORRUPT, too, where it is that of another number: the directory was renamed, or another
 * one moved over it, and its name no longer says which of two checkpoints is the later one. */
enum dp_status dp_manifest_read_numbered(const char *directory, uint32_t number, struct dp_manifest *out,
                                         struct dp_error *err);
/* The heap; NULL: out of memory. */
char *dp_manifest_text(const struct dp_manifest *manifest);
enum dp_status dp_manifest_write(const char *path, const struct dp_manifest *manifest, struct dp_error *err);

/* A shard's part alone, as its copy job reports it (copier.h). */
enum dp_status dp_manifest_shard_parse(const char *text, size_t size, struct dp_manifest_shard *out,
                                       struct dp_error *err);
char *dp_manifest_shard_text(const struct dp_manifest_shard *shard);

#endif
