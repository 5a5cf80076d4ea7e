/* Seeded scripts of the members of a run in ssp or sync, with everything that may come between a pull and its answer.
 * Script    Each member pulls and pushes its steps, the pull of the next one ahead of the push. Requests are lost, doubled and sent
 *           again in order; answers are lost; the store's reads are held and fail; time passes, deadlines too; processes die and
 *           others take their places, which begin with the first step whose push was not answered; whoever is done leaves.
 *           The cache has room for some of the rows only. Every second seed has a journal, and its shard crashes: it loses power,
 *           or its process dies, and what was not durable with it.
 * Seeds     DP_TEST_SEED=n runs one, DP_TEST_SEEDS=n so many.
 * Checked   ssp: a pull for step t sees all pushes of the steps below t - S of every member. sync: exactly those below t. Every request is answered in the end, the
 *           members' last steps too; each push counts once; nothing is held any more.
 * Step s pushes to key s % KEYS, by SGD at rate 1, so that a row tells how many pushes it has had. */
#include "tests/lib/timeouts.h"
#include "tests/unit/server/shard/member_bed.h"

#include "common/base/log.h"
#include "common/model/mix.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define MEMBERS_MAX 4u
#define STEPS       20u
#define KEYS        10u
#define DIM         500u
#define OPS_MAX     (2u * STEPS)
#define STORM       900u
#define EVENTS_MAX  40000u
#define SEEDS       DP_SEEDS(300u)
#define SENT_MAX    65536u

struct op {
    bool push, answered, held;
    uint32_t key;
    uint64_t step, id;
};

/* One process: a session, and what it asked there; sequence number = place + 1. */
struct process {
    uint64_t session, incarnation, view;
    uint32_t ops, pulls, pushes; /* issued */
    uint64_t first;              /* its first step */
    struct op op[OPS_MAX];
};

struct world {
    struct bed bed;
    uint64_t seed, random;
    uint32_t members, slack, seen; /* replies */
    bool sync;
    bool calm, failed; /* failed: a read was told to */
    struct member_bed_view view;
    struct process process[MEMBERS_MAX];
    uint64_t pushed[MEMBERS_MAX]; /* steps below have an answer to their push */
    uint64_t sessions;
    uint64_t key[KEYS];
    struct {
        uint32_t rank;
        uint64_t session;
    } asked[SENT_MAX]; /* by id */
    uint64_t held, replaced, died, crashed;
};

static uint32_t draw(struct world *w, uint32_t below)
{
    w->random = w->random * 6364136223846793005u + 1442695040888963407u;
    return (uint32_t)((w->random >> 33) % below);
}

static void require_at(const struct world *w, bool holds, const char *fact, int line)
{
    if (!holds)
        fail_msg("seed %u: %s (line %d)", (unsigned)w->seed, fact, line);
}
#define require(world, fact) require_at(world, fact, #fact, __LINE__)

/* How many steps below `end` push to key k. */
static uint32_t steps_to(uint64_t end, uint32_t k)
{
    uint32_t n = 0;
    for (uint64_t s = 0; s < end; s++)
        n += s % KEYS == k;
    return n;
}

/* ---- processes */

static void begin(struct world *w, uint32_t rank)
{
    struct process *p = &w->process[rank];
    *p = (struct process){.session = ++w->sessions,
                          .incarnation = w->view.member[rank].incarnation,
                          .view = w->view.view.number,
                          .first = w->pushed[rank]};
    (void)bed_hello(&w->bed, p->session, 1, false);
}

/* The shard has forgotten the session, or counts otherwise: from the oldest that is neither answered nor held, as the client
 * library does. What is held counts as done. */
static void greet(struct world *w, const struct process *p)
{
    uint32_t oldest = 0;
    while (oldest < p->ops && (p->op[oldest].answered || p->op[oldest].held))
        oldest++;
    (void)bed_hello(&w->bed, p->session, oldest + 1, false);
}

static void send_op(struct world *w, uint32_t rank, uint32_t place)
{
    struct process *p = &w->process[rank];
    struct op *op = &p->op[place];
    uint64_t next = w->bed.next_id;
    struct dp_request request = {.kind = op->push ? DP_REQUEST_PUSH : DP_REQUEST_PULL,
                                 .session = p->session,
                                 .sequence = place + 1,
                                 .member = member_bed_member(rank, op->step),
                                 .sections = 1,
                                 .section = {{.table = dp_table_id("t"), .rows = 1}}};
    request.member.incarnation = p->incarnation;
    request.member.view = p->view;
    struct dp_frame frames[2] = {dp_frame_copy(&w->key[op->key], 8)};
    /* Of a synchronous step the shard takes the mean. */
    const float gradient = w->sync ? (float)w->members : 1;
    request.member.examples = 7;
    if (op->push) {
        request.stream = MEMBER_BED_STREAM;
        request.number = rank * 100 + op->step;
        request.rate = 1;
        frames[1] = dp_frame_new(DIM * 4);
        for (uint32_t i = 0; i < DIM; i++)
            memcpy((char *)frames[1].data + (size_t)i * 4, &gradient, 4);
    }
    w->bed.next_id = op->id;
    (void)bed_send(&w->bed, &request, frames, op->push ? 2 : 1);
    w->bed.next_id = next;
}

/* The next pull, or the next push, where the pull for it was answered. */
static void issue(struct world *w, uint32_t rank)
{
    struct process *p = &w->process[rank];
    bool may_pull = p->first + p->pulls < STEPS && p->pulls < p->pushes + 2;
    bool may_push = false;
    for (uint32_t i = 0; i < p->ops; i++)
        may_push |= !p->op[i].push && p->op[i].answered && p->op[i].step == p->first + p->pushes;
    /* Whoever begins this step anew gets the weights from before, while no later one is closed. */
    may_push = may_push && (!w->sync || p->first + p->pushes == w->pushed[rank]);
    if (!may_pull && !may_push)
        return;
    struct op *op = &p->op[p->ops];
    op->push = may_push && (!may_pull || draw(w, 3) == 0);
    op->step = p->first + (op->push ? p->pushes++ : p->pulls++);
    op->key = (uint32_t)((op->step + KEYS - (op->push ? 0 : draw(w, 2 + w->slack))) % KEYS);
    op->id = w->bed.next_id++;
    require(w, op->id < SENT_MAX);
    w->asked[op->id].rank = rank;
    w->asked[op->id].session = p->session;
    p->ops++;
    if (w->calm || draw(w, 5) > 0)
        send_op(w, rank, p->ops - 1);
}

static void send_again(struct world *w, uint32_t rank)
{
    struct process *p = &w->process[rank];
    for (uint32_t i = 0; i < p->ops; i++)
        if (!p->op[i].answered)
            send_op(w, rank, i);
}

static void put_view(struct world *w)
{
    (void)member_bed_put(&w->bed, &w->view);
}

static void die(struct world *w, uint32_t rank)
{
    w->view.view.number++;
    w->view.member[rank].incarnation += 1000;
    w->died++;
    if (draw(w, 2) == 0)
        put_view(w); /* else the first request that names it brings it */
    begin(w, rank);
}

/* ---- answers */

static void take_pull(const struct world *w, const struct op *op, const struct bed_reply *reply)
{
    uint64_t must = op->step > w->slack ? op->step - w->slack : 0;
    uint64_t may = w->sync ? op->step : STEPS;
    int seen = (int)-reply->value[0];
    require(w, reply->values == DIM && (float)-seen == reply->value[0]);
    require(w, seen >= (int)(w->members * steps_to(must, op->key)) &&
                   seen <= (int)(w->members * steps_to(may, op->key)));
}

static void take(struct world *w, const struct bed_reply *reply)
{
    uint64_t id = reply->reply.id;
    uint32_t rank = id < SENT_MAX ? w->asked[id].rank : 0;
    struct process *p = &w->process[rank];
    bool alive = id < SENT_MAX && w->asked[id].session == p->session;
    w->held += reply->reply.status == DP_HELD;
    w->replaced += reply->reply.status == DP_REPLACED;
    if (id >= SENT_MAX || w->asked[id].session == 0 || (!w->calm && draw(w, 6) == 0))
        return;
    require(w, !alive || reply->reply.status != DP_REPLACED);
    require(w, !alive || reply->reply.status != DP_SESSION || w->crashed > 0);
    if (reply->reply.status == DP_AGAIN && reply->reply.wait.reason == DP_WAIT_VIEW)
        put_view(w);
    uint64_t wanted = reply->reply.sequence;
    if (alive && (reply->reply.status == DP_SESSION ||
                  (reply->reply.status == DP_ORDER && wanted <= p->ops && p->op[wanted - 1].answered)))
        greet(w, p);
    for (uint32_t i = 0; i < p->ops && alive; i++) {
        struct op *op = &p->op[i];
        if (op->id != id || op->answered)
            continue;
        require(w, reply->reply.status != DP_INVALID);
        op->held |= reply->reply.status == DP_HELD;
        op->answered = reply->reply.status == DP_OK;
        if (!op->answered)
            continue;
        if (op->push && op->step >= w->pushed[rank])
            w->pushed[rank] = op->step + 1;
        if (!op->push)
            take_pull(w, op, reply);
    }
}

static void take_replies(struct world *w)
{
    require(w, w->bed.replies - w->seen <= BED_REPLIES);
    while (w->seen < w->bed.replies)
        take(w, &w->bed.reply[w->seen++ % BED_REPLIES]);
}

/* ---- the script */

static bool is_done(const struct world *w)
{
    for (uint32_t r = 0; r < w->members; r++)
        if (w->pushed[r] < STEPS)
            return false;
    return true;
}

static void crash(struct world *w)
{
    static const enum dp_sim_survival survivals[] = {DP_SIM_NOTHING, DP_SIM_ALL, DP_SIM_RANDOM,
                                                     DP_SIM_PROCESS};
    struct shard_bed *host = &w->bed.host;
    shard_bed_cut(host);
    dp_fake_store_hold(w->bed.fake, false);
    shard_bed_close(host);
    dp_sim_disk_restart(host->sim, survivals[draw(w, 4)]);
    dp_sim_disk_cut_at(host->sim, 0);
    host->options.recovers = true;
    if (shard_bed_open(host, &(struct dp_error){0}) !=
        DP_OK) { /* the read that was told to fail was one of its replay */
        shard_bed_close(host);
        bed_open_shard(&w->bed);
    }
    w->crashed++;
}

static void trouble(struct world *w, uint32_t rank)
{
    struct process *p = &w->process[rank];
    switch (draw(w, 8)) {
    case 0:
        dp_fake_store_hold(w->bed.fake, draw(w, 2));
        return;
    case 1:
        if (!w->failed && draw(w, 4) == 0)
            dp_fake_store_fail(w->bed.fake, DP_STORE_READ, 1, DP_IO);
        w->failed = true;
        return;
    case 2:
        if (draw(w, 10) == 0)
            die(w, rank);
        return;
    case 3:
        if (w->bed.host.sim && draw(w, 10) == 0)
            crash(w);
        else if (p->ops > 0) /* a copy that was under way, long after */
            send_op(w, rank, draw(w, p->ops));
        return;
    default:
        w->bed.now_ns += draw(w, 300) * UINT64_C(1000000);
        return;
    }
}

static void run_event(struct world *w)
{
    uint32_t rank = draw(w, w->members);
    switch (draw(w, 6)) {
    case 0:
    case 1:
        issue(w, rank);
        break;
    case 2:
        if (draw(w, 3) == 0)
            send_again(w, rank);
        break;
    case 3:
        if (w->calm)
            w->bed.now_ns += UINT64_C(20000000);
        else
            trouble(w, rank);
        break;
    default:
        if (draw(w, 4) == 0)
            bed_turn(&w->bed); /* it must rest */
        else
            (void)bed_one_turn(&w->bed);
    }
    if (w->pushed[rank] == STEPS && w->view.member[rank].until == UINT64_MAX && draw(w, 4) == 0) {
        w->view.view.number++;
        w->view.member[rank].until = STEPS;
        put_view(w);
    }
    take_replies(w);
}

static void start(struct world *w)
{
    w->random = w->seed * UINT64_C(0x9e3779b97f4a7c15) + 1;
    w->members = 2 + draw(w, MEMBERS_MAX - 1);
    w->sync = draw(w, 3) == 0;
    w->slack = w->sync ? 0 : draw(w, 4);
    w->view = member_bed_view(w->sync ? DP_SYNC : DP_SSP, w->slack, w->members);
    struct dp_table_spec spec = bed_sgd("t", DIM);
    bed_init(&w->bed, 16);
    w->bed.seed = w->seed;
    /* A step may take half of it, each member's rows counted. */
    w->bed.host.options.cache_bytes = bed_budget(16 + 4 * DIM, w->sync ? 2 * w->members : 2);
    if (w->sync || w->seed % 2 == 0)
        bed_journal(&w->bed, w->seed);
    bed_open_shard(&w->bed);
    bed_meet(&w->bed, 1);
    bed_make_table(&w->bed, 1, 1, &spec);
    w->bed.timeout_ms = 800;
    w->sessions = 1;
    for (uint32_t k = 0; k < KEYS; k++)
        w->key[k] = dp_mix(k);
    put_view(w);
    for (uint32_t r = 0; r < w->members; r++)
        begin(w, r);
}

static void check_end(struct world *w)
{
    w->bed.timeout_ms = 600000;
    dp_fake_store_hold(w->bed.fake, false);
    for (uint32_t i = 0; i < 20; i++)
        bed_turn(&w->bed);
    require(w, bed_counter(&w->bed, "pulls_held_now") == 0);
    bed_meet(&w->bed, ++w->sessions);
    for (uint32_t k = 0; k < KEYS; k++) /* the failure is used up */
        (void)bed_pull(&w->bed, w->sessions, k + 1, "t", &w->key[k], 1);
    for (uint32_t i = 0; i < 20; i++)
        bed_turn(&w->bed);
    bed_meet(&w->bed, ++w->sessions);
    for (uint32_t k = 0; k < KEYS; k++)
        require(w, bed_value(&w->bed, w->sessions, k + 1, w->key[k]) ==
                       -(float)(w->members * steps_to(STEPS, k)));
}

struct sums {
    uint64_t held, replaced, crashed, read, closed;
};

static void run(uint64_t seed, struct sums *sums)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->seed = seed;
    start(w);
    for (uint32_t event = 0; !is_done(w); event++) {
        require(w, event < EVENTS_MAX);
        if (event == STORM) {
            w->calm = true;
            dp_fake_store_hold(w->bed.fake, false);
        }
        run_event(w);
    }
    check_end(w);
    sums->held += w->held;
    sums->replaced += w->replaced;
    sums->crashed += w->crashed;
    sums->read += bed_counter(&w->bed, "rows_read");
    sums->closed += bed_counter(&w->bed, "steps_closed");
    bed_close(&w->bed);
    free(w);
}

static void every_pull_is_answered_and_sees_what_it_must(void **state)
{
    (void)state;
    const char *one = getenv("DP_TEST_SEED"), *many = getenv("DP_TEST_SEEDS");
    uint64_t seeds = many ? strtoull(many, NULL, 10) : SEEDS;
    struct sums sums = {0};
    if (one) {
        run(strtoull(one, NULL, 10), &sums);
        return;
    }
    for (uint64_t seed = 1; seed <= seeds; seed++)
        run(seed, &sums);
    print_message("held %u times, replaced %u, crashed %u, rows read %u, steps closed %u\n",
                  (unsigned)sums.held, (unsigned)sums.replaced, (unsigned)sums.crashed, (unsigned)sums.read,
                  (unsigned)sums.closed);
    assert_true(sums.held > seeds && sums.replaced > 0 && sums.crashed > seeds / 10 && sums.read > seeds);
    assert_true(sums.closed > seeds);
}

int main(void)
{
    dp_log_start("test", DP_LOG_ERROR); /* each run of each seed is a line else */
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_pull_is_answered_and_sees_what_it_must),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
