#include "worker/read/pairs.h"

#include "common/base/log.h"
#include "common/model/mix.h"
#include "worker/read/content.h"
#include "worker/read/lines.h"
#include "worker/read/number.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COLUMNS_MAX 4  /* of pairs without a header: user, item, rating, time */
#define LONG_LINE   64 /* numbers in a line that only lists have */

struct pairs_reader {
    struct dp_pairs *pairs;
    const struct dp_dataset_options *options;
    /* For a file of negatives: */
    struct dp_pairs *held;  /* the pairs of the first file, */
    uint64_t *starts, list; /* and where the lists of those seen so far begin */
};

struct pairs_field {
    const char *at, *end;
};

static bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && is_blank(*at))
        at++;
    return at;
}

static enum dp_status add(struct dp_pairs *p, uint64_t user, uint64_t item, uint64_t line,
                          struct dp_error *err)
{
    if (p->count == p->max) {
        uint64_t max = p->max * 2 + 1024;
        enum dp_status st = DP_CONTENT_GROW(p->keys, 2 * max, err);
        if (st == DP_OK)
            st = DP_CONTENT_GROW(p->lines, max, err);
        if (st != DP_OK)
            return st;
        p->max = max;
    }
    p->keys[2 * p->count] = user;
    p->keys[2 * p->count + 1] = item;
    p->lines[p->count++] = line;
    return DP_OK;
}

/* ---- lines of numbers, the usual case */

/* Skips what separates two numbers: blanks, with or without a comma. */
static const char *skip_gap(const char *at, const char *end)
{
    at = skip_blanks(at, end);
    return at < end && *at == ',' ? skip_blanks(at + 1, end) : at;
}

static bool ends_number(const char *at, const char *end)
{
    return at == end || is_blank(*at) || *at == ',';
}

static bool read_number(const char **at, const char *end, uint64_t *out)
{
    bool zero = *at < end && **at == '0';
    const char *after = *at < end ? dp_number_index(*at, end, out) : NULL;
    if (!after || !ends_number(after, end) || (zero && after > *at + 1))
        return false;
    *at = skip_gap(after, end);
    return true;
}

/* Counts the numbers of a line whose first two are integers, and stores those in `of`; 0 for any other
 * line. */
static uint32_t read_numbers(const char *at, const char *end, uint64_t of[2])
{
    if (!read_number(&at, end, &of[0]) || !read_number(&at, end, &of[1]))
        return 0;
    uint32_t count = 2;
    for (float ignored; at < end; count++) { /* a rating, a time */
        const char *after = dp_number_f32(at, end, &ignored);
        if (!after || !ends_number(after, end))
            return 0;
        at = skip_gap(after, end);
    }
    return count;
}

/* ---- lines of any ids */

static char separator_of(const char *at, const char *end)
{
    static const char separators[] = {'\t', ':', ';', ','};
    for (size_t s = 0; s < sizeof separators; s++)
        for (const char *p = at; p < end; p++)
            if (*p == separators[s] && (*p != ':' || (p + 1 < end && p[1] == ':')))
                return *p;
    return ' ';
}

static bool separates(char separator, const char *at, const char *end)
{
    if (separator == ' ')
        return is_blank(*at);
    return *at == separator && (separator != ':' || (at + 1 < end && at[1] == ':'));
}

/* The next field of a line, without surrounding blanks and quotes; moves *at past its separator, or to
 * `end`. */
static struct pairs_field next_field(char separator, const char **at, const char *end)
{
    const char *p = *at;
    while (p < end && is_blank(*p) && *p != separator)
        p++;
    bool quoted = p < end && *p == '"' && separator != ' ';
    struct pairs_field field = {.at = p + quoted};
    if (quoted)
        for (p++; p < end && *p != '"'; p++)
            ;
    const char *quote = p;
    while (p < end && !separates(separator, p, end))
        p++;
    field.end = quoted ? quote : p;
    while (!quoted && field.end > field.at && is_blank(field.end[-1]))
        field.end--;
    p += p < end ? 1 + (separator == ':') : 0;
    *at = separator == ' ' ? skip_blanks(p, end) : p;
    return field;
}

bool dp_pairs_integer(const char *at, size_t len, uint64_t *out)
{
    return len > 0 && (at[0] != '0' || len == 1) && dp_number_index(at, at + len, out) == at + len;
}

static bool is_whole(struct pairs_field f)
{
    uint64_t ignored;
    return dp_pairs_integer(f.at, (size_t)(f.end - f.at), &ignored);
}

/* A number, a date as "2010-10-19T23:55:27Z", or nothing. */
static bool is_value(struct pairs_field f)
{
    if (f.at == f.end || dp_number_end(f.at, f.end) == f.end)
        return true;
    if (!isdigit((unsigned char)*f.at))
        return false;
    while (f.at < f.end && (isdigit((unsigned char)*f.at) || strchr(":+-./TZ ", *f.at)))
        f.at++;
    return f.at == f.end;
}

/* Whether a field is not an id: empty, a number with a sign or a point, the start of a list of negatives. */
static bool is_id(struct pairs_field f)
{
    if (f.at == f.end || *f.at == '(')
        return false;
    bool number = dp_number_end(f.at, f.end) == f.end;
    return !number || (*f.at != '-' && *f.at != '+' && !memchr(f.at, '.', (size_t)(f.end - f.at)));
}

enum dp_status dp_pairs_key(struct dp_name_set *names, const char *at, size_t len, uint64_t *key,
                            struct dp_error *err)
{
    if (dp_pairs_integer(at, len, key))
        return DP_OK;
    *key = dp_mix(dp_hash_bytes(DP_HASH_BEGIN, at, len)) >> 1;
    const char *there = dp_name_set_text(names, 0, *key);
    if (!there)
        return dp_name_set_add(names, &(struct dp_vocab_name){.key = *key, .text = at, .len = len}, *key, 0,
                               err);
    if (strlen(there) == len && memcmp(there, at, len) == 0)
        return DP_OK;
    return dp_fail(err, DP_DATA,
                   "the names '%.40s' and '%.*s' have the same hash, as happens once in 10^18 pairs: "
                   "rename one of them",
                   there, (int)(len < 40 ? len : 40), at);
}

static enum dp_status take_id(struct dp_pairs *p, int side, struct pairs_field f, uint64_t *key,
                              struct dp_error *err)
{
    static const char *const wanted[] = {"the id of a user, an integer from 0 or a name",
                                         "the id of an item, an integer from 0 or a name"};
    if (!is_id(f))
        return dp_lines_unexpected(wanted[side], f.at, f.end, err);
    return dp_pairs_key(&p->names[side], f.at, (size_t)(f.end - f.at), key, err);
}

/* ---- the header */

static bool says(struct pairs_field f, const char *const *words, size_t count)
{
    bool found = false;
    for (const char *c = f.at; c < f.end; c++)
        if (isdigit((unsigned char)*c)) /* "user1" is one */
            return false;
    for (size_t w = 0; w < count; w++) {
        size_t len = strlen(words[w]);
        found |= (size_t)(f.end - f.at) >= len && strncasecmp(f.at, words[w], len) == 0;
    }
    return found;
}

/* Whether the words of a first line that is not of numbers are names of columns. */
static bool is_header(char separator, const char *at, const char *end)
{
    static const char *const users[] = {"user", "uid", "reviewer", "customer", "member", "visitor"};
    static const char *const items[] = {"item",  "iid",    "movie", "product",  "book",     "isbn", "song",
                                        "track", "artist", "asin",  "anime",    "business", "game", "video",
                                        "venue", "place",  "poi",   "location", "article"};
    struct pairs_field user = next_field(separator, &at, end), item = next_field(separator, &at, end);
    if (user.at == user.end || item.at == item.end || is_whole(user) || is_whole(item) || *user.at == '(')
        return false;
    if (at < end && !is_value(next_field(separator, &at, end)))
        return true;
    return says(user, users, sizeof users / sizeof users[0]) &&
           says(item, items, sizeof items / sizeof items[0]);
}

static void log_header(struct pairs_reader *r, const char *at, const char *end, uint64_t line)
{
    char text[44];
    dp_lines_show(at, end, text);
    dp_log(DP_LOG_INFO,
           "%s:%" PRIu64 ": '%s' is taken for a header: users are the first column, items the second",
           r->options->path, line, text);
    r->pairs->header = true;
}

/* Two names above two numbers are names of columns. */
static void drop_header(struct pairs_reader *r)
{
    struct dp_pairs *p = r->pairs;
    dp_log(DP_LOG_INFO, "%s:%" PRIu64 ": '%s' and '%s' are taken for a header, as numbers follow",
           r->options->path, p->lines[0], dp_name_set_text(&p->names[DP_PAIRS_USERS], 0, p->keys[0]),
           dp_name_set_text(&p->names[DP_PAIRS_ITEMS], 0, p->keys[1]));
    dp_name_set_clear(&p->names[DP_PAIRS_USERS]);
    dp_name_set_clear(&p->names[DP_PAIRS_ITEMS]);
    p->count = 0;
    p->header = true;
}

/* ---- pairs */

/* The message when the first line is not a pair: the file may be of another kind. */
static enum dp_status explain_shape(const struct dp_pairs *p, enum dp_status st, struct dp_error *err)
{
    const struct dp_error cause = err ? *err : (struct dp_error){0};
    return dp_fail(
        err, st,
        "%s%s: pairs are lines 'user item' or 'user,item', with or without a rating and a time after them",
        cause.text, p->header ? " (the line before was taken for a header)" : "");
}

static enum dp_status add_names(struct pairs_reader *r, const char *at, const char *end, uint64_t line,
                                struct dp_error *err)
{
    struct dp_pairs *p = r->pairs;
    uint64_t key[2] = {0};
    struct pairs_field f = {0};
    enum dp_status st = DP_OK;
    bool whole = true, named = true;
    for (int side = DP_PAIRS_USERS; st == DP_OK && side <= DP_PAIRS_ITEMS; side++) {
        f = next_field(p->separator, &at, end);
        whole &= is_whole(f);
        named &= !is_whole(f);
        st = take_id(p, side, f, &key[side], err);
    }
    while (st == DP_OK && at < end) {
        f = next_field(p->separator, &at, end);
        if (!is_value(f))
            st = dp_lines_unexpected("a number, a date, or nothing, after user and item", f.at, f.end, err);
    }
    if (st != DP_OK)
        return p->count == 0 ? explain_shape(p, st, err) : st;
    if (p->may_be_header && whole)
        drop_header(r);
    p->may_be_header = p->count == 0 && !p->header && named;
    return add(p, key[0], key[1], line, err);
}

static enum dp_status add_pair(void *self, const char *at, const char *end, uint64_t line,
                               struct dp_error *err)
{
    struct pairs_reader *r = self;
    struct dp_pairs *p = r->pairs;
    uint64_t key[2] = {0};
    const char *begin = at;
    at = skip_blanks(at, end);
    if (at == end || *at == '#')
        return DP_OK;
    uint32_t numbers = read_numbers(at, end, key);
    bool named = r->options->format && strcmp(r->options->format, "auto") != 0;
    if (numbers > COLUMNS_MAX && !p->header && !p->may_be_header && !named)
        return dp_fail(
            err, DP_DATA,
            "%" PRIu32 " numbers in a line: if these are a user and its items, give the format 'lists' "
            "(--format lists, data.format); if they are a user, an item and other columns, 'pairs'",
            numbers);
    if (numbers > 0) {
        if (p->may_be_header)
            drop_header(r);
        p->may_be_header = false;
        return add(p, key[0], key[1], line, err);
    }
    bool first = p->separator == 0;
    if (first)
        p->separator = separator_of(at, end);
    at = p->separator == '\t' ? begin : at; /* the first field may be missing */
    if (first && p->count == 0 && !p->header && is_header(p->separator, at, end)) {
        log_header(r, at, end, line);
        p->separator = 0;
        return DP_OK;
    }
    return add_names(r, at, end, line, err);
}

/* ---- lists */

static enum dp_status add_list(void *self, const char *at, const char *end, uint64_t line,
                               struct dp_error *err)
{
    struct pairs_reader *r = self;
    struct dp_pairs *p = r->pairs;
    uint64_t user = 0, item = 0;
    at = skip_blanks(at, end);
    if (at == end || *at == '#')
        return DP_OK;
    while (end > at && is_blank(end[-1]))
        end--;
    if (p->separator == 0)
        p->separator = separator_of(at, end);
    enum dp_status st = take_id(p, DP_PAIRS_USERS, next_field(p->separator, &at, end), &user, err);
    while (st == DP_OK && at < end) {
        st = take_id(p, DP_PAIRS_ITEMS, next_field(p->separator, &at, end), &item, err);
        if (st == DP_OK)
            st = add(p, user, item, line, err);
    }
    return st;
}

bool dp_pairs_are_lists(const unsigned char *bytes, size_t len)
{
    const char *at = (const char *)bytes, *end = at + len;
    uint32_t lines = 0, least = UINT32_MAX, most = 0;
    while (at < end) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        const char *line_end = stop > at && newline && stop[-1] == '\r' ? stop - 1 : stop;
        uint32_t count = 0;
        uint64_t ignored;
        if (at < line_end && *at == '#')
            line_end = at;
        for (at = skip_blanks(at, line_end); at < line_end; at = skip_blanks(at, line_end), count++) {
            at = dp_number_index(at, line_end, &ignored);
            if (!at || (at < line_end && !is_blank(*at)))
                return false;
        }
        if (!newline && count > LONG_LINE)
            most = count, least = 0;
        if (!newline)
            break;
        lines += count > 0;
        most = count > most ? count : most;
        least = count > 0 && count < least ? count : least;
        at = newline + 1;
    }
    return most > COLUMNS_MAX && (least < most || (lines == 1 && most > LONG_LINE));
}

/* ---- files */

static void log_names(const struct dp_pairs *p, const char *path)
{
    uint64_t users = p->names[DP_PAIRS_USERS].count, items = p->names[DP_PAIRS_ITEMS].count;
    if (users > 0 || items > 0)
        dp_log(DP_LOG_INFO, "%s: ids that are names, not integers: %" PRIu64 " users, %" PRIu64 " items",
               path, users, items);
}

enum dp_status dp_pairs_read(struct dp_pairs *pairs, const struct dp_dataset_options *options, bool lists,
                             struct dp_unpack *unpack, struct dp_error *err)
{
    struct pairs_reader r = {.pairs = pairs, .options = options};
    dp_unpack_check_text(unpack);
    enum dp_status st =
        dp_lines_of(unpack, false, (struct dp_lines_sink){lists ? add_list : add_pair, &r}, err);
    if (st != DP_OK)
        return st;
    if (pairs->count == 0)
        return dp_fail(err, DP_DATA, "%s: holds no pairs: expected lines of %s", options->path,
                       lists ? "'user item item ...'" : "'user item' or 'user,item'");
    log_names(pairs, options->path);
    return DP_OK;
}

const char *dp_pairs_text(struct dp_pairs *p, int side, uint64_t key, char number[24])
{
    const char *name = dp_name_set_text(&p->names[side], 0, key);
    (void)snprintf(number, 24, "%" PRIu64, key);
    return name ? name : number;
}

/* Returns the place after "(user,item)" if that is the next pair of the first file, else NULL. */
static const char *after_pair(struct dp_pairs *held, uint64_t pair, const char *at, const char *end)
{
    for (int side = DP_PAIRS_USERS; side <= DP_PAIRS_ITEMS; side++) {
        char number[24];
        const char *text = dp_pairs_text(held, side, held->keys[2 * pair + (uint64_t)side], number);
        size_t len = strlen(text);
        if ((size_t)(end - at) < len + 2 || *at != "(,"[side] || memcmp(at + 1, text, len) != 0)
            return NULL;
        at += 1 + len;
    }
    return *at == ')' && (at + 1 == end || is_blank(at[1])) ? at + 1 : NULL;
}

static enum dp_status add_negatives(void *self, const char *at, const char *end, uint64_t line,
                                    struct dp_error *err)
{
    struct pairs_reader *r = self;
    struct dp_pairs *p = r->pairs;
    at = skip_blanks(at, end);
    while (end > at && is_blank(end[-1]))
        end--;
    if (at == end)
        return DP_OK;
    if (r->list == r->held->count)
        return dp_fail(err, DP_DATA, "a line too many: the file of pairs has %" PRIu64, r->held->count);
    uint64_t user = r->held->keys[2 * r->list], item = r->held->keys[2 * r->list + 1], other = 0;
    char user_number[24], item_number[24], wanted[300];
    const char *shown_user = dp_pairs_text(r->held, DP_PAIRS_USERS, user, user_number),
               *shown_item = dp_pairs_text(r->held, DP_PAIRS_ITEMS, item, item_number);
    const char *after = after_pair(r->held, r->list, at, end);
    if (!after) {
        const char *word = at;
        while (word < end && !is_blank(*word))
            word++;
        (void)snprintf(wanted, sizeof wanted, "(%.120s,%.120s), which is pair %" PRIu64, shown_user,
                       shown_item, r->list + 1);
        return dp_lines_unexpected(wanted, at, word, err);
    }
    r->starts[r->list++] = p->count;
    enum dp_status st = add(p, user, item, line, err);
    at = skip_blanks(after, end);
    char separator = at < end && memchr(at, '\t', (size_t)(end - at)) ? '\t' : ' ';
    while (st == DP_OK && at < end) {
        st = take_id(p, DP_PAIRS_ITEMS, next_field(separator, &at, end), &other, err);
        if (st == DP_OK && other == item)
            st = dp_fail(err, DP_DATA, "item %.120s is to be ranked among others, found among them",
                         shown_item);
        if (st == DP_OK)
            st = add(p, user, other, line, err);
    }
    if (st == DP_OK && p->count == r->starts[r->list - 1] + 1)
        st = dp_fail(err, DP_DATA, "expected items that %.120s is ranked among, found none", shown_item);
    return st;
}

enum dp_status dp_pairs_read_negatives(struct dp_pairs *pairs, const struct dp_dataset_options *options,
                                       uint64_t **starts, struct dp_error *err)
{
    struct dp_unpack *unpack = NULL;
    const char *path = options->negatives_path;
    struct dp_pairs ranked = {0};
    struct pairs_reader r = {.pairs = &ranked, .options = options, .held = pairs};
    enum dp_status st = DP_CONTENT_GROW(r.starts, pairs->count + 1, err);
    if (st == DP_OK)
        st = dp_unpack_open_text(path, options->encoding, &unpack, err);
    if (st == DP_OK)
        dp_unpack_check_text(unpack);
    if (st == DP_OK)
        st = dp_lines_of(unpack, false, (struct dp_lines_sink){add_negatives, &r}, err);
    if (st == DP_OK && r.list < pairs->count)
        st = dp_fail(err, DP_DATA, "%s: ends after %" PRIu64 " lines, but '%s' has %" PRIu64 " pairs", path,
                     r.list, options->path, pairs->count);
    dp_unpack_close(&unpack);
    if (st == DP_OK)
        r.starts[r.list] = ranked.count;
    dp_pairs_clear(pairs);
    *pairs = ranked;
    *starts = r.starts;
    return st;
}

void dp_pairs_clear(struct dp_pairs *pairs)
{
    free(pairs->keys);
    free(pairs->lines);
    dp_name_set_clear(&pairs->names[DP_PAIRS_USERS]);
    dp_name_set_clear(&pairs->names[DP_PAIRS_ITEMS]);
    *pairs = (struct dp_pairs){0};
}
