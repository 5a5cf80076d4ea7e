/* Recovery bench: how long a store with many rows takes to open, clean and after a crash, and to replay its journal.
 *     recovery_bench DIR [rows] [row updates in the journal] [cache MiB] [dim]
 * One table, Adam. Records of 10,000 rows, keys uniform over the rows. Beside it, in the same run: all rows visited in
 * order, and the bytes of the rows that the journal names copied in memory. The directory must be new; it is left. */
#include "common/env/disk.h"
#include "common/model/init.h"
#include "common/model/mix.h"
#include "common/model/row.h"
#include "server/durable/table_mark.h"
#include "server/journal/record.h"
#include "server/shard/shard.h"
#include "server/store/rocks_store.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define PORTION 20000u
#define RECORD  10000u

struct bench {
    struct dp_table_spec spec;
    const char *directory;
    char journal[1024];
    uint64_t rows, updates, cache_bytes, journal_bytes, random;
    struct dp_clock clock;
    struct dp_store store;
    struct dp_disk disk;
};

static void check(enum dp_status st, const struct dp_error *err)
{
    if (st == DP_OK)
        return;
    (void)fprintf(stderr, "recovery_bench: %s\n", err->text);
    exit(2);
}

static double seconds(const struct bench *bench, uint64_t since_ns)
{
    return (double)(dp_clock_ns(&bench->clock) - since_ns) / 1e9;
}

/* All threads' processor time: what a loaded machine does not change much. */
static double processor(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &t);
    return (double)t.tv_sec + (double)t.tv_nsec * 1e-9;
}

static void *take(size_t bytes)
{
    void *memory = calloc(1, bytes);
    if (!memory)
        exit(2);
    return memory;
}

static void wake(void *context) {}

static void drop(void *context, const struct dp_peer *to, struct dp_message **message)
{
    dp_message_free(message);
}

static uint64_t key_of(const struct bench *bench, uint64_t i)
{
    return i * (UINT64_MAX / bench->rows);
}

static uint64_t draw(struct bench *bench)
{
    uint64_t z = bench->random += 0x9e3779b97f4a7c15u;
    return dp_mix(z);
}

static bool open_store(struct bench *bench)
{
    bool recovers = false;
    struct dp_error err;
    struct dp_rocks_store_options options = {.directory = bench->directory,
                                             .cluster = 1,
                                             .generation = 1,
                                             .range = dp_range_of_shard(0, 1),
                                             .journaled = true,
                                             .recovers = &recovers,
                                             .wake = wake};
    check(dp_rocks_store_open(&options, &bench->store, &err), &err);
    check(dp_rocks_store_begin(&bench->store, &options, &err), &err);
    return recovers;
}

static void finish(struct bench *bench, struct dp_store_job *job)
{
    if (bench->store.submit(bench->store.self, job) != DP_OK)
        exit(2);
    while (!bench->store.completed(bench->store.self))
        bench->store.wait(bench->store.self);
    check(job->status, &job->error);
}

static void write_rows(struct bench *bench)
{
    size_t row_bytes = dp_row_bytes(&bench->spec);
    struct dp_store_key *keys = take(PORTION * sizeof *keys);
    void **rows = take(PORTION * sizeof *rows);
    uint32_t *lengths = take(PORTION * sizeof *lengths);
    char *bytes = take(PORTION * row_bytes);
    for (uint64_t from = 0; from < bench->rows; from += PORTION) {
        uint32_t n = bench->rows - from < PORTION ? (uint32_t)(bench->rows - from) : PORTION;
        for (uint32_t i = 0; i < n; i++) {
            rows[i] = bytes + i * row_bytes;
            keys[i] = (struct dp_store_key){dp_table_id(bench->spec.name), key_of(bench, from + i)};
            lengths[i] = (uint32_t)row_bytes;
            dp_init_row(&bench->spec, dp_unmix(keys[i].mixed), rows[i]);
            dp_row_set_lsn(rows[i], 1);
        }
        struct dp_store_job job = {
            .kind = DP_STORE_WRITE, .count = n, .keys = keys, .rows = rows, .row_bytes = lengths};
        finish(bench, &job);
    }
    free(keys), free(rows), free(lengths), free(bytes);
}

static void write_marks(struct bench *bench)
{
    char table[DP_TABLE_MARK_BYTES], lsn[8] = {1};
    struct dp_store_mark marks[2] = {dp_table_mark_encode(&bench->spec, bench->rows, table),
                                     {.key = "lsn", .key_bytes = 3, .value = lsn, .value_bytes = 8}};
    struct dp_store_job job = {.kind = DP_STORE_MARKS, .count = 2, .marks = marks};
    finish(bench, &job);
}

static void close_store(struct bench *bench, bool clean)
{
    struct dp_error err;
    if (clean)
        check(dp_rocks_store_mark_clean(&bench->store, &err), &err);
    bench->store.close(bench->store.self);
}

static struct dp_journal_options journal_options(struct bench *bench)
{
    return (struct dp_journal_options){.disk = &bench->disk,
                                       .durability = DP_DURABILITY_MACHINE,
                                       .budget_bytes = bench->journal_bytes,
                                       .commit_thread = true,
                                       .wake = wake};
}

static struct dp_shard *open_shard(struct bench *bench, bool recovers)
{
    struct dp_shard *shard = NULL;
    struct dp_error err;
    struct dp_shard_options options = {.shards = 1,
                                       .cluster = 1,
                                       .generation = 1,
                                       .boot = 1,
                                       .cache_bytes = bench->cache_bytes,
                                       .salt = 0x1234567u,
                                       .store = &bench->store,
                                       .journaled = true,
                                       .recovers = recovers,
                                       .journal = journal_options(bench),
                                       .clock = bench->clock,
                                       .reply = drop};
    check(dp_disk_open(bench->journal, &bench->disk, &err), &err);
    check(dp_shard_open(&options, &shard, &err), &err);
    return shard;
}

static uint64_t counter(const struct dp_shard *shard, const char *name)
{
    struct dp_counter counters[DP_COUNTERS_MAX];
    uint32_t n = dp_shard_counters(shard, counters);
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(counters[i].name, name) == 0)
            return counters[i].value;
    return 0;
}

static void drain(struct bench *bench, struct dp_shard *shard, struct dp_error *err)
{
    enum dp_status st;
    dp_shard_drain(shard);
    do {
        if (!dp_shard_turn(shard))
            bench->store.wait(bench->store.self);
        st = dp_shard_drained(shard, err);
    } while (st == DP_AGAIN);
    check(st, err);
}

static void close_shard(struct bench *bench, struct dp_shard *shard)
{
    dp_shard_close(&shard);
    close_store(bench, true);
    dp_disk_close(&bench->disk);
}

static int ascending(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Into the journal behind what is there, as a shard would have appended it. */
static void append(struct bench *bench, uint64_t after, uint64_t incarnation)
{
    struct dp_error err;
    struct dp_journal *journal = NULL;
    struct dp_journal_options options = journal_options(bench);
    uint64_t *keys = take(RECORD * sizeof *keys), lsn = 0;
    float *gradients = take((size_t)RECORD * bench->spec.dim * 4);
    struct dp_request *push = take(sizeof *push);
    for (uint32_t i = 0; i < RECORD * bench->spec.dim; i++)
        gradients[i] = 0.001f;
    options.replay_after = after;
    options.incarnation = incarnation;
    check(dp_disk_open(bench->journal, &bench->disk, &err), &err);
    check(dp_journal_open(&options, &journal, &err), &err);
    for (uint64_t done = 0; done < bench->updates; done += RECORD) {
        char head[DP_RECORD_HEAD_MAX];
        struct dp_record record = {.kind = DP_RECORD_PUSH, .rate = 0.01f, .dims = {bench->spec.dim}};
        struct dp_journal_piece pieces[DP_RECORD_PIECES_MAX];
        uint32_t n = 0;
        for (uint32_t i = 0; i < RECORD; i++)
            keys[i] = key_of(bench, draw(bench) % bench->rows);
        qsort(keys, RECORD, sizeof keys[0], ascending);
        for (uint32_t i = 0; i < RECORD; i++)
            if (i == 0 || keys[i] != keys[n - 1])
                keys[n++] = keys[i];
        push->sections = 1;
        push->stream = 1;
        push->number = done / RECORD + 1;
        push->rate = 0.01f;
        push->section[0] = (struct dp_section){.table = dp_table_id(bench->spec.name),
                                               .rows = n,
                                               .keys = keys,
                                               .values = gradients,
                                               .value_bytes = (size_t)n * bench->spec.dim * 4};
        uint32_t count = dp_record_encode(&record, push, head, pieces);
        enum dp_status st;
        while ((st = dp_journal_append(journal, pieces, count, &lsn, &err)) == DP_AGAIN)
            dp_journal_commit(journal);
        check(st, &err);
        dp_journal_commit(journal);
    }
    dp_journal_close(&journal);
    dp_disk_close(&bench->disk);
    free(keys), free(gradients), free(push);
}

static enum dp_status visit(void *context, struct dp_store_key key, const void *row, size_t row_bytes,
                            struct dp_error *err)
{
    *(uint64_t *)context += row_bytes;
    return DP_OK;
}

static void measure_baselines(struct bench *bench)
{
    struct dp_error err;
    uint64_t bytes = 0, row_bytes = dp_row_bytes(&bench->spec), began = dp_clock_ns(&bench->clock);
    double cpu = processor();
    check(bench->store.visit_rows(bench->store.self, visit, &bytes, &err), &err);
    double took = seconds(bench, began);
    printf("all rows visited in order: %.3f s, %.2f M rows/s (processor %.3f s)\n", took,
           (double)bench->rows / took / 1e6, processor() - cpu);
    char *from = take(256u << 20), *to = take(256u << 20);
    size_t places = (256u << 20) / row_bytes;
    began = dp_clock_ns(&bench->clock);
    cpu = processor();
    for (uint64_t i = 0; i < bench->updates; i++)
        memcpy(to + draw(bench) % places * row_bytes, from + draw(bench) % places * row_bytes, row_bytes);
    took = seconds(bench, began);
    printf("as many rows copied from and to random places: %.3f s (processor %.3f s)\n", took,
           processor() - cpu);
    free(from), free(to);
}

static void measure_clean(struct bench *bench)
{
    struct dp_error err;
    uint64_t began = dp_clock_ns(&bench->clock);
    bool recovers = open_store(bench);
    double store = seconds(bench, began);
    struct dp_shard *shard = open_shard(bench, recovers);
    printf("opened, clean: %.3f s (RocksDB %.3f s)\n", seconds(bench, began), store);
    drain(bench, shard, &err);
    close_shard(bench, shard);
    (void)open_store(bench);
    measure_baselines(bench);
    close_store(bench, true);
}

static void measure_crashed(struct bench *bench, const char *what)
{
    struct dp_error err;
    uint64_t began = dp_clock_ns(&bench->clock);
    double cpu = processor();
    bool recovers = open_store(bench);
    double store = seconds(bench, began);
    if (!recovers)
        exit(2);
    struct dp_shard *shard = open_shard(bench, recovers);
    double opened = seconds(bench, began);
    cpu = processor() - cpu;
    uint64_t rows = counter(shard, "rows_replayed"), bytes = counter(shard, "bytes_replayed");
    printf("opened, crashed, %s: %.3f s (RocksDB %.3f s, processor %.3f s): %" PRIu64
           " row updates, %.0f MB of journal, "
           "%.2f M rows/s, %" PRIu64 " rows read, %" PRIu64 " written back\n",
           what, opened, store, cpu, rows, (double)bytes / 1e6, (double)rows / (opened - store) / 1e6,
           counter(shard, "rows_read"), counter(shard, "rows_written_back"));
    while (counter(shard, "tables_uncounted") > 0) {
        bench->store.wait(bench->store.self);
        (void)dp_shard_turn(shard);
    }
    printf("counted: %.3f s after it began to open\n", seconds(bench, began));
    began = dp_clock_ns(&bench->clock);
    drain(bench, shard, &err);
    printf("drained: %.3f s\n", seconds(bench, began));
    close_shard(bench, shard);
}

static uint64_t number(int argc, char **argv, int at, uint64_t otherwise)
{
    return argc > at ? strtoull(argv[at], NULL, 10) : otherwise;
}

int main(int argc, char **argv)
{
    struct bench bench = {.random = 1, .clock = dp_clock_real(), .journal_bytes = (uint64_t)6 << 30};
    if (argc < 2) {
        (void)fputs("recovery_bench DIR [rows] [updates] [cache MiB] [dim]\n", stderr);
        return 2;
    }
    bench.directory = argv[1];
    bench.rows = number(argc, argv, 2, 1000000);
    bench.updates = number(argc, argv, 3, 1000000);
    bench.cache_bytes = number(argc, argv, 4, 8192) << 20;
    bench.spec.dim = (uint32_t)number(argc, argv, 5, 16);
    bench.spec.optimizer = dp_optimizer_defaults(DP_OPT_ADAM);
    (void)snprintf(bench.spec.name, sizeof bench.spec.name, "t");
    (void)snprintf(bench.journal, sizeof bench.journal, "%s/journal", bench.directory);
    setvbuf(stdout, NULL, _IOLBF, 0);
    uint64_t began = dp_clock_ns(&bench.clock);
    (void)open_store(&bench);
    write_rows(&bench);
    write_marks(&bench);
    close_store(&bench, true);
    printf("%" PRIu64 " rows of %zu bytes written in %.1f s\n", bench.rows, dp_row_bytes(&bench.spec),
           seconds(&bench, began));
    measure_clean(&bench);
    (void)open_store(&bench);
    close_store(&bench, false); /* as after a crash: open, with a journal */
    measure_crashed(&bench, "nothing to replay");
    began = dp_clock_ns(&bench.clock);
    append(&bench, 1, 10);
    printf("%" PRIu64 " row updates appended in %.1f s\n", bench.updates, seconds(&bench, began));
    (void)open_store(&bench);
    close_store(&bench, false);
    measure_crashed(&bench, "journal to replay");
    return 0;
}
