/* Register file: stores the register as one atomic file in a directory.
 *     write: temp file -> sync -> rename -> sync the directory
 * Promise   After a write that returned DP_OK, the new content survives a loss of power. After a failed
 *           write, a later read finds either the old content or the new, complete. The content that a read
 *           returns is durable too. A process that died between rename and sync leaves content that could
 *           still be lost. So read syncs before it returns (except on a read-only disk, which has no
 *           writer).
 * Why       A write may be retried after a failed sync, because each write creates a new file that no failed
 *           sync has touched, and a new directory entry. So, unlike a journal, the register is never
 *           poisoned.
 * Format    Little endian. "DPREGIST" | u32 format, 1 | u32 CRC32C of the file with this field 0 | u64 id |
 *           u64 bytes of the file | u64 gone_run | u32 values | u32 0, then each value, ascending by name:
 *           u32 bytes of its name | u32 bytes | u64 version | u32 nonces | u32 0 | nonces, u64, the newest
 *           last | name | bytes.
 * Thread    One at a time.
 * Failure   DP_NOT_FOUND: there is no file. DP_CORRUPT: it is damaged. DP_VERSION: its format is of another
 *           release. DP_IO, DP_FULL: the disk failed or is full. */
#ifndef DP_CONTROL_REGISTER_FILE_H
#define DP_CONTROL_REGISTER_FILE_H

#include "common/env/disk.h"

#include <stdbool.h>

#define DP_REGISTER_FILE       "register"
#define DP_REGISTER_BYTES_MAX  (4u << 20) /* size of the file; each set writes all of it */
#define DP_REGISTER_VALUES_MAX 4096u
#define DP_REGISTER_NONCES_MAX 32u /* nonces kept for each value, those of its last versions */

struct dp_control_register_item {
    uint64_t version; /* 1 and up */
    uint32_t size, nonces;
    uint64_t nonce[DP_REGISTER_NONCES_MAX]; /* of the sets that made the last versions, the newest last */
    char *name;                             /* after the bytes, in the same allocation */
    unsigned char bytes[];
};

/* The content of the file. The function that fills the struct owns the items. */
struct dp_control_register_content {
    uint64_t id;
    uint64_t gone_run; /* values of runs up to this one were dropped */
    uint32_t count, capacity;
    struct dp_control_register_item **item; /* strictly ascending by name */
};

/* Returns NULL without memory. The caller frees the item with free(). */
struct dp_control_register_item *dp_control_register_item_new(const char *name, size_t name_len,
                                                              const void *bytes, size_t size);
/* Bytes that an item takes in the file. */
size_t dp_control_register_item_bytes(const struct dp_control_register_item *item);
/* Bytes of the file with all its items. */
size_t dp_control_register_file_bytes(const struct dp_control_register_content *content);

/* The file's bytes, dp_control_register_file_bytes of them, that the caller frees. NULL: out of memory. */
void *dp_control_register_file_pack(const struct dp_control_register_content *content);
/* From the file's bytes, which are changed. The caller releases *out with dp_control_register_content_clear, also after a failure. */
enum dp_status dp_control_register_file_unpack(void *bytes, size_t size,
                                               struct dp_control_register_content *out, struct dp_error *err);
/* Fills *out with heap memory that the caller releases with dp_control_register_content_clear, also after a
 * failure. */
enum dp_status dp_control_register_file_read(const struct dp_disk *disk, bool read_only,
                                             struct dp_control_register_content *out, struct dp_error *err);
enum dp_status dp_control_register_file_write(const struct dp_disk *disk,
                                              const struct dp_control_register_content *content,
                                              struct dp_error *err);
void dp_control_register_content_clear(struct dp_control_register_content *content);

#endif
