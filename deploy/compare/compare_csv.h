/* Compare CSV: the numbers of a comparison as tables for other programs (RFC 4180, with \n at the end of a
 * line). A value that is not known is empty.
 *     curves   mode, seed, seconds, examples, pushes, metrics of each sample
 *     runs     mode, seed, status, error, metric and loss at the end, times, throughput, staleness, rate of each run
 * Failure   None of its own: the stream keeps a failed write. */
#ifndef DP_COMPARE_COMPARE_CSV_H
#define DP_COMPARE_COMPARE_CSV_H

#include <stdio.h>

/* root: of a comparison (json_t). */
void dp_compare_csv_curves(FILE *to, const void *root);
void dp_compare_csv_runs(FILE *to, const void *root);

#endif
