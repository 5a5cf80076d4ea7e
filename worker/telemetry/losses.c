#include "worker/telemetry/losses.h"

#include <math.h>
#include <string.h>

#define LAST 3u /* the fall is averaged over the last epochs */

/* sets: [epochs], or NULL. */
static bool has_loss(const struct dp_tested *sets, uint32_t epoch)
{
    return sets && sets[epoch].known && !isnan(sets[epoch].figures.loss);
}

struct dp_losses dp_losses_of(const struct dp_report *report)
{
    struct dp_losses c = {.report = report, .epochs = report->epochs, .name = "training"};
    if (report->epochs == 0)
        return c;
    if (has_loss(report->validated, report->epochs - 1))
        c.tested = report->validated, c.name = "validation";
    else if (has_loss(report->tested, report->epochs - 1))
        c.tested = report->tested, c.name = "test";
    return c;
}

struct dp_losses dp_losses_of_constant(const struct dp_report *report)
{
    struct dp_losses c = dp_losses_of(report);
    uint32_t last = report->epochs - 1;
    if (report->constant.known && strcmp(report->constant.set, "test") == 0 && has_loss(report->tested, last))
        c.tested = report->tested, c.name = "test";
    else if (report->constant.known && strcmp(report->constant.set, "training") == 0)
        c.tested = NULL, c.name = "training";
    return c;
}

double dp_losses_at(const struct dp_losses *c, uint32_t epoch)
{
    if (!c->tested)
        return dp_report_train_loss(c->report, epoch);
    return c->tested[epoch].known ? c->tested[epoch].figures.loss : (double)NAN;
}

uint32_t dp_losses_best(const struct dp_losses *c)
{
    uint32_t best = c->epochs - 1;
    for (uint32_t e = 0; e + 1 < c->epochs; e++)
        if (dp_losses_at(c, e) < dp_losses_at(c, best))
            best = e;
    return best;
}

static double fall_over(const struct dp_losses *c, uint32_t epochs)
{
    double from = dp_losses_at(c, c->epochs - 1 - epochs), to = dp_losses_at(c, c->epochs - 1);
    return to > 0 && from > to ? 1 - pow(to / from, 1.0 / epochs) : 0;
}

double dp_losses_fall(const struct dp_losses *c)
{
    uint32_t over = c->epochs - 1 < LAST ? c->epochs - 1 : LAST;
    return over > 0 ? fmin(fall_over(c, over), fall_over(c, (over + 1) / 2)) : 0;
}

uint32_t dp_losses_stays(const struct dp_losses *c)
{
    return (c->report->left ? c->report->left : c->epochs) - 1;
}
