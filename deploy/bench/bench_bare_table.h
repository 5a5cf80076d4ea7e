/* Bare table: the least that pulls and pushes with Adam need, as a yardstick for the shard's table: open
 * addressing, rows of weights, m and v alone at an alignment of their own, memory asked for well ahead, AVX2.
 * It checks nothing, counts nothing, keeps no lsn and no step, and grows never.
 * Thread    One. Memory: its own, taken when it is made. */
#ifndef DP_BENCH_BENCH_BARE_TABLE_H
#define DP_BENCH_BENCH_BARE_TABLE_H

#include <stdbool.h>
#include <stdint.h>

struct dp_bare_table;

/* False: an x86 processor without AVX2 or FMA. (Others run it as plain C.) */
bool dp_bare_table_runs(void);
uint64_t dp_bare_table_bytes(uint64_t rows, uint32_t dim);
/* rows: so many at most. NULL: no memory. */
struct dp_bare_table *dp_bare_table_new(uint64_t rows, uint32_t dim);
void dp_bare_table_free(struct dp_bare_table **table);

/* mixed: each key once; weights, m and v are 0. */
void dp_bare_table_insert(struct dp_bare_table *table, const uint64_t *mixed, uint32_t n);
/* All keys are there. to, gradients: [n][dim]. */
void dp_bare_table_pull(const struct dp_bare_table *table, const uint64_t *mixed, uint32_t n, float *to);
void dp_bare_table_push(struct dp_bare_table *table, const uint64_t *mixed, uint32_t n,
                        const float *gradients, float rate);

#endif
