#include "server/store/marks_file.h"

#include "common/base/bytes.h"
#include "common/env/disk_replace.h"
#include "server/journal/crc32c.h"

#include <pthread.h>
#include <stdlib.h>

#define MAGIC      "DPMARKS1"
#define CRC_AT     8u
#define BYTES_AT   16u
#define SEAL_AT    24u
#define HEAD_BYTES 40u
#define MARK_BYTES 8u

/* The file's bytes. */
struct image {
    char *bytes;
    size_t size;
};

struct dp_marks_file {
    struct dp_disk disk;
    pthread_mutex_t lock; /* guards the rest against a put and a copy */
    struct image image;
    struct dp_rocks_seal seal;
};

/* ---- bytes */

/* Gives the mark at `at`, and where the next one begins. NULL: it does not fit. */
static const char *read_mark(const struct image *image, const char *at, struct dp_store_mark *mark)
{
    size_t left = (size_t)(image->bytes + image->size - at);
    if (left < MARK_BYTES)
        return NULL;
    size_t key = dp_load_u32le(at), value = dp_load_u32le(at + 4);
    if (key + value > left - MARK_BYTES)
        return NULL;
    *mark = (struct dp_store_mark){at + MARK_BYTES, at + MARK_BYTES + key, key, value};
    return at + MARK_BYTES + key + value;
}

static const char *first_of(const struct image *image)
{
    return image->bytes + HEAD_BYTES;
}

static bool has_more(const struct image *image, const char *at)
{
    return at < image->bytes + image->size;
}

static const char *next_mark(const struct image *image, const char *at, struct dp_store_mark *mark)
{
    at = read_mark(image, at, mark);
    DP_ASSERT(at); /* checked when it was loaded */
    return at;
}

static char *write_mark(char *at, const struct dp_store_mark *mark)
{
    dp_store_u32le(at, (uint32_t)mark->key_bytes);
    dp_store_u32le(at + 4, (uint32_t)mark->value_bytes);
    memcpy(at + MARK_BYTES, mark->key, mark->key_bytes);
    if (mark->value_bytes > 0)
        memcpy(at + MARK_BYTES + mark->key_bytes, mark->value, mark->value_bytes);
    return at + MARK_BYTES + mark->key_bytes + mark->value_bytes;
}

static int compare_keys(const struct dp_store_mark *a, const struct dp_store_mark *b)
{
    size_t shorter = a->key_bytes < b->key_bytes ? a->key_bytes : b->key_bytes;
    int order = memcmp(a->key, b->key, shorter);
    return order != 0 ? order : (a->key_bytes > b->key_bytes) - (a->key_bytes < b->key_bytes);
}

/* Of one key, the last one in the order of the array counts. */
static int compare_changes(const void *a, const void *b)
{
    const struct dp_store_mark *const *x = a, *const *y = b;
    int order = compare_keys(*x, *y);
    return order != 0 ? order : (*x > *y) - (*x < *y);
}

static bool is_replaced(const struct dp_store_mark *const *change, uint32_t i, uint32_t count)
{
    return i + 1 < count && compare_keys(change[i], change[i + 1]) == 0;
}

/* Merges the marks of `from` with sorted changes into `to`, which has enough space. */
static void merge(const struct image *from, const struct dp_store_mark *const *change, uint32_t count,
                  struct image *to)
{
    const char *at = first_of(from);
    char *end = to->bytes + HEAD_BYTES;
    struct dp_store_mark old;
    for (uint32_t i = 0; i < count || has_more(from, at);) {
        const char *next = has_more(from, at) ? next_mark(from, at, &old) : NULL;
        int order = i == count ? -1 : next ? compare_keys(&old, change[i]) : 1;
        if (order < 0)
            end = write_mark(end, &old);
        if (order >= 0 && change[i]->value && !is_replaced(change, i, count))
            end = write_mark(end, change[i]);
        at = order <= 0 ? next : at;
        i += order >= 0;
    }
    to->size = (size_t)(end - to->bytes);
}

static enum dp_status change(const struct image *from, const struct dp_store_mark *marks, uint32_t count,
                             struct image *to, struct dp_error *err)
{
    size_t most = from->size;
    const struct dp_store_mark **sorted = malloc((count + 1) * sizeof(const struct dp_store_mark *));
    for (uint32_t i = 0; i < count && sorted; i++) {
        sorted[i] = &marks[i];
        most += MARK_BYTES + marks[i].key_bytes + marks[i].value_bytes;
    }
    to->bytes = sorted ? malloc(most) : NULL;
    if (to->bytes) {
        qsort(sorted, count, sizeof(const struct dp_store_mark *), compare_changes);
        memcpy(to->bytes, from->bytes, HEAD_BYTES);
        merge(from, sorted, count, to);
    }
    free(sorted);
    return to->bytes ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for marks of %zu bytes", most);
}

static uint32_t crc_of(const struct image *image)
{
    static const char zero[4] = {0};
    uint32_t crc = dp_crc32c(0, image->bytes, CRC_AT);
    crc = dp_crc32c(crc, zero, sizeof zero);
    return dp_crc32c(crc, image->bytes + CRC_AT + 4, image->size - CRC_AT - 4);
}

static void write_head(struct image *image, const struct dp_rocks_seal *seal)
{
    dp_store_u64le(image->bytes + BYTES_AT, image->size);
    dp_store_u64le(image->bytes + SEAL_AT, seal->number);
    dp_store_u64le(image->bytes + SEAL_AT + 8, seal->bytes);
    dp_store_u32le(image->bytes + CRC_AT, crc_of(image));
}

static bool is_sound(const struct image *image)
{
    if (image->size < HEAD_BYTES || memcmp(image->bytes, MAGIC, CRC_AT) != 0 ||
        dp_load_u64le(image->bytes + BYTES_AT) != image->size ||
        dp_load_u32le(image->bytes + CRC_AT) != crc_of(image))
        return false;
    const char *at = first_of(image);
    for (struct dp_store_mark mark, before = {0}; at && has_more(image, at); before = mark) {
        at = read_mark(image, at, &mark);
        if (at && before.key && compare_keys(&before, &mark) >= 0)
            return false;
    }
    return at != NULL;
}

/* ---- load, close */

static enum dp_status load(struct dp_marks_file *file, struct dp_error *err)
{
    void *data = NULL;
    enum dp_status st = dp_disk_read_all(&file->disk, DP_MARKS_FILE, false, &data, &file->image.size, err);
    file->image.bytes = data;
    if (st == DP_OK && !is_sound(&file->image))
        return dp_fail(err, DP_CORRUPT, "the file '" DP_MARKS_FILE "' is damaged");
    if (st == DP_OK)
        file->seal = (struct dp_rocks_seal){dp_load_u64le(file->image.bytes + SEAL_AT),
                                            dp_load_u64le(file->image.bytes + SEAL_AT + 8)};
    if (st != DP_NOT_FOUND)
        return st;
    file->image = (struct image){calloc(1, HEAD_BYTES), HEAD_BYTES};
    if (!file->image.bytes)
        return dp_fail(err, DP_NOMEM, "no memory for marks");
    memcpy(file->image.bytes, MAGIC, CRC_AT);
    return DP_OK;
}

enum dp_status dp_marks_file_load(const struct dp_disk *disk, struct dp_marks_file **out,
                                  struct dp_error *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return dp_fail(err, DP_NOMEM, "no memory for marks");
    (*out)->disk = *disk;
    DP_ASSERT(pthread_mutex_init(&(*out)->lock, NULL) == 0);
    enum dp_status st = load(*out, err);
    if (st != DP_OK)
        dp_marks_file_close(out);
    return st;
}

void dp_marks_file_close(struct dp_marks_file **file)
{
    if (!*file)
        return;
    (void)pthread_mutex_destroy(&(*file)->lock);
    free((*file)->image.bytes);
    free(*file);
    *file = NULL;
}

uint64_t dp_marks_file_bytes(struct dp_marks_file *file)
{
    DP_ASSERT(pthread_mutex_lock(&file->lock) == 0);
    uint64_t bytes = file->image.size;
    DP_ASSERT(pthread_mutex_unlock(&file->lock) == 0);
    return bytes;
}

/* ---- put */

static enum dp_status write_to(const struct dp_disk *disk, struct image *image, struct dp_rocks_seal *seal,
                               struct dp_error *err)
{
    enum dp_status st = dp_rocks_manifest_seal(disk, seal, err);
    if (st != DP_OK)
        return st;
    write_head(image, seal);
    return dp_disk_replace(disk, DP_MARKS_FILE, image->bytes, image->size, err);
}

/* disk NULL: in memory only. */
static enum dp_status put(struct dp_marks_file *file, const struct dp_disk *disk,
                          const struct dp_store_mark *marks, uint32_t count, struct dp_error *err)
{
    struct image next = {0};
    DP_ASSERT(pthread_mutex_lock(&file->lock) == 0);
    enum dp_status st = change(&file->image, marks, count, &next, err);
    if (st == DP_OK && disk)
        st = write_to(disk, &next, &file->seal, err);
    if (st == DP_OK) {
        free(file->image.bytes);
        file->image = next;
    } else {
        free(next.bytes);
    }
    DP_ASSERT(pthread_mutex_unlock(&file->lock) == 0);
    return st == DP_OK ? st : dp_wrap(err, st, "store: cannot write marks");
}

enum dp_status dp_marks_file_put(struct dp_marks_file *file, const struct dp_store_mark *marks,
                                 uint32_t count, struct dp_error *err)
{
    return put(file, &file->disk, marks, count, err);
}

enum dp_status dp_marks_file_take(struct dp_marks_file *file, const struct dp_store_mark *mark,
                                  struct dp_error *err)
{
    return put(file, NULL, mark, 1, err);
}

enum dp_status dp_marks_file_copy(struct dp_marks_file *file, const char *directory, struct dp_error *err)
{
    struct image copy = {0};
    struct dp_rocks_seal seal = {0};
    struct dp_disk disk = {0};
    DP_ASSERT(pthread_mutex_lock(&file->lock) == 0);
    enum dp_status st = change(&file->image, NULL, 0, &copy, err);
    DP_ASSERT(pthread_mutex_unlock(&file->lock) == 0);
    if (st == DP_OK)
        st = dp_disk_open(directory, &disk, err);
    if (st == DP_OK)
        st = write_to(&disk, &copy, &seal, err);
    dp_disk_close(&disk);
    free(copy.bytes);
    return st == DP_OK ? st : dp_wrap(err, st, "store: cannot copy marks");
}

/* ---- read */

bool dp_marks_file_is_empty(const struct dp_marks_file *file)
{
    return file->image.size == HEAD_BYTES;
}

bool dp_marks_file_get(const struct dp_marks_file *file, const char *key, struct dp_store_mark *out)
{
    const struct dp_store_mark wanted = {.key = key, .key_bytes = strlen(key)};
    for (const char *at = first_of(&file->image); has_more(&file->image, at);) {
        at = next_mark(&file->image, at, out);
        if (compare_keys(out, &wanted) == 0)
            return true;
    }
    return false;
}

enum dp_status dp_marks_file_visit(const struct dp_marks_file *file, dp_store_visit_mark *visit,
                                   void *context, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (const char *at = first_of(&file->image); st == DP_OK && has_more(&file->image, at);) {
        struct dp_store_mark mark;
        at = next_mark(&file->image, at, &mark);
        st = visit(context, &mark, err);
    }
    return st;
}

struct dp_rocks_seal dp_marks_file_seal(const struct dp_marks_file *file)
{
    return file->seal;
}
