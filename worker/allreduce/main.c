/* downpour-allreduce: flags, signals, exit codes. */
#include "common/base/hash.h"
#include "common/base/log.h"
#include "common/base/parse.h"
#include "common/config/cluster.h"
#include "common/env/limits.h"
#include "worker/allreduce/allreduce.h"
#include "worker/allreduce/mpi_reducer.h"
#include "worker/context/stop_signal.h"

#include <getopt.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* Until all ranks have read their cluster file. */
#define PREPARED_NS UINT64_C(30000000000)

static const char usage[] =
    "usage: mpirun -n WORKERS --oversubscribe --bind-to none downpour-allreduce --cluster FILE [--report "
    "FILE] [--weights FILE] [--sum ordered|mpi]\n       [--observe SAMPLES --keys KEYS --sample-every MS]\n\n"
    "Trains a dense model without servers: every rank keeps a copy of the weights, and MPI adds the "
    "gradients of all.\nThe steps are those of --consistency sync. A rank that fails ends the job; there "
    "is no checkpoint.\n\n"
    "  --cluster FILE   cluster file as a worker reads it; its servers are not used. WORKERS: its "
    "training.workers\n"
    "  --report FILE    write the report there instead of training.report\n"
    "  --weights FILE   write the last weights there (safetensors; downpour import takes it)\n"
    "  --observe FILE   sample rank 0's weights there: the rows of --keys KEYS (downpour-worker "
    "--score-keys), "
    "every\n                   --sample-every MS milliseconds; downpour-worker --score-samples scores them\n"
    "  --sum HOW        ordered (default): in order of rank, to the bits of sync on servers; mpi: by "
    "MPI_Allreduce, in\n                   the order that MPI chooses\n";

struct allreduce_flags {
    const char *cluster, *report, *weights, *sum, *observe, *keys, *every;
    uint64_t every_ms;
};

static enum dp_status parse_flags(int argc, char **argv, struct allreduce_flags *out, struct dp_error *err)
{
    static const struct option options[] = {
        {"cluster", required_argument, NULL, 'c'},      {"report", required_argument, NULL, 'r'},
        {"weights", required_argument, NULL, 'w'},      {"sum", required_argument, NULL, 's'},
        {"observe", required_argument, NULL, 'o'},      {"keys", required_argument, NULL, 'k'},
        {"sample-every", required_argument, NULL, 'e'}, {NULL, 0, NULL, 0},
    };
    *out = (struct allreduce_flags){0};
    const char **const value_of[] = {
        ['c'] = &out->cluster, ['r'] = &out->report, ['w'] = &out->weights, ['s'] = &out->sum,
        ['o'] = &out->observe, ['k'] = &out->keys,   ['e'] = &out->every};
    opterr = 0;
    for (int c; (c = getopt_long(argc, argv, ":", options, NULL)) != -1;) {
        if (c == ':')
            return dp_fail(err, DP_ARGUMENT, "%s needs a value, see --help", argv[optind - 1]);
        if (c == '?')
            return dp_fail(err, DP_ARGUMENT, "unknown flag %s, see --help", argv[optind - 1]);
        *value_of[c] = optarg;
    }
    if (optind < argc)
        return dp_fail(err, DP_ARGUMENT, "unexpected argument \"%s\", see --help", argv[optind]);
    if (!out->cluster)
        return dp_fail(err, DP_ARGUMENT, "--cluster FILE is missing, see --help");
    if (out->sum && strcmp(out->sum, "mpi") != 0 && strcmp(out->sum, "ordered") != 0)
        return dp_fail(err, DP_ARGUMENT, "--sum is \"%.40s\": ordered or mpi", out->sum);
    if ((out->observe != NULL) != (out->keys != NULL) || (out->observe != NULL) != (out->every != NULL))
        return dp_fail(err, DP_ARGUMENT,
                       "--observe SAMPLES, --keys KEYS and --sample-every MS: give all of them or none");
    return out->observe ? dp_parse_u64(out->every, 1, UINT32_MAX, "--sample-every", &out->every_ms, err)
                        : DP_OK;
}

static enum dp_mpi_sum sum_of(const char *text)
{
    return text && strcmp(text, "mpi") == 0 ? DP_MPI_SUM_ALLREDUCE : DP_MPI_SUM_IN_ORDER;
}

static enum dp_status prepare(int argc, char **argv, uint32_t ranks, struct allreduce_flags *flags,
                              struct dp_cluster **cluster, struct dp_error *err)
{
    enum dp_status st = parse_flags(argc, argv, flags, err);
    if (st == DP_OK)
        st = dp_cluster_read(flags->cluster, cluster, err);
    if (st == DP_OK && flags->report)
        st = dp_cluster_set(*cluster, "training.report", flags->report, "--report", err);
    return st == DP_OK ? dp_allreduce_check(*cluster, ranks, err) : st;
}

static void tell(enum dp_status st, const struct dp_error *err)
{
    dp_log(DP_LOG_ERROR, "%s", err->text[0] ? err->text : dp_status_text((int)st));
}

/* What all ranks find wrong with their flags and file is said once. *same: they go on together, or end together. */
static enum dp_status compare(const struct dp_reducer *reducer, enum dp_status st, const struct dp_error *err,
                              bool *same)
{
    struct dp_error why = {0};
    enum dp_status met = reducer->ops->meet(reducer->self, PREPARED_NS, &why);
    if (met == DP_OK)
        met = dp_reducer_same(reducer, st == DP_OK ? 0 : dp_hash_text(err->text), same, &why);
    if (met != DP_OK)
        tell(met, &why);
    if (st != DP_OK && (met != DP_OK || !*same || reducer->rank == 0))
        tell(st, err);
    return met;
}

static int train(struct dp_mpi_reducer *mpi, struct dp_reducer *reducer, const struct allreduce_flags *flags,
                 const struct dp_cluster *cluster)
{
    struct dp_error err = {0};
    enum dp_mpi_sum kind = sum_of(flags->sum);
    const struct dp_allreduce_options options = {
        .cluster = cluster,
        .reducer = reducer,
        .stop = dp_stop_signal(),
        .weights = flags->weights,
        .sample = {.samples = flags->observe, .keys = flags->keys, .every_ms = (uint32_t)flags->every_ms}};
    dp_mpi_reducer_set(mpi, kind, cluster->training.timeout_ms);
    reducer->how = dp_mpi_sum_name(kind);
    dp_stop_signal_catch();
    enum dp_status st = dp_allreduce(&options, &err);
    int signal_number = atomic_load(dp_stop_signal());
    if (st == DP_OK)
        return 0;
    if (st != DP_STOPPING || reducer->rank == 0)
        tell(st, &err);
    if (st != DP_STOPPING)
        dp_mpi_reducer_end_job(mpi, 2); /* the others wait for this rank */
    return signal_number ? 128 + signal_number : 2;
}

static bool wants_help(int argc, char **argv)
{
    for (int i = 1; i < argc; i++)
        if (strcmp(argv[i], "--help") == 0 || strcmp(argv[i], "-h") == 0)
            return true;
    return false;
}

int main(int argc, char **argv)
{
    (void)dp_limits_begin();
    char who[32];
    struct dp_error err = {0};
    struct allreduce_flags flags = {0};
    struct dp_mpi_reducer *mpi = NULL;
    struct dp_reducer reducer = {0};
    struct dp_cluster *cluster = NULL;
    if (wants_help(argc, argv)) /* without MPI, and so without mpirun */
        return fputs(usage, stdout) < 0 ? 2 : 0;
    enum dp_status st = dp_mpi_reducer_open(&argc, &argv, &mpi, &reducer, &err);
    (void)snprintf(who, sizeof who, "rank %" PRIu32, reducer.rank);
    dp_log_start(who, DP_LOG_INFO);
    if (st != DP_OK) {
        tell(st, &err);
        dp_mpi_reducer_end_job(mpi, 2);
    }
    bool same = false;
    int code = 2;
    st = prepare(argc, argv, reducer.ranks, &flags, &cluster, &err);
    if (compare(&reducer, st, &err, &same) != DP_OK || (st != DP_OK && !same))
        dp_mpi_reducer_end_job(mpi, 2);
    /* Where others cannot go on they end this rank, too: they have said why. */
    if (st == DP_OK && same)
        code = train(mpi, &reducer, &flags, cluster);
    dp_cluster_free(&cluster);
    dp_mpi_reducer_close(&mpi);
    return code;
}
