#include "server/shard/measures.h"

void dp_measures_init(struct dp_measures *measures)
{
    dp_histogram_init_numbers(&measures->histogram[DP_MEASURE_STALENESS], "staleness");
    dp_histogram_init_numbers(&measures->histogram[DP_MEASURE_GAP], "clock_gap");
    dp_histogram_init_shares(&measures->histogram[DP_MEASURE_CHANGED], "changed");
}

void dp_measures_push(struct dp_measures *measures, struct dp_counters *counters,
                      const struct dp_request *push, const struct dp_pushed *pushed)
{
    struct dp_histogram *histogram = measures->histogram;
    if (pushed->dropped) {
        DP_COUNT(counters, pushes_dropped, 1);
        return;
    }
    DP_COUNT(counters, pushes, 1);
    if (pushed->rate > 0) /* else the close of its step applies it */
        DP_COUNT(counters, examples, push->examples);
    if (push->measured) {
        dp_histogram_add(&histogram[DP_MEASURE_STALENESS], (double)pushed->staleness);
        DP_COUNT(counters, staleness_sum, pushed->staleness);
        DP_COUNT(counters, staleness_pushes, 1);
    }
    if (pushed->rows > 0) {
        dp_histogram_add(&histogram[DP_MEASURE_CHANGED], (double)pushed->changed_rows / pushed->rows);
        DP_COUNT(counters, measured_rows, pushed->rows);
        DP_COUNT(counters, changed_rows, pushed->changed_rows);
    }
    if (!push->member.given)
        return;
    dp_histogram_add(&histogram[DP_MEASURE_GAP], (double)pushed->gap);
    DP_COUNT(counters, clock_gap_sum, pushed->gap);
    DP_COUNT(counters, clock_gap_pushes, 1);
    if (pushed->gap > atomic_load_explicit(&counters->clock_gap_max, memory_order_relaxed))
        DP_COUNT_SET(counters, clock_gap_max, pushed->gap);
}
