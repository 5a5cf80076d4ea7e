/* Worker notes: the progress that workers put on the first server (worker/telemetry/progress.h), read for
 * metrics and page.
 * Promise   At most DP_EXPORTER_NOTES_MAX of them, of runs that put a note in the last 10 minutes. What is no
 *           such note, or cannot be read, is left out: a note is anybody's bytes.
 * Thread    The metrics thread. Memory: dp_exporter_notes_clear frees it. */
#ifndef DP_METRICS_WORKER_NOTES_H
#define DP_METRICS_WORKER_NOTES_H

#include "server/metrics/source.h"

#include <jansson.h>

#define DP_EXPORTER_NOTES_MAX 4096u

struct dp_exporter_note {
    uint32_t run, worker;
    double age_s; /* since the first server got it, by its clock */
    char *text;
    size_t size;
    json_t *root; /* an object with a state */
};

struct dp_exporter_notes {
    uint32_t count;
    size_t room;
    struct dp_exporter_note *note; /* ascending by run, then by worker */
};

/* Without memory some are left out. */
void dp_exporter_notes_read(const struct dp_exporter_source *source, struct dp_exporter_notes *out);
void dp_exporter_notes_clear(struct dp_exporter_notes *notes);
/* Its state, one of those that workers have, else "other". */
const char *dp_exporter_note_state(const struct dp_exporter_note *note);

#endif
