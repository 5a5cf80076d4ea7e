/* Modes: the modes of `downpour compare`, as users write them:
 * "async,async:leased,ssp:4,sync@8[batch=4],hogwild@2+prefetch".
 *     async, ssp:S, sync, sync:B   a run with that --consistency
 *     async:leased                 async with --work leased
 *     hogwild                      one worker process whose threads share its weights without locks (--threads)
 *     allreduce                    the steps of sync without servers: ranks of downpour-allreduce under mpirun
 *     MODE@W                       that mode with W workers (threads, ranks)
 *     MODE@W[KEY=VALUE,KEY,...]    with settings of its own: flags of `run` without --, with _ or -
 *     MODE@W[...]+prefetch         it pulls the next minibatch before it pushes the current one, which adds one step of own staleness
 * Settings  Those of dp_run_command, checked as a run checks them. A flag that would change the comparison
 *           (model, data, seed, ...) is refused by its name.
 * Thread    Any: plain functions. */
#ifndef DP_COMPARE_MODES_H
#define DP_COMPARE_MODES_H

#include "deploy/cli/options.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_COMPARE_MODES_MAX 8u /* as many colours as a page can tell apart */
#define DP_COMPARE_NAME      96u
#define DP_COMPARE_OWN_MAX   8u

enum dp_compare_kind { DP_COMPARE_SERVERS, DP_COMPARE_HOGWILD, DP_COMPARE_ALLREDUCE };

struct dp_compare_mode {
    char name[DP_COMPARE_NAME]; /* as given */
    enum dp_compare_kind kind;
    char consistency[24]; /* of --consistency: "ssp:4" */
    bool leased, prefetch;
    uint32_t workers;
    struct dp_compare_own {
        const struct dp_option *option; /* of dp_run_command */
        char value[DP_COMPARE_NAME];    /* a switch: "" */
    } own[DP_COMPARE_OWN_MAX];
    size_t owns;
};

/* workers: of modes without @W. DP_ARGUMENT names what is no mode, is given twice or is one too many. */
enum dp_status dp_compare_modes_parse(const char *text, uint32_t workers,
                                      struct dp_compare_mode out[DP_COMPARE_MODES_MAX], size_t *count,
                                      struct dp_error *err);
/* Its own setting for this flag ("--rate"); NULL: it has none. */
const char *dp_compare_mode_own(const struct dp_compare_mode *mode, const char *flag);
/* What the mode promises, in a sentence. */
#define DP_COMPARE_PROMISE_BYTES 384u
const char *dp_compare_mode_promise(const struct dp_compare_mode *mode, char out[DP_COMPARE_PROMISE_BYTES]);
/* The name as a part of a path: "ssp-4". */
const char *dp_compare_mode_path(const struct dp_compare_mode *mode, char out[DP_COMPARE_NAME]);

/* ---- compare's flags: those of its own, and those of `downpour run` for the model, the data and the training, as one table for parser
 * and --help. Flags of `run` that compare sets itself (mode, directory), or that would end runs at moments of their own, are not among them.
 * Made at the first call; one thread. */
const struct dp_command *dp_compare_command(void);
/* Whether this flag is one of `run`, which each run gets as it was given. */
bool dp_compare_is_of_run(const char *name);

#define DP_COMPARE_FLAGS_MAX 96u

#endif
