/* Counters: what a shard did, readable by any thread while it works. Names are those of metrics. The shard owns them; what
 * its rooms do they count here, and server/shard/counters_list.h lists them. */
#ifndef DP_CACHE_COUNTERS_H
#define DP_CACHE_COUNTERS_H

#include <stdatomic.h>
#include <stdint.h>

#define DP_COUNTER_MAP(X)                                                                                          \
    X(requests_received)                                                                                           \
    X(requests_unreadable) /* no header in them: not answered */                                                   \
    X(requests_refused)    /* answered with any status but those of the next two */                                \
    X(requests_postponed)  /* answered AGAIN, ORDER, SESSION or STOPPING */                                        \
    X(requests_expired)    /* answered TIMEOUT */                                                                  \
    X(pulls)                                                                                                       \
    X(pull_rows)                                                                                                   \
    X(pull_rows_initial) /* those of them that no push has made yet */                                             \
    X(pushes)                                                                                                      \
    X(push_rows)                                                                                                   \
    X(examples) /* behind the pushes that were applied, as their clients tell; of a step when it is closed */      \
    X(pushes_repeated)                                                                                             \
    X(pushes_not_finite)                                                                                           \
    X(rows_bounded) /* of pushes and steps, of which a value was beyond f32 and stays at its largest number */     \
    X(pushes_over_budget)                                                                                          \
    X(staleness_sum)                                                                                               \
    X(staleness_pushes)                                                                                            \
    X(measured_rows) /* of measured pushes that were applied at once, */                                           \
    X(changed_rows)  /* and those of them that any push had changed since the pull */                              \
    X(clock_gap_sum) /* of pushes of members: steps ahead of the slowest one */                                    \
    X(clock_gap_pushes)                                                                                            \
    X(clock_gap_max)                                                                                               \
    X(pushes_dropped) /* whose synchronous step was closed without them */                                         \
    X(steps_closed)   /* synchronous ones */                                                                       \
    X(pulls_held)     /* by the consistency mode */                                                                \
    X(pulls_held_now)                                                                                              \
    X(pulls_held_ms)                                                                                               \
    X(cache_rows)                                                                                                  \
    X(cache_bytes)                                                                                                 \
    X(cache_budget)                                                                                                \
    X(misses) /* keys that the store was asked for */                                                              \
    X(rows_read)                                                                                                   \
    X(rows_evicted)                                                                                                \
    X(requests_parked) /* for room in the cache */                                                                 \
    X(rows_written_back)                                                                                           \
    X(rows_dirty) /* not written back yet, as it is when a status is asked for */                                  \
    X(write_back_cycles)                                                                                           \
    X(writes_full)       /* portions and marks for which the disk had no space: they are tried again */            \
    X(pushes_no_segment) /* for which the journal's disk had no room: the clients try them again */                \
    X(pushes_replayed)                                                                                             \
    X(rows_replayed)                                                                                               \
    X(bytes_replayed)                                                                                              \
    X(tables_uncounted)                                                                                            \
    X(store_damage)       /* reads and counts that found the store damaged: what touches it is refused */          \
    X(journal_kept_bytes) /* of the journal, that are not in the store: what a start after a crash would replay */ \
    X(up_ms)              /* since it opened, as of its last turn */                                               \
    X(journal_bytes)                                                                                               \
    X(answers_held)                                                                                                \
    X(sessions)                                                                                                    \
    X(turns)                                                                                                       \
    X(turns_over_1ms)                                                                                              \
    X(turns_over_2ms)                                                                                              \
    X(turns_over_5ms)                                                                                              \
    X(turns_over_10ms)                                                                                             \
    X(turns_over_20ms)                                                                                             \
    X(turns_over_50ms)                                                                                             \
    X(turns_over_100ms)                                                                                            \
    X(turns_over_200ms)                                                                                            \
    X(turns_over_500ms)                                                                                            \
    X(checkpoint_cuts)       /* taken, */                                                                          \
    X(checkpoint_cut_ns_max) /* and how long the longest one took of a turn */                                     \
    X(checkpoint_delays)     /* records for which the journal had no room while a checkpoint held it */            \
    X(turn_ns_max)                                                                                                 \
    X(l0_files) /* of the store, as it is when a status is asked for */                                            \
    X(compaction_debt_bytes)

struct dp_counters {
#define DP_COUNTER_FIELD(name) _Atomic uint64_t name;
    DP_COUNTER_MAP(DP_COUNTER_FIELD)
#undef DP_COUNTER_FIELD
};

/* One writer: no read-modify-write is needed, so no locked instruction. */
#define DP_COUNT(counters, name, n)                                                                          \
    atomic_store_explicit(&(counters)->name,                                                                 \
                          atomic_load_explicit(&(counters)->name, memory_order_relaxed) + (n),               \
                          memory_order_relaxed)
#define DP_COUNT_SET(counters, name, v) atomic_store_explicit(&(counters)->name, (v), memory_order_relaxed)

#endif
