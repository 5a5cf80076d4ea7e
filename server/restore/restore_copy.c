#include "server/restore/restore_copy.h"

#include "common/base/log.h"
#include "common/env/clock.h"
#include "server/restore/restore_marks.h"
#include "server/store/repair/rocks_adopt.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAY_NS  UINT64_C(10000000000)
#define THREADS 4u /* the caller's among them: while some compute, others wait for the disk */

/* ---- files */

static enum dp_status make_directory(const char *path, struct dp_error *err)
{
    if (mkdir(path, 0777) == 0)
        return DP_OK;
    return dp_fail(err, errno == ENOSPC || errno == EDQUOT ? DP_FULL : DP_IO, "cannot make %s: %s", path,
                   strerror(errno));
}

/* A table is never written into once it is made; the others are, by RocksDB or by us. */
static bool may_link(const char *name)
{
    size_t len = strlen(name);
    return len > 4 && strcmp(name + len - 4, ".sst") == 0;
}

/* Of one shard. */
struct bringing {
    const struct dp_restore_from *from;
    const struct dp_manifest_shard *shard;
    const char *directory;
    bool *linked; /* [files]: to be checked */
    uint64_t said_ns;
    _Atomic size_t next; /* to check */
    _Atomic uint64_t bytes;
    atomic_bool failed;
};

/* Each SAY_NS. */
static void say_progress(struct bringing *b)
{
    struct dp_clock clock = dp_clock_real();
    uint64_t now_ns = dp_clock_ns(&clock), all_bytes = 0;
    if (now_ns - b->said_ns < SAY_NS)
        return;
    b->said_ns = now_ns;
    for (size_t i = 0; i < b->shard->files.count; i++)
        all_bytes += b->shard->files.file[i].bytes;
    dp_log(DP_LOG_INFO, "shard %" PRIu32 " of the checkpoint: %" PRIu64 " of %" PRIu64 " MB read",
           b->shard->index, b->bytes / 1000000, all_bytes / 1000000);
}

/* Links it, or copies it and checks it. */
static enum dp_status bring_row_file(struct bringing *b, size_t i, struct dp_error *err)
{
    const struct dp_manifest_file *file = &b->shard->files.file[i];
    struct dp_checkpoint_path source, target;
    enum dp_status st = dp_checkpoint_path_pool(b->from->directory.text, b->shard->store, file->name,
                                                file->checksum, &source, err);
    if (st == DP_OK)
        st = dp_checkpoint_path(&target, err, "%s/%s", b->directory, file->name);
    if (st != DP_OK)
        return st;
    const struct dp_restore_file one = {
        .from = source.text, .to = target.text, .bytes = file->bytes, .checksum = file->checksum};
    b->linked[i] = may_link(file->name) && link(one.from, one.to) == 0;
    if (b->linked[i])
        return DP_OK;
    b->bytes += file->bytes;
    return dp_restore_file_bring(&one, err);
}

/* ---- the checksums of linked files, several at a time: one thread is slower than the disk, or than the processors */

struct checker {
    struct bringing *of;
    pthread_t thread;
    bool runs, is_caller;
    enum dp_status status;
    struct dp_error error;
};

static enum dp_status check_row_file(const struct bringing *b, const struct dp_manifest_file *file,
                                     struct dp_error *err)
{
    struct dp_checkpoint_path source;
    enum dp_status st = dp_checkpoint_path_pool(b->from->directory.text, b->shard->store, file->name,
                                                file->checksum, &source, err);
    const struct dp_restore_file one = {
        .from = source.text, .bytes = file->bytes, .checksum = file->checksum};
    return st == DP_OK ? dp_restore_file_bring(&one, err) : st;
}

static void *check_some(void *context)
{
    struct checker *checker = context;
    struct bringing *b = checker->of;
    for (size_t i; checker->status == DP_OK && !b->failed &&
                   (i = atomic_fetch_add(&b->next, 1)) < b->shard->files.count;) {
        if (!b->linked[i])
            continue;
        checker->status = check_row_file(b, &b->shard->files.file[i], &checker->error);
        b->bytes += b->shard->files.file[i].bytes;
        if (checker->is_caller)
            say_progress(b);
    }
    if (checker->status != DP_OK)
        b->failed = true;
    return NULL;
}

static enum dp_status check_linked(struct bringing *b, struct dp_error *err)
{
    struct checker checker[THREADS] = {{.of = b, .is_caller = true}};
    enum dp_status st = DP_OK;
    for (uint32_t i = 1; i < THREADS && i < b->shard->files.count; i++) {
        checker[i].of = b;
        checker[i].runs = pthread_create(&checker[i].thread, NULL, check_some, &checker[i]) == 0;
    } /* without one it takes longer */
    (void)check_some(&checker[0]);
    for (uint32_t i = 0; i < THREADS; i++) {
        if (checker[i].runs)
            (void)pthread_join(checker[i].thread, NULL);
        if (st == DP_OK && checker[i].status != DP_OK) {
            st = checker[i].status;
            *err = checker[i].error;
        }
    }
    return st;
}

static enum dp_status bring_files(const struct dp_restore_from *from, const struct dp_manifest_shard *shard,
                                  const char *directory, struct dp_error *err)
{
    struct dp_clock clock = dp_clock_real();
    struct bringing b = {.from = from,
                         .shard = shard,
                         .directory = directory,
                         .linked = calloc(shard->files.count + 1, sizeof b.linked[0]),
                         .said_ns = dp_clock_ns(&clock)};
    enum dp_status st = b.linked ? DP_OK : dp_fail(err, DP_NOMEM, "no memory to restore %s", directory);
    for (size_t i = 0; st == DP_OK && i < shard->files.count; i++) {
        st = bring_row_file(&b, i, err);
        say_progress(&b);
    }
    if (st == DP_OK)
        st = check_linked(&b, err);
    free(b.linked);
    return st;
}

static enum dp_status bring_tail(const struct dp_restore_from *from, const struct dp_manifest_shard *shard,
                                 const char *directory, struct dp_error *err)
{
    struct dp_checkpoint_path journal;
    enum dp_status st = dp_checkpoint_path(&journal, err, "%s/%s", directory, "journal");
    if (st == DP_OK)
        st = make_directory(journal.text, err);
    for (size_t i = 0; st == DP_OK && i < shard->tail.files.count; i++) {
        const struct dp_manifest_file *file = &shard->tail.files.file[i];
        struct dp_checkpoint_path source, target;
        st = dp_checkpoint_path(&source, err, "%s/tail-%04" PRIu32 "/%s", from->checkpoint.text, shard->index,
                                file->name);
        if (st == DP_OK)
            st = dp_checkpoint_path(&target, err, "%s/%s", journal.text, file->name);
        const struct dp_restore_file one = {
            .from = source.text, .to = target.text, .bytes = file->bytes, .checksum = file->checksum};
        if (st == DP_OK)
            st = dp_restore_file_bring(&one, err);
    }
    return st == DP_OK ? dp_checkpoint_sync_directory(journal.text, err) : st;
}

/* ---- marks */

static enum dp_status adopt(const struct dp_restore_from *from, const struct dp_manifest_shard *shard,
                            const struct dp_restore_own *own, const char *directory, struct dp_error *err)
{
    struct dp_restore_marks *marks = calloc(1, sizeof *marks);
    if (!marks)
        return dp_fail(err, DP_NOMEM, "the marks of %s", directory);
    dp_restore_put_copied(marks, from, shard);
    const struct dp_rocks_adoption adoption = {.store = {.directory = directory,
                                                         .cluster = own->cluster,
                                                         .generation = own->generation,
                                                         .history = own->history,
                                                         .range = shard->range,
                                                         .journaled = true},
                                               .of = shard->store,
                                               .marks = marks->mark,
                                               .count = marks->count};
    enum dp_status st = marks->failed ? dp_fail(err, DP_NOMEM, "the marks of %s", directory)
                                      : dp_rocks_store_adopt(&adoption, err);
    dp_restore_marks_clear(marks);
    free(marks);
    return st;
}

enum dp_status dp_restore_copy(const struct dp_restore_from *from, uint32_t index,
                               const struct dp_restore_own *own, const char *directory, struct dp_error *err)
{
    DP_ASSERT(index < from->manifest.shards);
    const struct dp_manifest_shard *shard = &from->manifest.shard[index];
    enum dp_status st = make_directory(directory, err);
    if (st == DP_OK)
        st = bring_files(from, shard, directory, err);
    if (st == DP_OK)
        st = bring_tail(from, shard, directory, err);
    if (st == DP_OK)
        st = adopt(from, shard, own, directory, err);
    return st == DP_OK ? dp_checkpoint_sync_directory(directory, err) : st;
}
