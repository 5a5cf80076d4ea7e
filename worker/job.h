/* Job: all that a worker process has open: the cluster file, the model, the client with the model's tables,
 * and, made ready for data sets, the program that computes. Train and predict stand on it.
 * Promise   A wait for the servers ends: when the answer is there, when training.timeout_ms has passed
 *           without a sign that one will come (patience.h; DP_TIMEOUT naming the server), or shortly after a signal (DP_STOPPING). Every 10 s of it are
 *           logged, with the server and the cause.
 * Thread    One.
 * Failure   open: nothing is left open. A client that failed may still write into the buffers of a pull:
 *           dp_job_disconnect before those are freed.                                                    */
#ifndef DP_WORKER_JOB_H
#define DP_WORKER_JOB_H

#include "common/client/downpour.h"
#include "common/config/cluster.h"
#include "common/env/clock.h"
#include "worker/compute/model.h"
#include "worker/compute/program.h"
#include "worker/read/dataset.h"

#include <stdatomic.h>

struct dp_job {
    const struct dp_cluster *cluster;
    uint32_t worker;        /* predict: 0 */
    const atomic_int *stop; /* number of the signal that asks to stop, or 0 */
    struct dp_clock clock;
    struct dp_model model;
    uint32_t shards;
    struct dp_client *client;
    struct dp_client_table *table[DP_GRAPH_PARAMETERS_MAX];
    struct dp_backend backend;
    char device[64]; /* what it is, for people: "cpu, 1 thread", "cuda:0, tf32" */
    struct dp_program *program;
    bool resumes;                 /* this worker was begun in this run before, or may have been: --resume */
    bool counts;                  /* keeps a ledger (ledger.h) */
    struct dp_progress *progress; /* told while a wait lasts, or NULL */
    struct dp_kept *kept;         /* notes that are put again where the first server lost them (peers.h) */
    uint64_t process; /* tells this process of the worker from earlier ones, for those who read its notes */
    struct dp_note *before;      /* [workers] of processes that ended early before this one began (peers.h) */
    struct dp_batch_shape worst; /* of the minibatches that the program was made for */
};

/* Device, model and client, in this order: what a machine lacks is said before anything is waited for.
 * name: what makes two processes' lines in the servers' logs differ: "worker 0", "predict". */
DP_MUST_USE
enum dp_status dp_job_open(const struct dp_cluster *cluster, uint32_t worker, const char *name,
                           const atomic_int *stop, struct dp_job *out, struct dp_error *err);
void dp_job_close(struct dp_job *job);
void dp_job_disconnect(struct dp_job *job);

/* Opens the model's tables, making those that are absent; with must_exist an absent one is DP_NOT_FOUND. */
DP_MUST_USE
enum dp_status dp_job_tables(struct dp_job *job, bool must_exist, struct dp_error *err);

DP_MUST_USE
enum dp_status dp_job_table(struct dp_job *job, const struct dp_table_spec *spec,
                            struct dp_client_table **out, struct dp_error *err);

/* Examples in a minibatch; before a training has settled it (defaults.h), or where data is only scored, one that will do. */
uint32_t dp_job_batch(const struct dp_job *job);
/* Options of a data set as the model and the cluster file want it; labels: NULL by the name's habit. */
struct dp_dataset_options dp_job_data(const struct dp_job *job, const char *path, const char *labels,
                                      bool shuffle);
/* The program for the worst minibatch of all; b and c may be NULL. */
DP_MUST_USE
enum dp_status dp_job_program(struct dp_job *job, const struct dp_dataset *a, const struct dp_dataset *b,
                              const struct dp_dataset *c, struct dp_error *err);

static inline bool dp_job_stopped(const struct dp_job *job)
{
    return atomic_load_explicit(job->stop, memory_order_relaxed) != 0;
}
/* Waits for a ticket ({0}: at once), with patience (patience.h). outcome: NULL or filled. */
DP_MUST_USE
enum dp_status dp_job_wait(struct dp_job *job, struct dp_ticket *ticket, struct dp_outcome *outcome,
                           struct dp_error *err);
/* Which of so many pushes every shard has (dp_client_pushed), with patience. DP_TOO_OLD: later epochs of the run took the
 * place of this one. DP_ARGUMENT: the whole run is too old, and which number would not be. */
DP_MUST_USE
enum dp_status dp_job_pushed(struct dp_job *job, uint64_t stream, uint64_t from, size_t count, uint64_t *bits,
                             struct dp_error *err);

#endif
