/* Survey: what only a whole training file says of a CSV's columns: means and deviations of its numbers,
 * and what its labels are. Private to this room.
 * Promise   A function of the file alone: f64, in the order of its lines (Welford, "Note on a method for calculating corrected
 *           sums of squares and products", 1962), over the cells that hold a number; the deviation is of the whole, not of a sample.
 *           A constant column's is 0, exactly.
 * Thread    One at a time.
 * Failure   As reading the file's rows; a cell that is no number is left to that. */
#ifndef DP_READ_SURVEY_H
#define DP_READ_SURVEY_H

#include "worker/read/dataset.h"

/* Reads the file of the options (unless nothing is wanted of it); completes a schema of names and kinds. */
DP_MUST_USE
enum dp_status dp_survey(const struct dp_dataset_options *options, struct dp_schema *schema,
                         struct dp_error *err);

#endif
