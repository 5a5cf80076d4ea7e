/* Compare earlier: the parts of an earlier comparison's report that a new comparison uses.
 *     --resume   the report's command, in the directory where it was given. Runs that ended well are kept;
 *                the others run again. Times are compared with each other, so a report of another machine
 *                or version is refused
 *     --like     the report's flags, except those given here. The report may be of any machine and version.
 *                Before anything is made, the digests of its files are compared
 * Memory    resume and like fill a struct of {0}; clear frees it. The plan's values then point into the
 *           report: call clear after their last use.
 * Failure   DP_NOT_FOUND. DP_DATA: it is damaged, or lacks its command. DP_EXISTS: no run is left to do, or
 *           it is of another machine or version. DP_ARGUMENT: flags next to --resume, or a file that
 *           differs from the report's. */
#ifndef DP_COMPARE_COMPARE_EARLIER_H
#define DP_COMPARE_COMPARE_EARLIER_H

#include "deploy/compare/compare_record.h"
#include "deploy/compare/comparison.h"

struct dp_compare_earlier {
    struct dp_comparison comparison;       /* root NULL: there is none */
    bool resumes;                          /* else nothing is kept */
    char *words[2 * DP_COMPARE_FLAGS_MAX]; /* --like: the command that the plan's values are */
    int count;
};

enum dp_status dp_compare_earlier_resume(struct dp_compare_plan *plan, struct dp_compare_earlier *out,
                                         struct dp_error *err);
/* name: the value of --like, as dp_comparison_read_report. Says on standard error what the comparison is like. */
enum dp_status dp_compare_earlier_like(const char *name, struct dp_compare_plan *plan,
                                       struct dp_compare_earlier *out, struct dp_error *err);
void dp_compare_earlier_clear(struct dp_compare_earlier *earlier); /* accepts {0} */
/* The new report goes on where that one stood: when it began, how long it has worked, its metric. */
void dp_compare_earlier_hand_over(const struct dp_compare_earlier *earlier, struct dp_compare_record *record);
/* The run of this mode with this seed, for the caller to release; NULL: it is to be made. */
json_t *dp_compare_earlier_run(const struct dp_compare_earlier *earlier, const char *mode, uint64_t seed);
/* The same of a try of --lr-grid. */
json_t *dp_compare_earlier_try(const struct dp_compare_earlier *earlier, const char *mode, double rate,
                               uint64_t seed);

#endif
