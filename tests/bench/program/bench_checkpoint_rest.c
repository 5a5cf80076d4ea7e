/* a checkpoint -> 1% of the rows changed, again and again, until RocksDB merges -> a checkpoint -> 1% changed -> a checkpoint
 * Why       How much is written anew depends on whether RocksDB merged its files since the last checkpoint: both are shown. The order
 *           makes the second one's base a fresh one, so that 1% does not set off the next merge. */
#include "tests/bench/program/bench_checkpoint_inner.h"

#include <inttypes.h>
#include <stdlib.h>

#define PART       100u /* 1% */
#define BATCH      16384u
#define TOUCHES    40u
#define ROUNDS_MAX 3u

static enum dp_status push_some(struct checkpoint_run *run, struct dp_keys *keys, const uint64_t *numbers,
                                size_t n, const float *gradients, struct dp_error *err)
{
    const struct dp_push_part part = {.table = run->server.table[0], .keys = keys, .gradients = gradients};
    const struct dp_push_options options = {.rate = 0.001f};
    struct dp_ticket ticket = {0};
    enum dp_status st = dp_keys_set(keys, numbers, n, err);
    if (st == DP_OK)
        st = dp_client_push(run->server.client[0], &options, &part, 1, DP_BENCH_WAIT_MS, &ticket, err);
    if (st == DP_OK)
        st = dp_client_wait(run->server.client[0], &ticket, DP_BENCH_WAIT_MS, NULL, err);
    return st == DP_OK ? dp_bench_server_look(&run->server, err) : st;
}

/* Changes each PART-th row, from one on: keys are mixed, so they are spread over all files. Then waits for rest. */
static enum dp_status touch(struct checkpoint_run *run, uint64_t from, struct dp_error *err)
{
    struct dp_keys *keys = NULL;
    uint64_t *numbers = malloc(BATCH * sizeof *numbers);
    float *gradients = malloc((size_t)BATCH * run->dim * sizeof *gradients);
    size_t n = 0;
    enum dp_status st =
        numbers && gradients ? dp_keys_new(&keys, err) : dp_fail(err, DP_NOMEM, "no memory for a push");
    for (size_t i = 0; st == DP_OK && i < (size_t)BATCH * run->dim; i++)
        gradients[i] = (float)(i % 7 + 1) * 0.001f;
    for (uint64_t key = from % PART; st == DP_OK && key < run->rows; key += PART) {
        numbers[n++] = key;
        if (n < BATCH && key + PART < run->rows)
            continue;
        st = push_some(run, keys, numbers, n, gradients, err);
        n = 0;
    }
    dp_keys_free(&keys);
    free(gradients);
    free(numbers);
    return st == DP_OK ? dp_bench_server_settle(&run->server, err) : st;
}

static enum dp_status count_l0(struct checkpoint_run *run, uint64_t *files, struct dp_error *err)
{
    struct dp_status_report *report = NULL;
    enum dp_status st = dp_bench_server_counters(&run->server, &report, err);
    if (st == DP_OK)
        *files = dp_bench_counter(report, "store_l0_files");
    dp_client_status_free(&report);
    return st;
}

static void show(const struct checkpoint_run *run, const char *what, const char *words,
                 const struct dp_checkpoint_made *made)
{
    double share = (double)made->bytes_new / (double)made->bytes;
    if (run->json)
        printf("{\"measure\":\"checkpoint_incremental\",\"after\":\"%s\",\"bytes\":%" PRIu64
               ",\"bytes_new\":%" PRIu64 ",\"share\":%.4f,\"took_ms\":%" PRIu64 "}\n",
               what, made->bytes, made->bytes_new, share, made->took_ms);
    else
        printf("%s: %.1f of %.1f MB are new, %.2f%% (%.1f s)\n", words, (double)made->bytes_new / 1e6,
               (double)made->bytes / 1e6, 100 * share, (double)made->took_ms / 1e3);
    (void)fflush(stdout);
}

/* *merged: RocksDB merged meanwhile. */
static enum dp_status touch_and_look(struct checkpoint_run *run, uint64_t from, bool *merged,
                                     struct dp_error *err)
{
    uint64_t before = 0, after = 0;
    enum dp_status st = count_l0(run, &before, err);
    if (st == DP_OK)
        st = touch(run, from, err);
    if (st == DP_OK)
        st = count_l0(run, &after, err);
    *merged = after < before;
    return st;
}

enum dp_status dp_bench_checkpoint_rest(struct checkpoint_run *run, struct dp_error *err)
{
    struct dp_checkpoint_made made;
    bool merged = false;
    uint64_t from = 0;
    enum dp_status st = dp_bench_server_settle(&run->server, err);
    if (st == DP_OK)
        st = dp_bench_checkpoint_make(run, &made, err);
    for (uint32_t i = 0; st == DP_OK && !run->quick && !merged && i < TOUCHES; i++)
        st = touch_and_look(run, from++, &merged, err);
    if (st == DP_OK)
        st = dp_bench_checkpoint_make(run, &made, err);
    if (st == DP_OK && merged)
        show(run, "merge", "incremental, after RocksDB merged its files", &made);
    merged = true;
    for (uint32_t i = 0; st == DP_OK && merged && i < ROUNDS_MAX; i++) {
        st = touch_and_look(run, from++, &merged, err);
        if (st == DP_OK)
            st = dp_bench_checkpoint_make(run, &made, err);
    }
    if (st == DP_OK)
        show(run, merged ? "change_and_merge" : "change",
             merged ? "incremental, after 1% of the rows changed and RocksDB merged its files"
                    : "incremental, after 1% of the rows changed",
             &made);
    return st;
}
