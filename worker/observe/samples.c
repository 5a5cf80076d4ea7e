#include "worker/observe/samples.h"

#include "common/base/bytes.h"
#include "common/base/full_io.h"
#include "common/base/hash.h"
#include "common/env/atomic_file.h"
#include "common/env/limits.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_MAGIC  UINT64_C(0x31534c504d535044) /* "DPSMPLS1" */
#define FRAME_MAGIC UINT64_C(0x454c504d41535044) /* "DPSAMPLE" */
#define VERSION     2u
#define NAME_BYTES  (DP_TABLE_NAME_MAX + 1)
#define HEAD_BYTES  32u
#define TABLE_BYTES (NAME_BYTES + 16u)
#define FRAME_HEAD  64u
#define HASH_BYTES  8u

/* ---- keys */

void dp_sample_keys_clear(struct dp_sample_keys *keys)
{
    for (uint32_t t = 0; t < keys->tables; t++)
        free(keys->table[t].keys);
    *keys = (struct dp_sample_keys){0};
}

size_t dp_sample_keys_first(const struct dp_sample_keys *keys, uint32_t table)
{
    size_t floats = 0;
    for (uint32_t t = 0; t < table; t++)
        floats += keys->table[t].count * keys->table[t].dim;
    return floats;
}

size_t dp_sample_keys_floats(const struct dp_sample_keys *keys)
{
    return dp_sample_keys_first(keys, keys->tables);
}

bool dp_sample_keys_same(const struct dp_sample_keys *a, const struct dp_sample_keys *b)
{
    bool same = a->tables == b->tables;
    for (uint32_t t = 0; same && t < a->tables; t++) {
        const struct dp_sample_table *x = &a->table[t], *y = &b->table[t];
        same = strcmp(x->name, y->name) == 0 && x->dim == y->dim && x->count == y->count &&
               (x->count == 0 || memcmp(x->keys, y->keys, x->count * sizeof *x->keys) == 0);
    }
    return same;
}

enum dp_status dp_sample_keys_fit(const struct dp_sample_keys *keys, const struct dp_graph *graph,
                                  const char *path, struct dp_error *err)
{
    bool fits = keys->tables == (uint32_t)dp_graph_parameters(graph);
    for (uint32_t t = 0; fits && t < keys->tables; t++) {
        const struct dp_table_spec *spec = &dp_graph_parameter(graph, (int)t)->table;
        fits = strcmp(keys->table[t].name, spec->name) == 0 && keys->table[t].dim == spec->dim;
    }
    return fits
               ? DP_OK
               : dp_fail(err, DP_DATA, "'%s' was made for another model: make it again (--score-keys)", path);
}

uint64_t dp_sample_keys_due(const struct dp_sample_keys *keys, uint64_t examples)
{
    uint64_t due;
    return keys->each > 0 && !__builtin_mul_overflow(examples / keys->each + 1, keys->each, &due)
               ? due
               : UINT64_MAX;
}

static size_t header_bytes(const struct dp_sample_keys *keys)
{
    size_t bytes = HEAD_BYTES + HASH_BYTES;
    for (uint32_t t = 0; t < keys->tables; t++)
        bytes += TABLE_BYTES + keys->table[t].count * 8;
    return bytes;
}

static size_t frame_bytes(const struct dp_sample_keys *keys)
{
    return FRAME_HEAD + dp_sample_keys_floats(keys) * sizeof(float) + HASH_BYTES;
}

/* On the heap; NULL: no memory. */
static unsigned char *put_header(const struct dp_sample_keys *keys, size_t *size)
{
    *size = header_bytes(keys);
    unsigned char *bytes = calloc(1, *size), *at = bytes + HEAD_BYTES;
    if (!bytes)
        return NULL;
    dp_store_u64le(bytes, FILE_MAGIC);
    dp_store_u32le(bytes + 8, VERSION);
    dp_store_u32le(bytes + 12, keys->tables);
    dp_store_u64le(bytes + 16, *size);
    dp_store_u64le(bytes + 24, keys->each);
    for (uint32_t t = 0; t < keys->tables; t++) {
        const struct dp_sample_table *table = &keys->table[t];
        memcpy(at, table->name, strlen(table->name));
        dp_store_u32le(at + NAME_BYTES, table->dim);
        dp_store_u64le(at + NAME_BYTES + 8, table->count);
        at += TABLE_BYTES;
        if (table->count > 0)
            memcpy(at, table->keys, table->count * 8);
        at += table->count * 8;
    }
    dp_store_u64le(at, dp_hash_bytes(DP_HASH_BEGIN, bytes, *size - HASH_BYTES));
    return bytes;
}

enum dp_status dp_sample_keys_write(const struct dp_sample_keys *keys, const char *path, struct dp_error *err)
{
    size_t size;
    struct dp_atomic_file file = {0};
    unsigned char *bytes = put_header(keys, &size);
    enum dp_status st = bytes ? dp_atomic_file_open(path, &file, err)
                              : dp_fail(err, DP_NOMEM, "no memory for the keys of '%s'", path);
    if (st == DP_OK) {
        (void)fwrite(bytes, 1, size, file.stream); /* commit sees that it failed */
        st = dp_atomic_file_commit(&file, err);
    }
    dp_atomic_file_drop(&file);
    free(bytes);
    return st;
}

/* ---- writing */

struct dp_samples_writer {
    int fd;
    char *path;
    const struct dp_sample_keys *keys;
    uint64_t hash; /* of the header */
    uint64_t count;
    off_t end; /* after the last complete frame */
};

static enum dp_status cannot_write(const char *path, struct dp_error *err)
{
    return dp_fail(err, dp_limits_full(errno) ? DP_FULL : DP_IO, "cannot write samples to '%s': %s%s", path,
                   strerror(errno), dp_limits_remedy(errno));
}

enum dp_status dp_samples_writer_open(const char *path, const struct dp_sample_keys *keys,
                                      struct dp_samples_writer **out, struct dp_error *err)
{
    size_t size = 0;
    enum dp_status st = DP_OK;
    struct dp_samples_writer *writer = calloc(1, sizeof *writer);
    unsigned char *header = put_header(keys, &size);
    *out = NULL;
    if (writer)
        *writer = (struct dp_samples_writer){.fd = -1, .path = strdup(path), .keys = keys};
    if (!writer || !writer->path || !header) {
        st = dp_fail(err, DP_NOMEM, "no memory for the samples in '%s'", path);
        goto done;
    }
    writer->fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0666);
    if (writer->fd < 0 || !dp_full_write(writer->fd, header, size)) {
        st = cannot_write(path, err);
        goto done;
    }
    writer->hash = dp_load_u64le(header + size - HASH_BYTES);
    writer->end = (off_t)size;
done:
    free(header);
    if (st != DP_OK)
        dp_samples_writer_close(&writer);
    *out = writer;
    return st;
}

void dp_samples_writer_close(struct dp_samples_writer **writer)
{
    struct dp_samples_writer *w = *writer;
    *writer = NULL;
    if (!w)
        return;
    if (w->fd >= 0)
        (void)close(w->fd);
    free(w->path);
    free(w);
}

static void put_frame_head(unsigned char head[FRAME_HEAD], uint64_t number, const struct dp_sample *sample)
{
    const uint64_t words[] = {FRAME_MAGIC,      number,         sample->monotonic_ns, sample->wall_ns,
                              sample->began_ns, sample->pushes, sample->examples,     sample->by};
    for (size_t i = 0; i < sizeof words / sizeof words[0]; i++)
        dp_store_u64le(head + 8 * i, words[i]);
}

enum dp_status dp_samples_writer_append(struct dp_samples_writer *writer, const struct dp_sample *sample,
                                        const float *rows, struct dp_error *err)
{
    unsigned char head[FRAME_HEAD], tail[HASH_BYTES];
    size_t bytes = dp_sample_keys_floats(writer->keys) * sizeof *rows;
    put_frame_head(head, writer->count, sample);
    uint64_t hash = dp_hash_bytes(dp_hash_bytes(writer->hash, head, sizeof head), rows, bytes);
    dp_store_u64le(tail, hash);
    if (!dp_full_write(writer->fd, head, sizeof head) || !dp_full_write(writer->fd, rows, bytes) ||
        !dp_full_write(writer->fd, tail, sizeof tail)) {
        enum dp_status st = cannot_write(writer->path, err);
        if (ftruncate(writer->fd, writer->end) == 0) /* else its reader leaves the part out */
            (void)lseek(writer->fd, writer->end, SEEK_SET);
        return st;
    }
    writer->count++;
    writer->end += (off_t)(sizeof head + bytes + sizeof tail);
    return DP_OK;
}

uint64_t dp_samples_writer_count(const struct dp_samples_writer *writer)
{
    return writer->count;
}

/* ---- reading */

struct dp_samples_reader {
    int fd;
    char *path;
    struct dp_sample_keys keys;
    uint64_t hash;
    uint64_t first, frame, count; /* bytes of the header, of a frame; complete frames */
};

static enum dp_status no_samples(const char *path, const char *what, struct dp_error *err)
{
    return dp_fail(err, DP_DATA, "'%s' is no file of samples, or its beginning is damaged: %s", path, what);
}

static enum dp_status read_at(const struct dp_samples_reader *r, void *to, size_t size, uint64_t at,
                              struct dp_error *err)
{
    if (dp_full_pread(r->fd, to, size, (off_t)at) == size)
        return DP_OK;
    return dp_fail(err, DP_IO, "cannot read '%s': %s", r->path, errno ? strerror(errno) : "it is cut");
}

/* at: of the table's entry, in `left` bytes that belong to tables. Returns the bytes it takes; 0: it is
 * not one. */
static uint64_t take_table(const unsigned char *at, uint64_t left, struct dp_sample_table *out)
{
    if (left < TABLE_BYTES || at[NAME_BYTES - 1] != 0 || at[0] == 0)
        return 0;
    (void)memcpy(out->name, at, NAME_BYTES);
    out->dim = dp_load_u32le(at + NAME_BYTES);
    uint64_t count = dp_load_u64le(at + NAME_BYTES + 8);
    if (out->dim == 0 || out->dim > DP_TABLE_DIM_MAX || count > (left - TABLE_BYTES) / 8)
        return 0;
    out->keys = malloc(count ? count * 8 : 1);
    if (!out->keys)
        return 0;
    out->count = count;
    if (count > 0)
        memcpy(out->keys, at + TABLE_BYTES, count * 8);
    for (uint64_t i = 1; i < count; i++)
        if (out->keys[i - 1] >= out->keys[i])
            return 0;
    return TABLE_BYTES + count * 8;
}

static enum dp_status take_tables(struct dp_samples_reader *r, const unsigned char *header, uint64_t size,
                                  uint32_t tables, struct dp_error *err)
{
    uint64_t at = HEAD_BYTES, end = size - HASH_BYTES;
    for (uint32_t t = 0; t < tables; t++) {
        r->keys.tables = t + 1;
        uint64_t took = take_table(header + at, end - at, &r->keys.table[t]);
        if (took == 0)
            return no_samples(r->path, "a table", err);
        at += took;
    }
    return at == end ? DP_OK : no_samples(r->path, "its length", err);
}

static enum dp_status read_header(struct dp_samples_reader *r, uint64_t size, struct dp_error *err)
{
    unsigned char head[HEAD_BYTES], *header = NULL;
    if (size < HEAD_BYTES + HASH_BYTES)
        return no_samples(r->path, "it is too short", err);
    enum dp_status st = read_at(r, head, sizeof head, 0, err);
    if (st != DP_OK)
        return st;
    uint32_t tables = dp_load_u32le(head + 12);
    r->first = dp_load_u64le(head + 16);
    r->keys.each = dp_load_u64le(head + 24);
    if (dp_load_u64le(head) != FILE_MAGIC)
        return no_samples(r->path, "its first bytes", err);
    if (dp_load_u32le(head + 8) != VERSION)
        return no_samples(r->path, "its version is of another build", err);
    if (tables == 0 || tables > DP_GRAPH_PARAMETERS_MAX || r->first > size ||
        r->first < HEAD_BYTES + HASH_BYTES)
        return no_samples(r->path, "its sizes", err);
    header = malloc(r->first);
    st = header ? read_at(r, header, r->first, 0, err)
                : dp_fail(err, DP_NOMEM, "no memory for the keys of '%s'", r->path);
    if (st == DP_OK) {
        r->hash = dp_load_u64le(header + r->first - HASH_BYTES);
        st = r->hash == dp_hash_bytes(DP_HASH_BEGIN, header, r->first - HASH_BYTES)
                 ? take_tables(r, header, r->first, tables, err)
                 : no_samples(r->path, "its checksum", err);
    }
    free(header);
    return st;
}

/* Where a frame would not fit into any memory there is none. */
static enum dp_status count_frames(struct dp_samples_reader *r, uint64_t size, struct dp_error *err)
{
    uint64_t floats = 0, of_table;
    for (uint32_t t = 0; t < r->keys.tables; t++)
        if (__builtin_mul_overflow(r->keys.table[t].count, r->keys.table[t].dim, &of_table) ||
            __builtin_add_overflow(floats, of_table, &floats) || floats > SIZE_MAX / 8)
            return no_samples(r->path, "its sizes", err);
    r->frame = frame_bytes(&r->keys);
    r->count = (size - r->first) / r->frame;
    return DP_OK;
}

enum dp_status dp_samples_reader_open(const char *path, struct dp_samples_reader **out, struct dp_error *err)
{
    struct stat is;
    struct dp_samples_reader *r = calloc(1, sizeof *r);
    enum dp_status st = DP_OK;
    *out = NULL;
    if (r)
        *r = (struct dp_samples_reader){.fd = -1, .path = strdup(path)};
    if (!r || !r->path)
        st = dp_fail(err, DP_NOMEM, "no memory to read '%s'", path);
    else if ((r->fd = open(path, O_RDONLY | O_CLOEXEC)) < 0 || fstat(r->fd, &is) != 0)
        st = dp_fail(err, errno == ENOENT ? DP_NOT_FOUND : DP_IO, "cannot read '%s': %s", path,
                     strerror(errno));
    if (st == DP_OK)
        st = read_header(r, (uint64_t)is.st_size, err);
    if (st == DP_OK)
        st = count_frames(r, (uint64_t)is.st_size, err);
    if (st != DP_OK)
        dp_samples_reader_close(&r);
    *out = r;
    return st;
}

const struct dp_sample_keys *dp_samples_reader_keys(const struct dp_samples_reader *reader)
{
    return &reader->keys;
}

uint64_t dp_samples_reader_count(const struct dp_samples_reader *reader)
{
    return reader->count;
}

enum dp_status dp_samples_reader_read(struct dp_samples_reader *r, uint64_t number, struct dp_sample *sample,
                                      float *rows, struct dp_error *err)
{
    unsigned char head[FRAME_HEAD], tail[HASH_BYTES];
    size_t bytes = r->frame - FRAME_HEAD - HASH_BYTES;
    DP_ASSERT(number < r->count);
    uint64_t at = r->first + number * r->frame;
    enum dp_status st = read_at(r, head, sizeof head, at, err);
    if (st == DP_OK)
        st = read_at(r, rows, bytes, at + sizeof head, err);
    if (st == DP_OK)
        st = read_at(r, tail, sizeof tail, at + sizeof head + bytes, err);
    if (st != DP_OK)
        return st;
    uint64_t hash = dp_hash_bytes(dp_hash_bytes(r->hash, head, sizeof head), rows, bytes);
    if (hash != dp_load_u64le(tail) || dp_load_u64le(head) != FRAME_MAGIC ||
        dp_load_u64le(head + 8) != number)
        return dp_fail(err, DP_CORRUPT, "sample %" PRIu64 " in '%s' fails its checksum", number, r->path);
    *sample = (struct dp_sample){
        .monotonic_ns = dp_load_u64le(head + 16),
        .wall_ns = dp_load_u64le(head + 24),
        .began_ns = dp_load_u64le(head + 32),
        .pushes = dp_load_u64le(head + 40),
        .examples = dp_load_u64le(head + 48),
        .by = dp_load_u64le(head + 56) == DP_SAMPLE_BY_EXAMPLES ? DP_SAMPLE_BY_EXAMPLES : DP_SAMPLE_BY_TIME};
    return DP_OK;
}

void dp_samples_reader_close(struct dp_samples_reader **reader)
{
    struct dp_samples_reader *r = *reader;
    *reader = NULL;
    if (!r)
        return;
    if (r->fd >= 0)
        (void)close(r->fd);
    dp_sample_keys_clear(&r->keys);
    free(r->path);
    free(r);
}

enum dp_status dp_sample_keys_read(const char *path, struct dp_sample_keys *out, struct dp_error *err)
{
    struct dp_samples_reader *reader = NULL;
    enum dp_status st = dp_samples_reader_open(path, &reader, err);
    *out = (struct dp_sample_keys){0};
    if (st == DP_OK) {
        *out = reader->keys;
        reader->keys = (struct dp_sample_keys){0};
    }
    dp_samples_reader_close(&reader);
    return st;
}
