#include "server/metrics/worker_notes.h"

#include "common/base/memory.h"

#include <stdlib.h>
#include <string.h>

#define NOTE_BYTES_MAX 16384u

/* "12/": its number, and what follows; NULL: no such number. It has one form, so no series comes twice. */
static const char *take_number(const char *text, char end, uint32_t *out)
{
    uint64_t value = 0;
    const char *p = text;
    for (; *p >= '0' && *p <= '9' && value <= UINT32_MAX; p++)
        value = 10 * value + (uint64_t)(*p - '0');
    *out = (uint32_t)value;
    bool one_form = p == text + 1 || (p > text && *text != '0');
    return one_form && *p == end && value <= UINT32_MAX ? p + 1 : NULL;
}

/* run/<run>/progress/<worker>. */
static bool take_name(const char *name, struct dp_exporter_note *out)
{
    static const char run[] = "run/", progress[] = "progress/";
    const char *rest =
        strncmp(name, run, sizeof run - 1) == 0 ? take_number(name + sizeof run - 1, '/', &out->run) : NULL;
    if (!rest || strncmp(rest, progress, sizeof progress - 1) != 0)
        return false;
    rest = take_number(rest + sizeof progress - 1, '.', &out->worker);
    return rest && !*rest;
}

/* Under the control thread's lock: it only copies. */
static void see(void *to, const struct dp_board_note *note, uint64_t age_ns)
{
    struct dp_exporter_notes *notes = to;
    struct dp_exporter_note one = {.age_s = (double)age_ns / 1e9, .size = note->size};
    if (notes->count == DP_EXPORTER_NOTES_MAX || age_ns > DP_BOARD_IDLE_NS || note->size > NOTE_BYTES_MAX ||
        !take_name(note->name, &one) ||
        !dp_array_reserve(&notes->note, notes->count, &notes->room, sizeof notes->note[0]))
        return;
    one.text = malloc(note->size + 1);
    if (!one.text)
        return;
    memcpy(one.text, note->bytes, note->size);
    notes->note[notes->count++] = one;
}

static int by_number(const void *a, const void *b)
{
    const struct dp_exporter_note *x = a, *y = b;
    return x->run != y->run ? (x->run > y->run) - (x->run < y->run)
                            : (x->worker > y->worker) - (x->worker < y->worker);
}

void dp_exporter_notes_read(const struct dp_exporter_source *source, struct dp_exporter_notes *out)
{
    uint32_t readable = 0;
    *out = (struct dp_exporter_notes){0};
    source->each_note(source->context, "run/", see, out);
    for (uint32_t i = 0; i < out->count; i++) {
        struct dp_exporter_note *note = &out->note[i];
        note->root = json_loadb(note->text, note->size, 0, NULL);
        free(note->text);
        note->text = NULL;
        if (json_is_string(json_object_get(note->root, "state")))
            out->note[readable++] = *note;
        else
            json_decref(note->root);
    }
    out->count = readable;
    if (readable > 0)
        qsort(out->note, readable, sizeof out->note[0], by_number);
}

void dp_exporter_notes_clear(struct dp_exporter_notes *notes)
{
    for (uint32_t i = 0; i < notes->count; i++)
        json_decref(notes->note[i].root);
    free(notes->note);
    *notes = (struct dp_exporter_notes){0};
}

const char *dp_exporter_note_state(const struct dp_exporter_note *note)
{
    static const char *const states[] = {"reading", "training", "evaluating", "waiting",
                                         "done",    "failed",   "stopped"};
    const char *state = json_string_value(json_object_get(note->root, "state"));
    for (size_t i = 0; i < sizeof states / sizeof states[0]; i++)
        if (strcmp(state, states[i]) == 0)
            return states[i];
    return "other";
}
