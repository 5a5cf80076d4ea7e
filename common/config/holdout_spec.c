#include "common/config/holdout_spec.h"

#include "common/base/parse.h"

#include <string.h>

enum dp_status dp_holdout_spec_parse(const char *text, const char *what, struct dp_holdout_spec *out,
                                     struct dp_error *err)
{
    *out = (struct dp_holdout_spec){0};
    if (strcmp(text, "leave-one-out") == 0)
        return DP_OK;
    struct dp_error ignored;
    if (dp_parse_f64(text, 0, 0.9, what, &out->share, &ignored) == DP_OK && out->share > 0)
        return DP_OK;
    return dp_fail(
        err, DP_ARGUMENT,
        "%s is '%s', but must be leave-one-out, or the share of each user's items to test on, above 0 "
        "and 0.9 at most",
        what, text);
}
