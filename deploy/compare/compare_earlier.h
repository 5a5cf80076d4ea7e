/* Compare earlier: the results of an interrupted comparison in its report, for `--resume`: its command, and
 * runs that ended well.
 *     read -> command -> run, try (kept ones)
 * Promise   Only runs that ended well are kept; the others run again. Times are compared with each other, so
 *           a report of another machine, or of another version, is refused.
 * Memory    read fills a struct of {0}; clear frees it. The command's words are the report's.
 * Failure   DP_NOT_FOUND, DP_DATA (damaged, or without its command), DP_EXISTS: nothing is left to do, or it
 *           is of another machine or version. */
#ifndef DP_COMPARE_COMPARE_EARLIER_H
#define DP_COMPARE_COMPARE_EARLIER_H

#include "deploy/compare/compare_record.h"
#include "deploy/compare/comparison.h"

struct dp_compare_earlier {
    struct dp_comparison comparison; /* root NULL: there is none, and nothing is kept */
    char **argv; /* what followed `downpour compare`, without --dir, --overwrite and --resume */
    int argc;
    char directory[DP_PATH_MAX + 1]; /* in which the command was given */
};

/* dir: the comparison's, absolute. */
DP_MUST_USE
enum dp_status dp_compare_earlier_read(const char *dir, struct dp_compare_earlier *out, struct dp_error *err);
/* For `--like`: the command alone, of any machine and version. name: as dp_comparison_read_report. */
DP_MUST_USE
enum dp_status dp_compare_earlier_like(const char *name, struct dp_compare_earlier *out,
                                       struct dp_error *err);
void dp_compare_earlier_clear(struct dp_compare_earlier *earlier); /* accepts {0} */
/* The new report goes on where that one stood: when it began, how long it has worked, its metric. */
void dp_compare_earlier_hand_over(const struct dp_compare_earlier *earlier, struct dp_compare_record *record);
/* The run of this mode with this seed, for the caller to release; NULL: it is to be made. */
json_t *dp_compare_earlier_run(const struct dp_compare_earlier *earlier, const char *mode, uint64_t seed);
/* The same of a try of --lr-grid. */
json_t *dp_compare_earlier_try(const struct dp_compare_earlier *earlier, const char *mode, double rate,
                               uint64_t seed);

#endif
