/* Folder: the directory of a local run, and the files that this command has made in it.
 *     lock  failure.json  cache/  current -> runs/2
 *     runs/2/  cluster.conf  report.json  run.json  origin.json  columns.csv  names.tsv  interactions.bin  steps-0.log  samples.json  log/  best/
 *              store/server-0 (or store -> ../1/store, of the run that it continues)  cache -> ../../cache
 *     cluster.conf  report.json  log  store  samples.json  best: links through `current`
 * Promise   One command at a time works in it: the lock is held until this process and every server that
 *           inherited it have ended.
 *           `current` leads to a run that has trained, or to the only one. It is renamed once, when the servers have accepted a new
 *           run, so whatever ends a command, the next one finds the earlier run or the new one. Only then other stores are removed.
 *           Runs that continue on one store stay in runs/, each with its report and logs. A number is never given twice.
 *           It can be moved as a unit: its cluster files have relative paths to the files in it.
 * Files     folder.c, folder_runs.c, folder_cluster.c.
 * Failure   DP_IO naming the path; DP_IN_USE: another command is at work in it.                          */
#ifndef DP_RUN_FOLDER_H
#define DP_RUN_FOLDER_H

#include "common/config/cluster.h"
#include "deploy/cli/path.h"

/* Of the run's files: where its workers keep their steps (training.steps) and have a checkpoint of the best epoch made
 * (training.best). */
#define DP_FOLDER_STEPS "steps"
#define DP_FOLDER_BEST  "best"

struct dp_folder {
    char path[DP_PATH_MAX + 1]; /* absolute */
    char run[DP_PATH_MAX +
             1]; /* path/runs/N; "": none, or files lie in path itself (scratch.h, an older version's run) */
    char conf[DP_PATH_MAX + 1]; /* of that run */
    uint32_t number;            /* N; 0: it has none */
    int lock;                   /* for children to inherit */
};

/* Makes it where it is absent, takes its lock, and finds its current run. DP_NOT_FOUND, DP_DATA: its runs are there, and `current` is
 * missing or no link, as in a copy without links. */
enum dp_status dp_folder_open(const char *path, struct dp_folder *out, struct dp_error *err);
/* That of a run, which may have been moved, copied or made read-only: nothing in it is written, and its lock, where it has one,
 * is shared with others that read. DP_NOT_FOUND: it is no run's; DP_ARGUMENT: a file. */
enum dp_status dp_folder_open_to_read(const char *path, struct dp_folder *out, struct dp_error *err);
/* Its current run, without a lock. path: absolute. */
enum dp_status dp_folder_find(const char *path, struct dp_folder *out, struct dp_error *err);
/* The run that a command is at work on, if one is: it may not be the current one yet. Else as dp_folder_find. */
enum dp_status dp_folder_find_running(const char *path, struct dp_folder *out, struct dp_error *err);
void dp_folder_close(struct dp_folder *folder);

/* Names run, conf and number of a run in it. */
enum dp_status dp_folder_select(struct dp_folder *folder, uint32_t number, struct dp_error *err);
/* A file of the run, by its name there, printf-like; DP_ARGUMENT when it grows too long. out: DP_PATH_MAX + 1. */
enum dp_status dp_folder_path(const struct dp_folder *folder, char *out, struct dp_error *err,
                              const char *format, ...) DP_PRINTF(4, 5);
/* Sets the paths of the run's side files (common/config/side_files.h). */
enum dp_status dp_folder_side_files(const struct dp_folder *folder, struct dp_cluster_data *data,
                                    struct dp_error *err);
/* The run's cluster as it lies in the directory: the stores are those below it, wherever the cluster file of an older build says
 * that they were. Of the other files only those of the data are named still. DP_NOT_FOUND: a shard's store is missing; DP_EXISTS: it
 * is another server's; DP_DATA: a store lies outside of the directory. */
enum dp_status dp_folder_cluster(const struct dp_folder *folder, struct dp_cluster **out,
                                 struct dp_error *err);
/* DP_NOT_FOUND: there is no store of this shard in the server's directory. */
enum dp_status dp_folder_check_store(const char *server, uint32_t shard, struct dp_error *err);
/* Whether the store of a shard that answered, of a run's cluster file, is the one beside that file; of other cluster files, and of
 * stores that are not on this machine, nothing is asked. DP_DATA: it is not: the directory was copied, or moved from where its servers run. */
enum dp_status dp_folder_check_live(const char *conf, const struct dp_cluster *cluster, uint32_t shard,
                                    struct dp_error *err);
/* Whether there is a run with a cluster file: its stores may be lost, which others say. */
bool dp_folder_has_run(const struct dp_folder *folder);
/* DP_EXISTS: a cluster file or servers' stores are there that no run of this version has left: a run would hide or replace them. */
enum dp_status dp_folder_check_foreign(const struct dp_folder *folder, struct dp_error *err);

/* The number that a name in runs/ is; 0: it is none. */
uint32_t dp_folder_number(const char *name);
/* The highest number in runs/; 0: there is none. complete: of runs with a cluster file. */
uint32_t dp_folder_highest(const struct dp_folder *folder, bool complete);

/* Folder runs: folder_runs.c */

/* A new run in the directory of `was`, numbered from `least` on. Nothing is made. out: may be `was`. DP_FULL: no number is left. */
enum dp_status dp_folder_next(const struct dp_folder *was, uint32_t least, struct dp_folder *out,
                              struct dp_error *err);
/* Makes its log and its store. was: the current run; newer ones were never accepted, and are removed first. store_of: the run
 * whose store it continues on; NULL: it has one of its own. */
enum dp_status dp_folder_make(const struct dp_folder *folder, const struct dp_folder *was,
                              const struct dp_folder *store_of, struct dp_error *err);
/* log and store alone: of a folder without runs, too. */
enum dp_status dp_folder_make_parts(const struct dp_folder *folder, struct dp_error *err);
/* The directory's cache, which its runs share, as the run's "cache". */
enum dp_status dp_folder_make_cache(const struct dp_folder *folder, struct dp_error *err);
/* Whether `current` leads to this run. */
bool dp_folder_is_current(const struct dp_folder *folder);
/* It is the current run from now on, durably; then runs with other stores are removed. */
enum dp_status dp_folder_accept(const struct dp_folder *folder, struct dp_error *err);
/* A file of the current run is reached as path/name, too, unless another file has that name. */
void dp_folder_show(const struct dp_folder *folder, const char *name);
/* Removes the checkpoint of the run's best epoch. */
enum dp_status dp_folder_clear_best(const struct dp_folder *folder, struct dp_error *err);
/* Removes the run's store; where it continues on another run's, only the link. */
enum dp_status dp_folder_clear_store(const struct dp_folder *folder, struct dp_error *err);
/* A run that has trained nothing: removes its store and its cluster file. Its logs stay until the next run is made. */
enum dp_status dp_folder_drop(const struct dp_folder *folder, struct dp_error *err);

#endif
