#include "deploy/bench/bench_server.h"

#include "common/config/cluster_client.h"
#include "common/wire/counters.h"
#include "deploy/bench/bench_cpu.h"
#include "deploy/bench/bench_load.h"
#include "deploy/run/ports.h"

#include <errno.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILL_BYTES ((size_t)32 << 20)
#define FILL_KEYS  16384u
#define SETTLE_MS  180000u
#define SETTLED_MS 3000u
#define LOOK_MS    250u
#define STORE_NS   UINT64_C(12500000) /* between two looks: RocksDB merges nothing */

/* The number after a word in one of /proc's files ("VmRSS:"), in kB there; 0: not there. */
static uint64_t kilobytes(const char *path, const char *word)
{
    char line[256];
    uint64_t value = 0;
    FILE *file = fopen(path, "re");
    while (file && value == 0 && fgets(line, sizeof line, file))
        if (strncmp(line, word, strlen(word)) == 0)
            value = strtoull(line + strlen(word), NULL, 10);
    if (file)
        (void)fclose(file);
    return value * 1024;
}

uint64_t dp_bench_memory(void)
{
    return kilobytes("/proc/meminfo", "MemAvailable:");
}

uint64_t dp_bench_server_resident(const struct dp_bench_server *server)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/status", server->pid);
    return server->pid ? kilobytes(path, "VmRSS:") : 0;
}

/* The child of this thread that is not `other`; 0 where the kernel does not tell. */
static long find_child(long other)
{
    char path[64];
    long pid = 0, found = 0;
    (void)snprintf(path, sizeof path, "/proc/self/task/%ld/children", (long)getpid());
    FILE *file = fopen(path, "re");
    while (file && fscanf(file, "%ld", &pid) == 1)
        if (pid != other)
            found = pid;
    if (file)
        (void)fclose(file);
    return found;
}

static enum dp_status make_folder(struct dp_bench_server *server, struct dp_error *err)
{
    const char *base = getenv("TMPDIR");
    char path[DP_PATH_MAX + 1];
    if (snprintf(path, sizeof path, "%s/downpour-bench-XXXXXX", base && base[0] ? base : "/tmp") >
        DP_PATH_MAX)
        return dp_fail(err, DP_ARGUMENT, "TMPDIR is too long");
    if (!mkdtemp(path))
        return dp_fail(err, DP_IO, "cannot make '%s': %s; set TMPDIR to a directory that is writable", path,
                       strerror(errno));
    enum dp_status st = dp_folder_open(path, &server->folder, err);
    return st == DP_OK ? dp_folder_make_parts(&server->folder, err) : st;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
    (void)info;
    (void)type;
    (void)where;
    return remove(path);
}

static enum dp_status make_cluster(struct dp_bench_server *server, struct dp_error *err)
{
    const struct dp_bench_server_options *o = &server->options;
    struct dp_cluster *c = server->cluster = calloc(1, sizeof *c);
    if (!c)
        return dp_fail(err, DP_NOMEM, "no memory for a cluster");
    dp_cluster_defaults(c);
    c->server = calloc(1, sizeof c->server[0]);
    if (!c->server)
        return dp_fail(err, DP_NOMEM, "no memory for a cluster");
    c->server_count = 1;
    c->server[0].shards = o->shards;
    c->cache_bytes = o->cache_bytes;
    c->durability = o->durability;
    c->journal_bytes = o->journal_bytes;
    c->id = dp_bench_now_ns() | 1;
    (void)snprintf(c->name, sizeof c->name, "bench");
    (void)snprintf(c->model, sizeof c->model, "logistic");
    (void)snprintf(c->data.train, sizeof c->data.train, "none");
    if (o->ipc)
        (void)snprintf(c->server[0].host, sizeof c->server[0].host, "ipc://%.240s/s", server->folder.path);
    else
        (void)snprintf(c->server[0].host, sizeof c->server[0].host, "127.0.0.1");
    enum dp_status st = dp_folder_path(&server->folder, c->server[0].store, err, "store/server-0");
    if (st == DP_OK)
        st = dp_ports_choose(c, 0, err);
    return st == DP_OK ? dp_cluster_write(c, server->folder.conf, err) : st;
}

struct dp_table_spec dp_bench_server_table(const struct dp_bench_server *server)
{
    return (struct dp_table_spec){.name = DP_BENCH_TABLE,
                                  .dim = server->options.dim,
                                  .seed = 1,
                                  .init = {.kind = DP_INIT_ZERO},
                                  .optimizer = dp_optimizer_defaults(DP_OPT_ADAM)};
}

static enum dp_status open_client(struct dp_bench_server *server, bool bf16, struct dp_error *err)
{
    const struct dp_client_options options = {
        .name = "downpour bench", .window = DP_BENCH_IN_FLIGHT_MAX, .retry_ms = 5000, .bf16_values = bf16};
    const struct dp_table_spec spec = dp_bench_server_table(server);
    enum dp_status st = dp_cluster_client(server->cluster, &options, &server->client[bf16], err);
    if (st == DP_OK)
        st = dp_client_table(server->client[bf16], &spec, DP_BENCH_WAIT_MS, &server->table[bf16], err);
    return st;
}

static enum dp_status start(struct dp_bench_server *server, struct dp_error *err)
{
    struct dp_client *first = NULL;
    dp_pin_server(&server->pin); /* the server inherits it */
    enum dp_status st = dp_servers_start(server->local, &server->folder, server->cluster, server->folder.conf,
                                         "server", NULL, err);
    dp_pin_client(&server->pin);
    if (st == DP_OK)
        st = dp_servers_await(server->local, server->cluster, DP_BENCH_WAIT_MS, &first, err);
    dp_client_close(&first);
    for (int bf16 = 0; bf16 < 2 && st == DP_OK; bf16++)
        st = open_client(server, bf16, err);
    return st;
}

/* Its threads are all there once it has answered. */
static void find_server(struct dp_bench_server *server)
{
    server->pid = find_child(server->child);
    dp_pin_thread(&server->pin, server->pid, "shard ");
}

enum dp_status dp_bench_server_open(struct dp_bench_server *server, struct dp_local *local, long other,
                                    const struct dp_bench_server_options *options, const struct dp_pin *pin,
                                    struct dp_error *err)
{
    *server = (struct dp_bench_server){
        .local = local, .folder.lock = -1, .options = *options, .child = other, .pin = *pin};
    enum dp_status st = make_folder(server, err);
    if (st == DP_OK)
        st = make_cluster(server, err);
    if (st == DP_OK)
        st = start(server, err);
    find_server(server);
    server->resident = dp_bench_server_resident(server);
    if (st != DP_OK)
        dp_bench_server_close(server);
    return st;
}

enum dp_status dp_bench_server_revive(struct dp_bench_server *server, uint64_t *ns, struct dp_error *err)
{
    dp_client_close(&server->client[0]);
    dp_client_close(&server->client[1]);
    (void)dp_local_stop(server->local, DP_LOCAL_SERVER, 0);
    uint64_t began = dp_bench_now_ns();
    enum dp_status st = start(server, err);
    *ns = dp_bench_now_ns() - began;
    find_server(server);
    return st;
}

enum dp_status dp_bench_server_counters(struct dp_bench_server *server, struct dp_status_report **out,
                                        struct dp_error *err)
{
    enum dp_status st = dp_client_status(server->client[0], 0, DP_BENCH_WAIT_MS, out, err);
    for (uint32_t shard = 1; st == DP_OK && shard < server->options.shards; shard++) {
        struct dp_status_report *more = NULL;
        st = dp_client_status(server->client[0], shard, DP_BENCH_WAIT_MS, &more, err);
        if (st == DP_OK)
            dp_counter_merge((*out)->counter, (*out)->counters, more->counter, more->counters);
        dp_client_status_free(&more);
    }
    if (st != DP_OK)
        dp_client_status_free(out);
    return st;
}

uint64_t dp_bench_counter(const struct dp_status_report *report, const char *name)
{
    return dp_counter_value(report->counter, report->counters, name);
}

enum dp_status dp_bench_server_settle(struct dp_bench_server *server, struct dp_error *err)
{
    uint64_t look = dp_bench_now_ns(), until = look + SETTLE_MS * UINT64_C(1000000), written = UINT64_MAX;
    uint64_t first = 0, first_ns = 0; /* of the look before the one that saw rows written */
    struct dp_bench_cpu before, after;
    dp_bench_cpu_look(server->pid, &before);
    server->written_back_per_s = 0;
    bool writes = server->options.durability != DP_CLUSTER_NONE; /* but for room */
    for (uint32_t same = 0; writes && dp_bench_now_ns() < until && same < SETTLED_MS / LOOK_MS;) {
        struct dp_status_report *report = NULL;
        dp_local_wait(server->local, LOOK_MS);
        enum dp_status st = dp_bench_server_look(server, err);
        if (st == DP_OK)
            st = dp_bench_server_counters(server, &report, err);
        if (st != DP_OK)
            return st;
        dp_bench_cpu_look(server->pid, &after);
        uint64_t now = dp_bench_counter(report, "rows_written_back");
        bool rests = now == written && dp_bench_counter(report, "rows_dirty") == 0 &&
                     after.ns[DP_BENCH_CPU_STORE] - before.ns[DP_BENCH_CPU_STORE] < STORE_NS;
        if (now > written && first_ns == 0) {
            first = written;
            first_ns = look;
        }
        look = dp_bench_now_ns();
        if (now > written)
            server->written_back_per_s = (double)(now - first) * 1e9 / (double)(look - first_ns);
        same = rests ? same + 1 : 0;
        written = now;
        before = after;
        dp_client_status_free(&report);
    }
    return DP_OK;
}

void dp_bench_server_close(struct dp_bench_server *server)
{
    dp_client_close(&server->client[0]);
    dp_client_close(&server->client[1]);
    if (server->local && !dp_local_failed(server->local))
        (void)dp_local_stop(server->local, DP_LOCAL_SERVER, 0);
    dp_folder_close(&server->folder);
    if (server->folder.path[0])
        (void)nftw(server->folder.path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
    dp_cluster_free(&server->cluster);
    *server = (struct dp_bench_server){.folder.lock = -1};
}

enum dp_status dp_bench_server_look(const struct dp_bench_server *server, struct dp_error *err)
{
    dp_local_wait(server->local, 0);
    if (dp_local_signal(server->local) || dp_local_failed(server->local))
        return dp_fail(err, DP_STOPPING, "stopped before the end");
    return DP_OK;
}

static enum dp_status fill_some(struct dp_bench_server *server, struct dp_keys *keys, uint64_t *numbers,
                                const float *gradients, uint64_t from, size_t n, struct dp_error *err)
{
    struct dp_push_part part = {.table = server->table[0], .keys = keys, .gradients = gradients};
    struct dp_push_options options = {.rate = 0.001f};
    struct dp_ticket ticket = {0};
    for (size_t i = 0; i < n; i++)
        numbers[i] = from + i;
    enum dp_status st = dp_keys_set(keys, numbers, n, err);
    if (st == DP_OK)
        st = dp_client_push(server->client[0], &options, &part, 1, DP_BENCH_WAIT_MS, &ticket, err);
    if (st == DP_OK)
        st = dp_client_wait(server->client[0], &ticket, DP_BENCH_WAIT_MS, NULL, err);
    return st == DP_OK ? dp_bench_server_look(server, err) : st;
}

enum dp_status dp_bench_server_fill(struct dp_bench_server *server, uint64_t rows, struct dp_error *err)
{
    size_t most = FILL_BYTES / (server->options.dim * sizeof(float));
    most = most > FILL_KEYS ? FILL_KEYS : most > 0 ? most : 1;
    struct dp_keys *keys = NULL;
    uint64_t *numbers = malloc(most * sizeof *numbers);
    float *gradients = malloc(most * server->options.dim * sizeof *gradients);
    enum dp_status st = numbers && gradients ? dp_keys_new(&keys, err)
                                             : dp_fail(err, DP_NOMEM, "no memory to fill a table from");
    for (size_t i = 0; st == DP_OK && i < most * server->options.dim; i++)
        gradients[i] = (float)(i % 7 + 1) * 0.001f;
    for (uint64_t from = 0; from < rows && st == DP_OK; from += most)
        st = fill_some(server, keys, numbers, gradients, from,
                       rows - from < most ? (size_t)(rows - from) : most, err);
    dp_keys_free(&keys);
    free(gradients);
    free(numbers);
    return st;
}
