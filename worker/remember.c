#include "worker/remember.h"

#include "common/base/log.h"
#include "worker/peers.h"

#include <jansson.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define SHARE 20u /* of the time, one part in so many */

/* JSON has no NaN. */
static json_t *real(double value)
{
    return isfinite(value) ? json_real(value) : json_null();
}

static double real_of(const json_t *value)
{
    return json_is_real(value) ? json_real_value(value) : (double)NAN;
}

char *dp_remember_tested_pack(const struct dp_tested *tested, uint32_t epochs)
{
    json_t *root = json_array();
    int bad = 0;
    while (epochs > 0 && !tested[epochs - 1].known)
        epochs--;
    for (uint32_t e = 0; e < epochs; e++) {
        const struct dp_figures *f = &tested[e].figures;
        json_t *row = json_null();
        if (tested[e].known) {
            row = json_array();
            bad |= json_array_append_new(row, json_integer((json_int_t)f->examples));
            bad |= json_array_append_new(row, real(f->loss));
            bad |= json_array_append_new(row, real(f->accuracy));
            bad |= json_array_append_new(row, real(f->auc));
            bad |= json_array_append_new(row, real(f->rmse));
            bad |= json_array_append_new(row, real(f->hr10));
            bad |= json_array_append_new(row, real(f->ndcg10));
        }
        bad |= json_array_append_new(root, row);
    }
    char *text = bad ? NULL : json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return text;
}

bool dp_remember_tested_unpack(const char *text, size_t size, uint32_t epochs, struct dp_tested *tested)
{
    json_t *root = json_loadb(text, size, 0, NULL);
    bool good = json_is_array(root) && json_array_size(root) <= epochs;
    for (uint32_t e = 0; good && e < json_array_size(root); e++) {
        const json_t *row = json_array_get(root, e);
        if (json_is_null(row))
            continue;
        good = json_is_array(row) && json_array_size(row) == 7 && json_is_integer(json_array_get(row, 0));
        if (!good)
            break;
        tested[e] =
            (struct dp_tested){.known = true,
                               .figures = {.examples = (uint64_t)json_integer_value(json_array_get(row, 0)),
                                           .loss = real_of(json_array_get(row, 1)),
                                           .accuracy = real_of(json_array_get(row, 2)),
                                           .auc = real_of(json_array_get(row, 3)),
                                           .rmse = real_of(json_array_get(row, 4)),
                                           .hr10 = real_of(json_array_get(row, 5)),
                                           .ndcg10 = real_of(json_array_get(row, 6))}};
    }
    json_decref(root);
    return good;
}

static void put(struct dp_job *job, const char *what, const char *text)
{
    struct dp_error err = {0};
    enum dp_status st = text ? dp_peers_put(job, what, job->worker, text, strlen(text), &err)
                             : dp_fail(&err, DP_NOMEM, "no memory");
    if (st != DP_OK)
        dp_log(DP_LOG_WARN, "the %s so far could not be kept, training goes on: %s", what, err.text);
}

void dp_remember_put(struct dp_remember *remember, struct dp_job *job,
                     const struct dp_worker_figures *figures, const struct dp_tested *tested)
{
    uint64_t begun = dp_clock_ns(&job->clock);
    char *text = NULL;
    if (begun < remember->next_ns)
        return;
    if (dp_worker_figures_pack(figures, &text, NULL) != DP_OK)
        text = NULL;
    put(job, "figures", text);
    free(text);
    if (tested) {
        text = dp_remember_tested_pack(tested, figures->epochs);
        put(job, "tested", text);
        free(text);
    }
    uint64_t now = dp_clock_ns(&job->clock);
    remember->next_ns = now + (now - begun) * (SHARE - 1);
}

void dp_remember_tested(struct dp_job *job, const struct dp_tested *tested, uint32_t epochs)
{
    struct dp_error err = {0};
    char *text = dp_remember_tested_pack(tested, epochs);
    enum dp_status st =
        text ? dp_peers_keep(job, "tested", text, strlen(text), &err) : dp_fail(&err, DP_NOMEM, "no memory");
    if (st != DP_OK)
        dp_log(DP_LOG_WARN, "the figures so far could not be kept, training goes on: %s", err.text);
    free(text);
}

static void get(struct dp_job *job, const char *what, struct dp_note *note)
{
    struct dp_error err = {0};
    if (dp_peers_one(job, what, job->worker, note, &err) != DP_OK)
        dp_log(DP_LOG_WARN, "the %s of before could not be read, training goes on: %s", what, err.text);
}

void dp_remember_get(struct dp_job *job, struct dp_worker_figures *figures, struct dp_tested *tested)
{
    struct dp_note note = {0};
    struct dp_error err = {0};
    struct dp_worker_figures before = {0};
    get(job, "figures", &note);
    if (note.bytes &&
        dp_worker_figures_unpack(note.bytes, note.size, figures->epochs, &before, &err) == DP_OK) {
        dp_worker_figures_clear(figures);
        *figures = before;
    } else if (note.bytes) {
        dp_log(DP_LOG_WARN, "%s", err.text);
    }
    free(note.bytes);
    note = (struct dp_note){0};
    if (!tested)
        return;
    get(job, "tested", &note);
    if (note.bytes && !dp_remember_tested_unpack(note.bytes, note.size, figures->epochs, tested)) {
        dp_log(DP_LOG_WARN, "the test figures of before cannot be read: they will be missing in the report");
        memset(tested, 0, figures->epochs * sizeof *tested);
    }
    free(note.bytes);
}
