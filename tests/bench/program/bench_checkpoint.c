/* open -> fill -> (under load: without, a checkpoint, without, ...) for each draw -> incremental ones at rest -> restores
 * Why       Each figure stands beside its yardstick of the same run: the turns beside a timer alone, pushes beside those before and
 *           after, a restore beside a copy of the same bytes or a scan of the same rows. */
#include "tests/bench/program/bench_checkpoint.h"

#include "common/model/row.h"
#include "tests/bench/program/bench_checkpoint_inner.h"
#include "tests/bench/program/bench_clients.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/statvfs.h>

#define ROW_OVERHEAD 107u /* index, at its emptiest, and 64 */
#define CACHE_BYTES  ((uint64_t)1 << 45)
/* The store, what RocksDB merges and what links keep; two checkpoints; what is restored and copied. */
#define COPIES 9u

static const struct dp_option flags[] = {
    {"--rows", "N", NULL,
     "rows of the table, as many as fit into half of the free memory at most; default 10000000"},
    {"--dim", "N", NULL, "width of rows; default 16"},
    {"--keys", "N", NULL, "keys per request; default 10000"},
    {"--shards", "N", NULL, "shards (threads) of the server, 1 .. 8; default 2"},
    {"--clients", "N", NULL, "clients that push, each in a thread, 1 .. 16; default 2"},
    {"--in-flight", "N", NULL, "unanswered requests of each at a time, 1 .. 16; default 2"},
    {"--draw", "KIND", NULL, "distribution of the keys: uniform or zipf (exponent 1.05); default: both"},
    {"--rounds", "N", NULL, "checkpoints under load for each draw, 1 .. 99; default 3"},
    {"--seconds", "S", NULL, "between two of them; default 20"},
    {"--repeats", "N", NULL, "how often each restore is repeated, 1 .. 99; default 3"},
    {"--only", "WHAT", NULL, "measure only load, incremental or restore; default: all"},
    {"--journal-bytes", "N", NULL, "bytes for a shard's journal; default 4294967296"},
    {"--durability", "WHICH", NULL,
     "what an acknowledged push survives: machine or process; default machine"},
    {"--quick", NULL, NULL, "some seconds: 200000 rows, journals of 1 GiB, 1 round of 1 s, 1 repeat"},
    {"--json", NULL, NULL, "one line of JSON per figure instead of text"},
};
#define FLAGS (sizeof flags / sizeof flags[0])
_Static_assert(FLAGS <= DP_BENCH_CHECKPOINT_FLAGS, "values have room");

static const struct dp_command command = {
    .program = "downpour-bench",
    .name = "checkpoint",
    .usage = "[FLAGS]",
    .summary =
        "Fills a table (Adam) of one server process on this machine, and measures:\n"
        "under full push load, in turns with and without a checkpoint that is taken: pushes, the shards' "
        "turns beside a thread that only sleeps,\nand the cut; at rest: how much a checkpoint writes after "
        "1% of the rows changed, and after RocksDB merged its files; restores\nonto the same shards, beside "
        "a "
        "copy of the same bytes, onto 3 and from those onto 1, and whether the digests are equal.\nIt works "
        "in TMPDIR, on whose disk it needs some 9 times the bytes of the rows.",
    .options = flags,
    .count = FLAGS,
};

/* ---- flags */

static const char *flag(const struct checkpoint_run *run, const char *name)
{
    return dp_options_value(&command, run->values, name);
}

static enum dp_status number(const struct checkpoint_run *run, const char *name, uint64_t min, uint64_t max,
                             uint64_t preset, uint64_t *out, struct dp_error *err)
{
    return dp_options_u64(&command, run->values, name, min, max, preset, out, err);
}

static enum dp_status small(const struct checkpoint_run *run, const char *name, uint32_t max, uint32_t preset,
                            uint32_t *out, struct dp_error *err)
{
    uint64_t value = 0;
    enum dp_status st = number(run, name, 1, max, preset, &value, err);
    *out = (uint32_t)value;
    return st;
}

static enum dp_status word(const struct checkpoint_run *run, const char *name, const char *const *words,
                           const char **out, struct dp_error *err)
{
    *out = flag(run, name);
    for (size_t i = 0; *out && words[i]; i++)
        if (strcmp(*out, words[i]) == 0)
            return DP_OK;
    return *out ? dp_fail(err, DP_ARGUMENT, "flag '%s' is '%s': see --help for what it takes", name, *out)
                : DP_OK;
}

static enum dp_status settle_words(struct checkpoint_run *run, struct dp_error *err)
{
    static const char *const draws[] = {"uniform", "zipf", NULL};
    static const char *const only[] = {"load", "incremental", "restore", NULL};
    static const char *const durabilities[] = {"machine", "process", NULL};
    const char *draw = NULL, *durability = NULL;
    enum dp_status st = word(run, "--draw", draws, &draw, err);
    if (st == DP_OK)
        st = word(run, "--only", only, &run->only, err);
    if (st == DP_OK)
        st = word(run, "--durability", durabilities, &durability, err);
    run->uniform = !draw || strcmp(draw, "uniform") == 0;
    run->zipf = !draw || strcmp(draw, "zipf") == 0;
    run->options.durability =
        durability && strcmp(durability, "process") == 0 ? DP_CLUSTER_PROCESS : DP_CLUSTER_MACHINE;
    return st;
}

static enum dp_status settle(struct checkpoint_run *run, struct dp_error *err)
{
    bool quick = run->quick = flag(run, "--quick") != NULL;
    run->json = flag(run, "--json") != NULL;
    run->sets = quick ? 64 : 512;
    run->pin = dp_pin_choose(DP_PIN_NONE);
    run->options.cache_bytes = CACHE_BYTES;
    enum dp_status st =
        number(run, "--rows", 100, (uint64_t)1 << 31, quick ? 200000 : 10000000, &run->rows, err);
    if (st == DP_OK)
        st = small(run, "--dim", 4096, 16, &run->dim, err);
    if (st == DP_OK)
        st = number(run, "--keys", 1, 100000, 10000, &run->keys, err);
    if (st == DP_OK)
        st = small(run, "--shards", DP_BENCH_SHARDS_MAX, 2, &run->options.shards, err);
    if (st == DP_OK)
        st = small(run, "--clients", DP_BENCH_CLIENTS_MAX, 2, &run->clients, err);
    if (st == DP_OK)
        st = small(run, "--in-flight", DP_BENCH_IN_FLIGHT_MAX, 2, &run->in_flight, err);
    if (st == DP_OK)
        st = small(run, "--rounds", DP_BENCH_REPEATS_MAX, quick ? 1 : 3, &run->rounds, err);
    if (st == DP_OK)
        st = number(run, "--seconds", 1, 3600, quick ? 1 : 20, &run->seconds, err);
    if (st == DP_OK)
        st = small(run, "--repeats", DP_BENCH_REPEATS_MAX, quick ? 1 : 3, &run->repeats, err);
    if (st == DP_OK)
        st = number(run, "--journal-bytes", (uint64_t)64 << 20, (uint64_t)1 << 40,
                    (uint64_t)(quick ? 1024 : 4096) << 20, &run->options.journal_bytes, err);
    run->options.dim = run->dim;
    return st == DP_OK ? settle_words(run, err) : st;
}

static bool wants(const struct checkpoint_run *run, const char *what)
{
    return !run->only || strcmp(run->only, what) == 0;
}

/* ---- all */

static enum dp_status check_disk(const struct checkpoint_run *run, uint64_t row_bytes, struct dp_error *err)
{
    struct statvfs disk;
    uint64_t need = run->rows * row_bytes * COPIES + run->options.journal_bytes * run->options.shards * 2;
    if (statvfs(run->server.folder.path, &disk) != 0)
        return dp_fail(err, DP_IO, "%s: %s", run->server.folder.path, strerror(errno));
    uint64_t has = (uint64_t)disk.f_bavail * disk.f_frsize;
    if (!run->json)
        printf("%s: up to %.1f GB are needed, %.1f are free\n", run->server.folder.path, (double)need / 1e9,
               (double)has / 1e9);
    return has >= need ? DP_OK
                       : dp_fail(err, DP_FULL,
                                 "%s has %" PRIu64 " MB left, and the bench needs up to %" PRIu64
                                 ": set TMPDIR to a larger disk, or give fewer --rows",
                                 run->server.folder.path, has / 1000000, need / 1000000);
}

static enum dp_status open_all(struct checkpoint_run *run, struct dp_error *err)
{
    const struct dp_table_spec spec = {.dim = run->dim, .optimizer = dp_optimizer_defaults(DP_OPT_ADAM)};
    size_t row_bytes = dp_row_bytes(&spec);
    uint64_t most = dp_bench_memory() / 2 / (row_bytes + ROW_OVERHEAD);
    run->rows = most == 0 || run->rows < most ? run->rows : most;
    enum dp_status st = dp_local_open(&run->local, err);
    if (st == DP_OK)
        st = dp_bench_server_open(&run->server, run->local, 0, &run->options, &run->pin, err);
    if (st == DP_OK)
        st = check_disk(run, row_bytes, err);
    if (st == DP_OK)
        st = dp_folder_path(&run->server.folder, run->directory, err, "checkpoints");
    if (st == DP_OK)
        st = dp_bench_server_fill(&run->server, run->rows, err);
    return st == DP_OK && !run->quick ? dp_bench_server_settle(&run->server, err) : st;
}

static void show_head(const struct checkpoint_run *run)
{
    if (!run->json)
        printf("%" PRIu64 " rows of width %" PRIu32 ", %" PRIu32 " shards, %" PRIu32 " clients with %" PRIu32
               " requests of %" PRIu64 " keys each under way, durability %s, journal of %" PRIu64 " MB\n",
               run->rows, run->dim, run->options.shards, run->clients, run->in_flight, run->keys,
               dp_cluster_durability_name(run->options.durability), run->options.journal_bytes / 1000000);
    (void)fflush(stdout);
}

static enum dp_status measure(struct checkpoint_run *run, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    show_head(run);
    if (wants(run, "load") && run->uniform)
        st = dp_bench_checkpoint_load(run, false, err);
    if (st == DP_OK && wants(run, "load") && run->zipf)
        st = dp_bench_checkpoint_load(run, true, err);
    if (st == DP_OK && wants(run, "incremental"))
        st = dp_bench_checkpoint_rest(run, err);
    if (st == DP_OK && wants(run, "restore"))
        st = dp_bench_checkpoint_restore(run, err);
    return st;
}

/* ---- */

static int finish(struct checkpoint_run *run, enum dp_status st, const struct dp_error *err)
{
    int code = st == DP_OK ? 0 : 2;
    if (run->local && dp_local_signal(run->local)) {
        code = 128 + dp_local_signal(run->local);
    } else if (run->local && dp_local_failed(run->local)) {
        dp_local_explain(run->local, stderr);
        code = 2;
    } else if (st != DP_OK) {
        fprintf(stderr, "downpour-bench: %s\n", err->text);
    }
    if (run->server.local)
        dp_bench_server_close(&run->server);
    dp_local_close(&run->local);
    return fflush(stdout) == 0 ? code : 2;
}

int dp_bench_checkpoint(int argc, char *const *argv, const struct dp_bench_store *store)
{
    struct checkpoint_run run = {.store = store};
    struct dp_error err = {0};
    bool help = false;
    enum dp_status st = dp_options_parse(&command, argc, argv, run.values, &help, &err);
    if (st == DP_OK && help)
        return dp_options_show_help(&command);
    if (st == DP_OK)
        st = settle(&run, &err);
    if (st == DP_OK)
        st = open_all(&run, &err);
    if (st == DP_OK)
        st = measure(&run, &err);
    return finish(&run, st, &err);
}
