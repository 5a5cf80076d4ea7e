#include "server/restore/restore_marks.h"

#include "common/base/bytes.h"

#include <stdlib.h>

void dp_restore_marks_put(struct dp_restore_marks *marks, const struct dp_store_mark *mark)
{
    char *bytes = malloc(mark->key_bytes + mark->value_bytes + 1);
    if (!bytes || marks->failed || marks->count == DP_RESTORE_MARKS_MAX) {
        marks->failed = true;
        free(bytes);
        return;
    }
    memcpy(bytes, mark->key, mark->key_bytes);
    if (mark->value_bytes > 0)
        memcpy(bytes + mark->key_bytes, mark->value, mark->value_bytes);
    marks->mark[marks->count++] =
        (struct dp_store_mark){.key = bytes,
                               .key_bytes = mark->key_bytes,
                               .value = mark->value ? bytes + mark->key_bytes : NULL,
                               .value_bytes = mark->value_bytes};
}

void dp_restore_marks_put_bytes(struct dp_restore_marks *marks, const char *key, const void *value,
                                size_t bytes)
{
    const struct dp_store_mark mark = {
        .key = key, .key_bytes = strlen(key), .value = value, .value_bytes = bytes};
    dp_restore_marks_put(marks, &mark);
}

void dp_restore_marks_put_u64(struct dp_restore_marks *marks, const char *key, uint64_t value)
{
    char bytes[8];
    dp_store_u64le(bytes, value);
    dp_restore_marks_put_bytes(marks, key, bytes, sizeof bytes);
}

enum dp_status dp_restore_marks_write(const struct dp_restore_marks *marks, const struct dp_store *store,
                                      struct dp_error *err)
{
    struct dp_store_job job = {.kind = DP_STORE_MARKS, .count = marks->count, .marks = marks->mark};
    return marks->failed ? dp_fail(err, DP_NOMEM, "no memory for marks") : dp_store_do(store, &job, err);
}

void dp_restore_marks_clear(struct dp_restore_marks *marks)
{
    for (uint32_t i = 0; i < marks->count; i++)
        free((void *)(uintptr_t)marks->mark[i].key);
    marks->count = 0;
    marks->failed = false;
}
