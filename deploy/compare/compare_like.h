/* Compare like: `compare --like REPORT`: the comparison of a report again, here.
 *     its flags, where none are given -> its files, by their digests -> the command that a record keeps
 * Promise   Nothing is made before files whose digests the report has are found to be the same.
 * Memory    take fills a struct of {0}; clear frees it. The plan's values are then the report's texts: clear it after their last use.
 * Failure   DP_ARGUMENT: a file has other bytes than that of the report. As compare_earlier.h and data_files.h. */
#ifndef DP_COMPARE_COMPARE_LIKE_H
#define DP_COMPARE_COMPARE_LIKE_H

#include "deploy/compare/compare_earlier.h"

struct dp_compare_like {
    struct dp_compare_earlier report;
    char *words[2 * DP_COMPARE_FLAGS_MAX]; /* the command that the plan's values are */
    int count;
};

/* name: the value of --like. Says on standard error what the comparison is like. */
DP_MUST_USE
enum dp_status dp_compare_like_take(const char *name, struct dp_compare_plan *plan,
                                    struct dp_compare_like *out, struct dp_error *err);
void dp_compare_like_clear(struct dp_compare_like *like); /* accepts {0} */

#endif
