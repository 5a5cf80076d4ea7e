#include "worker/read/csv_record.h"

#include "worker/read/lines.h"

#include <stdlib.h>
#include <string.h>
#include <strings.h>

static enum dp_status reserve(struct dp_csv_record *r, size_t text, struct dp_error *err)
{
    if (r->count == r->max) {
        size_t max = r->max * 2 + 64;
        struct dp_cell *cells = realloc(r->cells, max * sizeof *cells);
        if (!cells)
            return dp_fail(err, DP_NOMEM, "no memory for %zu cells", max);
        r->cells = cells;
        r->max = max;
    }
    if (text > r->text_max) {
        char *grown = realloc(r->text, text);
        if (!grown)
            return dp_fail(err, DP_NOMEM, "no memory for a line of %zu bytes", text);
        r->text = grown;
        r->text_max = text;
    }
    return DP_OK;
}

/* A quoted cell that starts at `at`; *after: what follows its second quote. The second may not be there. */
static struct dp_cell unquote(const char *at, const char *end, char **text, const char **after)
{
    struct dp_cell cell = {*text, *text};
    for (at++; at < end; at++) {
        if (*at == '"' && (at + 1 == end || at[1] != '"'))
            break;
        at += *at == '"';
        *(*text)++ = *at;
    }
    cell.end = *text;
    *after = at < end ? at + 1 : end;
    return cell;
}

enum dp_status dp_csv_record_split(struct dp_csv_record *r, char separator, const char *at, const char *end,
                                   struct dp_error *err)
{
    char *text = NULL;
    r->count = 0;
    for (;;) {
        enum dp_status st = reserve(r, (size_t)(end - at) * (r->count == 0) + 1, err);
        if (st != DP_OK)
            return st;
        text = r->count ? text : r->text;
        struct dp_cell *cell = &r->cells[r->count++];
        const char *after;
        if (at < end && *at == '"') {
            *cell = unquote(at, end, &text, &after);
        } else {
            after = memchr(at, separator, (size_t)(end - at));
            after = after ? after : end;
            *cell = (struct dp_cell){at, after};
            if (memchr(at, '"', (size_t)(after - at)))
                return dp_lines_unexpected("quotes around a complete field only, each inside doubled", at,
                                           after, err);
        }
        if (after < end && *after != separator)
            return dp_lines_unexpected(separator == ','   ? "a comma after a quoted field"
                                       : separator == ';' ? "a semicolon after a quoted field"
                                                          : "a tab after a quoted field",
                                       after, end, err);
        if (after == end)
            return DP_OK;
        at = after + 1;
    }
}

char dp_csv_record_separator(const char *at, const char *end)
{
    static const char separators[] = {',', ';', '\t'};
    size_t count[sizeof separators] = {0}, best = 0;
    bool inside = false;
    for (; at < end; at++) {
        inside ^= *at == '"';
        for (size_t i = 0; i < sizeof separators && !inside; i++)
            count[i] += *at == separators[i];
    }
    for (size_t i = 1; i < sizeof separators; i++)
        best = count[i] > count[best] ? i : best;
    return separators[best];
}

void dp_csv_record_clear(struct dp_csv_record *record)
{
    free(record->cells);
    free(record->text);
    *record = (struct dp_csv_record){0};
}

struct dp_cell dp_cell_trim(struct dp_cell cell)
{
    while (cell.at < cell.end && (*cell.at == ' ' || *cell.at == '\t'))
        cell.at++;
    while (cell.at < cell.end && (cell.end[-1] == ' ' || cell.end[-1] == '\t'))
        cell.end--;
    return cell;
}

struct dp_cell dp_cell_of(const char *text)
{
    return (struct dp_cell){text, text + strlen(text)};
}

bool dp_cell_is(struct dp_cell cell, const char *text)
{
    size_t len = (size_t)(cell.end - cell.at);
    return strlen(text) == len && memcmp(text, cell.at, len) == 0;
}

bool dp_cell_is_missing(struct dp_cell cell)
{
    static const char *const texts[] = {"NA", "NaN", "null"};
    size_t len = (size_t)(cell.end - cell.at);
    if (len == 0 || (*cell.at != 'n' && *cell.at != 'N'))
        return len == 0;
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strlen(texts[i]) == len && strncasecmp(cell.at, texts[i], len) == 0)
            return true;
    return false;
}

struct dp_shown dp_cell_show(struct dp_cell cell)
{
    struct dp_shown out;
    dp_lines_show(cell.at, cell.end, out.text);
    return out;
}
