/* Bed: a shard over a fake store and a hand-turned clock; requests as structs in, replies as structs out. Without a journal, unless
 * bed_journal gives it one.
 *     bed_init -> (options, bed_journal) -> bed_open_shard ... -> bed_clear
 *     bed_open ... -> bed_close   both at once
 * Failure   The test fails, with the seed where there is one. */
#ifndef DP_TESTS_UNIT_SERVER_SHARD_BED_H
#define DP_TESTS_UNIT_SERVER_SHARD_BED_H

#include "tests/lib/test.h"

#include "tests/lib/fake_store.h"
#include "tests/lib/shard_bed.h"
#include "tests/unit/server/shard/rest.h"

#define BED_CLUSTER    7u
#define BED_GENERATION 3u
#define BED_HISTORY    UINT64_C(0x1234567890abcdef)
#define BED_REPLIES    256u

struct bed_reply {
    struct dp_reply reply; /* report and notes are cleared */
    uint32_t tables;       /* of a status report */
    uint64_t table_rows;   /* of its first table */
    uint32_t histograms;   /* of a status report */
    struct dp_histogram histogram[DP_HISTOGRAMS_MAX];
    union {
        char bytes[4096];                     /* of a checkpoint's state: the same, of any length */
        float value[1024];                    /* of pulled: all sections' values, one after the other (f32) */
        uint64_t word[DP_POSITIONS_MAX / 64]; /* of positions */
    };
    size_t values;           /* of four bytes each */
    uint32_t frame_bytes[2]; /* of the first two */
};

struct bed {
    struct shard_bed host;
    struct dp_fake_store *fake;
    struct rest rest;
    uint64_t seed; /* 0: none */
    uint64_t now_ns;
    uint64_t wall_s; /* dp_shard_options.wall shows it when now_ns is 0 */
    uint64_t next_id;
    struct {
        bool given;
        uint64_t generation, history;
    } names;             /* given: by the requests that are sent, instead of the shard's own */
    uint32_t timeout_ms; /* of the next requests */
    uint32_t replies;
    uint64_t answered;       /* replies, of all that came */
    struct bed_reply *reply; /* [BED_REPLIES], in the order they came; a ring */
};

/* Closed: the only shard, over a store that takes jobs_max jobs at once, then says AGAIN. */
void bed_init(struct bed *bed, uint32_t jobs_max);
/* A journal on a simulated disk. */
void bed_journal(struct bed *bed, uint64_t seed);
/* It must open. */
void bed_open_shard(struct bed *bed);
/* Closed already, or as after a crash. */
void bed_clear(struct bed *bed);
void bed_open(struct bed *bed, uint32_t index, uint32_t shards);
void bed_close(struct bed *bed);
/* Drains, closes, opens again on the same store. */
void bed_restart(struct bed *bed);
/* The same; this mark is put while it is closed. */
void bed_restart_on(struct bed *bed, const struct dp_store_mark *mark);
enum dp_status bed_drain(struct bed *bed, struct dp_error *err);
/* Turns until it has drained; AGAIN: it does not. */
enum dp_status bed_drained(struct bed *bed, struct dp_error *err);
/* Until nothing goes on; then it must rest. */
void bed_turn(struct bed *bed);
/* One turn of it. */
bool bed_one_turn(struct bed *bed);
/* cache_bytes in which n rows of a table with rows of that length have room, whatever their keys. */
uint64_t bed_budget(size_t row_bytes, uint64_t n);
/* The reply to request `id`, or NULL. */
const struct bed_reply *bed_reply_to(const struct bed *bed, uint64_t id);

/* Requests: sent, not turned. Each returns its id. */
uint64_t bed_hello(struct bed *bed, uint64_t session, uint64_t next_sequence, bool want_stream);
uint64_t bed_create(struct bed *bed, uint64_t session, uint64_t sequence, const struct dp_table_spec *spec);
uint64_t bed_pull(struct bed *bed, uint64_t session, uint64_t sequence, const char *table,
                  const uint64_t *keys, uint32_t n);
uint64_t bed_push(struct bed *bed, uint64_t session, uint64_t sequence, const char *table,
                  const uint64_t *keys, uint32_t n, uint32_t dim, float gradient, uint64_t stream,
                  uint64_t number);
/* Any request with the fields given; frames as dp_request_encode wants them. */
uint64_t bed_send(struct bed *bed, struct dp_request *request, struct dp_frame *frames, uint32_t count);

/* Sent, turned, and answered as expected. */
void bed_meet(struct bed *bed, uint64_t session);
void bed_make_table(struct bed *bed, uint64_t session, uint64_t sequence, const struct dp_table_spec *spec);
/* Opened as the only shard, sessions 1 and 2, table "t" (bed_sgd), made by session 1. bed_start: dim 2, and all the memory it wants. */
void bed_start(struct bed *bed);
void bed_start_with(struct bed *bed, uint32_t jobs_max, uint64_t cache_bytes, uint32_t dim);
/* The first value of a key of table "t", pulled. */
float bed_value(struct bed *bed, uint64_t session, uint64_t sequence, uint64_t mixed);
uint64_t bed_counter(const struct bed *bed, const char *name);
/* With the seed. */
#define bed_fail(bed, format, ...)                                                                           \
    fail_msg("seed %llu: " format " (run again: DP_TEST_SEED=%llu)", (unsigned long long)(bed)->seed,        \
             __VA_ARGS__, (unsigned long long)(bed)->seed)
/* Not yet (AGAIN, STOPPING, TIMEOUT), for that reason. */
#define bed_expect_wait(bed, id, wanted, why)                                                                \
    assert_int_equal(bed_expect(bed, id, wanted)->reply.wait.reason, DP_WAIT_##why)
#define bed_expect(bed, id, wanted) bed_expect_at(bed, id, wanted, __FILE__, __LINE__)
const struct bed_reply *bed_expect_at(const struct bed *bed, uint64_t id, enum dp_status wanted,
                                      const char *file, int line);

/* SGD without extras, initial value 0: a row equals minus the sum of rate * gradient. */
struct dp_table_spec bed_sgd(const char *name, uint32_t dim);
/* n user keys from `first` that fall into the bed's shard, as mixed keys, ascending. */
void bed_keys(const struct bed *bed, uint64_t first, uint32_t n, uint64_t *mixed);

#endif
