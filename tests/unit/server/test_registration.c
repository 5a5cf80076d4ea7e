/* Registration beside a first server that is there: what an earlier process sent and comes late, and registers that change
 * meanwhile. That stores are told apart is test_identity's and, with real servers, system/test_lost_store's. */
#include "server/registration.h"

#include "tests/lib/test.h"

#include "common/base/bytes.h"
#include "common/client/register_store.h"
#include "server/control/control.h"
#include "server/control/register.h"
#include "server/identity.h"

#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { CLUSTER = 5, GENERATION = 2, HISTORY = 1234567, SHARDS = 2, WAIT_MS = 10000 };

struct bed {
    struct dp_net *net;
    struct dp_control *control;
    char endpoint[64], directory[64], file[96];
    struct dp_registration *process; /* the one that runs */
    const struct dp_store_gate *gate;
    struct dp_client *wire;         /* what is on its way comes over this */
    struct dp_register_value value; /* as an earlier process read it */
};

static uint32_t count(void *context, struct dp_counter counters[DP_COUNTERS_MAX])
{
    return 0;
}

static uint64_t history; /* of the first server's stores; 0: never restored */
static atomic_int short_of_memory, watched, lost;
static struct {
    int times;
    uint64_t generation, history;
} known; /* what the server was told of its stores */

static void hears_lost(void *context)
{
    atomic_fetch_add(&lost, 1);
}

static void hears_generation(void *context, uint64_t generation, uint64_t its_history)
{
    known.times++;
    known.generation = generation;
    known.history = its_history;
}

static void start_first_server(struct bed *bed)
{
    struct dp_error err = {0};
    const struct dp_control_options options = {.net = bed->net,
                                               .endpoint = bed->endpoint,
                                               .cluster = CLUSTER,
                                               .generation = GENERATION,
                                               .history = history,
                                               .boot = 77,
                                               .counters = count,
                                               .register_directory = bed->directory,
                                               .first_server = bed->endpoint};
    if (dp_control_start(&options, &bed->control, &err) != DP_OK)
        fail_msg("%s", err.text);
}

/* Of the server that has `count` shards from `first` on. */
static void begin_at(struct bed *bed, uint64_t opening, uint32_t first, uint32_t count, bool replaces)
{
    struct dp_error err = {0};
    const struct dp_registration_options options = {.control = bed->endpoint,
                                                    .cluster = CLUSTER,
                                                    .opening = opening,
                                                    .first = first,
                                                    .count = count,
                                                    .replaces = replaces,
                                                    .known = hears_generation,
                                                    .total = SHARDS,
                                                    .lost = hears_lost};
    dp_registration_free(&bed->process);
    assert_int_equal(dp_registration_new(&options, &bed->process, &err), DP_OK);
    known.times = 0;
    bed->gate = dp_registration_gate(bed->process, 0, "/stores/shard-0000");
}

static void begin(struct bed *bed, uint64_t opening)
{
    begin_at(bed, opening, 0, 1, false);
}

static void stop_first_server(struct bed *bed)
{
    dp_client_close(&bed->wire);
    dp_control_stop(&bed->control);
}

static void start_again(struct bed *bed)
{
    struct dp_error err = {0};
    start_first_server(bed);
    const struct dp_client_options wire = {.cluster = CLUSTER, .control = bed->endpoint};
    assert_int_equal(dp_client_open(&wire, &bed->wire, &err), DP_OK);
}

/* Another register, and who reads it. */
static void restart_first_server(struct bed *bed)
{
    stop_first_server(bed);
    (void)unlink(bed->file);
    start_again(bed);
}

/* A build that accepted any bytes left these as the next version of "stores". */
static void plant(struct bed *bed, const void *bytes, size_t size)
{
    struct dp_control_register *values = NULL;
    struct dp_control_register_entry now;
    struct dp_disk disk;
    struct dp_error err = {0};
    bool made;
    stop_first_server(bed);
    assert_int_equal(dp_disk_open(bed->directory, &disk, &err), DP_OK);
    const struct dp_control_register_options options = {.disk = &disk};
    assert_int_equal(dp_control_register_open(&options, &values, &made, &err), DP_OK);
    assert_int_equal(dp_control_register_get(values, DP_STORES_NAME, &now, &err), DP_OK);
    const struct dp_control_register_change change = {
        .name = DP_STORES_NAME, .expected = now.version, .nonce = 77, .bytes = bytes, .size = size};
    assert_int_equal(dp_control_register_set(values, &change, &now, &err), DP_OK);
    dp_control_register_close(&values);
    dp_disk_close(&disk);
    start_again(bed);
}

static int open_bed(void **state)
{
    history = 0;
    struct bed *bed = calloc(1, sizeof *bed);
    struct dp_error err = {0};
    assert_non_null(bed);
    (void)snprintf(bed->endpoint, sizeof bed->endpoint, "ipc:///tmp/dp-registration-%d", (int)getpid());
    (void)snprintf(bed->directory, sizeof bed->directory, "/tmp/dp-registration-XXXXXX");
    assert_non_null(mkdtemp(bed->directory));
    (void)snprintf(bed->file, sizeof bed->file, "%s/register", bed->directory);
    assert_int_equal(dp_net_open(1, &bed->net, &err), DP_OK);
    restart_first_server(bed);
    *state = bed;
    return 0;
}

static int close_bed(void **state)
{
    struct bed *bed = *state;
    dp_registration_free(&bed->process);
    dp_client_close(&bed->wire);
    dp_control_stop(&bed->control);
    dp_net_close(&bed->net);
    dp_register_value_clear(&bed->value);
    (void)unlink(bed->file);
    (void)rmdir(bed->directory);
    free(bed);
    return 0;
}

/* The gate's first half: what the store says from then on. */
static struct dp_store_id admitted(struct bed *bed, struct dp_store_id found, bool is_new)
{
    if (!is_new && found.generation == 0) {
        found.generation = GENERATION;
        found.history = history;
    }
    struct dp_store_id put = found;
    struct dp_error err = {0};
    if (bed->gate->admit(bed->gate->context, &found, is_new, &put, &err) != DP_OK)
        fail_msg("not admitted: %s", err.text);
    return put;
}

static void entered(struct bed *bed, struct dp_store_id id)
{
    struct dp_error err = {0};
    if (bed->gate->entered(bed->gate->context, &id, &err) != DP_OK)
        fail_msg("not entered: %s", err.text);
}

static void read_value(struct bed *bed)
{
    struct dp_error err = {0};
    dp_register_value_clear(&bed->value);
    assert_int_equal(dp_client_register_get(bed->wire, DP_STORES_NAME, 0, 0, WAIT_MS, &bed->value, &err),
                     DP_OK);
}

/* What a process sends that read bed->value, and ended: its opening. *won: it was stored all the same. */
static void arrives(struct bed *bed, struct dp_store_id id, bool *won)
{
    static struct dp_stores stores;
    char *bytes = malloc(DP_STORES_BYTES_MAX);
    struct dp_error err = {0};
    assert_non_null(bytes);
    assert_int_equal(dp_stores_decode(bed->value.bytes, bed->value.size, SHARDS, &stores, &err), DP_OK);
    stores.shard[0].id = id.id;
    stores.shard[0].opening = id.opening;
    size_t size = dp_stores_encode(&stores, bytes);
    assert_int_equal(dp_client_register_store(bed->wire, 0, DP_STORES_NAME, bed->value.version, bytes, size,
                                              WAIT_MS, won, NULL, &err),
                     DP_OK);
    free(bytes);
}

/* The register names the last opening, and the next process is admitted, too. */
static void goes_on(struct bed *bed, struct dp_store_id id)
{
    static struct dp_stores stores;
    struct dp_error err = {0};
    read_value(bed);
    assert_int_equal(dp_stores_decode(bed->value.bytes, bed->value.size, SHARDS, &stores, &err), DP_OK);
    assert_true(stores.shard[0].id == id.id && stores.shard[0].opening == id.opening);
    begin(bed, id.opening + 1);
    assert_true(admitted(bed, id, false).id == id.id);
}

/* 31 registered; 32 was killed with its message on the way, which comes when 33 has said in its store that it is 33. */
static void a_late_opening_of_a_known_store(void **state)
{
    struct bed *bed = *state;
    bool won;
    begin(bed, 31);
    struct dp_store_id id = admitted(bed, (struct dp_store_id){0}, true);
    entered(bed, id);
    id.before = id.opening;
    begin(bed, 32);
    id = admitted(bed, id, false);
    read_value(bed);
    const struct dp_store_id dead = id;
    begin(bed, 33);
    id = admitted(bed, id, false);
    arrives(bed, dead, &won);
    assert_false(won);
    entered(bed, id);
    goes_on(bed, id);
}

/* The same of one that was never registered; and of one whose directory is gone since. */
static void a_late_opening_of_a_new_store(void **state)
{
    struct bed *bed = *state;
    for (int is_gone = 0; is_gone < 2; is_gone++) {
        bool won;
        restart_first_server(bed);
        begin(bed, 31);
        const struct dp_store_id dead = admitted(bed, (struct dp_store_id){0}, true);
        read_value(bed);
        begin(bed, 32);
        struct dp_store_id id = admitted(bed, is_gone ? (struct dp_store_id){0} : dead, is_gone);
        arrives(bed, dead, &won);
        assert_false(won);
        entered(bed, id);
        goes_on(bed, id);
    }
}

/* Before the next process asks, it is as good as any: that one goes on from there. */
static void one_that_is_not_so_late(void **state)
{
    struct bed *bed = *state;
    bool won;
    begin(bed, 31);
    struct dp_store_id id = admitted(bed, (struct dp_store_id){0}, true);
    read_value(bed);
    arrives(bed, id, &won);
    assert_true(won);
    begin(bed, 32);
    id = admitted(bed, id, false);
    assert_int_equal(id.before, 31);
    entered(bed, id);
    goes_on(bed, id);
}

/* It is at the same version by chance: the store says the register that it was judged by. */
static void another_register_while_it_opens(void **state)
{
    struct bed *bed = *state;
    struct dp_error err = {0};
    bool won;
    begin(bed, 31);
    struct dp_store_id id = admitted(bed, (struct dp_store_id){0}, true);
    read_value(bed);
    restart_first_server(bed);
    for (uint64_t version = 0; version < bed->value.version; version++)
        assert_int_equal(dp_client_register_store(bed->wire, 0, DP_STORES_NAME, version, bed->value.bytes,
                                                  bed->value.size, WAIT_MS, &won, NULL, &err),
                         DP_OK);
    assert_int_equal(bed->gate->entered(bed->gate->context, &id, &err), DP_GENERATION);
    assert_non_null(strstr(err.text, "is known to register"));
}

enum dp_status __real_dp_client_register_get(struct dp_client *client, const char *name, uint64_t above,
                                             uint32_t wait_ms, uint32_t timeout_ms,
                                             struct dp_register_value *out, struct dp_error *err);
enum dp_status __wrap_dp_client_register_get(struct dp_client *client, const char *name, uint64_t above,
                                             uint32_t wait_ms, uint32_t timeout_ms,
                                             struct dp_register_value *out, struct dp_error *err);
enum dp_status __wrap_dp_client_register_get(struct dp_client *client, const char *name, uint64_t above,
                                             uint32_t wait_ms, uint32_t timeout_ms,
                                             struct dp_register_value *out, struct dp_error *err)
{
    if (atomic_load(&short_of_memory) > 0) {
        atomic_fetch_sub(&short_of_memory, 1);
        return dp_fail(err, DP_NOMEM, "planted");
    }
    enum dp_status st = __real_dp_client_register_get(client, name, above, wait_ms, timeout_ms, out, err);
    if (st == DP_OK)
        atomic_fetch_add(&watched, 1);
    return st;
}

static void await(const atomic_int *count, const atomic_int *or_count)
{
    const struct timespec shortly = {.tv_nsec = 1000000};
    for (int ms = 0; ms < WAIT_MS && atomic_load(count) == 0 && atomic_load(or_count) == 0; ms++)
        (void)nanosleep(&shortly, NULL);
}

/* The server goes on, and still hears of what is another's. */
static void a_watch_that_is_short_of_memory(void **state)
{
    struct bed *bed = *state;
    struct dp_error err = {0};
    bool won;
    begin(bed, 31);
    entered(bed, admitted(bed, (struct dp_store_id){0}, true));
    atomic_store(&short_of_memory, 3);
    atomic_store(&watched, 0);
    assert_int_equal(dp_registration_watch(bed->process, NULL, &err), DP_OK);
    await(&watched, &lost);
    assert_int_equal(atomic_load(&lost), 0);
    assert_int_equal(dp_registration_check(bed->process, &err), DP_OK);
    read_value(bed);
    arrives(bed, (struct dp_store_id){.id = 5, .opening = 5}, &won);
    assert_true(won);
    await(&lost, &lost);
    assert_int_equal(dp_registration_check(bed->process, &err), DP_GENERATION);
}

/* What a build before this one may have left: 16 bytes of anybody's, one cut short, of a later format, of other shards. */
static size_t bad_value(int which, char bytes[256])
{
    memset(bytes, 'x', 256);
    if (which == 0)
        return 16;
    dp_store_u32le(bytes, which == 2 ? 2 : 1);
    dp_store_u32le(bytes + 4, which == 3 ? SHARDS + 1 : SHARDS);
    return which == 1 ? 39 : 8 + (size_t)16 * (which == 3 ? SHARDS + 1 : SHARDS);
}
enum { BAD_VALUES = 4 };

struct opener {
    struct bed *bed;
    struct dp_store_id found, put;
    enum dp_status status;
    struct dp_error err;
};

static void *open_gate(void *arg)
{
    struct opener *opener = arg;
    const struct dp_store_gate *gate = opener->bed->gate;
    opener->put = opener->found;
    opener->status = gate->admit(gate->context, &opener->found, false, &opener->put, &opener->err);
    return NULL;
}

static void await_words(struct bed *bed)
{
    const struct timespec shortly = {.tv_nsec = 1000000};
    struct dp_error said = {0};
    for (int ms = 0; ms < WAIT_MS && !bed->gate->says(bed->gate->context, &said); ms++)
        (void)nanosleep(&shortly, NULL);
    assert_int_equal(said.status, DP_AGAIN);
    assert_int_equal(said.wait.reason, DP_WAIT_REGISTER);
    assert_non_null(strstr(said.text, "shard 0 waits"));
    assert_non_null(strstr(said.text, "register"));
    assert_non_null(strstr(said.text, "--replace-store"));
}

/* Until it can be read again, or the server is to stop. */
static void a_shard_waits_while_the_value_cannot_be_read(void **state)
{
    struct bed *bed = *state;
    char bytes[256];
    for (int which = 0; which < BAD_VALUES; which++) {
        struct dp_error said;
        pthread_t thread;
        restart_first_server(bed);
        begin(bed, 31);
        struct dp_store_id id = admitted(bed, (struct dp_store_id){0}, true);
        entered(bed, id);
        id.before = id.opening;
        read_value(bed);
        for (int stops = 0; stops < 2; stops++) {
            struct opener opener = {.bed = bed, .found = id};
            opener.found.generation = GENERATION;
            opener.found.history = history;
            plant(bed, bytes, bad_value(which, bytes));
            begin(bed, 32);
            assert_int_equal(pthread_create(&thread, NULL, open_gate, &opener), 0);
            await_words(bed);
            if (stops)
                dp_registration_stop(bed->process);
            else
                plant(bed, bed->value.bytes, bed->value.size);
            assert_int_equal(pthread_join(thread, NULL), 0);
            assert_int_equal(opener.status, stops ? DP_STOPPING : DP_OK);
            assert_false(bed->gate->says(bed->gate->context, &said));
        }
    }
}

/* With --replace-store it is written anew: the store that is there keeps its identity, and the next start needs no word. */
static void a_value_that_cannot_be_read_is_replaced(void **state)
{
    struct bed *bed = *state;
    char bytes[256];
    for (int which = 0; which < BAD_VALUES; which++) {
        restart_first_server(bed);
        begin(bed, 31);
        struct dp_store_id id = admitted(bed, (struct dp_store_id){0}, true);
        const uint64_t before = id.id;
        entered(bed, id);
        id.before = id.opening;
        plant(bed, bytes, bad_value(which, bytes));
        begin_at(bed, 32, 0, 1, true);
        id = admitted(bed, id, false);
        assert_true(id.id == before && id.opening == 32);
        entered(bed, id);
        goes_on(bed, id);
    }
}

/* A server that serves goes on, and watches again once it can. */
static void a_watch_of_a_value_that_cannot_be_read(void **state)
{
    struct bed *bed = *state;
    struct dp_error err = {0};
    char bytes[256];
    for (int which = 0; which < BAD_VALUES; which++) {
        bool won;
        restart_first_server(bed);
        begin(bed, 31);
        entered(bed, admitted(bed, (struct dp_store_id){0}, true));
        read_value(bed);
        plant(bed, bytes, bad_value(which, bytes));
        atomic_store(&watched, 0);
        atomic_store(&lost, 0);
        assert_int_equal(dp_registration_watch(bed->process, NULL, &err), DP_OK);
        await(&watched, &lost);
        plant(bed, bed->value.bytes, bed->value.size);
        read_value(bed);
        arrives(bed, (struct dp_store_id){.id = 5, .opening = 5}, &won);
        assert_true(won);
        await(&lost, &lost);
        assert_int_equal(dp_registration_check(bed->process, &err), DP_GENERATION);
        assert_non_null(strstr(err.text, "holds another store"));
    }
}

static void assert_known(uint64_t generation, uint64_t its_history)
{
    assert_int_equal(known.times, 1);
    assert_true(known.generation == generation && known.history == its_history);
}

/* What a server tells its control, and what a new store gets. */
static void new_stores_get_the_first_servers_generation(void **state)
{
    struct bed *bed = *state;
    for (uint32_t first = 0; first < SHARDS; first++) {
        begin_at(bed, 31, first, 1, false);
        struct dp_store_id id = admitted(bed, (struct dp_store_id){0}, true);
        assert_true(id.generation == GENERATION && id.history == history);
        if (first == 0)
            assert_known(0, 0); /* its control knows best */
        else
            assert_known(GENERATION, history);
        assert_int_equal(dp_registration_generation(bed->process), GENERATION);
    }
    /* One beside it is there: that one says it, without the first server. */
    begin_at(bed, 32, 0, 2, false);
    bed->gate = dp_registration_gate(bed->process, 1, "/stores/shard-0001");
    (void)admitted(bed, (struct dp_store_id){0}, true);
    assert_known(GENERATION, history);
}

static void restore_first_server(struct bed *bed)
{
    history = HISTORY;
    stop_first_server(bed);
    start_again(bed);
}

/* The restore did not reach a server that has no store. */
static void no_store_begins_in_a_restored_cluster(void **state)
{
    struct bed *bed = *state;
    struct dp_error err = {0};
    const struct dp_store_id none = {0};
    struct dp_store_id put = none;
    restore_first_server(bed);
    begin_at(bed, 31, 1, 1, false);
    assert_int_equal(bed->gate->admit(bed->gate->context, &none, true, &put, &err), DP_GENERATION);
    assert_non_null(strstr(err.text, "the restore did not reach this server"));
    begin_at(bed, 32, 1, 1, true);
    put = admitted(bed, none, true);
    assert_true(put.id != 0 && put.generation == GENERATION && put.history == HISTORY);
}

/* A restore that missed a store of this server, or the whole server. */
static void stores_of_two_restores_do_not_mix(void **state)
{
    struct bed *bed = *state;
    struct dp_error err = {0};
    restore_first_server(bed);
    const struct dp_store_id missed = {.id = 9, .generation = GENERATION, .history = 1};
    struct dp_store_id put = missed;
    begin_at(bed, 31, 1, 1, false);
    assert_int_equal(bed->gate->admit(bed->gate->context, &missed, false, &put, &err), DP_GENERATION);
    assert_non_null(strstr(err.text, "a restore did not reach all servers"));
    assert_int_equal(known.times, 0);
    begin_at(bed, 31, 0, 2, false);
    put = (struct dp_store_id){.generation = GENERATION, .history = history};
    (void)admitted(bed, put, false);
    bed->gate = dp_registration_gate(bed->process, 1, "/stores/shard-0001");
    assert_int_equal(bed->gate->admit(bed->gate->context, &missed, false, &put, &err), DP_GENERATION);
    assert_non_null(strstr(err.text, "that of shard 0 is of generation 2 (history 000000000012d687)"));
    /* Where the first server lost all that it had, its stores begin anew, and others may follow. */
    begin_at(bed, 32, 1, 1, true);
    struct dp_store_id id = admitted(bed, missed, false);
    assert_true(id.generation == GENERATION && id.history == history);
    assert_known(GENERATION, history);
}

/* Whom it would tell is gone. */
static void stopped_it_tells_nobody(void **state)
{
    struct bed *bed = *state;
    struct dp_error err = {0};
    const struct dp_store_id id = {.generation = GENERATION, .history = history};
    struct dp_store_id put = id;
    begin_at(bed, 31, 0, 2, false);
    dp_registration_stop(bed->process);
    (void)bed->gate->admit(bed->gate->context, &id, false, &put, &err);
    assert_int_equal(known.times, 0);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, open_bed, close_bed)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_late_opening_of_a_known_store),
        TEST(a_late_opening_of_a_new_store),
        TEST(one_that_is_not_so_late),
        TEST(another_register_while_it_opens),
        TEST(a_watch_that_is_short_of_memory),
        TEST(new_stores_get_the_first_servers_generation),
        TEST(no_store_begins_in_a_restored_cluster),
        TEST(stores_of_two_restores_do_not_mix),
        TEST(stopped_it_tells_nobody),
        TEST(a_shard_waits_while_the_value_cannot_be_read),
        TEST(a_value_that_cannot_be_read_is_replaced),
        TEST(a_watch_of_a_value_that_cannot_be_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
