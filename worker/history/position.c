#include "worker/history/position.h"

#include "common/base/log.h"
#include "common/base/text.h"
#include "common/wire/limits.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

/* Push numbers in one request. */
#define PIECE 4096u
_Static_assert(PIECE <= DP_POSITIONS_MAX, "a piece is one request");

/* Whose pushes are asked for. */
struct position_search {
    struct dp_job *job;
    uint32_t run, epochs;
    uint32_t worker, workers; /* 0 of 1: those of all workers, made in any order */
    uint64_t groups;          /* pushes in an epoch */
    bool any_order;
    struct dp_seat seat;
};

static bool bit(const uint64_t *bits, uint64_t i)
{
    return bits[i / 64] >> i % 64 & 1;
}

static uint64_t words_of(uint64_t groups)
{
    return (groups + 63) / 64;
}

/* Asks for the numbers of all workers between this worker's first and last, and keeps its own:
 * bits[words_of(groups)] of zeros. An answered piece keeps its answer while later pieces are asked again. */
static enum dp_status ask(const struct position_search *s, uint32_t epoch, uint64_t *bits,
                          struct dp_error *err)
{
    uint64_t count = (s->groups - 1) * s->workers + 1, first = dp_push_number(s->worker, s->workers, 0);
    uint64_t *all = calloc((size_t)words_of(count), sizeof *all);
    if (!all)
        return dp_fail(err, DP_NOMEM, "no memory for the numbers of %" PRIu64 " pushes", count);
    enum dp_status st = DP_OK;
    for (uint64_t at = 0; st == DP_OK && at < count; at += PIECE)
        st = dp_job_pushed(s->job, dp_push_stream(s->run, epoch), first + at,
                           (size_t)(count - at < PIECE ? count - at : PIECE), all + at / 64, err);
    for (uint64_t g = 0; st == DP_OK && g < s->groups; g++)
        bits[g / 64] |= (uint64_t)bit(all, g * s->workers) << g % 64;
    free(all);
    return st;
}

/* Where pushes come in any order the last one is not the last that is made: all of the epoch are looked at.
 * */
static enum dp_status is_over(const struct position_search *s, uint32_t epoch, bool *over,
                              struct dp_error *err)
{
    uint64_t last = dp_push_number(s->worker, s->workers, s->groups - 1), one = 0, *bits = NULL;
    enum dp_status st = dp_job_pushed(s->job, dp_push_stream(s->run, epoch), last, 1, &one, err);
    *over = st == DP_TOO_OLD || (one & 1);
    if (st == DP_OK && *over && s->any_order) {
        bits = calloc((size_t)words_of(s->groups), sizeof *bits);
        st = bits ? ask(s, epoch, bits, err)
                  : dp_fail(err, DP_NOMEM, "no memory for the numbers of %" PRIu64 " pushes", s->groups);
        for (uint64_t g = 0; st == DP_OK && g < s->groups; g++)
            *over &= bit(bits, g);
    }
    free(bits);
    if (st != DP_TOO_OLD)
        return st;
    if (err)
        *err = (struct dp_error){0};
    return DP_OK;
}

static enum dp_status find_epoch(const struct position_search *s, uint32_t *epoch, struct dp_error *err)
{
    /* Epochs below low are over; epoch high is not, or is past the last. */
    uint64_t joined = s->seat.from / s->groups;
    uint32_t first = joined < s->epochs ? (uint32_t)joined : s->epochs, low = first, high = s->epochs;
    bool over = false;
    enum dp_status st = DP_OK;
    while (st == DP_OK && low < high) {
        uint32_t middle = low == first ? low : low + (high - low) / 2; /* most often nothing is done yet */
        st = is_over(s, middle, &over, err);
        if (over)
            low = middle + 1;
        else
            high = middle;
    }
    *epoch = low;
    return st;
}

static enum dp_status find_groups(const struct position_search *s, struct dp_position *out,
                                  struct dp_error *err)
{
    out->bits = calloc((size_t)words_of(s->groups), sizeof *out->bits);
    if (!out->bits)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " pushes", s->groups);
    enum dp_status st = ask(s, out->epoch, out->bits, err);
    out->first = s->groups;
    for (uint64_t g = s->groups; st == DP_OK && g-- > 0;) {
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
static enum dp_status find_gaps(const struct position_search *s, struct dp_position *out,
                                struct dp_error *err)
{
    uint64_t all = s->epochs * s->groups, behind = s->seat.from > all ? s->seat.from - all : 0;
    uint64_t left = s->seat.missed > behind ? s->seat.missed - behind : 0;
    enum dp_status st = DP_OK;
    if (out->bits)
        left -= missed_in(out, out->epoch, left);
    for (uint32_t e = out->epoch; left > 0 && e-- > 0;) {
        uint64_t *bits = next_gap(out);
        if (!bits)
            return dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " pushes", s->groups);
        st = ask(s, e, bits, err);
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

enum dp_status dp_position_find(struct dp_job *job, const struct dp_rounds *rounds, struct dp_seat seat,
                                struct dp_position *out, struct dp_error *err)
{
    const struct dp_cluster_training *training = &job->cluster->training;
    const struct position_search s = {.job = job,
                                      .run = training->run,
                                      .epochs = training->epochs,
                                      .worker = rounds->listed ? 0 : rounds->share.worker,
                                      .workers = rounds->listed ? 1 : rounds->share.workers,
                                      .groups = rounds->listed ? rounds->listed : rounds->count,
                                      .any_order = rounds->listed > 0,
                                      .seat = seat};
    *out = (struct dp_position){.groups = s.groups, .from = seat.from};
    if (s.groups == 0) /* a worker without minibatches has nothing to skip */
        return DP_OK;
    enum dp_status st = find_epoch(&s, &out->epoch, err);
    if (st == DP_OK && out->epoch < s.epochs)
        st = find_groups(&s, out, err);
    if (st == DP_OK && seat.missed > 0)
        st = find_gaps(&s, out, err);
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

/* ---- how much that is */

struct tallied {
    const struct dp_rounds *rounds;
    uint64_t examples;
    uint32_t batch;
};

static void add(struct dp_amount *to, const struct tallied *in, uint64_t g)
{
    const struct dp_rounds *rounds = in->rounds;
    to->steps++;
    to->minibatches += dp_group_at(dp_share_positions(rounds->share), rounds->every, g).count;
    to->examples += dp_rounds_examples(rounds, in->examples, in->batch, g);
}

static uint64_t at_most(uint64_t value, uint64_t most)
{
    return value < most ? value : most;
}

/* `steps` steps were missed in these epochs; which ones is not known. */
static void take_away(struct dp_amount *from, struct dp_amount *to, const struct tallied *in, uint64_t steps)
{
    const struct dp_amount taken = {.steps = at_most(steps, from->steps),
                                    .minibatches = at_most(steps * in->rounds->every, from->minibatches),
                                    .examples =
                                        at_most(steps * in->rounds->every * in->batch, from->examples)};
    from->steps -= taken.steps;
    from->minibatches -= taken.minibatches;
    from->examples -= taken.examples;
    *to = taken;
}

struct dp_tally dp_position_tally(const struct dp_position *p, const struct dp_rounds *rounds,
                                  uint64_t examples, uint32_t batch)
{
    const struct tallied in = {.rounds = rounds, .examples = examples, .batch = batch};
    uint32_t whole = p->epoch - p->gap_epochs; /* epochs */
    struct dp_tally t = {0};
    t.before = (struct dp_amount){.steps = whole * rounds->own,
                                  .minibatches = whole * dp_share_positions(rounds->share),
                                  .examples = whole * dp_share_examples(rounds->share, examples, batch)};
    take_away(&t.before, &t.missed, &in, p->unknown);
    for (uint32_t e = whole; e <= p->epoch; e++)
        for (uint64_t g = 0; g < rounds->own && p->groups > 0; g++)
            if (dp_position_made(p, e, g))
                add(e < p->epoch ? &t.before : &t.here, &in, g);
            else if (dp_position_done(p, e, g) && (e < p->epoch || p->bits))
                add(&t.missed, &in, g);
    return t;
}

/* ---- for the log */

void dp_position_tell(const struct dp_position *position, const struct dp_cluster_training *training,
                      const struct dp_rounds *rounds)
{
    const struct dp_position *p = position;
    char at[32], of[32];
    if (p->epoch == training->epochs)
        dp_log(DP_LOG_INFO, "continues after its last epoch: the servers have every push");
    else if (rounds->listed)
        dp_log(DP_LOG_INFO, "continues at epoch %" PRIu32 "; the servers have %s of its %s pushes",
               training->first_epoch + p->epoch + 1, dp_text_grouped(p->made, at),
               dp_text_grouped(p->groups, of));
    else if (p->first == rounds->own)
        dp_log(DP_LOG_INFO, "continues at the end of epoch %" PRIu32 ", after its last minibatch",
               training->first_epoch + p->epoch + 1);
    else
        dp_log(DP_LOG_INFO, "continues at epoch %" PRIu32 ", minibatch %s of %s%s",
               training->first_epoch + p->epoch + 1, dp_text_grouped(p->first * rounds->every + 1, at),
               dp_text_grouped(dp_share_positions(rounds->share), of),
               training->workers > 1 ? " of its share" : "");
}
