/* Observe: samples the weights of a training on its servers (samples.h). It is a client but not a member:
 * its pulls are never blocked, no worker waits for it, and it puts no notes.
 *     tables there -> first sample -> (the first push is seen) -> samples by time and by examples -> a
 *     signal, or no answer -> last sample
 * Samples   The first has the weights before any push, if it comes in time. The training begins when the
 *           first push is seen. The shards are asked for it every 20 ms, so it is seen at most that and an
 *           answer's time late. So seconds count from the end of the first step. If the servers had pushes
 *           before, the training begins at once. The last sample is taken after a signal. If the training
 *           has ended by then, it has the final weights.
 * Which     By time: one every every_ms. By examples: one each time that the shards have applied another
 *           `each` examples (of the file of keys), so that a slow training has no more of them than a fast
 *           one. For those the shards' counters are read about four times a push near the count, at most
 *           once a millisecond, and less often before. So such a sample is within one push of its count
 *           where a push takes 4 ms or more; its own count says how far it is. In sync it is taken between
 *           two steps, unless three steps in a row end while it is pulled. The first and the last sample are
 *           by examples.
 * Rows      A sample is pulled in requests of up to 65,536 rows, 16 MiB. Like a worker's pull, each shows a
 *           shard at one moment, but not all shards at the same moment. Pushes may come between two
 *           requests.
 * Counts    After its rows are there, `pushes` and `examples` are the least of the shards' counters of these
 *           names, so a sample may lack the pushes that were applied while it was pulled, and is never newer
 *           than its counts. Every push goes to every shard. `examples` counts the examples of pushes that
 *           took effect, as their workers reported. Short minibatches and groups count exactly; repeated
 *           and dropped pushes do not count. In sync only committed steps count. After a restart of a
 *           server, counting continues from the last seen value. Pushes that the shard had applied since
 *           then (at most those of an interval) are not counted.
 * Failure   A sample in which a server restarted is left out, and taken again. Servers that do not answer
 *           for training.timeout_ms have stopped: that is a normal end. It is a failure if the last sample
 *           cannot be taken after a signal. DP_TIMEOUT: they have never answered, or the tables were not
 *           made within 10 times that. DP_FULL, DP_IO: the file cannot be written; its frames are complete.
 *           */
#ifndef DP_OBSERVE_OBSERVE_H
#define DP_OBSERVE_OBSERVE_H

#include "common/config/cluster.h"

#include <stdatomic.h>

struct dp_observe_options {
    const char *samples; /* file to write */
    const char *keys;    /* file of keys (scoring.h) */
    uint32_t every_ms;   /* 1 or more */
};

enum dp_status dp_observe(const struct dp_cluster *cluster, const atomic_int *stop,
                          const struct dp_observe_options *options, struct dp_error *err);

#endif
