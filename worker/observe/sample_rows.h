/* Sample rows: a row source (context/row_source.h) over the rows of one sample.
 * Thread    Any.
 * Failure   DP_DATA for a row that the sample lacks: its keys are those of another test set. */
#ifndef DP_OBSERVE_SAMPLE_ROWS_H
#define DP_OBSERVE_SAMPLE_ROWS_H

#include "worker/context/row_source.h"
#include "worker/observe/samples.h"

struct dp_sample_rows {
    const struct dp_sample_keys *keys;
    const float *rows; /* [dp_sample_keys_floats] */
};

/* rows: lent, as what it refers to. */
struct dp_row_source dp_sample_rows_source(const struct dp_sample_rows *rows);

#endif
