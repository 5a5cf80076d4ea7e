/* bench: how fast one real server of one shard is, beside the bare wire and a bare copy, in one run.
 *     raw's peer -> for each width: server -> filled -> latency -> every kind, interleaved -> killed, removed
 * Why       Machines are shared and their memory's speed drifts: only what was measured a moment apart is
 *           compared, so each repeat takes a slice of downpour, of raw and of memcpy, one after the other. */
#include "deploy/cli/bench_raw.h"
#include "deploy/cli/bench_rows.h"
#include "deploy/cli/bench_server.h"
#include "deploy/cli/bench_show.h"
#include "deploy/cli/commands.h"
#include "deploy/cli/options.h"

#include "common/base/parse.h"
#include "common/model/row.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define DIMS_MAX       16u
#define KINDS          8u /* of throughput at one width */
#define ROW_OVERHEAD   64u
#define ZIPF           1.05
#define DELAY_KEYS     10u
#define REQUEST_MAX    ((uint64_t)128 << 20)
#define ROWS_MAX       (UINT64_C(1) << 31)
#define CACHE_BYTES    ((uint64_t)1 << 45)
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
    {"--only", "WHAT", "pull, push or latency; default: all", NULL, NULL},
    {"--draw", "KIND", "uniform or zipf (exponent 1.05); default: both", NULL, NULL},
    {"--type", "TYPE", "values on the wire: f32 or bf16; default: both", NULL, NULL},
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
    .summary = "Measures pulls and pushes (Adam) of one server process with one shard, over tcp on this "
               "machine, beside raw\n"
               "(the same bytes over bare sockets) and memcpy (the same bytes copied), in one run, "
               "interleaved; the round trip of\n"
               "small requests; and the server's memory for a row. Keys are sorted outside the timing.",
    .options = options,
    .count = OPTIONS,
};

struct bench {
    const char *values[OPTIONS];
    uint32_t dim[DIMS_MAX], dims;
    uint64_t rows, keys;
    uint32_t in_flight, repeats, slice_ms, sets, delays;
    const char *only, *draw, *type;
    bool json, alone, cpu;
    struct dp_pin pin;
    struct dp_raw *raw;
    struct dp_local *local;
};

/* One kind of throughput at one width: what is measured, and where the numbers of its requests stand. */
struct kind {
    bool push, zipf, bf16;
    uint64_t number, raw_number, copy_number;
    struct dp_bench_line line;
};

struct place { /* all of one width */
    struct bench *bench;
    uint32_t dim;
    uint64_t rows;
    struct dp_bench_server server;
    struct dp_bench_keys keys[2]; /* uniform, Zipf */
    struct dp_bench_rows work[2];
    struct kind kind[KINDS];
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
    return dp_fail(err, DP_ARGUMENT, "flag '%s' is '%s': expected %s, %s%s%s", name, *out, words[0], words[1],
                   words[2] ? " or " : "", words[2] ? words[2] : "");
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

static enum dp_status settle(struct bench *b, struct dp_error *err)
{
    static const char *const only[] = {"pull", "push", "latency", NULL};
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

/* As many as asked for, but no more than half of what memory is free. */
static uint64_t rows_that_fit(const struct bench *b, uint32_t dim)
{
    struct dp_table_spec spec = adam(dim);
    uint64_t most = dp_bench_memory() / 2 / (dp_row_bytes(&spec) + ROW_OVERHEAD);
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
    for (uint32_t i = 0; i < KINDS; i++) {
        bool push = i & 1, zipf = i & 2, bf16 = i & 4;
        if (!wanted(b->only, what[push]) || !wanted(b->draw, draw[zipf]) || !wanted(b->type, type[bf16]))
            continue;
        p->kind[p->kinds++] = (struct kind){.push = push,
                                            .zipf = zipf,
                                            .bf16 = bf16,
                                            .line = {.what = what[push],
                                                     .draw = draw[zipf],
                                                     .type = type[bf16],
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

/* A slice of downpour, of raw and of memcpy; counted: unless it is the first, which warms up. */
static enum dp_status measure(struct place *p, struct kind *kind, bool counted, struct dp_error *err)
{
    struct bench *b = p->bench;
    struct dp_bench_rows *work = &p->work[kind->zipf];
    double rate = 0, raw_rate = 0, copy_rate = 0;
    dp_bench_rows_set(work, p->server.client[kind->bf16], p->server.table[kind->bf16], kind->push,
                      kind->bf16);
    struct dp_load load = dp_bench_rows_load(work), raw = dp_bench_rows_raw(work, b->raw),
                   copy = dp_bench_rows_memcpy(work);
    struct dp_cpu before, after;
    uint64_t began = dp_bench_now_ns();
    dp_cpu_look(p->server.pid, &before);
    enum dp_status st = dp_load_run(&load, b->in_flight, b->slice_ms, &kind->number, &rate, err);
    dp_cpu_look(p->server.pid, &after);
    double seconds = (double)(dp_bench_now_ns() - began) / 1e9;
    if (st == DP_OK && !b->alone)
        st = dp_load_run(&raw, b->in_flight, b->slice_ms, &kind->raw_number, &raw_rate, err);
    if (st == DP_OK && !b->alone)
        st = dp_load_run(&copy, b->in_flight, b->slice_ms / 10 + 1, &kind->copy_number, &copy_rate, err);
    if (st == DP_OK)
        st = dp_bench_server_look(&p->server, err);
    if (st != DP_OK || !counted)
        return st;
    dp_cpu_add(&kind->line.cpu, &before, &after);
    kind->line.cpu_rows += (uint64_t)(rate * seconds);
    dp_bench_add(&kind->line.rate, rate);
    dp_bench_add(&kind->line.raw, raw_rate);
    dp_bench_add(&kind->line.ratio, raw_rate > 0 ? rate / raw_rate : 0);
    dp_bench_add(&kind->line.memcpy_rate, copy_rate);
    return DP_OK;
}

static enum dp_status throughput(struct place *p, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    list_kinds(p);
    for (uint32_t repeat = 0; repeat <= p->bench->repeats && st == DP_OK; repeat++)
        for (uint32_t i = 0; i < p->kinds && st == DP_OK; i++)
            st = measure(p, &p->kind[i], repeat > 0, err);
    for (uint32_t i = 0; i < p->kinds && st == DP_OK; i++)
        dp_bench_show_line(&p->kind[i].line, p->bench->json, p->bench->cpu);
    return st;
}

/* Round trips of one verb, downpour's and raw's in turns. */
static enum dp_status delay(struct place *p, struct dp_bench_rows *work, bool push, uint64_t *ns,
                            struct dp_error *err)
{
    struct bench *b = p->bench;
    const uint32_t turns = 10, each = b->delays / turns;
    uint64_t *raw_ns = ns + b->delays, number = 0, raw_number = 0;
    enum dp_status st = DP_OK;
    dp_bench_rows_set(work, p->server.client[0], p->server.table[0], push, false);
    struct dp_load load = dp_bench_rows_load(work), raw = dp_bench_rows_raw(work, b->raw);
    for (uint32_t turn = 0; turn < turns && st == DP_OK; turn++) {
        st = dp_load_round_trips(&load, each, &number, ns + turn * each, err);
        if (st == DP_OK)
            st = dp_load_round_trips(&raw, each, &raw_number, raw_ns + turn * each, err);
        if (st == DP_OK)
            st = dp_bench_server_look(&p->server, err);
    }
    size_t n = (size_t)turns * each;
    struct dp_bench_delay line = {.what = push ? "push" : "pull",
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
    if (b->only && strcmp(b->only, "latency") != 0)
        return DP_OK;
    uint64_t *ns = calloc(2 * (size_t)b->delays, sizeof *ns);
    enum dp_status st = ns ? dp_bench_keys_new(p->rows, DELAY_KEYS, b->sets, 0, SEED, &keys, err)
                           : dp_fail(err, DP_NOMEM, "no memory for round trips");
    if (st != DP_OK) {
        free(ns);
        return st;
    }
    st = dp_bench_rows_new(&keys, p->dim, 1, &work, err);
    for (int push = 0; push < 2 && st == DP_OK; push++)
        st = delay(p, &work, push, ns, err);
    dp_bench_rows_clear(&work);
    dp_bench_keys_clear(&keys);
    free(ns);
    return st;
}

static enum dp_status fill(struct place *p, struct dp_error *err)
{
    struct dp_table_spec spec = adam(p->dim);
    uint64_t start = dp_bench_now_ns();
    enum dp_status st = dp_bench_server_fill(&p->server, p->rows, err);
    double took = (double)(dp_bench_now_ns() - start) / 1e9;
    uint64_t now = dp_bench_server_resident(&p->server);
    if (st == DP_OK)
        dp_bench_show_memory(p->dim, p->rows, now > p->server.resident ? now - p->server.resident : 0,
                             dp_row_bytes(&spec), took, p->bench->json);
    return st;
}

static enum dp_status one_dim(struct bench *b, uint32_t dim, struct dp_error *err)
{
    struct place *p = calloc(1, sizeof *p);
    if (!p)
        return dp_fail(err, DP_NOMEM, "no memory for a measurement");
    p->bench = b;
    p->dim = dim;
    p->rows = rows_that_fit(b, dim);
    enum dp_status st =
        dp_bench_server_open(&p->server, b->local, dp_raw_peer(b->raw), dim, CACHE_BYTES, &b->pin, err);
    if (st == DP_OK)
        st = fill(p, err);
    if (st == DP_OK)
        st = latency(p, err);
    if (st == DP_OK && !(b->only && strcmp(b->only, "latency") == 0))
        st = draw_keys(p, err);
    if (st == DP_OK && !(b->only && strcmp(b->only, "latency") == 0))
        st = throughput(p, err);
    for (int i = 0; i < 2; i++) {
        dp_bench_rows_clear(&p->work[i]);
        dp_bench_keys_clear(&p->keys[i]);
    }
    dp_bench_server_close(&p->server);
    free(p);
    return st;
}

/* ---- all */

static enum dp_status start_raw(struct bench *b, struct dp_error *err)
{
    uint32_t widest = 0;
    for (uint32_t i = 0; i < b->dims; i++)
        widest = b->dim[i] > widest ? b->dim[i] : widest;
    dp_pin_server(&b->pin); /* its peer stands where the server will */
    enum dp_status st =
        dp_raw_start((size_t)b->keys * (8 + (size_t)widest * 4), b->in_flight, &b->pin, &b->raw, err);
    dp_pin_client(&b->pin);
    return st;
}

static enum dp_status measure_all(struct bench *b, struct dp_error *err)
{
    enum dp_status st = dp_raw_connect(b->raw, err);
    if (st == DP_OK && !b->json) {
        printf("one server process of one shard, one client process, tcp on this machine; %" PRIu64
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
    dp_raw_stop(&b->raw);
    if (fflush(stdout) != 0 && code == 0) {
        fprintf(stderr, "downpour: cannot write to standard output\n");
        code = 2;
    }
    return code;
}

int dp_command_bench(int argc, char *const *argv)
{
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
