#include "server/control/board.h"

#include "common/base/memory.h"
#include "common/base/search.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct dp_board {
    uint32_t count;
    size_t room, bytes;
    struct dp_board_note *note; /* ascending by name */
};

enum dp_status dp_board_new(struct dp_board **out, struct dp_error *err)
{
    *out = calloc(1, sizeof **out);
    return *out ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the notes");
}

static void clear(struct dp_board_note *note)
{
    free(note->name);
    free(note->bytes);
}

void dp_board_free(struct dp_board **board)
{
    if (!*board)
        return;
    for (uint32_t i = 0; i < (*board)->count; i++)
        clear(&(*board)->note[i]);
    free((*board)->note);
    free(*board);
    *board = NULL;
}

static bool is_below(const void *note, const void *name)
{
    return strcmp(((const struct dp_board_note *)note)->name, name) < 0;
}

static uint32_t place_of(const struct dp_board *board, const char *name)
{
    return (uint32_t)dp_lower_bound(board->note, board->count, sizeof *board->note, name, is_below);
}

static size_t cost_of(const char *name, size_t size)
{
    return size + strlen(name) + 1 + DP_BOARD_NOTE_COST;
}

/* ---- runs that have ended */

/* Length of the prefix "run/12/" that a run's notes share; 0: the note belongs to no run. */
static size_t run_of(const char *name)
{
    const char *first = strchr(name, '/'), *second = first ? strchr(first + 1, '/') : NULL;
    return second ? (size_t)(second - name) + 1 : 0;
}

static bool same_run(const char *a, const char *b)
{
    size_t len = run_of(a);
    return len > 0 && len == run_of(b) && memcmp(a, b, len) == 0;
}

/* Counts the notes from `at` on that belong to the same run as that note. *newest_ns: when the last of them
 * was put. */
static uint32_t extent_of(const struct dp_board *board, uint32_t at, uint64_t *newest_ns)
{
    uint32_t n = 0;
    *newest_ns = 0;
    do {
        const struct dp_board_note *note = &board->note[at + n++];
        *newest_ns = note->put_ns > *newest_ns ? note->put_ns : *newest_ns;
    } while (at + n < board->count && same_run(board->note[at].name, board->note[at + n].name));
    return n;
}

/* Drops the notes of the run that has been idle for longest, except the run of `for_name`. A note without a
 * run counts as a run of its own: otherwise a board full of such notes would refuse all others until the
 * server stops. Returns false if no run is idle. */
static bool drop_idle_run(struct dp_board *board, uint64_t now_ns, const char *for_name)
{
    uint32_t from = 0, count = 0;
    uint64_t oldest_ns = UINT64_MAX, newest_ns;
    for (uint32_t at = 0, n; at < board->count; at += n) {
        n = extent_of(board, at, &newest_ns);
        if (same_run(board->note[at].name, for_name) || strcmp(board->note[at].name, for_name) == 0 ||
            newest_ns >= oldest_ns || now_ns - newest_ns < DP_BOARD_IDLE_NS)
            continue;
        oldest_ns = newest_ns;
        from = at;
        count = n;
    }
    for (uint32_t i = from; i < from + count; i++) {
        board->bytes -= cost_of(board->note[i].name, board->note[i].size);
        clear(&board->note[i]);
    }
    memmove(&board->note[from], &board->note[from + count],
            (board->count - from - count) * sizeof board->note[0]);
    board->count -= count;
    return count > 0;
}

/* ---- putting */

/* Runs dropped for one put, at most: each one takes a scan of all notes. A put that needs more is resent. */
#define DROPPED_A_PUT 64u

static bool is_at(const struct dp_board *board, uint32_t at, const char *name)
{
    return at < board->count && strcmp(board->note[at].name, name) == 0;
}

static bool fits(const struct dp_board *board, const char *name, size_t size)
{
    uint32_t at = place_of(board, name);
    bool replaces = is_at(board, at, name);
    size_t before = replaces ? cost_of(name, board->note[at].size) : 0;
    return (replaces || board->count < DP_BOARD_NOTES_MAX) &&
           board->bytes - before + cost_of(name, size) <= DP_BOARD_BYTES_MAX;
}

enum dp_status dp_board_put(struct dp_board *board, uint64_t now_ns, const char *name, const void *bytes,
                            size_t size, struct dp_error *err)
{
    for (uint32_t dropped = 0; !fits(board, name, size); dropped++)
        if (dropped == DROPPED_A_PUT || !drop_idle_run(board, now_ns, name))
            return dp_fail_wait(
                err, DP_FULL, (struct dp_wait){.reason = DP_WAIT_QUEUE},
                "note '%s' of %zu bytes does not fit: the first server holds %u notes, %zu of %zu bytes. "
                "Notes of a run are dropped 10 minutes after it ended; stop a run, or wait",
                name, size, board->count, board->bytes, DP_BOARD_BYTES_MAX);
    uint32_t at = place_of(board, name);
    bool replaces = is_at(board, at, name);
    if (!replaces && !dp_array_reserve(&board->note, board->count, &board->room, sizeof board->note[0]))
        return dp_fail(err, DP_NOMEM, "no memory for a note");
    struct dp_board_note fresh = {
        .name = strdup(name), .bytes = malloc(size + 1), .size = size, .put_ns = now_ns};
    if (!fresh.name || !fresh.bytes) {
        clear(&fresh);
        return dp_fail(err, DP_NOMEM, "no memory for note '%s' of %zu bytes", name, size);
    }
    if (size > 0)
        memcpy(fresh.bytes, bytes, size);
    if (replaces) {
        board->bytes -= cost_of(name, board->note[at].size);
        clear(&board->note[at]);
    } else {
        memmove(&board->note[at + 1], &board->note[at], (board->count - at) * sizeof board->note[0]);
        board->count++;
    }
    board->note[at] = fresh;
    board->bytes += cost_of(name, size);
    return DP_OK;
}

uint32_t dp_board_find(const struct dp_board *board, const char *prefix, const struct dp_board_note **first)
{
    uint32_t at = place_of(board, prefix), n = 0;
    *first = board->note ? board->note + at : NULL;
    while (at + n < board->count && strncmp(board->note[at + n].name, prefix, strlen(prefix)) == 0)
        n++;
    return n;
}
