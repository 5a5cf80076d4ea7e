#include "common/vocab/vocab_file.h"

#include "common/base/hash.h"
#include "common/env/atomic_file.h"
#include "common/env/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dp_vocab_writer {
    struct dp_atomic_file file;
    uint64_t sum, count;
};

static void put(struct dp_vocab_writer *w, const char *bytes, size_t len)
{
    w->sum = dp_hash_bytes(w->sum, bytes, len);
    (void)fwrite(bytes, 1, len, w->file.stream); /* commit tells a failure */
}

static int head_of(char line[DP_VOCAB_HEAD_MAX], uint32_t run, uint64_t source)
{
    return snprintf(line, DP_VOCAB_HEAD_MAX, DP_VOCAB_TITLE "\trun %" PRIu32 "\tsource %016" PRIx64 "\n", run,
                    source);
}

void dp_vocab_end(char line[DP_VOCAB_HEAD_MAX], uint64_t names, bool cut, uint64_t sum)
{
    (void)snprintf(line, DP_VOCAB_HEAD_MAX, "end %" PRIu64 "\t%s\tsum %016" PRIx64 "\n", names,
                   cut ? "cut" : "all", sum);
}

enum dp_status dp_vocab_begin(const char *path, uint32_t run, uint64_t source, struct dp_vocab_writer **out,
                              struct dp_error *err)
{
    char line[DP_VOCAB_HEAD_MAX];
    struct dp_vocab_writer *w = calloc(1, sizeof *w);
    *out = NULL;
    if (!w)
        return dp_fail(err, DP_NOMEM, "no memory to write names");
    enum dp_status st = dp_atomic_file_open(path, &w->file, err);
    if (st != DP_OK) {
        free(w);
        return st;
    }
    w->sum = DP_HASH_BEGIN;
    put(w, line, (size_t)head_of(line, run, source));
    *out = w;
    return DP_OK;
}

enum dp_status dp_vocab_add(struct dp_vocab_writer *w, const struct dp_vocab_name *name, struct dp_error *err)
{
    static const char hex[] = "0123456789abcdef";
    char line[DP_VOCAB_TEXT_MAX * 4 + 64];
    size_t len = name->len < DP_VOCAB_TEXT_MAX ? name->len : DP_VOCAB_TEXT_MAX, at = 0;
    if (name->group == DP_VOCAB_EVERY_GROUP)
        line[at++] = '*';
    else if (name->group == DP_VOCAB_COLUMN)
        at += (size_t)snprintf(line, sizeof line, "column");
    else
        at += (size_t)snprintf(line, sizeof line, "%" PRIu32, name->group);
    at += (size_t)snprintf(line + at, sizeof line - at, "\t%" PRIu64 "\t", name->key);
    for (size_t i = 0; i < len; i++) {
        unsigned char c = (unsigned char)name->text[i];
        bool plain = c >= ' ' && c != '\\' && c != 0x7f;
        if (plain) {
            line[at++] = (char)c;
        } else {
            memcpy(line + at, (const char[]){'\\', 'x', hex[c >> 4], hex[c & 15]}, 4);
            at += 4;
        }
    }
    line[at++] = '\n';
    put(w, line, at);
    w->count++;
    return ferror(w->file.stream)
               ? dp_fail(err, dp_limits_full(errno) ? DP_FULL : DP_IO, "cannot write '%s': %s%s",
                         w->file.path, strerror(errno), dp_limits_remedy(errno))
               : DP_OK;
}

enum dp_status dp_vocab_commit(struct dp_vocab_writer **writer, bool cut, struct dp_error *err)
{
    struct dp_vocab_writer *w = *writer;
    char line[DP_VOCAB_HEAD_MAX];
    dp_vocab_end(line, w->count, cut, w->sum);
    (void)fputs(line, w->file.stream);
    enum dp_status st = dp_atomic_file_commit(&w->file, err);
    free(w);
    *writer = NULL;
    return st;
}

void dp_vocab_drop(struct dp_vocab_writer **writer)
{
    if (*writer)
        dp_atomic_file_drop(&(*writer)->file);
    free(*writer);
    *writer = NULL;
}

void dp_vocab_print(FILE *stream, const char *text, bool blanks)
{
    const unsigned char *first = (const unsigned char *)text;
    for (const unsigned char *at = first; *at; at++) {
        bool blank = blanks && (*at == ' ' || (at == first && *at == '#'));
        if (blank || *at < ' ' || *at == 0x7f || *at == '\\')
            (void)fprintf(stream, "\\x%02x", *at);
        else
            (void)fputc(*at, stream);
    }
}

bool dp_vocab_is_of(const char *path, uint32_t run, uint64_t source)
{
    char wanted[DP_VOCAB_HEAD_MAX], found[DP_VOCAB_HEAD_MAX] = "";
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    (void)head_of(wanted, run, source);
    bool same = fgets(found, sizeof found, file) && strcmp(wanted, found) == 0;
    (void)fclose(file);
    return same;
}
