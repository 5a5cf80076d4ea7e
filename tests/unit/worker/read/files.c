#define _XOPEN_SOURCE 700 /* nftw */
#include "tests/unit/worker/read/files.h"

#include "common/base/bytes.h"
#include "tests/lib/test.h"

#include <archive.h>
#include <archive_entry.h>
#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <zstd.h>

char files_dir[128];

int files_open(void **state)
{
    const char *tmp = getenv("TMPDIR");
    int n =
        snprintf(files_dir, sizeof files_dir, "%s/dp_read_XXXXXX", tmp && strlen(tmp) < 100 ? tmp : "/tmp");
    assert_true(n > 0);
    assert_non_null(mkdtemp(files_dir));
    return 0;
}

static int remove_one(const char *path, const struct stat *info, int what, struct FTW *at)
{
    return remove(path);
}

void remove_folder(const char *path)
{
    (void)nftw(path, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

/* What is released with the folder, the last one first. */
static struct kept {
    struct kept *below;
    void (*release)(void *what);
    void *what;
} * kept;

void files_keep(void (*release)(void *what), void *what)
{
    struct kept *one = malloc(sizeof *one);
    assert_non_null(one);
    *one = (struct kept){kept, release, what};
    kept = one;
}

void files_release(void *what)
{
    struct kept **at = &kept, *one;
    while (*at && (*at)->what != what)
        at = &(*at)->below;
    assert_non_null(*at);
    one = *at;
    *at = one->below;
    one->release(what);
    free(one);
}

int files_close(void **state)
{
    while (kept)
        files_release(kept->what);
    remove_folder(files_dir);
    return access(files_dir, F_OK) == 0;
}

static size_t pack_archive(enum packing packing, const void *bytes, size_t len, void *out, size_t room)
{
    size_t used = 0;
    struct archive *a = archive_write_new();
    struct archive_entry *entry = archive_entry_new();
    int filter = packing == PACK_GZIP  ? ARCHIVE_FILTER_GZIP
                 : packing == PACK_XZ  ? ARCHIVE_FILTER_XZ
                 : packing == PACK_ZIP ? ARCHIVE_FILTER_NONE
                                       : ARCHIVE_FILTER_BZIP2;
    assert_int_equal(archive_write_add_filter(a, filter), ARCHIVE_OK);
    assert_int_equal(packing == PACK_ZIP ? archive_write_set_format_zip(a) : archive_write_set_format_raw(a),
                     ARCHIVE_OK);
    assert_int_equal(archive_write_open_memory(a, out, room, &used), ARCHIVE_OK);
    archive_entry_set_pathname(entry, "data");
    archive_entry_set_filetype(entry, AE_IFREG);
    archive_entry_set_size(entry, (int64_t)len);
    assert_int_equal(archive_write_header(a, entry), ARCHIVE_OK);
    assert_int_equal(archive_write_data(a, bytes, len), len);
    assert_int_equal(archive_write_close(a), ARCHIVE_OK);
    archive_entry_free(entry);
    assert_int_equal(archive_write_free(a), ARCHIVE_OK);
    return used;
}

/* With a checksum, as zstd(1) writes it and libarchive does not. */
static size_t pack_zstd(const void *bytes, size_t len, void *out, size_t room)
{
    ZSTD_CCtx *zstd = ZSTD_createCCtx();
    assert_non_null(zstd);
    (void)ZSTD_CCtx_setParameter(zstd, ZSTD_c_checksumFlag, 1);
    size_t n = ZSTD_compress2(zstd, out, room, bytes, len);
    assert_false(ZSTD_isError(n));
    (void)ZSTD_freeCCtx(zstd);
    return n;
}

void *pack(enum packing packing, const void *bytes, size_t len, size_t *packed_len)
{
    size_t room = len * 2 + 1024;
    void *out = malloc(room);
    assert_non_null(out);
    if (packing == PACK_ZSTD) {
        *packed_len = pack_zstd(bytes, len, out, room);
    } else if (packing != PACK_PLAIN) {
        *packed_len = pack_archive(packing, bytes, len, out, room);
    } else {
        if (len > 0)
            memcpy(out, bytes, len);
        *packed_len = len;
    }
    return out;
}

const char *write_file(const char *name, const void *bytes, size_t len)
{
    size_t room = strlen(files_dir) + strlen(name) + 2;
    char *path = malloc(room);
    assert_non_null(path);
    (void)snprintf(path, room, "%s/%s", files_dir, name);
    files_keep(free, path);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, len, file), len);
    assert_int_equal(fclose(file), 0);
    return path;
}

const char *write_packed(const char *name, enum packing packing, const void *bytes, size_t len)
{
    size_t packed_len;
    void *packed = pack(packing, bytes, len, &packed_len);
    const char *path = write_file(name, packed, packed_len);
    free(packed);
    return path;
}

const char *write_text(const char *name, const char *text)
{
    return write_file(name, text, strlen(text));
}

uint8_t *make_images(uint32_t count, uint32_t rows, uint32_t columns, size_t *len)
{
    size_t width = (size_t)rows * columns;
    *len = 16 + count * width;
    uint8_t *file = malloc(*len);
    assert_non_null(file);
    dp_store_u32be(file, 0x803);
    dp_store_u32be(file + 4, count);
    dp_store_u32be(file + 8, rows);
    dp_store_u32be(file + 12, columns);
    for (size_t i = 0; i < count; i++)
        for (size_t p = 0; p < width; p++)
            file[16 + i * width + p] = (uint8_t)(i * 7 + p * 3);
    return file;
}

uint8_t *make_labels(uint32_t count, uint32_t classes, size_t *len)
{
    *len = 8 + count;
    uint8_t *file = malloc(*len);
    assert_non_null(file);
    dp_store_u32be(file, 0x801);
    dp_store_u32be(file + 4, count);
    for (uint32_t i = 0; i < count; i++)
        file[8 + i] = (uint8_t)(i % classes);
    return file;
}
