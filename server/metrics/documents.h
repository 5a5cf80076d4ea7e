/* Documents: the text of each path.
 * Thread    The metrics thread.
 * Memory    The body is heap memory; NULL: no memory. */
#ifndef DP_METRICS_DOCUMENTS_H
#define DP_METRICS_DOCUMENTS_H

#include "server/metrics/source.h"

#include <stdio.h>

#define DP_CONTROL_IDLE_MAX_MS 30000u /* above it the control thread does not come round any more */

struct dp_document {
    unsigned status; /* 200 or 503 */
    char *body;
    size_t size;
};

/* To write one. begin: NULL without memory. end: closes the file; 503 if it could not be written. */
FILE *dp_document_begin(struct dp_document *answer);
void dp_document_end(struct dp_document *answer, FILE *text);
/* [source->shards], the caller's; NULL: no memory. */
struct dp_exporter_shard *dp_document_shards(const struct dp_exporter_source *source);

struct dp_document dp_document_metrics(const struct dp_exporter_source *source);
struct dp_document dp_document_health(const struct dp_exporter_source *source);
struct dp_document dp_document_ready(const struct dp_exporter_source *source);

#endif
