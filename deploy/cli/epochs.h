/* Epochs: those of a run as they end, read in its report while worker 0 writes it, a line each (epoch_table.h).
 *     init (before a worker starts) -> look, look, ...
 * Promise   What the report notes before the end (of the data) is shown once, on the stream of the line. Each epoch has one line, and what stands there is what the report says. A report that is not there, or still that of
 *           before init, has none: watching never stops a training. */
#ifndef DP_CLI_EPOCHS_H
#define DP_CLI_EPOCHS_H

#include "deploy/cli/epoch_table.h"
#include "deploy/cli/progress.h"

#include <sys/stat.h>

struct dp_cli_epochs {
    const char *report; /* lent */
    struct stat seen;   /* the file that was looked at last, or before this training */
    uint32_t shown;
    bool noted; /* what the first report notes was shown */
    struct dp_epoch_table table;
};

/* resumes: the epochs that are in the report already are the same training's, and were shown. */
void dp_cli_epochs_init(struct dp_cli_epochs *epochs, const char *report, bool resumes, FILE *file);
/* line: what stands there gives way, and comes again when it is shown next. */
void dp_cli_epochs_look(struct dp_cli_epochs *epochs, struct dp_cli_line *line);

#endif
