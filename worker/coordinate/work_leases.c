#include "worker/coordinate/work_leases.h"

#include "worker/context/retry.h"
#include "worker/schedule/shares.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define SOON_MS 250u  /* for an answer while there is other work */
#define AWAY_MS 1000u /* then the first server is asked again */
#define PIECE   4096u /* numbers in one question to the shards */
#define TELLS   8u    /* in a row: each is answered with what the shards have */
#define FIRST   2u    /* portions, before their time is known */

_Static_assert(PIECE % 64 == 0 && PIECE <= DP_POSITIONS_MAX, "a piece is complete words of one request");

struct dp_work_leases {
    struct dp_job *job;
    struct dp_share share; /* this worker's */
    uint32_t run, every;   /* every: minibatches in a portion */
    uint64_t total;        /* of an epoch */
    uint32_t epoch;
    uint64_t held[DP_LEASE_HELD_MAX]; /* oldest first, as they are pushed */
    uint32_t held_count;
    uint32_t at;                      /* the portion whose minibatches are next, of `held`; */
    uint32_t into;                    /* how many of them were given */
    uint64_t left;                    /* minibatches that were not */
    uint64_t done[DP_LEASE_HELD_MAX]; /* to be told */
    uint32_t done_count;
    uint64_t asked_ns; /* the last time; 0: not yet in this epoch */
    uint32_t answered; /* since then */
    uint64_t each_ns;  /* a portion takes; 0: unknown */
    uint64_t *bits;    /* [(total + 63) / 64] */
};

/* ---- the first server and the shards ---- */

/* patient: until it is answered, by the retry policy; else DP_TIMEOUT or DP_UNAVAILABLE soon. */
static enum dp_status lease(struct dp_job *job, const struct dp_lease *ask, bool patient,
                            struct dp_leased *out, struct dp_error *err)
{
    enum dp_status st;
    if (!patient)
        return dp_client_lease(job->client, ask, SOON_MS, out, err);
    struct dp_retry retry = dp_retry_begin(job);
    do
        st = dp_client_lease(job->client, ask, dp_retry_slice_ms(&retry, DP_RETRY_TELL_MS), out, err);
    while (dp_retry_more(&retry, &st, err));
    return st;
}

/* Which numbers every shard has. */
static enum dp_status ask_shards(struct dp_work_leases *portions, struct dp_error *err)
{
    const uint64_t total = portions->total, stream = dp_push_stream(portions->run, portions->epoch);
    size_t bytes = (size_t)(total + 63) / 64 * sizeof *portions->bits;
    memset(portions->bits, 0, bytes);
    enum dp_status st = DP_OK;
    for (uint64_t at = 0; st == DP_OK && at < total; at += PIECE)
        st = dp_job_pushed(portions->job, stream, at, (size_t)(total - at < PIECE ? total - at : PIECE),
                           portions->bits + at / 64, err);
    if (st != DP_TOO_OLD)
        return st;
    memset(portions->bits, 0xff, bytes); /* later epochs took its place */
    return DP_OK;
}

enum dp_status dp_work_leases_open(struct dp_job *job, struct dp_share share, uint32_t every,
                                   struct dp_work_leases **out, struct dp_error *err)
{
    uint64_t total = dp_groups_of_all(share, every);
    *out = NULL;
    if (total == 0 || total > DP_LEASE_TOTAL_MAX)
        return dp_fail(err, DP_ARGUMENT,
                       "an epoch has %" PRIu64
                       " pushes, of which 1 to %u can be leased: raise --batch or --push-every, or leave "
                       "--work leased (training.work) out",
                       total, DP_LEASE_TOTAL_MAX);
    struct dp_work_leases *portions = calloc(1, sizeof *portions);
    uint64_t *bits = calloc((size_t)(total + 63) / 64, sizeof *bits);
    if (!portions || !bits) {
        free(portions);
        free(bits);
        return dp_fail(err, DP_NOMEM, "no memory for the leases of %" PRIu64 " pushes", total);
    }
    *portions = (struct dp_work_leases){.job = job,
                                        .share = share,
                                        .run = job->cluster->training.run,
                                        .every = every,
                                        .total = total,
                                        .bits = bits};
    *out = portions;
    return DP_OK;
}

void dp_work_leases_close(struct dp_work_leases **portions)
{
    if (*portions)
        free((*portions)->bits);
    free(*portions);
    *portions = NULL;
}

void dp_work_leases_begin(struct dp_work_leases *portions, uint32_t epoch)
{
    DP_ASSERT(portions->held_count == 0 && portions->left == 0);
    portions->epoch = epoch;
    portions->done_count = 0; /* the epoch before is over: nobody has to know */
    portions->asked_ns = 0;
}

/* ---- minibatches ---- */

/* The minibatches of a portion: positions of the share that has its number. */
static struct dp_group group_of(const struct dp_work_leases *portions, uint64_t number,
                                struct dp_share *share)
{
    *share = dp_share_with(portions->share, number);
    return dp_group_at(dp_share_positions(*share), portions->every, number / share->workers);
}

uint64_t dp_work_leases_ahead(const struct dp_work_leases *portions)
{
    return portions->each_ns ? DP_PORTIONS_AHEAD_NS / portions->each_ns * portions->every : 0;
}

void dp_work_leases_give_up(struct dp_work_leases *portions, uint32_t keep)
{
    DP_ASSERT(keep <= portions->at);
    portions->held_count = portions->at = keep;
    portions->into = 0;
    portions->left = 0;
}

uint64_t dp_work_leases_left(const struct dp_work_leases *portions)
{
    return portions->left;
}

uint64_t dp_work_leases_next(struct dp_work_leases *portions)
{
    struct dp_share share;
    DP_ASSERT(portions->left > 0 && portions->at < portions->held_count);
    struct dp_group group = group_of(portions, portions->held[portions->at], &share);
    uint64_t minibatch = dp_share_number(share, group.first + portions->into++);
    portions->left--;
    if (portions->into == group.count) {
        portions->at++;
        portions->into = 0;
    }
    return minibatch;
}

void dp_work_leases_answered(struct dp_work_leases *portions, uint64_t number)
{
    DP_ASSERT(portions->at > 0 && portions->held[0] == number && portions->done_count < DP_LEASE_HELD_MAX);
    memmove(portions->held, portions->held + 1, --portions->held_count * sizeof portions->held[0]);
    portions->at--;
    portions->done[portions->done_count++] = number;
    portions->answered++;
}

/* ---- asking ---- */

static void learn_time(struct dp_work_leases *portions)
{
    uint64_t now = dp_clock_ns(&portions->job->clock);
    if (portions->asked_ns != 0 && portions->answered == 0)
        return; /* the next answer has taken since then */
    if (portions->asked_ns != 0) {
        uint64_t each_ns = (now - portions->asked_ns) / portions->answered;
        portions->each_ns = portions->each_ns ? (portions->each_ns + each_ns) / 2 : each_ns;
    }
    portions->asked_ns = now;
    portions->answered = 0;
}

static uint32_t wanted(const struct dp_work_leases *portions, uint32_t least)
{
    uint64_t want = portions->each_ns ? DP_PORTIONS_AHEAD_NS / portions->each_ns : FIRST;
    uint64_t most = DP_LEASE_HELD_MAX - portions->held_count;
    want = want > least ? want : least;
    most = most < DP_LEASE_WANT_MAX ? most : DP_LEASE_WANT_MAX;
    return (uint32_t)(want < most ? want : most);
}

static void take(struct dp_work_leases *portions, const struct dp_leased *given)
{
    struct dp_share share;
    for (uint32_t i = 0; i < given->count; i++) {
        portions->held[portions->held_count++] = given->number[i];
        portions->left += group_of(portions, given->number[i], &share).count;
    }
    portions->done_count = 0;
}

enum dp_status dp_work_leases_ask(struct dp_work_leases *portions, uint32_t least, bool patient,
                                  enum dp_lease_state *state, uint32_t *wait_ms, struct dp_error *err)
{
    struct dp_leased given = {.state = DP_LEASE_TELL};
    enum dp_status st = DP_OK;
    learn_time(portions);
    struct dp_lease ask = {.run = portions->run,
                           .epoch = portions->epoch,
                           .total = portions->total,
                           .rank = portions->share.worker,
                           .want = wanted(portions, least),
                           .held = portions->held,
                           .held_count = portions->held_count,
                           .done = portions->done,
                           .done_count = portions->done_count};
    for (uint32_t i = 0; st == DP_OK && given.state == DP_LEASE_TELL && i < TELLS; i++) {
        st = lease(portions->job, &ask, patient, &given, err);
        if (st == DP_OK && given.state == DP_LEASE_TELL) {
            st = ask_shards(portions, err);
            ask.pushed = portions->bits;
        }
    }
    if (st == DP_OK && given.state == DP_LEASE_TELL)
        return dp_fail(err, DP_INVALID,
                       "the first server asked %u times in a row which numbers of an epoch are done", TELLS);
    if (!patient && (st == DP_TIMEOUT || st == DP_UNAVAILABLE)) {
        given = (struct dp_leased){.state = DP_LEASE_WAIT, .wait_ms = AWAY_MS};
        if (err)
            *err = (struct dp_error){0};
    } else if (st != DP_OK) {
        return dp_wrap(err, st, "asking for work");
    } else {
        take(portions, &given);
    }
    *state = given.state;
    *wait_ms = given.wait_ms;
    return DP_OK;
}
