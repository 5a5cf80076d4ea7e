/* Epochs: those of a run as they end, read in its report while worker 0 writes it, a line each
 * (epoch_table.h).
 *     init (before a worker starts) -> look, look, ... -> end
 * Promise   What the report says of the data, and notes before the end, is shown once, on the stream of the
 *           line. A line has the report's numbers. Each epoch has one; on a terminal, of a long training,
 *           those of epoch_choice.h have, and the end adds the last and the best. A missing report, or the
 *           one from before init, has no epochs, so watching never stops a training. */
#ifndef DP_RUN_EPOCHS_H
#define DP_RUN_EPOCHS_H

#include "deploy/cli/progress.h"
#include "deploy/run/epoch_table.h"

#include <sys/stat.h>

struct dp_epochs {
    const char *report;   /* lent */
    struct stat before;   /* the file before this training; zeros: there was none */
    struct stat seen;     /* the file that was looked at last */
    uint32_t shown;       /* the epochs before this one had their turn, with a line or without */
    uint32_t first;       /* of those: the first that was not shown by an earlier process */
    uint32_t lines_max;   /* of a longer training so many lines are shown, 20 on a terminal; 0: all are */
    uint32_t lines, last; /* that were shown; counted from 1, the epoch of the last one */
    bool noted;           /* what the first report notes was shown */
    struct dp_epoch_table table;
};

/* resumes: the epochs that are in the report already are the same training's, and were shown. */
void dp_epochs_init(struct dp_epochs *epochs, const char *report, bool resumes, FILE *file);
/* Behind init: the first `whole` epochs of the report are not new, whatever the report of before init had: a checkpoint has them. */
void dp_epochs_restored(struct dp_epochs *epochs, uint32_t whole);
/* line: what stands there gives way, and comes again when it is shown next. */
void dp_epochs_look(struct dp_epochs *epochs, struct dp_cli_line *line);
/* Whether the report was written since init. One of before may be of weights that a restore has replaced, or of another run of the same
 * number (--report). */
bool dp_epochs_written(const struct dp_epochs *epochs);
/* Behind the last look: of a table that has some epochs only, the last and the best if they are not among them, and how many there are.
 * false: the table has all. */
bool dp_epochs_end(struct dp_epochs *epochs);

#endif
