/* Board: small named notes of a run (progress, parts of an evaluation), in memory, by name.
 * Promise   A note that is put again replaces the old one. Bounded: DP_BOARD_BYTES_MAX and
 *           DP_BOARD_NOTES_MAX; beyond them puts are refused with DP_FULL.
 * Thread    The control thread's. Memory: copies. */
#ifndef DP_CONTROL_BOARD_H
#define DP_CONTROL_BOARD_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define DP_BOARD_BYTES_MAX ((size_t)1 << 30)
#define DP_BOARD_NOTES_MAX 65536u

struct dp_board;

struct dp_note {
    char *name;
    void *bytes;
    size_t size;
};

DP_MUST_USE
enum dp_status dp_board_new(struct dp_board **out, struct dp_error *err);
void dp_board_free(struct dp_board **board);
DP_MUST_USE
enum dp_status dp_board_put(struct dp_board *board, const char *name, const void *bytes, size_t size,
                            struct dp_error *err);
/* Notes whose name starts with prefix, in name order: lent until the next put. Returns how many. */
uint32_t dp_board_find(const struct dp_board *board, const char *prefix, const struct dp_note **first);

#endif
