#include "worker/history/position.h"

#include "worker/schedule/push_id.h"

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
    uint64_t joined = plan->from / plan->groups;
    uint32_t first = joined < plan->epochs ? (uint32_t)joined : plan->epochs, low = first,
             high = plan->epochs;
    bool over = false;
    enum dp_status st = DP_OK;
    while (st == DP_OK && low < high) {
        uint32_t middle = low == first ? low : low + (high - low) / 2; /* most often nothing is done yet */
        st = is_over(plan, middle, &over, err);
        if (over)
            low = middle + 1;
        else
            high = middle;
    }
    *epoch = low;
    return st;
}

static uint64_t words_of(uint64_t groups)
{
    return (groups + 63) / 64;
}

/* Asks for the numbers of all workers between this worker's first and last, and keeps its own: bits[words_of(groups)] of zeros. */
static enum dp_status ask_own(const struct dp_position_plan *plan, uint32_t epoch, uint64_t *bits,
                              struct dp_error *err)
{
    uint64_t count = (plan->groups - 1) * plan->workers + 1;
    uint64_t *all = calloc((size_t)(count + 63) / 64, sizeof *all);
    if (!all)
        return dp_fail(err, DP_NOMEM, "no memory for the numbers of %" PRIu64 " pushes", count);
    enum dp_status st = ask_pieces(plan, epoch, count, all, err);
    for (uint64_t g = 0; st == DP_OK && g < plan->groups; g++)
        bits[g / 64] |= (uint64_t)bit(all, g * plan->workers) << g % 64;
    free(all);
    return st;
}

static enum dp_status find_groups(const struct dp_position_plan *plan, struct dp_position *out,
                                  struct dp_error *err)
{
    out->bits = calloc((size_t)words_of(plan->groups), sizeof *out->bits);
    if (!out->bits)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " pushes", plan->groups);
    enum dp_status st = ask_own(plan, out->epoch, out->bits, err);
    out->first = plan->groups;
    for (uint64_t g = plan->groups; st == DP_OK && g-- > 0;) {
        out->made += bit(out->bits, g);
        if (!dp_position_done(out, out->epoch, g))
            out->first = g;
    }
    return st;
}

/* How many steps of `epoch` it missed, and not more than `most`. */
static uint64_t missed_in(const struct dp_position *position, uint32_t epoch, uint64_t most)
{
    uint64_t missed = 0;
    for (uint64_t g = 0; g < position->groups && missed < most; g++)
        missed += dp_position_done(position, epoch, g) && !dp_position_made(position, epoch, g);
    return missed;
}

/* Makes room for one epoch more. */
static uint64_t *next_gap(struct dp_position *out)
{
    uint64_t words = words_of(out->groups);
    uint64_t *more = realloc(out->gaps, (size_t)((out->gap_epochs + 1) * words) * sizeof *more);
    if (!more)
        return NULL;
    out->gaps = more;
    uint64_t *bits = more + out->gap_epochs * words;
    for (uint64_t i = 0; i < words; i++)
        bits[i] = 0;
    return bits;
}

/* Goes back from the epoch under way until it has seen everything that was missed. */
static enum dp_status find_gaps(const struct dp_position_plan *plan, struct dp_position *out,
                                struct dp_error *err)
{
    uint64_t all = plan->epochs * plan->groups, behind = plan->from > all ? plan->from - all : 0;
    uint64_t left = plan->missed > behind ? plan->missed - behind : 0;
    enum dp_status st = DP_OK;
    if (out->bits)
        left -= missed_in(out, out->epoch, left);
    for (uint32_t e = out->epoch; left > 0 && e-- > 0;) {
        uint64_t *bits = next_gap(out);
        if (!bits)
            return dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " pushes", plan->groups);
        st = ask_own(plan, e, bits, err);
        if (st != DP_OK)
            break;
        out->gap_epochs++;
        left -= missed_in(out, e, left);
    }
    if (st != DP_TOO_OLD)
        return st;
    out->unknown = left;
    if (err)
        *err = (struct dp_error){0};
    return DP_OK;
}

enum dp_status dp_position_find(const struct dp_position_plan *plan, struct dp_position *out,
                                struct dp_error *err)
{
    *out = (struct dp_position){.groups = plan->groups, .from = plan->from};
    if (plan->groups == 0) /* a worker without minibatches has nothing to skip */
        return DP_OK;
    enum dp_status st = find_epoch(plan, &out->epoch, err);
    if (st == DP_OK && out->epoch < plan->epochs)
        st = find_groups(plan, out, err);
    if (st == DP_OK && plan->missed > 0)
        st = find_gaps(plan, out, err);
    if (st == DP_OK)
        return DP_OK;
    dp_position_clear(out);
    return dp_wrap(err, st, "finding the position to resume at");
}

void dp_position_clear(struct dp_position *position)
{
    free(position->bits);
    free(position->gaps);
    *position = (struct dp_position){0};
}

bool dp_position_made(const struct dp_position *position, uint32_t epoch, uint64_t group)
{
    if (epoch == position->epoch)
        return position->bits && bit(position->bits, group);
    if (epoch > position->epoch)
        return false;
    uint64_t back = position->epoch - 1 - epoch;
    return back >= position->gap_epochs || bit(position->gaps + back * words_of(position->groups), group);
}

bool dp_position_done(const struct dp_position *position, uint32_t epoch, uint64_t group)
{
    return epoch < position->epoch || epoch * position->groups + group < position->from ||
           (epoch == position->epoch && position->bits && bit(position->bits, group));
}
