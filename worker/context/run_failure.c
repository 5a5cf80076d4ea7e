#include "worker/context/run_failure.h"

#include <inttypes.h>
#include <jansson.h>
#include <stdlib.h>
#include <string.h>

#define NAME   "failed"
#define TRY_MS 1000u

/* NULL: servers that do not end with the run, or none answers. */
static json_t *read_failure(struct dp_job *job, struct dp_register_value *value)
{
    if (!job->shared || !job->shared->get ||
        job->shared->get(job->client, NAME, 0, 0, TRY_MS, value, NULL) != DP_OK)
        return NULL;
    json_t *root = value->bytes ? json_loadb(value->bytes, value->size, 0, NULL) : NULL;
    if (json_is_object(root))
        return root;
    json_decref(root);
    return NULL;
}

static bool is_of_run(const struct dp_job *job, const json_t *root)
{
    const json_int_t run = (json_int_t)job->cluster->training.run;
    return run > 0 && json_integer_value(json_object_get(root, "run")) == run;
}

enum dp_status dp_run_failure_check(struct dp_job *job, struct dp_error *err)
{
    struct dp_register_value value = {0};
    json_t *root = read_failure(job, &value);
    const char *why = json_string_value(json_object_get(root, "why"));
    enum dp_status st = DP_OK;
    if (root && is_of_run(job, root))
        st = dp_fail(err, DP_DATA, "worker %" PRIu32 " ended run %" PRIu32 " for all: %s",
                     (uint32_t)json_integer_value(json_object_get(root, "worker")),
                     job->cluster->training.run, why ? why : "see its own message");
    json_decref(root);
    dp_register_value_clear(&value);
    return st;
}

/* Whether the others cannot go on without it. */
static bool is_needed(const struct dp_job *job)
{
    const struct dp_cluster_training *training = &job->cluster->training;
    return job->worker == 0 || (training->worker_timeout == 0 && training->work != DP_CLUSTER_LEASED);
}

static void put(struct dp_job *job, const struct dp_error *why)
{
    struct dp_register_value value = {0};
    json_t *root = read_failure(job, &value);
    bool won;
    json_t *now = root && !is_of_run(job, root) && is_needed(job)
                      ? json_pack("{s:I,s:I,s:s}", "run", (json_int_t)job->cluster->training.run, "worker",
                                  (json_int_t)job->worker, "why", why->text)
                      : NULL;
    char *text = now ? json_dumps(now, JSON_COMPACT) : NULL;
    if (text) /* lost: another worker's is there */
        (void)job->shared->set(job->client, NAME, value.version, text, strlen(text), TRY_MS, &won, NULL);
    free(text);
    json_decref(now);
    json_decref(root);
    dp_register_value_clear(&value);
}

enum dp_status dp_run_failure_settle(struct dp_job *job, enum dp_status why, bool has_place,
                                     struct dp_error *err)
{
    struct dp_error other = {0};
    if (has_place && dp_status_exit(why) == DP_EXIT_FAILED && why != DP_REPLACED && why != DP_GENERATION)
        put(job, err);
    if (dp_status_exit(why) != DP_EXIT_RETRY || atomic_load(job->stop) != 0 ||
        dp_run_failure_check(job, &other) == DP_OK)
        return why;
    *err = other;
    return other.status;
}
