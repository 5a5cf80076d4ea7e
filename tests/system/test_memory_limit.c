/* Tables ten times the row cache, in a server whose memory is held to a limit that is far below them: every push is taken,
 * every row is right, and the limit holds. The limit is a control group's where this process may make one (beyond it the
 * kernel ends the server); the process's own peak is looked at in either case. */
#include "common/client/downpour.h"
#include "common/config/cluster.h"
#include "common/model/mix.h"
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define CACHE      (8u << 20)
#define DIM        64u
#define ROW_BYTES  (16u + 4u * DIM)          /* without its share of the index */
#define ROWS       (10u * CACHE / ROW_BYTES) /* some 300,000 */
#define ROWS_BYTES ((uint64_t)ROWS * ROW_BYTES)
#define LIMIT      (96u << 20) /* cache, buffers of journal and store, RocksDB's block cache, requests */
#define KEYS       4096u       /* of a request */
#define WAIT_MS    60000u

struct world {
    struct dp_place *place;
    struct dp_process *server;
    struct dp_client *client;
    struct dp_client_table *table;
    char group[128]; /* "": no control group */
};

static void wants(enum dp_status st, const struct dp_error *err, struct world *world)
{
    if (st != DP_OK)
        fail_msg("%s; the server: %s", err->text, dp_process_err(world->server));
}

/* Into a file that is there. */
static bool put(const char *group, const char *file, uint64_t value)
{
    char path[256], text[32];
    (void)snprintf(path, sizeof path, "%s/%s", group, file);
    int len = snprintf(text, sizeof text, "%" PRIu64 "\n", value), fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, (size_t)len) == len;
    if (fd >= 0)
        (void)close(fd);
    return good;
}

/* Beyond the limit the kernel ends the server. Control groups of version 2, then of version 1. */
static void hold(struct world *world)
{
    static const struct {
        const char *above, *limit;
    } kinds[] = {{"/sys/fs/cgroup", "memory.max"}, {"/sys/fs/cgroup/memory", "memory.limit_in_bytes"}};
    bool good = false;
    for (size_t i = 0; i < sizeof kinds / sizeof kinds[0] && !good; i++) {
        (void)snprintf(world->group, sizeof world->group, "%s/dp_memory_%ld", kinds[i].above, (long)getpid());
        bool made = mkdir(world->group, 0755) == 0;
        good = made && put(world->group, kinds[i].limit, LIMIT) &&
               put(world->group, "cgroup.procs", (uint64_t)dp_process_pid(world->server));
        if (made && !good)
            (void)rmdir(world->group);
    }
    print_message("limit %u MiB %s\n", LIMIT >> 20,
                  good ? "by a control group" : "looked at: no control group");
    if (!good)
        world->group[0] = '\0';
}

static uint64_t peak_bytes(struct world *world)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/status", (long)dp_process_pid(world->server));
    char *text = dp_process_slurp(path, NULL);
    assert_non_null(text);
    const char *at = strstr(text, "VmHWM:");
    assert_non_null(at);
    uint64_t bytes = strtoull(at + strlen("VmHWM:"), NULL, 10) << 10;
    free(text);
    return bytes;
}

static void begin(struct world *world)
{
    struct dp_place_cluster settings = {.top = "cache_bytes = \"8MiB\"; journal_bytes = \"64MiB\";"};
    struct dp_table_spec spec = {.name = "large", .dim = DIM};
    struct dp_cluster *cluster = NULL;
    struct dp_error err = {0};
    char endpoint[DP_HOST_MAX + 32];
    const char *const shards[] = {endpoint};
    const char *conf = dp_place_conf(world->place, &settings);
    world->server = dp_place_server(world->place, conf, 0);
    hold(world);
    wants(dp_cluster_read(conf, &cluster, &err), &err, world);
    dp_cluster_shard_endpoint(cluster, 0, endpoint, sizeof endpoint);
    struct dp_client_options options = {
        .name = "memory", .cluster = cluster->id, .shards = shards, .shard_count = 1};
    dp_cluster_free(&cluster);
    spec.optimizer = dp_optimizer_defaults(DP_OPT_SGD);
    wants(dp_client_open(&options, &world->client, &err), &err, world);
    wants(dp_client_table(world->client, &spec, WAIT_MS, &world->table, &err), &err, world);
}

/* ---- what is pushed: all rows in the order of the store, as a table is loaded, then every fourth from anywhere */

struct plan {
    uint64_t *key; /* [ROWS], in mixed order */
    uint8_t *sum;  /* [ROWS]: pushes of each */
};

static int by_mixed(const void *a, const void *b)
{
    uint64_t x = dp_mix(*(const uint64_t *)a), y = dp_mix(*(const uint64_t *)b);
    return (x > y) - (x < y);
}

static void plan_new(struct plan *plan)
{
    plan->key = calloc(ROWS, sizeof *plan->key);
    plan->sum = calloc(ROWS, 1);
    assert_true(plan->key && plan->sum);
    for (uint64_t i = 0; i < ROWS; i++)
        plan->key[i] = i * 7 + 1;
    qsort(plan->key, ROWS, sizeof *plan->key, by_mixed);
}

static uint64_t anywhere(uint64_t i)
{
    return i * 1000003 % ROWS; /* a prime: each once */
}

static void push(struct world *world, const uint64_t *key, uint32_t count, const float *gradients)
{
    struct dp_error err = {0};
    wants(dp_client_push_rows(world->client, world->table, key, count, gradients, 1, WAIT_MS, &err), &err,
          world);
}

static void push_all(struct world *world, struct plan *plan, float *values)
{
    for (uint32_t i = 0; i < KEYS * DIM; i++)
        values[i] = -1;
    for (uint32_t at = 0; at < ROWS; at += KEYS) {
        uint32_t count = ROWS - at < KEYS ? ROWS - at : KEYS;
        push(world, plan->key + at, count, values);
        for (uint32_t i = 0; i < count; i++)
            plan->sum[at + i]++;
    }
    for (uint64_t at = 0; at + KEYS <= ROWS / 4; at += KEYS) {
        uint64_t key[KEYS];
        for (uint64_t i = 0; i < KEYS; i++) {
            key[i] = plan->key[anywhere(at + i)];
            plan->sum[anywhere(at + i)]++;
        }
        push(world, key, KEYS, values);
    }
}

static void check_all(struct world *world, const struct plan *plan, float *values)
{
    struct dp_error err = {0};
    for (uint32_t at = 0; at < ROWS; at += KEYS) {
        uint32_t count = ROWS - at < KEYS ? ROWS - at : KEYS;
        wants(dp_client_pull_rows(world->client, world->table, plan->key + at, count, values, WAIT_MS, &err),
              &err, world);
        for (uint32_t i = 0; i < count * DIM; i++)
            if (values[i] != (float)plan->sum[at + i / DIM])
                fail_msg("key %" PRIu64 " is %g, not %d", plan->key[at + i / DIM], (double)values[i],
                         plan->sum[at + i / DIM]);
    }
}

static void tables_ten_times_the_cache_stay_inside_the_limit(void **state)
{
    struct world world = {.place = *state};
    struct plan plan;
    float *values = malloc(sizeof(float) * KEYS * DIM);
    assert_non_null(values);
    plan_new(&plan);
    begin(&world);
    push_all(&world, &plan, values);
    check_all(&world, &plan, values);
    uint64_t peak = peak_bytes(&world);
    print_message("%u rows of %u MiB, cache %u MiB: peak %u MiB\n", ROWS, (unsigned)(ROWS_BYTES >> 20),
                  CACHE >> 20, (unsigned)(peak >> 20));
    dp_client_close(&world.client);
    dp_place_stops_cleanly(world.server);
    if (world.group[0])
        (void)rmdir(world.group);
    assert_in_range(peak, 1, LIMIT);
    free(plan.sum);
    free(plan.key);
    free(values);
}

static int teardown(void **state)
{
    char group[128];
    int code = dp_place_teardown(state); /* of a test that failed halfway: nobody is in the group now */
    (void)snprintf(group, sizeof group, "/sys/fs/cgroup/dp_memory_%ld", (long)getpid());
    (void)rmdir(group);
    (void)snprintf(group, sizeof group, "/sys/fs/cgroup/memory/dp_memory_%ld", (long)getpid());
    (void)rmdir(group);
    return code;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(tables_ten_times_the_cache_stay_inside_the_limit, dp_place_setup,
                                        teardown),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
