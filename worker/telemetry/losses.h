/* Losses: the loss of a training for each epoch, as its report judges it: of the validation set, else of
 * the test set, else of the training set.
 * Thread    Any: plain functions.
 * Memory    Borrows the report. */
#ifndef DP_TELEMETRY_LOSSES_H
#define DP_TELEMETRY_LOSSES_H

#include "worker/telemetry/report.h"

struct dp_losses {
    const struct dp_report *report;
    const struct dp_tested *tested; /* NULL: the training loss */
    const char *name;               /* of the set */
    uint32_t epochs;
};

/* A set that is only ranked has no loss, and then the training loss is judged. */
struct dp_losses dp_losses_of(const struct dp_report *report);
/* Of the set on which the constant was evaluated. The report has some. */
struct dp_losses dp_losses_of_constant(const struct dp_report *report);
/* After an epoch, counted from 0. NaN: not measured. */
double dp_losses_at(const struct dp_losses *losses, uint32_t epoch);
/* The epoch with the least loss; of equal ones the last epoch of all, else the first. There are epochs. */
uint32_t dp_losses_best(const struct dp_losses *losses);
/* The relative fall of the loss in an epoch at the end: the smaller of the mean over the last epochs and over
 * their last half, so that neither the noise of one epoch nor a fall that has ended counts. */
double dp_losses_fall(const struct dp_losses *losses);
/* The epoch whose weights stay, counted from 0. */
uint32_t dp_losses_stays(const struct dp_losses *losses);

#endif
