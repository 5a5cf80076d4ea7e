/* Reading: the bytes of the file are kept, each text taken out of its escapes in place; two orders of
 * numbers find keys and texts. */
#include "common/vocab/vocab.h"

#include "common/base/hash.h"
#include "common/env/atomic_file.h"
#include "common/env/limits.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#define TITLE    "downpour names 1"
#define HEAD_MAX 96

/* ---- writing */

struct dp_vocab_writer {
    struct dp_atomic_file file;
    uint64_t sum, count;
};

static void put(struct dp_vocab_writer *w, const char *bytes, size_t len)
{
    w->sum = dp_hash_bytes(w->sum, bytes, len);
    (void)fwrite(bytes, 1, len, w->file.stream); /* commit reports a failure */
}

static int head_of(char line[HEAD_MAX], uint32_t run, uint64_t source)
{
    return snprintf(line, HEAD_MAX, TITLE "\trun %" PRIu32 "\tsource %016" PRIx64 "\n", run, source);
}

static void end_of(char line[HEAD_MAX], uint64_t names, bool cut, uint64_t sum)
{
    (void)snprintf(line, HEAD_MAX, "end %" PRIu64 "\t%s\tsum %016" PRIx64 "\n", names, cut ? "cut" : "all",
                   sum);
}

enum dp_status dp_vocab_begin(const char *path, uint32_t run, uint64_t source, struct dp_vocab_writer **out,
                              struct dp_error *err)
{
    char line[HEAD_MAX];
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

/* A character as the file has it. Returns its length. */
static size_t escape(char out[4], unsigned char c, bool plain)
{
    static const char hex[] = "0123456789abcdef";
    out[0] = (char)c;
    if (plain && c >= ' ' && c != '\\' && c != 0x7f)
        return 1;
    memcpy(out, (const char[]){'\\', 'x', hex[c >> 4], hex[c & 15]}, 4);
    return 4;
}

enum dp_status dp_vocab_add(struct dp_vocab_writer *w, const struct dp_vocab_name *name, struct dp_error *err)
{
    char line[DP_VOCAB_TEXT_MAX * 4 + 64];
    size_t len = name->len < DP_VOCAB_TEXT_MAX ? name->len : DP_VOCAB_TEXT_MAX, at = 0;
    if (name->group == DP_VOCAB_EVERY_GROUP)
        line[at++] = '*';
    else if (name->group == DP_VOCAB_COLUMN)
        at += (size_t)snprintf(line, sizeof line, "column");
    else
        at += (size_t)snprintf(line, sizeof line, "%" PRIu32, name->group);
    at += (size_t)snprintf(line + at, sizeof line - at, "\t%" PRIu64 "\t", name->key);
    for (size_t i = 0; i < len; i++)
        at += escape(line + at, (unsigned char)name->text[i], true);
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
    char line[HEAD_MAX];
    end_of(line, w->count, cut, w->sum);
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
    for (const char *at = text; *at; at++) {
        char one[4];
        bool blank = blanks && (*at == ' ' || (at == text && *at == '#'));
        (void)fwrite(one, 1, escape(one, (unsigned char)*at, !blank), stream);
    }
}

bool dp_vocab_head(const char *path, uint32_t *run, uint64_t *source)
{
    char line[HEAD_MAX], found[HEAD_MAX] = "";
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool read = fgets(found, sizeof found, file) &&
                sscanf(found, TITLE "\trun %" SCNu32 "\tsource %16" SCNx64, run, source) == 2;
    if (read)
        (void)head_of(line, *run, *source);
    (void)fclose(file);
    return read && strcmp(line, found) == 0;
}

/* ---- reading */

struct entry {
    uint64_t key;
    uint64_t text; /* its place in bytes */
    uint32_t group, len;
};

struct dp_vocab {
    char *bytes;
    struct entry *entry;
    size_t count, room;
    size_t *by_key, *by_text; /* [count] */
};

static enum dp_status damaged(const char *path, const char *what, struct dp_error *err)
{
    return dp_fail(err, DP_DATA,
                   "'%s' %s: bring back the file that the training wrote; or remove it and train again "
                   "(--continue), which names the keys of that data alone",
                   path, what);
}

static enum dp_status read_all(const char *path, char **out, size_t *len, struct dp_error *err)
{
    struct stat info;
    FILE *file = fopen(path, "re");
    if (!file)
        return dp_fail(err, errno == ENOENT ? DP_NOT_FOUND : DP_IO, "cannot read '%s': %s", path,
                       strerror(errno));
    enum dp_status st = DP_OK;
    if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode))
        st = dp_fail(err, DP_IO, "'%s' is no regular file", path);
    *len = st == DP_OK ? (size_t)info.st_size : 0;
    *out = st == DP_OK ? malloc(*len + 1) : NULL;
    if (st == DP_OK && !*out)
        st = dp_fail(err, DP_NOMEM, "no memory for the %zu bytes of '%s'", *len, path);
    if (st == DP_OK && fread(*out, 1, *len, file) != *len)
        st = dp_fail(err, DP_IO, "cannot read '%s': %s", path, ferror(file) ? strerror(errno) : "it shrinks");
    if (st == DP_OK)
        (*out)[*len] = '\0';
    (void)fclose(file);
    return st;
}

/* Decimal digits at *at up to `end`, and over it. */
static bool read_number(char **at, char end, uint64_t max, uint64_t *out)
{
    char *after = NULL;
    if (**at < '0' || **at > '9')
        return false;
    errno = 0;
    unsigned long long value = strtoull(*at, &after, 10);
    if (errno != 0 || *after != end || value > max)
        return false;
    *out = value;
    *at = after + 1;
    return true;
}

static int hex_of(char c)
{
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

/* The text of `len` bytes, out of its escapes in place. Its length; SIZE_MAX: no writer wrote it so. */
static size_t unescape(char *text, size_t len)
{
    size_t to = 0;
    for (size_t i = 0; i < len; i++) {
        if (text[i] != '\\') {
            text[to++] = text[i];
            continue;
        }
        int high = i + 3 < len && text[i + 1] == 'x' ? hex_of(text[i + 2]) : -1;
        int low = high >= 0 ? hex_of(text[i + 3]) : -1;
        if (low < 0)
            return SIZE_MAX;
        text[to++] = (char)(high << 4 | low);
        i += 3;
    }
    text[to] = '\0';
    return to;
}

static bool read_group(char **at, uint32_t *out)
{
    uint64_t group;
    if (strncmp(*at, "*\t", 2) == 0) {
        *out = DP_VOCAB_EVERY_GROUP;
        *at += 2;
        return true;
    }
    if (strncmp(*at, "column\t", 7) == 0) {
        *out = DP_VOCAB_COLUMN;
        *at += 7;
        return true;
    }
    if (!read_number(at, '\t', DP_VOCAB_COLUMN - 1, &group))
        return false;
    *out = (uint32_t)group;
    return true;
}

static enum dp_status add_entry(struct dp_vocab *v, char *at, char *end, const char *path,
                                struct dp_error *err)
{
    struct entry entry;
    if (v->count == v->room) {
        size_t room = v->room * 2 + 1024;
        struct entry *grown = realloc(v->entry, room * sizeof *grown);
        if (!grown)
            return dp_fail(err, DP_NOMEM, "no memory for %zu names", room);
        v->entry = grown;
        v->room = room;
    }
    if (!read_group(&at, &entry.group) || !read_number(&at, '\t', UINT64_MAX, &entry.key))
        return damaged(path, "has a line that is no name", err);
    size_t len = unescape(at, (size_t)(end - at));
    if (len > DP_VOCAB_TEXT_MAX)
        return damaged(path, "has a line that is no name", err);
    entry.text = (uint64_t)(at - v->bytes);
    entry.len = (uint32_t)len;
    v->entry[v->count++] = entry;
    return DP_OK;
}

/* The last line, and that the sum of all before it is right. */
static enum dp_status read_end(struct dp_vocab *v, size_t *len, uint64_t *names, const char *path,
                               struct dp_error *err)
{
    uint64_t sum;
    char kind[4] = "", wanted[HEAD_MAX];
    if (*len == 0 || v->bytes[*len - 1] != '\n')
        return damaged(path, "is cut short", err);
    size_t at = *len - 1;
    while (at > 0 && v->bytes[at - 1] != '\n')
        at--;
    if (sscanf(v->bytes + at, "end %" SCNu64 "\t%3[a-z]\tsum %16" SCNx64, names, kind, &sum) != 3)
        return damaged(path, "is cut short", err);
    end_of(wanted, *names, kind[0] == 'c', dp_hash_bytes(DP_HASH_BEGIN, v->bytes, at));
    if (strcmp(v->bytes + at, wanted) != 0)
        return damaged(path, "is damaged", err);
    *len = at;
    return DP_OK;
}

static enum dp_status read_head(const char *line, uint32_t run, const char *path, struct dp_error *err)
{
    uint32_t found;
    if (sscanf(line, TITLE "\trun %" SCNu32 "\t", &found) != 1)
        return damaged(path, "is no file of names of this version", err);
    if (found != run)
        return dp_fail(err, DP_DATA,
                       "'%s' is of run %" PRIu32 ", not of run %" PRIu32 ": bring back the file of that run",
                       path, found, run);
    return DP_OK;
}

static enum dp_status read_lines(struct dp_vocab *v, const char *path, uint32_t run, struct dp_error *err)
{
    size_t len = 0;
    uint64_t names = 0;
    bool first = true;
    enum dp_status st = read_all(path, &v->bytes, &len, err);
    if (st == DP_OK)
        st = read_end(v, &len, &names, path, err);
    for (char *at = v->bytes, *stop = at + len; st == DP_OK && at < stop;) {
        char *end = memchr(at, '\n', (size_t)(stop - at)); /* there is one: read_end stopped after it */
        *end = '\0';
        st = first ? read_head(at, run, path, err) : add_entry(v, at, end, path, err);
        first = false;
        at = end + 1;
    }
    if (st == DP_OK && (first || names != v->count))
        st = damaged(path, "has another number of names than it says", err);
    return st;
}

/* The lines of names are the same in both, so that nothing is looked up or sorted. */
enum dp_status dp_vocab_copy(const char *from, const char *to, uint32_t of, struct dp_error *err)
{
    struct dp_vocab v = {0}; /* the bytes alone */
    struct dp_vocab_writer *w = NULL;
    uint64_t names = 0, source;
    uint32_t run = of;
    size_t len = 0;
    enum dp_status st = read_all(from, &v.bytes, &len, err);
    if (st == DP_OK)
        st = read_end(&v, &len, &names, from, err);
    if (st == DP_OK)
        st = read_head(v.bytes, dp_vocab_head(from, &run, &source) && run < of ? run : of, from, err);
    if (st == DP_OK)
        st = dp_vocab_begin(to, of, DP_VOCAB_EARLIER, &w, err);
    const char *line = v.bytes, *stop = v.bytes + len;
    for (bool first = true; st == DP_OK && line < stop; first = false) {
        const char *end = (const char *)memchr(line, '\n', (size_t)(stop - line)) + 1; /* read_end */
        if (!first)
            put(w, line, (size_t)(end - line));
        w->count += !first;
        line = end;
    }
    if (st == DP_OK && w->count != names)
        st = damaged(from, "has another number of names than it says", err);
    if (st == DP_OK)
        st = dp_vocab_commit(&w, false, err);
    dp_vocab_drop(&w);
    free(v.bytes);
    return st;
}

/* ---- orders */

static int compare_keys(const struct entry *a, const struct entry *b)
{
    int c = (a->key > b->key) - (a->key < b->key);
    return c ? c : (a->group > b->group) - (a->group < b->group);
}

static int compare_texts(const struct dp_vocab *v, const struct entry *a, const struct entry *b)
{
    size_t len = a->len < b->len ? a->len : b->len;
    int c = memcmp(v->bytes + a->text, v->bytes + b->text, len);
    return c ? c : (a->len > b->len) - (a->len < b->len);
}

static int by_key(const void *left, const void *right, void *of)
{
    const struct dp_vocab *v = of;
    size_t a = *(const size_t *)left, b = *(const size_t *)right;
    int c = compare_keys(&v->entry[a], &v->entry[b]);
    return c ? c : (a > b) - (a < b);
}

static int by_text(const void *left, const void *right, void *of)
{
    const struct dp_vocab *v = of;
    size_t a = *(const size_t *)left, b = *(const size_t *)right;
    int c = compare_texts(v, &v->entry[a], &v->entry[b]);
    return c ? c : (a > b) - (a < b);
}

static enum dp_status sort(struct dp_vocab *v, struct dp_error *err)
{
    v->by_key = calloc(v->count + 1, sizeof *v->by_key);
    v->by_text = calloc(v->count + 1, sizeof *v->by_text);
    if (!v->by_key || !v->by_text)
        return dp_fail(err, DP_NOMEM, "no memory for %zu names", v->count);
    for (size_t i = 0; i < v->count; i++)
        v->by_key[i] = v->by_text[i] = i;
    qsort_r(v->by_key, v->count, sizeof *v->by_key, by_key, v);
    qsort_r(v->by_text, v->count, sizeof *v->by_text, by_text, v);
    return DP_OK;
}

enum dp_status dp_vocab_open(const char *path, uint32_t run, struct dp_vocab **out, struct dp_error *err)
{
    struct dp_vocab *v = calloc(1, sizeof *v);
    *out = NULL;
    if (!v)
        return dp_fail(err, DP_NOMEM, "no memory for names");
    enum dp_status st = read_lines(v, path, run, err);
    if (st == DP_OK)
        st = sort(v, err);
    if (st != DP_OK)
        dp_vocab_close(&v);
    *out = v;
    return st;
}

void dp_vocab_close(struct dp_vocab **vocab)
{
    struct dp_vocab *v = *vocab;
    if (!v)
        return;
    free(v->by_text);
    free(v->by_key);
    free(v->entry);
    free(v->bytes);
    free(v);
    *vocab = NULL;
}

/* ---- asking */

size_t dp_vocab_count(const struct dp_vocab *v)
{
    return v->count;
}

struct dp_vocab_name dp_vocab_at(const struct dp_vocab *v, size_t at)
{
    DP_ASSERT(at < v->count);
    const struct entry *e = &v->entry[at];
    return (struct dp_vocab_name){e->group, e->key, v->bytes + e->text, e->len};
}

/* The first place in the order of keys at or after (key, group). */
static size_t first_key(const struct dp_vocab *v, uint32_t group, uint64_t key)
{
    const struct entry wanted = {.key = key, .group = group};
    size_t low = 0, high = v->count;
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        if (compare_keys(&v->entry[v->by_key[mid]], &wanted) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    return low;
}

static bool key_is(const struct dp_vocab *v, size_t place, uint32_t group, uint64_t key)
{
    return place < v->count && v->entry[v->by_key[place]].key == key &&
           v->entry[v->by_key[place]].group == group;
}

size_t dp_vocab_key(const struct dp_vocab *v, uint32_t group, uint64_t key)
{
    size_t place = first_key(v, group, key);
    if (key_is(v, place, group, key))
        return v->by_key[place];
    if (group == DP_VOCAB_COLUMN)
        return DP_VOCAB_NONE;
    place = first_key(v, DP_VOCAB_EVERY_GROUP, key);
    return key_is(v, place, DP_VOCAB_EVERY_GROUP, key) ? v->by_key[place] : DP_VOCAB_NONE;
}

size_t dp_vocab_next(const struct dp_vocab *v, size_t at)
{
    const struct entry *e = &v->entry[at];
    for (size_t place = first_key(v, e->group, e->key); key_is(v, place, e->group, e->key); place++)
        if (v->by_key[place] > at)
            return v->by_key[place];
    return DP_VOCAB_NONE;
}

size_t dp_vocab_find(const struct dp_vocab *v, uint32_t group, const char *text)
{
    size_t low = 0, high = v->count, len = strlen(text);
    while (low < high) {
        size_t mid = low + (high - low) / 2;
        const struct entry *e = &v->entry[v->by_text[mid]];
        if (strcmp(v->bytes + e->text, text) < 0)
            low = mid + 1;
        else
            high = mid;
    }
    for (; low < v->count; low++) {
        const struct entry *e = &v->entry[v->by_text[low]];
        if (e->len != len || memcmp(v->bytes + e->text, text, len) != 0)
            break;
        if (e->group == group || e->group == DP_VOCAB_EVERY_GROUP)
            return v->by_text[low];
    }
    return DP_VOCAB_NONE;
}

/* ---- what somebody may have meant */

#define SPELLED_MAX 48u

/* Letters to change, leave out, add or swap with the next; above `most` any number above it. */
static unsigned distance(const char *a, size_t a_len, const char *b, size_t b_len, unsigned most)
{
    unsigned rows[3][SPELLED_MAX + 1], *two = rows[0], *last = rows[1], *row = rows[2];
    for (unsigned j = 0; j <= b_len; j++)
        last[j] = two[j] = j;
    for (unsigned i = 1; i <= a_len; i++) {
        unsigned least = row[0] = i;
        for (size_t j = 1; j <= b_len; j++) {
            unsigned change = last[j - 1] + (a[i - 1] != b[j - 1]);
            unsigned one = (last[j] < row[j - 1] ? last[j] : row[j - 1]) + 1;
            bool swapped = i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1];
            row[j] = change < one ? change : one;
            if (swapped && two[j - 2] + 1 < row[j])
                row[j] = two[j - 2] + 1;
            least = row[j] < least ? row[j] : least;
        }
        if (least > most + 1) /* a swap may still take one back */
            return most + 1;
        unsigned *spare = two;
        two = last;
        last = row;
        row = spare;
    }
    return last[b_len];
}

size_t dp_vocab_similar(const struct dp_vocab *v, uint32_t group, const char *text, const char **out,
                        size_t room)
{
    size_t len = strlen(text), found = 0;
    unsigned most = len < 4 ? 1 : len < 6 ? 2 : 3;
    if (len == 0 || len > SPELLED_MAX)
        return 0;
    for (unsigned d = 0; d <= most && found < room; d++) {
        for (size_t i = 0; i < v->count && found < room; i++) {
            const struct entry *e = &v->entry[i];
            bool near = e->len <= SPELLED_MAX && e->len + most >= len && e->len <= len + most;
            if (near && (e->group == group || e->group == DP_VOCAB_EVERY_GROUP) &&
                distance(text, len, v->bytes + e->text, e->len, d) == d)
                out[found++] = v->bytes + e->text;
        }
    }
    return found;
}
