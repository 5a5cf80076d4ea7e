#include "deploy/bench/bench_disk.h"

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define FILE_BYTES ((uint64_t)512 << 20)
#define PAGE       4096u

struct dp_bench_disk {
    int file;
    char path[1100];
    unsigned char *bytes;
    size_t bytes_max;
    uint64_t at;
    const struct dp_raw_shape *shapes;
    uint32_t count;
    uint64_t ticket[DP_BENCH_IN_FLIGHT_MAX];
    pthread_t thread;
    bool runs;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t written, synced; /* appends; the rest too is guarded by the lock */
    bool stop;
    int failed; /* errno */
};

static void *sync_all(void *context)
{
    struct dp_bench_disk *disk = context;
    (void)pthread_mutex_lock(&disk->lock);
    while (!disk->stop) {
        if (disk->written == disk->synced) {
            (void)pthread_cond_wait(&disk->changed, &disk->lock);
            continue;
        }
        uint64_t upto = disk->written;
        (void)pthread_mutex_unlock(&disk->lock);
        int failed = fdatasync(disk->file) == 0 ? 0 : errno;
        (void)pthread_mutex_lock(&disk->lock);
        disk->synced = upto;
        disk->failed = failed ? failed : disk->failed;
        (void)pthread_cond_broadcast(&disk->changed);
    }
    (void)pthread_mutex_unlock(&disk->lock);
    return NULL;
}

static bool write_all(int file, const unsigned char *bytes, size_t size, uint64_t at)
{
    for (size_t done = 0; done < size;) {
        ssize_t n = pwrite(file, bytes + done, size - done, (off_t)(at + done));
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        done += (size_t)n;
    }
    return true;
}

enum dp_status dp_bench_disk_start(const char *directory, size_t bytes_max, struct dp_bench_disk **out,
                                   struct dp_error *err)
{
    struct dp_bench_disk *disk = calloc(1, sizeof *disk);
    enum dp_status st = DP_OK;
    *out = NULL;
    if (!disk)
        return dp_fail(err, DP_NOMEM, "no memory for a bare log");
    disk->bytes_max = (bytes_max + PAGE - 1) / PAGE * PAGE;
    disk->bytes = malloc(disk->bytes_max);
    (void)pthread_mutex_init(&disk->lock, NULL);
    (void)pthread_cond_init(&disk->changed, NULL);
    (void)snprintf(disk->path, sizeof disk->path, "%s/bare-log", directory);
    disk->file = open(disk->path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    bool ok = disk->bytes && disk->file >= 0;
    if (ok)
        memset(disk->bytes, 1, disk->bytes_max);
    for (uint64_t at = 0; ok && at < FILE_BYTES + disk->bytes_max; at += disk->bytes_max)
        ok = write_all(disk->file, disk->bytes, disk->bytes_max, at);
    if (!ok || fdatasync(disk->file) != 0) {
        st = dp_fail(err, DP_IO, "cannot write a bare log at '%s': %s", disk->path, strerror(errno));
    } else {
        sigset_t all, before;
        (void)sigfillset(&all);
        (void)pthread_sigmask(SIG_SETMASK, &all, &before);
        disk->runs = pthread_create(&disk->thread, NULL, sync_all, disk) == 0;
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        st = disk->runs ? DP_OK : dp_fail(err, DP_NOMEM, "cannot start a thread for a bare log");
    }
    if (st != DP_OK)
        dp_bench_disk_stop(&disk);
    *out = disk;
    return st;
}

void dp_bench_disk_stop(struct dp_bench_disk **disk)
{
    struct dp_bench_disk *d = *disk;
    *disk = NULL;
    if (!d)
        return;
    if (d->runs) {
        (void)pthread_mutex_lock(&d->lock);
        d->stop = true;
        (void)pthread_cond_broadcast(&d->changed);
        (void)pthread_mutex_unlock(&d->lock);
        (void)pthread_join(d->thread, NULL);
    }
    if (d->file >= 0) {
        (void)close(d->file);
        (void)unlink(d->path);
    }
    (void)pthread_cond_destroy(&d->changed);
    (void)pthread_mutex_destroy(&d->lock);
    free(d->bytes);
    free(d);
}

static enum dp_status issue(void *self, uint32_t slot, uint64_t n, struct dp_error *err)
{
    struct dp_bench_disk *disk = self;
    const struct dp_raw_shape *shape = &disk->shapes[n % disk->count];
    size_t size = (shape->keys_bytes + shape->values_bytes + PAGE - 1) / PAGE * PAGE;
    if (disk->at + size > FILE_BYTES)
        disk->at = 0;
    if (!write_all(disk->file, disk->bytes, size, disk->at))
        return dp_fail(err, DP_IO, "bare log: %s", strerror(errno));
    disk->at += size;
    (void)pthread_mutex_lock(&disk->lock);
    disk->ticket[slot] = ++disk->written;
    (void)pthread_cond_broadcast(&disk->changed);
    (void)pthread_mutex_unlock(&disk->lock);
    return DP_OK;
}

static enum dp_status finish(void *self, uint32_t slot, struct dp_error *err)
{
    struct dp_bench_disk *disk = self;
    (void)pthread_mutex_lock(&disk->lock);
    while (disk->synced < disk->ticket[slot] && !disk->failed)
        (void)pthread_cond_wait(&disk->changed, &disk->lock);
    int failed = disk->failed;
    (void)pthread_mutex_unlock(&disk->lock);
    return failed ? dp_fail(err, DP_IO, "bare log: %s", strerror(failed)) : DP_OK;
}

static uint64_t rows(const void *self, uint64_t n)
{
    const struct dp_bench_disk *disk = self;
    return disk->shapes[n % disk->count].rows;
}

struct dp_load dp_bench_disk_load(struct dp_bench_disk *disk, const struct dp_raw_shape *shapes,
                                  uint32_t count)
{
    disk->shapes = shapes;
    disk->count = count;
    return (struct dp_load){.issue = issue, .finish = finish, .rows = rows, .self = disk};
}
