/* Register names: each value that the product keeps, set as its owner sets it, and then with each byte pattern that a
 * stranger may send: junk, cut short, older, newer, absurd fields, by one who may not. */
#include "server/control/register_names.h"

#include "tests/lib/test.h"

#include "common/base/bytes.h"
#include "common/model/stream.h"
#include "common/wire/address.h"
#include "common/wire/view.h"
#include "server/control/stores.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { SHARDS = 2, RUN = 7 };
#define NOW_S (DP_RUNS_SINCE_S + 1000)

struct value {
    char bytes[4096];
    size_t size;
};

/* Sets `name` after `before` (version `version`; NULL: 0). */
static enum dp_status set_as(uint32_t server_shard, const char *name, uint64_t version,
                             const struct value *before, const struct value *is, struct dp_error *err)
{
    const struct dp_control_names_rules rules = {.wall_s = NOW_S, .shards = SHARDS};
    struct dp_control_names_set set = {.name = name,
                                       .server_shard = server_shard,
                                       .expected = version,
                                       .before = before ? before->bytes : NULL,
                                       .before_size = before ? before->size : 0,
                                       .bytes = is->bytes,
                                       .size = is->size};
    *err = (struct dp_error){0};
    return dp_control_names_check(&rules, &set, err);
}

static void takes(uint32_t server_shard, const char *name, uint64_t version, const struct value *before,
                  const struct value *is)
{
    struct dp_error err;
    if (set_as(server_shard, name, version, before, is, &err) != DP_OK)
        fail_msg("%s", err.text);
}

/* By a reason that names the value and `what`. */
static void refuses(uint32_t server_shard, const char *name, uint64_t version, const struct value *before,
                    const struct value *is, const char *what)
{
    struct dp_error err;
    if (set_as(server_shard, name, version, before, is, &err) != DP_INVALID)
        fail_msg("'%s' was taken; expected a refusal that says '%s'", name, what);
    if (!strstr(err.text, name) || !strstr(err.text, what))
        fail_msg("'%s' says neither '%s' nor '%s'", err.text, name, what);
}

static struct value text_value(const char *text)
{
    struct value v = {.size = strlen(text)};
    memcpy(v.bytes, text, v.size);
    return v;
}

/* Bytes that no value of a name in the table has. */
static void refuses_junk(uint32_t server_shard, const char *name, uint64_t version,
                         const struct value *before, const struct value *good)
{
    struct dp_error err;
    struct value junk = {.size = 0};
    assert_int_equal(set_as(server_shard, name, version, before, &junk, &err), DP_INVALID);
    for (junk.size = 1; junk.size <= 64; junk.size++)
        for (int byte = 0; byte < 256; byte += 51) {
            memset(junk.bytes, byte, junk.size);
            assert_int_equal(set_as(server_shard, name, version, before, &junk, &err), DP_INVALID);
        }
    for (junk = *good; junk.size-- > 0;)
        assert_int_equal(set_as(server_shard, name, version, before, &junk, &err), DP_INVALID);
    junk = *good;
    junk.size += 1;
    junk.bytes[good->size] = 'x';
    assert_int_equal(set_as(server_shard, name, version, before, &junk, &err), DP_INVALID);
}

/* ---- stores, generation */

static struct value stores_value(uint32_t shards, uint64_t id0, uint64_t opening0, uint64_t id1,
                                 uint64_t opening1)
{
    struct value v = {.size = 8 + (size_t)16 * shards};
    const uint64_t numbers[] = {id0, opening0, id1, opening1, 0, 0, 0, 0};
    dp_store_u32le(v.bytes, 1);
    dp_store_u32le(v.bytes + 4, shards);
    for (size_t i = 0; i < (size_t)2 * shards; i++)
        dp_store_u64le(v.bytes + 8 + 8 * i, numbers[i]);
    return v;
}

static void addresses_are_set_by_their_servers(void **state)
{
    const struct dp_address address = {.host = "10.0.0.2", .ports = 3, .port = {5, 6, 7}};
    struct value v, cut;
    v.size = dp_address_encode(&address, v.bytes);
    takes(3, "address/2", 0, NULL, &v);
    takes(3, "address/2", 1, &v, &v);
    refuses(0, "address/2", 0, NULL, &v, "only servers set this value");
    refuses(1, "address/2", 1, &v, &v, "the server of shard 0 sets 'address/0' only");
    refuses(3, "address/02", 0, NULL, &v, "sets 'address/2' only");
    refuses(3, "address/", 0, NULL, &v, "sets 'address/2' only");
    cut = v;
    cut.size = 14;
    refuses(3, "address/2", 1, &v, &cut, "expected a host");
    assert_false(dp_control_names_is_kept("address/2"));
}

static void stores_are_set_by_their_servers(void **state)
{
    const struct value first = stores_value(2, 11, 12, 0, 0), both = stores_value(2, 11, 12, 21, 22),
                       reopened = stores_value(2, 11, 13, 21, 22);
    takes(1, "stores", 0, NULL, &first);
    takes(2, "stores", 1, &first, &both);
    takes(1, "stores", 2, &both, &reopened);
    takes(2, "stores", 3, &reopened, &reopened);
    refuses(0, "stores", 0, NULL, &first, "only servers set this value");
    refuses(0, "stores", 1, &first, &both, "only servers set this value");
    refuses(1, "stores", 1, &first, &both, "shard 0 changes the store of shard 1");
    refuses(2, "stores", 2, &both, &reopened, "shard 1 changes the store of shard 0");
    refuses(2, "stores", 0, NULL, &both, "changes the store of shard 0");
    refuses(3, "stores", 1, &first, &first, "shard 2 of 2");
    refuses_junk(1, "stores", 0, NULL, &first);
    refuses_junk(1, "stores", 1, &both, &reopened);
    struct value v = stores_value(2, 11, 0, 0, 0);
    refuses(1, "stores", 0, NULL, &v, "opening 0000000000000000");
    v = stores_value(2, 0, 0, 21, 22); /* a place is not given up */
    refuses(1, "stores", 2, &both, &v, "id 0000000000000000");
    v = first;
    dp_store_u32le(v.bytes, 2); /* a later format */
    refuses(1, "stores", 0, NULL, &v, "format 1");
    v = stores_value(3, 11, 12, 0, 0);
    refuses(1, "stores", 1, &first, &v, "3 shards");
    v = first;
    dp_store_u32le(v.bytes + 4, UINT32_MAX);
    refuses(1, "stores", 0, NULL, &v, "do not fit");
    const struct value generation = {.size = 16};
    refuses(0, "generation", 0, NULL, &generation, "only the first server itself");
    refuses(1, "generation", 0, NULL, &generation, "only the first server itself");
    refuses(1, "run/7/view", 0, NULL, &generation, "servers do not set this value");
    refuses(1, "mine", 0, NULL, &generation, "servers do not set this value");
}

/* What a build before this check accepted: a server that was told to writes its own place over it. */
static void unreadable_stores_are_written_anew(void **state)
{
    const struct value junk = text_value("0123456789abcdef"), other = stores_value(3, 1, 2, 3, 4),
                       own = stores_value(2, 0, 0, 21, 22), both = stores_value(2, 11, 12, 21, 22);
    takes(2, "stores", 5, &junk, &own);
    takes(2, "stores", 5, &other, &own);
    refuses(2, "stores", 5, &junk, &both, "changes the store of shard 0");
}

/* ---- names of runs, and others */

static void run_numbers_are_those_that_can_be_chosen(void **state)
{
    const struct value free_form = text_value("anything");
    struct dp_error err;
    char name[64];
    const uint64_t last = dp_run_last(NOW_S);
    takes(0, "mine", 0, NULL, &free_form);
    takes(0, "mine", 4, &free_form, &free_form);
    takes(0, "run/7/mine", 0, NULL, &free_form);
    takes(0, "run/0/view", 0, NULL, &free_form); /* no run: nothing reads it */
    takes(0, "run/07/view", 0, NULL, &free_form);
    takes(0, "stores/", 0, NULL, &free_form);
    (void)snprintf(name, sizeof name, "run/%u/mine", (unsigned)last);
    takes(0, name, 0, NULL, &free_form);
    (void)snprintf(name, sizeof name, "run/%u/mine", (unsigned)last + DP_RUN_SOON_S);
    assert_int_equal(set_as(0, name, 0, NULL, &free_form, &err), DP_AGAIN);
    (void)snprintf(name, sizeof name, "run/%u/mine", (unsigned)last + DP_RUN_SOON_S + 1);
    refuses(0, name, 0, NULL, &free_form, "accepts new runs up to 87400");
    refuses(0, "run/28000000/view", 0, NULL, &free_form, "accepts new runs up to 87400");
    refuses(0, "run/4294967295/plan", 0, NULL, &free_form, "accepts new runs up to 87400");
}

/* ---- run/N/view */

struct members {
    struct dp_member of[3];
};

static struct value view_value(uint64_t number, const struct members *members)
{
    struct members copy = *members;
    const struct dp_view view = {.run = RUN,
                                 .number = number,
                                 .mode = DP_SYNC,
                                 .slack = 1,
                                 .first_step = 10,
                                 .members = 3,
                                 .member = copy.of};
    struct value v = {.size = dp_view_bytes(&view)};
    dp_view_pack(&view, v.bytes);
    return v;
}

static struct members all_from(uint64_t step)
{
    struct members m;
    for (int i = 0; i < 3; i++)
        m.of[i] = (struct dp_member){.until = UINT64_MAX, .from = step};
    return m;
}

static void a_view_changes_one_seat(void **state)
{
    struct members m = all_from(10), bad;
    m.of[0].incarnation = 5;
    struct value was = view_value(1, &m), is;
    takes(0, "run/7/view", 0, NULL, &was);
    refuses_junk(0, "run/7/view", 0, NULL, &was);
    m.of[2].incarnation = 6; /* joins */
    is = view_value(2, &m);
    takes(0, "run/7/view", 1, &was, &is);
    refuses_junk(0, "run/7/view", 1, &was, &is);
    refuses(0, "run/8/view", 1, &was, &is, "run 7, number 2, expected 8");
    refuses(0, "run/7/view", 3, &was, &is, "number 2, expected 7 and 4"); /* an older one */
    was = is;
    m.of[2].incarnation = 7; /* another process takes the place */
    m.of[2].until = 30;      /* and leaves */
    is = view_value(3, &m);
    takes(0, "run/7/view", 2, &was, &is);
    was = is;
    m.of[2] =
        (struct dp_member){.incarnation = 8, .until = UINT64_MAX, .from = 35, .missed = 5}; /* returns */
    is = view_value(4, &m);
    takes(0, "run/7/view", 3, &was, &is);
    bad = m;
    bad.of[2].missed = 6;
    is = view_value(4, &bad);
    refuses(0, "run/7/view", 3, &was, &is, "missed 6 steps, after 0");
    bad = m;
    bad.of[2].from = 29, bad.of[2].missed = 0;
    is = view_value(4, &bad);
    refuses(0, "run/7/view", 3, &was, &is, "returns from step 29 on, expected 30");
    bad = m;
    bad.of[2].from = (uint64_t)1 << 63, bad.of[2].missed = bad.of[2].from - 30;
    is = view_value(4, &bad);
    refuses(0, "run/7/view", 3, &was, &is, "which no run comes to");
    is = view_value(4, &m);
    was = is;
    m.of[2].from = 50, m.of[2].missed += 15; /* moved further */
    is = view_value(5, &m);
    takes(0, "run/7/view", 4, &was, &is);
    was = is;
    struct {
        uint32_t rank;
        struct dp_member member;
        const char *says;
    } cases[] = {
        {0, {0, UINT64_MAX, 10, 0}, "incarnation 0"},
        {0, {5, 9, 10, 0}, "leaves before step 9"},
        {0, {5, (uint64_t)1 << 63, 10, 0}, "which no run comes to"},
        {0, {5, UINT64_MAX, 10, 1}, "missed 1 steps"},
        {0, {5, 20, 11, 1}, "no end"},
        {2, {8, UINT64_MAX, 49, 20}, "returns from step 49 on"},
        {2, {8, UINT64_MAX, 50, 0}, "missed 0 steps"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        bad = m;
        bad.of[cases[i].rank] = cases[i].member;
        is = view_value(6, &bad);
        refuses(0, "run/7/view", 5, &was, &is, cases[i].says);
    }
    bad = m;
    bad.of[0].incarnation = bad.of[1].incarnation = 99;
    is = view_value(6, &bad);
    refuses(0, "run/7/view", 5, &was, &is, "more than one worker changes");
}

static void a_view_keeps_what_its_run_began_with(void **state)
{
    struct members m = all_from(10), bad;
    m.of[0].incarnation = 5;
    struct value was = view_value(1, &m), is = view_value(2, &m);
    static const struct {
        size_t at;
        uint32_t value;
        const char *says;
    } fields[] = {
        {0, 3, "format 3"},
        {4, 8, "run 8"},
        {8, 9, "number 9"},
        {16, 9, "mode 9"},
        {16, DP_SSP, "do not change"},
        {20, 0, "do not change"},
        {20, 3, "backup members"},
        {24, 9, "do not change"},
        {32, 1025, "1025 members"},
        {32, UINT32_MAX, "members"},
    };
    for (size_t i = 0; i < sizeof fields / sizeof fields[0]; i++) {
        struct value v = is;
        dp_store_u32le(v.bytes + fields[i].at, fields[i].value);
        refuses(0, "run/7/view", 1, &was, &v, fields[i].says);
    }
    /* The first one. */
    bad = all_from(10);
    is = view_value(1, &bad);
    refuses(0, "run/7/view", 0, NULL, &is, "0 workers joined");
    bad.of[0].incarnation = bad.of[1].incarnation = 5;
    is = view_value(1, &bad);
    refuses(0, "run/7/view", 0, NULL, &is, "2 workers joined");
    bad = m;
    bad.of[1].until = 20;
    is = view_value(1, &bad);
    refuses(0, "run/7/view", 0, NULL, &is, "worker 1 has left or missed steps");
    bad = m;
    bad.of[2].from = 11;
    is = view_value(1, &bad);
    refuses(0, "run/7/view", 0, NULL, &is, "worker 2 has left or missed steps");
    /* After one that an older build accepted. */
    const struct value junk = text_value("junk");
    is = view_value(2, &m);
    refuses(0, "run/7/view", 1, &junk, &is, "train under a higher run number");
}

/* ---- run/N/plan */

static struct value plan_value(const char *text, uint64_t process0, uint64_t process1, bool begun)
{
    struct value v = text_value(text);
    v.size++;
    dp_store_u64le(v.bytes + v.size, process0);
    dp_store_u64le(v.bytes + v.size + 8, process1);
    v.size += 16;
    v.bytes[v.size++] = begun;
    return v;
}

static void a_plan_is_joined_and_begun(void **state)
{
    const char *text = "model a\nworkers 2\n", *other = "model b\nworkers 2\n";
    const struct value first = plan_value(text, 5, 0, false), both = plan_value(text, 5, 6, false),
                       begun = plan_value(text, 5, 6, true), again = plan_value(text, 8, 6, true),
                       replaces = plan_value(other, 0, 6, false), two = plan_value(other, 5, 6, false),
                       joined = plan_value(text, 0, 6, false), others_begun = plan_value(other, 0, 6, true),
                       lost = plan_value(text, 5, 6, false);
    takes(0, "run/7/plan", 0, NULL, &first);
    takes(0, "run/7/plan", 1, &first, &both);
    takes(0, "run/7/plan", 2, &both, &replaces); /* nothing was begun */
    takes(0, "run/7/plan", 2, &both, &begun);
    takes(0, "run/7/plan", 3, &begun, &again);
    refuses(0, "run/7/plan", 0, NULL, &begun, "begun: 1, expected 0");
    refuses(0, "run/7/plan", 0, NULL, &two, "2 workers join at once");
    refuses(0, "run/7/plan", 1, &first, &two, "2 workers join at once");
    refuses(0, "run/7/plan", 2, &both, &others_begun, "begun: 1, expected 0");
    refuses(0, "run/7/plan", 3, &begun, &lost, "begun: 0, expected 1");
    refuses(0, "run/7/plan", 3, &begun, &replaces, "a worker has begun by other settings");
    struct value v = begun;
    memmove(v.bytes + v.size + 7, v.bytes + v.size - 1, 1); /* a place more */
    memset(v.bytes + v.size - 1, 0, 8);
    v.size += 8;
    refuses(0, "run/7/plan", 3, &begun, &v, "3 workers, expected 2");
    v = plan_value(text, 0, 6, false);
    v.bytes[v.size - 1] = 2;
    refuses(0, "run/7/plan", 0, NULL, &v, "a last one of 0 or 1");
    v = first;
    v.bytes[0] = '\0';
    refuses(0, "run/7/plan", 0, NULL, &v, "no text");
    /* The quoted name of a CSV column may have more than one line. */
    const char *lines = "model a\nlabel click\r\n(0 or 1)\x1f\n";
    const struct value named = plan_value(lines, 5, 0, false), go = plan_value(lines, 5, 0, true);
    takes(0, "run/7/plan", 0, NULL, &named);
    takes(0, "run/7/plan", 1, &named, &go);
    refuses(0, "run/7/plan", 2, &go, &replaces, "a worker has begun by other settings");
    refuses_junk(0, "run/7/plan", 0, NULL, &joined); /* cut short, the last process is no byte 0 or 1 */
    refuses_junk(0, "run/7/plan", 3, &begun, &again);
    /* What older builds wrote, and what they accepted: the first goes on, the second is replaced. */
    const struct value old = text_value(text), junk = {.bytes = {1, 2, 3}, .size = 3};
    takes(0, "run/7/plan", 1, &old, &first);
    takes(0, "run/7/plan", 1, &junk, &first);
}

/* ---- run/N/verdict */

static struct value verdict_value(const char *fields)
{
    struct value v = {.size = 0};
    v.size = (size_t)snprintf(v.bytes, sizeof v.bytes, "{%s}", fields);
    return v;
}

#define RESTS_1                                                                                              \
    "\"resting\":1,\"decider\":1,\"epoch\":0,\"why\":0,\"best_epoch\":0,\"kept\":0,\"from\":1,"              \
    "\"figures\":[]"
#define JUDGES_1                                                                                             \
    "\"resting\":1,\"decider\":1,\"epoch\":1,\"why\":0,\"best_epoch\":1,\"kept\":1,\"from\":1,"              \
    "\"figures\":[null]"
#define RESTS_2                                                                                              \
    "\"resting\":2,\"decider\":0,\"epoch\":1,\"why\":0,\"best_epoch\":1,\"kept\":1,\"from\":1,"              \
    "\"figures\":[null]"
#define STOPS_2                                                                                              \
    "\"resting\":2,\"decider\":0,\"epoch\":2,\"why\":1,\"best_epoch\":2,\"kept\":2,\"from\":2,"              \
    "\"figures\":[null],\"test\":[null]"
#define EARLIER_5                                                                                            \
    "\"resting\":0,\"decider\":0,\"epoch\":5,\"why\":0,\"best_epoch\":0,\"kept\":0,\"from\":6,"              \
    "\"figures\":[]"

static void a_verdict_follows_from_the_one_before(void **state)
{
    static const char *const steps[] = {RESTS_1, JUDGES_1, RESTS_2, STOPS_2};
    const struct value earlier = verdict_value(EARLIER_5);
    struct value was, is;
    takes(0, "run/7/verdict", 0, NULL, &earlier);
    for (uint64_t i = 0; i < 4; i++) {
        is = verdict_value(steps[i]);
        takes(0, "run/7/verdict", i, i ? &was : NULL, &is);
        refuses_junk(0, "run/7/verdict", i, i ? &was : NULL, &is);
        was = is;
    }
    /* Every step that is not the next one. */
    for (int from = 0; from < 4; from++)
        for (int to = 0; to < 4; to++) {
            struct dp_error err;
            was = verdict_value(steps[from]);
            is = verdict_value(steps[to]);
            bool follows = to == from || to == from + 1;
            if ((set_as(0, "run/7/verdict", 9, &was, &is, &err) == DP_OK) != follows)
                fail_msg("step %d after %d: %s", to, from, err.text);
        }
    was = verdict_value(RESTS_2);
    refuses(0, "run/7/verdict", 3, &was, &earlier, "\"epoch\": 5, after 1");
    is = verdict_value(STOPS_2);
    refuses(0, "run/7/verdict", 0, NULL, &is, "\"epoch\": 2, after 0");
    was = verdict_value("\"resting\":3,\"decider\":0,\"epoch\":2,\"why\":1,\"best_epoch\":1,\"kept\":0,"
                        "\"from\":1,\"figures\":[]");
    is = verdict_value("\"resting\":3,\"decider\":0,\"epoch\":3,\"why\":0,\"best_epoch\":1,\"kept\":0,"
                       "\"from\":1,\"figures\":[]");
    refuses(0, "run/7/verdict", 5, &was, &is, "the training has stopped");
    was = verdict_value(RESTS_2);
    is = verdict_value("\"resting\":2,\"decider\":0,\"epoch\":2,\"why\":0,\"best_epoch\":0,\"kept\":0,"
                       "\"from\":1,\"figures\":[]");
    refuses(0, "run/7/verdict", 5, &was, &is, "\"best_epoch\" and \"from\": 0 and 1, after 1 and 1");
    was = verdict_value(STOPS_2);
    is = verdict_value("\"resting\":2,\"decider\":0,\"epoch\":2,\"why\":1,\"best_epoch\":2,\"kept\":2,"
                       "\"from\":1,\"figures\":[]");
    refuses(0, "run/7/verdict", 5, &was, &is, "2 and 1, after 2 and 2");
    /* An earlier version's epochs are passed over only as it left them. */
    static const struct {
        const char *field, *is;
    } not_earlier[] = {{"\"why\":0", "\"why\":1"},
                       {"\"best_epoch\":0", "\"best_epoch\":5"},
                       {"\"kept\":0", "\"kept\":5"},
                       {"\"from\":6", "\"from\":5"},
                       {"\"resting\":0", "\"resting\":6"}};
    for (size_t i = 0; i < sizeof not_earlier / sizeof not_earlier[0]; i++) {
        char text[512];
        const char *at = strstr(EARLIER_5, not_earlier[i].field);
        (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - EARLIER_5), EARLIER_5, not_earlier[i].is,
                       at + strlen(not_earlier[i].field));
        is = verdict_value(text);
        refuses(0, "run/7/verdict", 0, NULL, &is, "\"epoch\": 5, after 0");
    }
    const struct value junk = text_value("junk");
    is = verdict_value(RESTS_1);
    refuses(0, "run/7/verdict", 1, &junk, &is, "train under a higher run number");
}

static void fields_of_a_verdict_are_in_range(void **state)
{
    static const struct {
        const char *field, *is, *names;
    } cases[] = {
        {"\"epoch\":0", "\"epoch\":4000000000", "epoch"},
        {"\"epoch\":0", "\"epoch\":-1", "epoch"},
        {"\"epoch\":0", "\"epoch\":\"0\"", "epoch"},
        {"\"epoch\":0", "\"epoch\":0.5", "epoch"},
        {"\"resting\":1", "\"resting\":2", "resting"},
        {"\"decider\":1", "\"decider\":4096", "decider"},
        {"\"why\":0", "\"why\":3", "why"},
        {"\"why\":0", "\"why\":1", "why"},
        {"\"best_epoch\":0", "\"best_epoch\":1", "best_epoch"},
        {"\"kept\":0", "\"kept\":18446744073709551615", "JSON"},
        {"\"from\":1", "\"from\":0", "from"},
        {"\"from\":1", "\"from\":2", "from"},
        {"\"from\":1", "\"form\":1", "from"},
        {"\"figures\":[]", "\"figures\":[null]", "figures"},
        {"\"figures\":[]", "\"figures\":{}", "figures"},
        {"\"figures\":[]", "\"figures\":[],\"test\":{}", "test"},
        {"\"figures\":[]", "\"figures\":[],\"test\":[null,null,null]", "test"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        char text[512];
        const char *at = strstr(RESTS_1, cases[i].field);
        assert_non_null(at);
        (void)snprintf(text, sizeof text, "%.*s%s%s", (int)(at - RESTS_1), RESTS_1, cases[i].is,
                       at + strlen(cases[i].field));
        const struct value v = verdict_value(text);
        refuses(0, "run/7/verdict", 0, NULL, &v, cases[i].names);
    }
    static const char *const rows[] = {"[[1]]", "[[1,2,3,4,5,6,7,8,9]]", "[[0.5,1,1,1,1,1,1,1]]", "[{}]",
                                       "[8]"};
    const struct value rests = verdict_value(RESTS_1);
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        char text[512];
        const char *at = strstr(JUDGES_1, "[null]");
        (void)snprintf(text, sizeof text, "%.*s%s", (int)(at - JUDGES_1), JUDGES_1, rows[i]);
        const struct value v = verdict_value(text);
        refuses(0, "run/7/verdict", 1, &rests, &v, "is no list of 8");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(stores_are_set_by_their_servers),
        cmocka_unit_test(addresses_are_set_by_their_servers),
        cmocka_unit_test(unreadable_stores_are_written_anew),
        cmocka_unit_test(run_numbers_are_those_that_can_be_chosen),
        cmocka_unit_test(a_view_changes_one_seat),
        cmocka_unit_test(a_view_keeps_what_its_run_began_with),
        cmocka_unit_test(a_plan_is_joined_and_begun),
        cmocka_unit_test(a_verdict_follows_from_the_one_before),
        cmocka_unit_test(fields_of_a_verdict_are_in_range),
    };
    return cmocka_run_group_tests_name("register names", tests, NULL, NULL);
}
