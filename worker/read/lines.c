#include "worker/read/lines.h"

#include "common/base/text.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct dp_lines {
    char *name;
    struct dp_lines_sink sink;
    bool quotes, inside; /* between two quotes */
    bool second;         /* the byte before was a closing quote: another one makes both a quote of the text */
    uint64_t line;       /* the line that starts next, from 1 */
    uint64_t within;     /* line ends between quotes of the current record */
    uint64_t quote_line; /* the line of the open quote */
    uint64_t quoted;     /* bytes after the open quote */
    char *carry;         /* the start of a line that ends in a later block */
    size_t carry_len, carry_max;
};

enum dp_status dp_lines_new(const char *name, bool quotes, struct dp_lines_sink sink, struct dp_lines **out,
                            struct dp_error *err)
{
    struct dp_lines *lines = calloc(1, sizeof *lines);
    *out = lines;
    if (!lines || !(lines->name = strdup(name))) {
        dp_lines_free(out);
        return dp_fail(err, DP_NOMEM, "%s: no memory for its lines", name);
    }
    lines->sink = sink;
    lines->quotes = quotes;
    lines->line = 1;
    return DP_OK;
}

void dp_lines_free(struct dp_lines **lines)
{
    if (!*lines)
        return;
    free((*lines)->name);
    free((*lines)->carry);
    free(*lines);
    *lines = NULL;
}

static enum dp_status carry_append(struct dp_lines *lines, const char *bytes, size_t len,
                                   struct dp_error *err)
{
    /* A small compressed file may hold an endless line. */
    if (len > DP_LINES_MAX - lines->carry_len)
        return dp_fail(err, DP_DATA,
                       "%s:%" PRIu64
                       ": the line is longer than %u MiB: is the file text, with ends of lines?",
                       lines->name, lines->line, (unsigned)(DP_LINES_MAX >> 20));
    if (len > lines->carry_max - lines->carry_len) {
        size_t max = lines->carry_max ? lines->carry_max : 4096;
        while (max - lines->carry_len < len)
            max *= 2;
        char *carry = realloc(lines->carry, max);
        if (!carry)
            return dp_fail(err, DP_NOMEM, "%s:%" PRIu64 ": no memory for a line this long", lines->name,
                           lines->line);
        lines->carry = carry;
        lines->carry_max = max;
    }
    if (len > 0)
        memcpy(lines->carry + lines->carry_len, bytes, len);
    lines->carry_len += len;
    return DP_OK;
}

static void take_quote(struct dp_lines *lines)
{
    lines->inside = !lines->inside;
    if (lines->inside && !lines->second) {
        lines->quote_line = lines->line + lines->within;
        lines->quoted = 0;
    }
    lines->second = !lines->inside;
}

static enum dp_status unended(const struct dp_lines *lines, const char *how, struct dp_error *err)
{
    return dp_fail(err, DP_DATA,
                   "%s:%" PRIu64 ": a field begins with a quote that is not closed%s: close it, or double it "
                   "if it is part of the text",
                   lines->name, lines->quote_line, how);
}

/* The end of the line that starts at `at`, or NULL if it is in a later block. */
static enum dp_status find_end(struct dp_lines *lines, const char *at, const char *end, const char **out,
                               struct dp_error *err)
{
    *out = NULL;
    if (!lines->inside) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        size_t len = (size_t)((newline ? newline : end) - at);
        if (!lines->quotes || (!lines->second && !memchr(at, '"', len))) {
            *out = newline;
            return DP_OK;
        }
    }
    if (!lines->inside && at < end) { /* most records have no quotes */
        const char *ends = memchr(at, '\n', (size_t)(end - at));
        if (!memchr(at, '"', (size_t)((ends ? ends : end) - at))) {
            lines->second = false;
            *out = ends;
            return DP_OK;
        }
    }
    for (; at < end; at++) {
        if (*at == '"') {
            take_quote(lines);
        } else {
            lines->second = false;
            if (*at == '\n' && !lines->inside) {
                *out = at;
                return DP_OK;
            }
            lines->within += *at == '\n';
        }
        if ((lines->inside || lines->second) && lines->quoted++ > DP_LINES_QUOTED_MAX)
            return unended(lines, " within 1 MiB", err);
    }
    return DP_OK;
}

/* The first control character: what a line that has one is refused for says little. */
static const char *no_text(const char *at, const char *end)
{
    while (at < end && ((unsigned char)*at >= ' ' || strchr("\t\n\r", *at)))
        at++;
    return at;
}

static enum dp_status visit(struct dp_lines *lines, const char *at, const char *end, struct dp_error *err)
{
    if (end > at && end[-1] == '\r')
        end--;
    const char *alone = lines->line == 1 && end > at ? memchr(at, '\r', (size_t)(end - at)) : NULL;
    if (alone && !memchr(at, '"', (size_t)(end - at)))
        return dp_fail(err, DP_DATA,
                       "%s:1: byte %zu of the line is a carriage return without a line feed: if they end its "
                       "lines, convert them (tr '\\r' '\\n')",
                       lines->name, (size_t)(alone - at) + 1);
    const char *nul = end > at ? memchr(at, '\0', (size_t)(end - at)) : NULL;
    if (nul)
        return dp_fail(err, DP_DATA,
                       "%s:%" PRIu64 ": byte %zu of the line is NUL: is the file complete, and UTF-8 text?",
                       lines->name, lines->line, (size_t)(nul - at) + 1);
    enum dp_status st = lines->sink.visit(lines->sink.self, at, end, lines->line, err);
    const char *odd = st == DP_DATA ? no_text(at, end) : end;
    if (odd < end)
        return dp_fail(err, DP_DATA,
                       "%s:%" PRIu64
                       ": byte %zu of the line is no text: is the file complete, and UTF-8 text?",
                       lines->name, lines->line, (size_t)(odd - at) + 1);
    if (st != DP_OK)
        return dp_wrap(err, st, "%s:%" PRIu64, lines->name, lines->line);
    lines->line += 1 + lines->within;
    lines->within = 0;
    return DP_OK;
}

static enum dp_status visit_carried(struct dp_lines *lines, struct dp_error *err)
{
    size_t len = lines->carry_len;
    lines->carry_len = 0;
    return visit(lines, lines->carry, lines->carry + len, err);
}

enum dp_status dp_lines_feed(struct dp_lines *lines, const void *bytes, size_t len, struct dp_error *err)
{
    const char *p = bytes, *end = p + len;
    enum dp_status st = DP_OK;
    while (p < end && st == DP_OK) {
        const char *newline;
        st = find_end(lines, p, end, &newline, err);
        if (st != DP_OK)
            break;
        if (newline && lines->carry_len == 0) {
            st = visit(lines, p, newline, err);
        } else {
            st = carry_append(lines, p, (size_t)((newline ? newline : end) - p), err);
            if (newline && st == DP_OK)
                st = visit_carried(lines, err);
        }
        p = newline ? newline + 1 : end;
    }
    return st;
}

enum dp_status dp_lines_finish(struct dp_lines *lines, struct dp_error *err)
{
    if (lines->inside)
        return unended(lines, "", err);
    return lines->carry_len > 0 ? visit_carried(lines, err) : DP_OK;
}

enum dp_status dp_lines_of(struct dp_unpack *unpack, bool quotes, struct dp_lines_sink sink,
                           struct dp_error *err)
{
    struct dp_lines *lines = NULL;
    const unsigned char *bytes;
    size_t len = 1;
    enum dp_status st = dp_lines_new(dp_unpack_name(unpack), quotes, sink, &lines, err);
    while (st == DP_OK && len > 0) {
        st = dp_unpack_next(unpack, &bytes, &len, err);
        if (st == DP_OK)
            st = len > 0 ? dp_lines_feed(lines, bytes, len, err) : dp_lines_finish(lines, err);
    }
    dp_lines_free(&lines);
    return st;
}

void dp_lines_show(const char *at, const char *end, char out[44])
{
    size_t n = 0;
    while (at < end) {
        size_t bytes = dp_text_character(at, end), step = bytes ? bytes : 1, shown = *at == '\t' ? 2 : step;
        if (n + shown > 40)
            break;
        memcpy(out + n, bytes ? at : *at == '\t' ? "\\t" : "?", shown);
        n += shown;
        at += step;
    }
    for (int dots = 0; at < end && dots < 3; dots++)
        out[n++] = '.';
    out[n] = '\0';
}

enum dp_status dp_lines_unexpected(const char *what, const char *at, const char *end, struct dp_error *err)
{
    char text[44];
    dp_lines_show(at, end, text);
    return dp_fail(err, DP_DATA, "expected %s, found '%s'", what, text);
}
