#include "server/restore/restore_copy.h"

#include "common/base/log.h"
#include "common/env/clock.h"
#include "server/restore/restore_check.h"
#include "server/restore/restore_put.h"
#include "server/store/repair/rocks_adopt.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SAY_NS UINT64_C(10000000000)

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

struct restore_progress {
    const struct dp_manifest_shard *shard;
    const struct dp_manifest_files *files;
    uint64_t said_ns;
};

/* Each SAY_NS. */
static void say_progress(void *context, uint64_t done_bytes)
{
    struct restore_progress *progress = context;
    const struct dp_manifest_shard *shard = progress->shard;
    struct dp_clock clock = dp_clock_real();
    uint64_t now_ns = dp_clock_ns(&clock), all_bytes = 0;
    if (now_ns - progress->said_ns < SAY_NS)
        return;
    progress->said_ns = now_ns;
    for (size_t i = 0; i < progress->files->count; i++)
        all_bytes += progress->files->file[i].bytes;
    dp_log(DP_LOG_INFO, "shard %" PRIu32 " of the checkpoint: %" PRIu64 " of %" PRIu64 " MB read",
           shard->index, done_bytes / 1000000, all_bytes / 1000000);
}

/* What is linked is checked later. *copied: grows by the bytes of what is not. */
static enum dp_status bring_row_file(const struct dp_restore_from *from,
                                     const struct dp_manifest_shard *shard,
                                     const struct dp_manifest_file *file, const char *directory,
                                     struct dp_restore_check *check, uint64_t *copied, struct dp_error *err)
{
    struct dp_checkpoint_path source, target;
    enum dp_status st =
        dp_checkpoint_path_pool(from->directory.text, shard->store, file->name, file->checksum, &source, err);
    if (st == DP_OK)
        st = dp_checkpoint_path(&target, err, "%s/%s", directory, file->name);
    if (st != DP_OK)
        return st;
    const struct dp_restore_file one = {.from = source.text,
                                        .to = target.text,
                                        .bytes = file->bytes,
                                        .checksum = file->checksum,
                                        .may_link = may_link(file->name)};
    if (dp_restore_file_link(&one))
        return dp_restore_check_add(check, &one, err);
    *copied += file->bytes;
    return dp_restore_file_bring(&one, err);
}

static enum dp_status bring_files(const struct dp_restore_from *from, const struct dp_manifest_shard *shard,
                                  const char *directory, struct dp_error *err)
{
    const struct dp_manifest_files *files = &shard->files;
    struct dp_clock clock = dp_clock_real();
    struct restore_progress progress = {shard, files, dp_clock_ns(&clock)};
    struct dp_restore_check *check = NULL;
    uint64_t copied = 0;
    enum dp_status st = dp_restore_check_new(say_progress, &progress, &check, err);
    for (size_t i = 0; st == DP_OK && i < files->count; i++) {
        st = bring_row_file(from, shard, &files->file[i], directory, check, &copied, err);
        say_progress(&progress, copied);
    }
    if (st == DP_OK)
        st = dp_restore_check_end(check, err);
    dp_restore_check_free(&check);
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
