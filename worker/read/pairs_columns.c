#include "worker/read/pairs_columns.h"

#include "worker/read/number.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#define COLUMNS_MAX 65536u
#define WORDS_MAX   32

static const enum dp_column_kind kinds[DP_PAIRS_ROLES] = {DP_COLUMN_USER, DP_COLUMN_ITEM, DP_COLUMN_RATING,
                                                          DP_COLUMN_TIME};
static const char *const names[DP_PAIRS_ROLES] = {"user", "item", "rating", "time"};

/* ---- names that tell */

/* Of two columns the one whose word comes first here is taken. */
static const char *const words[DP_PAIRS_ROLES][WORDS_MAX] = {
    {"user", "uid", "usr", "reviewer", "customer", "member", "visitor", "buyer", "client", "account",
     "person", "session"},
    {"item",  "iid",   "movie", "film",     "product", "sku",      "asin", "book",
     "isbn",  "song",  "track", "artist",   "anime",   "business", "game", "video",
     "venue", "place", "poi",   "location", "article", "recipe",   "news", "goods"},
    {"rating", "score", "star", "overall", "rate", "like", "vote", "feedback", "preference", "weight",
     "count", "play"},
    {"time", "timestamp", "unixtime", "datetime", "date", "ts", "created"},
};

enum telling { TELLS_NOT, TELLS_IN_PART, TELLS, TELLS_AS_ID };

static bool is_edge(const char *at, const struct dp_cell *cell)
{
    if (at <= cell->at || at >= cell->end)
        return true;
    return !isalnum((unsigned char)at[-1]) || !isalnum((unsigned char)*at) ||
           (islower((unsigned char)at[-1]) && isupper((unsigned char)*at));
}

/* What follows the word in a name: nothing (or its plural), "id" or the like, or more. */
static enum telling telling_rest(const char *at, const struct dp_cell *cell, bool starts)
{
    static const char *const ids[] = {"id", "key", "no", "code", "name", "title"};
    if (at < cell->end && (*at == 's' || *at == 'S') && is_edge(at + 1, cell))
        at++;
    bool edge = is_edge(at, cell);
    while (at < cell->end && !isalnum((unsigned char)*at))
        at++;
    if (at == cell->end && edge)
        return starts ? TELLS : TELLS_IN_PART;
    for (size_t i = 0; i < sizeof ids / sizeof ids[0]; i++) {
        size_t len = strlen(ids[i]);
        if ((size_t)(cell->end - at) == len && strncasecmp(at, ids[i], len) == 0)
            return starts ? TELLS_AS_ID : TELLS_IN_PART;
    }
    return edge ? TELLS_IN_PART : TELLS_NOT;
}

/* "userId", "user_id:token", "raw user"; a name with a digit in it ("user1") is a user's. */
static enum telling tells(struct dp_cell cell, const char *word)
{
    const size_t len = strlen(word);
    const char *colon = memchr(cell.at, ':', (size_t)(cell.end - cell.at));
    enum telling best = TELLS_NOT;
    cell.end = colon ? colon : cell.end; /* RecBole writes the type there */
    for (const char *at = cell.at; at < cell.end; at++)
        if (isdigit((unsigned char)*at))
            return TELLS_NOT;
    for (const char *at = cell.at; at + len <= cell.end; at++) {
        if (!is_edge(at, &cell) || strncasecmp(at, word, len) != 0)
            continue;
        enum telling found = telling_rest(at + len, &cell, at == cell.at);
        best = found > best ? found : best;
    }
    /* Of several words: more likely a title than a column. */
    return best == TELLS_IN_PART && memchr(cell.at, ' ', (size_t)(cell.end - cell.at)) ? TELLS_NOT : best;
}

/* ---- the columns that are sought */

struct column_search {
    const struct dp_dataset_options *options;
    const struct dp_cell *cells; /* trimmed */
    uint32_t count;
    struct dp_pairs_columns *out;
};

static bool is_taken(const struct column_search *s, uint32_t column)
{
    for (int role = 0; role < DP_PAIRS_ROLES; role++)
        if (s->out->at[role] == column)
            return true;
    return false;
}

static uint32_t column_named(const struct column_search *s, const char *name)
{
    for (uint32_t i = 0; name[0] && i < s->count; i++)
        if (dp_cell_is(s->cells[i], name))
            return i;
    return DP_PAIRS_NO_COLUMN;
}

static enum dp_status no_such(const struct column_search *s, int role, struct dp_error *err)
{
    char list[160] = "";
    for (uint32_t i = 0; i < s->count && strlen(list) + 8 < sizeof list; i++)
        (void)snprintf(list + strlen(list), sizeof list - strlen(list), "%s%s", i ? ", " : "",
                       dp_cell_show(s->cells[i]).text);
    return dp_fail(err, DP_DATA,
                   "--%s (data.%s) is '%.40s', which is no column of this file: expected a name of its first "
                   "line (%s), or a number from 1 to %" PRIu32,
                   names[role], names[role], s->options->roles[role], list, s->count);
}

static const struct dp_schema_column *trained_column(const struct column_search *s, int role, uint32_t *at)
{
    const struct dp_schema *like = s->options->like;
    for (*at = 0; like && *at < like->columns; ++*at)
        if (like->column[*at].kind == kinds[role])
            return &like->column[*at];
    return NULL;
}

/* By the options: a name, else a number from 1. One that the training file's column has says nothing new of
 * another file, whose header comes first. */
static enum dp_status by_options(struct column_search *s, struct dp_error *err)
{
    for (int role = 0; role < DP_PAIRS_ROLES; role++) {
        const char *name = s->options->roles[role];
        uint64_t number = 0;
        uint32_t trained;
        if (!name || !name[0])
            continue;
        uint32_t column = column_named(s, name);
        s->out->header |= column != DP_PAIRS_NO_COLUMN;
        if (column == DP_PAIRS_NO_COLUMN &&
            dp_number_index(name, name + strlen(name), &number) == name + strlen(name) && number > 0 &&
            number <= s->count && !(trained_column(s, role, &trained) && trained == number - 1))
            column = (uint32_t)number - 1;
        if (column == DP_PAIRS_NO_COLUMN &&
            s->options->like) /* a file without the header of the training file */
            continue;
        if (column == DP_PAIRS_NO_COLUMN)
            return no_such(s, role, err);
        for (int other = 0; other < role; other++)
            if (s->out->at[other] == column)
                return dp_fail(err, DP_DATA, "--%s and --%s (data.%s, data.%s) are the same column: give two",
                               names[other], names[role], names[other], names[role]);
        s->out->at[role] = column;
    }
    return DP_OK;
}

/* By the names that the training file has. */
static void by_training_names(struct column_search *s)
{
    uint32_t ignored;
    for (int role = 0; role < DP_PAIRS_ROLES; role++) {
        const struct dp_schema_column *column = trained_column(s, role, &ignored);
        uint32_t found = column ? column_named(s, column->name) : DP_PAIRS_NO_COLUMN;
        if (s->out->at[role] != DP_PAIRS_NO_COLUMN || found == DP_PAIRS_NO_COLUMN || is_taken(s, found))
            continue;
        s->out->at[role] = found;
        s->out->header = true;
    }
}

/* By a name that tells at least so much; *best: how much it does. */
static void by_words(struct column_search *s, int role, enum telling least, enum telling *best)
{
    for (int w = 0; w < WORDS_MAX && words[role][w] && s->out->at[role] == DP_PAIRS_NO_COLUMN; w++)
        for (uint32_t i = 0; i < s->count && s->out->at[role] == DP_PAIRS_NO_COLUMN; i++) {
            enum telling found = is_taken(s, i) ? TELLS_NOT : tells(s->cells[i], words[role][w]);
            if (found < least)
                continue;
            s->out->at[role] = i;
            *best = found > *best ? found : *best;
        }
}

static void by_names(struct column_search *s)
{
    static const int order[] = {DP_PAIRS_TIMES, DP_PAIRS_RATINGS, DP_PAIRS_USERS, DP_PAIRS_ITEMS};
    struct dp_pairs_columns before = *s->out;
    enum telling best[DP_PAIRS_ROLES] = {TELLS_NOT};
    int found = 0;
    for (int role = 0; role < DP_PAIRS_ROLES; role++) /* given by number */
        for (int w = 0; s->out->at[role] < s->count && w < WORDS_MAX && words[role][w]; w++) {
            enum telling given = tells(s->cells[s->out->at[role]], words[role][w]);
            best[role] = given > best[role] ? given : best[role];
        }
    for (int role = 0; role < DP_PAIRS_ROLES; role++)
        by_words(s, role, TELLS, &best[role]);
    for (int i = 0; i < DP_PAIRS_ROLES; i++) /* "item_rating" is a rating, "rating_time" a time */
        by_words(s, order[i], TELLS_IN_PART, &best[order[i]]);
    for (int role = 0; role < DP_PAIRS_ROLES; role++)
        found += best[role] != TELLS_NOT;
    bool of_id = best[DP_PAIRS_USERS] != TELLS_NOT || best[DP_PAIRS_ITEMS] != TELLS_NOT;
    bool certain = best[DP_PAIRS_USERS] == TELLS_AS_ID || best[DP_PAIRS_ITEMS] == TELLS_AS_ID;
    if (s->out->header || certain || (of_id && found > 1))
        s->out->header = true;
    else
        *s->out = before;
}

/* Two columns have the same telling name, as in "user,user": the file does not say which one to take. */
static enum dp_status check_twice(const struct column_search *s, struct dp_error *err)
{
    for (int role = DP_PAIRS_USERS; role <= DP_PAIRS_ITEMS; role++) {
        const char *given = s->options->roles[role];
        for (int w = 0; !(given && given[0]) && w < WORDS_MAX && words[role][w]; w++)
            for (uint32_t i = 0, first = DP_PAIRS_NO_COLUMN; i < s->count; i++) {
                if (tells(s->cells[i], words[role][w]) < TELLS)
                    continue;
                const struct dp_shown name = dp_cell_show(s->cells[i]);
                if (first != DP_PAIRS_NO_COLUMN && strcmp(dp_cell_show(s->cells[first]).text, name.text) == 0)
                    return dp_fail(
                        err, DP_DATA,
                        "two columns are named '%s': name one of them by its number (--%s, data.%s)",
                        name.text, names[role], names[role]);
                first = i;
            }
    }
    return DP_OK;
}

static void by_training_places(struct column_search *s)
{
    uint32_t at;
    for (int role = 0; role < DP_PAIRS_ROLES; role++)
        if (s->out->at[role] == DP_PAIRS_NO_COLUMN && trained_column(s, role, &at) && !is_taken(s, at))
            s->out->at[role] = at;
}

static void by_place(struct column_search *s, int role)
{
    uint32_t column = 0;
    while (is_taken(s, column))
        column++;
    if (s->out->at[role] == DP_PAIRS_NO_COLUMN)
        s->out->at[role] = column;
}

bool dp_pairs_is_value(struct dp_cell f)
{
    if (f.at == f.end || dp_number_end(f.at, f.end) == f.end)
        return true;
    if (!isdigit((unsigned char)*f.at))
        return false;
    while (f.at < f.end && (isdigit((unsigned char)*f.at) || strchr(":+-./TZ ", *f.at)))
        f.at++;
    return f.at == f.end;
}

/* Names of columns in which a number, or a date, is expected. */
static bool looks_like_header(const struct column_search *s)
{
    const struct dp_cell user = s->cells[0], item = s->count > 1 ? s->cells[1] : s->cells[0];
    for (int role = 0; role < DP_PAIRS_ROLES; role++)
        if (s->out->at[role] != DP_PAIRS_NO_COLUMN)
            return false;
    return s->count > 2 && user.at < user.end && item.at < item.end && *user.at != '(' &&
           dp_number_end(user.at, user.end) != user.end && dp_number_end(item.at, item.end) != item.end &&
           !dp_pairs_is_value(s->cells[2]);
}

static enum dp_status fill_schema(const struct column_search *s, struct dp_error *err)
{
    struct dp_schema *schema = &s->out->schema;
    schema->column = calloc(s->count, sizeof *schema->column);
    if (!schema->column)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu32 " columns", s->count);
    for (uint32_t i = 0; i < s->count; i++) {
        const struct dp_cell *cell = &s->cells[i];
        schema->column[i].kind = DP_COLUMN_IGNORED;
        for (int role = 0; role < DP_PAIRS_ROLES; role++)
            if (s->out->at[role] == i)
                schema->column[i].kind = kinds[role];
        schema->column[i].name = strndup(cell->at, s->out->header ? (size_t)(cell->end - cell->at) : 0);
        if (!schema->column[i].name)
            return dp_fail(err, DP_NOMEM, "no memory for the names of columns");
        schema->columns++;
    }
    return DP_OK;
}

static bool knows_pair(const struct dp_pairs_columns *columns)
{
    return columns->at[DP_PAIRS_USERS] != DP_PAIRS_NO_COLUMN &&
           columns->at[DP_PAIRS_ITEMS] != DP_PAIRS_NO_COLUMN;
}

/* One column may be without a name, as the index of a table has none. */
static bool has_names(const struct dp_schema *schema)
{
    for (uint32_t i = 0; schema && i < schema->columns; i++)
        if (schema->column[i].name[0])
            return true;
    return false;
}

static enum dp_status settle(struct column_search *s, struct dp_error *err)
{
    struct dp_pairs_columns *out = s->out;
    enum dp_status st = by_options(s, err);
    if (st == DP_OK)
        st = check_twice(s, err);
    if (st != DP_OK)
        return st;
    by_training_names(s);
    by_names(s);
    out->header = out->header || (!has_names(s->options->like) && looks_like_header(s));
    out->named = knows_pair(out);
    if (!out->header)
        by_training_places(s);
    out->named |= has_names(s->options->like) && knows_pair(out);
    by_place(s, DP_PAIRS_USERS);
    by_place(s, DP_PAIRS_ITEMS);
    if (!out->named)
        by_place(s, DP_PAIRS_RATINGS);
    for (int role = DP_PAIRS_RATINGS; role < DP_PAIRS_ROLES; role++)
        if (out->at[role] >= s->count)
            out->at[role] = DP_PAIRS_NO_COLUMN;
    out->last =
        out->at[DP_PAIRS_USERS] > out->at[DP_PAIRS_ITEMS] ? out->at[DP_PAIRS_USERS] : out->at[DP_PAIRS_ITEMS];
    return fill_schema(s, err);
}

enum dp_status dp_pairs_columns_find(const struct dp_dataset_options *options, const struct dp_cell *cells,
                                     size_t count, bool header, struct dp_pairs_columns *out,
                                     struct dp_error *err)
{
    struct dp_cell *trimmed = NULL;
    dp_pairs_columns_clear(out);
    out->header = header;
    for (int role = 0; role < DP_PAIRS_ROLES; role++)
        out->at[role] = DP_PAIRS_NO_COLUMN;
    if (count > COLUMNS_MAX)
        return dp_fail(err, DP_DATA, "more than %u columns", COLUMNS_MAX);
    trimmed = malloc(count * sizeof *trimmed);
    if (!trimmed)
        return dp_fail(err, DP_NOMEM, "no memory for %zu columns", count);
    for (size_t i = 0; i < count; i++)
        trimmed[i] = dp_cell_trim(cells[i]);
    struct column_search search = {options, trimmed, (uint32_t)count, out};
    enum dp_status st = settle(&search, err);
    free(trimmed);
    return st;
}

void dp_pairs_columns_clear(struct dp_pairs_columns *columns)
{
    dp_schema_clear(&columns->schema);
    *columns = (struct dp_pairs_columns){0};
}

static void put_column(const struct dp_schema *schema, uint32_t i, const char *as, char *out, size_t size)
{
    const char *name = schema->column[i].name;
    size_t len = strlen(out);
    if (name[0])
        (void)snprintf(out + len, size - len, "%s%s%s'%s' (column %" PRIu32 ")", len ? ", " : "", as,
                       as[0] ? ": " : "", dp_cell_show(dp_cell_of(name)).text, i + 1);
    else
        (void)snprintf(out + len, size - len, "%s%s%scolumn %" PRIu32, len ? ", " : "", as, as[0] ? ": " : "",
                       i + 1);
}

void dp_pairs_columns_text(const struct dp_schema *schema, char *out, size_t size)
{
    uint32_t unused = 0;
    out[0] = '\0';
    for (int role = 0; role < DP_PAIRS_ROLES; role++)
        for (uint32_t i = 0; i < schema->columns; i++)
            if (schema->column[i].kind == kinds[role])
                put_column(schema, i, names[role], out, size);
    for (uint32_t i = 0; i < schema->columns; i++)
        unused += schema->column[i].kind == DP_COLUMN_IGNORED;
    size_t len = strlen(out);
    if (len > 0 && unused > 0)
        (void)snprintf(out + len, size - len, "; %" PRIu32 " other%s", unused, unused > 1 ? "s" : "");
    len = strlen(out);
    if (len > 0 && !has_names(schema))
        (void)snprintf(out + len, size - len, "; no header");
}
