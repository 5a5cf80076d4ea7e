#include "worker/read/lines.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct dp_lines {
    char *name;
    struct dp_lines_sink sink;
    bool quotes, inside; /* between two quotes */
    uint64_t line;       /* the one that starts next, from 1 */
    uint64_t within;     /* ends of lines between the quotes of the record at hand */
    char *carry;         /* the start of a line whose end is in a later block */
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

/* The end of the line that starts at `at`, or NULL: it is in a later block. */
static const char *find_end(struct dp_lines *lines, const char *at, const char *end)
{
    if (!lines->quotes)
        return memchr(at, '\n', (size_t)(end - at));
    for (; at < end; at++) {
        if (*at == '"')
            lines->inside = !lines->inside;
        else if (*at == '\n' && !lines->inside)
            return at;
        else if (*at == '\n')
            lines->within++;
    }
    return NULL;
}

static enum dp_status visit(struct dp_lines *lines, const char *at, const char *end, struct dp_error *err)
{
    if (end > at && end[-1] == '\r')
        end--;
    enum dp_status st = lines->sink.visit(lines->sink.self, at, end, lines->line, err);
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
        const char *newline = find_end(lines, p, end);
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
        return dp_fail(err, DP_DATA, "%s:%" PRIu64 ": a field begins with a quote that nothing ends",
                       lines->name, lines->line);
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

enum dp_status dp_lines_unexpected(const char *what, const char *at, const char *end, struct dp_error *err)
{
    char text[44];
    size_t n = 0;
    for (; at < end && n < 40; at++)
        text[n++] = *at >= 0x20 && *at < 0x7f ? *at : '?';
    for (int dots = 0; at < end && dots < 3; dots++)
        text[n++] = '.';
    text[n] = '\0';
    return dp_fail(err, DP_DATA, "expected %s, found '%s'", what, text);
}
