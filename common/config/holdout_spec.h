/* Holdout spec: the part of a training file of pairs that is its test set, as users write it:
 * "leave-one-out", or a share, "0.2".
 * Thread    Any: plain functions. */
#ifndef DP_CONFIG_HOLDOUT_SPEC_H
#define DP_CONFIG_HOLDOUT_SPEC_H

#include "common/base/status.h"

struct dp_holdout_spec {
    double share; /* above 0, 0.9 at most; 0: one item of each user */
};

/* `what` names the setting in messages. DP_ARGUMENT: it is neither. */
enum dp_status dp_holdout_spec_parse(const char *text, const char *what, struct dp_holdout_spec *out,
                                     struct dp_error *err);

#endif
