/* Bench show: the results of repeats, as a table for people or as JSON lines for scripts. */
#ifndef DP_BENCH_BENCH_SHOW_H
#define DP_BENCH_BENCH_SHOW_H

#include "deploy/bench/bench_cpu.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define DP_BENCH_REPEATS_MAX 99u

struct dp_bench_figure {
    uint32_t n;
    double value[DP_BENCH_REPEATS_MAX];
};

static inline void dp_bench_add(struct dp_bench_figure *figure, double value)
{
    if (figure->n < DP_BENCH_REPEATS_MAX)
        figure->value[figure->n++] = value;
}
double dp_bench_median(const struct dp_bench_figure *figure);
/* (largest - smallest) / median of all repeats. */
double dp_bench_spread(const struct dp_bench_figure *figure);
/* The quantile `at` (0 .. 1) of n values; sorts them. */
double dp_bench_quantile(uint64_t *ns, size_t n, double at);

/* One line of throughput. raw and ratio have one value for each repeat, measured next to `rate`. */
struct dp_bench_line {
    const char *what, *draw, *type;     /* "pull", "uniform", "f32" */
    const char *durability, *transport; /* "machine", "tcp" */
    uint32_t cache;                     /* percent of the rows */
    uint32_t dim;
    uint64_t rows;
    double keys; /* rows of a request, mean */
    uint32_t in_flight;
    struct dp_bench_figure rate, raw, ratio, memcpy_rate;
    struct dp_bench_figure disk, disk_ratio;   /* n 0: not measured */
    struct dp_bench_figure none_ratio;         /* to durability none */
    struct dp_bench_figure store, store_ratio; /* missed rows from the store alone; n 0: not measured */
    struct dp_bench_cpu cpu;                   /* of all repeats */
    uint64_t cpu_rows, misses;                 /* of all repeats */
};
struct dp_bench_delay {
    const char *what, *durability, *transport; /* "pull", "machine", "tcp" */
    uint32_t dim, keys, samples;
    double p50, p99, p999, raw_p50, raw_p99, raw_p999; /* microseconds */
};

struct dp_bench_recovery {
    const char *what, *durability;
    uint32_t dim;
    uint64_t rows, replayed_rows, replayed_bytes;
    double seconds;
};

void dp_bench_head(bool store); /* store: missed rows have a yardstick */
/* cpu: adds a second line with the processor time of each thread. */
void dp_bench_show_line(const struct dp_bench_line *line, bool json, bool cpu);
void dp_bench_show_delay(const struct dp_bench_delay *delay, bool json);
/* bytes 0: not known. record: bytes of one row as stored. */
void dp_bench_show_memory(uint32_t dim, uint64_t rows, uint64_t bytes, uint64_t record, double fill_s,
                          bool json);

void dp_bench_show_recovery(const struct dp_bench_recovery *line, bool json);

#endif
