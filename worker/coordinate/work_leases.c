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
#define FIRST   2u    /* leases, before their time is known */

_Static_assert(PIECE % 64 == 0 && PIECE <= DP_POSITIONS_MAX, "a piece is complete words of one request");

struct dp_work_leases {
    struct dp_job *job;
    struct dp_share share; /* this worker's */
    uint32_t run, every;   /* every: minibatches in a lease */
    uint64_t total;        /* of an epoch */
    uint32_t epoch;
    uint64_t held[DP_LEASE_HELD_MAX]; /* oldest first, as they are pushed */
    uint32_t held_count;
    uint32_t at;                      /* the lease whose minibatches are next, of `held`; */
    uint32_t into;                    /* how many of them were given */
    uint64_t left;                    /* minibatches that were not */
    uint64_t done[DP_LEASE_HELD_MAX]; /* to be reported */
    uint32_t done_count;
    uint64_t asked_ns; /* the last time; 0: not yet in this epoch */
    uint32_t answered; /* since then */
    uint64_t each_ns;  /* a lease takes; 0: unknown */
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
static enum dp_status ask_shards(struct dp_work_leases *leases, struct dp_error *err)
{
    const uint64_t total = leases->total, stream = dp_push_stream(leases->run, leases->epoch);
    size_t bytes = (size_t)(total + 63) / 64 * sizeof *leases->bits;
    memset(leases->bits, 0, bytes);
    enum dp_status st = DP_OK;
    for (uint64_t at = 0; st == DP_OK && at < total; at += PIECE)
        st = dp_job_pushed(leases->job, stream, at, (size_t)(total - at < PIECE ? total - at : PIECE),
                           leases->bits + at / 64, err);
    if (st != DP_TOO_OLD)
        return st;
    memset(leases->bits, 0xff, bytes); /* later epochs took its place */
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
                       " pushes; 1 to %u can be leased: raise --batch or --push-every, or leave "
                       "--work leased (training.work) out",
                       total, DP_LEASE_TOTAL_MAX);
    struct dp_work_leases *leases = calloc(1, sizeof *leases);
    uint64_t *bits = calloc((size_t)(total + 63) / 64, sizeof *bits);
    if (!leases || !bits) {
        free(leases);
        free(bits);
        return dp_fail(err, DP_NOMEM, "no memory for the leases of %" PRIu64 " pushes", total);
    }
    *leases = (struct dp_work_leases){.job = job,
                                      .share = share,
                                      .run = job->cluster->training.run,
                                      .every = every,
                                      .total = total,
                                      .bits = bits};
    *out = leases;
    return DP_OK;
}

void dp_work_leases_close(struct dp_work_leases **leases)
{
    if (*leases)
        free((*leases)->bits);
    free(*leases);
    *leases = NULL;
}

void dp_work_leases_begin(struct dp_work_leases *leases, uint32_t epoch)
{
    DP_ASSERT(leases->held_count == 0 && leases->left == 0);
    leases->epoch = epoch;
    leases->done_count = 0; /* the epoch before is over: no report is needed */
    leases->asked_ns = 0;
}

/* ---- minibatches ---- */

/* The minibatches of a lease: positions of the share that has its number. */
static struct dp_group group_of(const struct dp_work_leases *leases, uint64_t number, struct dp_share *share)
{
    *share = dp_share_with(leases->share, number);
    return dp_group_at(dp_share_positions(*share), leases->every, number / share->workers);
}

uint64_t dp_work_leases_ahead(const struct dp_work_leases *leases)
{
    return leases->each_ns ? DP_WORK_LEASES_AHEAD_NS / leases->each_ns * leases->every : 0;
}

void dp_work_leases_give_up(struct dp_work_leases *leases, uint32_t keep)
{
    DP_ASSERT(keep <= leases->at);
    leases->held_count = leases->at = keep;
    leases->into = 0;
    leases->left = 0;
}

uint64_t dp_work_leases_left(const struct dp_work_leases *leases)
{
    return leases->left;
}

uint64_t dp_work_leases_next(struct dp_work_leases *leases)
{
    struct dp_share share;
    DP_ASSERT(leases->left > 0 && leases->at < leases->held_count);
    struct dp_group group = group_of(leases, leases->held[leases->at], &share);
    uint64_t minibatch = dp_share_number(share, group.first + leases->into++);
    leases->left--;
    if (leases->into == group.count) {
        leases->at++;
        leases->into = 0;
    }
    return minibatch;
}

void dp_work_leases_answered(struct dp_work_leases *leases, uint64_t number)
{
    DP_ASSERT(leases->at > 0 && leases->held[0] == number && leases->done_count < DP_LEASE_HELD_MAX);
    memmove(leases->held, leases->held + 1, --leases->held_count * sizeof leases->held[0]);
    leases->at--;
    leases->done[leases->done_count++] = number;
    leases->answered++;
}

/* ---- asking ---- */

static void learn_time(struct dp_work_leases *leases)
{
    uint64_t now = dp_clock_ns(&leases->job->clock);
    if (leases->asked_ns != 0 && leases->answered == 0)
        return; /* the next answer has taken since then */
    if (leases->asked_ns != 0) {
        uint64_t each_ns = (now - leases->asked_ns) / leases->answered;
        leases->each_ns = leases->each_ns ? (leases->each_ns + each_ns) / 2 : each_ns;
    }
    leases->asked_ns = now;
    leases->answered = 0;
}

static uint32_t wanted(const struct dp_work_leases *leases, uint32_t least)
{
    uint64_t want = leases->each_ns ? DP_WORK_LEASES_AHEAD_NS / leases->each_ns : FIRST;
    uint64_t most = DP_LEASE_HELD_MAX - leases->held_count;
    want = want > least ? want : least;
    most = most < DP_LEASE_WANT_MAX ? most : DP_LEASE_WANT_MAX;
    return (uint32_t)(want < most ? want : most);
}

static void take(struct dp_work_leases *leases, const struct dp_leased *given)
{
    struct dp_share share;
    for (uint32_t i = 0; i < given->count; i++) {
        leases->held[leases->held_count++] = given->number[i];
        leases->left += group_of(leases, given->number[i], &share).count;
    }
    leases->done_count = 0;
}

enum dp_status dp_work_leases_ask(struct dp_work_leases *leases, uint32_t least, bool patient,
                                  enum dp_lease_state *state, uint32_t *wait_ms, struct dp_error *err)
{
    struct dp_leased given = {.state = DP_LEASE_TELL};
    enum dp_status st = DP_OK;
    learn_time(leases);
    struct dp_lease ask = {.run = leases->run,
                           .epoch = leases->epoch,
                           .total = leases->total,
                           .rank = leases->share.worker,
                           .want = wanted(leases, least),
                           .held = leases->held,
                           .held_count = leases->held_count,
                           .done = leases->done,
                           .done_count = leases->done_count};
    for (uint32_t i = 0; st == DP_OK && given.state == DP_LEASE_TELL && i < TELLS; i++) {
        st = lease(leases->job, &ask, patient, &given, err);
        if (st == DP_OK && given.state == DP_LEASE_TELL) {
            st = ask_shards(leases, err);
            ask.pushed = leases->bits;
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
        take(leases, &given);
    }
    *state = given.state;
    *wait_ms = given.wait_ms;
    return DP_OK;
}
