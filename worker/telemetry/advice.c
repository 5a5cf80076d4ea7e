#include "worker/telemetry/advice.h"

#include "common/config/consistency.h"
#include "worker/telemetry/divergence.h"
#include "worker/telemetry/losses.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define WORSE          1e-4 /* relative: ignores rounding */
#define RISEN          1.05
#define RISEN_LITTLE   1.01
#define AUC_FALLEN     0.01
#define FALLING        0.02
#define FALLING_SLOWLY 0.005
#define FEW_PUSHES     100u /* in the whole training */
#define RISEN_FAR      1.1
#define FEW_EPOCHS     3u  /* too few to show a trend of the loss */
#define RISEN_WIDE     3.0 /* more than a small loss wavers */

static double staleness_of(const struct dp_report *report)
{
    struct dp_staleness all = {0};
    for (uint32_t w = 0; w < report->cluster->training.workers; w++)
        dp_staleness_merge(&all, &report->workers[w].staleness);
    return dp_staleness_mean(&all);
}

static bool is_stale(const struct dp_report *report)
{
    return report->cluster->training.workers > 1 && staleness_of(report) > DP_ADVICE_STALE;
}

/* The training loss falls in each epoch after this one. */
static bool falls_since(const struct dp_report *report, uint32_t epoch)
{
    for (uint32_t e = epoch + 1; e < report->epochs; e++)
        if (!(dp_report_train_loss(report, e) < dp_report_train_loss(report, e - 1)))
            return false;
    return true;
}

/* What fits noise goes on fitting what it is trained on, better than a constant does. */
static bool fits(const struct dp_losses *c)
{
    const struct dp_report_constant *constant = &c->report->constant;
    uint32_t best = dp_losses_best(c);
    double train = dp_report_train_loss(c->report, c->epochs - 1);
    if (train < dp_losses_at(c, best))
        return true;
    return falls_since(c->report, best) && !(constant->known && train > constant->figures.loss);
}

static double rise_of(const struct dp_losses *c)
{
    return dp_losses_at(c, c->epochs - 1) / dp_losses_at(c, dp_losses_best(c));
}

const char *dp_advice_scale(const struct dp_cluster_data *data, const char *format)
{
    if (!format)
        return "";
    if (strcmp(format, "csv") == 0)
        return data->standardize ? "" : ", numbers of like size (--standardize yes)";
    if (strcmp(format, "libsvm") == 0)
        return data->normalize || data->scale != 0 ? "" : ", numbers of like size (--normalize or --scale X)";
    return "";
}

/* ---- instability, and its cause */

static void what_helps(const struct dp_report *report, char *text, size_t size)
{
    const struct dp_cluster_training *t = &report->cluster->training;
    double rate = dp_cluster_lower_rate(t);
    bool stale = is_stale(report), far = rate == DP_RATE_DEFAULT && t->rate > 10 * rate;
    char cause[160] = "the rate";
    if (t->first_epoch > 0 && report->constant.known && report->epochs > 0 &&
        dp_report_train_loss(report, 0) > RISEN_WIDE * report->constant.figures.loss) {
        (void)snprintf(
            text, size,
            " The likely cause is the weights that it continued from: --fresh starts with new ones.");
        return;
    }
    if (stale)
        (void)snprintf(
            cause, sizeof cause, "%s: weights had changed by %.1f pushes between a pull and its push",
            far ? "the rate, and asynchrony adds to it" : "asynchrony at this rate", staleness_of(report));
    int n = snprintf(text, size, " The likely cause is %s. Try --rate %.3g%s (it was %g)", cause, rate,
                     far ? ", the default" : "", t->rate);
    if (n < 0 || (size_t)n >= size)
        return;
    const char *order =
        dp_cluster_rule_of(t).mode == DP_SSP ? ", --consistency sync" : ", --consistency ssp:1 or sync";
    (void)snprintf(text + n, size - (size_t)n, "%s%s%s%s%s.", t->warmup_steps ? "" : ", --rate warmup=N",
                   stale && !t->rate_by_staleness ? ", --rate-by-staleness" : "", stale ? order : "",
                   stale && t->overlap ? ", --no-overlap" : "",
                   stale ? "" : dp_advice_scale(&report->cluster->data, report->format));
}

static int diverged(const struct dp_report *report, char text[DP_ADVICE_BYTES])
{
    const struct dp_divergence d = dp_divergence_of(report);
    switch (d.why) {
    case DP_DIVERGED_NOT_FINITE:
        return snprintf(text, DP_ADVICE_BYTES, "The %s loss is not finite: the training has diverged.",
                        d.set ? d.set : "training");
    case DP_DIVERGED_GREW:
        return snprintf(text, DP_ADVICE_BYTES, "The %s loss grew from %.5g in the first epoch to %.5g.",
                        d.set, d.reference, d.loss);
    case DP_DIVERGED_NO_BETTER:
        return snprintf(text, DP_ADVICE_BYTES,
                        "The training blew up: the %s loss of %.5g is no better than the %.5g of a constant.",
                        d.set, d.loss, d.reference);
    case DP_DIVERGED_NO:
        break;
    }
    return 0;
}

/* Of stale gradients: nothing was learned, and not for want of time. */
static int came_to_nothing(const struct dp_report *report, char text[DP_ADVICE_BYTES])
{
    const struct dp_losses c = dp_losses_of_constant(report);
    double loss = dp_losses_at(&c, dp_losses_stays(&c)), constant = report->constant.figures.loss;
    bool learns = dp_losses_fall(&c) >= FALLING || falls_since(report, 0) || c.epochs < FEW_EPOCHS;
    if (!is_stale(report) || !report->constant.known || !(loss > constant * (1 + WORSE)) || learns ||
        fits(&c))
        return 0;
    return snprintf(text, DP_ADVICE_BYTES,
                    "The %s loss of %.5g is worse than the %.5g of a constant, and does not fall.", c.name,
                    loss, constant);
}

/* The loss rose far, and not for noise. */
static int rose(const struct dp_report *report, char text[DP_ADVICE_BYTES])
{
    const struct dp_losses c = dp_losses_of(report);
    uint32_t best = dp_losses_best(&c), end = c.epochs - 1;
    double loss = dp_losses_at(&c, end);
    bool wide = is_stale(report) && rise_of(&c) > RISEN_WIDE;
    bool small = !wide && report->constant.known && loss < report->constant.figures.loss / 2; /* it wavers */
    /* (Where earlier weights stay, only what noise does not explain is said.) */
    if ((dp_losses_stays(&c) < end && !wide) || small || fits(&c) || !(rise_of(&c) > RISEN_FAR))
        return 0;
    return snprintf(text, DP_ADVICE_BYTES,
                    "The %s loss was best after epoch %" PRIu32
                    " (%.5g) and ended at %.5g, and the training loss was no steadier.",
                    c.name, report->cluster->training.first_epoch + best + 1, dp_losses_at(&c, best), loss);
}

static bool unstable(const struct dp_report *report, char text[DP_ADVICE_BYTES])
{
    int n = diverged(report, text);
    if (n == 0)
        n = came_to_nothing(report, text);
    if (n == 0)
        n = rose(report, text);
    if (n > 0)
        what_helps(report, text + n, DP_ADVICE_BYTES - (size_t)n);
    return n > 0;
}

/* ---- what else is wrong */

static bool below_constant(const struct dp_report *report, char text[DP_ADVICE_BYTES])
{
    const struct dp_losses losses = dp_losses_of_constant(report), *c = &losses;
    uint32_t stays = dp_losses_stays(c);
    const struct dp_figures *figures = c->tested ? &c->tested[stays].figures : NULL;
    double loss = dp_losses_at(c, stays), constant = report->constant.figures.loss;
    const char *help = dp_advice_scale(&report->cluster->data, report->format);
    double rate = report->cluster->training.rate;
    bool ranks = figures && figures->auc > 0.6;
    bool fitted = dp_report_train_loss(report, stays) < constant && dp_losses_fall(c) < FALLING_SLOWLY;
    if (!report->constant.known || !(loss > constant * (1 + WORSE)))
        return false;
    int n = snprintf(text, DP_ADVICE_BYTES,
                     "The %s loss of %.5g is worse than the %.5g of a constant: ", c->name, loss, constant);
    if (fitted && ranks)
        n += snprintf(text + n, DP_ADVICE_BYTES - (size_t)n,
                      "the model ranks examples well (AUC %.3f), but its probabilities are far too extreme.",
                      figures->auc);
    else if (fitted)
        n += snprintf(text + n, DP_ADVICE_BYTES - (size_t)n, "the model fits the training examples only.");
    if (fitted)
        (void)snprintf(text + n, DP_ADVICE_BYTES - (size_t)n,
                       " Try fewer --epochs, --optimizer l2=X, --validation share=0.1 --patience 2%s.", help);
    else if (dp_losses_fall(c) >= FALLING || c->epochs < FEW_EPOCHS)
        (void)snprintf(text + n, DP_ADVICE_BYTES - (size_t)n,
                       "the model has learned too little so far. Try more --epochs%s.", help);
    else if (ranks || dp_losses_fall(c) >= FALLING_SLOWLY)
        (void)snprintf(text + n, DP_ADVICE_BYTES - (size_t)n,
                       "the model learns slowly. Try more --epochs, or another --rate (it was %g)%s.", rate,
                       help);
    else
        (void)snprintf(
            text + n, DP_ADVICE_BYTES - (size_t)n,
            "the model has learned nothing useful. Try another --rate (it was %g)%s, --optimizer l2=X.", rate,
            help);
    return true;
}

/* Both the loss and the order of the examples are worse than in the best epoch: chance seldom does both. */
static bool ranks_worse(const struct dp_losses *c)
{
    double best = c->tested[dp_losses_best(c)].figures.auc, last = c->tested[c->epochs - 1].figures.auc;
    return rise_of(c) > RISEN_LITTLE && last < best - AUC_FALLEN;
}

static bool fits_noise(const struct dp_losses *c, char text[DP_ADVICE_BYTES])
{
    const struct dp_report *report = c->report;
    uint32_t best = dp_losses_best(c);
    double least = dp_losses_at(c, best), last = dp_losses_at(c, c->epochs - 1);
    bool kept = report->left > 0 && report->left < c->epochs; /* weights of before the noise stay */
    bool stopped = report->stop && report->stop->why != DP_EARLY_STOP_NO; /* early, as asked */
    if (kept || stopped || !c->tested || !fits(c) || !(rise_of(c) > RISEN || ranks_worse(c)))
        return false;
    const struct dp_figures *figures = &c->tested[best].figures;
    char metric[32] = ""; /* of rankings: the best loss comes long before the best ranks */
    if (figures->ranked_users > 0)
        (void)snprintf(metric, sizeof metric, ",metric=recall@%" PRIu32, report->cluster->training.top_k);
    (void)snprintf(text, DP_ADVICE_BYTES,
                   "The %s loss was best after epoch %" PRIu32
                   " (%.5g) and ended at %.5g: the model has fitted noise since then. --validation share=0.1 "
                   "--patience 2%s "
                   "stops soon after the best epoch; --optimizer l2=X may help.",
                   c->name, report->cluster->training.first_epoch + best + 1, least, last, metric);
    return true;
}

static bool falls(const struct dp_losses *c, char text[DP_ADVICE_BYTES])
{
    const struct dp_report *report = c->report;
    double fall = dp_losses_fall(c);
    if (fall < FALLING || (report->stop && report->stop->why != DP_EARLY_STOP_NO))
        return false;
    (void)snprintf(text, DP_ADVICE_BYTES,
                   "The %s loss was still falling by %.1f%% an epoch when the training ended: more epochs "
                   "may help. It had %" PRIu32 "; the same command with --continue --epochs %" PRIu32
                   " trains %" PRIu32 " more.",
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
        " minibatches, so the training made %" PRIu64
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

static bool has_one_label(const struct dp_report *report, char text[DP_ADVICE_BYTES])
{
    if (report->constant.label[0] == '\0')
        return false;
    (void)snprintf(text, DP_ADVICE_BYTES,
                   "All %" PRIu64
                   " training labels are %s: there is nothing to learn. Is the file cut, sorted by "
                   "label, or is another column the label?",
                   report->examples, report->constant.label);
    return true;
}

uint32_t dp_advice_of(const struct dp_report *report, char text[DP_ADVICE_MAX][DP_ADVICE_BYTES])
{
    const struct dp_losses c = dp_losses_of(report);
    uint32_t n = 0;
    if (c.epochs == 0)
        return 0;
    if (had_ended(report, text[0]) || has_one_label(report, text[0]))
        return 1;
    if (unstable(report, text[n])) {
        n++;
    } else {
        n += below_constant(report, text[n]);
        n += fits_noise(&c, text[n]);
        n += falls(&c, text[n]);
    }
    n += pushed_seldom(report, text[n]);
    return n;
}

bool dp_advice_warns(const struct dp_report *report)
{
    char text[DP_ADVICE_BYTES];
    return dp_losses_of(report).epochs > 0 && !had_ended(report, text) &&
           (has_one_label(report, text) || unstable(report, text) || below_constant(report, text));
}

double dp_advice_rate(const struct dp_report *report)
{
    char text[DP_ADVICE_BYTES];
    bool judged = dp_losses_of(report).epochs > 0 && !had_ended(report, text) && !has_one_label(report, text);
    return judged && unstable(report, text) ? dp_cluster_lower_rate(&report->cluster->training) : 0;
}
