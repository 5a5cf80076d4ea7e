#include "server/control/board.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct dp_board {
    uint32_t count, room;
    size_t bytes;
    struct dp_note *note; /* ascending by name */
};

enum dp_status dp_board_new(struct dp_board **out, struct dp_error *err)
{
    *out = calloc(1, sizeof **out);
    return *out ? DP_OK : dp_fail(err, DP_NOMEM, "the board of notes");
}

static void clear(struct dp_note *note)
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

static uint32_t place_of(const struct dp_board *board, const char *name)
{
    uint32_t low = 0, high = board->count;
    while (low < high) {
        uint32_t middle = (low + high) / 2;
        if (strcmp(board->note[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static size_t cost_of(const char *name, size_t size)
{
    return size + strlen(name) + 1 + DP_BOARD_NOTE_COST;
}

/* ---- runs that have ended */

/* Of the prefix "run/12/" that the notes of a run share; 0: the note is of no run, and stands alone. */
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

/* How many notes from `at` on are of the run of that one; *newest_ns: when the last of them was put. */
static uint32_t extent_of(const struct dp_board *board, uint32_t at, uint64_t *newest_ns)
{
    uint32_t n = 0;
    *newest_ns = 0;
    do {
        const struct dp_note *note = &board->note[at + n++];
        *newest_ns = note->put_ns > *newest_ns ? note->put_ns : *newest_ns;
    } while (at + n < board->count && same_run(board->note[at].name, board->note[at + n].name));
    return n;
}

/* The notes of the run that has been silent for longest, but not of that whose note `for_name` is. A note of no run is taken for one: else
 * a board full of such notes would refuse all others until its server ends. False: none is idle. */
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

/* Runs that leave for one put: each takes a walk over all notes, and a put that needs more is sent again. */
#define DROPPED_A_PUT 64u

static bool is_at(const struct dp_board *board, uint32_t at, const char *name)
{
    return at < board->count && strcmp(board->note[at].name, name) == 0;
}

static bool has_room(const struct dp_board *board, const char *name, size_t size)
{
    uint32_t at = place_of(board, name);
    bool replaces = is_at(board, at, name);
    size_t before = replaces ? cost_of(name, board->note[at].size) : 0;
    return (replaces || board->count < DP_BOARD_NOTES_MAX) &&
           board->bytes - before + cost_of(name, size) <= DP_BOARD_BYTES_MAX;
}

static enum dp_status make_place(struct dp_board *board, struct dp_error *err)
{
    if (board->count < board->room)
        return DP_OK;
    uint32_t room = board->room ? board->room * 2 : 64;
    struct dp_note *note = realloc(board->note, room * sizeof note[0]);
    if (!note)
        return dp_fail(err, DP_NOMEM, "a note");
    board->note = note;
    board->room = room;
    return DP_OK;
}

enum dp_status dp_board_put(struct dp_board *board, uint64_t now_ns, const char *name, const void *bytes,
                            size_t size, struct dp_error *err)
{
    for (uint32_t dropped = 0; !has_room(board, name, size); dropped++)
        if (dropped == DROPPED_A_PUT || !drop_idle_run(board, now_ns, name))
            return dp_fail(
                err, DP_FULL,
                "note '%s' of %zu bytes: the first server holds %u notes, %zu of %zu bytes, and no run "
                "that has ended gives room; end runs, or wait some minutes after their end",
                name, size, board->count, board->bytes, DP_BOARD_BYTES_MAX);
    uint32_t at = place_of(board, name);
    bool replaces = is_at(board, at, name);
    enum dp_status st = replaces ? DP_OK : make_place(board, err);
    if (st != DP_OK)
        return st;
    struct dp_note fresh = {.name = strdup(name), .bytes = malloc(size + 1), .size = size, .put_ns = now_ns};
    if (!fresh.name || !fresh.bytes) {
        clear(&fresh);
        return dp_fail(err, DP_NOMEM, "note '%s' of %zu bytes", name, size);
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

uint32_t dp_board_find(const struct dp_board *board, const char *prefix, const struct dp_note **first)
{
    uint32_t at = place_of(board, prefix), n = 0;
    *first = board->note ? board->note + at : NULL;
    while (at + n < board->count && strncmp(board->note[at + n].name, prefix, strlen(prefix)) == 0)
        n++;
    return n;
}
