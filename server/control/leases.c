#include "server/control/leases.h"

#include "common/base/bytes.h"
#include "common/base/memory.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MS_NS          UINT64_C(1000000)
#define COPIES_MAX     4u             /* processes that hold one number */
#define TELL_NS        (5000 * MS_NS) /* then another process is asked what is done */
#define BACKUP_MIN_NS  (5 * MS_NS)
#define BACKUP_MAX_NS  (10000 * MS_NS)
#define BACKUP_NONE_NS (1000 * MS_NS) /* before any number of the epoch is done */
#define MEAN_OF        8u
#define WAIT_MAX_MS    20u
#define WAITERS        16u /* that ask again in one millisecond */
#define WAITS          8u  /* for a lease of mean length */
#define WANT_LEAST     16u /* the part of what a process wants that it is given at least, if there is as much */

struct holder {
    uint64_t session;
    uint32_t rank;
    bool retired; /* another process of its rank came */
    uint64_t heard_ns;
    uint64_t last_id; /* and its answer: */
    struct dp_lease_answer answer;
};

/* A number of the window that begins at `low`. */
struct slot {
    uint32_t copies;
    uint32_t holder[COPIES_MAX]; /* oldest first */
    uint64_t since_ns;           /* first given */
    uint64_t given_ns;           /* last given */
};

struct table {
    struct table *next; /* asked for before this one */
    uint32_t run, epoch;
    uint64_t total, done_count;
    uint64_t *done;   /* bits */
    uint64_t low;     /* the lowest that is not done, or total */
    uint64_t leased;  /* numbers that somebody holds */
    uint64_t mean_ns; /* of a number's time from being given to being done; 0: unknown */
    bool told;
    bool
        ended_here; /* its last number was done after the list was given to it: no process can have begun the next epoch before */
    uint64_t teller, teller_ns; /* the process that was asked what is done, and when */
    struct slot slot[DP_LEASES_SPAN];
    struct holder *holder;
    uint32_t holders;
    size_t holders_room;
};

struct dp_leases {
    struct table *first; /* the one asked for last */
    uint32_t tables;
};

static bool is_done(const struct table *table, uint64_t number)
{
    return table->done[number / 64] >> number % 64 & 1;
}

static uint64_t window_end(const struct table *table)
{
    uint64_t end = table->low + DP_LEASES_SPAN;
    return end < table->total ? end : table->total;
}

static struct slot *slot_of(struct table *table, uint64_t number)
{
    DP_ASSERT(number >= table->low && number < table->low + DP_LEASES_SPAN);
    return &table->slot[number % DP_LEASES_SPAN];
}

static uint64_t number_at(const struct dp_lease_ask *ask, uint32_t i)
{
    return dp_load_u64le((const char *)ask->numbers + (size_t)i * 8);
}

/* ---- tables ---- */

static void table_free(struct table *table)
{
    if (!table)
        return;
    free(table->done);
    free(table->holder);
    free(table);
}

enum dp_status dp_leases_new(struct dp_leases **out, struct dp_error *err)
{
    *out = calloc(1, sizeof **out);
    return *out ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for leases");
}

void dp_leases_free(struct dp_leases **leases)
{
    while (*leases && (*leases)->first) {
        struct table *table = (*leases)->first;
        (*leases)->first = table->next;
        table_free(table);
    }
    free(*leases);
    *leases = NULL;
}

static void forget_last(struct dp_leases *leases)
{
    struct table **at = &leases->first;
    while ((*at)->next)
        at = &(*at)->next;
    table_free(*at);
    *at = NULL;
    leases->tables--;
}

/* Whether nothing of an epoch can be done: the one before ended while this server served. */
static bool is_untouched(const struct dp_leases *leases, uint32_t run, uint32_t epoch)
{
    for (const struct table *table = leases->first; table; table = table->next)
        if (table->run == run && epoch > 0 && table->epoch == epoch - 1)
            return table->ended_here;
    return false;
}

/* The table of the request's epoch, in front of the others. */
static enum dp_status find_table(struct dp_leases *leases, const struct dp_request *request,
                                 struct table **out, struct dp_error *err)
{
    struct table **at = &leases->first, *table;
    while (*at && ((*at)->run != request->run || (*at)->epoch != request->epoch))
        at = &(*at)->next;
    table = *at;
    if (table && table->total != request->lease.total)
        return dp_fail(
            err, DP_INVALID,
            "epoch %" PRIu32 " of run %" PRIu32 " has %" PRIu64 " push numbers, not %" PRIu64
            ": two trainings share a run number, or their workers differ in data, minibatch or groups",
            request->epoch + 1, request->run, table->total, request->lease.total);
    if (table) {
        *at = table->next;
    } else {
        if (leases->tables == DP_LEASES_TABLES_MAX)
            forget_last(leases);
        table = calloc(1, sizeof *table);
        uint64_t *done = calloc((size_t)(request->lease.total + 63) / 64, sizeof *done);
        if (!table || !done) {
            free(table);
            free(done);
            return dp_fail(err, DP_NOMEM, "no memory for the leases of %" PRIu64 " numbers",
                           request->lease.total);
        }
        table->run = request->run;
        table->epoch = request->epoch;
        table->total = request->lease.total;
        table->done = done;
        table->told = is_untouched(leases, table->run, table->epoch);
        leases->tables++;
    }
    table->next = leases->first;
    leases->first = table;
    *out = table;
    return DP_OK;
}

/* ---- holders ---- */

static bool holds(const struct slot *slot, uint32_t holder)
{
    for (uint32_t i = 0; i < slot->copies; i++)
        if (slot->holder[i] == holder)
            return true;
    return false;
}

static void add_copy(struct table *table, struct slot *slot, uint32_t holder, uint64_t now_ns)
{
    DP_ASSERT(!holds(slot, holder));
    if (slot->copies == 0) {
        table->leased++;
        slot->since_ns = slot->given_ns = now_ns;
    }
    if (slot->copies == COPIES_MAX) { /* the oldest is the least likely to be done */
        memmove(slot->holder, slot->holder + 1, (COPIES_MAX - 1) * sizeof slot->holder[0]);
        slot->copies--;
    }
    slot->holder[slot->copies++] = holder;
}

static void drop_copy(struct table *table, struct slot *slot, uint32_t holder)
{
    uint32_t kept = 0;
    if (!holds(slot, holder))
        return;
    for (uint32_t i = 0; i < slot->copies; i++)
        if (slot->holder[i] != holder)
            slot->holder[kept++] = slot->holder[i];
    slot->copies = kept;
    if (kept == 0)
        table->leased--;
}

static void release(struct table *table, uint32_t holder)
{
    for (uint64_t n = table->low; n < window_end(table); n++)
        drop_copy(table, slot_of(table, n), holder);
}

/* Makes room: the process that was not heard of for longest holds nothing any more. */
static uint32_t quietest(struct table *table)
{
    uint32_t at = 0;
    for (uint32_t i = 1; i < table->holders; i++)
        if (table->holder[i].heard_ns < table->holder[at].heard_ns)
            at = i;
    release(table, at);
    return at;
}

static enum dp_status new_holder(struct table *table, uint32_t *out, struct dp_error *err)
{
    if (table->holders == DP_LEASES_HOLDERS_MAX) {
        *out = quietest(table);
        return DP_OK;
    }
    if (!dp_array_reserve(&table->holder, table->holders, &table->holders_room, sizeof table->holder[0]))
        return dp_fail(err, DP_NOMEM, "no memory for the leases of %" PRIu32 " processes",
                       table->holders + 1);
    *out = table->holders++;
    return DP_OK;
}

static uint32_t find_holder(const struct table *table, uint64_t session)
{
    uint32_t at = 0;
    while (at < table->holders && table->holder[at].session != session)
        at++;
    return at;
}

/* Of any epoch: where a process was replaced it may have been in an earlier one. */
static bool was_retired(const struct dp_leases *leases, const struct dp_request *request)
{
    for (const struct table *table = leases->first; table; table = table->next) {
        uint32_t at = table->run == request->run ? find_holder(table, request->session) : table->holders;
        if (at < table->holders && table->holder[at].retired)
            return true;
    }
    return false;
}

static void retire_others(struct dp_leases *leases, const struct dp_request *request)
{
    for (struct table *table = leases->first; table; table = table->next)
        for (uint32_t i = 0; table->run == request->run && i < table->holders; i++) {
            struct holder *holder = &table->holder[i];
            if (holder->rank != request->lease.rank || holder->session == request->session || holder->retired)
                continue;
            holder->retired = true;
            release(table, i);
        }
}

static enum dp_status seat(struct dp_leases *leases, struct table *table, const struct dp_request *request,
                           uint64_t now_ns, uint32_t *out, struct dp_error *err)
{
    uint32_t rank = request->lease.rank, at = find_holder(table, request->session);
    if (at < table->holders ? table->holder[at].retired : was_retired(leases, request))
        return dp_fail(err, DP_REPLACED, "another process has taken the place of worker %" PRIu32, rank);
    if (at < table->holders) {
        struct holder *known = &table->holder[at];
        if (known->rank != rank)
            return dp_fail(err, DP_INVALID, "rank: %" PRIu32 ", but this session has been worker %" PRIu32,
                           rank, known->rank);
    } else {
        retire_others(leases, request);
        enum dp_status st = new_holder(table, &at, err);
        if (st != DP_OK)
            return st;
        table->holder[at] = (struct holder){.session = request->session, .rank = rank};
    }
    table->holder[at].heard_ns = now_ns;
    *out = at;
    return DP_OK;
}

/* ---- what is done ---- */

/* A slow process is to be worked around, not waited for longer: what took much longer than the others counts as twice the mean. */
static void learn_time(struct table *table, uint64_t took_ns)
{
    uint64_t mean_ns = table->mean_ns, most_ns = 2 * mean_ns + MS_NS;
    took_ns = mean_ns > 0 && took_ns > most_ns ? most_ns : took_ns;
    table->mean_ns = mean_ns == 0 ? took_ns : mean_ns - mean_ns / MEAN_OF + took_ns / MEAN_OF;
}

static void raise_low(struct table *table)
{
    while (table->low < table->total && is_done(table, table->low)) {
        DP_ASSERT(slot_of(table, table->low)->copies == 0);
        table->low++;
    }
    DP_ASSERT((table->low == table->total) == (table->done_count == table->total));
}

static void count_done(struct table *table, uint64_t number, uint64_t now_ns)
{
    if (is_done(table, number))
        return;
    if (number < table->low + DP_LEASES_SPAN) {
        struct slot *slot = slot_of(table, number);
        if (slot->copies > 0) {
            learn_time(table, now_ns - slot->since_ns);
            table->leased--;
        }
        slot->copies = 0;
    }
    table->done[number / 64] |= UINT64_C(1) << number % 64;
    table->done_count++;
}

static void learn_bits(struct table *table, const void *bits, uint64_t now_ns)
{
    for (uint64_t word = 0; word * 64 < table->total; word++) {
        uint64_t new = dp_load_u64le((const char *)bits + word * 8) & ~table->done[word];
        for (; new; new &= new - 1) {
            uint64_t number = word * 64 + (uint64_t)__builtin_ctzll(new);
            if (number < table->total)
                count_done(table, number, now_ns);
        }
    }
}

static void learn_done(struct table *table, const struct dp_lease_ask *ask, uint64_t now_ns)
{
    bool was_told = table->told;
    if (ask->tells) {
        learn_bits(table, ask->bits, now_ns);
        table->told = true;
    }
    bool was_over = table->done_count == table->total;
    for (uint32_t i = 0; i < ask->done; i++)
        count_done(table, number_at(ask, ask->held + i), now_ns);
    table->ended_here |= was_told && !was_over && table->done_count == table->total;
    raise_low(table);
}

/* The process holds these and no others. Numbers beyond the window are none that this table gave or would give. */
static void learn_held(struct table *table, const struct dp_lease_ask *ask, uint32_t holder, uint64_t now_ns)
{
    uint64_t named[DP_LEASES_SPAN / 64] = {0};
    for (uint32_t i = 0; i < ask->held; i++) {
        uint64_t number = number_at(ask, i);
        if (number < table->low || number >= window_end(table) || is_done(table, number))
            continue;
        struct slot *slot = slot_of(table, number);
        named[number % DP_LEASES_SPAN / 64] |= UINT64_C(1) << number % 64;
        if (!holds(slot, holder))
            add_copy(table, slot, holder, now_ns);
    }
    for (uint64_t n = table->low; n < window_end(table); n++)
        if (!(named[n % DP_LEASES_SPAN / 64] >> n % 64 & 1))
            drop_copy(table, slot_of(table, n), holder);
}

/* ---- giving ---- */

static uint32_t living(const struct table *table)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < table->holders; i++)
        n += !table->holder[i].retired;
    return n;
}

/* Guided self-scheduling (Polychronopoulos and Kuck 1987): towards the end of the epoch smaller portions, so that all end together;
 * and never so many that the window is full of one process's numbers. */
static uint32_t portion(const struct table *table, uint32_t want)
{
    uint64_t free_left = table->total - table->done_count - table->leased, processes = living(table);
    uint64_t most = (free_left + 2 * processes - 1) / (2 * processes),
             of_window = DP_LEASES_SPAN / (4 * processes);
    most = most > want / WANT_LEAST ? most : want / WANT_LEAST;
    most = most < of_window ? most : of_window;
    most = most > 1 ? most : 1;
    return want < most ? want : (uint32_t)most;
}

static void give_free(struct table *table, uint32_t holder, uint32_t want, uint64_t now_ns,
                      struct dp_lease_answer *out)
{
    for (uint64_t n = table->low; n < window_end(table) && out->count < want; n++) {
        struct slot *slot = slot_of(table, n);
        if (is_done(table, n) || slot->copies > 0)
            continue;
        add_copy(table, slot, holder, now_ns);
        out->number[out->count++] = n;
    }
}

static uint64_t backup_ns(const struct table *table)
{
    uint64_t after = table->mean_ns == 0 ? BACKUP_NONE_NS : DP_LEASES_BACKUP * table->mean_ns;
    after = after > BACKUP_MIN_NS ? after : BACKUP_MIN_NS;
    return after < BACKUP_MAX_NS ? after : BACKUP_MAX_NS;
}

/* To a process that holds nothing: the number that was given longest ago, if it is old enough; else sets when the first one will be. */
static void give_backup(struct table *table, uint32_t holder, uint64_t now_ns, struct dp_lease_answer *out,
                        uint64_t *due_ns)
{
    uint64_t oldest = table->total, given_ns = UINT64_MAX;
    for (uint64_t n = table->low; n < window_end(table); n++) {
        const struct slot *slot = slot_of(table, n);
        if (slot->copies == 0 || slot->given_ns >= given_ns)
            continue;
        oldest = n;
        given_ns = slot->given_ns;
    }
    *due_ns = oldest < table->total ? given_ns + backup_ns(table) : now_ns + WAIT_MAX_MS * MS_NS;
    if (oldest == table->total || *due_ns > now_ns)
        return;
    struct slot *slot = slot_of(table, oldest);
    add_copy(table, slot, holder, now_ns);
    slot->given_ns = now_ns; /* the next copy of it is due as long after this one */
    out->number[out->count++] = oldest;
}

static uint32_t wait_ms(const struct table *table, uint64_t now_ns, uint64_t due_ns)
{
    uint64_t ms = due_ns > now_ns ? (due_ns - now_ns + MS_NS - 1) / MS_NS : 1,
             least = 1 + living(table) / WAITERS;
    uint64_t most = table->mean_ns / WAITS / MS_NS + 1;
    ms = ms < most ? ms : most;
    ms = ms < WAIT_MAX_MS ? ms : WAIT_MAX_MS;
    return (uint32_t)(ms > least ? ms : least);
}

static void give(struct table *table, const struct dp_lease_ask *ask, uint32_t holder, uint64_t now_ns,
                 struct dp_lease_answer *out)
{
    uint64_t due_ns = now_ns;
    if (ask->want > 0)
        give_free(table, holder, portion(table, ask->want), now_ns, out);
    if (out->count == 0 && ask->want > 0 && ask->held == 0)
        give_backup(table, holder, now_ns, out, &due_ns);
    out->state = out->count > 0 ? DP_LEASE_GIVEN : DP_LEASE_WAIT;
    out->wait_ms = out->count > 0 ? 0 : wait_ms(table, now_ns, due_ns);
}

/* One process asks the shards for all; the others wait for it, unless it takes too long. */
static void ask_what_is_done(struct table *table, uint64_t session, uint64_t now_ns,
                             struct dp_lease_answer *out)
{
    bool asks = table->teller == 0 || table->teller == session || now_ns - table->teller_ns >= TELL_NS;
    out->state = asks ? DP_LEASE_TELL : DP_LEASE_WAIT;
    out->wait_ms = asks ? 0 : wait_ms(table, now_ns, now_ns + 2 * MS_NS);
    if (asks) {
        table->teller = session;
        table->teller_ns = now_ns;
    }
}

enum dp_status dp_leases_take(struct dp_leases *leases, uint64_t now_ns, const struct dp_request *request,
                              struct dp_lease_answer *out, struct dp_error *err)
{
    const struct dp_lease_ask *ask = &request->lease;
    struct table *table = NULL;
    uint32_t at = 0;
    *out = (struct dp_lease_answer){.state = DP_LEASE_WAIT, .wait_ms = 1};
    enum dp_status st = find_table(leases, request, &table, err);
    if (st != DP_OK)
        return st;
    learn_done(table, ask, now_ns); /* a fact, whichever process reports it, and however late */
    st = seat(leases, table, request, now_ns, &at, err);
    if (st != DP_OK)
        return st;
    struct holder *holder = &table->holder[at];
    if (request->id <= holder->last_id) {
        if (request->id == holder->last_id)
            *out = holder->answer;
        return DP_OK;
    }
    learn_held(table, ask, at, now_ns);
    if (!table->told)
        ask_what_is_done(table, request->session, now_ns, out);
    else if (table->done_count == table->total)
        *out = (struct dp_lease_answer){.state = DP_LEASE_OVER};
    else
        give(table, ask, at, now_ns, out);
    out->done = table->done_count;
    holder->last_id = request->id;
    holder->answer = *out;
    return DP_OK;
}
