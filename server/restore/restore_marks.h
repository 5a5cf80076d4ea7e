/* Restore marks: a list of marks for a restored store, whose keys and values it owns.
 * Memory    put copies; clear frees all. Without memory a put sets `failed`, and later ones do nothing.
 * Thread    Any. */
#ifndef DP_RESTORE_RESTORE_MARKS_H
#define DP_RESTORE_RESTORE_MARKS_H

#include "server/store/store.h"

#define DP_RESTORE_MARKS_MAX 512u /* more than tables are possible */

struct dp_restore_marks {
    struct dp_store_mark mark[DP_RESTORE_MARKS_MAX];
    uint32_t count;
    bool failed;
};

void dp_restore_marks_put(struct dp_restore_marks *marks, const struct dp_store_mark *mark);
/* key: a text. value NULL: the mark is to be removed. */
void dp_restore_marks_put_bytes(struct dp_restore_marks *marks, const char *key, const void *value,
                                size_t bytes);
void dp_restore_marks_put_u64(struct dp_restore_marks *marks, const char *key, uint64_t value);
/* Puts them into a store that has no job under way, durably. DP_NOMEM, too, where a put failed. */
DP_MUST_USE
enum dp_status dp_restore_marks_write(const struct dp_restore_marks *marks, const struct dp_store *store,
                                      struct dp_error *err);
void dp_restore_marks_clear(struct dp_restore_marks *marks);

#endif
