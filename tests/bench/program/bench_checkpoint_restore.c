/* a checkpoint -> stop, digest -> (copy, restore onto the same shards) * repeats -> (scan, restore onto 3) * repeats
 *     -> serve the 3, a checkpoint -> (scan, restore onto 1) * repeats; after each layout: digest
 * Why       A yardstick and a restore alternate, and both begin with files that are not in the page cache. */
#include "tests/bench/program/bench_checkpoint_inner.h"

#include "deploy/run/ports.h"
#include "server/checkpoint/listing.h"
#include "server/checkpoint/manifest.h"
#include "server/inspect/inspect_view.h"

#include "common/env/installed.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define STOP_MS    120000u
#define LOOK_MS    50u
#define PART_BYTES ((size_t)1 << 20)

/* One layout that the last checkpoint is restored onto. */
struct checkpoint_layout {
    struct checkpoint_run *run;
    const char *name;    /* "same" */
    uint32_t shards, of; /* of: those of the checkpoint */
    const char *from;    /* name of the store that is scanned */
    struct dp_checkpoint_path checkpoint;
    struct dp_manifest manifest;
    char digest[DP_DIGEST_TEXT];
    struct dp_bench_figure seconds, yardstick, ratio;
};

static double seconds_since(uint64_t ns)
{
    return (double)(dp_bench_now_ns() - ns) / 1e9;
}

/* ---- files */

static int drop_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
    int fd = type == FTW_F ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (fd >= 0) {
        (void)fdatasync(fd); /* pages that are not written stay */
        (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
        (void)close(fd);
    }
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int type, struct FTW *where)
{
    return remove(path);
}

static void remove_all(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS | FTW_MOUNT);
}

/* What is read next comes from the disk. */
static enum dp_status drop_caches(const struct checkpoint_run *run, struct dp_error *err)
{
    return nftw(run->server.folder.path, drop_one, 16, FTW_PHYS | FTW_MOUNT) == 0
               ? DP_OK
               : dp_fail(err, DP_IO, "%s: %s", run->server.folder.path, strerror(errno));
}

static bool put_all(int to, const char *bytes, size_t size)
{
    for (ssize_t n = 0; size > 0; bytes += n, size -= (size_t)n)
        if ((n = write(to, bytes, size)) < 0)
            return false;
    return true;
}

static enum dp_status copy_file(const char *from, const char *to, char *part, struct dp_error *err)
{
    int in = open(from, O_RDONLY | O_CLOEXEC), out = open(to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    bool good = in >= 0 && out >= 0;
    for (ssize_t n = 1; good && n != 0;) {
        n = read(in, part, PART_BYTES);
        good = n >= 0 && put_all(out, part, (size_t)n);
    }
    good = good && fsync(out) == 0;
    enum dp_status st = good ? DP_OK : dp_fail(err, DP_IO, "copy %s to %s: %s", from, to, strerror(errno));
    if (in >= 0)
        (void)close(in);
    if (out >= 0)
        (void)close(out);
    return st;
}

/* ---- yardsticks */

static enum dp_status copy_shard(const struct checkpoint_layout *l, const struct dp_manifest_shard *shard,
                                 const char *to, char *part, uint32_t *number, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (size_t i = 0; st == DP_OK && i < shard->files.count + shard->tail.files.count; i++) {
        struct dp_checkpoint_path from, path;
        bool tail = i >= shard->files.count;
        const struct dp_manifest_file *file =
            tail ? &shard->tail.files.file[i - shard->files.count] : &shard->files.file[i];
        st = tail ? dp_checkpoint_path(&from, err, "%s/tail-%04" PRIu32 "/%s", l->checkpoint.text,
                                       shard->index, file->name)
                  : dp_checkpoint_path_pool(l->run->directory, shard->store, file->name, file->checksum,
                                            &from, err);
        if (st == DP_OK)
            st = dp_checkpoint_path(&path, err, "%s/%" PRIu32, to, (*number)++);
        if (st == DP_OK)
            st = copy_file(from.text, path.text, part, err);
    }
    return st;
}

/* All files of the checkpoint's stores, as `cp` and a sync of each would. */
static enum dp_status copy(struct checkpoint_layout *l, const char *to, struct dp_error *err)
{
    uint32_t number = 0;
    char *part = malloc(PART_BYTES);
    enum dp_status st = part ? DP_OK : dp_fail(err, DP_NOMEM, "no memory to copy");
    for (uint32_t i = 0; st == DP_OK && i < l->manifest.shards; i++)
        st = copy_shard(l, &l->manifest.shard[i], to, part, &number, err);
    free(part);
    return st;
}

static enum dp_status scan(struct checkpoint_layout *l, const char *to, struct dp_error *err)
{
    char store[DP_PATH_MAX + 1];
    uint64_t rows = 0;
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; st == DP_OK && i < l->of; i++) {
        st = dp_folder_path(&l->run->server.folder, store, err, "store/%s/shard-%04" PRIu32, l->from, i);
        if (st == DP_OK)
            st = l->run->store->scan(store, to, &rows, err);
    }
    return st == DP_OK && rows != l->run->rows
               ? dp_fail(err, DP_DATA, "%" PRIu64 " rows were scanned of %" PRIu64, rows, l->run->rows)
               : st;
}

static enum dp_status measure_yardstick(struct checkpoint_layout *l, struct dp_error *err)
{
    char to[DP_PATH_MAX + 1];
    bool same = l->shards == l->of;
    if (!same && !l->run->store)
        return DP_OK;
    enum dp_status st = dp_folder_path(&l->run->server.folder, to, err, "yardstick");
    if (st == DP_OK && mkdir(to, 0777) != 0)
        st = dp_fail(err, DP_IO, "%s: %s", to, strerror(errno));
    if (st == DP_OK)
        st = drop_caches(l->run, err);
    uint64_t began = dp_bench_now_ns();
    if (st == DP_OK)
        st = same ? copy(l, to, err) : scan(l, to, err);
    dp_bench_add(&l->yardstick, seconds_since(began));
    remove_all(to);
    return st;
}

/* ---- restores */

static enum dp_status await_process(struct checkpoint_run *run, struct dp_error *err)
{
    while (dp_local_running(run->local, DP_LOCAL_WORKER) > 0 && !dp_local_failed(run->local) &&
           !dp_local_signal(run->local))
        dp_local_wait(run->local, LOOK_MS);
    return dp_bench_server_look(&run->server, err);
}

/* From its store's name and shards to a cluster file of its own, which the server starts with from now on. */
static enum dp_status become(const struct checkpoint_layout *l, struct dp_error *err)
{
    struct dp_bench_server *server = &l->run->server;
    struct dp_cluster *cluster = server->cluster;
    server->options.shards = cluster->server[0].shards = l->shards;
    enum dp_status st = dp_folder_path(&server->folder, cluster->server[0].store, err, "store/%s", l->name);
    if (st == DP_OK)
        st = dp_ports_choose(cluster, 0, err);
    return st == DP_OK ? dp_cluster_write(cluster, server->folder.conf, err) : st;
}

static enum dp_status restore(struct checkpoint_layout *l, struct dp_error *err)
{
    char program[DP_PATH_MAX + 1], log[DP_PATH_MAX + 1];
    struct checkpoint_run *run = l->run;
    const char *const argv[] = {program,    "--cluster", run->server.folder.conf, "--server",
                                "0",        "--restore", l->checkpoint.text,      "--history",
                                "downpour", NULL};
    remove_all(run->server.cluster->server[0].store);
    enum dp_status st = dp_installed_program("downpour-server", program, sizeof program, err);
    if (st == DP_OK)
        st = dp_folder_path(&run->server.folder, log, err, "log/restore.log");
    if (st == DP_OK)
        st = drop_caches(run, err);
    uint64_t began = dp_bench_now_ns();
    if (st == DP_OK)
        st = dp_local_start(run->local, DP_LOCAL_WORKER, "the restore", argv, log, -1, err);
    if (st == DP_OK)
        st = await_process(run, err);
    dp_bench_add(&l->seconds, seconds_since(began));
    return st;
}

/* The digest of the rows in the shards' stores, which were closed. */
static enum dp_status digest_of(struct checkpoint_run *run, const char *name, uint32_t shards,
                                char out[DP_DIGEST_TEXT], struct dp_error *err)
{
    const struct dp_inspect_view_options how = {.digest = true};
    struct dp_inspect_view view[DP_BENCH_SHARDS_MAX];
    char store[DP_PATH_MAX + 1];
    size_t tables = 0;
    uint32_t n = 0;
    enum dp_status st = DP_OK;
    for (; st == DP_OK && n < shards; n += st == DP_OK) {
        st = dp_folder_path(&run->server.folder, store, err, "store/%s/shard-%04" PRIu32, name, n);
        if (st == DP_OK)
            st = dp_inspect_view_gather(store, &how, &view[n], err);
        if (st == DP_OK && (view[n].damages > 0 || !view[n].complete))
            st = dp_fail(err, DP_CORRUPT, "%s: not all of its rows can be read", store);
    }
    struct dp_digest_table *sum = st == DP_OK ? dp_inspect_view_sum(view, n, &tables) : NULL;
    const struct dp_digest all = dp_digest_of_all(sum, tables);
    dp_digest_text(&all, out);
    free(sum);
    while (n > 0)
        dp_inspect_view_clear(&view[--n]);
    return st;
}

static enum dp_status stop_server(struct checkpoint_run *run, struct dp_error *err)
{
    return dp_local_stop(run->local, DP_LOCAL_SERVER, STOP_MS) == DP_OK
               ? DP_OK
               : dp_fail(err, DP_IO, "the server did not stop cleanly");
}

/* Its rows are in the store alone once it was served and stopped. */
static enum dp_status serve_once(struct checkpoint_run *run, struct dp_error *err)
{
    uint64_t ns;
    enum dp_status st = dp_bench_server_revive(&run->server, &ns, err);
    return st == DP_OK ? stop_server(run, err) : st;
}

static enum dp_status open_checkpoint(struct checkpoint_layout *l, struct dp_error *err)
{
    struct dp_checkpoint_path directory, manifest;
    uint32_t number = 0;
    enum dp_status st = dp_checkpoint_find(l->run->directory, &directory, &number, err);
    if (st == DP_OK)
        st = dp_checkpoint_path_of(directory.text, number, &l->checkpoint, err);
    if (st == DP_OK)
        st = dp_checkpoint_path(&manifest, err, "%s/" DP_MANIFEST_NAME, l->checkpoint.text);
    return st == DP_OK ? dp_manifest_read(manifest.text, &l->manifest, err) : st;
}

static void show(const struct checkpoint_layout *l, bool equal)
{
    double took = dp_bench_median(&l->seconds), yardstick = dp_bench_median(&l->yardstick);
    double ratio = dp_bench_median(&l->ratio), rate = (double)l->run->rows / took;
    bool same = l->shards == l->of;
    if (l->run->json) {
        printf("{\"measure\":\"checkpoint_restore\",\"layout\":\"%s\",\"of_shards\":%" PRIu32
               ",\"shards\":%" PRIu32 ",\"rows\":%" PRIu64 ",\"bytes\":%" PRIu64
               ",\"seconds\":%.3f,\"rows_per_s\":%.0f,\"digest_equal\":%s",
               l->name, l->of, l->shards, l->run->rows, l->manifest.bytes, took, rate,
               equal ? "true" : "false");
        if (l->ratio.n > 0)
            printf(",\"yardstick\":\"%s\",\"yardstick_seconds\":%.3f,\"of_yardstick\":%.3f",
                   same ? "copy" : "scan", yardstick, ratio);
        printf("}\n");
    } else {
        printf("restored %" PRIu32 " shards onto %" PRIu32 ": %.2f s, %.2f M rows/s, %.2f GB/s; ", l->of,
               l->shards, took, rate / 1e6, (double)l->manifest.bytes / took / 1e9);
        if (l->ratio.n > 0)
            printf("%s: %.2f s, ratio %.2f; ",
                   same ? "a copy of the same bytes" : "a scan beside SstFileWriter", yardstick, ratio);
        printf("digests %s\n", equal ? "equal" : "DIFFER");
    }
    (void)fflush(stdout);
}

static enum dp_status measure_layout(struct checkpoint_layout *l, const char *digest, struct dp_error *err)
{
    enum dp_status st = open_checkpoint(l, err);
    if (st == DP_OK)
        st = become(l, err);
    for (uint32_t i = 0; st == DP_OK && i < l->run->repeats; i++) {
        st = measure_yardstick(l, err);
        if (st == DP_OK)
            st = restore(l, err);
        if (l->yardstick.n > 0)
            dp_bench_add(&l->ratio, l->yardstick.value[i] / l->seconds.value[i]);
    }
    if (st == DP_OK)
        st = serve_once(l->run, err);
    if (st == DP_OK)
        st = digest_of(l->run, l->name, l->shards, l->digest, err);
    if (st == DP_OK)
        show(l, strcmp(l->digest, digest) == 0);
    if (st == DP_OK && strcmp(l->digest, digest) != 0)
        st = dp_fail(err, DP_DATA, "the digest of '%s' is %s, and was %s", l->name, l->digest, digest);
    dp_manifest_clear(&l->manifest);
    return st;
}

enum dp_status dp_bench_checkpoint_restore(struct checkpoint_run *run, struct dp_error *err)
{
    char digest[DP_DIGEST_TEXT];
    uint64_t ns;
    struct dp_checkpoint_made made;
    uint32_t shards = run->options.shards, other = shards == 3 ? 2 : 3;
    struct checkpoint_layout
        same = {.run = run, .name = "same", .shards = shards, .of = shards, .from = "server-0"},
        more = {.run = run, .name = "other", .shards = other, .of = shards, .from = "same"},
        one = {.run = run, .name = "one", .shards = 1, .of = other, .from = "other"};
    enum dp_status st = run->quick ? DP_OK : dp_bench_server_settle(&run->server, err);
    if (st == DP_OK)
        st = dp_bench_checkpoint_make(run, &made, err);
    if (st == DP_OK)
        st = stop_server(run, err);
    if (st == DP_OK)
        st = digest_of(run, "server-0", shards, digest, err);
    if (st == DP_OK)
        st = measure_layout(&same, digest, err);
    if (st == DP_OK)
        st = measure_layout(&more, digest, err);
    if (st == DP_OK)
        st = dp_bench_server_revive(&run->server, &ns, err);
    if (st == DP_OK)
        st = dp_bench_checkpoint_make(run, &made, err);
    if (st == DP_OK)
        st = stop_server(run, err);
    return st == DP_OK ? measure_layout(&one, digest, err) : st;
}
