#include "tests/fault/disk_file.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#define SECTOR 512u

static void resize(struct dp_disk_bytes *bytes, size_t size)
{
    if (size > bytes->room) {
        size_t room = size > 2 * bytes->room ? size : 2 * bytes->room;
        bytes->data = realloc(bytes->data, room);
        DP_ASSERT(bytes->data);
        bytes->room = room;
    }
    if (size > bytes->size)
        memset(bytes->data + bytes->size, 0, size - bytes->size);
    bytes->size = size;
}

static void put(struct dp_disk_bytes *bytes, uint64_t at, const uint8_t *data, size_t n)
{
    if (at + n > bytes->size)
        resize(bytes, at + n);
    memcpy(bytes->data + at, data, n);
}

void dp_disk_file_free(struct dp_disk_file *file)
{
    free(file->durable.data);
    free(file->change);
    *file = (struct dp_disk_file){0};
}

void dp_disk_file_change(struct dp_disk_file *file, const struct dp_disk_change *change)
{
    if (file->changes == file->room) {
        file->room = file->room ? 2 * file->room : 16;
        file->change = realloc(file->change, file->room * sizeof *file->change);
        DP_ASSERT(file->change);
    }
    file->change[file->changes++] = *change;
}

static void apply(struct dp_disk_bytes *bytes, const struct dp_disk_change *change)
{
    if (change->kind == DP_RECORD_WRITE)
        put(bytes, change->at, change->data, change->bytes);
    else if (change->kind == DP_RECORD_CUT || change->at > bytes->size)
        resize(bytes, change->at);
}

void dp_disk_file_sync(struct dp_disk_file *file, uint64_t moment)
{
    size_t n = 0;
    for (; n < file->changes && file->change[n].moment <= moment; n++)
        apply(&file->durable, &file->change[n]);
    file->changes -= n;
    if (n > 0)
        memmove(file->change, file->change + n, file->changes * sizeof *file->change);
}

/* By whole sectors: each shows the file as it was at a moment of its own, so that of two writes into one sector the later
 * never survives alone. */
static void apply_sectors(struct dp_disk_bytes *bytes, const struct dp_disk_change *change, uint64_t seed,
                          uint64_t first, uint64_t span)
{
    for (uint64_t at = change->at, end = change->at + change->bytes; at < end;) {
        uint64_t sector = at / SECTOR, next = (sector + 1) * SECTOR;
        next = next < end ? next : end;
        uint64_t draw = dp_disk_draw(seed, sector), moment = first + (draw >> 8) % span;
        bool survives = draw % 3 == 1 || (draw % 3 == 2 && change->moment <= moment);
        if (survives)
            put(bytes, at, change->data + (at - change->at), next - at);
        at = next;
    }
}

static void apply_some(const struct dp_disk_file *file, uint64_t seed, struct dp_disk_bytes *out)
{
    enum { NOTHING, ALL, UP_TO, SECTORS } how = (int)(dp_disk_draw(seed, 1) % 4);
    uint64_t first = file->change[0].moment, span = file->change[file->changes - 1].moment - first + 1;
    uint64_t moment = first + dp_disk_draw(seed, 2) % span; /* of the size, too */
    bool whole_size = dp_disk_draw(seed, 3) % 4 == 0;
    size_t size = out->size;
    for (size_t i = 0; i < file->changes && how != NOTHING; i++) {
        const struct dp_disk_change *c = &file->change[i];
        if (how == ALL || (how == UP_TO && c->moment < moment))
            apply(out, c);
        else if (c->kind == DP_RECORD_WRITE && (how == SECTORS || c->moment == moment))
            apply_sectors(out, c, seed, first, span);
        else if (c->moment <= moment)
            apply(out, c);
        size = c->kind == DP_RECORD_WRITE && c->at + c->bytes > size ? c->at + c->bytes : size;
    }
    if (how == SECTORS && whole_size && size > out->size)
        resize(out, size); /* the size came to the disk, the bytes did not */
}

void dp_disk_file_survives(const struct dp_disk_file *file, enum dp_disk_survival survival, uint64_t seed,
                           struct dp_disk_bytes *out)
{
    *out = (struct dp_disk_bytes){0};
    if (file->durable.size > 0)
        put(out, 0, file->durable.data, file->durable.size);
    if (survival == DP_DISK_ALL)
        for (size_t i = 0; i < file->changes; i++)
            apply(out, &file->change[i]);
    else if (survival == DP_DISK_RANDOM && file->changes > 0)
        apply_some(file, seed, out);
}
