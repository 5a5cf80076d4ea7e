/* Second: a run in a directory that has had one. The user chooses one of three ways, unless nothing
 * differs:
 *     finished, and nothing differs   trained on from its weights, as the next run; with --continue whatever differs
 *     --resume                        the same run, to its end
 *     --fresh                         another one, which takes its place when it trains (folder_runs.c)
 * Failure   DP_EXISTS: the user must choose; the text lists the ways. DP_NOT_FOUND: there is no earlier
 *           run. Standard error shows each difference in a line. DP_CORRUPT: the run has trained, and one
 *           of its stores is missing. */
#ifndef DP_RUN_RUN_SECOND_H
#define DP_RUN_RUN_SECOND_H

#include "deploy/cli/options.h"
#include "deploy/run/run_state.h"

struct dp_second {
    const struct dp_folder *folder;
    const struct dp_command *command; /* whose flags the messages name */
    const struct dp_run_state *now;   /* of the run to be */
    uint32_t number;                  /* the least that the run to be may have */
    bool continues;                   /* --continue */
    bool replaces;                    /* --replace-store */
    bool restores;                    /* --from: its stores and its files are still to come */
    uint32_t whole;                   /* with restores: epochs that it has ended */
};

/* Makes `cluster` the next run on the store that lies there: its name, id, number, and how many epochs were trained before. */
enum dp_status dp_second_join(const struct dp_second *second, const struct dp_cluster *earlier,
                              struct dp_cluster *cluster, struct dp_error *err);
/* The examples of all files before this run's: its earlier_examples. was: the state of the earlier run. */
uint64_t dp_second_examples(const struct dp_cluster *earlier, const struct dp_run_state *was,
                            const struct dp_cluster *cluster, const struct dp_run_state *now);
/* The run there can be finished; *cluster: its own. */
enum dp_status dp_second_resumable(const struct dp_folder *folder, struct dp_cluster **cluster,
                                   struct dp_error *err);
/* With flags that were given beside --resume it is the same training still. */
enum dp_status dp_second_same(const struct dp_second *second, const struct dp_cluster *earlier,
                              const struct dp_cluster *cluster, struct dp_error *err);

#endif
