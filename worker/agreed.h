/* Agreed: what the numbers of a run's pushes stand for. Which examples are in push 7 of an epoch follows from the data and from
 * some settings: a worker that is started again with others would leave the wrong minibatches, without a word.
 *     text -> (a note of before: check) -> the note run/<run>/plan/<worker>
 * Promise   Lines "name value", one for each thing that decides. What may change between two starts (rate, fetch_every, threads,
 *           timeouts, paths) is not among them.
 * Thread    Any: plain functions. */
#ifndef DP_WORKER_AGREED_H
#define DP_WORKER_AGREED_H

#include "common/config/cluster.h"

#define DP_AGREED_BYTES 320u

/* digest, examples: of the training data. */
void dp_agreed_text(const struct dp_cluster *cluster, uint64_t digest, uint64_t examples,
                    char text[DP_AGREED_BYTES]);
/* DP_EXISTS, naming the first thing that is not as it was: these pushes are of another training. */
DP_MUST_USE
enum dp_status dp_agreed_check(const char *text, const void *before, size_t size, uint32_t run,
                               struct dp_error *err);

#endif
