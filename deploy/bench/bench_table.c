/* bench table: the shard's table next to a bare one, in one process, without network, journal and store.
 *     for each width: both filled -> for each distribution of keys: rounds -> a line
 *     round: a turn of 10 ms each: pulls of the shard's table, of the bare one, pushes of both
 * Why       Caches and memory of a shared machine vary by a factor of 2 within seconds. A round is over
 *           before they do, so the ratios of a round hold, and their median is steady. A turn is timed by the
 *           processor time of this thread: other processes take none of it.
 * Holds     The shard's functions run, not copies: dp_misses_find, then dp_gather or dp_apply. */
#include "deploy/bench/bench_bare_table.h"
#include "deploy/bench/bench_inner.h"
#include "deploy/run/run_provenance.h"

#include "common/base/memory.h"
#include "common/model/row.h"
#include "server/cache/apply.h"
#include "server/cache/gather.h"
#include "server/cache/misses.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define TURN_NS     UINT64_C(10000000)
#define BYTES_MAX   ((uint64_t)800 << 20) /* of both tables; requests come on top */
#define ROWS_MAX    UINT64_C(4000000)
#define REQUEST     10000u
#define ZIPF        1.05
#define RATE        0.001f
#define CACHE_BYTES ((uint64_t)1 << 40)

static const struct dp_option options[] = {
    {"--dims", "LIST", NULL, "widths of rows; default 1,4,8,10,16,64,256"},
    {"--draw", "KIND", NULL, "distribution of the keys: uniform or zipf (exponent 1.05); default: both"},
    {"--rows", "N", NULL, "rows of a table; default 4000000, or as many as fit into 800 MB for both"},
    {"--rounds", "N", NULL, "how often each is measured, 1 .. 99; default 41"},
    {"--quick", NULL, NULL, "a few seconds: widths 1 and 16, 200000 rows, 5 rounds"},
};
#define OPTIONS (sizeof options / sizeof options[0])

static const struct dp_command command = {
    .name = "bench table",
    .usage = "[FLAGS]",
    .summary =
        "Measures a shard's table (find the rows and copy their weights; find the rows and apply Adam) next "
        "to a bare one (open\n"
        "addressing, aligned rows, prefetch, AVX2, no checks), in one process and in turns of 10 ms. The "
        "ratio of each round is\n"
        "steady on a shared machine, and says how far the shard's table is from what the processor allows.",
    .options = options,
    .count = OPTIONS,
};

struct table_plan {
    uint32_t dim[DIMS_MAX], dims, rounds, sets;
    uint64_t rows;
    bool draws[2]; /* uniform, Zipf */
};

/* The shard's side, as dp_shard has it, and the bare one, with the same rows. */
struct table_pair {
    struct dp_shard_base base;
    struct dp_cached_tables tables;
    struct dp_cached_table *table;
    struct dp_cache_budget budget;
    struct dp_misses misses;
    uint64_t lsn;
    float *scratch;
    struct dp_bare_table *bare;
    float *values; /* gradients of a request */
    char *answer;
};

/* ---- turns */

static struct dp_lookup *find_rows(struct table_pair *p, const struct dp_section *section, bool makes,
                                   struct dp_lookup *lookup)
{
    struct dp_error err = {0};
    lookup->makes = makes;
    lookup->sections = 1;
    lookup->section[0] =
        (struct dp_lookup_section){.table = p->table, .keys = section->keys, .rows = section->rows};
    enum dp_found found = dp_misses_find(&p->misses, lookup, true, &err);
    DP_ASSERT(found == DP_FOUND);
    return lookup;
}

static void request(struct table_pair *p, const uint64_t *mixed, uint32_t n, bool bare, bool push)
{
    static struct dp_lookup lookup;
    struct dp_section section = {.rows = n,
                                 .type = DP_F32,
                                 .keys = mixed,
                                 .values = push ? p->values : NULL,
                                 .value_bytes = push ? (size_t)n * p->table->spec.dim * 4 : 0};
    if (bare && push)
        dp_bare_table_push(p->bare, mixed, n, p->values, RATE);
    else if (bare)
        dp_bare_table_pull(p->bare, mixed, n, (float *)(void *)p->answer);
    else if (find_rows(p, &section, push, &lookup) && push)
        (void)dp_apply(&section, p->table, p->misses.rows, RATE, ++p->lsn, UINT64_MAX, p->scratch);
    else
        (void)dp_gather(&section, p->table, p->misses.rows, p->scratch, p->answer);
}

static uint64_t thread_ns(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
    return (uint64_t)now.tv_sec * 1000000000u + (uint64_t)now.tv_nsec;
}

/* Nanoseconds a row. *next: the request that is next. */
static double turn(struct table_pair *p, const struct dp_bench_keys *keys, uint32_t *next, bool bare,
                   bool push)
{
    uint64_t rows = 0, start = thread_ns(), ns = 0;
    for (; ns < TURN_NS; ns = thread_ns() - start) {
        const struct dp_keys *set = keys->keys[(*next)++ % keys->sets];
        uint32_t n = (uint32_t)dp_keys_distinct(set);
        request(p, dp_keys_mixed(set), n, bare, push);
        rows += n;
    }
    return (double)ns / (double)rows;
}

static enum dp_status measure(const struct table_plan *plan, struct table_pair *p, uint64_t rows, bool zipf,
                              struct dp_error *err)
{
    struct dp_bench_keys keys;
    struct dp_bench_figure ns[2][2] = {0}, ratio[2] = {0}; /* by push, bare */
    uint32_t next[2][2] = {0};
    enum dp_status st = dp_bench_keys_new(rows, REQUEST, plan->sets, zipf ? ZIPF : 0, SEED, &keys, err);
    if (st != DP_OK)
        return st;
    for (uint32_t round = 0; round <= plan->rounds; round++)
        for (int push = 0; push < 2; push++) {
            double took[2];
            for (uint32_t i = 0; i < 2; i++) {
                bool bare = (round + i) % 2; /* each comes first in every second round */
                took[bare] = turn(p, &keys, &next[push][bare], bare, push);
            }
            if (round == 0)
                continue; /* warms up */
            dp_bench_add(&ns[push][0], took[0]);
            dp_bench_add(&ns[push][1], took[1]);
            dp_bench_add(&ratio[push], took[0] / took[1]);
        }
    dp_bench_keys_clear(&keys);
    printf("%5" PRIu32 " %-8s %8" PRIu64, p->table->spec.dim, zipf ? "zipf" : "uniform", rows);
    for (int push = 0; push < 2; push++)
        printf(" %8.1f %8.1f %6.2f", dp_bench_median(&ns[push][0]), dp_bench_median(&ns[push][1]),
               dp_bench_median(&ratio[push]));
    printf("\n");
    (void)fflush(stdout);
    return DP_OK;
}

/* ---- tables */

static void close_pair(struct table_pair *p)
{
    dp_misses_clear(&p->misses);
    dp_cached_tables_clear(&p->tables);
    dp_bare_table_free(&p->bare);
    free(p->scratch);
    free(p->values);
    free(p->answer);
    free(p);
}

static enum dp_status open_pair(uint64_t rows, uint32_t dim, struct table_pair **out, struct dp_error *err)
{
    struct table_pair *p = calloc(1, sizeof *p);
    struct dp_table_spec spec = {
        .name = "bench", .dim = dim, .optimizer = dp_optimizer_defaults(DP_OPT_ADAM)};
    if (!p)
        return dp_fail(err, DP_NOMEM, "no memory for the tables");
    p->base.shards = 1;
    p->base.range = (struct dp_range){0, UINT64_MAX};
    p->budget = (struct dp_cache_budget){.base = &p->base, .tables = &p->tables, .bytes = CACHE_BYTES};
    p->misses = (struct dp_misses){.base = &p->base, .tables = &p->tables, .budget = &p->budget};
    p->scratch = dp_alloc_aligned(DP_TABLE_DIM_MAX * sizeof(float));
    p->bare = dp_bare_table_new(rows, dim);
    p->values = malloc((size_t)REQUEST * dim * sizeof *p->values);
    p->answer = malloc((size_t)REQUEST * dim * sizeof *p->values);
    enum dp_status st = p->scratch && p->bare && p->values && p->answer
                            ? dp_cached_tables_add(&p->tables, &spec, 0, SEED, p->base.range, &p->table, err)
                            : dp_fail(err, DP_NOMEM, "no memory for tables of width %" PRIu32, dim);
    for (size_t i = 0; st == DP_OK && i < (size_t)REQUEST * dim; i++)
        p->values[i] = (float)(i % 11 + 1) * 0.001f;
    if (st == DP_OK)
        *out = p;
    else
        close_pair(p);
    return st;
}

static enum dp_status fill(struct table_pair *p, uint64_t rows, struct dp_error *err)
{
    struct dp_keys *keys = NULL;
    uint64_t some[REQUEST];
    enum dp_status st = dp_keys_new(&keys, err);
    for (uint64_t at = 0; st == DP_OK && at < rows; at += REQUEST) {
        uint32_t n = rows - at < REQUEST ? (uint32_t)(rows - at) : REQUEST;
        for (uint32_t i = 0; i < n; i++)
            some[i] = at + i;
        st = dp_keys_set(keys, some, n, err);
        if (st != DP_OK)
            break;
        struct dp_lookup lookup = {0};
        struct dp_section section = {.rows = n, .keys = dp_keys_mixed(keys)};
        (void)find_rows(p, &section, true, &lookup);
        if (dp_apply_make_rows(&p->base, &section, p->table, p->misses.rows) != DP_OK)
            st = dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " rows", rows);
        dp_bare_table_insert(p->bare, dp_keys_mixed(keys), n);
    }
    dp_keys_free(&keys);
    return st;
}

static enum dp_status one_dim(const struct table_plan *plan, uint32_t dim, struct dp_error *err)
{
    struct table_pair *p = NULL;
    struct dp_table_spec spec = {.dim = dim, .optimizer = dp_optimizer_defaults(DP_OPT_ADAM)};
    uint64_t rows = plan->rows;
    while (rows > 1000 &&
           dp_bare_table_bytes(rows, dim) + rows * (dp_row_bytes(&spec) + DP_ROW_SLOT_COST) > BYTES_MAX)
        rows -= rows / 16;
    enum dp_status st = open_pair(rows, dim, &p, err);
    if (st != DP_OK)
        return st;
    st = fill(p, rows, err);
    for (int zipf = 0; zipf < 2 && st == DP_OK; zipf++)
        st = plan->draws[zipf] ? measure(plan, p, rows, zipf, err) : DP_OK;
    close_pair(p);
    return st;
}

/* ---- the command */

static enum dp_status settle(const char *const *values, struct table_plan *plan, struct dp_error *err)
{
    const char *quick = dp_options_value(&command, values, "--quick"),
               *draw = dp_options_value(&command, values, "--draw"),
               *dims = dp_options_value(&command, values, "--dims");
    uint64_t rounds;
    plan->sets = quick ? 16 : 128;
    plan->draws[0] = !draw || strcmp(draw, "uniform") == 0;
    plan->draws[1] = !draw || strcmp(draw, "zipf") == 0;
    if (!plan->draws[0] && !plan->draws[1])
        return dp_fail(err, DP_ARGUMENT, "--draw: '%.60s' is none of: uniform, zipf", draw);
    enum dp_status st = dp_bench_parse_dims(dims    ? dims
                                            : quick ? "1,16"
                                                    : "1,4,8,10,16,64,256",
                                            plan->dim, &plan->dims, err);
    if (st == DP_OK)
        st = dp_options_u64(&command, values, "--rows", 1000, UINT64_C(1) << 31, quick ? 200000 : ROWS_MAX,
                            &plan->rows, err);
    if (st == DP_OK)
        st = dp_options_u64(&command, values, "--rounds", 1, DP_BENCH_REPEATS_MAX, quick ? 5 : 41, &rounds,
                            err);
    if (st == DP_OK)
        plan->rounds = (uint32_t)rounds;
    if (st == DP_OK && !dp_bare_table_runs())
        st = dp_fail(err, DP_UNSUPPORTED, "this processor has no AVX2 or no FMA, which the bare table uses");
    return st;
}

int dp_bench_table(int argc, char *const *argv)
{
    const char *values[OPTIONS];
    char processor[256];
    struct table_plan plan = {0};
    struct dp_error err = {0};
    bool help;
    enum dp_status st = dp_options_parse(&command, argc, argv, values, &help, &err);
    if (st == DP_OK && help)
        return dp_options_show_help(&command);
    if (st == DP_OK)
        st = settle(values, &plan, &err);
    if (st == DP_OK)
        printf("processor: %s; one thread, turns of 10 ms, %" PRIu32 " rounds, %u keys drawn a request; ns a "
               "row, and the ratio: medians\n%5s %-8s %8s %8s %8s %6s %8s %8s %6s\n",
               dp_run_processor(processor, sizeof processor) ? processor : "unknown", plan.rounds, REQUEST,
               "dim", "keys", "rows", "pull", "bare", "ratio", "push", "bare", "ratio");
    for (uint32_t i = 0; i < plan.dims && st == DP_OK; i++)
        st = one_dim(&plan, plan.dim[i], &err);
    return dp_options_end(&command, st, &err);
}
