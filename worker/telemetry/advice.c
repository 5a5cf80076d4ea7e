#include "worker/telemetry/advice.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WORSE      1e-4 /* relative: ignores rounding */
#define RISEN      1.05
#define FALLING    0.02
#define FEW_PUSHES 100u /* in the whole training */
#define LAST       3u   /* the fall is averaged over the last epochs */

/* The loss that the advice judges, epoch by epoch. */
struct course {
    const struct dp_report *report;
    const struct dp_tested *tested; /* NULL: the training loss */
    const char *name;
    uint32_t epochs;
};

/* A set that is only ranked has no loss. Outputs that are not finite end a training (evaluate.c). */
static bool has_loss(const struct dp_tested *tested)
{
    return tested->known && !isnan(tested->figures.loss);
}

static struct course course_of(const struct dp_report *report)
{
    struct course c = {.report = report, .epochs = report->epochs, .name = "training"};
    if (report->epochs == 0)
        return c;
    if (report->validated && has_loss(&report->validated[report->epochs - 1]))
        c.tested = report->validated, c.name = "validation";
    else if (has_loss(&report->tested[report->epochs - 1]))
        c.tested = report->tested, c.name = "test";
    else if (report->constant.known && strcmp(report->constant.set, "training") == 0)
        c.tested = NULL, c.name = "training";
    return c;
}

/* NaN: not measured. */
static double loss_at(const struct course *c, uint32_t epoch)
{
    if (!c->tested)
        return dp_report_train_loss(c->report, epoch);
    return c->tested[epoch].known ? c->tested[epoch].figures.loss : (double)NAN;
}

static uint32_t best_of(const struct course *c)
{
    uint32_t best = c->epochs - 1;
    for (uint32_t e = 0; e + 1 < c->epochs; e++)
        if (loss_at(c, e) < loss_at(c, best))
            best = e;
    return best;
}

static double fall_over(const struct course *c, uint32_t epochs)
{
    double from = loss_at(c, c->epochs - 1 - epochs), to = loss_at(c, c->epochs - 1);
    return to > 0 && from > to ? 1 - pow(to / from, 1.0 / epochs) : 0;
}

/* The relative fall of the loss in an epoch at the end: the smaller of the mean over the last epochs and over
 * their last half, so that neither the noise of one epoch nor a fall that has ended counts. */
static double fall_of(const struct course *c)
{
    uint32_t over = c->epochs - 1 < LAST ? c->epochs - 1 : LAST;
    return over > 0 ? fmin(fall_over(c, over), fall_over(c, (over + 1) / 2)) : 0;
}

/* The course of the set on which the constant was evaluated. */
static struct course beside_constant(const struct dp_report *report)
{
    struct course c = course_of(report);
    uint32_t last = report->epochs - 1;
    if (report->constant.known && strcmp(report->constant.set, "test") == 0 &&
        has_loss(&report->tested[last]))
        c.tested = report->tested, c.name = "test";
    else if (report->constant.known && strcmp(report->constant.set, "training") == 0)
        c.tested = NULL, c.name = "training";
    return c;
}

static bool below_constant(const struct dp_report *report, char text[DP_ADVICE_BYTES])
{
    const struct course course = beside_constant(report), *c = &course;
    uint32_t left = (report->left ? report->left : c->epochs) - 1; /* whose weights stay */
    const struct dp_figures *figures = c->tested ? &c->tested[left].figures : NULL;
    double loss = loss_at(c, left), constant = report->constant.figures.loss;
    const char *help = DP_ADVICE_SCALE;
    double rate = report->cluster->training.rate;
    if (!isfinite(loss)) {
        (void)snprintf(
            text, DP_ADVICE_BYTES,
            "The %s loss is not finite: the training has diverged. What usually helps: %s, a --rate below "
            "%g, --warmup.",
            c->name, help, rate);
        return true;
    }
    if (!report->constant.known || !(loss > constant * (1 + WORSE)))
        return false;
    int n = snprintf(text, DP_ADVICE_BYTES,
                     "The %s loss of %.5g is worse than the %.5g of a constant: ", c->name, loss, constant);
    if (figures && isfinite(figures->auc) && figures->auc > 0.6)
        (void)snprintf(text + n, DP_ADVICE_BYTES - (size_t)n,
                       "the model ranks examples well (AUC %.3f), but its probabilities are far too extreme. "
                       "What usually helps: "
                       "fewer --epochs, --l2, --validation-share 0.1 --patience 2; %s.",
                       figures->auc, help);
    else if (fall_of(c) >= FALLING || c->epochs < LAST)
        (void)snprintf(text + n, DP_ADVICE_BYTES - (size_t)n,
                       "the model has learned too little so far. What usually helps: more --epochs, %s.",
                       help);
    else
        (void)snprintf(
            text + n, DP_ADVICE_BYTES - (size_t)n,
            "the model has learned nothing useful. What usually helps: another --rate (it was %g), %s, --l2.",
            rate, help);
    return true;
}

static bool fits_noise(const struct course *c, char text[DP_ADVICE_BYTES])
{
    uint32_t best = best_of(c);
    double least = loss_at(c, best), last = loss_at(c, c->epochs - 1);
    bool kept = c->report->left > 0 && c->report->left < c->epochs; /* weights of before the noise stay */
    bool stopped = c->report->stop && c->report->stop->why != DP_EARLY_STOP_NO; /* early, as asked */
    if (kept || stopped || !c->tested || !isfinite(last) || !(last > least * RISEN))
        return false;
    (void)snprintf(text, DP_ADVICE_BYTES,
                   "The %s loss was best after epoch %" PRIu32
                   " (%.5g) and ended at %.5g: the model has fitted noise since then. --validation-share 0.1 "
                   "--patience 2 "
                   "stops soon after the best epoch; --l2 may help.",
                   c->name, c->report->cluster->training.first_epoch + best + 1, least, last);
    return true;
}

static bool falls(const struct course *c, char text[DP_ADVICE_BYTES])
{
    const struct dp_report *report = c->report;
    double fall = fall_of(c);
    if (fall < FALLING || (report->stop && report->stop->why != DP_EARLY_STOP_NO))
        return false;
    (void)snprintf(text, DP_ADVICE_BYTES,
                   "The %s loss was still falling by %.1f%% an epoch when the training ended: more epochs "
                   "may help. It had "
                   "%" PRIu32 "; --continue --epochs %" PRIu32 " trains %" PRIu32 " more.",
                   c->name, 100 * fall, c->epochs, c->epochs, c->epochs);
    return true;
}

/* Threads of a worker train on weights of one pull, and their gradients are one push. */
static bool pushed_seldom(const struct dp_report *report, char text[DP_ADVICE_BYTES])
{
    const struct dp_cluster_training *t = &report->cluster->training;
    uint32_t together = dp_cluster_pushed_together(t);
    uint64_t pushes = 0;
    for (uint32_t w = 0; w < t->workers; w++)
        pushes += report->workers[w].pushes;
    if (t->threads <= 1 || together <= t->threads || pushes == 0 || pushes >= FEW_PUSHES)
        return false;
    (void)snprintf(
        text, DP_ADVICE_BYTES,
        "With --threads %" PRIu32 " a push has the gradients of %" PRIu32
        " minibatches, so the whole training made %" PRIu64
        " pushes. If it has learned little: --fetch-every %" PRIu32
        " makes them of as many as there are threads, and a higher --rate (it was %g) makes more of each.",
        t->threads, together, pushes, t->threads, t->rate);
    return true;
}

/* A run that was restored from a checkpoint of its end. */
static bool had_ended(const struct dp_report *report, char text[DP_ADVICE_BYTES])
{
    for (uint32_t w = 0; w < report->cluster->training.workers; w++)
        for (uint32_t e = 0; e < report->epochs; e++)
            if (report->workers[w].epoch[e].examples > 0)
                return false;
    (void)snprintf(text, DP_ADVICE_BYTES,
                   "Nothing was left to train: the stores had every push of run %" PRIu32
                   " before. --continue --epochs N trains further from its weights.",
                   report->cluster->training.run);
    return true;
}

uint32_t dp_advice_of(const struct dp_report *report, char text[DP_ADVICE_MAX][DP_ADVICE_BYTES])
{
    const struct course c = course_of(report);
    uint32_t n = 0;
    if (c.epochs == 0)
        return 0;
    if (had_ended(report, text[0]))
        return 1;
    n += below_constant(report, text[n]);
    n += fits_noise(&c, text[n]);
    n += falls(&c, text[n]);
    n += pushed_seldom(report, text[n]);
    return n;
}
