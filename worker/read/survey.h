/* Survey: reads a complete CSV training file for the means and deviations of its numbers, how many values its
 * columns have, and its labels.
 * Private to this room.
 * Promise   The result depends on the file alone. It is computed in f64, in the order of the lines, over
 *           the cells with a number (Welford, "Note on a method for calculating corrected sums of squares
 *           and products", 1962). The deviation is that of the population, and exactly 0 for a constant
 *           column.
 * Memory    While it reads, up to 64 MiB to count values. Of a column with more than 65,536 (fewer if there
 *           are over 32 columns) the schema says in how many cells so many were found.
 * Thread    One at a time.
 * Failure   As when reading the rows; a cell that is not a number is ignored here, and refused there. */
#ifndef DP_READ_SURVEY_H
#define DP_READ_SURVEY_H

#include "worker/read/dataset.h"

/* Completes a schema of names and kinds. */
enum dp_status dp_survey(const struct dp_dataset_options *options, struct dp_schema *schema,
                         struct dp_error *err);

#endif
