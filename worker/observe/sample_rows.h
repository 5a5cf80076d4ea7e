/* Sample rows: two row sources (context/row_source.h). One notes the keys of the rows that it is asked for, and
 * answers zeros; the other has the rows of one sample.
 * Thread    Any for a sample's rows, one for a record.
 * Failure   DP_DATA for a row that the sample lacks: its keys are those of another test set. DP_NOMEM. */
#ifndef DP_OBSERVE_SAMPLE_ROWS_H
#define DP_OBSERVE_SAMPLE_ROWS_H

#include "worker/context/row_source.h"
#include "worker/observe/samples.h"

struct dp_sample_record {
    const struct dp_graph *graph; /* lent */
    struct {
        uint64_t *keys; /* with repetitions */
        size_t count, room;
    } asked[DP_GRAPH_PARAMETERS_MAX];
};

struct dp_row_source dp_sample_record_source(struct dp_sample_record *record);
/* Hands over the distinct keys of each parameter, ascending, and frees the record. */
void dp_sample_record_take(struct dp_sample_record *record, struct dp_sample_keys *out);

struct dp_sample_rows {
    const struct dp_sample_keys *keys;
    const float *rows; /* [dp_sample_keys_floats] */
};

/* rows: lent, as what it refers to. */
struct dp_row_source dp_sample_rows_source(const struct dp_sample_rows *rows);

#endif
