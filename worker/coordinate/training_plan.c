#include "worker/coordinate/training_plan.h"

#include "common/base/bytes.h"
#include "common/base/log.h"
#include "worker/telemetry/progress.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define VALUE "plan"

/* As it is in the register; text is NULL when there is none. */
struct dp_training_plan {
    struct dp_register_value value;
    const char *text;
    size_t text_bytes;
    const unsigned char *process; /* [joined] of 8 bytes */
    uint32_t joined;
    bool begun; /* a worker was about to push */
};

static enum dp_status get(struct dp_job *job, struct dp_training_plan *plan, struct dp_error *err)
{
    enum dp_status st = dp_shared_get(job, VALUE, 0, 0, &plan->value, err);
    plan->text = plan->value.version > 0 ? plan->value.bytes : NULL;
    if (st != DP_OK || !plan->text)
        return st;
    const char *end = memchr(plan->text, '\0', plan->value.size);
    plan->text_bytes = end ? (size_t)(end - plan->text) : plan->value.size;
    size_t rest = end ? plan->value.size - plan->text_bytes - 1 : 0;
    plan->joined = (uint32_t)(rest / 8);
    plan->process = end ? (const unsigned char *)end + 1 : NULL;
    plan->begun = rest % 8 != 0 && plan->process[rest - 1] != 0;
    return DP_OK;
}

static uint64_t process_of(const struct dp_training_plan *plan, uint32_t worker)
{
    return worker < plan->joined ? dp_load_u64le(plan->process + 8 * (size_t)worker) : 0;
}

/* Sets the plan, unless it changed since it was read: the text, the workers that joined it, and this worker. */
static enum dp_status set(struct dp_job *job, const struct dp_training_plan *plan, const char *text,
                          bool *won, struct dp_error *err)
{
    uint32_t workers = job->cluster->training.workers;
    size_t text_bytes = strlen(text) + 1, size = text_bytes + 8 * (size_t)workers + 1;
    unsigned char *bytes = calloc(1, size);
    if (!bytes)
        return dp_fail(err, DP_NOMEM, "no memory for the plan of %" PRIu32 " workers", workers);
    memcpy(bytes, text, text_bytes);
    for (uint32_t w = 0; w < workers; w++)
        dp_store_u64le(bytes + text_bytes + 8 * (size_t)w,
                       w == job->worker ? job->process : process_of(plan, w));
    bytes[size - 1] = plan->begun;
    enum dp_status st = dp_shared_set(job, VALUE, plan->value.version, bytes, size, won, err);
    free(bytes);
    return st;
}

/* Whether the plan is in use: it was begun, or a worker that joined is running. *by: the first worker that joined. */
static enum dp_status binds(struct dp_job *job, const struct dp_training_plan *plan, bool *out, uint32_t *by,
                            struct dp_error *err)
{
    enum dp_status st = DP_OK;
    *out = plan->begun;
    *by = 0;
    for (uint32_t w = plan->joined; st == DP_OK && w-- > 0;) {
        uint64_t process = process_of(plan, w);
        struct dp_shared_note note = {0};
        struct dp_progress_seen seen;
        if (process == 0 || process == job->process)
            continue;
        *by = w;
        if (*out || (w == job->worker && job->process)) /* or an earlier process of this worker */
            continue;
        st = dp_shared_one(job, "progress", w, &note, err);
        dp_progress_read(&note, &seen);
        dp_shared_note_clear(&note);
        *out = !seen.ended_early && seen.process == process;
    }
    return st;
}

static enum dp_status join(struct dp_job *job, const char *text, bool begun, bool *joined,
                           struct dp_error *err)
{
    const uint32_t run = job->cluster->training.run;
    const struct dp_training_settings_files files = dp_job_files(job);
    struct dp_training_plan plan = {0};
    struct dp_error differs = {0};
    uint32_t by = 0;
    bool bound = false, same = true;
    enum dp_status st = get(job, &plan, err);
    if (st == DP_OK && plan.text)
        same = dp_training_settings_same(text, plan.text, plan.text_bytes, run, by, NULL, &differs) == DP_OK;
    if (st == DP_OK && !same && begun)
        st = dp_training_settings_check(text, plan.text, plan.text_bytes, run, &files, err);
    else if (st == DP_OK && !same)
        st = binds(job, &plan, &bound, &by, err);
    if (st == DP_OK && bound)
        st = dp_training_settings_same(text, plan.text, plan.text_bytes, run, by, &files, err);
    if (st == DP_OK && !same)
        dp_log(DP_LOG_INFO, "replacing the earlier plan of run %" PRIu32 ": nothing was pushed by it", run);
    if (!same) {
        plan.joined = 0;
        plan.begun = false;
    }
    /* Also when it is the same: a worker that replaces the plan then sees that this one joined. */
    if (st == DP_OK)
        st = set(job, &plan, text, joined, err);
    dp_register_value_clear(&plan.value);
    return st;
}

enum dp_status dp_training_plan_join(struct dp_job *job, const char *text, bool begun, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (bool joined = false; st == DP_OK && !joined;)
        st = join(job, text, begun, &joined, err);
    return st;
}

static enum dp_status begin(struct dp_job *job, const char *text, bool *begun, struct dp_error *err)
{
    const struct dp_training_settings_files files = dp_job_files(job);
    struct dp_training_plan plan = {0};
    uint32_t by = job->worker;
    enum dp_status st = get(job, &plan, err);
    for (uint32_t w = plan.joined; w-- > 0;)
        by = w != job->worker && process_of(&plan, w) ? w : by;
    if (st == DP_OK && plan.text)
        st = dp_training_settings_same(text, plan.text, plan.text_bytes, job->cluster->training.run, by,
                                       &files, err);
    *begun = plan.begun;
    plan.begun = true;
    if (st == DP_OK && !*begun)
        st = set(job, &plan, text, begun, err);
    dp_register_value_clear(&plan.value);
    return st;
}

enum dp_status dp_training_plan_begin(struct dp_job *job, const char *text, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (bool begun = false; st == DP_OK && !begun;)
        st = begin(job, text, &begun, err);
    return st;
}

enum dp_status dp_training_plan_epochs(struct dp_job *job, uint32_t *epochs, struct dp_error *err)
{
    struct dp_training_plan plan = {0};
    enum dp_status st = get(job, &plan, err);
    if (plan.begun) /* then a 0 byte ends the text */
        dp_training_settings_epochs(plan.text, epochs);
    dp_register_value_clear(&plan.value);
    return st;
}

enum dp_status dp_training_plan_check_scores(struct dp_job *job, struct dp_error *err)
{
    struct dp_training_plan plan = {0};
    struct dp_error differs = {0};
    char head[DP_TRAINING_SETTINGS_BYTES];
    uint32_t by;
    bool bound = false;
    dp_training_settings_head(job->cluster, head);
    enum dp_status st = get(job, &plan, err);
    if (st == DP_OK && plan.text &&
        dp_training_settings_scores(head, plan.text, plan.text_bytes, job->cluster->training.run, &differs) !=
            DP_OK)
        st = binds(job, &plan, &bound, &by, err);
    if (st == DP_OK && bound)
        st = dp_fail(err, differs.status, "%s", differs.text);
    dp_register_value_clear(&plan.value);
    return st;
}

enum dp_status dp_training_plan_check_data(struct dp_job *job, const struct dp_dataset *train,
                                           struct dp_error *err)
{
    struct dp_training_plan plan = {0};
    const struct dp_training_settings_set set = {.digest = dp_dataset_digest(train),
                                                 .label_scale = dp_dataset_schema(train)->label_scale};
    enum dp_status st = get(job, &plan, err);
    if (st == DP_OK)
        st = dp_training_settings_read_by(job->cluster, &set, plan.text ? plan.text : "", plan.text_bytes,
                                          err);
    dp_register_value_clear(&plan.value);
    return st;
}
