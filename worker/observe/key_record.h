/* Key record: a row source (context/row_source.h) that notes which rows it is asked for, and answers zeros.
 * Thread    One. */
#ifndef DP_OBSERVE_KEY_RECORD_H
#define DP_OBSERVE_KEY_RECORD_H

#include "worker/context/row_source.h"
#include "worker/observe/samples.h"

struct dp_key_record;

/* graph: lent until free. */
enum dp_status dp_key_record_new(const struct dp_graph *graph, struct dp_key_record **out,
                                 struct dp_error *err);
void dp_key_record_free(struct dp_key_record **record); /* accepts NULL inside, leaves NULL */
const struct dp_row_source *dp_key_record_source(const struct dp_key_record *record);
/* Hands over the distinct keys of each parameter. Once. */
void dp_key_record_take(struct dp_key_record *record, struct dp_sample_keys *out);

#endif
