/* Agreed: what is trained, what the numbers of a run's pushes stand for, and when it ends. Two models can have the same tables (wide-deep
 * and deepfm; one with dropout, one with another loss): workers that mix them train neither. Which examples are in push 7 of an epoch follows
 * from the data and from some settings: a worker that is started again with others would leave the wrong minibatches, without a word. And
 * workers that look at other figures, or look for something else in them, would stop after other epochs, or wait for each other.
 *     text -> (a note of before: check) -> the note run/<run>/plan/<worker> -> (other workers' notes: same)
 *     head -> (workers' notes: scores)
 *     the note: the process of the worker that put it (job.h; u64, little endian), then the text
 * Promise   Lines "name value", one for each thing that decides; the model as it is written. What may change between two starts (rate, fetch_every, threads,
 *           timeouts, paths) is not among them.
 * Thread    Any: plain functions. */
#ifndef DP_WORKER_AGREED_H
#define DP_WORKER_AGREED_H

#include "common/config/cluster.h"

/* A model, a label and categories as long as a cluster file can have them are two thirds of it. */
#define DP_AGREED_BYTES 2304u

/* What a file says, wherever it lies. */
struct dp_agreed_set {
    uint64_t digest, examples;
    uint32_t lists;
    bool ranked; /* among all items */
};

/* judged: what is evaluated at the end of each epoch while all rest, or NULL. */
void dp_agreed_text(const struct dp_cluster *cluster, const struct dp_agreed_set *train,
                    const struct dp_agreed_set *judged, char text[DP_AGREED_BYTES]);
/* Its first lines: what a row's score depends on besides the weights and the row. */
void dp_agreed_head(const struct dp_cluster *cluster, char text[DP_AGREED_BYTES]);
#define DP_AGREED_PROCESS_BYTES 8u
/* The note's bytes; returns how many. */
size_t dp_agreed_pack(uint64_t process, const char *text,
                      unsigned char note[DP_AGREED_PROCESS_BYTES + DP_AGREED_BYTES]);
uint64_t dp_agreed_process(const void *note, size_t size); /* 0: it is none */
/* Of notes. DP_EXISTS, naming the first thing that is not as it was: these pushes are of another training. */
DP_MUST_USE
enum dp_status dp_agreed_check(const char *text, const void *before, size_t size, uint32_t run,
                               struct dp_error *err);
/* DP_ARGUMENT, naming the first thing that another worker has otherwise. */
DP_MUST_USE
enum dp_status dp_agreed_same(const char *text, const void *theirs, size_t size, uint32_t run,
                              uint32_t worker, struct dp_error *err);
/* DP_ARGUMENT, naming the first thing of the head that the weights were trained with otherwise. */
DP_MUST_USE
enum dp_status dp_agreed_scores(const char *head, const void *trained, size_t size, uint32_t run,
                                struct dp_error *err);

#endif
