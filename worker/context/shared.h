/* Shared: the data that the workers of a run share through the first server.
 *     notes            run/<run>/<what>/<worker>.       in its memory: lost when its process ends
 *     register values  run/<run>/<what>                 durable, changed by compare-and-set
 * Promise   A call waits for the first server by the retry policy (retry.h): DP_TIMEOUT and DP_UNAVAILABLE
 *           name it. A set that failed, or was not won, may still have been stored: the caller reads the
 *           value.
 * Seam      dp_shared_ops: one attempt each, over the job's client; tests put their own in the job.
 * Thread    The client's. */
#ifndef DP_CONTEXT_SHARED_H
#define DP_CONTEXT_SHARED_H

#include "common/client/downpour.h"

struct dp_job;

/* As the functions of downpour.h. */
struct dp_shared_ops {
    enum dp_status (*note_put)(struct dp_client *client, const char *name, const void *bytes, size_t size,
                               uint32_t timeout_ms, struct dp_error *err);
    enum dp_status (*notes)(struct dp_client *client, const char *prefix,
                            void (*visit)(void *context, const char *name, const void *bytes, size_t size),
                            void *context, uint32_t timeout_ms, struct dp_error *err);
    enum dp_status (*get)(struct dp_client *client, const char *name, uint64_t above, uint32_t wait_ms,
                          uint32_t timeout_ms, struct dp_register_value *out, struct dp_error *err);
    enum dp_status (*set)(struct dp_client *client, const char *name, uint64_t expected, const void *bytes,
                          size_t size, uint32_t timeout_ms, bool *won, struct dp_error *err);
    void (*pause)(struct dp_client *client, uint32_t ms);
};
const struct dp_shared_ops *dp_shared_of_client(void);

struct dp_shared_note {
    void *bytes; /* heap; NULL: none */
    size_t size;
};
void dp_shared_note_clear(struct dp_shared_note *note);

enum dp_status dp_shared_put(struct dp_job *job, const char *what, uint32_t worker, const void *bytes,
                             size_t size, struct dp_error *err);
/* Reads one note into {0}. */
enum dp_status dp_shared_one(struct dp_job *job, const char *what, uint32_t worker,
                             struct dp_shared_note *out, struct dp_error *err);
/* Visits the notes whose name begins with run/<run>/<what>/, at most 127. */
enum dp_status dp_shared_list(struct dp_job *job, const char *what,
                              void (*visit)(void *context, const char *name, const void *bytes, size_t size),
                              void *context, struct dp_error *err);

/* Reads a value into {0} or an earlier value, which is freed. Returns at once if the version is above
 * `above`, otherwise when it becomes so, or after wait_ms with the current value. */
enum dp_status dp_shared_get(struct dp_job *job, const char *what, uint64_t above, uint32_t wait_ms,
                             struct dp_register_value *value, struct dp_error *err);
/* *won is false when another worker has set the value since `expected`, when the register no longer knows who
 * has, or when it no longer keeps this run; reading the value shows which. */
enum dp_status dp_shared_set(struct dp_job *job, const char *what, uint64_t expected, const void *bytes,
                             size_t size, bool *won, struct dp_error *err);
/* Pauses between two polls of notes. DP_STOPPING after a signal. */
enum dp_status dp_shared_pause(struct dp_job *job, uint32_t ms, struct dp_error *err);

#endif
