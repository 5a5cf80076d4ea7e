/* Cluster: the file that servers, workers and the command read: the place of each process, and the
 * training's settings.
 * Format    libconfig (the only room that sees it); deploy/cluster.example.conf explains every key.
 * Failure   DP_ARGUMENT naming file, line and key: a key that is not known, missing, of a wrong type or out
 *           of range. DP_IO naming the file.
 * Memory    One struct, no pointers into the file; dp_cluster_free. */
#ifndef DP_CONFIG_CLUSTER_H
#define DP_CONFIG_CLUSTER_H

#include "common/base/status.h"
#include "common/config/side_files.h"
#include "common/model/table.h"
#include "common/vocab/tokenizer.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#define DP_PATH_MAX         1023
#define DP_HOST_MAX         255
#define DP_SERVERS_MAX      256
#define DP_RATE_DEFAULT     0.001
#define DP_SHARDS_MAX       64 /* of one server */
#define DP_METRICS_TEXT_MAX 63

struct dp_cluster_server {
    /* The address that others use. If all processes are on one machine it may be ipc:///PATH: the server's
     * sockets are then the files PATH-PORT. "": not known yet (dp_cluster_find). */
    char host[DP_HOST_MAX + 1];
    char listen[DP_HOST_MAX + 1];       /* on which it listens; "": host */
    uint32_t port;                      /* control; 0: the kernel chooses */
    uint16_t shard_port[DP_SHARDS_MAX]; /* 0: its shards listen on port + 1, port + 2, ... */
    uint32_t shards;                    /* 1 .. DP_SHARDS_MAX */
    char store[DP_PATH_MAX + 1];        /* directory; each shard has one inside */
};

/* `servers` as a count: servers that are alike, whose addresses the first one's register knows. */
struct dp_cluster_counted {
    uint32_t count; /* 0: the file lists the servers */
    uint32_t shards;
    uint32_t port; /* control, on every host; its shards' follow; 0: the kernel chooses */
    char store[DP_PATH_MAX + 1], host[DP_HOST_MAX + 1], listen[DP_HOST_MAX + 1]; /* patterns */
};

/* The first server's address, where the servers are counted. */
struct dp_cluster_first {
    char host[DP_HOST_MAX + 1];
    uint32_t port;
    const char *from; /* "'first'", "DOWNPOUR_FIRST", "MASTER_ADDR", "--first"; NULL: nothing names it */
};
#define DP_FIRST_PORT 5700u /* where neither it nor servers.port gives one */

enum dp_decay { DP_DECAY_NONE, DP_DECAY_LINEAR, DP_DECAY_COSINE, DP_DECAY_INVERSE_SQRT };

/* Where warmup and decay of a further run begin. */
enum dp_cluster_schedule {
    DP_SCHEDULE_RESTART,
    DP_SCHEDULE_CONTINUE /* after first_epoch epochs of as many minibatches as this run's */
};

/* What an acknowledged push survives. */
enum dp_cluster_durability {
    DP_CLUSTER_MACHINE, /* loss of power */
    DP_CLUSTER_PROCESS, /* the death of the process */
    DP_CLUSTER_NONE,    /* nothing: a store that was not closed cleanly is refused */
};

/* Columns that only one of a file and the schema by which it is read has. */
enum dp_cluster_unmatched { DP_UNMATCHED_REFUSE, DP_UNMATCHED_ACCEPT };

/* What paths in the file that do not start with / are relative to. */
enum dp_cluster_relative {
    DP_CLUSTER_START, /* the directory in which each process is started */
    DP_CLUSTER_FILE,  /* the directory of the file itself, so that both can be moved together */
};

/* How products round on a worker's GPU. */
enum dp_cluster_precision { DP_CLUSTER_F32, DP_CLUSTER_TF32, DP_CLUSTER_BF16 };

struct dp_cluster_data {
    char train[DP_PATH_MAX + 1], test[DP_PATH_MAX + 1];               /* test may be empty: no evaluation */
    char train_labels[DP_PATH_MAX + 1], test_labels[DP_PATH_MAX + 1]; /* idx; empty: by the name's habit */
    char
        test_negatives[DP_PATH_MAX + 1]; /* pairs: what each test pair's item is ranked among; may be empty */
    /* Evaluated after each epoch, all workers' weights at rest; the test set then at the end only. A file, or
     * a share of the training file's examples (0: none) */
    char validation[DP_PATH_MAX + 1], validation_labels[DP_PATH_MAX + 1],
        validation_negatives[DP_PATH_MAX + 1];
    double validation_share;
    /* Pairs: what of the training file is the test set, in place of `test`: "leave-one-out", a share ("0.2"),
     * or empty */
    char holdout[32];
    bool holdout_evaluated; /* false: workers evaluate it not; samples of the weights are scored on it */
    uint32_t
        holdout_negatives;   /* leave-one-out: items that each is ranked among, in addition to all; 0: none */
    char format[16];         /* "auto", or the name of one */
    uint32_t negatives;      /* pairs: items, or words, sampled for each */
    uint32_t window;         /* text as pairs: how far a near word may be away */
    enum dp_word_rule words; /* text as pairs: how it is cut into words */
    double subsample;        /* text: words of at least about this share are dropped at random; 0: none */
    uint32_t min_count;      /* text as pairs: words that occur less often are left out */
    char label[128];         /* csv: the name of its column */
    char user[128], item[128], rating[128], time[128]; /* pairs: columns, by name or number from 1 */
    char encoding[32];                                 /* of texts, for iconv(3); empty: UTF-8 */
    char categories[1024];                             /* csv: names, "a,b"; empty: by the first lines */
    char lists[1024];                                  /* csv: names of columns of lists, "a,b" */
    char ignore[1024];                                 /* csv: names of columns that are left out, "a,b" */
    char id[128];                                      /* csv: the column that names rows; empty: none */
    char missing[256];                                 /* csv: further texts of missing cells, "?,-" */
    char weight[128];       /* csv: the column of examples' weights, by name or number from 1; empty: none */
    char class_weight[256]; /* "balanced", or "yes=5,no=1"; empty: none */
    /* The file in which a training keeps how its data was read, for predictions; empty: none, those of csv
     * read `train` */
    char columns[DP_PATH_MAX + 1];
    /* The training file is read by `columns`, too: an earlier run on these weights wrote it. */
    bool by_columns;
    enum dp_cluster_unmatched new_columns, missing_columns;
    /* the file in which a training keeps what its keys are called; empty: none */
    char names[DP_PATH_MAX + 1];
    /* pairs: the file in which a training keeps each user's items, for predictions and further runs; empty:
     * none */
    char interactions[DP_PATH_MAX + 1];
    char cache[DP_PATH_MAX + 1]; /* directory of decoded files; empty: none */
    uint32_t hash_bits;          /* of categories' keys; 0: 63 */
    uint32_t index_base;
    char label_base[12]; /* number of class 0, up to 2^24; or "auto" */
    double scale;        /* 0: 1 for text, 1/255 for idx */
    bool normalize;
    bool standardize; /* csv: numbers, by the training file's means and deviations */
};

/* The path of a side file; empty: none is written. */
static inline const char *dp_cluster_side(const struct dp_cluster_data *data, enum dp_side file)
{
    const char *const path[DP_SIDE_FILES] = {data->names, data->columns, data->interactions};
    return path[file];
}

/* Whose weights are the result of a training. AUTO: the best epoch's where a metric says which one that
 * is (dp_cluster_keeps_best). */
enum dp_cluster_keep { DP_KEEP_AUTO, DP_KEEP_BEST, DP_KEEP_LAST };

/* Which minibatches of an epoch a worker trains. */
enum dp_cluster_work {
    DP_CLUSTER_FIXED, /* its share: those whose number is the worker's, modulo the workers */
    DP_CLUSTER_LEASED /* those that it takes from the first server's list, one portion after the other */
};

/* By what training.pace is multiplied, minibatch by minibatch (injection.h). */
enum dp_cluster_jitter { DP_JITTER_NONE, DP_JITTER_EXP, DP_JITTER_UNIFORM };

struct dp_cluster_training {
    uint32_t workers;
    uint32_t batch, epochs; /* 0: by the size of the training set and the model (worker/context/defaults.h) */
    uint64_t seed;
    double rate;
    uint64_t warmup_steps; /* minibatches of all workers */
    enum dp_decay decay;
    double rate_end; /* linear, cosine: rate at the end of the last epoch */
    enum dp_cluster_schedule schedule;
    struct dp_optimizer_spec optimizer;
    uint32_t fetch_every, push_every; /* n_fetch, n_push of Downpour SGD */
    char consistency[32];             /* "async", "ssp:4", "sync", "sync:1" (consistency.h) */
    uint32_t accumulate;       /* minibatches on the same weights, pushed as one; over 1: the former are 1 */
    enum dp_cluster_work work; /* leased: async only */
    bool overlap;              /* the next batch is pulled while this one is computed */
    uint32_t pushes_max;       /* pushes under way without an answer, 1 .. 64 */
    bool bf16_values;
    bool rate_by_staleness; /* servers divide the rate of a push by its staleness; not in sync */
    /* Number of this training run, part of its push ids: 1 .. 2^31-1; 0: the first server chooses it. */
    uint32_t run;
    uint32_t threads;      /* of one worker, that share the weights of a fetch (worker/loop/hogwild.h) */
    uint32_t blas_threads; /* of one worker's matrix products */
    char device[16];       /* "cpu", "cuda", "cuda:N", "cuda:each" or "auto" */
    enum dp_cluster_precision precision;
    char stop_at[32];         /* "auc:0.8": the training ends with the epoch that reaches it; empty: none */
    uint32_t patience;        /* it ends after so many epochs without a better figure; 0: it does not */
    char patience_metric[16]; /* which figure; empty: stop_at's, else the loss */
    enum dp_cluster_keep keep;
    uint32_t top_k;          /* of items ranked among all: recall and NDCG at this place */
    uint32_t timeout_ms;     /* any wait of a worker for a server */
    uint32_t worker_timeout; /* s after which a silent worker leaves (ssp, sync); 0: never */
    char pace[16];           /* "20ms": least time of a minibatch (injection.h); empty: none */
    enum dp_cluster_jitter jitter;
    char straggler[256];          /* "3:10x,1:50ms"; empty: none */
    char report[DP_PATH_MAX + 1]; /* JSON, written by worker 0; empty: none */
    /* Worker N keeps what it needs to go on exactly where it was in the file STEPS-N.log; empty: only the
     * servers do */
    char steps[DP_PATH_MAX + 1];
    char best[DP_PATH_MAX +
              1]; /* directory of the best epoch's checkpoint (coordinate/best_epoch.h); empty: none */
    /* Epochs that earlier runs trained on the same store: shuffling and shown numbers go on from it. */
    uint32_t first_epoch;
    /* Examples of their other files: the number of epochs is chosen as for all examples at once. */
    uint64_t earlier_examples;
};

/* Checkpoints that the first server makes by itself. */
struct dp_cluster_checkpoint {
    char to[DP_PATH_MAX + 1]; /* directory that all servers reach under this name */
    uint32_t every;           /* s; 0: none is made */
    uint32_t keep;            /* the last so many stay; 0: all */
};

struct dp_cluster {
    char name[DP_TABLE_NAME_MAX + 1];
    uint64_t id;                  /* hash of name, unless the file gives one */
    uint64_t obsolete_generation; /* of files of earlier versions: stores keep it now */
    uint64_t cache_bytes;         /* of one shard */
    enum dp_cluster_durability durability;
    uint64_t journal_bytes; /* budget of one shard's journal */
    enum dp_cluster_relative relative_to;
    char log[DP_PATH_MAX + 1]; /* directory of the logs of `downpour node`; empty: standard error only */
    char first_text[DP_HOST_MAX + 8 + 1]; /* the key `first` */
    struct dp_cluster_counted counted;
    struct dp_cluster_first first; /* not in the file: of the process */
    uint32_t server_count;
    struct dp_cluster_server *server;
    char metrics[DP_METRICS_TEXT_MAX + 1]; /* metrics_address.h; empty: no server answers HTTP */
    char model[256];
    char dir[DP_PATH_MAX + 1]; /* of a training's files that are not named one by one; empty: none */
    struct dp_cluster_checkpoint checkpoint;
    struct dp_cluster_data data;
    struct dp_cluster_training training;
};

/* Fills in the value of every key that a file leaves out. Servers: none. */
void dp_cluster_defaults(struct dp_cluster *out);
/* With relative_to "file" the paths in *out are resolved against the directory of `path`, or of the file that
 * it links to. With `dir` the files of the training that the file does not name are in it
 * (dp_cluster_dir_use). */
enum dp_status dp_cluster_read(const char *path, struct dp_cluster **out, struct dp_error *err);
/* Whether the file has the key ("training.rate"), rather than its default. */
bool dp_cluster_file_gives(const char *path, const char *key);
/* Writes a file that reads back equal, whole or not at all (common/env/atomic_file.h). With relative_to
 * DP_CLUSTER_FILE all paths must be absolute or lie below the directory of `path`; those that lie below it
 * are written relative to it. */
enum dp_status dp_cluster_write(const struct dp_cluster *cluster, const char *path, struct dp_error *err);
/* Where the servers are counted: names the first one, in place of the file and the environment; from: as in
 * dp_cluster_first. DP_ARGUMENT: not HOST[:PORT], or the file lists the servers. */
enum dp_status dp_cluster_set_first(struct dp_cluster *cluster, const char *text, const char *from,
                                    struct dp_error *err);
/* Servers that were counted are listed from now on; their hosts and stores are the caller's to set. */
void dp_cluster_uncount(struct dp_cluster *cluster);
/* DP_ARGUMENT: the file counts its servers, and nothing names the first one. */
enum dp_status dp_cluster_has_first(const struct dp_cluster *cluster, struct dp_error *err);
/* For a process of server `server`: its patterns are filled in, with this machine's name and job. Nothing
 * changes where the file lists the servers. DP_ARGUMENT: a pattern that is not known, or has no value
 * here. */
enum dp_status dp_cluster_settle(struct dp_cluster *cluster, uint32_t server, struct dp_error *err);
/* Makes the checks of read for a struct that was filled in another way. */
enum dp_status dp_cluster_check(const struct dp_cluster *cluster, struct dp_error *err);
/* How messages name a setting: by the flag that the user gave, or by its key. */
struct dp_setting_names {
    const char *(*flag)(const void *context,
                        const char *key); /* "--epochs" for "training.epochs"; NULL: by its key */
    const void *context;
};
/* All of these but those of the servers, whose places are not known yet. names: NULL, all by their keys. */
enum dp_status dp_cluster_check_settings(const struct dp_cluster *cluster,
                                         const struct dp_setting_names *names, struct dp_error *err);
void dp_cluster_free(struct dp_cluster **cluster);
/* Names the report, the side files, the step logs, the cache, and with a directory for checkpoints that of
 * the best epoch, where no other name is given: as `downpour run` does in its --dir. Nothing without
 * `dir`. */
enum dp_status dp_cluster_dir_use(struct dp_cluster *cluster, struct dp_error *err);
/* The report and the step logs that `dir` names are those of training.run from now on, in path = DIR/runs/N;
 * path is empty where `dir` names neither. */
enum dp_status dp_cluster_dir_of_run(struct dp_cluster *cluster, char path[DP_PATH_MAX + 1],
                                     struct dp_error *err);
/* The opposite, for one that keeps these files itself: takes `dir`, and the names that it gave, away. */
void dp_cluster_dir_leave(struct dp_cluster *cluster);

/* Sets one key ("training.epochs") from a person's text, with the checks of the file; `what` names it in the
 * message ("--epochs"). "training.optimizer.kind" sets the kind's defaults, so it goes before its settings.
 */
enum dp_status dp_cluster_set(struct dp_cluster *cluster, const char *key, const char *text, const char *what,
                              struct dp_error *err);
/* Whether the training keeps the weights of its best epoch, by the validation set, or by what stop_at or
 * patience look at. Where training.keep does not ask for it, not without a journal, which a checkpoint needs. */
bool dp_cluster_keeps_best(const struct dp_cluster *cluster);
bool dp_cluster_has_best(const struct dp_cluster *cluster); /* a metric says which epoch is the best */
/* Minibatches whose gradients are one push, and those that are pulled together. With several threads both are
 * the same; where neither is given they are so many that threads seldom wait for each other. */
#define DP_CLUSTER_SHARED 16u
static inline uint32_t dp_cluster_pushed_together(const struct dp_cluster_training *training)
{
    const struct dp_cluster_training *t = training;
    if (t->accumulate > 1 || t->threads <= 1)
        return t->accumulate > 1 ? t->accumulate : t->push_every;
    uint32_t given = t->fetch_every > t->push_every ? t->fetch_every : t->push_every;
    return given > 1 ? given : t->threads > DP_CLUSTER_SHARED ? t->threads : DP_CLUSTER_SHARED;
}
static inline uint32_t dp_cluster_fetched_together(const struct dp_cluster_training *training)
{
    return training->accumulate > 1 || training->threads > 1 ? dp_cluster_pushed_together(training)
                                                             : training->fetch_every;
}
/* "adam"; "momentum" (SGD with it) and "adamw" (Adam with decay) too. */
/* The rate to try after a training that was unstable at this one: the default where Adam had more than 10 times that, as its steps are as
 * large as the rate; else a tenth and at most 0.1, or less where more workers push
 * without waiting for each other. */
double dp_cluster_lower_rate(const struct dp_cluster_training *training);
const char *dp_cluster_optimizer_name(const struct dp_optimizer_spec *spec);
/* NULL: no such. */
const char *dp_decay_name(enum dp_decay decay);
const char *dp_cluster_work_name(enum dp_cluster_work work);
const char *dp_cluster_jitter_name(enum dp_cluster_jitter jitter);
const char *dp_cluster_precision_name(enum dp_cluster_precision precision);
const char *dp_cluster_durability_name(enum dp_cluster_durability durability);

uint32_t dp_cluster_shards(const struct dp_cluster *cluster); /* of all servers */
/* Endpoint of shard 0 .. shards-1, counted over the servers in the order of the file. size >= DP_HOST_MAX
 * + 32. "": not known. */
void dp_cluster_shard_endpoint(const struct dp_cluster *cluster, uint32_t shard, char *out, size_t size);
void dp_cluster_control_endpoint(const struct dp_cluster *cluster, uint32_t server, char *out, size_t size);
/* On which the server's own process listens; socket 0: control, 1 + k: its shard k. */
void dp_cluster_listen_endpoint(const struct dp_cluster *cluster, uint32_t server, uint32_t socket, char *out,
                                size_t size);
/* Worker N's step log: PREFIX-N.log. prefix: training.steps. DP_ARGUMENT: too long. */
enum dp_status dp_cluster_step_log(const char *prefix, uint32_t worker, char *out, size_t size,
                                   struct dp_error *err);

#endif
