/* Paths: the places of a checkpoint's files, and the few operations on complete directories. Private to the
 * room, but for restore.
 * Promise   What was made or renamed is durable when its function returns (the directory above is synced).
 * Thread    Any.
 * Failure   DP_ARGUMENT: a path is too long. DP_FULL, DP_IO, naming the path. */
#ifndef DP_CHECKPOINT_PATHS_H
#define DP_CHECKPOINT_PATHS_H

#include "common/base/status.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>

#define DP_MANIFEST_NAME         "manifest.json"
#define DP_CHECKPOINT_POOL       "files"
#define DP_CHECKPOINT_ORDER      "checkpoint-order" /* in the first server's directory: its order under way */
#define DP_CHECKPOINT_NUMBER_MAX 999999999u

struct dp_checkpoint_path {
    char text[1400];
};

enum dp_status dp_checkpoint_path(struct dp_checkpoint_path *out, struct dp_error *err, const char *format,
                                  ...) DP_PRINTF(3, 4);
/* DIR/checkpoint-000001 */
enum dp_status dp_checkpoint_path_of(const char *directory, uint32_t number, struct dp_checkpoint_path *out,
                                     struct dp_error *err);
/* DIR/making-<order> */
enum dp_status dp_checkpoint_path_making(const char *directory, uint64_t order,
                                         struct dp_checkpoint_path *out, struct dp_error *err);
/* DIR/files/<store>/<name>-<checksum>; name NULL: the directory */
enum dp_status dp_checkpoint_path_pool(const char *directory, uint64_t store, const char *name,
                                       const char *checksum, struct dp_checkpoint_path *out,
                                       struct dp_error *err);
/* The number in "checkpoint-000001", the order in "making-<order>"; false: it has another form. */
bool dp_checkpoint_name_number(const char *name, uint32_t *number);
bool dp_checkpoint_name_order(const char *name, uint64_t *order);
/* "step-log-0003", of worker 3. */
#define DP_CHECKPOINT_STEP_LOG_BYTES 24u
void dp_checkpoint_step_log(uint32_t worker, char name[DP_CHECKPOINT_STEP_LOG_BYTES]);
bool dp_checkpoint_name_step_log(const char *name, uint32_t *worker);

/* DP_FULL or DP_IO, with the cause by errno. */
enum dp_status dp_checkpoint_failed(struct dp_error *err, const char *what, const char *path);
enum dp_status dp_checkpoint_sync_directory(const char *path, struct dp_error *err);
/* How many levels of directories a checkpoint has at most (dp_directory_remove). */
#define DP_CHECKPOINT_DEPTH 2u
/* Visits every name but "." and "..", in no order, until visit returns another status than DP_OK. DP_NOT_FOUND: no such
 * directory. */
enum dp_status dp_checkpoint_visit(const char *path,
                                   enum dp_status (*visit)(void *context, const char *name,
                                                           struct dp_error *err),
                                   void *context, struct dp_error *err);

/* DP_ARGUMENT: the directory lies inside a store's directory, or a server's: what removes or restores the store would take its
 * checkpoints with it. A directory that is not there yet is judged by the one that it would be made in. */
enum dp_status dp_checkpoint_place_check(const char *directory, struct dp_error *err);

#endif
