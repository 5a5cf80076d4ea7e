/* Board: small named notes of a run (progress, parts of an evaluation), kept in memory.
 * Promise   Putting a note again replaces the old one. The board holds at most DP_BOARD_NOTES_MAX notes and
 *           DP_BOARD_BYTES_MAX bytes, which include the names and DP_BOARD_NOTE_COST for each note. When a
 *           put does not fit, the board drops runs that have put no note for DP_BOARD_IDLE_NS, the longest
 *           idle first; if that does not suffice, the put fails with DP_FULL.
 *           A run's notes share the first two parts of their names ("run/12/"). Workers put their progress
 *           every few seconds, so a run that is idle for so long has ended. A note without a run is dropped
 *           in the same way, on its own.
 * Thread    The control thread.
 * Memory    The board copies its arguments. */
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

struct dp_board_note {
    char *name;
    void *bytes;
    size_t size;
    uint64_t put_ns;
};

enum dp_status dp_board_new(struct dp_board **out, struct dp_error *err);
void dp_board_free(struct dp_board **board);
enum dp_status dp_board_put(struct dp_board *board, uint64_t now_ns, const char *name, const void *bytes,
                            size_t size, struct dp_error *err);
/* Finds the notes whose name starts with prefix, in name order. Returns their number; the notes are borrowed
 * until the next put. */
uint32_t dp_board_find(const struct dp_board *board, const char *prefix, const struct dp_board_note **first);

#endif
