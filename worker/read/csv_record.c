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

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

/* ---- separators */

/* The next one, or `end`. */
static const char *find_separator(char separator, const char *at, const char *end)
{
    if (separator == ' ') {
        while (at < end && !is_blank(*at))
            at++;
        return at;
    }
    for (; (at = at < end ? memchr(at, separator, (size_t)(end - at)) : NULL); at++)
        if (separator != ':' || (at + 1 < end && at[1] == ':'))
            return at;
    return end;
}

static const char *skip_separator(char separator, const char *at, const char *end)
{
    at += separator == ':' ? 2 : 1;
    while (separator == ' ' && at < end && is_blank(*at))
        at++;
    return at;
}

static const char *skip_blanks(char separator, const char *at, const char *end)
{
    while (at < end && is_blank(*at) && *at != separator)
        at++;
    return at;
}

static enum dp_status not_separated(char separator, const char *at, const char *end, struct dp_error *err)
{
    return dp_fail(err, DP_DATA,
                   "expected %s after a quoted field, found '%s': where quotes are text, put the field in "
                   "quotes and double those inside (\"\"\"A\"\" b\")",
                   separator == ','    ? "a comma"
                   : separator == ';'  ? "a semicolon"
                   : separator == ':'  ? "'::'"
                   : separator == '\t' ? "a tab"
                                       : "a blank",
                   dp_cell_show((struct dp_cell){at, end}).text);
}

/* ---- cells */

/* A quoted cell that starts at `at`; *after: what follows its closing quote, or NULL: it has none. */
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
    *after = at < end ? at + 1 : NULL;
    return cell;
}

static enum dp_status take_quoted(char separator, const char *quote, const char *end, char **text,
                                  struct dp_cell *out, const char **after, struct dp_error *err)
{
    *out = unquote(quote, end, text, after);
    if (!*after)
        return dp_lines_unexpected(
            "a closing quote (double a quote that is text, and put its field in quotes)", quote, end, err);
    if (separator != ' ')
        *after = skip_blanks(separator, *after, end);
    if (*after < end && find_separator(separator, *after, end) != *after)
        return not_separated(separator, *after, end, err);
    return DP_OK;
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
        const char *after, *quote = skip_blanks(separator, at, end);
        if (quote < end && *quote == '"') {
            st = take_quoted(separator, quote, end, &text, cell, &after, err);
        } else {
            after = find_separator(separator, at, end);
            *cell = (struct dp_cell){at, after};
            if (!r->plain_quotes && memchr(at, '"', (size_t)(after - at)))
                st = dp_lines_unexpected("quotes around a complete field only, each inside doubled", at,
                                         after, err);
        }
        if (st != DP_OK || after == end)
            return st;
        at = skip_separator(separator, after, end);
        if (separator == ' ' && at == end)
            return DP_OK;
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
    while (cell.at < cell.end && is_blank(*cell.at))
        cell.at++;
    while (cell.at < cell.end && is_blank(cell.end[-1]))
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
