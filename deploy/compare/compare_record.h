/* Compare record: DIR/report.json of a comparison, as it grows: settings, modes, runs, and at the end
 * metric, target and statistics.
 *     open -> (add a run -> write)* -> finish -> write -> close
 * Promise   The file is complete at any time (common/env/atomic_file.h); "finished" is true only after
 *           finish.
 * Format    deploy/compare/README.md, which comparison.h reads.
 * Failure   DP_NOMEM; write: DP_IO, DP_FULL naming the file. */
#ifndef DP_COMPARE_COMPARE_RECORD_H
#define DP_COMPARE_COMPARE_RECORD_H

#include "deploy/compare/compare_job.h"

#include <jansson.h>

struct dp_compare_record {
    json_t *root;
    uint64_t begun_ms;
    double earlier_s; /* that a comparison took which was cut off, and which this one goes on with */
};

enum dp_status dp_compare_record_open(const struct dp_compare_plan *plan, int argc, char *const *argv,
                                      struct dp_compare_record *out, struct dp_error *err);
/* The files of data that a comparison reads, with sizes and digests (server/checkpoint/checksum.h), as they are now:
 *     [{"flag": "--train", "path": "...", "bytes": N, "blake2b": "32 hex digits"}, ...], the caller's, after a failure, too. */
enum dp_status dp_compare_record_files(const struct dp_compare_plan *plan, json_t **out,
                                       struct dp_error *err);
void dp_compare_record_close(struct dp_compare_record *record); /* accepts {0} */
/* Takes the run. */
void dp_compare_record_add(struct dp_compare_record *record, json_t *run);
/* A try of --lr-grid: its last metric, which it returns (NaN: none), or why there is none. */
double dp_compare_record_add_try(struct dp_compare_record *record, size_t mode, const char *rate,
                                 const json_t *run);
/* Tells the tries apart; NULL: none was good. */
const char *dp_compare_record_grid_metric(const struct dp_compare_record *record);
/* Whether each try of this mode diverged, and there is one. */
bool dp_compare_record_all_diverged(struct dp_compare_record *record, size_t mode);
/* One that an earlier report has. Takes it. */
void dp_compare_record_keep_try(struct dp_compare_record *record, size_t mode, json_t *one);
/* The rate that is best for a mode by the tries, the mean of its seeds; NULL: none of them gave a metric. It is set as the mode's. */
const char *dp_compare_record_choose(struct dp_compare_record *record, const struct dp_compare_plan *plan,
                                     size_t mode);
/* The metric that is compared, and the value of it that a run ends with (NaN: it has none): that of --target, else the first of HR@10,
 * recall, AUC, accuracy, RMSE and loss that the samples have. */
double dp_compare_record_end(struct dp_compare_record *record, const json_t *run);
const char *dp_compare_record_metric(const struct dp_compare_record *record);
/* DP_ARGUMENT: --target names a metric that this run's samples do not have; err says which they have. */
enum dp_status dp_compare_record_check_target(const struct dp_compare_record *record, const json_t *run,
                                              struct dp_error *err);
/* Sets the target where none was given, and the statistics. */
enum dp_status dp_compare_record_finish(struct dp_compare_record *record, struct dp_error *err);
enum dp_status dp_compare_record_write(const struct dp_compare_record *record, const char *dir,
                                       struct dp_error *err);

#endif
