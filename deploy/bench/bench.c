/* bench: how fast a real server with one shard is, next to the bare wire and a bare copy, in one run.
 *     raw's peer -> for each width: server -> filled -> latency -> every kind, interleaved -> killed, removed
 * Why       Machines are shared and their speed varies, so only measurements a moment apart are compared:
 *           each repeat takes a slice of downpour, of raw and of memcpy, one after the other. */
#include "deploy/bench/bench.h"

#include "deploy/bench/bench_inner.h"

#include "common/model/row.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SLOT_BYTES   43u /* of the cache's index, at its emptiest */
#define ROW_OVERHEAD 64u
#define ZIPF         1.05
#define CACHE_BYTES  ((uint64_t)1 << 45)
#define REPLAY_ROWS  1000000u

static struct dp_table_spec adam(uint32_t dim)
{
    return (struct dp_table_spec){.dim = dim, .optimizer = dp_optimizer_defaults(DP_OPT_ADAM)};
}

static uint64_t cached_row_bytes(uint32_t dim)
{
    struct dp_table_spec spec = adam(dim);
    return dp_row_bytes(&spec) + SLOT_BYTES;
}

/* As many rows as requested, but at most as fit into half of the free memory for all servers. */
static uint64_t rows_that_fit(const struct bench *b, uint32_t dim)
{
    uint64_t percents = 0;
    for (uint32_t i = 0; i < b->variants; i++)
        percents += b->cache[i];
    uint64_t most = dp_bench_memory() / 2 * 100 / percents / (cached_row_bytes(dim) + ROW_OVERHEAD);
    return most == 0 || b->rows < most ? b->rows : most;
}

static bool wanted(const char *only, const char *word)
{
    return !only || strcmp(only, word) == 0;
}

static void list_kinds(struct bench_place *p)
{
    static const char *const what[] = {"pull", "push"}, *const draw[] = {"uniform", "zipf"},
                             *const type[] = {"f32", "bf16"};
    const struct bench *b = p->bench;
    for (uint32_t i = 0; i < KINDS * b->variants; i++) {
        uint32_t v = i % b->variants,
                 k = i / b->variants; /* variants that are compared are measured one after the other */
        bool push = k & 1, zipf = k & 2, bf16 = k & 4;
        if (!wanted(b->only, what[push]) || !wanted(b->draw, draw[zipf]) || !wanted(b->type, type[bf16]))
            continue;
        p->kind[p->kinds++] =
            (struct bench_kind){.push = push,
                                .zipf = zipf,
                                .bf16 = bf16,
                                .variant = v,
                                .line = {.what = what[push],
                                         .draw = draw[zipf],
                                         .type = type[bf16],
                                         .durability = dp_cluster_durability_name(b->variant[v].durability),
                                         .transport = b->variant[v].ipc ? "ipc" : "tcp",
                                         .cache = b->cache[v],
                                         .dim = p->dim,
                                         .rows = p->rows,
                                         .keys = p->keys[zipf].rows_mean,
                                         .in_flight = b->in_flight}};
    }
}

static enum dp_status draw_keys(struct bench_place *p, struct dp_error *err)
{
    const struct bench *b = p->bench;
    enum dp_status st = DP_OK;
    for (int zipf = 0; zipf < 2 && st == DP_OK; zipf++) {
        st = dp_bench_keys_new(p->rows, (size_t)b->keys, b->sets, zipf ? ZIPF : 0, SEED, &p->keys[zipf], err);
        if (st == DP_OK)
            st = dp_bench_rows_new(&p->keys[zipf], p->dim, b->in_flight, &p->work[zipf], err);
    }
    return st;
}

/* Processor time by thread and misses, around a slice of downpour. */
struct bench_look {
    struct dp_bench_cpu cpu;
    uint64_t ns, misses, rows;
};

static enum dp_status take_look(struct bench_place *p, const struct bench_kind *kind, struct bench_look *out,
                                struct dp_error *err)
{
    struct dp_bench_server *server = &p->server[kind->variant];
    struct dp_status_report *report = NULL;
    enum dp_status st = dp_bench_server_counters(server, &report, err);
    if (st != DP_OK)
        return st;
    out->misses = dp_bench_counter(report, "misses");
    out->rows = dp_bench_counter(report, "pull_rows") + dp_bench_counter(report, "push_rows");
    dp_client_status_free(&report);
    dp_bench_cpu_look(server->pid, &out->cpu);
    out->ns = dp_bench_now_ns();
    return DP_OK;
}

/* A slice of each yardstick. */
static enum dp_status measure_beside(struct bench_place *p, struct bench_kind *kind, double *raw_rate,
                                     double *copy_rate, double *disk_rate, struct dp_error *err)
{
    struct bench *b = p->bench;
    struct dp_bench_rows *work = &p->work[kind->zipf];
    struct dp_load raw = dp_bench_rows_raw(work, b->raw[b->variant[kind->variant].ipc]);
    struct dp_load copy = dp_bench_rows_memcpy(work);
    enum dp_status st = dp_bench_load_run(&raw, b->in_flight, b->slice_ms, &kind->raw_number, raw_rate, err);
    if (st == DP_OK)
        st = dp_bench_load_run(&copy, b->in_flight, b->slice_ms / 10 + 1, &kind->copy_number, copy_rate, err);
    if (st == DP_OK && p->disk && kind->push && b->variant[kind->variant].durability == DP_CLUSTER_MACHINE) {
        struct dp_load disk = dp_bench_disk_load(p->disk, work->shapes, work->keys->sets);
        st = dp_bench_load_run(&disk, b->in_flight, b->slice_ms, &kind->disk_number, disk_rate, err);
    }
    return st;
}

/* A slice of the missed rows, read from the store alone. */
static enum dp_status measure_store(struct bench_place *p, struct bench_kind *kind, double misses,
                                    double *rate, struct dp_error *err)
{
    struct bench *b = p->bench;
    struct dp_load bare = b->store->load(p->store[kind->variant], &p->keys[kind->zipf], misses);
    return dp_bench_load_run(&bare, b->in_flight, b->slice_ms, &kind->store_number, rate, err);
}

/* A slice of downpour, of raw, of memcpy and of the disk. counted: false for the first, which warms up. */
static enum dp_status measure(struct bench_place *p, struct bench_kind *kind, bool counted,
                              struct dp_error *err)
{
    struct bench *b = p->bench;
    struct dp_bench_rows *work = &p->work[kind->zipf];
    struct dp_bench_server *server = &p->server[kind->variant];
    struct bench_look before = {0}, after = {0};
    struct dp_bench_line *line = &kind->line;
    double raw_rate = 0, copy_rate = 0, disk_rate = 0, store_rate = 0;
    dp_bench_rows_set(work, server->client[kind->bf16], server->table[kind->bf16], kind->push, kind->bf16);
    struct dp_load load = dp_bench_rows_load(work);
    enum dp_status st = take_look(p, kind, &before, err);
    if (st == DP_OK)
        st = dp_bench_load_run(&load, b->in_flight, b->slice_ms, &kind->number, &kind->last, err);
    if (st == DP_OK)
        st = take_look(p, kind, &after, err);
    if (st == DP_OK && !b->alone)
        st = measure_beside(p, kind, &raw_rate, &copy_rate, &disk_rate, err);
    double misses = after.rows > before.rows
                        ? (double)(after.misses - before.misses) / (double)(after.rows - before.rows)
                        : 0;
    if (st == DP_OK && !b->alone && p->store[kind->variant] && misses * line->keys >= 1)
        st = measure_store(p, kind, misses, &store_rate, err);
    if (st == DP_OK)
        st = dp_bench_server_look(server, err);
    if (st != DP_OK || !counted)
        return st;
    dp_bench_cpu_add(&line->cpu, &before.cpu, &after.cpu);
    line->cpu_rows += after.rows - before.rows;
    line->misses += after.misses - before.misses;
    dp_bench_add(&line->rate, kind->last);
    dp_bench_add(&line->raw, raw_rate);
    dp_bench_add(&line->ratio, raw_rate > 0 ? kind->last / raw_rate : 0);
    dp_bench_add(&line->memcpy_rate, copy_rate);
    if (store_rate > 0) {
        dp_bench_add(&line->store, store_rate);
        dp_bench_add(&line->store_ratio, kind->last * misses / store_rate);
    }
    if (disk_rate > 0) {
        dp_bench_add(&line->disk, disk_rate);
        dp_bench_add(&line->disk_ratio, kind->last / disk_rate);
    }
    return DP_OK;
}

/* Each durability against none, of the same repeat. */
static void compare_durabilities(struct bench_place *p)
{
    const struct dp_bench_server_options *v = p->bench->variant;
    for (uint32_t i = 0; i < p->kinds; i++)
        for (uint32_t k = 0; k < p->kinds; k++) {
            struct bench_kind *a = &p->kind[i], *n = &p->kind[k];
            if (a->push && n->push && a->zipf == n->zipf && a->bf16 == n->bf16 &&
                v[a->variant].ipc == v[n->variant].ipc && a->line.cache == n->line.cache &&
                v[a->variant].durability != DP_CLUSTER_NONE && v[n->variant].durability == DP_CLUSTER_NONE)
                dp_bench_add(&a->line.none_ratio, a->last / n->last);
        }
}

static enum dp_status throughput(struct bench_place *p, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    list_kinds(p);
    for (uint32_t repeat = 0; repeat <= p->bench->repeats && st == DP_OK; repeat++) {
        for (uint32_t i = 0; i < p->kinds && st == DP_OK; i++)
            st = measure(p, &p->kind[i], repeat > 0, err);
        if (st == DP_OK && repeat > 0)
            compare_durabilities(p);
    }
    for (uint32_t i = 0; i < p->kinds && st == DP_OK; i++)
        dp_bench_show_line(&p->kind[i].line, p->bench->json, p->bench->cpu);
    return st;
}
static enum dp_status fill(struct bench_place *p, uint32_t variant, struct dp_error *err)
{
    struct dp_table_spec spec = adam(p->dim);
    struct dp_bench_server *server = &p->server[variant];
    uint64_t start = dp_bench_now_ns();
    enum dp_status st = dp_bench_server_fill(server, p->rows, err);
    double took = (double)(dp_bench_now_ns() - start) / 1e9;
    uint64_t now = dp_bench_server_resident(server);
    if (st == DP_OK)
        dp_bench_show_memory(p->dim, p->rows, now > server->resident ? now - server->resident : 0,
                             dp_row_bytes(&spec), took, p->bench->json);
    return st;
}

/* ---- recovery */

static enum dp_status revive(struct bench_place *p, uint32_t variant, const char *what, struct dp_error *err)
{
    struct dp_bench_server *server = &p->server[variant];
    struct dp_status_report *report = NULL;
    uint64_t ns = 0;
    enum dp_status st = dp_bench_server_revive(server, &ns, err);
    if (st == DP_OK)
        st = dp_bench_server_counters(server, &report, err);
    if (st != DP_OK)
        return st;
    struct dp_bench_recovery line = {.what = what,
                                     .durability =
                                         dp_cluster_durability_name(p->bench->variant[variant].durability),
                                     .dim = p->dim,
                                     .rows = p->rows,
                                     .seconds = (double)ns / 1e9,
                                     .replayed_rows = dp_bench_counter(report, "rows_replayed"),
                                     .replayed_bytes = dp_bench_counter(report, "bytes_replayed")};
    dp_client_status_free(&report);
    dp_bench_show_recovery(&line, p->bench->json);
    return DP_OK;
}

/* Kills the server after filling; with all rows in the store; and with a million row updates in the
 * journal. */
static enum dp_status recovery(struct bench_place *p, uint32_t variant, struct dp_error *err)
{
    if (p->bench->variant[variant].durability == DP_CLUSTER_NONE)
        return DP_OK;
    enum dp_status st = revive(p, variant, "after it was filled", err);
    if (st == DP_OK)
        st = dp_bench_server_settle(&p->server[variant], err);
    if (st == DP_OK)
        st = revive(p, variant, "rows in the store", err);
    if (st == DP_OK)
        st = dp_bench_server_fill(&p->server[variant], p->rows < REPLAY_ROWS ? p->rows : REPLAY_ROWS, err);
    return st == DP_OK ? revive(p, variant, "and a million updates", err) : st;
}

/* ---- all of one width */

static bool wanted_recovery(const struct bench *b)
{
    return b->only && strcmp(b->only, "recovery") == 0;
}

static enum dp_status open_servers(struct bench_place *p, struct dp_error *err)
{
    struct bench *b = p->bench;
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; i < b->variants && st == DP_OK; i++) {
        struct dp_bench_server_options wanted_server = b->variant[i];
        wanted_server.dim = p->dim;
        wanted_server.cache_bytes =
            b->cache[i] == 100 ? CACHE_BYTES
                               : p->rows * cached_row_bytes(p->dim) / 100 * b->cache[i] + ((uint64_t)4 << 20);
        /* The newest child is the last that the kernel names. */
        st = dp_bench_server_open(&p->server[i], b->local, 0, &wanted_server, &b->pin, err);
        p->servers += st == DP_OK;
        if (st == DP_OK)
            st = fill(p, i, err);
    }
    /* Measurements should not be slowed by the write-back of the filling; a server that is killed should have
     * it. */
    for (uint32_t i = 0;
         i < b->variants && st == DP_OK && !wanted_recovery(b) && !dp_bench_flag(b, "--quick"); i++)
        st = dp_bench_server_settle(&p->server[i], err);
    return st;
}

/* (Pushes that come later are no concern of it: it reads the rows that are there now.) */
static enum dp_status open_store(struct bench_place *p, uint32_t variant, struct dp_error *err)
{
    const struct dp_bench_server *server = &p->server[variant];
    char shard[DP_PATH_MAX + 32];
    (void)snprintf(shard, sizeof shard, "%s/shard-0000", server->cluster->server[0].store);
    return p->bench->store->start(shard, DP_BENCH_TABLE, &p->bench->pin, &p->store[variant], err);
}

static enum dp_status do_all(struct bench_place *p, struct dp_error *err)
{
    const struct bench *b = p->bench;
    bool only_recovery = wanted_recovery(b);
    bool only_latency = b->only && strcmp(b->only, "latency") == 0;
    enum dp_status st = DP_OK;
    if ((!b->only || only_latency) && !b->alone)
        st = dp_bench_latency(p, err);
    for (uint32_t i = 0; only_recovery && i < b->variants && st == DP_OK; i++)
        st = recovery(p, i, err);
    if (st != DP_OK || only_recovery || only_latency)
        return st;
    st = draw_keys(p, err);
    size_t largest = (size_t)b->keys * (8 + (size_t)p->dim * 4);
    if (st == DP_OK && !b->alone && wanted(b->only, "push"))
        st = dp_bench_disk_start(p->server[0].folder.path, largest, &p->disk, err);
    for (uint32_t i = 0; i < b->variants && st == DP_OK && b->store && !b->alone; i++)
        if (b->cache[i] < 100 && b->variant[i].durability != DP_CLUSTER_NONE)
            st = open_store(p, i, err);
    if (st == DP_OK && wanted(b->only, "pull"))
        st = dp_bench_beside(p, err);
    return st == DP_OK ? throughput(p, err) : st;
}

static enum dp_status one_dim(struct bench *b, uint32_t dim, struct dp_error *err)
{
    struct bench_place *p = calloc(1, sizeof *p);
    struct bench_kind *kinds = calloc((size_t)KINDS * b->variants, sizeof *kinds);
    if (!p || !kinds) {
        free(p);
        free(kinds);
        return dp_fail(err, DP_NOMEM, "no memory for a measurement");
    }
    p->bench = b;
    p->dim = dim;
    p->kind = kinds;
    p->rows = rows_that_fit(b, dim);
    enum dp_status st = open_servers(p, err);
    if (st == DP_OK)
        st = do_all(p, err);
    for (uint32_t i = 0; i < b->variants; i++) /* first: after a failure its threads may still read keys */
        if (p->store[i])
            b->store->stop(p->store[i]);
    for (int i = 0; i < 2; i++) {
        dp_bench_rows_clear(&p->work[i]);
        dp_bench_keys_clear(&p->keys[i]);
    }
    dp_bench_disk_stop(&p->disk);
    for (uint32_t i = 0; i < p->servers; i++)
        dp_bench_server_close(&p->server[i]);
    free(p->kind);
    free(p);
    return st;
}

/* ---- all */

static enum dp_status start_raw(struct bench *b, struct dp_error *err)
{
    uint32_t widest = 0;
    enum dp_status st = DP_OK;
    char at[96] = "tcp://127.0.0.1:*";
    for (uint32_t i = 0; i < b->dims; i++)
        widest = b->dim[i] > widest ? b->dim[i] : widest;
    dp_pin_server(&b->pin); /* its peer stands where the server will */
    for (int ipc = 0; ipc < 2 && st == DP_OK; ipc++) {
        bool needed = false;
        for (uint32_t i = 0; i < b->variants; i++)
            needed = needed || b->variant[i].ipc == (ipc == 1);
        if (needed && ipc) {
            (void)snprintf(b->ipc, sizeof b->ipc, "/tmp/downpour-bench-XXXXXX");
            if (!mkdtemp(b->ipc))
                return dp_fail(err, DP_IO, "cannot make a directory in /tmp");
            (void)snprintf(at, sizeof at, "ipc://%s/raw", b->ipc);
        }
        if (needed)
            st = dp_raw_start(at, (size_t)b->keys * (8 + (size_t)widest * 4), b->in_flight, &b->pin,
                              &b->raw[ipc], err);
    }
    dp_pin_client(&b->pin);
    return st;
}

static enum dp_status measure_all(struct bench *b, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (int ipc = 0; ipc < 2 && st == DP_OK; ipc++)
        st = b->raw[ipc] ? dp_raw_connect(b->raw[ipc], err) : DP_OK;
    if (st == DP_OK && !b->json) {
        printf("one server process, shards: %" PRIu32 ", one client process, this machine; %" PRIu64
               " keys drawn a request, %" PRIu32 " requests under way; ",
               b->shards, b->keys, b->in_flight);
        if (b->pin.kind == DP_PIN_NONE)
            printf("not pinned\n");
        else
            printf("%s on processor %" PRIu32 ", %s on %" PRIu32 "\n",
                   b->pin.kind == DP_PIN_SHARD ? "all" : "client", b->pin.client,
                   b->pin.kind == DP_PIN_SHARD ? "but the serving thread" : "server", b->pin.server);
        dp_bench_head(b->store != NULL);
    }
    for (uint32_t i = 0; i < b->dims && st == DP_OK; i++)
        st = one_dim(b, b->dim[i], err);
    return st;
}

static int finish(struct bench *b, enum dp_status st, const struct dp_error *err)
{
    int code = st == DP_OK ? 0 : 2;
    if (b->local && dp_local_failed(b->local)) {
        dp_local_explain(b->local, stderr);
        code = 2;
    } else if (b->local && dp_local_signal(b->local)) {
        code = 128 + dp_local_signal(b->local);
        fprintf(stderr, "downpour: stopping, as signal %d asks\n", dp_local_signal(b->local));
    } else if (st != DP_OK) {
        fprintf(stderr, "downpour: %s\n", err->text);
    }
    dp_local_close(&b->local);
    for (int ipc = 0; ipc < 2; ipc++)
        dp_raw_stop(&b->raw[ipc]);
    if (b->ipc[0]) {
        char path[96];
        (void)snprintf(path, sizeof path, "%s/raw", b->ipc);
        (void)unlink(path);
        (void)rmdir(b->ipc);
    }
    if (fflush(stdout) != 0 && code == 0) {
        fprintf(stderr, "downpour: cannot write to standard output\n");
        code = 2;
    }
    return code;
}

int dp_bench_main(int argc, char *const *argv, const struct dp_bench_store *store)
{
    struct bench bench = {.store = store};
    struct dp_error err = {0};
    bool help;
    if (argc > 0 && strcmp(argv[0], "table") == 0)
        return dp_bench_table(argc - 1, argv + 1);
    enum dp_status st = dp_options_parse(&dp_bench_command, argc, argv, bench.values, &help, &err);
    if (st == DP_OK && help)
        return dp_options_show_help(&dp_bench_command);
    if (st == DP_OK)
        st = dp_bench_settle(&bench, &err);
    if (st == DP_OK)
        st = start_raw(&bench, &err); /* forks: before local and sockets make threads or hold signals */
    if (st == DP_OK)
        st = dp_local_open(&bench.local, &err);
    if (st == DP_OK)
        st = measure_all(&bench, &err);
    return finish(&bench, st, &err);
}

int dp_bench(int argc, char *const *argv)
{
    return dp_bench_main(argc, argv, NULL);
}
