#include "worker/read/pairs.h"

#include "common/base/log.h"
#include "common/model/mix.h"
#include "worker/read/content.h"
#include "worker/read/lines.h"
#include "worker/read/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define COLUMNS_MAX 4  /* of pairs without a header: user, item, rating, time */
#define LONG_LINE   64 /* numbers in a line that only lists have */

struct pairs_reader {
    struct dp_pairs *pairs;
    const struct dp_dataset_options *options;
    /* For a file of negatives: */
    struct dp_pairs *held;  /* the pairs of the first file, */
    uint64_t *starts, list; /* and where the lists of those seen so far begin */
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

/* What a line of pairs says. */
struct pair_line {
    uint64_t key[2];
    float rating; /* NaN: none */
};

/* Counts the numbers of a line in which user and item are integers; 0 for any other line. */
static uint32_t read_numbers(const struct dp_pairs_columns *columns, const char *at, const char *end,
                             struct pair_line *out)
{
    uint32_t count = 0;
    for (float other; at < end; count++) { /* a rating, a time */
        bool user = count == columns->at[DP_PAIRS_USERS], item = count == columns->at[DP_PAIRS_ITEMS];
        if (user || item) {
            if (!read_number(&at, end, &out->key[item]))
                return 0;
            continue;
        }
        const char *after = dp_number_f32(at, end, &other);
        if (!after || !ends_number(after, end))
            return 0;
        if (count == columns->at[DP_PAIRS_RATINGS])
            out->rating = other;
        at = skip_gap(after, end);
    }
    return count > columns->last ? count : 0;
}

/* ---- lines of any ids */

/* Outside of quoted fields: a quote inside a field is text ("5\" disk"). */
static char separator_of(const char *at, const char *end)
{
    static const char separators[] = {'\t', ':', ';', ','};
    for (size_t s = 0; s < sizeof separators; s++) {
        bool inside = false, starts = true;
        for (const char *p = at; p < end; p++) {
            inside ^= *p == '"' && (inside || starts || p[-1] == '"');
            bool here = !inside && *p == separators[s];
            if (here && (*p != ':' || (p + 1 < end && p[1] == ':')))
                return *p;
            starts &= is_blank(*p);
        }
    }
    return ' ';
}

/* A line of JSON, or the first of several: its bracket encloses all, or begins what JSON has. */
static enum dp_status check_json(const char *at, const char *end, struct dp_error *err)
{
    if (at == end || (*at != '{' && *at != '['))
        return DP_OK;
    const char *next = skip_blanks(at + 1, end);
    bool closed = end[-1] == (*at == '{' ? '}' : ']');
    if (!closed && next < end && !strchr("{[\"", *next))
        return DP_OK;
    return dp_lines_unexpected(
        "'user,item', not JSON: write a CSV first, as with jq -r '[.user, .item] | @csv'", at, end, err);
}

static enum dp_status split(struct dp_pairs *p, const char *at, const char *end, struct dp_error *err)
{
    p->record.plain_quotes = p->separator != ',' && p->separator != ';';
    if (p->separator != '\t') /* with tabs the first field may be missing */
        at = skip_blanks(at, end);
    enum dp_status st = check_json(at, end, err);
    return st == DP_OK ? dp_csv_record_split(&p->record, p->separator, at, end, err) : st;
}

/* A field of the line, without surrounding blanks; "" for one that it lacks. */
static struct dp_cell field_of(const struct dp_pairs *p, size_t i)
{
    return i < p->record.count ? dp_cell_trim(p->record.cells[i]) : (struct dp_cell){"", ""};
}

bool dp_pairs_integer(const char *at, size_t len, uint64_t *out)
{
    return len > 0 && (at[0] != '0' || len == 1) && dp_number_index(at, at + len, out) == at + len;
}

static bool is_whole(struct dp_cell f)
{
    uint64_t ignored;
    return dp_pairs_integer(f.at, (size_t)(f.end - f.at), &ignored);
}

/* Whether a field is not an id: empty, a number with a sign or a point, the start of a list of negatives. */
static bool is_id(struct dp_cell f)
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

static enum dp_status take_id(struct dp_pairs *p, int side, struct dp_cell f, uint64_t *key,
                              struct dp_error *err)
{
    static const char *const wanted[] = {"the id of a user, an integer from 0 or a name",
                                         "the id of an item, an integer from 0 or a name"};
    if (!is_id(f))
        return dp_lines_unexpected(wanted[side], f.at, f.end, err);
    return dp_pairs_key(&p->names[side], f.at, (size_t)(f.end - f.at), key, err);
}

/* ---- the header */

/* The message when the first line is not a pair: the file may be of another kind, or lack columns. */
static enum dp_status explain_shape(const struct pairs_reader *r, enum dp_status st, struct dp_error *err)
{
    const struct dp_error cause = err ? *err : (struct dp_error){0};
    const struct dp_schema *like = r->options->like;
    char columns[200] = "";
    if (like && !r->pairs->columns.header)
        dp_pairs_columns_text(like, columns, sizeof columns);
    if (columns[0])
        return dp_fail(err, st, "%s: a file without a header has its columns where the training file has: %s",
                       cause.text, columns);
    return dp_fail(
        err, st,
        "%s%s: pairs are lines 'user item' or 'user,item', with or without a rating and a time after them",
        cause.text, r->pairs->columns.header ? " (the line before was taken for a header)" : "");
}

/* Finds out which column is what, and whether the line is a header. */
static enum dp_status find_columns(struct pairs_reader *r, const char *at, const char *end, bool header,
                                   struct dp_error *err)
{
    struct dp_pairs *p = r->pairs;
    p->separator = separator_of(at, end);
    enum dp_status st = split(p, at, end, err);
    if (st != DP_OK)
        return st;
    return dp_pairs_columns_find(r->options, p->record.cells, p->record.count, header, &p->columns, err);
}

static bool is_id_column(const struct dp_pairs *p, uint32_t i)
{
    return i == p->columns.at[DP_PAIRS_USERS] || i == p->columns.at[DP_PAIRS_ITEMS];
}

/* The other columns of the line that have text; those that have a number or a date. */
static uint64_t columns_of(const struct dp_pairs *p, bool values)
{
    uint64_t bits = 0;
    for (uint32_t i = 0; i < p->record.count && i < 64; i++) {
        struct dp_cell f = field_of(p, i);
        if (!is_id_column(p, i) && f.at < f.end && dp_pairs_is_value(f) == values)
            bits |= UINT64_C(1) << i;
    }
    return bits;
}

/* Names above numbers are names of columns. */
static enum dp_status drop_header(struct pairs_reader *r, struct dp_error *err)
{
    struct dp_pairs *p = r->pairs;
    char *line = p->first_line;
    p->first_line = NULL;
    dp_name_set_clear(&p->names[DP_PAIRS_USERS]);
    dp_name_set_clear(&p->names[DP_PAIRS_ITEMS]);
    p->count = 0;
    enum dp_status st = find_columns(r, line, line + strlen(line), true, err);
    free(line);
    return st;
}

/* ---- pairs */

static bool is_named(const struct pairs_reader *r)
{
    return r->options->format && strcmp(r->options->format, "auto") != 0;
}

/* The fields that are not an id; out->rating is that of a line. */
static enum dp_status check_others(const struct dp_pairs *p, struct pair_line *out, struct dp_error *err)
{
    const struct dp_pairs_columns *c = &p->columns;
    struct dp_cell rating = field_of(p, c->at[DP_PAIRS_RATINGS]);
    for (uint32_t i = c->schema.columns; c->header && p->separator != ' ' && i < p->record.count; i++)
        if (field_of(p, i).at < field_of(p, i).end)
            return dp_fail(err, DP_DATA,
                           "expected %" PRIu32 " columns, as the header has, found %zu: text that has the "
                           "separator belongs into double quotes",
                           c->schema.columns, p->record.count);
    for (uint32_t i = 0; i < p->record.count; i++) {
        struct dp_cell f = field_of(p, i);
        if (!is_id_column(p, i) && !c->named && !dp_pairs_is_value(f))
            return dp_lines_unexpected("a number, a date, or nothing, after user and item", f.at, f.end, err);
    }
    if (rating.at < rating.end && dp_number_f32(rating.at, rating.end, &out->rating) != rating.end)
        out->rating = NAN;
    return DP_OK;
}

static enum dp_status read_fields(struct dp_pairs *p, struct pair_line *out, bool *whole, bool *named,
                                  struct dp_error *err)
{
    enum dp_status st = DP_OK;
    *whole = *named = true;
    for (int side = DP_PAIRS_USERS; st == DP_OK && side <= DP_PAIRS_ITEMS; side++) {
        struct dp_cell f = field_of(p, p->columns.at[side]);
        *whole &= is_whole(f);
        *named &= !is_whole(f);
        st = take_id(p, side, f, &out->key[side], err);
    }
    return st == DP_OK ? check_others(p, out, err) : st;
}

static enum dp_status no_rating(const struct pairs_reader *r, struct dp_error *err)
{
    const struct dp_schema *schema = &r->pairs->columns.schema;
    uint32_t at = r->pairs->columns.at[DP_PAIRS_RATINGS];
    if (at == DP_PAIRS_NO_COLUMN)
        return dp_fail(err, DP_DATA,
                       "this model predicts ratings, and none of the %" PRIu32
                       " columns is one: name it (--rating, data.rating)",
                       schema->columns);
    return dp_fail(
        err, DP_DATA, "expected a rating, a number, in column %" PRIu32 "%s%s%s: leave lines without one out",
        at + 1, schema->column[at].name[0] ? " (" : "",
        dp_cell_show(dp_cell_of(schema->column[at].name)).text, schema->column[at].name[0] ? ")" : "");
}

static enum dp_status keep_rating(struct pairs_reader *r, float rating, struct dp_error *err)
{
    struct dp_pairs *p = r->pairs;
    if (isnan(rating) && !r->options->scored)
        return no_rating(r, err);
    enum dp_status st = p->max == p->ratings_max ? DP_OK : DP_CONTENT_GROW(p->ratings, p->max, err);
    if (st != DP_OK)
        return st;
    p->ratings_max = p->max;
    p->ratings[p->count - 1] = rating;
    return DP_OK;
}

static enum dp_status add_line(struct pairs_reader *r, const struct pair_line *pair, uint64_t line,
                               struct dp_error *err)
{
    struct dp_pairs *p = r->pairs;
    if (pair->rating < p->rating_low)
        p->rating_low = pair->rating;
    if (pair->rating > p->rating_high)
        p->rating_high = pair->rating;
    enum dp_status st = add(p, pair->key[DP_PAIRS_USERS], pair->key[DP_PAIRS_ITEMS], line, err);
    return st == DP_OK && r->options->rated ? keep_rating(r, pair->rating, err) : st;
}

static enum dp_status add_pair(void *self, const char *at, const char *end, uint64_t line,
                               struct dp_error *err);

/* A line that is not of numbers alone. */
static enum dp_status add_names(struct pairs_reader *r, const char *at, const char *end, uint64_t line,
                                struct dp_error *err)
{
    struct dp_pairs *p = r->pairs;
    struct pair_line pair = {.rating = NAN};
    bool whole, named, first = p->count == 0 && !p->columns.header;
    /* A header may have another separator than the lines. */
    if (p->separator == 0 || (p->count == 0 && !memchr(at, p->separator, (size_t)(end - at))))
        p->separator = separator_of(at, end);
    enum dp_status st = split(p, at, end, err);
    if (st != DP_OK)
        return st;
    st = read_fields(p, &pair, &whole, &named, err);
    if (st != DP_OK)
        return p->count == 0 ? explain_shape(r, st, err) : st;
    if (p->first_line && (whole || (p->first_texts & columns_of(p, true)))) {
        st = drop_header(r, err);
        return st == DP_OK ? add_pair(r, at, end, line, err) : st;
    }
    free(p->first_line);
    p->first_line = first && named ? strndup(at, (size_t)(end - at)) : NULL;
    p->first_texts = columns_of(p, false);
    if (first && named && !p->first_line)
        return dp_fail(err, DP_NOMEM, "no memory for a line");
    return add_line(r, &pair, line, err);
}

static enum dp_status add_pair(void *self, const char *at, const char *end, uint64_t line,
                               struct dp_error *err)
{
    struct pairs_reader *r = self;
    struct dp_pairs *p = r->pairs;
    struct pair_line pair = {.rating = NAN};
    const char *begin = at;
    at = skip_blanks(at, end);
    if (at == end || *at == '#')
        return DP_OK;
    if (p->columns.schema.columns == 0) {
        enum dp_status st = find_columns(r, begin, end, false, err);
        if (st != DP_OK || p->columns.header)
            return st;
        p->separator = 0;
    }
    uint32_t numbers = read_numbers(&p->columns, at, end, &pair);
    if (numbers > COLUMNS_MAX && !p->columns.header && !p->first_line && !is_named(r) && !p->columns.named)
        return dp_fail(
            err, DP_DATA,
            "%" PRIu32 " numbers in a line: if these are a user and its items, give the format 'lists' "
            "(--format lists, data.format); if they are a user, an item and other columns, 'pairs'",
            numbers);
    if (numbers == 0)
        return add_names(r, begin, end, line, err);
    if (p->first_line) {
        enum dp_status st = drop_header(r, err);
        return st == DP_OK ? add_pair(r, at, end, line, err) : st;
    }
    return add_line(r, &pair, line, err);
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
    enum dp_status st = split(p, at, end, err);
    if (st == DP_OK)
        st = take_id(p, DP_PAIRS_USERS, field_of(p, 0), &user, err);
    for (size_t i = 1; st == DP_OK && i < p->record.count; i++) {
        st = take_id(p, DP_PAIRS_ITEMS, field_of(p, i), &item, err);
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

/* Between commas or semicolons a quoted field may have line ends; elsewhere a quote may be a part of the
 * text. By the first line that is no comment. */
static enum dp_status may_quote_ends(struct dp_unpack *unpack, bool *quotes, struct dp_error *err)
{
    const unsigned char *bytes;
    size_t len;
    enum dp_status st = dp_unpack_peek(unpack, &bytes, &len, err);
    *quotes = false;
    if (st != DP_OK)
        return st;
    const char *at = (const char *)bytes, *end = at + len, *stop = at;
    for (; at < end; at = stop + 1) {
        const char *newline = memchr(at, '\n', (size_t)(end - at));
        stop = newline ? newline : end;
        if (*at != '#' && *at != '\n' && *at != '\r')
            break;
    }
    char separator = at < end ? separator_of(at, stop) : ' ';
    *quotes = separator == ',' || separator == ';';
    return DP_OK;
}

enum dp_status dp_pairs_read(struct dp_pairs *pairs, const struct dp_dataset_options *options, bool lists,
                             struct dp_unpack *unpack, struct dp_error *err)
{
    struct pairs_reader r = {.pairs = pairs, .options = options};
    dp_unpack_check_text(unpack);
    bool quotes = false;
    pairs->rating_low = INFINITY, pairs->rating_high = -INFINITY;
    enum dp_status st = lists ? DP_OK : may_quote_ends(unpack, &quotes, err);
    if (st == DP_OK)
        st = dp_lines_of(unpack, quotes, (struct dp_lines_sink){lists ? add_list : add_pair, &r}, err);
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
    p->separator = at < end && memchr(at, '\t', (size_t)(end - at)) ? '\t' : ' ';
    p->record.count = 0;
    if (st == DP_OK && at < end)
        st = split(p, at, end, err);
    for (size_t i = 0; st == DP_OK && i < p->record.count; i++) {
        st = take_id(p, DP_PAIRS_ITEMS, field_of(p, i), &other, err);
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
    free(pairs->ratings);
    free(pairs->first_line);
    dp_pairs_columns_clear(&pairs->columns);
    dp_csv_record_clear(&pairs->record);
    dp_name_set_clear(&pairs->names[DP_PAIRS_USERS]);
    dp_name_set_clear(&pairs->names[DP_PAIRS_ITEMS]);
    *pairs = (struct dp_pairs){0};
}
