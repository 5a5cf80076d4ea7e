/* Disk: the few file operations of durable logs, as a struct of functions. A program uses the real disk. A
 * test uses a simulated one (tests/lib/sim_disk.h), which cuts the power at any operation.
 * Promise   Written bytes are durable after sync of that file; a file's existence and name after
 *           sync_directory. Before that a power cut may keep any part of it: nothing, all, or some of its
 *           512-byte sectors. Files are named inside the one directory that the disk was opened on.
 * Thread    Different files: any. One file: write and sync may run on two threads at the same time.
 * Memory    Pieces are the caller's, for the call only.
 * Failure   DP_IO, DP_FULL (no space, or no more files may be open, which changed nothing), DP_NOT_FOUND;
 *           the text names file and cause. After a failed sync it is unknown which part of the file is
 *           durable. */
#ifndef DP_ENV_DISK_H
#define DP_ENV_DISK_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define DP_DISK_PIECES_MAX 144u

struct dp_file; /* the disk's own */

struct dp_disk_piece {
    const void *data;
    size_t bytes;
};

struct dp_disk {
    /* Opens a file for reading and writing; makes it (empty) when create is set and it is absent. */
    enum dp_status (*open)(void *self, const char *name, _Bool create, struct dp_file **out,
                           struct dp_error *err);
    void (*close)(void *self, struct dp_file *file);
    enum dp_status (*size)(void *self, struct dp_file *file, uint64_t *bytes, struct dp_error *err);
    /* Reserves space, so that writes below `bytes` need no new blocks; what was not written reads as 0.
     * Never makes a file smaller. */
    enum dp_status (*reserve)(void *self, struct dp_file *file, uint64_t bytes, struct dp_error *err);
    /* Reads all of it or fails; DP_IO beyond the end. */
    enum dp_status (*read)(void *self, struct dp_file *file, uint64_t at, void *to, size_t bytes,
                           struct dp_error *err);
    /* Writes the pieces one after the other, at most DP_DISK_PIECES_MAX; all of it or a failure. */
    enum dp_status (*write)(void *self, struct dp_file *file, uint64_t at, const struct dp_disk_piece *pieces,
                            uint32_t count, struct dp_error *err);
    /* fdatasync */
    enum dp_status (*sync)(void *self, struct dp_file *file, struct dp_error *err);
    enum dp_status (*rename)(void *self, const char *from, const char *to, struct dp_error *err);
    enum dp_status (*remove)(void *self, const char *name, struct dp_error *err);
    enum dp_status (*sync_directory)(void *self, struct dp_error *err);
    /* Visits every name, in no order. */
    enum dp_status (*list)(void *self, void (*visit)(void *context, const char *name), void *context,
                           struct dp_error *err);
    /* A hint, NULL where there is none: writes go past the system's cache from now on (O_DIRECT), so that
     * they cost no copy and no page of it. All must be whole pages of 4,096 bytes then: place, memory and
     * length. What was written is durable after sync, as before. */
    void (*go_direct)(void *self, struct dp_file *file);
    void *self;
};

/* Opens the real disk; creates a missing directory with its parents. */
enum dp_status dp_disk_open(const char *directory, struct dp_disk *out, struct dp_error *err);
void dp_disk_close(struct dp_disk *disk);

#endif
