/* Shared by the files of 'downpour bench': its parsed flags, and the state of the measurements at one
 * width. Private to them. */
#ifndef DP_BENCH_BENCH_INNER_H
#define DP_BENCH_BENCH_INNER_H

#include "deploy/bench/bench_disk.h"
#include "deploy/bench/bench_raw.h"
#include "deploy/bench/bench_rows.h"
#include "deploy/bench/bench_server.h"
#include "deploy/bench/bench_show.h"
#include "deploy/bench/bench_store.h"
#include "deploy/cli/options.h"

#define DIMS_MAX     16u
#define FLAGS_MAX    32u
#define KINDS        8u /* of throughput of one server */
#define VARIANTS_MAX 12u
#define SEED         UINT64_C(20240229)

struct bench {
    const char *values[FLAGS_MAX];
    uint32_t dim[DIMS_MAX], dims;
    uint64_t rows, keys, journal_bytes;
    uint32_t shards, in_flight, repeats, slice_ms, sets, delays;
    const char *only, *draw, *type;
    bool json, alone, cpu;
    struct dp_bench_server_options variant[VARIANTS_MAX]; /* dim and cache_bytes: by width */
    uint32_t cache[VARIANTS_MAX], variants;               /* cache: percent */
    struct dp_pin pin;
    struct dp_raw *raw[2]; /* tcp, ipc; NULL: not needed */
    char ipc[64];          /* directory of raw's socket; empty: none */
    struct dp_local *local;
    const struct dp_bench_store *store; /* or NULL */
};

/* One kind of throughput at one width: what is measured, on which server, and the next numbers of its
 * requests. */
struct bench_kind {
    bool push, zipf, bf16;
    uint32_t variant;
    uint64_t number, raw_number, copy_number, disk_number, store_number;
    double last; /* rate of the current repeat */
    struct dp_bench_line line;
};

struct bench_place { /* all of one width */
    struct bench *bench;
    uint32_t dim;
    uint64_t rows;
    struct dp_bench_server server[VARIANTS_MAX];
    uint32_t servers;
    struct dp_bench_keys keys[2]; /* uniform, Zipf */
    struct dp_bench_rows work[2];
    struct dp_bench_disk *disk; /* NULL: no push is synced */
    void *store[VARIANTS_MAX];  /* of bench->store; NULL: no misses, or no such yardstick */
    struct bench_kind *kind;
    uint32_t kinds;
};

/* bench_flags.c */
extern const struct dp_command dp_bench_command;
const char *dp_bench_flag(const struct bench *b, const char *name);
enum dp_status dp_bench_settle(struct bench *b, struct dp_error *err);
/* A list of widths; at most DIMS_MAX. */
enum dp_status dp_bench_parse_dims(const char *text, uint32_t *dim, uint32_t *dims, struct dp_error *err);

/* bench_table.c: 'downpour bench table'. argv: what follows "table". */
int dp_bench_table(int argc, char *const *argv);

/* bench_delay.c: round trips of small requests. */
enum dp_status dp_bench_latency(struct bench_place *p, struct dp_error *err);
/* Round trips of cached rows next to another client's misses. The stores are open. */
enum dp_status dp_bench_beside(struct bench_place *p, struct dp_error *err);

#endif
