/* Summary: a training's report in a few sentences. Each number in them is the report's.
 * Failure   "" where there is no memory. */
#ifndef DP_PAGES_SUMMARY_H
#define DP_PAGES_SUMMARY_H

#include "deploy/pages/training.h"

/* malloc'd */
char *dp_summary_text(const struct dp_training *training);
/* Why nothing, or not all, of it may be final: an unfinished, failed or mixed run, workers that left; malloc'd, "" if nothing is. */
char *dp_summary_warnings(const struct dp_training *training);

/* With what a run or a comparison was made: version, machine, time; malloc'd, "" where nothing is kept. origin: run_provenance.h. */
char *dp_summary_origin(const json_t *origin);

#endif
