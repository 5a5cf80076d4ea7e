/* Disk file: the bytes of one file of the disk model: what is durable, and the changes that are not, in order.
 * Thread    One. Memory: a change's data is lent (the log's) until it is durable or the file is freed. */
#ifndef DP_TESTS_FAULT_DISK_FILE_H
#define DP_TESTS_FAULT_DISK_FILE_H

#include "tests/fault/disk_model.h"

#include <stddef.h>

struct dp_disk_bytes {
    uint8_t *data;
    size_t size, room;
};

struct dp_disk_change {
    uint64_t moment;          /* moments rise */
    enum dp_record_kind kind; /* write, cut, reserve */
    uint64_t at;
    const uint8_t *data;
    size_t bytes;
};

struct dp_disk_file {
    struct dp_disk_bytes durable;
    struct dp_disk_change *change;
    size_t changes, room;
};

void dp_disk_file_free(struct dp_disk_file *file);
void dp_disk_file_change(struct dp_disk_file *file, const struct dp_disk_change *change);
/* All changes up to that moment are durable. */
void dp_disk_file_sync(struct dp_disk_file *file, uint64_t moment);
/* What a power cut leaves; the caller frees out->data. */
void dp_disk_file_survives(const struct dp_disk_file *file, enum dp_disk_survival survival, uint64_t seed,
                           struct dp_disk_bytes *out);

/* A number out of a seed and another number. */
static inline uint64_t dp_disk_draw(uint64_t seed, uint64_t n)
{
    uint64_t x = seed + (n + 1) * UINT64_C(0x9e3779b97f4a7c15); /* splitmix64 */
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

#endif
