/* bench: how fast one real server of one shard is, beside the bare wire and a bare copy, in one run.
 *     raw's peer -> for each width: server -> filled -> latency -> every kind, interleaved -> killed, removed
 * Why       Machines are shared and their memory's speed drifts: only what was measured a moment apart is
 *           compared, so each repeat takes a slice of downpour, of raw and of memcpy, one after the other. */
#include "deploy/cli/bench_disk.h"
#include "deploy/cli/bench_raw.h"
#include "deploy/cli/bench_rows.h"
#include "deploy/cli/bench_server.h"
#include "deploy/cli/bench_show.h"
#include "deploy/cli/bench_sustained.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/options.h"

#include "common/base/parse.h"
#include "common/model/row.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define DIMS_MAX       16u
#define KINDS          8u /* of throughput of one server */
#define VARIANTS_MAX   12u
#define SLOT_BYTES     43u /* of the cache's index, at its emptiest */
#define ROW_OVERHEAD   64u
#define ZIPF           1.05
#define DELAY_KEYS     10u
#define REQUEST_MAX    ((uint64_t)128 << 20)
#define ROWS_MAX       (UINT64_C(1) << 31)
#define CACHE_BYTES    ((uint64_t)1 << 45)
#define JOURNAL_BYTES  ((uint64_t)4 << 30)
#define REPLAY_ROWS    1000000u
#define SEED           UINT64_C(20240229)
#define SLICE_MS       300u
#define QUICK_SLICE_MS 40u

static const struct dp_option options[] = {
    {"--dims", "LIST", "widths of rows; default 1,16,64,256", NULL, NULL},
    {"--rows", "N", "rows of the table, as far as half of the free memory goes; default 10000000", NULL,
     NULL},
    {"--keys", "N", "keys drawn for a request; default 10000", NULL, NULL},
    {"--in-flight", "N", "requests under way, 1 .. 16; default 4", NULL, NULL},
    {"--repeats", "N", "of each measurement, 1 .. 99; default 5", NULL, NULL},
    {"--slice", "MS", "duration of one measurement; default 300", NULL, NULL},
    {"--only", "WHAT", "pull, push, latency or recovery; default: all but recovery", NULL, NULL},
    {"--draw", "KIND", "uniform or zipf (exponent 1.05); default: both", NULL, NULL},
    {"--type", "TYPE", "values on the wire: f32 or bf16; default: both", NULL, NULL},
    {"--durability", "LIST", "of machine, process, none; a server for each; default machine", NULL, NULL},
    {"--transport", "LIST", "of tcp, ipc; a server for each; default tcp", NULL, NULL},
    {"--cache", "LIST", "percent of the rows that the server's cache holds; a server for each; default 100",
     NULL, NULL},
    {"--journal-bytes", "N", "budget of a server's journal; default 4294967296", NULL, NULL},
    {"--pin", "KIND",
     "shard: the server's serving thread on one processor, all else on another (default);\n"
     "process: server and client on one each; none: as the kernel likes",
     NULL, NULL},
    {"--cpu", NULL, "show the processor time of each thread for a row, too", NULL, NULL},
    {"--alone", NULL, "no yardsticks beside it: for profilers", NULL, NULL},
    {"--quick", NULL, "a few seconds: width 16, 200000 rows, 3 short repeats", NULL, NULL},
    {"--json", NULL, "a line of JSON for each figure in place of the table", NULL, NULL},
};
#define OPTIONS (sizeof options / sizeof options[0])

static const struct dp_command command = {
    .name = "bench",
    .usage = "[FLAGS]",
    .summary =
        "Measures pulls and pushes (Adam) of one server process with one shard on this machine, beside raw "
        "(the "
        "same bytes over\n"
        "bare sockets), memcpy (the same bytes copied) and disk (a push's bytes appended and synced), in one "
        "run, interleaved;\n"
        "the round trip of small requests; the server's memory for a row; how long it takes to recover. Keys "
        "are sorted outside\n"
        "the timing. Several servers (of several durabilities, transports, caches) are measured in turns.\n"
        "'downpour bench sustained' measures one push after the other for minutes.",
    .options = options,
    .count = OPTIONS,
};

struct bench {
    const char *values[OPTIONS];
    uint32_t dim[DIMS_MAX], dims;
    uint64_t rows, keys, journal_bytes;
    uint32_t in_flight, repeats, slice_ms, sets, delays;
    const char *only, *draw, *type;
    bool json, alone, cpu;
    struct dp_bench_server_options variant[VARIANTS_MAX]; /* dim and cache_bytes: by width */
    uint32_t cache[VARIANTS_MAX], variants;               /* cache: percent */
    struct dp_pin pin;
    struct dp_raw *raw[2]; /* tcp, ipc; NULL: nobody needs it */
    char ipc[64];          /* directory of raw's socket; empty: none */
    struct dp_local *local;
};

/* One kind of throughput at one width: what is measured, of which server, and where the numbers of its requests stand. */
struct kind {
    bool push, zipf, bf16;
    uint32_t variant;
    uint64_t number, raw_number, copy_number, disk_number;
    double last; /* rate of the repeat at hand */
    struct dp_bench_line line;
};

struct place { /* all of one width */
    struct bench *bench;
    uint32_t dim;
    uint64_t rows;
    struct dp_bench_server server[VARIANTS_MAX];
    uint32_t servers;
    struct dp_bench_keys keys[2]; /* uniform, Zipf */
    struct dp_bench_rows work[2];
    struct dp_bench_disk *disk; /* NULL: no push is synced */
    struct kind *kind;
    uint32_t kinds;
};

static const char *flag(const struct bench *b, const char *name)
{
    return dp_options_value(&command, b->values, name);
}

/* ---- flags */

static enum dp_status number(const struct bench *b, const char *name, uint64_t min, uint64_t max,
                             uint64_t *out, struct dp_error *err)
{
    return flag(b, name) ? dp_parse_u64(flag(b, name), min, max, name, out, err) : DP_OK;
}

static enum dp_status small(const struct bench *b, const char *name, uint32_t min, uint32_t max,
                            uint32_t *out, struct dp_error *err)
{
    uint64_t value = *out;
    enum dp_status st = number(b, name, min, max, &value, err);
    *out = (uint32_t)value;
    return st;
}

static enum dp_status word(const struct bench *b, const char *name, const char *const *words,
                           const char **out, struct dp_error *err)
{
    *out = flag(b, name);
    for (size_t i = 0; *out && words[i]; i++)
        if (strcmp(*out, words[i]) == 0)
            return DP_OK;
    if (!*out)
        return DP_OK;
    return dp_fail(err, DP_ARGUMENT, "flag '%s' is '%s': see --help for what it takes", name, *out);
}

static enum dp_status parse_dims(struct bench *b, const char *text, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    while (st == DP_OK) {
        char one[32];
        uint64_t dim = 0;
        size_t len = strcspn(text, ",");
        if (b->dims == DIMS_MAX)
            return dp_fail(err, DP_ARGUMENT, "flag '--dims' has over %u widths", DIMS_MAX);
        (void)snprintf(one, sizeof one, "%.*s", (int)(len < 31 ? len : 31), text);
        st = dp_parse_u64(one, 1, DP_TABLE_DIM_MAX, "--dims", &dim, err);
        b->dim[b->dims++] = (uint32_t)dim;
        if (text[len] == '\0')
            break;
        text += len + 1;
    }
    return st;
}

/* The words of a list, each one of `words`, in `has` by its place. */
static enum dp_status parse_words(const struct bench *b, const char *name, const char *const *words,
                                  bool *has, struct dp_error *err)
{
    const char *text = flag(b, name);
    while (text) {
        size_t len = strcspn(text, ","), i = 0;
        while (words[i] && (strlen(words[i]) != len || strncmp(words[i], text, len) != 0))
            i++;
        if (!words[i])
            return dp_fail(err, DP_ARGUMENT, "flag '%s' has '%.*s': see --help for what it takes", name,
                           (int)len, text);
        has[i] = true;
        text = text[len] ? text + len + 1 : NULL;
    }
    return DP_OK;
}

static enum dp_status parse_caches(const struct bench *b, uint32_t *percents, uint32_t *n,
                                   struct dp_error *err)
{
    const char *text = flag(b, "--cache");
    percents[0] = 100;
    *n = text ? 0 : 1;
    while (text) {
        char one[16];
        uint64_t percent = 0;
        size_t len = strcspn(text, ",");
        (void)snprintf(one, sizeof one, "%.*s", (int)(len < 15 ? len : 15), text);
        enum dp_status st = *n < 4 ? dp_parse_u64(one, 1, 100, "--cache", &percent, err)
                                   : dp_fail(err, DP_ARGUMENT, "flag '--cache' has over 4 values");
        if (st != DP_OK)
            return st;
        percents[(*n)++] = (uint32_t)percent;
        text = text[len] ? text + len + 1 : NULL;
    }
    return DP_OK;
}

/* A server for each combination. */
static enum dp_status settle_variants(struct bench *b, struct dp_error *err)
{
    static const char *const durabilities[] = {"machine", "process", "none", NULL};
    static const char *const transports[] = {"tcp", "ipc", NULL};
    bool durable[3] = {!flag(b, "--durability")}, transport[2] = {!flag(b, "--transport")};
    uint32_t caches[4] = {0}, cache_count = 0;
    enum dp_status st = parse_words(b, "--durability", durabilities, durable, err);
    if (st == DP_OK)
        st = parse_words(b, "--transport", transports, transport, err);
    if (st == DP_OK)
        st = parse_caches(b, caches, &cache_count, err);
    for (uint32_t i = 0; i < 6 * cache_count && st == DP_OK; i++) {
        uint32_t d = i % 3, t = i / 3 % 2, c = i / 6;
        if (!durable[d] || !transport[t])
            continue;
        if (b->variants == VARIANTS_MAX)
            return dp_fail(err, DP_ARGUMENT,
                           "over %u servers at once: name fewer durabilities, transports or caches",
                           VARIANTS_MAX);
        b->cache[b->variants] = caches[c];
        b->variant[b->variants++] = (struct dp_bench_server_options){
            .durability = (enum dp_cluster_durability)d, .ipc = t == 1, .journal_bytes = b->journal_bytes};
    }
    return st;
}

static enum dp_status settle(struct bench *b, struct dp_error *err)
{
    static const char *const only[] = {"pull", "push", "latency", "recovery", NULL};
    static const char *const draw[] = {"uniform", "zipf", NULL};
    static const char *const type[] = {"f32", "bf16", NULL};
    static const char *const pin[] = {"shard", "process", "none", NULL};
    const char *pinned = NULL;
    bool quick = flag(b, "--quick") != NULL;
    b->alone = flag(b, "--alone") != NULL;
    b->cpu = flag(b, "--cpu") != NULL;
    b->json = flag(b, "--json") != NULL;
    b->rows = quick ? 200000 : 10000000;
    b->keys = 10000;
    b->in_flight = 4;
    b->journal_bytes = JOURNAL_BYTES;
    b->repeats = quick ? 3 : 5;
    b->slice_ms = quick ? QUICK_SLICE_MS : SLICE_MS;
    b->sets = quick ? 64 : 512;
    b->delays = quick ? 300 : 5000;
    enum dp_status st = parse_dims(b,
                                   flag(b, "--dims") ? flag(b, "--dims")
                                   : quick           ? "16"
                                                     : "1,16,64,256",
                                   err);
    if (st == DP_OK)
        st = number(b, "--rows", 1, ROWS_MAX, &b->rows, err);
    if (st == DP_OK)
        st = number(b, "--keys", 1, 1000000, &b->keys, err);
    if (st == DP_OK)
        st = number(b, "--journal-bytes", (uint64_t)1 << 20, (uint64_t)1 << 40, &b->journal_bytes, err);
    if (st == DP_OK)
        st = settle_variants(b, err);
    if (st == DP_OK)
        st = small(b, "--in-flight", 1, DP_BENCH_IN_FLIGHT_MAX, &b->in_flight, err);
    if (st == DP_OK)
        st = small(b, "--repeats", 1, DP_BENCH_REPEATS_MAX, &b->repeats, err);
    if (st == DP_OK)
        st = small(b, "--slice", 1, 60000, &b->slice_ms, err);
    if (st == DP_OK)
        st = word(b, "--only", only, &b->only, err);
    if (st == DP_OK)
        st = word(b, "--draw", draw, &b->draw, err);
    if (st == DP_OK)
        st = word(b, "--type", type, &b->type, err);
    for (uint32_t i = 0; i < b->dims && st == DP_OK; i++)
        if (b->keys * b->dim[i] * 4 > REQUEST_MAX)
            st = dp_fail(err, DP_ARGUMENT,
                         "%" PRIu64 " keys of width %" PRIu32 " are over %" PRIu64
                         " bytes a request: give fewer --keys or smaller --dims",
                         b->keys, b->dim[i], REQUEST_MAX);
    if (st == DP_OK)
        st = word(b, "--pin", pin, &pinned, err);
    b->pin = dp_pin_choose(!pinned || strcmp(pinned, "shard") == 0 ? DP_PIN_SHARD
                           : strcmp(pinned, "process") == 0        ? DP_PIN_PROCESS
                                                                   : DP_PIN_NONE);
    return st;
}

/* ---- one width */

static struct dp_table_spec adam(uint32_t dim)
{
    return (struct dp_table_spec){.dim = dim, .optimizer = dp_optimizer_defaults(DP_OPT_ADAM)};
}

static uint64_t cached_row_bytes(uint32_t dim)
{
    struct dp_table_spec spec = adam(dim);
    return dp_row_bytes(&spec) + SLOT_BYTES;
}

/* As many as asked for, but no more than half of what memory is free for all servers. */
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

static void list_kinds(struct place *p)
{
    static const char *const what[] = {"pull", "push"}, *const draw[] = {"uniform", "zipf"},
                             *const type[] = {"f32", "bf16"};
    const struct bench *b = p->bench;
    for (uint32_t i = 0; i < KINDS * b->variants; i++) {
        uint32_t v = i % b->variants, k = i / b->variants; /* what is compared stands side by side */
        bool push = k & 1, zipf = k & 2, bf16 = k & 4;
        if (!wanted(b->only, what[push]) || !wanted(b->draw, draw[zipf]) || !wanted(b->type, type[bf16]))
            continue;
        p->kind[p->kinds++] =
            (struct kind){.push = push,
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

static enum dp_status draw_keys(struct place *p, struct dp_error *err)
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
struct look {
    struct dp_cpu cpu;
    uint64_t ns, misses, rows;
};

static enum dp_status take_look(struct place *p, const struct kind *kind, struct look *out,
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
    dp_cpu_look(server->pid, &out->cpu);
    out->ns = dp_bench_now_ns();
    return DP_OK;
}

/* A slice of each yardstick. */
static enum dp_status measure_beside(struct place *p, struct kind *kind, double *raw_rate, double *copy_rate,
                                     double *disk_rate, struct dp_error *err)
{
    struct bench *b = p->bench;
    struct dp_bench_rows *work = &p->work[kind->zipf];
    struct dp_load raw = dp_bench_rows_raw(work, b->raw[b->variant[kind->variant].ipc]);
    struct dp_load copy = dp_bench_rows_memcpy(work);
    enum dp_status st = dp_load_run(&raw, b->in_flight, b->slice_ms, &kind->raw_number, raw_rate, err);
    if (st == DP_OK)
        st = dp_load_run(&copy, b->in_flight, b->slice_ms / 10 + 1, &kind->copy_number, copy_rate, err);
    if (st == DP_OK && p->disk && kind->push && b->variant[kind->variant].durability == DP_CLUSTER_MACHINE) {
        struct dp_load disk = dp_bench_disk_load(p->disk, work->shapes, work->keys->sets);
        st = dp_load_run(&disk, b->in_flight, b->slice_ms, &kind->disk_number, disk_rate, err);
    }
    return st;
}

/* A slice of downpour, of raw, of memcpy and of the disk; counted: unless it is the first, which warms up. */
static enum dp_status measure(struct place *p, struct kind *kind, bool counted, struct dp_error *err)
{
    struct bench *b = p->bench;
    struct dp_bench_rows *work = &p->work[kind->zipf];
    struct dp_bench_server *server = &p->server[kind->variant];
    struct look before = {0}, after = {0};
    double raw_rate = 0, copy_rate = 0, disk_rate = 0;
    dp_bench_rows_set(work, server->client[kind->bf16], server->table[kind->bf16], kind->push, kind->bf16);
    struct dp_load load = dp_bench_rows_load(work);
    enum dp_status st = take_look(p, kind, &before, err);
    if (st == DP_OK)
        st = dp_load_run(&load, b->in_flight, b->slice_ms, &kind->number, &kind->last, err);
    if (st == DP_OK)
        st = take_look(p, kind, &after, err);
    if (st == DP_OK && !b->alone)
        st = measure_beside(p, kind, &raw_rate, &copy_rate, &disk_rate, err);
    if (st == DP_OK)
        st = dp_bench_server_look(server, err);
    if (st != DP_OK || !counted)
        return st;
    struct dp_bench_line *line = &kind->line;
    dp_cpu_add(&line->cpu, &before.cpu, &after.cpu);
    line->cpu_rows += after.rows - before.rows;
    line->misses += after.misses - before.misses;
    dp_bench_add(&line->rate, kind->last);
    dp_bench_add(&line->raw, raw_rate);
    dp_bench_add(&line->ratio, raw_rate > 0 ? kind->last / raw_rate : 0);
    dp_bench_add(&line->memcpy_rate, copy_rate);
    if (disk_rate > 0) {
        dp_bench_add(&line->disk, disk_rate);
        dp_bench_add(&line->disk_ratio, kind->last / disk_rate);
    }
    return DP_OK;
}

/* Each durability beside none, of the same repeat. */
static void compare_durabilities(struct place *p)
{
    const struct dp_bench_server_options *v = p->bench->variant;
    for (uint32_t i = 0; i < p->kinds; i++)
        for (uint32_t k = 0; k < p->kinds; k++) {
            struct kind *a = &p->kind[i], *n = &p->kind[k];
            if (a->push && n->push && a->zipf == n->zipf && a->bf16 == n->bf16 &&
                v[a->variant].ipc == v[n->variant].ipc && a->line.cache == n->line.cache &&
                v[a->variant].durability != DP_CLUSTER_NONE && v[n->variant].durability == DP_CLUSTER_NONE)
                dp_bench_add(&a->line.none_ratio, a->last / n->last);
        }
}

static enum dp_status throughput(struct place *p, struct dp_error *err)
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

/* Round trips of one verb, downpour's and raw's in turns. */
static enum dp_status delay(struct place *p, uint32_t variant, struct dp_bench_rows *work, bool push,
                            uint64_t *ns, struct dp_error *err)
{
    struct bench *b = p->bench;
    const uint32_t turns = 10, each = b->delays / turns;
    uint64_t *raw_ns = ns + b->delays, number = 0, raw_number = 0;
    enum dp_status st = DP_OK;
    dp_bench_rows_set(work, p->server[variant].client[0], p->server[variant].table[0], push, false);
    struct dp_load load = dp_bench_rows_load(work),
                   raw = dp_bench_rows_raw(work, b->raw[b->variant[variant].ipc]);
    for (uint32_t turn = 0; turn < turns && st == DP_OK; turn++) {
        st = dp_load_round_trips(&load, each, &number, ns + turn * each, err);
        if (st == DP_OK)
            st = dp_load_round_trips(&raw, each, &raw_number, raw_ns + turn * each, err);
        if (st == DP_OK)
            st = dp_bench_server_look(&p->server[variant], err);
    }
    size_t n = (size_t)turns * each;
    struct dp_bench_delay line = {.what = push ? "push" : "pull",
                                  .durability = dp_cluster_durability_name(b->variant[variant].durability),
                                  .transport = b->variant[variant].ipc ? "ipc" : "tcp",
                                  .dim = p->dim,
                                  .keys = DELAY_KEYS,
                                  .samples = (uint32_t)n,
                                  .p50 = dp_bench_quantile(ns, n, 0.5) / 1e3,
                                  .p99 = dp_bench_quantile(ns, n, 0.99) / 1e3,
                                  .p999 = dp_bench_quantile(ns, n, 0.999) / 1e3,
                                  .raw_p50 = dp_bench_quantile(raw_ns, n, 0.5) / 1e3,
                                  .raw_p99 = dp_bench_quantile(raw_ns, n, 0.99) / 1e3,
                                  .raw_p999 = dp_bench_quantile(raw_ns, n, 0.999) / 1e3};
    if (st == DP_OK)
        dp_bench_show_delay(&line, b->json);
    return st;
}

static enum dp_status latency(struct place *p, struct dp_error *err)
{
    const struct bench *b = p->bench;
    struct dp_bench_keys keys;
    struct dp_bench_rows work;
    uint64_t *ns = calloc(2 * (size_t)b->delays, sizeof *ns);
    enum dp_status st = ns ? dp_bench_keys_new(p->rows, DELAY_KEYS, b->sets, 0, SEED, &keys, err)
                           : dp_fail(err, DP_NOMEM, "no memory for round trips");
    if (st != DP_OK) {
        free(ns);
        return st;
    }
    st = dp_bench_rows_new(&keys, p->dim, 1, &work, err);
    for (uint32_t i = 0; i < 2 * b->variants && st == DP_OK; i++)
        st = delay(p, i / 2, &work, i % 2, ns, err);
    dp_bench_rows_clear(&work);
    dp_bench_keys_clear(&keys);
    free(ns);
    return st;
}

static enum dp_status fill(struct place *p, uint32_t variant, struct dp_error *err)
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

static enum dp_status revive(struct place *p, uint32_t variant, const char *what, struct dp_error *err)
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

/* Killed as it was filled; with all rows in the store; with a million row updates in the journal besides. */
static enum dp_status recovery(struct place *p, uint32_t variant, struct dp_error *err)
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

static enum dp_status open_servers(struct place *p, struct dp_error *err)
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
    /* What is measured is not slowed by the write-back of what it was filled with; a killed server is to have that. */
    for (uint32_t i = 0; i < b->variants && st == DP_OK && !wanted_recovery(b) && !flag(b, "--quick"); i++)
        st = dp_bench_server_settle(&p->server[i], err);
    return st;
}

static enum dp_status do_all(struct place *p, struct dp_error *err)
{
    const struct bench *b = p->bench;
    bool only_recovery = wanted_recovery(b);
    bool only_latency = b->only && strcmp(b->only, "latency") == 0;
    enum dp_status st = DP_OK;
    if ((!b->only || only_latency) && !b->alone)
        st = latency(p, err);
    for (uint32_t i = 0; only_recovery && i < b->variants && st == DP_OK; i++)
        st = recovery(p, i, err);
    if (st != DP_OK || only_recovery || only_latency)
        return st;
    st = draw_keys(p, err);
    size_t largest = (size_t)b->keys * (8 + (size_t)p->dim * 4);
    if (st == DP_OK && !b->alone && wanted(b->only, "push"))
        st = dp_bench_disk_start(p->server[0].folder.path, largest, &p->disk, err);
    return st == DP_OK ? throughput(p, err) : st;
}

static enum dp_status one_dim(struct bench *b, uint32_t dim, struct dp_error *err)
{
    struct place *p = calloc(1, sizeof *p);
    struct kind *kinds = calloc((size_t)KINDS * b->variants, sizeof *kinds);
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
        printf("one server process of one shard, one client process, this machine; %" PRIu64
               " keys drawn a request, %" PRIu32 " requests under way; ",
               b->keys, b->in_flight);
        if (b->pin.kind == DP_PIN_NONE)
            printf("not pinned\n");
        else
            printf("%s on processor %" PRIu32 ", %s on %" PRIu32 "\n",
                   b->pin.kind == DP_PIN_SHARD ? "all" : "client", b->pin.client,
                   b->pin.kind == DP_PIN_SHARD ? "but the serving thread" : "server", b->pin.server);
        dp_bench_head();
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

int dp_command_bench(int argc, char *const *argv)
{
    if (argc > 0 && strcmp(argv[0], "sustained") == 0)
        return dp_bench_sustained(argc - 1, argv + 1);
    struct bench bench = {0};
    struct dp_error err = {0};
    bool help;
    enum dp_status st = dp_options_parse(&command, argc, argv, bench.values, &help, &err);
    if (st == DP_OK && help) {
        dp_options_help(&command, stdout);
        return fflush(stdout) == 0 ? 0 : 2;
    }
    if (st == DP_OK)
        st = settle(&bench, &err);
    if (st == DP_OK)
        st = start_raw(&bench, &err); /* forks: before local and sockets make threads or hold signals */
    if (st == DP_OK)
        st = dp_local_open(&bench.local, &err);
    if (st == DP_OK)
        st = measure_all(&bench, &err);
    return finish(&bench, st, &err);
}
