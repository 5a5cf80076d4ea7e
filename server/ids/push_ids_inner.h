/* Push ids, inner: the structures of push_ids.h, shared by push_ids.c, push_ids_pack.c and push_ids_union.c
 * only. */
#ifndef DP_IDS_PUSH_IDS_INNER_H
#define DP_IDS_PUSH_IDS_INNER_H

#include "server/ids/push_ids.h"

#include <stdbool.h>

#define WIDE_WORDS (DP_PUSH_WINDOW / 64)

struct dp_push_ids_stream {
    uint64_t id, low;
    uint64_t *bits; /* [words], number n above low: bit n % (64 * words); NULL: none above low */
    uint32_t words; /* DP_PUSH_NARROW / 64 or WIDE_WORDS; 0: no bits */
    uint32_t set;   /* bits that are 1 */
    uint64_t used;  /* the value of dp_push_ids.uses at its last use */
    struct dp_push_ids_stream *older, *newer; /* in its group, by last use */
};

/* Streams in the order of their last use; the oldest is forgotten first: all clients, or the epochs
 * of a run. */
struct dp_push_ids_group {
    struct dp_push_ids_stream *oldest, *newest;
    uint32_t count;
};

struct dp_push_ids_run {
    uint32_t number;
    uint64_t floor, used;
    struct dp_push_ids_group epochs;
};

struct dp_push_ids_refused {
    uint64_t stream, number;
    enum dp_status status;
};

/* How many new ones are allowed now. */
struct dp_push_ids_quota {
    uint64_t at_ns; /* when it was last updated; 0: never, and it is full */
    uint32_t left;
};

struct dp_push_ids {
    uint32_t count, wide;                              /* streams; those with WIDE_WORDS */
    struct dp_push_ids_stream *stream[DP_STREAMS_MAX]; /* ascending by id */
    struct dp_push_ids_group clients;
    uint32_t runs;
    struct dp_push_ids_run run[DP_PUSH_RUNS_MAX]; /* ascending by number */
    uint64_t uses;
    struct dp_push_floors floors;
    struct dp_push_ids_quota clients_quota, runs_quota;
    uint32_t refusals; /* in total; the last DP_REFUSED_MAX of them are kept */
    struct dp_push_ids_refused refused[DP_REFUSED_MAX];
};

struct dp_push_ids_stream *dp_push_ids_find(const struct dp_push_ids *ids, uint64_t stream);
/* now_ns NULL: ignores the quota. */
enum dp_push_room dp_push_ids_make_stream(struct dp_push_ids *ids, uint64_t stream, const uint64_t *now_ns,
                                          struct dp_push_ids_stream **out);
void dp_push_ids_make_run(struct dp_push_ids *ids, uint32_t number);
/* Gives the stream bits for the numbers up to this one. */
enum dp_status dp_push_ids_widen(struct dp_push_ids *ids, struct dp_push_ids_stream *s, uint64_t number);
void dp_push_ids_set(struct dp_push_ids_stream *s, uint64_t number);
/* All numbers below low are used up, and those that follow it without a gap. */
void dp_push_ids_raise_low(struct dp_push_ids *ids, struct dp_push_ids_stream *s, uint64_t low);
/* number: low or above. */
static inline bool dp_push_ids_is_set(const struct dp_push_ids_stream *s, uint64_t number)
{
    uint64_t numbers = (uint64_t)s->words * 64;
    return number - s->low < numbers && (s->bits[number % numbers / 64] >> number % 64 & 1);
}

#endif
