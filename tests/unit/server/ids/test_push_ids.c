/* Push ids against a naive set of numbers; the window's edge; forgetting by use, its floors and its quota; refusals; packed
 * and unpacked. */
#include "tests/lib/test.h"

#include "server/ids/push_ids.h"

#include <stdlib.h>
#include <string.h>

#define TRAINING(n) (DP_STREAM_TRAINING | (n))
#define RUN(n)      (DP_STREAM_TRAINING | (uint64_t)(n) << 32)
#define SECOND_NS   UINT64_C(1000000000)

static uint64_t now_ns = SECOND_NS;

static enum dp_push_seen look(struct dp_push_ids *ids, uint64_t stream, uint64_t number)
{
    enum dp_status status;
    return dp_push_ids_look(ids, stream, number, &status);
}

static enum dp_push_room reserve(struct dp_push_ids *ids, uint64_t stream, uint64_t number)
{
    return dp_push_ids_reserve(ids, stream, number, &now_ns);
}

/* A second later: the quota of forgetting is never in the way. */
static void put(struct dp_push_ids *ids, uint64_t stream, uint64_t number)
{
    now_ns += SECOND_NS;
    assert_int_equal(reserve(ids, stream, number), DP_PUSH_ROOM);
    dp_push_ids_add(ids, stream, number, DP_OK);
}

static struct dp_push_ids *start(void)
{
    struct dp_push_ids *ids = NULL;
    assert_int_equal(dp_push_ids_new(&ids), DP_OK);
    return ids;
}

static void add(struct dp_push_ids *ids, uint64_t stream, uint64_t number)
{
    assert_int_equal(look(ids, stream, number), DP_PUSH_NEW);
    put(ids, stream, number);
    assert_int_equal(look(ids, stream, number), DP_PUSH_REPEATED);
}

static struct dp_push_ids *packed_and_unpacked(struct dp_push_ids *ids)
{
    struct dp_push_ids *again = start();
    struct dp_error err = {0};
    size_t size;
    void *bytes = dp_push_ids_pack(ids, &size);
    assert_non_null(bytes);
    assert_int_equal(dp_push_ids_unpack(again, bytes, size, &err), DP_OK);
    free(bytes);
    dp_push_ids_free(&ids);
    return again;
}

/* Three windows of numbers of two streams, each asked for at random around a moving front. */
static void it_agrees_with_a_naive_set(void **state)
{
    const uint64_t span = 3 * DP_PUSH_WINDOW;
    struct dp_push_ids *ids = start();
    uint8_t *seen[2] = {calloc(span, 1), calloc(span, 1)};
    uint64_t low[2] = {0, 0}, seed = 9;
    uint32_t above = 0;
    for (uint32_t op = 0; op < 1500000; op++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t random = seed >> 24;
        uint32_t s = (uint32_t)(random & 1);
        /* Mostly the one that holds the window back and what follows it, else anything near the window. */
        uint64_t reach = random / 16 % 4 ? 64 : DP_PUSH_WINDOW + 64;
        uint64_t number = low[s] + random / 64 % reach;
        number = number > 20 && random / 2 % 8 == 0 ? number - 20 : number;
        if (number >= span)
            continue;
        enum dp_push_seen want = number < low[s] || seen[s][number]  ? DP_PUSH_REPEATED
                                 : number - low[s] >= DP_PUSH_WINDOW ? DP_PUSH_ABOVE
                                                                     : DP_PUSH_NEW;
        uint64_t stream = s ? TRAINING(4) : 4;
        assert_int_equal(look(ids, stream, number), want);
        above += want == DP_PUSH_ABOVE;
        if (want != DP_PUSH_NEW)
            continue;
        put(ids, stream, number);
        seen[s][number] = 1;
        while (low[s] < span && seen[s][low[s]])
            low[s]++;
    }
    assert_true(low[0] > 2 * DP_PUSH_WINDOW && low[1] > 2 * DP_PUSH_WINDOW && above > 100);
    free(seen[0]);
    free(seen[1]);
    dp_push_ids_free(&ids);
    assert_null(ids);
}

static void the_window_ends_where_it_ends(void **state)
{
    struct dp_push_ids *ids = start();
    const uint64_t w = DP_PUSH_WINDOW;
    assert_int_equal(look(ids, 1, w), DP_PUSH_ABOVE);
    assert_int_equal(look(ids, 1, UINT64_MAX), DP_PUSH_ABOVE);
    add(ids, 1, w - 1);
    add(ids, 1, 1);
    assert_int_equal(look(ids, 1, w), DP_PUSH_ABOVE);
    add(ids, 1, 0); /* low is 2 now: numbers w and w + 1 take the places of 0 and 1 */
    add(ids, 1, w);
    add(ids, 1, w + 1);
    assert_int_equal(look(ids, 1, w + 2), DP_PUSH_ABOVE);
    assert_int_equal(look(ids, 1, 0), DP_PUSH_REPEATED);
    for (uint64_t n = 2; n < w - 1; n++)
        add(ids, 1, n);
    assert_int_equal(look(ids, 1, 2 * w + 1), DP_PUSH_NEW); /* low: w + 2 */
    assert_int_equal(look(ids, 1, 2 * w + 2), DP_PUSH_ABOVE);
    assert_int_equal(look(ids, 2, 0), DP_PUSH_NEW); /* each stream its own */
    assert_int_equal(look(ids, TRAINING(1), 0), DP_PUSH_NEW);
    dp_push_ids_free(&ids);
}

/* Full of clients 1000.. and runs 1000.., each used once, in this order. */
static struct dp_push_ids *full(void)
{
    struct dp_push_ids *ids = start();
    for (uint64_t i = 0; i < DP_PUSH_CLIENTS_MAX; i++)
        add(ids, 1000 + i, 7);
    for (uint64_t i = 0; i < DP_PUSH_RUNS_MAX; i++)
        add(ids, RUN(1000 + i), 7);
    return ids;
}

/* A push and its resend are uses; the greatest id means nothing. */
static void what_was_used_longest_ago_is_forgotten(void **state)
{
    struct dp_push_ids *ids = full();
    add(ids, 1000, 8);
    dp_push_ids_use(ids, 1001);
    add(ids, 500, 7); /* in the place of 1002, though it is older than all */
    assert_int_equal(look(ids, 1000, 7), DP_PUSH_REPEATED);
    assert_int_equal(look(ids, 1001, 7), DP_PUSH_REPEATED);
    assert_int_equal(look(ids, 1002, 7), DP_PUSH_TOO_OLD);
    assert_int_equal(look(ids, 1003, 7), DP_PUSH_REPEATED);
    assert_int_equal(look(ids, 500, 7), DP_PUSH_REPEATED);
    assert_int_equal(look(ids, 501, 7), DP_PUSH_TOO_OLD); /* it cannot be told from a forgotten one */
    assert_int_equal(dp_push_ids_too_old(ids, 501), 1002);
    add(ids, RUN(1000), 8);
    dp_push_ids_use(ids, RUN(1001));
    add(ids, RUN(500), 7);
    assert_int_equal(look(ids, RUN(1001), 7), DP_PUSH_REPEATED);
    assert_int_equal(look(ids, RUN(1002), 7), DP_PUSH_TOO_OLD);
    assert_int_equal(look(ids, RUN(1002) + 9, 7), DP_PUSH_TOO_OLD);
    assert_int_equal(look(ids, RUN(1001) + 9, 7), DP_PUSH_NEW); /* of a known run, whatever its number */
    assert_int_equal(look(ids, RUN(500), 7), DP_PUSH_REPEATED);
    assert_int_equal(look(ids, RUN(501), 7), DP_PUSH_TOO_OLD);
    assert_true(dp_push_ids_too_old(ids, RUN(501)) == RUN(1002) + UINT32_MAX);
    assert_int_equal(dp_push_ids_last_run(ids), 2023);
    assert_true(dp_push_ids_knows(ids, 1000) && !dp_push_ids_knows(ids, 1002));
    assert_true(dp_push_ids_knows(ids, RUN(1001) + 9) && !dp_push_ids_knows(ids, RUN(1002)));
    dp_push_ids_free(&ids);
}

/* However many come at once: who was at work stays, and a newcomer has a place soon after. */
static void a_flood_has_no_more_than_the_quota(void **state)
{
    for (uint32_t kind = 0; kind < 2; kind++) {
        struct dp_push_ids *ids = full();
        const uint64_t step = kind ? UINT64_C(1) << 32 : 1, first = kind ? RUN(1000) : 1000;
        const uint32_t max = kind ? DP_PUSH_RUNS_MAX : DP_PUSH_CLIENTS_MAX;
        uint64_t active = first + 5 * step, fresh = first + UINT64_C(1000000) * step;
        uint32_t taken = 0;
        add(ids, active, 8);
        now_ns += DP_PUSH_QUOTA_S * SECOND_NS;
        for (uint32_t i = 0; i < 100000; i++) {
            enum dp_push_room room = reserve(ids, fresh + i * step, 0);
            assert_true(room == DP_PUSH_ROOM || room == DP_PUSH_TOO_MANY);
            if (room == DP_PUSH_ROOM)
                dp_push_ids_add(ids, fresh + i * step, 0, DP_OK);
            taken += room == DP_PUSH_ROOM;
            assert_int_equal(look(ids, fresh + i * step, 0),
                             room == DP_PUSH_ROOM ? DP_PUSH_REPEATED : DP_PUSH_NEW);
        }
        assert_int_equal(taken, max / 2);
        assert_int_equal(look(ids, active, 7), DP_PUSH_REPEATED);
        assert_int_equal(look(ids, active, 9), DP_PUSH_NEW);
        uint64_t later = fresh + 200000 * step;
        assert_int_equal(reserve(ids, later, 0), DP_PUSH_TOO_MANY);
        now_ns += SECOND_NS;
        add(ids, later, 0);
        dp_push_ids_free(&ids);
    }
}

/* The run with the most epochs: others keep theirs. */
static void a_run_of_many_epochs_forgets_its_own(void **state)
{
    const uint32_t share = DP_PUSH_EPOCHS_MAX / DP_PUSH_RUNS_MAX;
    struct dp_push_ids *ids = start();
    for (uint32_t epoch = 0; epoch < share; epoch++)
        add(ids, RUN(3) + epoch, 7);
    for (uint32_t epoch = 0; epoch < 3 * DP_PUSH_EPOCHS_MAX; epoch++) {
        assert_int_equal(reserve(ids, RUN(4) + epoch, 0), DP_PUSH_ROOM); /* without a quota */
        dp_push_ids_add(ids, RUN(4) + epoch, 0, DP_OK);
        dp_push_ids_use(ids, RUN(4) + 1);
    }
    assert_int_equal(look(ids, RUN(4) + 1, 0), DP_PUSH_REPEATED);
    assert_int_equal(look(ids, RUN(4), 0), DP_PUSH_TOO_OLD);
    uint64_t last = 2 * DP_PUSH_EPOCHS_MAX + share; /* 0 .. last but 1 */
    assert_int_equal(look(ids, RUN(4) + last, 0), DP_PUSH_TOO_OLD);
    assert_int_equal(look(ids, RUN(4) + last + 1, 0), DP_PUSH_REPEATED);
    assert_true(dp_push_ids_too_old(ids, RUN(4)) == RUN(4) + last);
    ids = packed_and_unpacked(ids);
    assert_true(dp_push_ids_too_old(ids, RUN(4)) == RUN(4) + last);
    assert_true(dp_push_ids_too_old(ids, RUN(3)) == 0);
    for (uint32_t epoch = 0; epoch < share; epoch++)
        assert_int_equal(look(ids, RUN(3) + epoch, 7), DP_PUSH_REPEATED);
    assert_int_equal(look(ids, RUN(3) + share, 7), DP_PUSH_NEW);
    assert_int_equal(look(ids, RUN(1), 7), DP_PUSH_NEW); /* no run was forgotten */
    /* As many runs as there may be: each has its share, and no more is taken. */
    for (uint32_t run = 5; run < 5 + DP_PUSH_RUNS_MAX - 2; run++)
        for (uint32_t epoch = 0; epoch < share; epoch++)
            add(ids, RUN(run) + epoch, 7);
    for (uint32_t epoch = 0; epoch < share; epoch++)
        assert_int_equal(look(ids, RUN(3) + epoch, 7), DP_PUSH_REPEATED);
    assert_int_equal(look(ids, RUN(4) + 1, 0), DP_PUSH_REPEATED);
    dp_push_ids_free(&ids);
}

/* Against all that was ever pushed: what was once used up is known, or too old; it is never new again, over packing, over
 * replay, whatever is used in between. */
static void what_was_forgotten_is_never_new(void **state)
{
    enum { CLIENTS = 40000, RUNS = 6000, OPS = 300000 };
    uint8_t *client = calloc(CLIENTS, 1), *run = calloc((size_t)RUNS * 4, 1);
    struct dp_push_ids *ids = start();
    uint64_t seed = 3;
    for (uint32_t op = 0; op < OPS; op++) {
        seed = seed * 6364136223846793005u + 1442695040888963407u;
        uint64_t random = seed >> 24, at, stream;
        uint32_t half = op / (OPS / 2);
        if (random & 1) {
            at = random / 8 % (CLIENTS / 2) + half * (CLIENTS / 2);
            stream = 1 + at;
        } else {
            at = random / 8 % ((uint64_t)RUNS * 2) + half * ((uint64_t)RUNS * 2);
            stream = dp_stream_of_run((uint32_t)(1 + at / 4), (uint32_t)(at % 4));
        }
        uint8_t *used = random & 1 ? &client[at] : &run[at];
        enum dp_push_seen seen = look(ids, stream, 0);
        assert_true(*used ? seen == DP_PUSH_REPEATED || seen == DP_PUSH_TOO_OLD
                          : seen == DP_PUSH_NEW || seen == DP_PUSH_TOO_OLD);
        now_ns += op % 3 * (SECOND_NS / 8);
        if (seen == DP_PUSH_NEW && random & 2)
            assert_int_equal(dp_push_ids_restore(ids, stream, 0, DP_OK), DP_OK);
        else if (seen == DP_PUSH_NEW && reserve(ids, stream, 0) == DP_PUSH_ROOM)
            dp_push_ids_add(ids, stream, 0, DP_OK);
        else if (seen == DP_PUSH_REPEATED)
            dp_push_ids_use(ids, stream);
        *used |= look(ids, stream, 0) == DP_PUSH_REPEATED;
        if (op % 50000 == 49999)
            ids = packed_and_unpacked(ids);
    }
    struct dp_push_floors floors = dp_push_ids_floors(ids);
    assert_true(floors.clients > CLIENTS / 2 && floors.runs > RUNS / 2); /* there was forgetting */
    free(client);
    free(run);
    dp_push_ids_free(&ids);
}

/* The order of use is packed: who is forgotten next is the same after a restart. */
static void the_order_of_use_rests_in_bytes(void **state)
{
    struct dp_push_ids *ids = full(), *again = start();
    struct dp_error err = {0};
    size_t size, same;
    dp_push_ids_use(ids, 1000);
    dp_push_ids_use(ids, RUN(1000));
    void *bytes = dp_push_ids_pack(ids, &size), *twice;
    assert_int_equal(dp_push_ids_unpack(again, bytes, size, &err), DP_OK);
    twice = dp_push_ids_pack(again, &same);
    assert_int_equal(size, same);
    assert_memory_equal(bytes, twice, size);
    free(bytes);
    free(twice);
    dp_push_ids_free(&ids);
    assert_int_equal(dp_push_ids_restore(again, 5000000, 0, DP_OK), DP_OK);
    assert_int_equal(dp_push_ids_restore(again, RUN(5000000), 0, DP_OK), DP_OK);
    assert_int_equal(look(again, 1000, 7), DP_PUSH_REPEATED);
    assert_int_equal(look(again, 1001, 7), DP_PUSH_TOO_OLD);
    assert_int_equal(look(again, RUN(1000), 7), DP_PUSH_REPEATED);
    assert_int_equal(look(again, RUN(1001), 7), DP_PUSH_TOO_OLD);
    /* Replay restores the order as well: a number that is known already is a use. */
    assert_int_equal(dp_push_ids_restore(again, 1002, 7, DP_OK), DP_OK);
    assert_int_equal(dp_push_ids_restore(again, 5000001, 0, DP_OK), DP_OK);
    assert_int_equal(look(again, 1002, 7), DP_PUSH_REPEATED);
    assert_int_equal(look(again, 1003, 7), DP_PUSH_TOO_OLD);
    dp_push_ids_free(&again);
}

/* Format 2 had no floors; format 4 had pushes that the store has for some keys only. */
static void other_formats_are_refused_with_the_way_out(void **state)
{
    static const char *const way_out[] = {"start the last build of version 0.1.0",
                                          "start the version that wrote them"};
    for (unsigned char i = 0; i < 2; i++) {
        const unsigned char bytes[64] = {(unsigned char)(2 + 2 * i)};
        struct dp_push_ids *ids = start();
        struct dp_error err = {0};
        assert_int_equal(dp_push_ids_unpack(ids, bytes, sizeof bytes, &err), DP_UNSUPPORTED);
        assert_non_null(strstr(err.text, i ? "format 4" : "format 2"));
        assert_non_null(strstr(err.text, way_out[i]));
        dp_push_ids_free(&ids);
    }
}

/* Packed and unpacked it is the same memory, at any cut; a cut or changed copy is refused or consistent,
 * never read past. */
static void rests_in_bytes(void **state)
{
    struct dp_push_ids *ids, *again;
    struct dp_error err = {0};
    size_t size;
    assert_int_equal(dp_push_ids_new(&ids), DP_OK);
    static const uint64_t numbers[] = {0, 1, 2, 5, 63, 64, 65, 4000, 65538};
    for (uint64_t stream = 1; stream <= 3; stream++)
        for (size_t i = 0; i < sizeof numbers / sizeof numbers[0]; i++) {
            assert_int_equal(look(ids, stream, numbers[i]), DP_PUSH_NEW);
            put(ids, stream, numbers[i]);
        }
    char *bytes = dp_push_ids_pack(ids, &size);
    assert_non_null(bytes);
    assert_int_equal(dp_push_ids_new(&again), DP_OK);
    assert_int_equal(dp_push_ids_unpack(again, bytes, size, &err), DP_OK);
    for (uint64_t stream = 1; stream <= 3; stream++)
        for (uint64_t n = 0; n < 65541; n++)
            assert_int_equal(look(again, stream, n), look(ids, stream, n));
    dp_push_ids_free(&again);
    for (size_t cut = 0; cut < size; cut++) {
        char *part = malloc(cut + 1); /* its own block: a read past it is the sanitizer's */
        memcpy(part, bytes, cut);
        char *exact = realloc(part, cut ? cut : 1);
        assert_int_equal(dp_push_ids_new(&again), DP_OK);
        assert_int_equal(dp_push_ids_unpack(again, exact, cut, &err), DP_CORRUPT);
        dp_push_ids_free(&again);
        free(exact);
    }
    free(bytes);
    dp_push_ids_free(&ids);
}

static uint64_t draw(uint64_t *seed)
{
    *seed = *seed * 6364136223846793005u + 1442695040888963407u;
    return *seed >> 24;
}

/* Of one stream, bit by bit, what push_ids.h says that packing gives. */
static void expect_packed(struct dp_push_ids *ids, uint64_t stream, uint64_t low)
{
    static uint8_t want[28 + 24 + DP_PUSH_WINDOW / 8];
    size_t size = 0, last = 0;
    memset(want, 0, sizeof want);
    want[0] = 3; /* format */
    want[4] = 1; /* stream */
    for (uint32_t i = 0; i < 8; i++) {
        want[32 + i] = (uint8_t)(stream >> 8 * i);
        want[40 + i] = (uint8_t)(low >> 8 * i);
    }
    for (uint64_t n = 0; n < DP_PUSH_WINDOW; n++)
        if (look(ids, stream, low + n) == DP_PUSH_REPEATED) {
            want[52 + n / 8] |= (uint8_t)(1u << n % 8);
            last = n / 64 + 1;
        }
    want[48] = (uint8_t)last;
    want[49] = (uint8_t)(last >> 8);
    void *bytes = dp_push_ids_pack(ids, &size);
    assert_non_null(bytes);
    assert_int_equal(size, 52 + last * 8);
    assert_memory_equal(bytes, want, size);
    free(bytes);
}

/* Wherever the mark stands in a word, and wherever the numbers above it: next to it, at the windows' ends, anywhere. */
static void what_is_packed_is_what_was_used_up(void **state)
{
    static const uint64_t reach[] = {2, 64, 130, DP_PUSH_NARROW, DP_PUSH_NARROW + 70, DP_PUSH_WINDOW};
    uint64_t seed = 5;
    for (uint32_t round = 0; round < 60; round++) {
        struct dp_push_ids *ids = start();
        uint64_t low = round < 3 ? round * 63 : draw(&seed) % (2 * DP_PUSH_WINDOW),
                 last = reach[round % 6] - 1;
        for (uint64_t n = 0; n < low; n++)
            put(ids, 1, n);
        for (uint64_t i = draw(&seed) % 300; i > 0; i--) {
            uint64_t n = low + 1 + draw(&seed) % last;
            if (look(ids, 1, n) == DP_PUSH_NEW)
                put(ids, 1, n);
        }
        if (round % 2 && look(ids, 1, low + last) == DP_PUSH_NEW)
            put(ids, 1, low + last);
        expect_packed(ids, 1, low);
        put(ids, 1, low); /* the mark moves, as far as it goes */
        for (low++; look(ids, 1, low) == DP_PUSH_REPEATED; low++)
            continue;
        expect_packed(ids, 1, low);
        dp_push_ids_free(&ids);
    }
}

/* As many as there may be, of both kinds. */
static uint64_t many(uint64_t s)
{
    return s <= DP_PUSH_CLIENTS_MAX ? s : RUN(s % DP_PUSH_RUNS_MAX) + s / DP_PUSH_RUNS_MAX;
}

/* However many streams have numbers out of order: each may be DP_PUSH_NARROW ahead of one that is missing, DP_PUSH_WIDE_MAX may
 * be further; so what is packed has a bound. What was let in stays, over packing and replay too. */
static void few_streams_may_be_far_ahead(void **state)
{
    const uint64_t far = DP_PUSH_WINDOW - 1, near = DP_PUSH_NARROW - 1;
    struct dp_push_ids *ids = start(), *again = start();
    struct dp_error err = {0};
    size_t size;
    for (uint64_t s = 1; s <= DP_STREAMS_MAX; s++) {
        add(ids, many(s), near);
        if (s <= DP_PUSH_WIDE_MAX)
            add(ids, many(s), far);
        else
            assert_int_equal(reserve(ids, many(s), far), DP_PUSH_TOO_FAR);
    }
    assert_int_equal(reserve(ids, 900000, far), DP_PUSH_TOO_FAR); /* and nobody is forgotten for it */
    assert_int_equal(look(ids, 1, near), DP_PUSH_REPEATED);
    assert_int_equal(reserve(ids, 7, near + 1), DP_PUSH_ROOM); /* it is far ahead already */
    void *bytes = dp_push_ids_pack(ids, &size);
    assert_non_null(bytes);
    assert_true(size < 11u << 20);
    assert_int_equal(dp_push_ids_unpack(again, bytes, size, &err), DP_OK);
    free(bytes);
    assert_int_equal(dp_push_ids_restore(again, 900, far, DP_OK), DP_OK);
    assert_int_equal(look(again, 900, far), DP_PUSH_REPEATED);
    for (uint32_t i = 0; i < 2; i++) { /* two of them catch up: one makes up for what was restored */
        assert_int_equal(reserve(again, 901, far), DP_PUSH_TOO_FAR);
        for (uint64_t n = 0; n < far; n++)
            if (n != near)
                add(again, 1 + i, n);
    }
    add(again, 901, far);
    assert_int_equal(reserve(again, 902, far), DP_PUSH_TOO_FAR);
    for (uint64_t s = 1; s <= DP_STREAMS_MAX; s++)
        assert_int_equal(look(again, many(s), near), DP_PUSH_REPEATED);
    dp_push_ids_free(&ids);
    dp_push_ids_free(&again);
}

/* A refused number is used up, and known by its status until DP_REFUSED_MAX others were refused; packed too. */
static void refusals_are_remembered(void **state)
{
    struct dp_push_ids *ids = start(), *again = start();
    struct dp_error err = {0};
    enum dp_status status = DP_OK;
    size_t size;
    for (uint64_t n = 0; n < DP_REFUSED_MAX + 10; n++) {
        assert_int_equal(reserve(ids, 3, n), DP_PUSH_ROOM);
        dp_push_ids_add(ids, 3, n, DP_FULL);
    }
    void *bytes = dp_push_ids_pack(ids, &size);
    assert_int_equal(dp_push_ids_unpack(again, bytes, size, &err), DP_OK);
    free(bytes);
    for (uint64_t n = 0; n < DP_REFUSED_MAX + 10; n++) {
        assert_int_equal(dp_push_ids_look(again, 3, n, &status), n < 10 ? DP_PUSH_REPEATED : DP_PUSH_REFUSED);
        assert_int_equal(status, n < 10 ? DP_OK : DP_FULL);
    }
    assert_int_equal(look(again, 3, DP_REFUSED_MAX + 10), DP_PUSH_NEW);
    dp_push_ids_free(&ids);
    dp_push_ids_free(&again);
}

struct visited {
    struct dp_push_stream stream[2];
    uint32_t streams, refusals;
    uint64_t refused;
};

static void visit_stream(void *context, const struct dp_push_stream *stream)
{
    struct visited *visited = context;
    visited->stream[visited->streams++] = *stream;
}

static void visit_refused(void *context, uint64_t stream, uint64_t number, enum dp_status status)
{
    struct visited *visited = context;
    assert_true(stream == 4 && status == DP_NOT_FINITE);
    visited->refused = number;
    visited->refusals++;
}

static void what_is_remembered_can_be_visited(void **state)
{
    struct dp_push_ids *ids = start();
    struct visited visited = {0};
    put(ids, 4, 0);
    put(ids, 4, 3);
    put(ids, 4, 6); /* 1, 2, 4, 5 are holes */
    put(ids, TRAINING(9), 0);
    assert_int_equal(reserve(ids, 4, 7), DP_PUSH_ROOM);
    dp_push_ids_add(ids, 4, 7, DP_NOT_FINITE);
    dp_push_ids_visit(ids, visit_stream, visit_refused, &visited);
    assert_int_equal(visited.streams, 2);
    assert_true(visited.stream[0].stream == 4 && visited.stream[0].low == 1);
    assert_true(visited.stream[0].used_above == 3 && visited.stream[0].holes == 4);
    assert_true(visited.stream[1].stream == TRAINING(9) && visited.stream[1].low == 1);
    assert_true(visited.stream[1].used_above == 0 && visited.stream[1].holes == 0);
    assert_int_equal(visited.refusals, 1);
    assert_int_equal(visited.refused, 7);
    dp_push_ids_free(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(refusals_are_remembered),
        cmocka_unit_test(rests_in_bytes),
        cmocka_unit_test(what_is_packed_is_what_was_used_up),
        cmocka_unit_test(few_streams_may_be_far_ahead),
        cmocka_unit_test(it_agrees_with_a_naive_set),
        cmocka_unit_test(the_window_ends_where_it_ends),
        cmocka_unit_test(what_was_used_longest_ago_is_forgotten),
        cmocka_unit_test(a_flood_has_no_more_than_the_quota),
        cmocka_unit_test(a_run_of_many_epochs_forgets_its_own),
        cmocka_unit_test(what_was_forgotten_is_never_new),
        cmocka_unit_test(the_order_of_use_rests_in_bytes),
        cmocka_unit_test(other_formats_are_refused_with_the_way_out),
        cmocka_unit_test(what_is_remembered_can_be_visited),
    };
    return cmocka_run_group_tests_name("push_ids", tests, NULL, NULL);
}
