/* Leases: a property test over many seeds (processes that die, are started again, are suspended; a server that forgets; requests that are
 * lost, doubled and late), and the cases that a seed may miss. DP_TEST_SEED=n runs one seed, DP_TEST_SEEDS=n so many. */
#include "tests/lib/test.h"

#include "common/base/bytes.h"
#include "server/control/leases.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MS_NS   UINT64_C(1000000)
#define RUN     7u
#define TOTALS  6000u
#define RANKS   5u
#define MAILS   64u
#define STOCK   64u
#define RESENT  (20 * MS_NS)
#define GIVE_UP (200 * MS_NS)

struct process {
    uint64_t session; /* 0: it is dead */
    uint64_t asleep_until_ns;
    bool gone; /* for good */
    uint64_t held[STOCK];
    uint32_t holds, pushed; /* the first `pushed` of them are on some shard, or under way */
    uint64_t push_due_ns;   /* of held[0] */
    uint64_t done[DP_LEASE_HELD_MAX], done_sent; /* not told yet; of these in the request under way */
    uint32_t dones;
    struct dp_request request; /* the one under way; id 0: none */
    uint64_t numbers[STOCK + DP_LEASE_HELD_MAX];
    uint64_t bits[(TOTALS + 63) / 64];
    uint64_t asked_ns, sent_ns, ask_at_ns;
    bool tells, over;
};

struct mail {
    bool used, is_answer;
    uint64_t due_ns;
    uint32_t rank;
    struct dp_request request;
    uint64_t numbers[STOCK + DP_LEASE_HELD_MAX];
    uint64_t bits[(TOTALS + 63) / 64];
    struct dp_lease_answer answer;
};

struct world {
    uint64_t seed, random, now_ns, total, last_session, last_id;
    uint32_t loss, doubles, late_ms, deaths, restarts, naps, slow; /* in 1,000, or ms */
    struct dp_leases *leases;
    bool shard[2][TOTALS];
    uint64_t low; /* the lowest number that some shard lacks */
    uint32_t computed;
    struct process process[RANKS];
    struct mail mail[MAILS];
};

static uint64_t draw(struct world *w, uint64_t below)
{
    w->random = w->random * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (w->random >> 33) % below;
}

static bool happens(struct world *w, uint32_t in_thousand)
{
    return draw(w, 1000) < in_thousand;
}

static struct mail *post(struct world *w, uint32_t rank)
{
    for (uint32_t i = 0; i < MAILS; i++)
        if (!w->mail[i].used) {
            w->mail[i].used = true;
            w->mail[i].is_answer = false;
            w->mail[i].rank = rank;
            w->mail[i].due_ns = w->now_ns + MS_NS / 10 + draw(w, (uint64_t)w->late_ms * MS_NS + 1);
            return &w->mail[i];
        }
    return NULL;
}

static void send_request(struct world *w, uint32_t rank)
{
    struct process *p = &w->process[rank];
    p->sent_ns = w->now_ns;
    for (uint32_t copies = happens(w, w->doubles) ? 2 : 1; copies > 0; copies--) {
        struct mail *mail = happens(w, w->loss) ? NULL : post(w, rank);
        if (!mail)
            continue;
        mail->request = p->request;
        memcpy(mail->numbers, p->numbers, sizeof p->numbers);
        memcpy(mail->bits, p->bits, sizeof p->bits);
    }
}

static void ask(struct world *w, uint32_t rank)
{
    struct process *p = &w->process[rank];
    for (uint32_t i = 0; i < p->holds; i++)
        p->numbers[i] = p->held[i];
    for (uint32_t i = 0; i < p->dones; i++)
        p->numbers[p->holds + i] = p->done[i];
    p->done_sent = p->dones;
    p->request = (struct dp_request){.kind = DP_REQUEST_LEASE,
                                     .id = ++w->last_id,
                                     .session = p->session,
                                     .run = RUN,
                                     .epoch = 3,
                                     .lease = {.total = w->total,
                                               .rank = rank,
                                               .want = (uint32_t)(1 + draw(w, 16)),
                                               .held = p->holds,
                                               .done = p->dones,
                                               .tells = p->tells}};
    memset(p->bits, 0, sizeof p->bits);
    for (uint64_t n = 0; p->tells && n < w->total; n++)
        if (w->shard[0][n] && w->shard[1][n])
            p->bits[n / 64] |= UINT64_C(1) << n % 64;
    p->asked_ns = w->now_ns;
    send_request(w, rank);
}

static bool has(const struct process *p, uint64_t number)
{
    for (uint32_t i = 0; i < p->holds; i++)
        if (p->held[i] == number)
            return true;
    return false;
}

static void take_answer(struct world *w, struct process *p, const struct dp_lease_answer *answer)
{
    p->request.id = 0;
    p->tells = answer->state == DP_LEASE_TELL;
    p->dones -= (uint32_t)p->done_sent;
    memmove(p->done, p->done + p->done_sent, p->dones * sizeof p->done[0]);
    p->ask_at_ns = w->now_ns + (answer->state == DP_LEASE_WAIT ? answer->wait_ms * MS_NS : 0);
    assert_true((answer->state == DP_LEASE_WAIT) == (answer->wait_ms > 0));
    assert_true((answer->state == DP_LEASE_GIVEN) == (answer->count > 0));
    p->over = answer->state == DP_LEASE_OVER;
    if (p->over)
        assert_true(w->low == w->total);
    for (uint32_t i = 0; i < answer->count; i++) {
        assert_true(answer->number[i] < w->total && answer->number[i] < w->low + DP_LEASES_SPAN);
        assert_true(!has(p, answer->number[i]) && p->holds < STOCK);
        p->held[p->holds++] = answer->number[i];
    }
}

/* The server's side of one request. */
static void serve(struct world *w, const struct mail *mail)
{
    struct dp_request request = mail->request;
    struct dp_lease_answer answer;
    struct dp_error err = {0};
    request.lease.numbers = mail->numbers;
    request.lease.bits = mail->bits;
    enum dp_status st = dp_leases_take(w->leases, w->now_ns, &request, &answer, &err);
    if (st == DP_REPLACED)
        return; /* of a process that died */
    if (st != DP_OK)
        fail_msg("seed %" PRIu64 ": %s", w->seed, err.text);
    struct mail *reply = happens(w, w->loss) ? NULL : post(w, mail->rank);
    if (!reply)
        return;
    reply->is_answer = true;
    reply->request = request;
    reply->answer = answer;
}

static void deliver(struct world *w)
{
    for (uint32_t i = 0; i < MAILS; i++) {
        struct mail *mail = &w->mail[i];
        struct process *p = &w->process[mail->rank];
        if (!mail->used || mail->due_ns > w->now_ns)
            continue;
        if (!mail->is_answer) {
            mail->used = false;
            serve(w, mail);
        } else if (p->session != mail->request.session || p->asleep_until_ns <= w->now_ns) {
            mail->used = false;
            if (p->session == mail->request.session && p->request.id == mail->request.id)
                take_answer(w, p, &mail->answer);
        }
    }
}

/* A push reaches one shard, then the other; then it is answered. */
static void push(struct world *w, uint32_t rank)
{
    struct process *p = &w->process[rank];
    uint64_t number = p->held[0];
    if (p->pushed == 0) {
        w->shard[draw(w, 2)][number] = true;
        p->pushed = 1;
        p->push_due_ns = w->now_ns + MS_NS / 4;
        return;
    }
    w->shard[0][number] = w->shard[1][number] = true;
    while (w->low < w->total && w->shard[0][w->low] && w->shard[1][w->low])
        w->low++;
    w->computed++;
    p->pushed = 0;
    memmove(p->held, p->held + 1, --p->holds * sizeof p->held[0]);
    assert_true(p->dones < DP_LEASE_HELD_MAX);
    p->done[p->dones++] = number;
    p->push_due_ns = w->now_ns + MS_NS + draw(w, rank == 0 ? (w->slow + 1) * MS_NS : MS_NS);
}

static void start(struct world *w, uint32_t rank)
{
    struct process *p = &w->process[rank];
    memset(p, 0, sizeof *p);
    p->session = ++w->last_session;
    p->push_due_ns = w->now_ns;
}

static void live(struct world *w, uint32_t rank)
{
    struct process *p = &w->process[rank];
    if (p->session == 0 && !p->gone && happens(w, 50))
        start(w, rank);
    if (p->session == 0 || p->over || p->asleep_until_ns > w->now_ns)
        return;
    if (happens(w, w->naps))
        p->asleep_until_ns = w->now_ns + draw(w, 3000) * MS_NS;
    if (happens(w, w->deaths)) {
        memset(p, 0, sizeof *p);
        p->gone = rank == 1; /* this one is not started again */
        return;
    }
    if (p->holds > 0 && p->push_due_ns <= w->now_ns)
        push(w, rank);
    if (p->request.id != 0 && w->now_ns - p->asked_ns > GIVE_UP)
        p->request.id = 0; /* its answer, if there was one, is lost */
    else if (p->request.id != 0 && w->now_ns - p->sent_ns > RESENT)
        send_request(w, rank);
    if (p->request.id == 0 && p->holds < 4 && p->ask_at_ns <= w->now_ns)
        ask(w, rank);
}

static bool over(const struct world *w)
{
    for (uint32_t r = 0; r < RANKS; r++)
        if (!w->process[r].over && !w->process[r].gone)
            return false;
    return true;
}

static void forget(struct world *w)
{
    struct dp_error err = {0};
    dp_leases_free(&w->leases);
    assert_int_equal(dp_leases_new(&w->leases, &err), DP_OK);
}

static uint32_t run_seed(uint64_t seed, bool calm)
{
    struct world *w = calloc(1, sizeof *w);
    assert_non_null(w);
    w->seed = seed;
    w->random = seed * UINT64_C(0x9e3779b97f4a7c15);
    w->total = seed % 7 == 0 ? TOTALS : 1 + draw(w, 300);
    w->late_ms = 1;
    if (!calm) {
        w->loss = (uint32_t)draw(w, 200);
        w->doubles = (uint32_t)draw(w, 200);
        w->late_ms = (uint32_t)draw(w, 60);
        w->deaths = (uint32_t)draw(w, 3);
        w->restarts = (uint32_t)draw(w, 4);
        w->naps = (uint32_t)draw(w, 3);
        w->slow = (uint32_t)draw(w, 40);
    }
    forget(w);
    for (uint32_t r = 0; r < RANKS; r++)
        start(w, r);
    for (uint64_t steps = 0; !over(w); steps++) {
        if (steps == 4000000)
            fail_msg("DP_TEST_SEED=%" PRIu64 ": %" PRIu64 " of %" PRIu64 " numbers are done, and no more",
                     seed, w->low, w->total);
        w->now_ns += MS_NS / 4;
        if (happens(w, w->restarts) && happens(w, 20))
            forget(w);
        deliver(w);
        for (uint32_t r = 0; r < RANKS; r++)
            live(w, r);
    }
    assert_true(w->low == w->total);
    uint32_t twice = w->computed - (uint32_t)w->total;
    dp_leases_free(&w->leases);
    free(w);
    return twice;
}

static void every_number_is_done_whatever_fails(void **state)
{
    (void)state;
    const char *one = getenv("DP_TEST_SEED"), *many = getenv("DP_TEST_SEEDS");
    uint64_t first = one ? strtoull(one, NULL, 10) : 1, count = one    ? 1
                                                                : many ? strtoull(many, NULL, 10)
                                                                       : 150;
    for (uint64_t seed = first; seed < first + count; seed++)
        (void)run_seed(seed, false);
}

/* Where nothing fails nearly nothing is computed twice. */
static void backups_are_few(void **state)
{
    (void)state;
    for (uint64_t seed = 1; seed <= 20; seed++)
        assert_true(run_seed(seed, true) <= 2 * RANKS);
}

/* ---- single cases ---- */

struct asked {
    uint32_t rank, want, held, done, epoch;
    uint64_t total, number[8];
    bool tells;
    uint64_t bits[10000 / 64 + 1];
};

static enum dp_status take(struct dp_leases *leases, uint64_t now_ms, uint64_t session, uint64_t id,
                           const struct asked *a, struct dp_lease_answer *out)
{
    struct dp_error err = {0};
    struct dp_request request = {.kind = DP_REQUEST_LEASE,
                                 .id = id,
                                 .session = session,
                                 .run = RUN,
                                 .epoch = a->epoch,
                                 .lease = {.total = a->total ? a->total : 100,
                                           .rank = a->rank,
                                           .want = a->want,
                                           .held = a->held,
                                           .done = a->done,
                                           .tells = a->tells,
                                           .numbers = a->number,
                                           .bits = a->bits}};
    return dp_leases_take(leases, now_ms * MS_NS, &request, out, &err);
}

static void told(struct dp_leases **leases, uint64_t total)
{
    struct dp_error err = {0};
    struct dp_lease_answer answer;
    assert_int_equal(dp_leases_new(leases, &err), DP_OK);
    assert_int_equal(take(*leases, 0, 1, 1, &(struct asked){.want = 1, .total = total}, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_TELL);
    /* Others wait for that one, but not for ever. */
    const struct asked other = {.rank = 1, .want = 1, .total = total};
    assert_int_equal(take(*leases, 1, 2, 2, &other, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_WAIT);
    assert_int_equal(take(*leases, 5000, 2, 3, &other, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_TELL);
    assert_int_equal(take(*leases, 5001, 1, 4, &(struct asked){.tells = true, .total = total}, &answer),
                     DP_OK);
    assert_int_equal(answer.state, DP_LEASE_WAIT); /* it wanted none */
}

static void a_request_has_one_answer(void **state)
{
    (void)state;
    struct dp_leases *leases;
    struct dp_lease_answer answer, again;
    told(&leases, 100);
    const struct asked ten = {.want = 10};
    assert_int_equal(take(leases, 6000, 1, 10, &ten, &answer), DP_OK);
    assert_true(answer.state == DP_LEASE_GIVEN && answer.count == 10 && answer.number[9] == 9);
    assert_int_equal(take(leases, 6001, 1, 10, &ten, &again), DP_OK);
    assert_memory_equal(&answer, &again, sizeof answer);
    /* A late copy of an older request takes nothing back. */
    assert_int_equal(take(leases, 6002, 1, 9, &ten, &again), DP_OK);
    assert_true(again.count == 0);
    const struct asked other = {.rank = 1, .want = 3};
    assert_int_equal(take(leases, 6003, 2, 11, &other, &again), DP_OK);
    assert_true(again.count == 3 && again.number[0] == 10);
    /* A new one that holds nothing: the answer before was lost, its numbers are free. */
    assert_int_equal(take(leases, 6004, 1, 12, &ten, &again), DP_OK);
    assert_true(again.count == 10 && again.number[0] == 0);
    dp_leases_free(&leases);
}

static void a_new_process_of_a_rank_frees_the_old_ones(void **state)
{
    (void)state;
    struct dp_leases *leases;
    struct dp_lease_answer answer;
    told(&leases, 100);
    const struct asked four = {.want = 4}, other = {.rank = 1, .want = 4};
    assert_int_equal(take(leases, 6000, 1, 10, &four, &answer), DP_OK);
    assert_int_equal(take(leases, 6001, 9, 1, &four, &answer), DP_OK); /* worker 0 again */
    assert_true(answer.count == 4 && answer.number[0] == 0);
    assert_int_equal(take(leases, 6002, 1, 11, &four, &answer), DP_REPLACED);
    /* What it did meanwhile counts all the same. */
    const struct asked late = {.want = 1, .done = 1, .number = {50}};
    assert_int_equal(take(leases, 6003, 1, 12, &late, &answer), DP_REPLACED);
    assert_int_equal(take(leases, 6004, 2, 13, &other, &answer), DP_OK);
    assert_true(answer.done == 1 && answer.number[0] == 4);
    /* Two ranks of one session, and another total, are refused. */
    assert_int_equal(take(leases, 6005, 2, 14, &(struct asked){.rank = 2, .want = 1}, &answer), DP_INVALID);
    assert_int_equal(take(leases, 6005, 2, 15, &(struct asked){.rank = 1, .total = 99}, &answer), DP_INVALID);
    dp_leases_free(&leases);
}

/* Stopped in an epoch that ended without it, and replaced in the next: it wakes, and asks of either. Planted: a process is replaced in
 * the epoch of the request only; who was replaced in an earlier epoch is new in the next. */
static void a_replaced_process_stays_so_in_every_epoch(void **state)
{
    (void)state;
    struct dp_leases *leases;
    struct dp_lease_answer answer;
    told(&leases, 2);
    const struct asked old = {.want = 2, .total = 2}, next = {.epoch = 1, .want = 2, .total = 2};
    assert_int_equal(take(leases, 6000, 1, 10, &old, &answer), DP_OK);
    const struct asked all = {.rank = 1, .want = 1, .total = 2, .done = 2, .number = {0, 1}};
    assert_int_equal(take(leases, 6001, 2, 11, &all, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_OVER);
    assert_int_equal(take(leases, 6002, 9, 1, &next, &answer), DP_OK); /* worker 0 again */
    assert_true(answer.count == 1 && answer.number[0] == 0);
    assert_int_equal(take(leases, 6003, 1, 12, &next, &answer), DP_REPLACED);
    assert_int_equal(take(leases, 6004, 1, 13, &old, &answer), DP_REPLACED);
    assert_int_equal(take(leases, 6005, 1, 14, &next, &answer), DP_REPLACED);
    const struct asked mine = {.epoch = 1, .want = 2, .total = 2, .held = 1, .number = {0}};
    assert_int_equal(take(leases, 6006, 9, 2, &mine, &answer), DP_OK);
    dp_leases_free(&leases);
}

/* The last numbers of an epoch, held by a process that is not heard of any more. */
static void old_leases_are_given_again_once(void **state)
{
    (void)state;
    struct dp_leases *leases;
    struct dp_lease_answer answer;
    told(&leases, 2);
    const struct asked two = {.want = 2, .total = 2}, other = {.rank = 1, .want = 2, .total = 2};
    assert_int_equal(take(leases, 6000, 1, 10, &two, &answer), DP_OK);
    assert_true(answer.count == 1 && answer.number[0] == 0); /* half of what is left each */
    assert_int_equal(take(leases, 6001, 2, 11, &other, &answer), DP_OK);
    assert_true(answer.count == 1 && answer.number[0] == 1);
    const struct asked done = {.rank = 1, .want = 2, .total = 2, .done = 1, .number = {1}};
    assert_int_equal(take(leases, 6041, 2, 12, &done, &answer), DP_OK); /* took 40 ms */
    assert_true(answer.state == DP_LEASE_WAIT && answer.wait_ms > 0);
    assert_int_equal(take(leases, 6079, 2, 13, &other, &answer), DP_OK);
    assert_true(answer.state == DP_LEASE_WAIT && answer.wait_ms == 1);
    assert_int_equal(take(leases, 6080, 2, 14, &other, &answer), DP_OK);
    assert_true(answer.count == 1 && answer.number[0] == 0);
    /* Not to one that holds it, nor to a third one at once. */
    const struct asked mine = {.want = 2, .total = 2, .held = 1}, third = {.rank = 2, .want = 2, .total = 2};
    assert_int_equal(take(leases, 9000, 1, 15, &mine, &answer), DP_OK);
    assert_true(answer.state == DP_LEASE_WAIT);
    assert_int_equal(take(leases, 6081, 3, 16, &third, &answer), DP_OK);
    assert_true(answer.state == DP_LEASE_WAIT);
    const struct asked last = {.rank = 1, .want = 2, .total = 2, .done = 1};
    assert_int_equal(take(leases, 6090, 2, 17, &last, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_OVER);
    dp_leases_free(&leases);
}

/* A process that stops holds no window back: the others take its number when they are far ahead of it. */
static void numbers_stay_within_the_span(void **state)
{
    (void)state;
    struct dp_leases *leases;
    struct dp_lease_answer answer;
    told(&leases, 10000);
    assert_int_equal(take(leases, 6000, 1, 10, &(struct asked){.want = 1, .total = 10000}, &answer), DP_OK);
    assert_true(answer.number[0] == 0);
    struct asked other = {.rank = 1, .want = 1, .total = 10000};
    uint64_t id = 10, now_ms = 6000;
    for (uint64_t n = 1; n < DP_LEASES_SPAN; n++) {
        assert_int_equal(take(leases, ++now_ms, 2, ++id, &other, &answer), DP_OK);
        if (answer.count != 1 || answer.number[0] != n)
            fail_msg("%u numbers, %" PRIu64 " instead of %" PRIu64, answer.count, answer.number[0], n);
        other.done = 1;
        other.number[0] = n;
    }
    assert_int_equal(take(leases, ++now_ms, 2, ++id, &other, &answer), DP_OK);
    assert_true(answer.count == 1 && answer.number[0] == 0);
    other.number[0] = 0;
    assert_int_equal(take(leases, ++now_ms, 2, ++id, &other, &answer), DP_OK);
    assert_true(answer.count == 1 && answer.number[0] == DP_LEASES_SPAN);
    dp_leases_free(&leases);
}

/* The server that saw an epoch end knows that nothing of the next is done; one that was told so does not. */
static void what_is_done_is_asked_once(void **state)
{
    (void)state;
    struct dp_leases *leases;
    struct dp_lease_answer answer;
    told(&leases, 2);
    const struct asked two = {.want = 2, .total = 2};
    assert_int_equal(take(leases, 6000, 1, 10, &two, &answer), DP_OK);
    const struct asked all = {.want = 2, .total = 2, .done = 2, .number = {0, 1}};
    assert_int_equal(take(leases, 6001, 1, 11, &all, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_OVER);
    const struct asked next = {.epoch = 1, .want = 2, .total = 2};
    assert_int_equal(take(leases, 6002, 1, 12, &next, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_GIVEN);
    dp_leases_free(&leases);
    struct dp_error err = {0};
    assert_int_equal(dp_leases_new(&leases, &err), DP_OK);
    const struct asked over = {.want = 2, .total = 2, .tells = true, .bits = {1}, .done = 1, .number = {1}};
    assert_int_equal(take(leases, 6003, 1, 13, &over, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_OVER);
    assert_int_equal(take(leases, 6004, 1, 14, &next, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_TELL);
    dp_leases_free(&leases);
}

static void old_epochs_are_forgotten(void **state)
{
    (void)state;
    struct dp_leases *leases;
    struct dp_lease_answer answer;
    told(&leases, 100); /* of epoch 0 */
    for (uint32_t e = 1; e < DP_LEASES_TABLES_MAX; e++)
        assert_int_equal(take(leases, 6000, 1, 10 + e, &(struct asked){.epoch = e}, &answer), DP_OK);
    assert_int_equal(take(leases, 6000, 1, 90, &(struct asked){.want = 1}, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_GIVEN);
    for (uint32_t e = 1; e <= DP_LEASES_TABLES_MAX; e++)
        assert_int_equal(take(leases, 6000, 1, 100 + e, &(struct asked){.epoch = e}, &answer), DP_OK);
    assert_int_equal(take(leases, 6000, 1, 190, &(struct asked){.want = 1}, &answer), DP_OK);
    assert_int_equal(answer.state, DP_LEASE_TELL);
    dp_leases_free(&leases);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_number_is_done_whatever_fails),
        cmocka_unit_test(backups_are_few),
        cmocka_unit_test(a_request_has_one_answer),
        cmocka_unit_test(a_new_process_of_a_rank_frees_the_old_ones),
        cmocka_unit_test(a_replaced_process_stays_so_in_every_epoch),
        cmocka_unit_test(old_leases_are_given_again_once),
        cmocka_unit_test(numbers_stay_within_the_span),
        cmocka_unit_test(what_is_done_is_asked_once),
        cmocka_unit_test(old_epochs_are_forgotten),
    };
    return cmocka_run_group_tests_name("leases", tests, NULL, NULL);
}
