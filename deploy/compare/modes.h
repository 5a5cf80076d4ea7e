/* Modes: what `downpour compare` trains beside each other, as people write it: "async,async:leased,ssp:4,sync:1,hogwild@2,allreduce".
 *     async, ssp:S, sync, sync:B   a run with that --consistency
 *     async:leased                 async with --work leased
 *     hogwild                      one worker process whose threads share its weights without locks (--threads)
 *     allreduce                    the steps of sync without servers: ranks of downpour-allreduce under mpirun
 *     MODE@W                       that mode with W workers (threads, ranks)
 * Thread    Any: plain functions. */
#ifndef DP_COMPARE_MODES_H
#define DP_COMPARE_MODES_H

#include "common/base/status.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_COMPARE_MODES_MAX 8u /* as many colours as a page can tell apart */

enum dp_compare_kind { DP_COMPARE_SERVERS, DP_COMPARE_HOGWILD, DP_COMPARE_ALLREDUCE };

struct dp_compare_mode {
    char name[32]; /* as given */
    enum dp_compare_kind kind;
    char consistency[24]; /* of --consistency: "ssp:4" */
    bool leased;
    uint32_t workers;
};

/* workers: of modes without @W. DP_ARGUMENT names what is no mode, is given twice or is one too many. */
DP_MUST_USE
enum dp_status dp_compare_modes_parse(const char *text, uint32_t workers,
                                      struct dp_compare_mode out[DP_COMPARE_MODES_MAX], size_t *count,
                                      struct dp_error *err);
/* What the mode promises, in a sentence. */
#define DP_COMPARE_PROMISE_BYTES 256u
const char *dp_compare_mode_promise(const struct dp_compare_mode *mode, char out[DP_COMPARE_PROMISE_BYTES]);
/* The name as a part of a path: "ssp-4". out: sizeof name. */
const char *dp_compare_mode_path(const struct dp_compare_mode *mode, char out[32]);

#endif
