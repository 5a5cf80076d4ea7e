#include "worker/read/libsvm.h"

#include "worker/read/lines.h"
#include "worker/read/number.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct dp_libsvm {
    char *name;
    struct dp_libsvm_sink sink;
    bool labels_optional;
    uint64_t line; /* the line being parsed, from 1 */
    char *carry;   /* the start of a line that ends in a later block */
    size_t carry_len, carry_max;
    uint64_t *indices, *sorted; /* [entries_max] each */
    float *values;
    size_t entries_max;
};

enum dp_status dp_libsvm_new(const char *name, bool labels_optional, struct dp_libsvm_sink sink,
                             struct dp_libsvm **out, struct dp_error *err)
{
    struct dp_libsvm *libsvm = calloc(1, sizeof *libsvm);
    *out = libsvm;
    if (!libsvm || !(libsvm->name = strdup(name))) {
        dp_libsvm_free(out);
        return dp_fail(err, DP_NOMEM, "%s: no memory for its parser", name);
    }
    libsvm->sink = sink;
    libsvm->labels_optional = labels_optional;
    return DP_OK;
}

void dp_libsvm_free(struct dp_libsvm **libsvm)
{
    struct dp_libsvm *l = *libsvm;
    if (!l)
        return;
    free(l->name);
    free(l->carry);
    free(l->indices);
    free(l->sorted);
    free(l->values);
    free(l);
    *libsvm = NULL;
}

static enum dp_status no_memory(const struct dp_libsvm *libsvm, struct dp_error *err)
{
    return dp_fail(err, DP_NOMEM, "%s:%" PRIu64 ": no memory for a line this long", libsvm->name,
                   libsvm->line);
}

static enum dp_status entries_grow(struct dp_libsvm *libsvm, struct dp_error *err)
{
    size_t max = libsvm->entries_max ? libsvm->entries_max * 2 : 256;
    uint64_t *indices = realloc(libsvm->indices, max * sizeof *indices);
    libsvm->indices = indices ? indices : libsvm->indices;
    uint64_t *sorted = realloc(libsvm->sorted, max * sizeof *sorted);
    libsvm->sorted = sorted ? sorted : libsvm->sorted;
    float *values = realloc(libsvm->values, max * sizeof *values);
    libsvm->values = values ? values : libsvm->values;
    if (!indices || !sorted || !values)
        return no_memory(libsvm, err);
    libsvm->entries_max = max;
    return DP_OK;
}

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static inline bool ends_token(const char *p, const char *end)
{
    return p == end || is_blank(*p) || *p == '#';
}

static inline const char *skip_blanks(const char *p, const char *end)
{
    while (p < end && is_blank(*p))
        p++;
    return p;
}

/* "file:line: expected WHAT, found 'TOKEN'"; the token is cut to 40 printable characters. */
static enum dp_status unexpected(const struct dp_libsvm *libsvm, const char *at, const char *end,
                                 const char *what, struct dp_error *err)
{
    char token[44];
    size_t n = 0;
    for (; !ends_token(at, end) && n < 40; at++)
        token[n++] = *at >= 0x20 && *at < 0x7f ? *at : '?';
    if (!ends_token(at, end))
        for (int dots = 0; dots < 3; dots++)
            token[n++] = '.';
    token[n] = '\0';
    return dp_fail(err, DP_DATA, "%s:%" PRIu64 ": expected %s, found '%s'", libsvm->name, libsvm->line, what,
                   token);
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* For a line whose indices do not ascend. */
static enum dp_status check_twice(struct dp_libsvm *libsvm, size_t entries, struct dp_error *err)
{
    memcpy(libsvm->sorted, libsvm->indices, entries * sizeof *libsvm->sorted);
    qsort(libsvm->sorted, entries, sizeof *libsvm->sorted, by_value);
    for (size_t i = 1; i < entries; i++)
        if (libsvm->sorted[i] == libsvm->sorted[i - 1])
            return dp_fail(err, DP_DATA,
                           "%s:%" PRIu64 ": expected each index once a line, found %" PRIu64
                           " twice: add up its values",
                           libsvm->name, libsvm->line, libsvm->sorted[i]);
    return DP_OK;
}

/* The message for a bad entry at `at`. */
static enum dp_status bad_entry(const struct dp_libsvm *libsvm, const char *at, const char *end,
                                struct dp_error *err)
{
    uint64_t index;
    if (*at == '-')
        return unexpected(libsvm, at, end, "index:value with a non-negative index", err);
    const char *p = dp_number_index(at, end, &index);
    if (!p && *at >= '0' && *at <= '9')
        return unexpected(libsvm, at, end, "an index below 9223372036854775808 (2^63)", err);
    if (!p || p == end || *p != ':')
        return unexpected(libsvm, at, end, "index:value", err);
    return unexpected(
        libsvm, at, end,
        "index:value with a finite decimal value in the range of f32, of at most 127 characters", err);
}

/* Parses one line, without its end. */
static enum dp_status parse_line(struct dp_libsvm *libsvm, const char *p, const char *end,
                                 struct dp_error *err)
{
    struct dp_libsvm_example example = {0};
    enum dp_status st = DP_OK;
    bool ascending = true;
    if (p < end && end[-1] == '\r')
        end--;
    p = skip_blanks(p, end);
    if (p == end || *p == '#')
        return DP_OK;
    const char *behind = dp_number_f32(p, end, &example.label);
    if (libsvm->labels_optional && behind && behind < end && *behind == ':') {
        example.label = 0;
        behind = p;
    } else if (!behind || !ends_token(behind, end))
        return unexpected(libsvm, p, end, "a label (a finite decimal number) at the start of the line", err);
    for (p = skip_blanks(behind, end); p < end && *p != '#'; p = skip_blanks(behind, end)) {
        if (example.entries == libsvm->entries_max && (st = entries_grow(libsvm, err)) != DP_OK)
            return st;
        uint64_t *index = &libsvm->indices[example.entries];
        behind = dp_number_index(p, end, index);
        if (behind && behind < end && *behind == ':')
            behind = dp_number_f32(behind + 1, end, &libsvm->values[example.entries]);
        else
            behind = NULL;
        if (!behind || !ends_token(behind, end))
            return bad_entry(libsvm, p, end, err);
        ascending = ascending && (example.entries == 0 || index[-1] < *index);
        example.entries++;
    }
    if (!ascending && (st = check_twice(libsvm, example.entries, err)) != DP_OK)
        return st;
    example.indices = libsvm->indices;
    example.values = libsvm->values;
    st = libsvm->sink.visit(libsvm->sink.self, &example, err);
    return st == DP_OK ? st : dp_wrap(err, st, "%s:%" PRIu64, libsvm->name, libsvm->line);
}

static enum dp_status carry_append(struct dp_libsvm *libsvm, const char *bytes, size_t len,
                                   struct dp_error *err)
{
    if (len > DP_LINES_MAX - libsvm->carry_len)
        return dp_fail(err, DP_DATA,
                       "%s:%" PRIu64
                       ": the line is longer than %u MiB: is the file text, with ends of lines?",
                       libsvm->name, libsvm->line + 1, (unsigned)(DP_LINES_MAX >> 20));
    if (len > libsvm->carry_max - libsvm->carry_len) {
        size_t max = libsvm->carry_max ? libsvm->carry_max : 4096;
        while (max - libsvm->carry_len < len)
            max *= 2;
        char *carry = realloc(libsvm->carry, max);
        if (!carry)
            return no_memory(libsvm, err);
        libsvm->carry = carry;
        libsvm->carry_max = max;
    }
    if (len > 0)
        memcpy(libsvm->carry + libsvm->carry_len, bytes, len);
    libsvm->carry_len += len;
    return DP_OK;
}

enum dp_status dp_libsvm_feed(struct dp_libsvm *libsvm, const void *bytes, size_t len, struct dp_error *err)
{
    const char *p = bytes, *end = p + len;
    enum dp_status st = DP_OK;
    while (p < end && st == DP_OK) {
        const char *newline = memchr(p, '\n', (size_t)(end - p));
        if (newline && libsvm->carry_len == 0) {
            libsvm->line++;
            st = parse_line(libsvm, p, newline, err);
        } else {
            st = carry_append(libsvm, p, (size_t)((newline ? newline : end) - p), err);
            if (newline && st == DP_OK)
                st = dp_libsvm_finish(libsvm, err);
        }
        p = newline ? newline + 1 : end;
    }
    return st;
}

enum dp_status dp_libsvm_finish(struct dp_libsvm *libsvm, struct dp_error *err)
{
    if (libsvm->carry_len == 0)
        return DP_OK;
    size_t len = libsvm->carry_len;
    libsvm->carry_len = 0;
    libsvm->line++;
    return parse_line(libsvm, libsvm->carry, libsvm->carry + len, err);
}
