#include "worker/read/unpack.h"

#include "worker/read/encoding.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#define BLOCK ((size_t)256 << 10)

struct dp_unpack {
    char *path;
    int fd;
    int read_errno;          /* of the read that failed */
    struct archive *archive; /* NULL for gzip */
    z_stream gzip;
    bool gzip_open;
    bool ended;   /* the decoder asked for bytes past the file's end */
    bool between; /* gzip: between members, where the file may end */
    bool at_end;  /* the last block was lent */
    bool peeked;  /* next returns the block in `lent` */
    bool begun;   /* a block was lent, so the next is not the start of the text */
    bool checked; /* next refuses what is no UTF-8 */
    struct dp_encoding encoding;
    uint64_t read_at; /* bytes read so far */
    const unsigned char *lent;
    size_t lent_len;
    unsigned char in[BLOCK], out[BLOCK]; /* out: gzip's */
};

/* The file's next bytes, in `in`: 0 at its end, -1 on failure. */
static ssize_t read_in(struct archive *archive, void *of, const void **bytes)
{
    struct dp_unpack *unpack = of;
    ssize_t n;
    (void)archive;
    do
        n = read(unpack->fd, unpack->in, BLOCK);
    while (n < 0 && errno == EINTR);
    if (n < 0)
        unpack->read_errno = errno;
    else
        unpack->read_at += (uint64_t)n;
    unpack->ended = n == 0;
    *bytes = unpack->in;
    return n;
}

/* What to say of a decoder that failed; reason: in its words, or NULL. */
static enum dp_status broken(const struct dp_unpack *unpack, int code, const char *reason,
                             struct dp_error *err)
{
    if (unpack->read_errno)
        return dp_fail(err, DP_IO, "%s: cannot read at byte %" PRIu64 ": %s", unpack->path, unpack->read_at,
                       strerror(unpack->read_errno));
    if (code == ENOMEM)
        return dp_fail(err, DP_NOMEM, "%s: no memory to decompress it", unpack->path);
    if (unpack->ended)
        return dp_fail(err, DP_DATA,
                       "%s: is truncated: the file ends at byte %" PRIu64
                       " in the middle of its compressed data; fetch it again",
                       unpack->path, unpack->read_at);
    return dp_fail(err, DP_DATA,
                   "%s: cannot be decompressed (%s, before byte %" PRIu64
                   "): fetch it again, or compress it again with gzip",
                   unpack->path, reason ? reason : "bad stream", unpack->read_at);
}

/* ---- after the compressed data */

/* The file's bytes at `at`, where the decoder need not be: *out is 0 at the end. */
static enum dp_status look_at(struct dp_unpack *unpack, uint64_t at, unsigned char *bytes, size_t len,
                              ssize_t *out, struct dp_error *err)
{
    do
        *out = pread(unpack->fd, bytes, len, (off_t)at);
    while (*out < 0 && errno == EINTR);
    unpack->read_errno = *out < 0 ? errno : 0;
    return *out < 0 ? broken(unpack, 0, NULL, err) : DP_OK;
}

/* To the first byte that is no zero, or the file's end. */
static enum dp_status skip_zeros(struct dp_unpack *unpack, uint64_t *at, struct dp_error *err)
{
    unsigned char bytes[4096];
    ssize_t n, zeros;
    do {
        enum dp_status st = look_at(unpack, *at, bytes, sizeof bytes, &n, err);
        if (st != DP_OK)
            return st;
        for (zeros = 0; zeros < n && bytes[zeros] == 0; zeros++) {
        }
        *at += (uint64_t)zeros;
    } while (n > 0 && zeros == n);
    return DP_OK;
}

/* The compressed data ends at `from`. Only zeros may follow, which pad it, as on tapes: a part that is not
 * read would be examples that are silently missing. */
static enum dp_status check_padding(struct dp_unpack *unpack, uint64_t from, const char *kind,
                                    struct dp_error *err)
{
    uint64_t at = from;
    enum dp_status st = skip_zeros(unpack, &at, err);
    const off_t end = lseek(unpack->fd, 0, SEEK_END);
    if (st != DP_OK || end < 0 || at >= (uint64_t)end)
        return st;
    return dp_fail(err, DP_DATA,
                   "%s: %" PRIu64 " bytes after the end of the %s data, which ends at byte %" PRIu64
                   ": fetch the file again, or cut them off (head -c %" PRIu64 ")",
                   unpack->path, (uint64_t)end - from, kind, from, from);
}

/* ---- gzip: without libarchive, which does not look at a member's length and checksum */

/* After a member: another one, padding to the end of the file, or both. */
static enum dp_status gzip_between(struct dp_unpack *unpack, bool *member, struct dp_error *err)
{
    const uint64_t from = unpack->read_at - unpack->gzip.avail_in;
    uint64_t at = from;
    unsigned char magic[2];
    ssize_t n = 0;
    (void)inflateReset(&unpack->gzip);
    enum dp_status st = skip_zeros(unpack, &at, err);
    if (st == DP_OK)
        st = look_at(unpack, at, magic, sizeof magic, &n, err);
    *member = n == 2 && memcmp(magic, "\x1f\x8b", 2) == 0;
    if (st != DP_OK || (*member && at == from))
        return st;
    unpack->gzip.avail_in = 0;
    if (!*member)
        return check_padding(unpack, from, "gzip", err);
    unpack->read_at = at;
    return lseek(unpack->fd, (off_t)at, SEEK_SET) < 0 ? broken(unpack, errno, NULL, err) : DP_OK;
}

static enum dp_status gzip_next(struct dp_unpack *unpack, struct dp_error *err)
{
    z_stream *z = &unpack->gzip;
    z->next_out = unpack->out;
    z->avail_out = (uInt)BLOCK;
    while (z->avail_out == BLOCK) {
        if (z->avail_in == 0) {
            const void *bytes;
            ssize_t n = read_in(NULL, unpack, &bytes);
            if (n == 0 && unpack->between)
                break;
            if (n <= 0)
                return broken(unpack, 0, NULL, err);
            z->next_in = unpack->in;
            z->avail_in = (uInt)n;
        }
        if (unpack->between) {
            bool member;
            enum dp_status st = gzip_between(unpack, &member, err);
            if (st != DP_OK)
                return st;
            if (!member)
                break;
        }
        int rc = inflate(z, Z_NO_FLUSH);
        unpack->between = rc == Z_STREAM_END;
        if (rc != Z_OK && rc != Z_STREAM_END && rc != Z_BUF_ERROR)
            return broken(unpack, rc == Z_MEM_ERROR ? ENOMEM : 0, z->msg, err);
    }
    unpack->lent = unpack->out;
    unpack->lent_len = BLOCK - z->avail_out;
    return DP_OK;
}

/* ---- all others, plain files included: libarchive */

static enum dp_status archive_broken(const struct dp_unpack *unpack, struct dp_error *err)
{
    return broken(unpack, archive_errno(unpack->archive), archive_error_string(unpack->archive), err);
}

/* To the next file inside: only a zip has more than one. A warning is of its name or its times. */
static int next_file(struct dp_unpack *unpack)
{
    struct archive_entry *entry;
    int rc;
    do
        rc = archive_read_next_header(unpack->archive, &entry);
    while ((rc == ARCHIVE_OK || rc == ARCHIVE_WARN) && archive_entry_filetype(entry) != AE_IFREG);
    return rc == ARCHIVE_WARN ? ARCHIVE_OK : rc;
}

static enum dp_status archive_begin(struct dp_unpack *unpack, bool zip, struct dp_error *err)
{
    struct archive *a = unpack->archive = archive_read_new();
    if (!a)
        return broken(unpack, ENOMEM, NULL, err);
    int rc =
        zip ? archive_read_support_format_zip_streamable(a) : archive_read_set_format(a, ARCHIVE_FORMAT_RAW);
    if (rc != ARCHIVE_OK || (!zip && (archive_read_support_filter_zstd(a) != ARCHIVE_OK ||
                                      archive_read_support_filter_xz(a) != ARCHIVE_OK ||
                                      archive_read_support_filter_bzip2(a) != ARCHIVE_OK)))
        return archive_broken(unpack, err);
    if (archive_read_open(a, unpack, NULL, read_in, NULL) != ARCHIVE_OK || next_file(unpack) != ARCHIVE_OK)
        return archive_broken(unpack, err);
    return DP_OK;
}

static enum dp_status archive_end(struct dp_unpack *unpack, struct dp_error *err)
{
    int rc = next_file(unpack);
    if (rc == ARCHIVE_OK)
        return dp_fail(err, DP_DATA, "%s: is a zip of several files: unpack it, and give one of them",
                       unpack->path);
    if (rc != ARCHIVE_EOF)
        return archive_broken(unpack, err);
    uint64_t decoded = (uint64_t)archive_filter_bytes(unpack->archive, -1);
    return archive_format(unpack->archive) == ARCHIVE_FORMAT_RAW && decoded < unpack->read_at
               ? check_padding(unpack, decoded, archive_filter_name(unpack->archive, 0), err)
               : DP_OK;
}

static enum dp_status archive_next(struct dp_unpack *unpack, struct dp_error *err)
{
    const void *bytes;
    int64_t offset;
    int rc;
    do
        rc = archive_read_data_block(unpack->archive, &bytes, &unpack->lent_len, &offset);
    while (rc == ARCHIVE_OK && unpack->lent_len == 0);
    unpack->lent = bytes;
    if (rc == ARCHIVE_OK)
        return DP_OK;
    unpack->lent_len = 0;
    return rc == ARCHIVE_EOF ? archive_end(unpack, err) : archive_broken(unpack, err);
}

/* ---- */

static enum dp_status decoder_open(struct dp_unpack *unpack, struct dp_error *err)
{
    unsigned char magic[4] = {0};
    if (pread(unpack->fd, magic, sizeof magic, 0) < 0)
        unpack->read_errno = errno;
    if (unpack->read_errno)
        return broken(unpack, 0, NULL, err);
    if (memcmp(magic, "\x1f\x8b", 2) != 0)
        return archive_begin(unpack, memcmp(magic, "PK\3\4", 4) == 0, err);
    unpack->gzip_open = inflateInit2(&unpack->gzip, 15 + 16) == Z_OK;
    return unpack->gzip_open ? DP_OK : broken(unpack, ENOMEM, NULL, err);
}

enum dp_status dp_unpack_open_text(const char *path, const char *encoding, struct dp_unpack **out,
                                   struct dp_error *err)
{
    bool utf8 = !encoding || strcasecmp(encoding, "utf-8") == 0 || strcasecmp(encoding, "utf8") == 0;
    enum dp_status st = dp_unpack_open(path, out, err);
    if (st == DP_OK && !utf8)
        st = dp_encoding_open(&(*out)->encoding, encoding, err);
    if (st != DP_OK)
        dp_unpack_close(out);
    return st;
}

void dp_unpack_check_text(struct dp_unpack *unpack)
{
    unpack->checked = !unpack->encoding.iconv;
}

enum dp_status dp_unpack_check_kind(const char *path, mode_t mode, struct dp_error *err)
{
    if (S_ISDIR(mode))
        return dp_fail(err, DP_IO, "%s: is a directory: name a file in it", path);
    return S_ISREG(mode) ? DP_OK
                         : dp_fail(err, DP_IO, "%s: is not a regular file: write the data into one", path);
}

enum dp_status dp_unpack_open(const char *path, struct dp_unpack **out, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    struct stat info;
    struct dp_unpack *unpack = calloc(1, sizeof *unpack);
    if (!unpack || !(unpack->path = strdup(path))) {
        free(unpack);
        return dp_fail(err, DP_NOMEM, "%s: no memory to read it", path);
    }
    /* Without O_NONBLOCK the open of a pipe would wait for its writer, without a deadline. */
    unpack->fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (unpack->fd < 0 || fstat(unpack->fd, &info) != 0)
        st = dp_fail(err, DP_IO, "%s: cannot open: %s", path, strerror(errno));
    else
        st = dp_unpack_check_kind(path, info.st_mode, err);
    if (st == DP_OK)
        st = decoder_open(unpack, err);
    if (st != DP_OK)
        dp_unpack_close(&unpack);
    *out = unpack;
    return st;
}

void dp_unpack_close(struct dp_unpack **unpack)
{
    struct dp_unpack *u = *unpack;
    if (!u)
        return;
    (void)archive_read_free(u->archive); /* NULL too */
    if (u->gzip_open)
        (void)inflateEnd(&u->gzip);
    if (u->fd >= 0)
        (void)close(u->fd);
    dp_encoding_close(&u->encoding);
    free(u->path);
    free(u);
    *unpack = NULL;
}

/* The next block; 0 bytes at the end. */
static enum dp_status decompress(struct dp_unpack *unpack, struct dp_error *err)
{
    unpack->lent_len = 0;
    if (unpack->at_end)
        return DP_OK;
    enum dp_status st = unpack->archive ? archive_next(unpack, err) : gzip_next(unpack, err);
    unpack->at_end = st == DP_OK && unpack->lent_len == 0;
    return st;
}

static enum dp_status next_block(struct dp_unpack *unpack, struct dp_error *err)
{
    struct dp_encoding *encoding = &unpack->encoding;
    if (!encoding->iconv)
        return decompress(unpack, err);
    encoding->text_len = 0;
    while (encoding->text_len == 0) {
        enum dp_status st = encoding->left == 0 ? decompress(unpack, err) : DP_OK;
        if (st == DP_OK && encoding->left == 0 && unpack->lent_len == 0)
            return dp_encoding_end(encoding, unpack->path, err);
        if (encoding->left == 0) {
            encoding->from = unpack->lent;
            encoding->left = unpack->lent_len;
        }
        if (st == DP_OK)
            st = dp_encoding_take(encoding, unpack->path, err);
        if (st != DP_OK)
            return st;
    }
    unpack->lent = encoding->text;
    unpack->lent_len = encoding->text_len;
    return DP_OK;
}

/* Skips a UTF-8 byte order mark at the start, which is not data. */
static enum dp_status skip_mark(struct dp_unpack *unpack, struct dp_error *err)
{
    bool marked = !unpack->begun && unpack->lent_len >= 3 && memcmp(unpack->lent, "\xef\xbb\xbf", 3) == 0;
    unpack->begun = true;
    if (!marked)
        return DP_OK;
    unpack->lent += 3;
    unpack->lent_len -= 3;
    /* An empty block would mean the end. */
    return unpack->lent_len == 0 ? next_block(unpack, err) : DP_OK;
}

enum dp_status dp_unpack_peek(struct dp_unpack *unpack, const unsigned char **bytes, size_t *len,
                              struct dp_error *err)
{
    if (!unpack->peeked) {
        enum dp_status st = next_block(unpack, err);
        if (st == DP_OK)
            st = skip_mark(unpack, err);
        if (st != DP_OK)
            return st;
        unpack->peeked = true;
    }
    *bytes = unpack->lent;
    *len = unpack->lent_len;
    return DP_OK;
}

enum dp_status dp_unpack_next(struct dp_unpack *unpack, const unsigned char **bytes, size_t *len,
                              struct dp_error *err)
{
    enum dp_status st = dp_unpack_peek(unpack, bytes, len, err);
    unpack->peeked = false;
    if (st == DP_OK && unpack->checked)
        st = *len > 0 ? dp_encoding_check(&unpack->encoding, unpack->path, *bytes, *len, err)
                      : dp_encoding_end(&unpack->encoding, unpack->path, err);
    return st;
}

enum dp_status dp_unpack_read(struct dp_unpack *unpack, uint64_t wanted, struct dp_unpack_bytes *bytes,
                              struct dp_error *err)
{
    const unsigned char *block;
    size_t len = 1;
    while (bytes->len < wanted && len > 0) {
        enum dp_status st = dp_unpack_next(unpack, &block, &len, err);
        if (st != DP_OK)
            return st;
        if (len > bytes->room - bytes->len) {
            uint64_t room = (bytes->len + len) * 2;
            unsigned char *grown = realloc(bytes->at, room);
            if (!grown)
                return dp_fail(err, DP_NOMEM, "%s: no memory for %" PRIu64 " bytes of it", unpack->path,
                               room);
            bytes->at = grown;
            bytes->room = room;
        }
        if (len > 0)
            memcpy(bytes->at + bytes->len, block, len);
        bytes->len += len;
    }
    return DP_OK;
}

const char *dp_unpack_name(const struct dp_unpack *unpack)
{
    return unpack->path;
}
