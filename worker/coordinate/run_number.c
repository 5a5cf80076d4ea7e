#include "worker/coordinate/run_number.h"

#include "common/base/log.h"
#include "common/base/text.h"
#include "worker/context/retry.h"
#include "worker/telemetry/progress.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define VALUE "runs"

struct run_number {
    uint64_t version; /* of the value; 0: there is none */
    uint32_t run, first_epoch, epochs;
    bool done;
    uint64_t earlier_examples;
    struct dp_job_runs of;
};

static enum dp_status get(struct dp_job *job, const char *name, struct dp_register_value *value,
                          struct dp_error *err)
{
    struct dp_retry retry = dp_retry_begin(job);
    enum dp_status st;
    do {
        dp_register_value_clear(value);
        st = job->shared->get(job->client, name, 0, 0, dp_retry_slice_ms(&retry, DP_RETRY_TELL_MS), value,
                              err);
    } while (dp_retry_more(&retry, &st, err));
    return st;
}

/* An older build kept the first line only. */
static bool unpack(json_t *root, struct run_number *out)
{
    json_int_t run = 0, first = 0, epochs = 0, earlier = 0, examples = 0;
    const char *train = "", *digest = "";
    int done = 0;
    if (json_unpack(root, "{s:I,s:I,s:I,s:b,s?s,s?s,s?I,s?I}", "run", &run, "first_epoch", &first, "epochs",
                    &epochs, "done", &done, "train", &train, "digest", &digest, "earlier_examples", &earlier,
                    "examples", &examples) != 0)
        return false;
    out->run = (uint32_t)run;
    out->first_epoch = (uint32_t)first;
    out->epochs = (uint32_t)epochs;
    out->done = done != 0;
    out->earlier_examples = (uint64_t)earlier;
    out->of.examples = (uint64_t)examples;
    out->of.digest = strtoull(digest, NULL, 16);
    (void)snprintf(out->of.train, sizeof out->of.train, "%s", train);
    dp_text_clean(out->of.train); /* it comes from a peer */
    return run > 0 && run <= INT32_MAX && first >= 0 && epochs >= 0 && first + epochs <= INT32_MAX &&
           earlier >= 0 && examples >= 0 && earlier <= INT64_MAX - examples;
}

static enum dp_status read_last(struct dp_job *job, struct run_number *out, struct dp_error *err)
{
    struct dp_register_value value = {0};
    *out = (struct run_number){0};
    enum dp_status st = get(job, VALUE, &value, err);
    if (st == DP_OK && value.version > 0) {
        json_t *root = json_loadb(value.bytes, value.size, 0, NULL);
        bool good = unpack(root, out);
        json_decref(root);
        out->version = value.version;
        if (!good)
            st = dp_fail(err, DP_DATA,
                         "the register value '" VALUE "' cannot be read: give training.run a number");
    }
    dp_register_value_clear(&value);
    return st;
}

static enum dp_status put_last(struct dp_job *job, const struct run_number *last, bool *won,
                               struct dp_error *err)
{
    char digest[24];
    (void)snprintf(digest, sizeof digest, "%016" PRIx64, last->of.digest);
    json_t *root = json_pack("{s:I,s:I,s:I,s:b,s:I,s:I,s:s}", "run", (json_int_t)last->run, "first_epoch",
                             (json_int_t)last->first_epoch, "epochs", (json_int_t)last->epochs, "done",
                             (int)last->done, "earlier_examples", (json_int_t)last->earlier_examples,
                             "examples", (json_int_t)last->of.examples, "digest", digest);
    (void)json_object_set_new(root, "train", json_string(last->of.train)); /* not where it is no UTF-8 */
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    *won = false;
    if (!text)
        return dp_fail(err, DP_NOMEM, "no memory for the number of a run");
    struct dp_retry retry = dp_retry_begin(job);
    enum dp_status st;
    do
        st = job->shared->set(job->client, VALUE, last->version, text, strlen(text),
                              dp_retry_slice_ms(&retry, DP_RETRY_TELL_MS), won, err);
    while (dp_retry_more(&retry, &st, err));
    free(text);
    *won = *won && st == DP_OK;
    return st;
}

/* A register of an older build has runs and no such value. */
static enum dp_status first_free(struct dp_job *job, struct run_number *next, struct dp_error *err)
{
    struct dp_register_value value = {0};
    enum dp_status st;
    char name[64];
    do {
        next->run++;
        (void)snprintf(name, sizeof name, "run/%" PRIu32 "/plan", next->run);
        st = get(job, name, &value, err);
    } while (st == DP_TOO_OLD || (st == DP_OK && value.version > 0));
    dp_register_value_clear(&value);
    return st;
}

/* Whether an earlier process of this worker ended within the last run, which the others finished since. */
static enum dp_status was_killed(struct dp_job *job, uint32_t run, bool *out, struct dp_error *err)
{
    const struct dp_cluster *given = job->cluster;
    struct dp_cluster of_run = *given;
    struct dp_shared_note note = {0};
    struct dp_progress_seen seen;
    of_run.training.run = run;
    job->cluster = &of_run;
    enum dp_status st = dp_shared_one(job, "progress", job->worker, &note, err);
    job->cluster = given;
    dp_progress_read(&note, &seen);
    *out = note.bytes && !seen.done;
    dp_shared_note_clear(&note);
    return st;
}

static enum dp_status choose(struct dp_job *job, bool resumes, const struct run_number *last,
                             struct run_number *out, struct dp_error *err)
{
    const struct dp_cluster_training *given = &job->cluster->training;
    bool same = last->version > 0 && (!last->done || resumes);
    enum dp_status st = DP_OK;
    *out = *last;
    if (given->run > 0)
        same = given->run <= last->run;
    else if (last->done && !same)
        st = was_killed(job, last->run, &same, err);
    if (st != DP_OK || same)
        return st;
    out->first_epoch = given->first_epoch;
    out->epochs = 0;
    out->done = false;
    const char *slash = strrchr(job->cluster->data.train, '/');
    (void)snprintf(out->of.train, sizeof out->of.train, "%.127s",
                   slash ? slash + 1 : job->cluster->data.train);
    if (given->first_epoch == 0)
        out->first_epoch = last->first_epoch + last->epochs;
    if (given->run == 0 && last->version == 0)
        return first_free(job, out, err);
    if (given->run == 0) {
        out->run++;
        return DP_OK;
    }
    out->run = given->run;
    out->first_epoch = given->first_epoch;
    return DP_OK;
}

enum dp_status dp_run_number_find(struct dp_job *job, bool resumes, struct dp_cluster_training *training,
                                  struct dp_error *err)
{
    struct run_number last, chosen;
    bool won = false;
    enum dp_status st = DP_OK;
    while (st == DP_OK && !won) {
        st = read_last(job, &last, err);
        if (st == DP_OK)
            st = choose(job, resumes, &last, &chosen, err);
        won = chosen.run == last.run;
        if (st == DP_OK && !won)
            st = put_last(job, &chosen, &won, err);
    }
    if (st != DP_OK)
        return dp_wrap(err, st, "finding the number of this run");
    if (training->run == 0)
        dp_log(DP_LOG_INFO, "run %" PRIu32 "%s", chosen.run, last.run == chosen.run ? "" : ", a new one");
    training->run = training->run > 0 ? training->run : chosen.run;
    if (training->run == chosen.run && training->first_epoch == 0)
        training->first_epoch = chosen.first_epoch;
    if (training->run != chosen.run)
        return DP_OK;
    job->runs = chosen.of;
    /* `downpour run` numbers its runs, and counts for itself. */
    bool counts =
        (job->cluster->training.run == 0 || job->cluster->dir[0]) && training->earlier_examples == 0;
    training->earlier_examples += counts ? chosen.earlier_examples : 0;
    job->runs.examples = counts ? job->runs.examples : 0;
    return DP_OK;
}

enum dp_status dp_run_number_last(struct dp_job *job, struct dp_cluster_training *training,
                                  struct dp_error *err)
{
    struct run_number last;
    if (training->run > 0)
        return DP_OK;
    enum dp_status st = read_last(job, &last, err);
    training->run = last.run > 0 ? last.run : 1;
    return st;
}

enum dp_status dp_run_number_done(struct dp_job *job, uint32_t epochs, uint64_t digest, uint64_t examples,
                                  struct dp_error *err)
{
    struct run_number last;
    bool won = false;
    enum dp_status st = DP_OK;
    while (st == DP_OK && !won) {
        st = read_last(job, &last, err);
        if (st != DP_OK || last.run != job->cluster->training.run || last.done)
            break;
        last.epochs = epochs;
        last.earlier_examples = job->cluster->training.earlier_examples;
        last.of.digest = digest;
        last.of.examples = examples;
        last.done = true;
        st = put_last(job, &last, &won, err);
    }
    return st == DP_OK ? st : dp_wrap(err, st, "recording that the run is complete");
}
