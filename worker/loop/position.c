#include "worker/loop/position.h"

#include "worker/job/push_id.h"

#include <inttypes.h>
#include <stdlib.h>

static bool bit(const uint64_t *bits, uint64_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

/* An answered piece keeps its answer while later pieces are asked again. */
static enum dp_status ask_pieces(const struct dp_position_plan *plan, uint32_t epoch, uint64_t count,
                                 uint64_t *bits, struct dp_error *err)
{
    uint64_t first = dp_push_number(plan->worker, plan->workers, 0);
    enum dp_status st = DP_OK;
    for (uint64_t at = 0; st == DP_OK && at < count; at += DP_POSITION_PIECE) {
        uint64_t n = count - at < DP_POSITION_PIECE ? count - at : DP_POSITION_PIECE;
        st = plan->ask(plan->context, dp_push_stream(plan->run, epoch), first + at, (size_t)n, bits + at / 64,
                       err);
    }
    return st;
}

/* Where pushes come in any order: whether all of the epoch are there. */
static enum dp_status has_all(const struct dp_position_plan *plan, uint32_t epoch, bool *all,
                              struct dp_error *err)
{
    uint64_t *bits = calloc((size_t)(plan->groups + 63) / 64, sizeof *bits);
    enum dp_status st =
        bits ? ask_pieces(plan, epoch, plan->groups, bits, err)
             : dp_fail(err, DP_NOMEM, "no memory for the numbers of %" PRIu64 " pushes", plan->groups);
    *all = st == DP_OK;
    for (uint64_t n = 0; *all && n < plan->groups; n++)
        *all = bit(bits, n);
    free(bits);
    return st;
}

static enum dp_status is_over(const struct dp_position_plan *plan, uint32_t epoch, bool *over,
                              struct dp_error *err)
{
    uint64_t bits = 0, last = dp_push_number(plan->worker, plan->workers, plan->groups - 1);
    enum dp_status st = plan->ask(plan->context, dp_push_stream(plan->run, epoch), last, 1, &bits, err);
    if (st == DP_OK && (bits & 1) && plan->any_order)
        st = has_all(plan, epoch, over, err);
    else
        *over = bits & 1;
    if (st != DP_TOO_OLD)
        return st;
    *over = true;
    if (err)
        *err = (struct dp_error){0};
    return DP_OK;
}

static enum dp_status find_epoch(const struct dp_position_plan *plan, uint32_t *epoch, struct dp_error *err)
{
    /* Epochs below low are over; epoch high is not, or is past the last. */
    uint32_t low = 0, high = plan->epochs;
    bool over = false;
    enum dp_status st = DP_OK;
    while (st == DP_OK && low < high) {
        uint32_t middle = low == 0 ? 0 : low + (high - low) / 2; /* most often nothing is done yet */
        st = is_over(plan, middle, &over, err);
        if (over)
            low = middle + 1;
        else
            high = middle;
    }
    *epoch = low;
    return st;
}

/* Asks for the numbers of all workers between this worker's first and last, and keeps its own. */
static enum dp_status find_groups(const struct dp_position_plan *plan, struct dp_position *out,
                                  struct dp_error *err)
{
    uint64_t count = (plan->groups - 1) * plan->workers + 1;
    uint64_t *all = calloc((size_t)(count + 63) / 64, sizeof *all);
    out->bits = calloc((size_t)(plan->groups + 63) / 64, sizeof *out->bits);
    enum dp_status st = DP_NOMEM;
    if (!all || !out->bits) {
        (void)dp_fail(err, st, "no memory for the numbers of %" PRIu64 " pushes", plan->groups);
        goto done;
    }
    st = ask_pieces(plan, out->epoch, count, all, err);
    out->first = plan->groups;
    for (uint64_t g = 0; st == DP_OK && g < plan->groups; g++) {
        if (bit(all, g * plan->workers)) {
            out->bits[g / 64] |= UINT64_C(1) << g % 64;
            out->done++;
        } else if (out->first == plan->groups) {
            out->first = g;
        }
    }
done:
    free(all);
    return st;
}

enum dp_status dp_position_find(const struct dp_position_plan *plan, struct dp_position *out,
                                struct dp_error *err)
{
    *out = (struct dp_position){.groups = plan->groups};
    if (plan->groups == 0) /* a worker without minibatches has nothing to skip */
        return DP_OK;
    enum dp_status st = find_epoch(plan, &out->epoch, err);
    if (st == DP_OK && out->epoch < plan->epochs)
        st = find_groups(plan, out, err);
    if (st == DP_OK)
        return DP_OK;
    dp_position_clear(out);
    return dp_wrap(err, st, "finding the position to resume at");
}

void dp_position_clear(struct dp_position *position)
{
    free(position->bits);
    *position = (struct dp_position){0};
}

bool dp_position_done(const struct dp_position *position, uint32_t epoch, uint64_t group)
{
    if (epoch != position->epoch || !position->bits)
        return epoch < position->epoch;
    return bit(position->bits, group);
}
