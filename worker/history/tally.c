#include "worker/history/tally.h"

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

/* Of `steps` steps that were missed in these epochs, nobody knows which. */
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

struct dp_tally dp_tally_of(const struct dp_position *p, const struct dp_rounds *rounds, uint64_t examples,
                            uint32_t batch)
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
