#include "worker/read/labels.h"

#include <math.h>

static enum dp_status map_binary(struct dp_label_rule *rule, float label, float *out, struct dp_error *err)
{
    if (label != 0 && label != 1 && label != -1)
        return dp_fail(err, DP_DATA, "label %g: expected 0 or 1, or -1 or +1", (double)label);
    rule->has_zero = rule->has_zero || label == 0;
    rule->has_minus = rule->has_minus || label == -1;
    if (rule->has_zero && rule->has_minus)
        return dp_fail(err, DP_DATA,
                       "label %g: the file has both -1 and 0: expected either 0 and 1 or -1 and +1",
                       (double)label);
    *out = label == 1 ? 1 : 0;
    return DP_OK;
}

static enum dp_status map_class(const struct dp_label_rule *rule, float label, float *out,
                                struct dp_error *err)
{
    /* Compared before it is taken for whole: an f32 below 2^24 is exact. */
    if (!(label >= 0 && label < (float)rule->classes) || label != floorf(label))
        return dp_fail(err, DP_DATA, "label %g: expected a class from 0 to %u", (double)label,
                       rule->classes - 1);
    *out = label == 0 ? 0 : label; /* -0 is class 0 */
    return DP_OK;
}

enum dp_status dp_label_map(struct dp_label_rule *rule, float label, float *out, struct dp_error *err)
{
    switch (rule->kind) {
    case DP_LABELS_BINARY:
        return map_binary(rule, label, out, err);
    case DP_LABELS_CLASS:
        return map_class(rule, label, out, err);
    case DP_LABELS_ANY:
        break;
    }
    *out = label;
    return DP_OK;
}
