/* The flags of 'downpour bench': their table, and the plan that they give. */
#include "deploy/bench/bench_inner.h"

#include "common/base/parse.h"

#include <assert.h>
#include <inttypes.h>
#include <string.h>

#define REQUEST_MAX    ((uint64_t)128 << 20)
#define ROWS_MAX       (UINT64_C(1) << 31)
#define JOURNAL_BYTES  ((uint64_t)4 << 30)
#define SLICE_MS       300u
#define QUICK_SLICE_MS 40u

static const struct dp_option options[] = {
    {"--dims", "LIST", NULL, "widths of rows; default 1,16,64,256"},
    {"--rows", "N", NULL,
     "rows of the table, as many as fit into half of the free memory at most; default 10000000"},
    {"--keys", "N", NULL, "keys per request; default 10000"},
    {"--in-flight", "N", NULL, "unanswered requests at a time, 1 .. 16; default 4"},
    {"--repeats", "N", NULL, "how often each measurement is repeated, 1 .. 99; default 5"},
    {"--slice", "MS", NULL, "duration of one measurement; default 300"},
    {"--only", "WHAT", NULL, "measure only pull, push, latency or recovery; default: all but recovery"},
    {"--draw", "KIND", NULL, "distribution of the keys: uniform or zipf (exponent 1.05); default: both"},
    {"--type", "TYPE", NULL, "values on the wire: f32 or bf16; default: both"},
    {"--durability", "LIST", NULL, "of machine, process, none; one server for each; default machine"},
    {"--transport", "LIST", NULL, "of tcp, ipc; one server for each; default tcp"},
    {"--cache", "LIST", NULL,
     "sizes of the server's cache, in percent of the rows; one server for each; default 100"},
    {"--shards", "N", NULL, "shards (threads) of each server, 1 .. 8; default 1"},
    {"--journal-bytes", "N", NULL, "bytes for a server's journal; default 4294967296"},
    {"--pin", "KIND", NULL,
     "shard: the server's serving thread on one processor, all else on another (default; none for recovery "
     "and several shards); process: server and client on one processor each; none: left to the kernel"},
    {"--cpu", NULL, NULL, "also show the processor time of each thread per row"},
    {"--alone", NULL, NULL, "without the comparisons (raw, memcpy, disk): for profilers"},
    {"--quick", NULL, NULL, "a few seconds: width 16, 200000 rows, 3 short repeats"},
    {"--json", NULL, NULL, "one line of JSON per figure instead of the table"},
};
#define OPTIONS (sizeof options / sizeof options[0])
static_assert(OPTIONS <= FLAGS_MAX, "values have room");

const struct dp_command dp_bench_command = {
    .name = "bench",
    .usage = "[FLAGS] | table [FLAGS]",
    .summary =
        "Measures pulls and pushes (Adam) of one server process with one shard on this machine and, in turns "
        "in the same run, what\n"
        "bounds them: raw (the same bytes over bare sockets), memcpy (the same bytes copied) and disk (a "
        "push's "
        "bytes appended and\n"
        "synced). Also the round trip of small requests, the server's memory per row, and how long recovery "
        "takes. Keys are sorted\n"
        "outside the timing. Lists of durabilities, transports and caches are measured in turns.\n"
        "'bench table' measures the shard's table alone, next to the least that a processor can do.",
    .options = options,
    .count = OPTIONS,
};

const char *dp_bench_flag(const struct bench *b, const char *name)
{
    return dp_options_value(&dp_bench_command, b->values, name);
}

/* ---- flags */

static enum dp_status number(const struct bench *b, const char *name, uint64_t min, uint64_t max,
                             uint64_t *out, struct dp_error *err)
{
    return dp_options_u64(&dp_bench_command, b->values, name, min, max, *out, out, err);
}

static enum dp_status small(const struct bench *b, const char *name, uint32_t min, uint32_t max,
                            uint32_t *out, struct dp_error *err)
{
    uint64_t value = *out;
    enum dp_status st = number(b, name, min, max, &value, err);
    *out = (uint32_t)value;
    return st;
}

static enum dp_status no_such_word(const char *name, const char *text, size_t len, const char *const *words,
                                   struct dp_error *err)
{
    char known[96] = "";
    for (size_t i = 0; words[i]; i++) {
        size_t at = strlen(known);
        (void)snprintf(known + at, sizeof known - at, "%s%s", i ? ", " : "", words[i]);
    }
    return dp_fail(err, DP_ARGUMENT, "%s: '%.*s' is none of: %s", name, (int)(len < 60 ? len : 60), text,
                   known);
}

static enum dp_status word(const struct bench *b, const char *name, const char *const *words,
                           const char **out, struct dp_error *err)
{
    *out = dp_bench_flag(b, name);
    for (size_t i = 0; *out && words[i]; i++)
        if (strcmp(*out, words[i]) == 0)
            return DP_OK;
    if (!*out)
        return DP_OK;
    return no_such_word(name, *out, strlen(*out), words, err);
}

enum dp_status dp_bench_parse_dims(const char *text, uint32_t *dim, uint32_t *dims, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    while (st == DP_OK) {
        char one[32];
        uint64_t value = 0;
        size_t len = strcspn(text, ",");
        if (*dims == DIMS_MAX)
            return dp_fail(err, DP_ARGUMENT, "flag '--dims' has over %u widths", DIMS_MAX);
        (void)snprintf(one, sizeof one, "%.*s", (int)(len < 31 ? len : 31), text);
        st = dp_parse_u64(one, 1, DP_TABLE_DIM_MAX, "--dims", &value, err);
        dim[(*dims)++] = (uint32_t)value;
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
    const char *text = dp_bench_flag(b, name);
    while (text) {
        size_t len = strcspn(text, ","), i = 0;
        while (words[i] && (strlen(words[i]) != len || strncmp(words[i], text, len) != 0))
            i++;
        if (!words[i])
            return no_such_word(name, text, len, words, err);
        has[i] = true;
        text = text[len] ? text + len + 1 : NULL;
    }
    return DP_OK;
}

static enum dp_status parse_caches(const struct bench *b, uint32_t *percents, uint32_t *n,
                                   struct dp_error *err)
{
    const char *text = dp_bench_flag(b, "--cache");
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
    bool durable[3] = {!dp_bench_flag(b, "--durability")}, transport[2] = {!dp_bench_flag(b, "--transport")};
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
        b->variant[b->variants++] =
            (struct dp_bench_server_options){.durability = (enum dp_cluster_durability)d,
                                             .ipc = t == 1,
                                             .journal_bytes = b->journal_bytes,
                                             .shards = b->shards};
    }
    return st;
}

enum dp_status dp_bench_settle(struct bench *b, struct dp_error *err)
{
    static const char *const only[] = {"pull", "push", "latency", "recovery", NULL};
    static const char *const draw[] = {"uniform", "zipf", NULL};
    static const char *const type[] = {"f32", "bf16", NULL};
    static const char *const pin[] = {"shard", "process", "none", NULL};
    const char *pinned = NULL;
    bool quick = dp_bench_flag(b, "--quick") != NULL;
    b->alone = dp_bench_flag(b, "--alone") != NULL;
    b->cpu = dp_bench_flag(b, "--cpu") != NULL;
    b->json = dp_bench_flag(b, "--json") != NULL;
    b->rows = quick ? 200000 : 10000000;
    b->keys = 10000;
    b->in_flight = 4;
    b->journal_bytes = JOURNAL_BYTES;
    b->shards = 1;
    b->repeats = quick ? 3 : 5;
    b->slice_ms = quick ? QUICK_SLICE_MS : SLICE_MS;
    b->sets = quick ? 64 : 512;
    b->delays = quick ? 300 : 5000;
    const char *dims = dp_bench_flag(b, "--dims");
    enum dp_status st = dp_bench_parse_dims(dims    ? dims
                                            : quick ? "16"
                                                    : "1,16,64,256",
                                            b->dim, &b->dims, err);
    if (st == DP_OK)
        st = number(b, "--rows", 1, ROWS_MAX, &b->rows, err);
    if (st == DP_OK)
        st = number(b, "--keys", 1, 1000000, &b->keys, err);
    if (st == DP_OK)
        st = number(b, "--journal-bytes", (uint64_t)1 << 20, (uint64_t)1 << 40, &b->journal_bytes, err);
    if (st == DP_OK)
        st = small(b, "--shards", 1, DP_BENCH_SHARDS_MAX, &b->shards, err);
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
    if (!pinned) /* a server that starts again is not pinned */
        pinned = b->shards > 1 || (b->only && strcmp(b->only, "recovery") == 0) ? "none" : "shard";
    b->pin = dp_pin_choose(strcmp(pinned, "shard") == 0     ? DP_PIN_SHARD
                           : strcmp(pinned, "process") == 0 ? DP_PIN_PROCESS
                                                            : DP_PIN_NONE);
    return st;
}
