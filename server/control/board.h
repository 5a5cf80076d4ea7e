/* Board: small named notes of a run (progress, parts of an evaluation), in memory, by name.
 * Promise   A note that is put again replaces the old one. Bounded: DP_BOARD_BYTES_MAX, names and DP_BOARD_NOTE_COST a note
 *           included, and DP_BOARD_NOTES_MAX. Where a put has no room, the notes of runs that have put none for
 *           DP_BOARD_IDLE_NS leave, the longest silent first; the put is refused with DP_FULL where that is not enough.
 *           A run's notes are those that share their name's first two parts ("run/12/"). Its workers put their progress every
 *           few seconds, so one that is silent so long has ended. A note of no run leaves in the same way, alone.
 * Thread    The control thread's. Memory: copies. */
#ifndef DP_CONTROL_BOARD_H
#define DP_CONTROL_BOARD_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define DP_BOARD_BYTES_MAX ((size_t)64 << 20)
#define DP_BOARD_NOTES_MAX 65536u
#define DP_BOARD_NOTE_COST ((size_t)64)
#define DP_BOARD_IDLE_NS   (UINT64_C(600) * 1000000000u)

struct dp_board;

struct dp_note {
    char *name;
    void *bytes;
    size_t size;
    uint64_t put_ns;
};

DP_MUST_USE
enum dp_status dp_board_new(struct dp_board **out, struct dp_error *err);
void dp_board_free(struct dp_board **board);
DP_MUST_USE
enum dp_status dp_board_put(struct dp_board *board, uint64_t now_ns, const char *name, const void *bytes,
                            size_t size, struct dp_error *err);
/* Notes whose name starts with prefix, in name order: lent until the next put. Returns how many. */
uint32_t dp_board_find(const struct dp_board *board, const char *prefix, const struct dp_note **first);

#endif
