/* Run state: the facts about a run in its directory, in addition to its cluster file:
 *     run.json       whether it is finished, how many epochs it trained, and what its data files were
 *     steps-W.log    how far each worker has come (worker/history/step_log.h)
 * Promise   run.json says "finished" only when the complete training ended well. It is next to the weights,
 *           so a copy of the directory has it, too. Runs of older versions have none: known is false.
 * Failure   A file that is damaged or missing makes things unknown, never wrong; writing: DP_IO naming the path. */
#ifndef DP_RUN_RUN_STATE_H
#define DP_RUN_RUN_STATE_H

#include "deploy/run/folder.h"

/* What a file says, wherever it lies: its size, and a hash of it; of a large one, of 64 pieces of 1 MiB. */
struct dp_fingerprint {
    bool known;
    uint64_t bytes, hash;
};

/* The training file and its labels, which decide what is trained; then those that are evaluated. */
#define DP_RUN_FILES       8u
#define DP_RUN_FILES_TRAIN 2u

struct dp_run_state {
    bool known;
    bool finished;
    uint32_t epochs; /* trained, where it is finished: fewer than training.epochs after an early end */
    uint32_t
        mixed; /* the first epochs, whose figures a store that was lost and replaced has mixed; 0: none */
    /* The stores were restored from a checkpoint, and nothing was trained since: it stood in this epoch, counted from 0 in the
     * run, and what step logs tell of later ones is lost. */
    bool restored;
    uint32_t restored_epoch;
    uint32_t
        diverged; /* the epoch in which its weights did, as users count, and they are those in its store; 0: they did not */
    struct dp_fingerprint file[DP_RUN_FILES];
};

/* The path of a file of the data, by its number, as const as the data are (strchr's way); *flag: that names it. */
char *dp_run_state_file(const struct dp_cluster_data *data, size_t i, const char **flag);
/* "train": data.train in a cluster file. */
const char *dp_run_state_file_key(size_t i);
/* What they all say now. */
void dp_run_state_take_files(struct dp_run_state *state, const struct dp_cluster_data *data);

/* {0} where it cannot be read. */
struct dp_fingerprint dp_fingerprint(const char *path);
static inline bool dp_fingerprint_same(const struct dp_fingerprint *a, const struct dp_fingerprint *b)
{
    return a->known && b->known && a->bytes == b->bytes && a->hash == b->hash;
}

struct dp_run_state dp_run_state_read(const struct dp_folder *folder, uint32_t run);
/* Durably. */
enum dp_status dp_run_state_write(const struct dp_folder *folder, uint32_t run,
                                  const struct dp_run_state *state, struct dp_error *err);
/* The epoch in which a checkpoint stood as that of `run`; known: the checkpoint is of run `of`. */
void dp_run_state_restored(struct dp_run_state *state, uint32_t run, bool known, uint32_t of, uint32_t epoch);
/* What worker 0's report says of a run. Epochs are as users count. */
struct dp_run_report {
    bool finished;     /* all is trained: the store then has the weights that stay */
    uint32_t epochs;   /* how many it has */
    uint64_t examples; /* of its training file, without held-out ones */
    uint32_t kept;     /* the best one, whose weights are kept; 0: the last one's are */
    uint32_t diverged; /* since when, of a training that failed for it; 0: it did not */
    uint32_t
        poor; /* the same of a finished training, by its losses: its weights are finite, and of little use */
    char set[16]; /* "test" */
    double loss;  /* of that set, at the end */
    double rate;  /* that the report advises; 0: none */
};
/* {0}: it is not there, or another run's. */
struct dp_run_report dp_run_report_read(const char *report, uint32_t run);
/* Since when it diverged by all that is known; 0: it did not. After a restore the report is of replaced weights. */
uint32_t dp_run_diverged(const struct dp_run_state *state, const char *report, uint32_t run);

/* How far the workers say that they are. */
struct dp_run_place {
    bool known;
    uint32_t epochs;        /* of the run */
    uint32_t whole;         /* epochs that all of them have ended */
    uint64_t group, groups; /* of the one that is least far: pushes in the epoch after these */
    double share;           /* of the whole training, 0 .. 1 */
};
/* Behind a restore: no further than the checkpoint's epoch. */
struct dp_run_place dp_run_place(const struct dp_folder *folder, const struct dp_cluster *cluster);
/* "epoch 3 of 10, 23% of the training done"; "nothing is known of how far it came". */
#define DP_RUN_PLACE_BYTES 96
void dp_run_place_text(const struct dp_run_place *place, const struct dp_cluster *cluster,
                       char text[DP_RUN_PLACE_BYTES]);
/* "downpour run --dir DIR --resume", as a shell takes it. */
void dp_run_resume_command(const struct dp_folder *folder, char *out, size_t size);

#endif
