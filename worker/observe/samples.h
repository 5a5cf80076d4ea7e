/* Samples: a file of a training's weights at some moments, of the rows that an evaluation reads. A sample is
 * taken at a time, or after a number of examples (enum dp_sample_by).
 *     writer: open -> append, append, ... -> close            reader: open -> read(i), ... -> close
 * File      Little endian; hash: dp_hash_bytes, from DP_HASH_BEGIN.
 *             header   magic u64 | version u32 | tables u32 | bytes of the header u64 | each u64 |
 *                      for each table: name[48] | dim u32 | 0 u32 | count u64 | keys u64[count] (mixed,
 *                      ascending) | hash of all that u64
 *             frame    magic u64 | number u64, from 0 | monotonic_ns, wall_ns, began_ns, pushes, examples,
 *             by: u64 |
 *                      rows of each table f32[count][dim] | hash of the header's hash and all that u64
 *           A file of keys is one without frames: which rows an evaluation reads, to be sampled.
 * Promise   A writer that ends at any moment leaves a file whose complete frames are readable; part of a
 *           frame at its end is left out. A frame with any changed byte is DP_CORRUPT, at any place in the
 *           file. A power failure may cost the frames of the last moments: nothing is synced, since a
 *           training ends with its machine.
 * Thread    Each handle is one thread's.
 * Failure   DP_FULL and DP_IO name the file and the cause; after a failed append the file ends after the
 *           last complete frame. DP_DATA: it is no file of samples. */
#ifndef DP_OBSERVE_SAMPLES_H
#define DP_OBSERVE_SAMPLES_H

#include "common/base/status.h"
#include "common/model/table.h"
#include "worker/compute/graph.h"

#include <stddef.h>
#include <stdint.h>

/* A table for each parameter of a graph, in its order. */
struct dp_sample_keys {
    uint64_t each; /* applied examples between two samples by examples; 0: there are none */
    uint32_t tables;
    struct dp_sample_table {
        char name[DP_TABLE_NAME_MAX + 1];
        uint32_t dim;
        uint64_t count;
        uint64_t *keys; /* mixed, ascending; heap */
    } table[DP_GRAPH_PARAMETERS_MAX];
};
void dp_sample_keys_clear(struct dp_sample_keys *keys);
/* The floats of a sample's rows, table by table. */
size_t dp_sample_keys_floats(const struct dp_sample_keys *keys);
/* Where the rows of a table begin among them. */
size_t dp_sample_keys_first(const struct dp_sample_keys *keys, uint32_t table);
bool dp_sample_keys_same(const struct dp_sample_keys *a, const struct dp_sample_keys *b);
/* DP_DATA, naming the file, unless the tables are those of the graph. */
enum dp_status dp_sample_keys_fit(const struct dp_sample_keys *keys, const struct dp_graph *graph,
                                  const char *path, struct dp_error *err);
/* A file of keys, complete or missing. */
enum dp_status dp_sample_keys_write(const struct dp_sample_keys *keys, const char *path,
                                    struct dp_error *err);
/* Of a file of keys or of samples, into {0}. */
enum dp_status dp_sample_keys_read(const char *path, struct dp_sample_keys *out, struct dp_error *err);

/* What a sample was taken for. The first and the last one of a training are by examples. */
enum dp_sample_by { DP_SAMPLE_BY_TIME, DP_SAMPLE_BY_EXAMPLES };

/* A moment of a training. */
struct dp_sample {
    uint64_t monotonic_ns, wall_ns; /* when its rows had been read; wall: since 1970 */
    uint64_t began_ns;              /* the monotonic time at which the training began; 0: it had not */
    uint64_t pushes, examples;      /* that it had applied by then */
    enum dp_sample_by by;
};
/* The count at which the next sample by examples is due: the next multiple of `each`; UINT64_MAX: none is. */
uint64_t dp_sample_keys_due(const struct dp_sample_keys *keys, uint64_t examples);

struct dp_samples_writer;
/* Replaces the file. keys: lent until close. */
enum dp_status dp_samples_writer_open(const char *path, const struct dp_sample_keys *keys,
                                      struct dp_samples_writer **out, struct dp_error *err);
/* rows: dp_sample_keys_floats. */
enum dp_status dp_samples_writer_append(struct dp_samples_writer *writer, const struct dp_sample *sample,
                                        const float *rows, struct dp_error *err);
uint64_t dp_samples_writer_count(const struct dp_samples_writer *writer);
void dp_samples_writer_close(struct dp_samples_writer **writer); /* accepts NULL inside, leaves NULL */

struct dp_samples_reader;
enum dp_status dp_samples_reader_open(const char *path, struct dp_samples_reader **out, struct dp_error *err);
const struct dp_sample_keys *
dp_samples_reader_keys(const struct dp_samples_reader *reader); /* lent until close */
/* The number of complete frames. */
uint64_t dp_samples_reader_count(const struct dp_samples_reader *reader);
/* rows: dp_sample_keys_floats. */
enum dp_status dp_samples_reader_read(struct dp_samples_reader *reader, uint64_t number,
                                      struct dp_sample *sample, float *rows, struct dp_error *err);
void dp_samples_reader_close(struct dp_samples_reader **reader); /* accepts NULL inside, leaves NULL */

#endif
