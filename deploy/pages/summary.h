/* Summary: a training's report in a few sentences. Each number in them is the report's. */
#ifndef DP_PAGES_SUMMARY_H
#define DP_PAGES_SUMMARY_H

#include "deploy/pages/training.h"

#include <stdio.h>

void dp_summary_put_text(FILE *to, const void *training); /* struct dp_training */
/* Why nothing, or not all, of it may be final: an unfinished, failed or mixed run, workers that left. */
void dp_summary_put_warnings(FILE *to, const void *training);
/* With what a run or a comparison was made: version, machine, time. origin: run_provenance.h. */
void dp_summary_put_origin(FILE *to, const void *origin);

#endif
