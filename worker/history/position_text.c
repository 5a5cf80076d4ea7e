#include "worker/history/position_text.h"

#include "common/base/log.h"

#include <inttypes.h>
#include <stdio.h>

const char *dp_grouped(uint64_t value, char out[32])
{
    char digits[24];
    int n = snprintf(digits, sizeof digits, "%" PRIu64, value), to = 0;
    for (int i = 0; i < n; i++) {
        out[to++] = digits[i];
        if ((n - 1 - i) % 3 == 0 && i + 1 < n)
            out[to++] = ',';
    }
    out[to] = '\0';
    return out;
}

void dp_position_tell(const struct dp_position *position, const struct dp_cluster_training *training,
                      const struct dp_rounds *rounds)
{
    const struct dp_position *p = position;
    char at[32], of[32];
    if (p->epoch == training->epochs)
        dp_log(DP_LOG_INFO, "continues after its last epoch: the servers have every push");
    else if (rounds->listed)
        dp_log(DP_LOG_INFO, "continues at epoch %" PRIu32 ", of which the servers have %s of %s pushes",
               training->first_epoch + p->epoch + 1, dp_grouped(p->made, at), dp_grouped(p->groups, of));
    else if (p->first == rounds->own)
        dp_log(DP_LOG_INFO, "continues at the end of epoch %" PRIu32 ", after its last minibatch",
               training->first_epoch + p->epoch + 1);
    else
        dp_log(DP_LOG_INFO, "continues at epoch %" PRIu32 ", minibatch %s of %s%s",
               training->first_epoch + p->epoch + 1, dp_grouped(p->first * rounds->every + 1, at),
               dp_grouped(dp_share_positions(rounds->share), of),
               training->workers > 1 ? " of its share" : "");
}
