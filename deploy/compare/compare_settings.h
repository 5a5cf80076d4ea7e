/* Compare settings: the settings that a comparison asked of a run, against those in the run's own report.
 * Promise   Each setting that differs among the runs of a comparison is checked: seed, the mode's
 *           consistency, work, workers and threads, whether ranks added the gradients, whether it pulled
 *           ahead, the learning rate, injected delays; and the settings of the mode's own that reports have.
 * Thread    Any: a plain function. */
#ifndef DP_COMPARE_COMPARE_SETTINGS_H
#define DP_COMPARE_COMPARE_SETTINGS_H

#include "deploy/compare/compare_job.h"

/* false: `why` names the first setting that differs, with both values. A setting that the report lacks differs. */
DP_MUST_USE
bool dp_compare_settings_match(const struct dp_compare_job *job, const json_t *report, char *why,
                               size_t size);

#endif
