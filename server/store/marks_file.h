/* Marks file: all marks of a store, in memory and in its file `marks`.
 *     load -> (put)* -> close
 * Promise   put makes all of its changes or none, durably with DP_OK. The file is replaced atomically
 *           (env/disk_replace.h). So damage in it is never a torn write, and is refused.
 * Format    Little endian. "DPMARKS1" | u32 CRC32C of the file with this field 0 | u32 0 | u64 bytes of the file | u64 number, u64
 *           bytes: the seal of RocksDB's manifest (rocks_manifest.h) | marks, strictly ascending by key: u32 bytes of the key | u32
 *           bytes of the value | key | value.
 * Why       Marks were in RocksDB before. After a loss of power, its torn log needed as much repair code as
 *           this file has. And a full disk made RocksDB refuse everything until a restart.
 * Thread    put, copy: any. The rest: one, while neither is under way.
 * Memory    get and visit lend bytes of the file, until the next put.
 * Failure   DP_CORRUPT, DP_IO, DP_FULL (put: nothing was changed), DP_NOMEM. After DP_IO from put it is unknown which marks the next
 *           load finds: those before, or all of the new ones. */
#ifndef DP_STORE_MARKS_FILE_H
#define DP_STORE_MARKS_FILE_H

#include "common/env/disk.h"
#include "server/store/repair/rocks_manifest.h"
#include "server/store/store.h"

#define DP_MARKS_FILE "marks"

struct dp_marks_file;

/* Without a file it has no marks, and no seal. The disk stays the caller's, and open until the close. */
enum dp_status dp_marks_file_load(const struct dp_disk *disk, struct dp_marks_file **out,
                                  struct dp_error *err);
void dp_marks_file_close(struct dp_marks_file **file); /* accepts NULL inside, leaves NULL */

/* Of the file, in bytes. */
uint64_t dp_marks_file_bytes(struct dp_marks_file *file);
/* A mark whose value is NULL is removed. Seals the manifest first. */
enum dp_status dp_marks_file_put(struct dp_marks_file *file, const struct dp_store_mark *marks,
                                 uint32_t count, struct dp_error *err);
/* The same in memory only. */
enum dp_status dp_marks_file_take(struct dp_marks_file *file, const struct dp_store_mark *mark,
                                  struct dp_error *err);
/* Writes the marks to another directory, with the seal of the manifest there. */
enum dp_status dp_marks_file_copy(struct dp_marks_file *file, const char *directory, struct dp_error *err);

bool dp_marks_file_is_empty(const struct dp_marks_file *file);
/* false: there is no such mark. */
bool dp_marks_file_get(const struct dp_marks_file *file, const char *key, struct dp_store_mark *out);
/* In the order of the keys. A status other than DP_OK from visit ends the visit and is returned. */
enum dp_status dp_marks_file_visit(const struct dp_marks_file *file, dp_store_visit_mark *visit,
                                   void *context, struct dp_error *err);
struct dp_rocks_seal dp_marks_file_seal(const struct dp_marks_file *file);

#endif
