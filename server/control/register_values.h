/* Register values: the checks of the values that workers set (register_names.h): each field's range, and
 * the changes that are allowed from the version before. Why here Their readers are workers and clients,
 * which a server does not include. Each check names the file that
 *           describes the format; tests/unit/worker/coordinate runs every value that workers set through these checks.
 * Thread    Any: plain functions.
 * Failure   DP_INVALID names the field. DP_NOMEM. */
#ifndef DP_CONTROL_REGISTER_VALUES_H
#define DP_CONTROL_REGISTER_VALUES_H

#include "server/control/register_names.h"

/* One seat changes: another process takes it, it leaves, or it returns from a later step on. */
enum dp_status dp_control_values_check_view(const struct dp_control_names_rules *rules,
                                            const struct dp_control_names_set *set, uint32_t run,
                                            struct dp_error *err);
/* One worker joins, or marks the plan as begun; the text of a plan that was begun stays. */
enum dp_status dp_control_values_check_plan(const struct dp_control_names_rules *rules,
                                            const struct dp_control_names_set *set, uint32_t run,
                                            struct dp_error *err);
/* The last run: a higher number, or that it is done. *run: its number, for the caller to check. */
enum dp_status dp_control_values_check_runs(const struct dp_control_names_set *set, uint32_t *run,
                                            struct dp_error *err);
/* The number of the last run in a value of that name; 0: it is none. done: NULL, or whether that run is
 * complete. */
uint32_t dp_control_values_last_run(const void *bytes, size_t size, bool *done);
/* The next step of an epoch barrier. */
enum dp_status dp_control_values_check_verdict(const struct dp_control_names_rules *rules,
                                               const struct dp_control_names_set *set, uint32_t run,
                                               struct dp_error *err);

#endif
