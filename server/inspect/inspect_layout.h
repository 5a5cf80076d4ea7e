/* Inspect layout: what lies beside the shards of a server: the file `layout`, checked against what the shards' own marks say, and the
 * first server's `register`, checked as that server checks it. What is wrong is damage of the first view of that directory. */
#ifndef DP_INSPECT_INSPECT_LAYOUT_H
#define DP_INSPECT_INSPECT_LAYOUT_H

#include "server/inspect/inspect_view.h"

void dp_inspect_layouts(struct dp_inspect_view *views, size_t count);

#endif
