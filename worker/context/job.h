/* Job: everything that a worker process has open: the cluster file, the model, the client with the model's
 * tables, and the program that computes. Train and predict use it.
 * Promise   A wait for the servers ends: with the answer, after training.timeout_ms without a sign of
 *           progress (retry.h; DP_TIMEOUT names the server), or shortly after a signal (DP_STOPPING). Every
 *           10 s a line in the log names the server and the cause.
 * Thread    One.
 * Failure   A failed open leaves nothing open. A client that failed may still write into the buffers of a
 *           pull: call dp_job_disconnect before they are freed. */
#ifndef DP_CONTEXT_JOB_H
#define DP_CONTEXT_JOB_H

#include "common/client/downpour.h"
#include "common/config/cluster.h"
#include "common/env/clock.h"
#include "worker/compute/models/model.h"
#include "worker/compute/program.h"
#include "worker/context/shared.h"
#include "worker/context/training_settings.h"
#include "worker/read/dataset.h"

#include <stdatomic.h>

/* Examples in a minibatch that is only scored, or whose size is not settled yet. */
#define DP_JOB_BATCH 128u

struct dp_job;
struct dp_reader;
struct dp_row_source;

/* How a worker deals with others that are missing: a seam (coordinate/takeover.h, coordinate/peers.h). */
struct dp_absence {
    /* Called during a wait for other workers: looks after those that are silent. NULL: there is no removal.
     * */
    enum dp_status (*look)(void *of, struct dp_error *err);
    /* Whether the worker has left, and no worker waits for it. */
    bool (*is_gone)(const void *of, uint32_t worker);
    /* Asks the first server which workers that have left are back. NULL: is_gone knows. */
    enum dp_status (*recheck)(void *of, struct dp_error *err);
    void *of;
};

/* What the register knows of trainings (coordinate/run_number.h). */
struct dp_job_runs {
    char train[128];           /* name of the file that this run was begun with; empty: not known */
    uint64_t digest, examples; /* of the data of the run before this one; 0: not known */
};

struct dp_job {
    const struct dp_cluster *cluster;
    struct dp_job_runs runs;
    uint32_t worker;        /* predict: 0 */
    const atomic_int *stop; /* number of the signal that asks to stop, or 0 */
    struct dp_clock clock;
    uint64_t process; /* differs from that of earlier processes of this worker, for its notes */

    struct dp_model model;
    struct dp_backend backend;
    char device[64]; /* its description: "cpu, 1 thread", "cuda:0, tf32" */
    struct dp_program *program;
    struct dp_batch_shape worst; /* the minibatches that the program was made for */

    uint32_t shards;
    struct dp_client *client;
    const struct dp_shared_ops *shared; /* over the client; NULL: it puts no notes */
    struct dp_client_table *table[DP_GRAPH_PARAMETERS_MAX];
    struct dp_client *beside; /* another client of this thread, which goes on while this job waits; or NULL */
    const struct dp_row_source *rows; /* what evaluations pull from (row_source.h); NULL: the client */
    bool run_failed; /* another worker ended the run for all (run_failure.h): it is to stop */
    bool seated;     /* in async, after dp_membership_join: its pushes are those of a member of the run */

    /* Called during a wait, so that others see that this worker lives; or NULL. */
    void (*alive)(void *of);
    void *alive_of;
    const struct dp_absence *absence; /* NULL: all workers are waited for */
};

/* Opens device, model and client, in this order, so that an error of this machine comes before any wait.
 * name: of this process in the servers' logs: "worker 0", "predict". */
enum dp_status dp_job_open(const struct dp_cluster *cluster, uint32_t worker, const char *name,
                           const atomic_int *stop, struct dp_job *out, struct dp_error *err);
/* Opens device and model only: a job without servers (no client, no tables, no notes), whose data and program
 * are those of any other. */
enum dp_status dp_job_open_alone(const struct dp_cluster *cluster, uint32_t worker, const atomic_int *stop,
                                 struct dp_job *out, struct dp_error *err);
void dp_job_close(struct dp_job *job);
void dp_job_disconnect(struct dp_job *job);

/* For messages about other data. Lends. */
struct dp_training_settings_files dp_job_files(const struct dp_job *job);

/* What acts for another worker of the same run: this job's model, program and data over a client of its own,
 * to which its tables belong. It puts no notes. Close it by dp_job_disconnect. */
enum dp_status dp_job_act_for(const struct dp_job *job, uint32_t worker, struct dp_job *out,
                              struct dp_error *err);

/* Opens the model's tables, and creates missing ones; with must_exist a missing one is DP_NOT_FOUND. */
enum dp_status dp_job_tables(struct dp_job *job, bool must_exist, struct dp_error *err);

/* Examples in a minibatch; DP_JOB_BATCH before a training has settled it (defaults.h), or if data is only
 * scored. */
uint32_t dp_job_batch(const struct dp_job *job);
/* The options of a data set for the model and the cluster file. labels: of an idx file; NULL: derived from
 * its name. */
struct dp_dataset_options dp_job_data(const struct dp_job *job, const char *path, const char *labels,
                                      bool shuffle);
/* The file with the interactions of the data that was trained on before (data.interactions); NULL: there is
 * none. It may have those of this run's data, too, which changes nothing. */
const char *dp_job_earlier_interactions(const struct dp_job *job);
/* Opens the program for the worst minibatch of the data sets; b and c may be NULL. */
enum dp_status dp_job_program(struct dp_job *job, const struct dp_dataset *a, const struct dp_dataset *b,
                              const struct dp_dataset *c, struct dp_error *err);

/* Whether its model predicts a number; BPR's pairs have none. */
static inline bool dp_job_is_regression(const struct dp_job *job)
{
    return job->model.labels == DP_LABELS_ANY && job->model.form != DP_FORM_TRIPLES;
}
static inline void dp_job_alive(const struct dp_job *job)
{
    if (job->alive)
        job->alive(job->alive_of);
}
static inline bool dp_job_removes(const struct dp_job *job)
{
    return job->absence && job->absence->look;
}
static inline enum dp_status dp_job_waits(const struct dp_job *job, struct dp_error *err)
{
    return dp_job_removes(job) ? job->absence->look(job->absence->of, err) : DP_OK;
}
static inline bool dp_job_is_gone(const struct dp_job *job, uint32_t worker)
{
    return job->absence && job->absence->is_gone(job->absence->of, worker);
}
static inline enum dp_status dp_job_recheck_gone(const struct dp_job *job, struct dp_error *err)
{
    return job->absence && job->absence->recheck ? job->absence->recheck(job->absence->of, err) : DP_OK;
}
static inline bool dp_job_stopped(const struct dp_job *job)
{
    return job->run_failed || atomic_load_explicit(job->stop, memory_order_relaxed) != 0;
}
/* Waits for a ticket (not at all for {0}) by the retry policy (retry.h). outcome: NULL, or filled in. looks:
 * the request may wait for another worker, and this one looks after missing ones during the wait
 * (dp_absence); not while the program computes, as a takeover uses it. */
enum dp_status dp_job_wait(struct dp_job *job, struct dp_ticket *ticket, bool looks,
                           struct dp_outcome *outcome, struct dp_error *err);
/* After DP_TOO_OLD: whether the servers may have forgotten the whole run, and not an epoch of it alone, all
 * of whose pushes they had. */
bool dp_job_run_forgotten(const struct dp_job *job, uint32_t run);
/* Asks which of `count` pushes every shard has (dp_client_pushed), by the same policy. DP_TOO_OLD when later
 * epochs of the run have replaced this one. DP_ARGUMENT when the whole run is too old, with the number to
 * use. */
enum dp_status dp_job_pushed(struct dp_job *job, uint64_t stream, uint64_t from, size_t count, uint64_t *bits,
                             struct dp_error *err);

/* Waits for a reader's next minibatch in slices, so that a signal is seen and others see that this worker
 * lives. DP_STOPPING: a signal came during the wait; DP_IO, with remedies: none came within
 * training.timeout_ms; DP_INTERNAL: the reader's plan has ended. */
enum dp_status dp_job_next_batch(struct dp_job *job, struct dp_reader *reader, struct dp_batch **out,
                                 struct dp_error *err);

#endif
