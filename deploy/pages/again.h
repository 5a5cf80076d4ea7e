/* Again: the part of a page that says how its training or comparison is made again: command, build, machine,
 * files of data.
 * Promise   The command runs as printed, in any directory; it works in a new one. */
#ifndef DP_PAGES_AGAIN_H
#define DP_PAGES_AGAIN_H

#include "deploy/pages/page_maker.h"

/* origin: deploy/run/run_provenance.h; a comparison's has "files" (data_files.h), too. NULL: none is kept. directory: of the run. */
void dp_page_again(struct dp_page_maker *maker, const json_t *origin, const char *directory);

#endif
