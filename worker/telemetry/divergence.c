#include "worker/telemetry/divergence.h"

#include "worker/telemetry/losses.h"

#include <float.h>
#include <math.h>

#define RISEN     1.05
#define RISEN_FAR 2.0
/* A training that goes on from trained weights begins where its loss is small, and small losses waver. */
#define RISEN_FURTHER 2.0
/* A training that blew up may come to rest where all outputs are alike, which is a little better than a constant. */
#define NO_BETTER 0.98
/* Initial weights give examples of K classes a loss of about ln K, which for two classes is more than the constant's where one is rare.
 * Numbers have no such bound: initial outputs are about 0, and the numbers may be years. */
#define FAR_CLASS  5.0
#define FAR_NUMBER 1e6

const char *dp_divergence_name(enum dp_divergence_why why)
{
    static const char *const names[] = {[DP_DIVERGED_NOT_FINITE] = "not_finite",
                                        [DP_DIVERGED_GREW] = "grew",
                                        [DP_DIVERGED_NO_BETTER] = "no_better_than_constant"};
    return names[why];
}

/* The first epoch from which on the loss is above the bound. */
static uint32_t since(const struct dp_losses *c, uint32_t stays, double bound)
{
    uint32_t e = stays;
    while (e > 0 && dp_losses_at(c, e - 1) > bound)
        e--;
    return e + 1;
}

static struct dp_divergence found(enum dp_divergence_why why, const struct dp_losses *c, double reference,
                                  double bound)
{
    uint32_t stays = dp_losses_stays(c);
    return (struct dp_divergence){.why = why,
                                  .epoch = since(c, stays, bound),
                                  .set = c->name,
                                  .loss = dp_losses_at(c, stays),
                                  .reference = reference};
}

static bool was_far(const struct dp_report *report, uint32_t stays)
{
    const struct dp_figures *constant = &report->constant.figures;
    double far =
        isfinite(constant->rmse) ? FAR_NUMBER * constant->loss : FAR_CLASS * fmax(constant->loss, log(2));
    for (uint32_t e = 0; e <= stays; e++)
        if (dp_report_train_loss(report, e) > far)
            return true;
    return false;
}

static bool is_no_better(const struct dp_report *report, const struct dp_losses *c)
{
    uint32_t stays = dp_losses_stays(c);
    double loss = dp_losses_at(c, stays), constant = report->constant.figures.loss;
    double train = dp_report_train_loss(report, stays);
    /* Labels that are all alike: a constant is right, and says nothing of a training. */
    if (!report->constant.known || !(constant > DBL_EPSILON) || !(loss > NO_BETTER * constant))
        return false;
    if (was_far(report, stays))
        return true;
    double best = dp_losses_at(c, dp_losses_best(c));
    bool rose = loss > RISEN_FAR * best || (stays > 0 && train >= dp_report_train_loss(report, 0));
    return rose && loss > RISEN * constant && train > constant;
}

static double grows_by(const struct dp_report *report)
{
    return report->cluster->training.first_epoch > 0 ? RISEN_FURTHER : RISEN;
}

static bool has_grown(const struct dp_report *report, const struct dp_losses *c)
{
    uint32_t stays = dp_losses_stays(c);
    double by = grows_by(report);
    return dp_losses_at(c, stays) > by * dp_losses_at(c, 0) &&
           dp_report_train_loss(report, stays) > by * dp_report_train_loss(report, 0);
}

struct dp_divergence dp_divergence_of(const struct dp_report *report)
{
    const struct dp_divergence no = {.why = DP_DIVERGED_NO, .loss = (double)NAN, .reference = (double)NAN};
    const double constant = report->constant.figures.loss;
    if (report->diverged) {
        struct dp_divergence failed = no;
        failed.why = DP_DIVERGED_NOT_FINITE;
        failed.epoch = report->diverged;
        return failed;
    }
    if (!report->finished || report->epochs == 0)
        return no;
    const struct dp_losses judged = dp_losses_of(report), other = dp_losses_of_constant(report);
    double first = dp_losses_at(&judged, 0);
    /* Outputs that are NaN end a training: such a loss was not measured. */
    if (isinf(dp_losses_at(&judged, dp_losses_stays(&judged))))
        return found(DP_DIVERGED_NOT_FINITE, &judged, (double)NAN, DBL_MAX);
    if (has_grown(report, &judged))
        return found(DP_DIVERGED_GREW, &judged, first, grows_by(report) * first);
    if (is_no_better(report, &other))
        return found(DP_DIVERGED_NO_BETTER, &other, constant, NO_BETTER * constant);
    return no;
}
