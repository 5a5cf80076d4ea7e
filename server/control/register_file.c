#include "server/control/register_file.h"

#include "common/base/bytes.h"
#include "common/env/disk_replace.h"
#include "common/wire/limits.h"
#include "server/journal/crc32c.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC        "DPREGIST"
#define FORMAT       1u
#define HEADER_BYTES 48u
#define CRC_AT       12u
#define ITEM_BYTES   24u

struct dp_control_register_item *dp_control_register_item_new(const char *name, size_t name_len,
                                                              const void *bytes, size_t size)
{
    struct dp_control_register_item *item = calloc(1, sizeof *item + size + name_len + 1);
    if (!item)
        return NULL;
    item->size = (uint32_t)size;
    item->name = (char *)item->bytes + size;
    if (size > 0)
        memcpy(item->bytes, bytes, size);
    memcpy(item->name, name, name_len);
    return item;
}

size_t dp_control_register_item_bytes(const struct dp_control_register_item *item)
{
    return ITEM_BYTES + (size_t)item->nonces * 8 + strlen(item->name) + item->size;
}

size_t dp_control_register_file_bytes(const struct dp_control_register_content *content)
{
    size_t bytes = HEADER_BYTES;
    for (uint32_t i = 0; i < content->count; i++)
        bytes += dp_control_register_item_bytes(content->item[i]);
    return bytes;
}

void dp_control_register_content_clear(struct dp_control_register_content *content)
{
    for (uint32_t i = 0; i < content->count; i++)
        free(content->item[i]);
    free(content->item);
    *content = (struct dp_control_register_content){0};
}

/* How many nonces a value of this version has. */
static uint32_t nonces_of(uint64_t version)
{
    return version < DP_REGISTER_NONCES_MAX ? (uint32_t)version : DP_REGISTER_NONCES_MAX;
}

/* ---- writing */

static unsigned char *put_item(unsigned char *at, const struct dp_control_register_item *item)
{
    size_t name_len = strlen(item->name);
    /* What take_item checks: without it the next start would refuse the file. */
    DP_ASSERT(name_len > 0 && name_len <= DP_NOTE_NAME_MAX && item->size <= DP_REGISTER_VALUE_BYTES_MAX);
    DP_ASSERT(item->version > 0 && item->nonces == nonces_of(item->version));
    dp_store_u32le(at, (uint32_t)name_len);
    dp_store_u32le(at + 4, item->size);
    dp_store_u64le(at + 8, item->version);
    dp_store_u32le(at + 16, item->nonces);
    dp_store_u32le(at + 20, 0);
    at += ITEM_BYTES;
    for (uint32_t i = 0; i < item->nonces; i++, at += 8)
        dp_store_u64le(at, item->nonce[i]);
    memcpy(at, item->name, name_len);
    memcpy(at + name_len, item->bytes, item->size);
    return at + name_len + item->size;
}

static void put_all(unsigned char *to, size_t bytes, const struct dp_control_register_content *content)
{
    DP_ASSERT(content->id != 0 && content->count <= DP_REGISTER_VALUES_MAX && bytes <= DP_REGISTER_BYTES_MAX);
    memcpy(to, MAGIC, 8);
    dp_store_u32le(to + 8, FORMAT);
    dp_store_u32le(to + CRC_AT, 0);
    dp_store_u64le(to + 16, content->id);
    dp_store_u64le(to + 24, bytes);
    dp_store_u64le(to + 32, content->gone_run);
    dp_store_u32le(to + 40, content->count);
    dp_store_u32le(to + 44, 0);
    unsigned char *at = to + HEADER_BYTES;
    for (uint32_t i = 0; i < content->count; i++) {
        DP_ASSERT(i == 0 || strcmp(content->item[i - 1]->name, content->item[i]->name) < 0);
        at = put_item(at, content->item[i]);
    }
    DP_ASSERT(at == to + bytes);
    dp_store_u32le(to + CRC_AT, dp_crc32c(0, to, bytes));
}

void *dp_control_register_file_pack(const struct dp_control_register_content *content)
{
    size_t bytes = dp_control_register_file_bytes(content);
    unsigned char *data = malloc(bytes);
    if (data)
        put_all(data, bytes, content);
    return data;
}

enum dp_status dp_control_register_file_write(const struct dp_disk *disk,
                                              const struct dp_control_register_content *content,
                                              struct dp_error *err)
{
    size_t bytes = dp_control_register_file_bytes(content);
    void *data = dp_control_register_file_pack(content);
    if (!data)
        return dp_fail(err, DP_NOMEM, "register: no memory to write %zu bytes", bytes);
    enum dp_status st = dp_disk_replace(disk, DP_REGISTER_FILE, data, bytes, err);
    free(data);
    return st == DP_OK ? st : dp_wrap(err, st, "register");
}

/* ---- reading */

struct register_cursor {
    const unsigned char *at, *end;
};

/* Returns NULL if fewer bytes are left. */
static const unsigned char *take(struct register_cursor *cursor, size_t bytes)
{
    const unsigned char *at = cursor->at;
    if (bytes > (size_t)(cursor->end - cursor->at))
        return NULL;
    cursor->at += bytes;
    return at;
}

/* Returns false if the item is damaged. Without memory it returns true and *out is NULL. */
static bool take_item(struct register_cursor *cursor, const struct dp_control_register_item *before,
                      struct dp_control_register_item **out)
{
    const unsigned char *head = take(cursor, ITEM_BYTES);
    *out = NULL;
    if (!head)
        return false;
    uint32_t name_len = dp_load_u32le(head), size = dp_load_u32le(head + 4),
             nonces = dp_load_u32le(head + 16);
    uint64_t version = dp_load_u64le(head + 8);
    if (name_len == 0 || name_len > DP_NOTE_NAME_MAX || size > DP_REGISTER_VALUE_BYTES_MAX || version == 0 ||
        nonces != nonces_of(version))
        return false;
    const unsigned char *nonce = take(cursor, (size_t)nonces * 8);
    const unsigned char *name = nonce ? take(cursor, name_len) : NULL;
    const unsigned char *bytes = name ? take(cursor, size) : NULL;
    if (!bytes || memchr(name, 0, name_len))
        return false;
    struct dp_control_register_item *item =
        dp_control_register_item_new((const char *)name, name_len, bytes, size);
    if (!item)
        return true;
    item->version = version;
    item->nonces = nonces;
    for (uint32_t i = 0; i < nonces; i++)
        item->nonce[i] = dp_load_u64le(nonce + (size_t)i * 8);
    *out = item;
    return !before || strcmp(before->name, item->name) < 0;
}

static enum dp_status damaged(struct dp_error *err, const char *what)
{
    return dp_fail(
        err, DP_CORRUPT,
        "file '" DP_REGISTER_FILE
        "' is damaged (%s). Restore the latest copy, or a checkpoint (downpour restore --overwrite); or "
        "remove the file and start each server once with --replace-store, which loses the register's "
        "knowledge of runs (plans, decisions of early stopping), with no way back",
        what);
}

static enum dp_status parse_items(struct register_cursor *cursor, uint32_t count,
                                  struct dp_control_register_content *out, struct dp_error *err)
{
    out->item = calloc(count + 1, sizeof(struct dp_control_register_item *));
    out->capacity = count + 1;
    if (!out->item)
        return dp_fail(err, DP_NOMEM, "register: no memory for %" PRIu32 " values", count);
    for (uint32_t i = 0; i < count; i++) {
        bool sound = take_item(cursor, i > 0 ? out->item[i - 1] : NULL, &out->item[i]);
        out->count += out->item[i] != NULL;
        if (!sound)
            return damaged(err, "an invalid value");
        if (!out->item[i])
            return dp_fail(err, DP_NOMEM, "register: no memory for %" PRIu32 " values", count);
    }
    return cursor->at == cursor->end ? DP_OK : damaged(err, "bytes after the last value");
}

enum dp_status dp_control_register_file_unpack(void *of, size_t bytes,
                                               struct dp_control_register_content *out, struct dp_error *err)
{
    unsigned char *data = of;
    *out = (struct dp_control_register_content){0};
    struct register_cursor cursor = {data + HEADER_BYTES, data + bytes};
    if (bytes > DP_REGISTER_BYTES_MAX)
        return damaged(err, "larger than allowed");
    if (bytes < HEADER_BYTES || memcmp(data, MAGIC, 8) != 0)
        return damaged(err, "wrong first bytes");
    if (dp_load_u32le(data + 8) != FORMAT)
        return dp_fail(err, DP_VERSION,
                       "file '" DP_REGISTER_FILE "' has format %" PRIu32
                       ", this build reads %u: use the release that wrote it",
                       dp_load_u32le(data + 8), FORMAT);
    uint32_t crc = dp_load_u32le(data + CRC_AT);
    dp_store_u32le(data + CRC_AT, 0);
    if (dp_load_u64le(data + 24) != bytes || dp_crc32c(0, data, bytes) != crc)
        return damaged(err, "wrong size or checksum");
    uint32_t count = dp_load_u32le(data + 40);
    out->id = dp_load_u64le(data + 16);
    out->gone_run = dp_load_u64le(data + 32);
    if (out->id == 0 || count > DP_REGISTER_VALUES_MAX)
        return damaged(err, "an invalid header");
    return parse_items(&cursor, count, out, err);
}

enum dp_status dp_control_register_file_read(const struct dp_disk *disk, bool read_only,
                                             struct dp_control_register_content *out, struct dp_error *err)
{
    void *data = NULL;
    size_t bytes = 0;
    *out = (struct dp_control_register_content){0};
    enum dp_status st = dp_disk_read_all(disk, DP_REGISTER_FILE, !read_only, &data, &bytes, err);
    if (st == DP_OK)
        st = dp_control_register_file_unpack(data, bytes, out, err);
    free(data);
    return st;
}
