/* Compare plan: the trainings of a comparison, derived from its flags before anything is made or started.
 *     flags -> modes, seeds, rates, target -> settings of each mode, checked as a run checks them
 * Memory    The texts are argv's. A plan is the caller's {0}; nothing is to be freed.
 * Failure   DP_ARGUMENT, DP_IO: flags that a run of any mode would refuse, by their names. */
#ifndef DP_COMPARE_COMPARE_PLAN_H
#define DP_COMPARE_COMPARE_PLAN_H

#include "common/config/cluster.h"
#include "common/config/goal.h"
#include "deploy/compare/modes.h"

/* Whose values are files of data. */
#define DP_COMPARE_FILES 5u
extern const char *const dp_compare_files[DP_COMPARE_FILES];

#define DP_COMPARE_DIR       "downpour-compare" /* without --dir */
#define DP_COMPARE_RATES_MAX 16u
#define DP_COMPARE_RATE      24u /* bytes of one, as it was given */

struct dp_compare_plan {
    const char *values[DP_COMPARE_FLAGS_MAX];
    char dir[DP_PATH_MAX + 1]; /* absolute */
    struct dp_compare_mode mode[DP_COMPARE_MODES_MAX];
    size_t modes;
    uint64_t first_seed, first_grid_seed;
    uint32_t seeds, grid_seeds;
    char rate[DP_COMPARE_RATES_MAX][DP_COMPARE_RATE];
    size_t rates; /* of --lr-grid, for each mode without a rate of its own; 0: none is tried */
    struct dp_goal target;
    const char *target_text; /* NULL: chosen afterwards */
    uint32_t sample_ms;
};

/* From values, which the caller has parsed. */
enum dp_status dp_compare_plan_make(struct dp_compare_plan *plan, struct dp_error *err);
/* NULL: it was not given. */
const char *dp_compare_plan_flag(const struct dp_compare_plan *plan, const char *name);
/* The same for this mode: its own setting, else that of the flags. */
const char *dp_compare_plan_mode_flag(const struct dp_compare_plan *plan, const struct dp_compare_mode *mode,
                                      const char *name);
/* All flags for this mode. */
void dp_compare_plan_values(const struct dp_compare_plan *plan, const struct dp_compare_mode *mode,
                            const char *values[DP_COMPARE_FLAGS_MAX]);
/* Whether --lr-grid chooses this mode's rate. */
bool dp_compare_plan_seeks_rate(const struct dp_compare_plan *plan, const struct dp_compare_mode *mode);
/* The settings of this mode with this seed, with one server that has no place yet; dp_cluster_free. rate: NULL: that of the flags. */
enum dp_status dp_compare_plan_cluster(const struct dp_compare_plan *plan, const struct dp_compare_mode *mode,
                                       uint64_t seed, const char *rate, struct dp_cluster **out,
                                       struct dp_error *err);

#endif
