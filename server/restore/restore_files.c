#include "server/restore/restore_files.h"

#include "server/checkpoint/checksum.h"
#include "server/checkpoint/paths.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define COPY_BYTES (1u << 20)
#define REMEDY     "the checkpoint is damaged; use another one ('downpour inspect DIR' lists them)"

/* ---- bringing */

struct hashing {
    const struct dp_restore_file *file;
    struct dp_checksum sum;
    uint64_t bytes;
};

static enum dp_status see_end(struct hashing *h, struct dp_error *err)
{
    char text[DP_CHECKSUM_TEXT];
    const struct dp_restore_file *file = h->file;
    dp_checksum_end(&h->sum, text);
    if (h->bytes != file->bytes)
        return dp_fail(err, DP_CORRUPT,
                       "%s has %" PRIu64 " bytes, and the checkpoint's manifest says %" PRIu64 ": " REMEDY,
                       file->from, h->bytes, file->bytes);
    if (strcmp(text, file->checksum) != 0)
        return dp_fail(err, DP_CORRUPT,
                       "%s does not have the checksum that the checkpoint's manifest says: " REMEDY,
                       file->from);
    return DP_OK;
}

static enum dp_status put_all(int to, const struct dp_restore_file *file, const char *bytes, size_t count,
                              struct dp_error *err)
{
    for (size_t at = 0; at < count;) {
        ssize_t n = write(to, bytes + at, count - at);
        if (n < 0)
            return dp_checkpoint_failed(err, "cannot write", file->to);
        at += (size_t)n;
    }
    return DP_OK;
}

/* to: -1: it is read only. */
static enum dp_status read_all(int from, int to, struct hashing *h, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    char *bytes = malloc(COPY_BYTES);
    ssize_t n = 0;
    if (!bytes)
        return dp_fail(err, DP_NOMEM, "no memory to read %s", h->file->from);
    (void)posix_fadvise(from, 0, 0, POSIX_FADV_SEQUENTIAL); /* it reads further ahead */
    while (st == DP_OK && (n = read(from, bytes, COPY_BYTES)) > 0) {
        h->bytes += (uint64_t)n;
        dp_checksum_put(&h->sum, bytes, (size_t)n);
        if (to >= 0)
            st = put_all(to, h->file, bytes, (size_t)n, err);
    }
    free(bytes);
    if (st == DP_OK && n < 0)
        st = dp_checkpoint_failed(err, "cannot read", h->file->from);
    return st == DP_OK ? see_end(h, err) : st;
}

static enum dp_status open_from(const struct dp_restore_file *file, int *from, struct dp_error *err)
{
    struct stat found;
    *from = open(file->from, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (*from < 0)
        return errno == ENOENT ? dp_fail(err, DP_CORRUPT, "%s is missing: " REMEDY, file->from)
                               : dp_checkpoint_failed(err, "cannot open", file->from);
    if (fstat(*from, &found) != 0 || !S_ISREG(found.st_mode))
        return dp_fail(err, DP_CORRUPT, "%s is no file: " REMEDY, file->from);
    return DP_OK;
}

enum dp_status dp_restore_file_bring(const struct dp_restore_file *file, struct dp_error *err)
{
    struct hashing h = {.file = file};
    int from = -1, to = -1;
    dp_checksum_begin(&h.sum);
    enum dp_status st = open_from(file, &from, err);
    if (st == DP_OK && file->to)
        to = open(file->to, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    if (st == DP_OK && file->to && to < 0)
        st = dp_checkpoint_failed(err, "cannot make", file->to);
    if (st == DP_OK)
        st = read_all(from, to, &h, err);
    if (st == DP_OK && to >= 0 && fsync(to) != 0)
        st = dp_checkpoint_failed(err, "cannot sync", file->to);
    if (to >= 0 && close(to) != 0 && st == DP_OK)
        st = dp_checkpoint_failed(err, "cannot close", file->to);
    if (from >= 0)
        (void)close(from);
    return st;
}

enum dp_status dp_restore_file_read(const struct dp_restore_file *file, void **bytes, struct dp_error *err)
{
    struct hashing h = {.file = file};
    int from = -1;
    ssize_t n = 0;
    *bytes = NULL;
    dp_checksum_begin(&h.sum);
    enum dp_status st = open_from(file, &from, err);
    char *to = st == DP_OK ? malloc((size_t)file->bytes + 1) : NULL;
    if (st == DP_OK && !to)
        st = dp_fail(err, DP_NOMEM, "no memory to read %s", file->from);
    /* One byte more: a file that is too long is seen. */
    while (st == DP_OK && h.bytes <= file->bytes &&
           (n = read(from, to + h.bytes, (size_t)(file->bytes + 1 - h.bytes))) > 0) {
        dp_checksum_put(&h.sum, to + h.bytes, (size_t)n);
        h.bytes += (uint64_t)n;
    }
    if (st == DP_OK && n < 0)
        st = dp_checkpoint_failed(err, "cannot read", file->from);
    if (st == DP_OK)
        st = see_end(&h, err);
    if (from >= 0)
        (void)close(from);
    if (st == DP_OK)
        *bytes = to;
    else
        free(to);
    return st;
}
