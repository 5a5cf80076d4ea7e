/* Folder: the directory of a local run, and what this command has made in it.
 *     lock  cluster.conf  cluster.earlier.conf  run  log/  store/server-0/ ...  store/columns-1.csv  store/names-1.tsv
 *     store/steps-1-0.log ...  store/run-1.json  store/origin-1.json  cache/  report.json  report.html
 * Promise   One command at a time works in it: the lock is held until this process and every server that
 *           inherited it have ended. Clearing removes what runs have made, by name, and nothing else.
 *           cluster.conf is always that of a run that the store was trained by: an earlier run's is kept as
 *           cluster.earlier.conf until the servers have accepted the new one's tables, and comes back if they
 *           never do, be it by the next command that opens the directory.
 *           A run that --fresh replaces lies in before-fresh/ until the new one has trained, and comes back likewise.
 *           store/columns-N.csv is what the columns of run N's CSV file were, store/names-N.tsv what its keys are called: each
 *           cluster file names those of its own run.
 *           `run` holds the highest number that a run on the store was given: it never goes down while the store is
 *           there, whichever cluster file comes back.
 *           It can be moved as a whole: its cluster file names what lies in it relative to itself.
 * Files     folder.c (names, removal), folder_aside.c, folder_open.c, each above the one before; folder_cluster.c.
 * Failure   DP_IO naming the path; DP_IN_USE: another command is at work in it.                          */
#ifndef DP_CLI_FOLDER_H
#define DP_CLI_FOLDER_H

#include "common/config/cluster.h"
#include "deploy/cli/path.h"

/* Its cluster file until the new one is accepted. */
#define DP_FOLDER_EARLIER "cluster.earlier.conf"
/* Of `run --from`, until its stores are restored and cluster.conf is there. */
#define DP_FOLDER_RESTORING "restoring.conf"

struct dp_folder {
    char path[DP_PATH_MAX + 1]; /* absolute */
    char conf[DP_PATH_MAX + 1];
    int lock; /* for children to inherit */
};

/* Makes it, and those in it, where absent. */
DP_MUST_USE
enum dp_status dp_folder_open(const char *path, struct dp_folder *out, struct dp_error *err);
/* That of a run, which may have been moved, copied or made read-only: nothing in it is written, and its lock, where it has one,
 * is shared with others that read. conf is the cluster file to be read. DP_NOT_FOUND: it is no run's; DP_ARGUMENT: a file. */
DP_MUST_USE
enum dp_status dp_folder_open_to_read(const char *path, struct dp_folder *out, struct dp_error *err);
void dp_folder_close(struct dp_folder *folder);

/* folder/name, printf-like; DP_ARGUMENT when it grows too long. out: DP_PATH_MAX + 1. */
DP_MUST_USE
enum dp_status dp_folder_path(const struct dp_folder *folder, char *out, struct dp_error *err,
                              const char *format, ...) DP_PRINTF(4, 5);
/* The run's cluster as it lies in the directory: the stores are those below it, wherever the cluster file of an older build says
 * that they were. Of the other files only those of the data are named still. DP_NOT_FOUND: a shard's store is missing; DP_EXISTS: it
 * is another server's; DP_DATA: a store lies outside of the directory. */
DP_MUST_USE
enum dp_status dp_folder_cluster(const struct dp_folder *folder, struct dp_cluster **out,
                                 struct dp_error *err);
/* DP_NOT_FOUND: there is no store of this shard in the server's directory. */
DP_MUST_USE
enum dp_status dp_folder_check_store(const char *server, uint32_t shard, struct dp_error *err);
/* Whether the store of a shard that answered, of a run's cluster file, is the one beside that file; of other cluster files, and of
 * stores that are not on this machine, nothing is asked. DP_DATA: it is not: the directory was copied, or moved from where its servers run. */
DP_MUST_USE
enum dp_status dp_folder_check_live(const char *conf, const struct dp_cluster *cluster, uint32_t shard,
                                    struct dp_error *err);
/* Whether an earlier run left a cluster file, and a store or a run number: its stores may be lost, which others say. */
bool dp_folder_has_run(const struct dp_folder *folder);
/* DP_EXISTS: `run --from` was interrupted there before it had restored the stores: it is to be repeated. */
DP_MUST_USE
enum dp_status dp_folder_check_restored(const struct dp_folder *folder, struct dp_error *err);
/* As dp_folder_check_restored, where servers' stores are there. DP_EXISTS: a cluster file or servers' stores are there that no run is known to have left: a run would overwrite them. */
DP_MUST_USE
enum dp_status dp_folder_check_foreign(const struct dp_folder *folder, struct dp_error *err);
/* Removes what runs have made in the directory's store/. */
DP_MUST_USE
enum dp_status dp_folder_clear_store(const struct dp_folder *folder, struct dp_error *err);
/* Their logs. */
DP_MUST_USE
enum dp_status dp_folder_clear_logs(const struct dp_folder *folder, struct dp_error *err);
/* What runs other than this one keep beside the servers' stores. */
DP_MUST_USE
enum dp_status dp_folder_sweep(const struct dp_folder *folder, uint32_t run, struct dp_error *err);
/* Removes cluster files, stores, the report and, if told to, the logs of earlier runs. */
DP_MUST_USE
enum dp_status dp_folder_clear(const struct dp_folder *folder, bool logs, struct dp_error *err);

/* The highest number that a run here was given; 0: none is known. DP_DATA: the file says something else. */
DP_MUST_USE
enum dp_status dp_folder_run(const struct dp_folder *folder, uint32_t *out, struct dp_error *err);
/* Durably, before the number is used. */
DP_MUST_USE
enum dp_status dp_folder_set_run(const struct dp_folder *folder, uint32_t run, struct dp_error *err);

/* Where a run keeps what its CSV file's columns are. out: DP_PATH_MAX + 1. */
DP_MUST_USE
enum dp_status dp_folder_columns(const struct dp_folder *folder, uint32_t run, char *out,
                                 struct dp_error *err);

/* Where the workers of a run keep their steps (training.steps). out: DP_PATH_MAX + 1. */
DP_MUST_USE
enum dp_status dp_folder_steps(const struct dp_folder *folder, uint32_t run, char *out, struct dp_error *err);

/* Where it keeps what its keys are called. */
DP_MUST_USE
enum dp_status dp_folder_names(const struct dp_folder *folder, uint32_t run, char *out, struct dp_error *err);

/* Before another cluster file is written: keeps the one that is there. */
DP_MUST_USE
enum dp_status dp_folder_keep(const struct dp_folder *folder, struct dp_error *err);
/* The store fits the new cluster file, that of `run`: what was kept goes, and other runs' columns, names and steps. */
DP_MUST_USE
enum dp_status dp_folder_accept(const struct dp_folder *folder, uint32_t run, struct dp_error *err);
/* It does not: what was kept comes back, if anything was. *back: a run that --fresh had set aside. */
DP_MUST_USE
enum dp_status dp_folder_restore(const struct dp_folder *folder, bool *back, struct dp_error *err);

/* folder_aside.c: the run that is there gives way to a new one, until accept removes it or restore brings it back, be it by the
 * next command that opens the directory. Logs stay. */
DP_MUST_USE
enum dp_status dp_folder_set_aside(const struct dp_folder *folder, struct dp_error *err);
DP_MUST_USE
enum dp_status dp_folder_drop_aside(const struct dp_folder *folder, struct dp_error *err);
DP_MUST_USE
enum dp_status dp_folder_put_back(const struct dp_folder *folder, bool *was_aside, struct dp_error *err);
/* Whether one is, of a command that was killed; *out: where it lies, as a run's directory. */
bool dp_folder_is_aside(const struct dp_folder *folder, struct dp_folder *out);

#endif
