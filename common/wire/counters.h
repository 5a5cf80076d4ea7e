/* Counters: every number in a status report: its name, its meaning, and how the values of several shards
 * are combined. A new counter needs a line here, and a line where it is counted.
 * Thread    Any. */
#ifndef DP_WIRE_COUNTERS_H
#define DP_WIRE_COUNTERS_H

#include "common/wire/reply.h"

enum dp_counter_kind {
    DP_COUNTER_TOTAL, /* since the shard opened; shards add up */
    DP_COUNTER_NOW,   /* at this moment; shards add up */
    DP_COUNTER_MOST,  /* the greatest; of several shards, too */
};

#define DP_COUNTER_MAP(X)                                                                                    \
    X(requests_received, TOTAL, "requests received")                                                         \
    X(requests_unreadable, TOTAL, "requests without a header: not answered")                                 \
    X(requests_refused, TOTAL, "requests answered with an error, but for the next two")                      \
    X(requests_postponed, TOTAL, "requests answered AGAIN, ORDER, SESSION or STOPPING")                      \
    X(requests_expired, TOTAL, "requests answered TIMEOUT")                                                  \
    X(pulls, TOTAL, "pulls")                                                                                 \
    X(pull_rows, TOTAL, "rows of pulls")                                                                     \
    X(pull_rows_initial, TOTAL, "rows of pulls that were never pushed")                                      \
    X(pushes, TOTAL, "pushes accepted")                                                                      \
    X(push_rows, TOTAL, "rows of pushes")                                                                    \
    X(examples, TOTAL, "examples behind applied pushes and steps")                                           \
    X(pushes_repeated, TOTAL, "pushes sent again that had been accepted before")                             \
    X(pushes_not_finite, TOTAL, "pushes refused for NaN or infinity")                                        \
    X(rows_bounded, TOTAL, "rows in which a value passed the range of f32 and stays at its largest number")  \
    X(pushes_over_budget, TOTAL, "pushes refused as larger than the cache budget")                           \
    X(staleness_sum, TOTAL, "pushes applied between a push and its pull, summed over staleness_pushes")      \
    X(staleness_pushes, TOTAL, "pushes with a measured staleness")                                           \
    X(measured_rows, TOTAL, "rows of pushes that were applied at once and measured")                         \
    X(changed_rows, TOTAL, "measured_rows that changed between the pull and the push")                       \
    X(clock_gap_sum, TOTAL, "steps ahead of the slowest member, summed over clock_gap_pushes")               \
    X(clock_gap_pushes, TOTAL, "pushes of members")                                                          \
    X(clock_gap_max, MOST, "largest clock gap of a push, in steps")                                          \
    X(pushes_dropped, TOTAL, "pushes whose synchronous step closed without them")                            \
    X(steps_closed, TOTAL, "synchronous steps closed")                                                       \
    X(pulls_held, TOTAL, "pulls that the consistency mode blocked")                                          \
    X(pulls_held_now, NOW, "blocked pulls")                                                                  \
    X(pulls_held_ms, TOTAL, "duration of all blocks of pulls, in ms")                                        \
    X(cache_rows, NOW, "rows in the cache")                                                                  \
    X(cache_bytes, NOW, "bytes of the cache")                                                                \
    X(cache_budget, NOW, "cache budget in bytes")                                                            \
    X(misses, TOTAL, "keys that were looked up in the store")                                                \
    X(rows_read, TOTAL, "rows read from the store")                                                          \
    X(rows_evicted, TOTAL, "rows evicted from the cache")                                                    \
    X(requests_parked, TOTAL, "requests that waited for space in the cache")                                 \
    X(rows_written_back, TOTAL, "rows written to the store")                                                 \
    X(rows_dirty, NOW, "rows that the store does not have yet")                                              \
    X(write_back_cycles, TOTAL, "write-back cycles")                                                         \
    X(writes_full, TOTAL, "writes to the store that found no space on disk and are retried")                 \
    X(pushes_no_segment, TOTAL, "pushes postponed for want of space on the journal's disk")                  \
    X(pushes_replayed, TOTAL, "pushes replayed from the journal at the start")                               \
    X(rows_replayed, TOTAL, "rows replayed from the journal at the start")                                   \
    X(bytes_replayed, TOTAL, "bytes replayed from the journal at the start")                                 \
    X(tables_uncounted, TOTAL, "tables whose rows had to be counted at the start")                           \
    X(store_damage, TOTAL, "reads and counts that found the store damaged")                                  \
    X(journal_kept_bytes, NOW, "bytes of the journal that a start after a crash would replay")               \
    X(up_ms, MOST, "time since the shard opened, in ms")                                                     \
    X(journal_bytes, TOTAL, "bytes appended to the journal")                                                 \
    X(answers_held, NOW, "answers that wait for the journal")                                                \
    X(sessions, NOW, "client sessions")                                                                      \
    X(reconnects, TOTAL, "sessions that went on over another connection")                                    \
    X(turns, TOTAL, "turns")                                                                                 \
    X(turns_over_1ms, TOTAL, "turns over 1 ms")                                                              \
    X(turns_over_2ms, TOTAL, "turns over 2 ms")                                                              \
    X(turns_over_5ms, TOTAL, "turns over 5 ms")                                                              \
    X(turns_over_10ms, TOTAL, "turns over 10 ms")                                                            \
    X(turns_over_20ms, TOTAL, "turns over 20 ms")                                                            \
    X(turns_over_50ms, TOTAL, "turns over 50 ms")                                                            \
    X(turns_over_100ms, TOTAL, "turns over 100 ms")                                                          \
    X(turns_over_200ms, TOTAL, "turns over 200 ms")                                                          \
    X(turns_over_500ms, TOTAL, "turns over 500 ms")                                                          \
    X(checkpoint_cuts, TOTAL, "cuts of checkpoints")                                                         \
    X(checkpoint_cut_ns_max, MOST, "longest part of a turn that a cut took, in ns")                          \
    X(checkpoint_delays, TOTAL, "records that a checkpoint delayed, as it held the journal's space")         \
    X(turn_ns_max, MOST, "longest turn, in ns")

/* Of struct dp_store_stats: store_l0_files, ... */
#define DP_STORE_COUNTER_MAP(X)                                                                              \
    X(l0_files, NOW, "files of RocksDB's level 0")                                                           \
    X(compaction_debt_bytes, NOW, "bytes that RocksDB has to merge into lower levels")                       \
    X(file_bytes, NOW, "bytes of RocksDB's files")                                                           \
    X(block_cache_bytes, NOW, "bytes of RocksDB's block cache")                                              \
    X(reader_bytes, NOW, "bytes of indexes and filters of open files")                                       \
    X(rows_about, NOW, "rows in the store, estimated")                                                       \
    X(disk_free_bytes, MOST, "free bytes of the store's disk")

/* Causes of refusals: what the request would have had to wait for, else the status. */
#define DP_REFUSAL_REASONS 40u /* the first number of a dp_wait_reason; below it, of a dp_status */
#define DP_REFUSALS        64u

static inline uint32_t dp_refusal_cause(enum dp_status answered, enum dp_wait_reason reason)
{
    uint32_t cause = reason != DP_WAIT_NONE ? DP_REFUSAL_REASONS + (uint32_t)reason : (uint32_t)answered;
    return cause < DP_REFUSALS ? cause : (uint32_t)DP_INTERNAL;
}

struct dp_counter_text {
    const char *name;
    enum dp_counter_kind kind;
    const char *help;
};

/* NULL: a counter of another version. */
const struct dp_counter_text *dp_counter_text(const char *name);
const char *dp_counter_kind_name(enum dp_counter_kind kind);
/* 0: no such counter. */
uint64_t dp_counter_value(const struct dp_counter *counters, uint32_t n, const char *name);
/* Takes another shard's counters in: sums, and the greatest of each kind MOST. */
void dp_counter_merge(struct dp_counter *into, uint32_t n, const struct dp_counter *more, uint32_t more_n);

#endif
