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

static enum dp_status make_place(struct dp_board *board, struct dp_error *err)
{
    if (board->count == DP_BOARD_NOTES_MAX)
        return dp_fail(err, DP_FULL, "the board holds %u notes already", DP_BOARD_NOTES_MAX);
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

enum dp_status dp_board_put(struct dp_board *board, const char *name, const void *bytes, size_t size,
                            struct dp_error *err)
{
    uint32_t at = place_of(board, name);
    bool replaces = at < board->count && strcmp(board->note[at].name, name) == 0;
    size_t before = replaces ? board->note[at].size : 0;
    if (board->bytes - before + size > DP_BOARD_BYTES_MAX)
        return dp_fail(err, DP_FULL, "note '%s' of %zu bytes: the board holds %zu already", name, size,
                       board->bytes);
    enum dp_status st = replaces ? DP_OK : make_place(board, err);
    if (st != DP_OK)
        return st;
    struct dp_note fresh = {.name = strdup(name), .bytes = malloc(size + 1), .size = size};
    if (!fresh.name || !fresh.bytes) {
        clear(&fresh);
        return dp_fail(err, DP_NOMEM, "note '%s' of %zu bytes", name, size);
    }
    if (size > 0)
        memcpy(fresh.bytes, bytes, size);
    if (replaces) {
        clear(&board->note[at]);
    } else {
        memmove(&board->note[at + 1], &board->note[at], (board->count - at) * sizeof board->note[0]);
        board->count++;
    }
    board->note[at] = fresh;
    board->bytes = board->bytes - before + size;
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
