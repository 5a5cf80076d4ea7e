/* What the files of 'downpour bench' share: its flags, settled, and all that is measured at one width. Nothing else includes it. */
#ifndef DP_CLI_BENCH_INNER_H
#define DP_CLI_BENCH_INNER_H

#include "deploy/cli/bench_disk.h"
#include "deploy/cli/bench_multiget.h"
#include "deploy/cli/bench_raw.h"
#include "deploy/cli/bench_rows.h"
#include "deploy/cli/bench_server.h"
#include "deploy/cli/bench_show.h"
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
    struct dp_raw *raw[2]; /* tcp, ipc; NULL: nobody needs it */
    char ipc[64];          /* directory of raw's socket; empty: none */
    struct dp_local *local;
};

/* One kind of throughput at one width: what is measured, of which server, and where the numbers of its requests stand. */
struct kind {
    bool push, zipf, bf16;
    uint32_t variant;
    uint64_t number, raw_number, copy_number, disk_number, store_number;
    double last; /* rate of the repeat at hand */
    struct dp_bench_line line;
};

struct place { /* all of one width */
    struct bench *bench;
    uint32_t dim;
    uint64_t rows;
    struct dp_bench_server server[VARIANTS_MAX];
    uint32_t servers;
    struct dp_bench_keys keys[2]; /* uniform, Zipf */
    struct dp_bench_rows work[2];
    struct dp_bench_disk *disk;                    /* NULL: no push is synced */
    struct dp_bench_multiget *store[VARIANTS_MAX]; /* NULL: none is missed */
    struct kind *kind;
    uint32_t kinds;
};

/* bench_flags.c */
extern const struct dp_command dp_bench_command;
const char *dp_bench_flag(const struct bench *b, const char *name);
DP_MUST_USE
enum dp_status dp_bench_settle(struct bench *b, struct dp_error *err);

/* bench_delay.c: round trips of small requests; of cached rows, too, while others miss. */
DP_MUST_USE
enum dp_status dp_bench_latency(struct place *p, struct dp_error *err);
/* The stores are open. */
DP_MUST_USE
enum dp_status dp_bench_beside(struct place *p, struct dp_error *err);

#endif
