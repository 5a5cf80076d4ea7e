/* Served: the stores of a run's directory, opened for reading by servers of this command's own.
 *     open (shared lock, cluster, scratch) -> start (free ports, read-only servers, client) -> end -> clear
 * Promise   Nothing in the run's directory is written: other files are in a directory of this command's
 *           own. That is removed at the end. If a process failed without a message, its logs stay and are
 *           named. Standard error warns of an unfinished run: how far it is, and the command that finishes
 *           it.
 * Thread    One.
 * Failure   open: as dp_folder_open_to_read and dp_folder_cluster, naming what is wrong with the directory.
 *           start: DP_STOPPING after a signal or the end of a server; `end` reports which. */
#ifndef DP_WEIGHTS_SERVED_H
#define DP_WEIGHTS_SERVED_H

#include "common/client/downpour.h"
#include "deploy/run/folder.h"
#include "deploy/supervise/local.h"

struct dp_served {
    struct dp_folder folder,
        scratch; /* of the run; for cluster file, logs and the like (its lock is the run's) */
    struct dp_cluster *cluster;
    struct dp_local *local;
    struct dp_client *client;
    bool keeps_logs;
    char restored[DP_PATH_MAX + 1]; /* a checkpoint, as a run's directory (restored.h); "": it is one */
    /* Whose checkpoint that is; its side files are used where the checkpoint has none. Or NULL. */
    struct dp_cluster *of;
    bool live; /* of servers that somebody else has started */
};

/* {.folder.lock = -1, .scratch.lock = -1} before that. path: a run's directory, or a checkpoint, or a directory of checkpoints (its last one).
 * named: a checkpoint must have names. */
enum dp_status dp_served_open(const char *path, bool named, struct dp_served *out, struct dp_error *err);
/* Of a cluster file, whose servers are asked: `start` connects to them. */
enum dp_status dp_served_open_live(const char *file, struct dp_served *out, struct dp_error *err);
/* The last checkpoint of a cluster file: made now if its servers answer. Sets out->of, and `from` for
 * dp_served_open. DP_ARGUMENT: the file names no directory for checkpoints. */
enum dp_status dp_served_checkpoint(const char *file, struct dp_served *out, char from[DP_PATH_MAX + 1],
                                    struct dp_error *err);
/* The cluster may have been changed meanwhile. */
enum dp_status dp_served_start(struct dp_served *served, struct dp_error *err);
/* Until all workers have ended. DP_STOPPING: a signal came, or a process ended as it should not have. */
enum dp_status dp_served_await_workers(struct dp_served *served, struct dp_error *err);
/* Stops the processes, and says on standard error why it came to this where st is no DP_OK. The exit code. */
int dp_served_end(struct dp_served *served, enum dp_status st, const struct dp_error *err);
/* After `end`, in any state. */
void dp_served_clear(struct dp_served *served);

#endif
