#include "deploy/node/rank.h"

#include "common/base/parse.h"

#include <inttypes.h>
#include <stddef.h>
#include <stdlib.h>

#define RANK_MAX UINT64_C(1000000000)

/* The size is the launcher's number of processes, where it has a variable for it. */
static const struct rank_variable {
    const char *rank, *size;
} variables[] = {
    {"SLURM_PROCID", "SLURM_STEP_NUM_TASKS"},
    {"OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE"},
    {"PMIX_RANK", NULL},
    {"PMI_RANK", "PMI_SIZE"},
    {"JOB_COMPLETION_INDEX", NULL},
    {"RANK", "WORLD_SIZE"},
};

/* Empty is not set. */
static const char *value_of(const char *name)
{
    const char *value = getenv(name);
    return value && value[0] ? value : NULL;
}

static enum dp_status read_size(const struct rank_variable *of, struct dp_node_rank *out,
                                struct dp_error *err)
{
    /* Each part of a heterogeneous job has a size of its own, and the ranks run over all of them. */
    const char *text = of->size && !value_of("SLURM_HET_SIZE") ? value_of(of->size) : NULL;
    out->size_name = text ? of->size : NULL;
    return text ? dp_parse_u64(text, 1, RANK_MAX, of->size, &out->size, err) : DP_OK;
}

static enum dp_status find_launcher(struct dp_node_rank *out, struct dp_error *err)
{
    const struct rank_variable *found = NULL;
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < sizeof variables / sizeof variables[0]; i++) {
        const char *text = value_of(variables[i].rank);
        uint64_t rank = 0;
        if (!text)
            continue;
        st = dp_parse_u64(text, 0, RANK_MAX, variables[i].rank, &rank, err);
        if (st == DP_OK && found && rank != out->rank)
            return dp_fail(err, DP_ARGUMENT,
                           "%s is %" PRIu64 " and %s is %" PRIu64
                           ": two launchers set a rank. Unset the one that did not start this process "
                           "(mpirun within a Slurm job: env -u SLURM_PROCID mpirun ...), or give --rank or "
                           "DOWNPOUR_RANK",
                           out->name, out->rank, variables[i].rank, rank);
        if (found || st != DP_OK)
            continue;
        found = &variables[i];
        *out = (struct dp_node_rank){.rank = rank, .name = found->rank};
        st = read_size(found, out, err);
    }
    if (st == DP_OK && !found)
        return dp_fail(err, DP_ARGUMENT,
                       "there is no rank: give --rank N, or set DOWNPOUR_RANK (mpirun, srun and indexed "
                       "Kubernetes jobs set one of their own), or give --role and --number");
    return st;
}

enum dp_status dp_node_rank_find(const char *flag, struct dp_node_rank *out, struct dp_error *err)
{
    const char *text = flag ? flag : value_of("DOWNPOUR_RANK");
    *out = (struct dp_node_rank){.name = flag ? "--rank" : "DOWNPOUR_RANK"};
    return text ? dp_parse_u64(text, 0, RANK_MAX, out->name, &out->rank, err) : find_launcher(out, err);
}
