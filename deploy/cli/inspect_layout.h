/* Inspect layout: the file `layout` beside the shards of a server, checked against what the shards' own marks say.
 * What is wrong is damage of the first view of that directory. */
#ifndef DP_CLI_INSPECT_LAYOUT_H
#define DP_CLI_INSPECT_LAYOUT_H

#include "deploy/cli/inspect_view.h"

void dp_inspect_layouts(struct dp_view *views, size_t count);

#endif
