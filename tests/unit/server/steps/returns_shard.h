/* Returns: what the members, shards and register of test_returns.c share; and its shards, with a journal of which a crash keeps the
 * durable part. What they must not do fails the test, with the seed. */
#ifndef DP_TESTS_UNIT_SERVER_STEPS_RETURNS_SHARD_H
#define DP_TESTS_UNIT_SERVER_STEPS_RETURNS_SHARD_H

#include "tests/lib/test.h"

#include "server/steps/steps_mark.h"

#include <inttypes.h>

#define SHARDS     3u
#define MEMBERS    4u
#define STAND_INS  2u
#define SUSPENDED  2u
#define ASLEEP     (MEMBERS + STAND_INS) /* the first that was suspended */
#define PROCESSES  (ASLEEP + SUSPENDED)
#define FIRST      10u
#define LAST       50u
#define NEVER      UINT64_MAX
#define VIEW_BYTES (DP_VIEW_HEAD + MEMBERS * DP_VIEW_MEMBER)
#define NOW        1u

struct record {
    enum { VIEW, PUSH, CLOSE } kind;
    uint32_t rank;
    uint64_t step;
    char view[VIEW_BYTES];
};

struct shard {
    struct dp_steps *steps;
    struct record *record;
    uint32_t records, room, durable, viewed; /* viewed: records up to the last view */
    char mark[1024];
    size_t mark_bytes;
    uint32_t mark_at;   /* replay begins here */
    bool kept[MEMBERS]; /* of the open step */
    uint64_t told;      /* ssp: the greatest step whose pull went since the opening */
    bool has[MEMBERS][LAST];
};

enum phase { DEAD, GET, SET, PUT, POSITION, PULL, SEND, DONE };

struct process {
    enum phase phase;
    bool stands_in, returns, seated, leaving, suspended;
    uint32_t rank;
    uint64_t incarnation, version; /* version: of the register, as read */
    char view[VIEW_BYTES];         /* handed over with this */
    uint64_t number, from, missed;
    uint32_t answered; /* shards, a bit each */
    struct {
        uint64_t acts_on, begin;
        bool begun;
    } all;
    struct {
        bool known;
        uint64_t from, until, to, margin;
    } back;
    uint64_t step, end; /* stand-in: pushes up to `end`, then leaves */
};

struct world {
    uint64_t seed, random, incarnations;
    enum dp_consistency mode;
    uint32_t slack, members;
    char registered[VIEW_BYTES];
    uint64_t version;
    struct shard shard[SHARDS];
    struct process process[PROCESSES]; /* those of the ranks, then stand-ins, then some that were suspended */
    bool noisy, comes_back; /* comes_back: in the end who is dead returns; else others let it leave */
    uint32_t closed[LAST];  /* members, a bit each; 0: nowhere closed */
    bool acked[MEMBERS][LAST];
    uint64_t returned, moved, let_leave, crashes, closes, replaced;
};

enum answer { OK, LATER, GONE };

uint32_t returns_draw(struct world *w, uint32_t below);
size_t returns_view_bytes(const struct world *w);
struct dp_view returns_unpacked(const struct world *w, const char *bytes);
void returns_flush(struct shard *s);
void returns_mark(struct world *w, struct shard *s);
void returns_crash(struct world *w, struct shard *s);
void returns_close_step(struct world *w, struct shard *s);
enum answer returns_put(struct world *w, struct shard *s, struct process *p);
enum answer returns_pull(struct world *w, struct shard *s, struct process *p);
enum answer returns_push(struct world *w, struct shard *s, struct process *p);

#endif
