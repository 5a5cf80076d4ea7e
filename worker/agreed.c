#include "worker/agreed.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

void dp_agreed_text(const struct dp_cluster *cluster, uint64_t digest, uint64_t examples,
                    char text[DP_AGREED_BYTES])
{
    const struct dp_cluster_training *t = &cluster->training;
    int n = snprintf(text, DP_AGREED_BYTES,
                     "data %016" PRIx64 "\nexamples %" PRIu64 "\nbatch %" PRIu32 "\nworkers %" PRIu32
                     "\npush_every %" PRIu32 "\nepochs %" PRIu32 "\nseed %" PRIu64 "\nnegatives %" PRIu32
                     "\nwindow %" PRIu32 "\n",
                     digest, examples, t->batch, t->workers, dp_cluster_pushed_together(t), t->epochs,
                     t->seed, cluster->data.negatives, cluster->data.window);
    DP_ASSERT(n > 0 && (uint32_t)n < DP_AGREED_BYTES);
}

static size_t line_len(const char *line, size_t left)
{
    const char *end = left ? memchr(line, '\n', left) : NULL;
    return end ? (size_t)(end - line) : left;
}

enum dp_status dp_agreed_check(const char *text, const void *before, size_t size, uint32_t run,
                               struct dp_error *err)
{
    const char *now = text, *then = before;
    size_t now_left = strlen(text), then_left = size;
    while (now_left > 0 || then_left > 0) {
        size_t a = line_len(now, now_left), b = line_len(then, then_left);
        if (a != b || memcmp(now, then, a) != 0)
            return dp_fail(err, DP_EXISTS,
                           "run %" PRIu32 " was begun with '%.*s', this is '%.*s': its pushes hold other "
                           "examples; give training.run a higher number, or the old settings and data back",
                           run, (int)(b < 60 ? b : 60), b ? then : "", (int)(a < 60 ? a : 60), a ? now : "");
        now += a, now_left -= a;
        then += b, then_left -= b;
        if (now_left > 0)
            now++, now_left--;
        if (then_left > 0)
            then++, then_left--;
    }
    return DP_OK;
}
