/* Page: the state of a server for a person with a browser, without scripts. It loads itself again.
 * Promise   No text is markup.
 * Thread    The metrics thread. */
#ifndef DP_METRICS_PAGE_H
#define DP_METRICS_PAGE_H

#include "server/metrics/documents.h"

struct dp_document dp_document_page(const struct dp_exporter_source *source);

#endif
