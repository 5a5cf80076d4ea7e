/* Inspect layout: the files next to a server's shards: `layout`, checked against the shards' own marks, and
 * the first server's `register`, checked as that server checks it. A fault is damage of the first view of
 * that directory. */
#ifndef DP_INSPECT_INSPECT_LAYOUT_H
#define DP_INSPECT_INSPECT_LAYOUT_H

#include "server/inspect/inspect_view.h"

void dp_inspect_layouts(struct dp_inspect_view *views, size_t count);

#endif
