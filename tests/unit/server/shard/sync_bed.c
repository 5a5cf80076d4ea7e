#include "tests/unit/server/shard/sync_bed.h"

#include "common/base/bf16.h"
#include "common/model/init.h"
#include "common/model/mix.h"
#include "common/model/optimizer.h"
#include "common/model/row.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define TIMEOUT_MS 600000u
#define TURNS      500u /* sent again and again where the shard says AGAIN */

static uint64_t hash(uint64_t a, uint64_t b, uint64_t c)
{
    return dp_mix(dp_mix(dp_mix(a + 1) ^ (b + 77)) ^ (c + 999));
}

/* ---- what is pushed */

static uint64_t examples_of(uint32_t rank, uint64_t step)
{
    return step == 3 ? 0 : hash(rank, step, 5) % 7; /* step 3 weighs nothing */
}

static bool has_row(uint32_t rank, uint64_t step, uint32_t table, uint32_t key)
{
    if (step == 4 || hash(rank, step, 6) % 5 == 0) /* nobody has a row in step 4 */
        return false;
    return hash(rank, step, 100 + table * SYNC_KEYS + key) % 3 == 0;
}

static bool is_bf16(uint32_t rank, uint64_t step)
{
    return rank == 1 && step % 2 == 1;
}

static float rate_of(uint64_t step)
{
    return 0.125f + 0.01f * (float)step;
}

static void gradient_of(bool wild, const float *weights, uint32_t dim, uint32_t rank, uint64_t step,
                        uint32_t key, float *out)
{
    for (uint32_t d = 0; d < dim; d++)
        out[d] =
            0.3f * weights[d] + ((float)(hash(rank, step, 1000 + key * SYNC_DIM + d) % 2001) - 1000) / 777;
    for (uint32_t d = 0; d < dim && wild && key % 5 == 0; d++)
        out[d] = hash(rank, step, key) % 3 ? -3.3e38f : 3.3e38f;
    unsigned char halves[2 * SYNC_DIM];
    if (is_bf16(rank, step)) {
        dp_bf16_put(out, halves, dim);
        dp_bf16_get(halves, out, dim);
    }
}

/* ---- the plain loop */

static bool counts(const struct sync *s, uint32_t rank, uint64_t step)
{
    return step < s->until[rank] && s->counted[step] >> rank & 1;
}

uint64_t sync_examples(const struct sync *s, uint64_t steps)
{
    uint64_t all = 0;
    for (uint64_t step = 0; step < steps; step++)
        for (uint32_t rank = 0; rank < s->members; rank++)
            all += counts(s, rank, step) ? examples_of(rank, step) : 0;
    return all;
}

static bool sum_of(const struct sync *s, uint64_t step, uint32_t t, uint32_t key, float *sum)
{
    uint64_t all = 0;
    bool any = false;
    for (uint32_t rank = 0; rank < s->members; rank++)
        all += counts(s, rank, step) ? examples_of(rank, step) : 0;
    for (uint32_t rank = 0; rank < s->members && all > 0; rank++) {
        float gradient[SYNC_DIM], factor = (float)examples_of(rank, step) / (float)all;
        if (!counts(s, rank, step) || !has_row(rank, step, t, key))
            continue;
        gradient_of(s->wild, s->before[step][t][key], s->spec[t].dim, rank, step, key, gradient);
        for (uint32_t d = 0; d < s->spec[t].dim; d++) {
            float product = factor * gradient[d];
            sum[d] = any ? sum[d] + product : product;
        }
        any = true;
    }
    return any;
}

static void plain_loop(struct sync *s)
{
    struct dp_error err;
    for (uint32_t t = 0; t < SYNC_TABLES; t++) {
        struct dp_optimizer *optimizer = NULL;
        assert_int_equal(dp_optimizer_new(&s->spec[t], DP_FORM_BEST, &optimizer, &err), DP_OK);
        for (uint32_t key = 0; key < SYNC_KEYS; key++) {
            char row[256] __attribute__((aligned(16)));
            float sum[SYNC_DIM];
            dp_init_row(&s->spec[t], dp_unmix(s->mixed[key]), row);
            for (uint64_t step = 0; step <= s->steps; step++) {
                memcpy(s->before[step][t][key], dp_row_weights(row), s->spec[t].dim * 4);
                if (step < s->steps && sum_of(s, step, t, key, sum))
                    s->bounded += dp_optimizer_apply(optimizer, row, sum, rate_of(step));
            }
        }
        dp_optimizer_free(&optimizer);
    }
}

void sync_go_wild(struct sync *s)
{
    s->wild = true;
    s->bounded = 0;
    plain_loop(s);
}

/* ---- opening */

static void meet(struct sync *s, uint64_t session)
{
    bed_expect(&s->bed, bed_hello(&s->bed, session, 1, false), DP_OK);
}

static void make_tables(struct sync *s)
{
    meet(s, 1);
    for (uint32_t t = 0; t < SYNC_TABLES; t++)
        bed_make_table(&s->bed, 1, t + 1, &s->spec[t]);
    s->sequence = SYNC_TABLES + 1;
}

struct sync *sync_new(uint32_t members, uint64_t steps, uint64_t seed, enum dp_durability durability,
                      uint64_t cache_bytes)
{
    struct sync *s = calloc(1, sizeof *s);
    assert_non_null(s);
    assert_true(members <= SYNC_MEMBERS && steps <= SYNC_STEPS);
    s->members = members;
    s->steps = steps;
    bed_init(&s->bed, 16);
    s->bed.seed = seed;
    s->bed.timeout_ms = TIMEOUT_MS;
    if (cache_bytes)
        s->bed.host.options.cache_bytes = cache_bytes;
    shard_bed_journal(&s->bed.host, dp_sim_disk_new(seed), durability, 64u << 10, 512u << 10);
    s->view = member_bed_view(DP_SYNC, 0, members);
    for (uint32_t rank = 0; rank < members; rank++)
        s->until[rank] = UINT64_MAX;
    for (uint64_t step = 0; step < SYNC_STEPS; step++)
        s->counted[step] = UINT32_MAX;
    s->spec[0] =
        (struct dp_table_spec){.name = "a", .dim = 3, .optimizer = dp_optimizer_defaults(DP_OPT_ADAM)};
    s->spec[1] = bed_sgd("s", 2);
    bed_keys(&s->bed, 1, SYNC_KEYS, s->mixed);
    plain_loop(s);
    bed_open_shard(&s->bed);
    make_tables(s);
    return s;
}

struct sync *sync_new_with_backups(uint32_t members, uint32_t backups, uint64_t steps, uint64_t seed,
                                   enum dp_durability durability)
{
    struct sync *s = sync_new(members, steps, seed, durability, 0);
    s->backups = s->view.view.slack = backups;
    return s;
}

void sync_free(struct sync *s)
{
    if (s->bed.host.shard)
        shard_bed_close(&s->bed.host);
    bed_clear(&s->bed);
    free(s);
}

void sync_view(struct sync *s)
{
    uint64_t id = member_bed_put(&s->bed, &s->view);
    if (!dp_sim_disk_is_off(s->bed.host.sim))
        bed_expect(&s->bed, id, DP_OK);
}

/* ---- requests */

static struct dp_membership member_of(const struct sync *s, uint32_t rank, uint64_t step)
{
    struct dp_membership member = member_bed_member(rank, step);
    member.view = s->view.view.number;
    return member;
}

static uint64_t pull_all(struct sync *s, uint64_t session, uint64_t sequence, struct dp_membership member)
{
    struct dp_request request = {.kind = DP_REQUEST_PULL,
                                 .session = session,
                                 .sequence = sequence,
                                 .member = member,
                                 .sections = SYNC_TABLES};
    struct dp_frame frames[SYNC_TABLES];
    for (uint32_t t = 0; t < SYNC_TABLES; t++) {
        request.section[t] = (struct dp_section){.table = dp_table_id(s->spec[t].name), .rows = SYNC_KEYS};
        frames[t] = dp_frame_copy(s->mixed, sizeof s->mixed);
    }
    return bed_send(&s->bed, &request, frames, SYNC_TABLES);
}

uint64_t sync_pull(struct sync *s, uint32_t rank)
{
    struct sync_member *member = &s->member[rank];
    return pull_all(s, 2 + rank, member->sequence, member_of(s, rank, member->step));
}

uint64_t sync_push_with(struct sync *s, uint32_t rank, uint64_t number, float rate, uint64_t step)
{
    struct sync_member *member = &s->member[rank];
    struct dp_request request = {.kind = DP_REQUEST_PUSH,
                                 .session = 2 + rank,
                                 .sequence = member->sequence,
                                 .member = member_of(s, rank, step),
                                 .stream = MEMBER_BED_STREAM,
                                 .number = number,
                                 .rate = rate};
    struct dp_frame frames[2 * SYNC_TABLES];
    request.examples = request.member.examples = examples_of(rank, member->step);
    for (uint32_t t = 0; t < SYNC_TABLES; t++) {
        struct dp_frame keys = dp_frame_new(sizeof s->mixed), values = dp_frame_new(SYNC_KEYS * SYNC_DIM * 4);
        uint32_t rows = 0, dim = s->spec[t].dim;
        enum dp_value_type type = is_bf16(rank, member->step) ? DP_BF16 : DP_F32;
        size_t bytes = dim * dp_value_bytes(type);
        for (uint32_t key = 0; key < SYNC_KEYS; key++) {
            float gradient[SYNC_DIM];
            if (!has_row(rank, member->step, t, key))
                continue;
            gradient_of(s->wild, member->weights[t][key], dim, rank, member->step, key, gradient);
            memcpy((char *)keys.data + (size_t)rows * 8, &s->mixed[key], 8);
            if (type == DP_BF16)
                dp_bf16_put(gradient, (char *)values.data + rows * bytes, dim);
            else
                memcpy((char *)values.data + rows * bytes, gradient, bytes);
            rows++;
        }
        keys.size = (size_t)rows * 8;
        values.size = rows * bytes;
        request.section[t] =
            (struct dp_section){.table = dp_table_id(s->spec[t].name), .rows = rows, .type = type};
        frames[2 * t] = keys;
        frames[2 * t + 1] = values;
    }
    request.sections = SYNC_TABLES;
    return bed_send(&s->bed, &request, frames, 2 * SYNC_TABLES);
}

uint64_t sync_push(struct sync *s, uint32_t rank)
{
    uint64_t step = s->member[rank].step;
    return sync_push_with(s, rank, step * s->members + rank, rate_of(step), step);
}

uint64_t sync_push_empty(struct sync *s, uint32_t rank)
{
    struct sync_member *member = &s->member[rank];
    struct dp_request request = {.kind = DP_REQUEST_PUSH,
                                 .session = 2 + rank,
                                 .sequence = member->sequence,
                                 .member = member_of(s, rank, member->step),
                                 .stream = MEMBER_BED_STREAM,
                                 .number = member->step * s->members + rank,
                                 .rate = rate_of(member->step)};
    return bed_send(&s->bed, &request, NULL, 0);
}

const struct bed_reply *sync_reply(const struct sync *s, uint64_t id)
{
    const struct bed *bed = &s->bed;
    const struct bed_reply *last = NULL;
    for (uint32_t i = bed->replies > BED_REPLIES ? bed->replies - BED_REPLIES : 0; i < bed->replies; i++)
        if (bed->reply[i % BED_REPLIES].reply.id == id && bed->reply[i % BED_REPLIES].reply.status != DP_HELD)
            last = &bed->reply[i % BED_REPLIES];
    return last;
}

static void unpack(const struct sync *s, const struct bed_reply *reply, sync_weights out)
{
    size_t at = 0;
    memset(out, 0, sizeof(sync_weights));
    for (uint32_t t = 0; t < SYNC_TABLES; t++)
        for (uint32_t key = 0; key < SYNC_KEYS; key++, at += s->spec[t].dim)
            memcpy(out[t][key], reply->value + at, s->spec[t].dim * 4);
    assert_int_equal(at, reply->values);
}

static bool is_same(const struct sync *s, sync_weights weights, uint64_t step)
{
    for (uint32_t t = 0; t < SYNC_TABLES; t++)
        for (uint32_t key = 0; key < SYNC_KEYS; key++)
            if (memcmp(weights[t][key], s->before[step][t][key], s->spec[t].dim * 4) != 0)
                return false;
    return true;
}

/* Which members the step before this one took, whose weights are seen for the first time. */
static void find_counted(struct sync *s, sync_weights weights, uint64_t step)
{
    uint64_t last = step - 1;
    uint32_t part = 0;
    for (uint32_t rank = 0; rank < s->members; rank++)
        part |= (uint32_t)(last < s->until[rank]) << rank;
    int least = __builtin_popcount(part) - (int)s->backups;
    if (last != s->known)
        bed_fail(&s->bed, "crash %u: step %llu is shown, and step %llu never was", s->crashes,
                 (unsigned long long)step, (unsigned long long)last);
    for (uint32_t set = 1; set < 1u << s->members; set++) {
        if ((set & ~part) || (s->kept[last] & ~set) || (s->dropped[last] & set) ||
            __builtin_popcount(set) < (least > 1 ? least : 1))
            continue;
        s->counted[last] = set;
        plain_loop(s);
        if (is_same(s, weights, step)) {
            s->known = step;
            return;
        }
    }
    bed_fail(&s->bed, "step %llu, crash %u: no members' pushes make these weights", (unsigned long long)step,
             s->crashes);
}

void sync_same(struct sync *s, const struct bed_reply *reply, uint64_t step)
{
    sync_weights weights;
    unpack(s, reply, weights);
    if (s->backups > 0 && step > s->known)
        find_counted(s, weights, step);
    for (uint32_t t = 0; t < SYNC_TABLES; t++)
        for (uint32_t key = 0; key < SYNC_KEYS; key++)
            if (memcmp(weights[t][key], s->before[step][t][key], s->spec[t].dim * 4) != 0)
                bed_fail(&s->bed, "step %llu, crash %u: table %u, key %u is %.9g, and not %.9g",
                         (unsigned long long)step, s->crashes, t, key, (double)weights[t][key][0],
                         (double)s->before[step][t][key][0]);
}

/* ---- members */

/* Whether its push counts is known now, unless the answer is to a copy. */
static void pushed(struct sync *s, uint32_t rank, const struct dp_reply *reply)
{
    uint64_t step = s->member[rank].step;
    assert_true(!reply->dropped || s->backups > 0);
    if (!reply->repeated)
        *(reply->dropped ? &s->dropped[step] : &s->kept[step]) |= 1u << rank;
    if (step >= s->known ||
        ((s->kept[step] & ~s->counted[step]) == 0 && (s->dropped[step] & s->counted[step]) == 0))
        return;
    uint64_t known = s->known; /* others gave the same sum: there must be a set that fits the answers, too */
    sync_weights weights;
    memcpy(weights, s->before[step + 1], sizeof weights);
    s->known = step;
    find_counted(s, weights, step + 1);
    s->known = known;
}

static void go_on(struct sync *s, uint32_t rank, const struct bed_reply *reply)
{
    struct sync_member *member = &s->member[rank];
    member->id = 0;
    switch (reply->reply.status) {
    case DP_OK:
        member->sequence++;
        if (member->step < member->open) {
            assert_true(reply->reply.dropped || reply->reply.repeated);
            member->step++;
            break;
        }
        if (member->pulled) {
            pushed(s, rank, &reply->reply);
            member->step++;
        } else if (s->backups > 0 && reply->reply.open > member->step) {
            sync_same(s, reply, reply->reply.open);
            member->open = reply->reply.open;
            break;
        } else {
            assert_int_equal(reply->reply.open, member->step);
            sync_same(s, reply, member->step);
            unpack(s, reply, member->weights);
        }
        member->pulled = !member->pulled;
        break;
    case DP_AGAIN:
        if (reply->reply.wait.reason == DP_WAIT_VIEW)
            sync_view(s);
        break;
    case DP_TIMEOUT:
        break;
    default:
        bed_fail(&s->bed, "member %u, step %llu: %s", rank, (unsigned long long)member->step,
                 reply->reply.reason);
    }
}

static bool move(struct sync *s, uint32_t rank, uint64_t steps)
{
    struct sync_member *member = &s->member[rank];
    const struct bed_reply *reply = member->id ? sync_reply(s, member->id) : NULL;
    bool moved = false;
    if (!member->met) {
        meet(s, 2 + rank);
        member->met = true;
        member->sequence = 1;
    }
    if (reply) {
        go_on(s, rank, reply);
        moved = true;
    }
    if (member->id == 0 && member->step < steps && member->step < s->until[rank]) {
        member->id = member->step < member->open ? sync_push_empty(s, rank)
                     : member->pulled            ? sync_push(s, rank)
                                                 : sync_pull(s, rank);
        moved = true;
    }
    return moved;
}

static bool turn(struct sync *s)
{
    s->bed.now_ns += 20000000;
    for (uint32_t i = 0; i < 10000 && dp_shard_turn(s->bed.host.shard); i++)
        if (i == 9999)
            bed_fail(&s->bed, "it has work for ever, crash %u", s->crashes);
    return !dp_sim_disk_is_off(s->bed.host.sim);
}

void sync_let(struct sync *s, uint32_t members, uint64_t steps)
{
    for (uint32_t rests = 0, turns = 0; rests < 5 && turns < TURNS; turns++) {
        bool moved = false;
        for (uint32_t rank = 0; rank < s->members; rank++)
            if (members >> rank & 1)
                moved = move(s, rank, steps) || moved;
        rests = moved ? 0 : rests + 1;
        if (!turn(s))
            break;
    }
    for (uint32_t rank = 0; rank < s->members; rank++) { /* what was answered last is a promise */
        const struct bed_reply *reply = s->member[rank].id ? sync_reply(s, s->member[rank].id) : NULL;
        if (reply && reply->reply.status == DP_OK)
            go_on(s, rank, reply);
    }
}

void sync_train(struct sync *s, uint64_t steps)
{
    sync_let(s, (1u << s->members) - 1, steps);
    for (uint32_t rank = 0; rank < s->members && !dp_sim_disk_is_off(s->bed.host.sim); rank++)
        if (s->member[rank].step != (steps < s->until[rank] ? steps : s->until[rank]))
            bed_fail(&s->bed, "member %u stands at step %llu, crash %u", rank,
                     (unsigned long long)s->member[rank].step, s->crashes);
}

static void begin_again(struct sync *s, bool with_workers)
{
    struct dp_error err = {0};
    if (shard_bed_open(&s->bed.host, &err) != DP_OK)
        bed_fail(&s->bed, "crash %u: %s", s->crashes, err.text);
    for (uint32_t rank = 0; rank < s->members; rank++) {
        s->member[rank].met = false;
        s->member[rank].id = 0;
        s->member[rank].pulled = s->member[rank].pulled && !with_workers;
    }
    meet(s, 1);
    s->sequence = 1;
}

/* A shard that only reads closes nothing: it shows what is durable. */
static void look_at_what_is_durable(struct sync *s)
{
    s->bed.host.options.read_only = true;
    begin_again(s, false);
    uint64_t id = pull_all(s, 1, s->sequence++, (struct dp_membership){0});
    for (uint32_t i = 0; i < 10; i++)
        bed_turn(&s->bed);
    const struct dp_reply *reply = &bed_expect(&s->bed, id, DP_OK)->reply;
    if (reply->open < s->known)
        bed_fail(&s->bed, "crash %u: step %llu was shown, and step %llu is open after it", s->crashes,
                 (unsigned long long)s->known, (unsigned long long)reply->open);
    shard_bed_close(&s->bed.host);
    s->bed.host.options.read_only = false;
}

void sync_crash(struct sync *s, enum dp_sim_survival survival, bool with_workers)
{
    s->crashes++;
    if (survival != DP_SIM_PROCESS)
        shard_bed_cut(&s->bed.host);
    dp_sim_disk_cut_at(s->bed.host.sim, 0);
    shard_bed_close(&s->bed.host);
    dp_sim_disk_restart(s->bed.host.sim, survival);
    s->bed.host.options.recovers = true;
    if (s->known > 0 && !s->holds_reads)
        look_at_what_is_durable(s);
    begin_again(s, with_workers);
}

bool sync_restart(struct sync *s)
{
    struct dp_error err = {0};
    if (bed_drain(&s->bed, &err) != DP_OK)
        bed_fail(&s->bed, "%s", err.text);
    bool keeps = dp_shard_keeps_journal(s->bed.host.shard);
    if (!keeps)
        assert_int_equal(dp_shard_end_journal(s->bed.host.shard, &err), DP_OK);
    shard_bed_close(&s->bed.host);
    s->bed.host.options.recovers = keeps;
    begin_again(s, false);
    return keeps;
}

void sync_fill(struct sync *s)
{
    static uint64_t keys[3000];
    bed_keys(&s->bed, 1000, 3000, keys);
    for (uint64_t i = 0; i < 3; i++) {
        uint64_t id = bed_push(&s->bed, 1, s->sequence++, "s", keys + i * 1000, 1000, 2, 1, MEMBER_BED_STREAM,
                               60000 + i);
        bed_turn(&s->bed);
        bed_expect(&s->bed, id, DP_OK);
    }
}

void sync_will_leave(struct sync *s, uint32_t rank, uint64_t until)
{
    s->until[rank] = until;
    plain_loop(s);
}

void sync_leave(struct sync *s)
{
    s->view.view.number++;
    for (uint32_t rank = 0; rank < s->members; rank++)
        s->view.member[rank].until = s->member[rank].step;
    sync_view(s);
}

void sync_check(struct sync *s, uint64_t step)
{
    uint64_t id = pull_all(s, 1, s->sequence++, (struct dp_membership){0});
    for (uint32_t i = 0; i < 10; i++)
        bed_turn(&s->bed);
    sync_same(s, bed_expect(&s->bed, id, DP_OK), step);
}

struct sync *sync_gathered(uint32_t members, uint32_t backups, uint64_t step)
{
    struct sync *s = sync_new_with_backups(members, backups, SYNC_STEPS, 3, DP_DURABILITY_MACHINE);
    uint64_t id[SYNC_MEMBERS];
    sync_fill(s);
    sync_train(s, step);
    s->bed.now_ns += UINT64_C(31000000000);
    bed_turn(&s->bed);
    for (uint32_t rank = 0; rank < members; rank++) {
        id[rank] = sync_pull(s, rank);
        s->member[rank].sequence++;
    }
    bed_turn(&s->bed);
    for (uint32_t rank = 0; rank < members; rank++) {
        sync_same(s, sync_reply(s, id[rank]), step);
        memcpy(s->member[rank].weights, s->before[step], sizeof(sync_weights));
    }
    for (uint32_t rank = 0; rank < members - backups; rank++)
        id[rank] = sync_push(s, rank);
    (void)bed_one_turn(&s->bed);
    for (uint32_t rank = 0; rank < members - backups; rank++) {
        bed_expect(&s->bed, id[rank], DP_OK); /* so all are durable */
        s->kept[step] |= 1u << rank;
        s->member[rank].step++;
    }
    assert_int_equal(bed_counter(&s->bed, "steps_closed"), step);
    dp_fake_store_hold(s->bed.fake, s->holds_reads = true);
    sync_crash(s, DP_SIM_NOTHING, false);
    return s;
}
