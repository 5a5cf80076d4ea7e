/* Pairs: lines "user item" or "user,item", each a meeting of both; names of columns before them, parted by commas or
 * tabs, are left out. To train on, items that the user did not meet are sampled beside them; to test on, as in Neural
 * Collaborative Filtering (He et al. 2017), a second file has for each pair a line "(user,item) item item ...": its item
 * is ranked among those.
 *     lines -> ids -> numbers of users and items, ascending by id -> what each user met
 * Why   An unmet item is drawn by its place among the unmet ones, found by bisection: no draw is thrown away, however
 *       many items a user has met, and the draw is a function of (seed, epoch, number of the example) alone. */
#include "worker/read/format.h"

#include "common/base/log.h"
#include "common/model/mix.h"
#include "worker/read/batch_fill.h"
#include "worker/read/lines.h"
#include "worker/read/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { USERS, ITEMS }; /* facts */

#define AHEAD 16u /* examples between a look at far memory and its use */

/* content:  keys   mixed ids of the distinct users, then of the distinct items
 *           codes  for each example the numbers of its user and of its item; then what each user met, ascending
 *           offsets  to train on: of user u's met items in codes; with lists: of the lists */
struct builder {
    const struct dp_dataset_options *options;
    struct dp_content *content;
    uint64_t pairs, pairs_max;
    uint64_t *ids;   /* [2 * pairs]: user, item */
    uint64_t *lines; /* [pairs] */
    bool header;     /* there is one */
    /* A file of negatives: */
    const uint64_t *held; /* [2 * lists] the pairs of the first file, */
    uint64_t lists;       /* how many, */
    uint64_t list;        /* how many lines are read */
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

/* Over what parts two fields: blanks, a comma among them or not. */
static const char *skip_gap(const char *at, const char *end)
{
    at = skip_blanks(at, end);
    return at < end && *at == ',' ? skip_blanks(at + 1, end) : at;
}

static bool ends_field(const char *at, const char *end)
{
    return at == end || is_blank(*at) || *at == ',';
}

static bool starts_number(const char *at, const char *end)
{
    return at < end && ((*at >= '0' && *at <= '9') || *at == '-');
}

static const char *word_end(const char *at, const char *end)
{
    while (at < end && !is_blank(*at))
        at++;
    return at;
}

static enum dp_status add(struct builder *b, uint64_t user, uint64_t item, uint64_t line,
                          struct dp_error *err)
{
    if (b->pairs == b->pairs_max) {
        uint64_t max = b->pairs_max * 2 + 1024;
        enum dp_status st = dp_content_grow_u64(&b->ids, 2 * max, err);
        if (st == DP_OK)
            st = dp_content_grow_u64(&b->lines, max, err);
        if (st != DP_OK)
            return st;
        b->pairs_max = max;
    }
    b->ids[2 * b->pairs] = user;
    b->ids[2 * b->pairs + 1] = item;
    b->lines[b->pairs++] = line;
    return DP_OK;
}

/* An id of a user or an item at the start of what is left of a line. */
static enum dp_status read_id(const char *what, const char **at, const char *end, uint64_t *out,
                              struct dp_error *err)
{
    char wanted[96];
    *at = skip_blanks(*at, end);
    const char *behind = *at < end ? dp_number_index(*at, end, out) : NULL;
    if (!behind || !ends_field(behind, end)) {
        (void)snprintf(wanted, sizeof wanted, "the id of %s, a whole number from 0", what);
        return dp_lines_unexpected(wanted, *at, word_end(*at, end), err);
    }
    *at = behind;
    return DP_OK;
}

/* Two names or more, parted by commas or tabs. */
static bool is_header(const char *at, const char *end)
{
    const char *second = at;
    while (second < end && *second != ',' && *second != '\t')
        second++;
    second = skip_gap(second, end);
    return second < end && !starts_number(at, end) && !starts_number(second, end) && *at != '(';
}

static void tell_header(const struct builder *b, const char *at, const char *end, uint64_t line)
{
    char text[44];
    dp_lines_show(at, end, text);
    dp_log(DP_LOG_INFO,
           "%s:%" PRIu64 ": '%s' is taken for a header: users are the first column, items the second",
           b->options->path, line, text);
}

/* The first line of all is no pair: the file may be of another kind. */
static enum dp_status tell_shape(const struct builder *b, enum dp_status st, struct dp_error *err)
{
    const struct dp_error cause = err ? *err : (struct dp_error){0};
    return dp_fail(
        err, st,
        "%s%s: pairs are lines 'user item' or 'user,item' of whole numbers, a rating and a time behind them "
        "or not; names are to be numbered first, a header is to be left out or parted by commas",
        cause.text, b->header ? " (the line before was taken for a header)" : "");
}

static enum dp_status add_pair(void *self, const char *at, const char *end, uint64_t line,
                               struct dp_error *err)
{
    struct builder *b = self;
    uint64_t user = 0, item = 0;
    at = skip_blanks(at, end);
    if (at == end || *at == '#')
        return DP_OK;
    if (b->pairs == 0 && !b->header && is_header(at, end)) {
        tell_header(b, at, end, line);
        b->header = true;
        return DP_OK;
    }
    bool shapeless = b->pairs == 0 && *at != '-';
    enum dp_status st = read_id("a user", &at, end, &user, err);
    if (st == DP_OK) {
        at = skip_gap(at, end);
        st = read_id("an item", &at, end, &item, err);
    }
    if (st != DP_OK && shapeless)
        return tell_shape(b, st, err);
    for (at = skip_gap(at, end); st == DP_OK && at < end; at = skip_gap(at, end)) {
        float ignored; /* a rating, a time */
        const char *behind = dp_number_f32(at, end, &ignored);
        if (!behind || !ends_field(behind, end))
            return dp_lines_unexpected("a number, or nothing, behind user and item", at, word_end(at, end),
                                       err);
        at = behind;
    }
    return st == DP_OK ? add(b, user, item, line, err) : st;
}

/* "(user,item) item item ...": the next pair of the first file, and what it is ranked among. */
static enum dp_status add_list(void *self, const char *at, const char *end, uint64_t line,
                               struct dp_error *err)
{
    struct builder *b = self;
    char wanted[64];
    at = skip_blanks(at, end);
    if (at == end)
        return DP_OK;
    if (b->list == b->lists)
        return dp_fail(err, DP_DATA, "a line too many: the file of pairs has %" PRIu64, b->lists);
    uint64_t user = b->held[2 * b->list], item = b->held[2 * b->list + 1], other = 0;
    (void)snprintf(wanted, sizeof wanted, "(%" PRIu64 ",%" PRIu64 ")", user, item);
    size_t len = strlen(wanted);
    if ((size_t)(end - at) < len || memcmp(at, wanted, len) != 0 || (at + len < end && !is_blank(at[len]))) {
        (void)snprintf(wanted, sizeof wanted, "(%" PRIu64 ",%" PRIu64 "), which is pair %" PRIu64, user, item,
                       b->list + 1);
        return dp_lines_unexpected(wanted, at, word_end(at, end), err);
    }
    b->content->offsets[b->list++] = b->pairs;
    enum dp_status st = add(b, user, item, line, err);
    for (at = skip_blanks(at + len, end); st == DP_OK && at < end; at = skip_blanks(at, end)) {
        st = read_id("an item", &at, end, &other, err);
        if (st == DP_OK && other == item)
            st = dp_fail(err, DP_DATA, "item %" PRIu64 " is to be ranked among others, found among them",
                         item);
        if (st == DP_OK)
            st = add(b, user, other, line, err);
    }
    if (st == DP_OK && b->pairs == b->content->offsets[b->list - 1] + 1)
        st = dp_fail(err, DP_DATA, "expected items that %" PRIu64 " is ranked among, found none", item);
    return st;
}

/* The pairs of the first file take their lists from the second. */
static enum dp_status read_lists(struct builder *b, struct dp_error *err)
{
    struct dp_unpack *unpack = NULL;
    const char *path = b->options->negatives_path;
    struct builder ranked = {.options = b->options, .content = b->content, .held = b->ids, .lists = b->pairs};
    enum dp_status st = dp_content_grow_u64(&b->content->offsets, b->pairs + 1, err);
    if (st == DP_OK)
        st = dp_unpack_open(path, &unpack, err);
    if (st == DP_OK)
        st = dp_lines_of(unpack, false, (struct dp_lines_sink){add_list, &ranked}, err);
    if (st == DP_OK && ranked.list < ranked.lists)
        st = dp_fail(err, DP_DATA, "%s: ends after %" PRIu64 " lines, but '%s' has %" PRIu64 " pairs", path,
                     ranked.list, b->options->path, ranked.lists);
    dp_unpack_close(&unpack);
    free(b->ids);
    free(b->lines);
    *b = ranked;
    if (st != DP_OK)
        return st;
    b->content->lists = b->lists;
    b->content->offsets[b->lists] = b->pairs;
    b->content->offsets_len = b->lists + 1;
    return st;
}

static int by_value(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

static int by_code(const void *a, const void *b)
{
    uint32_t x = *(const uint32_t *)a, y = *(const uint32_t *)b;
    return (x > y) - (x < y);
}

static uint32_t place_of(const uint64_t *ids, uint64_t count, uint64_t id)
{
    const uint64_t *found = bsearch(&id, ids, (size_t)count, sizeof id, by_value);
    DP_ASSERT(found);
    return (uint32_t)(found - ids);
}

/* Distinct ids of one side, ascending, at content->keys + keys_len. */
static enum dp_status number_side(struct builder *b, int side, struct dp_error *err)
{
    struct dp_content *content = b->content;
    uint64_t *to = content->keys + content->keys_len, distinct = 0;
    for (uint64_t i = 0; i < b->pairs; i++)
        to[i] = b->ids[2 * i + (uint64_t)side];
    qsort(to, (size_t)b->pairs, sizeof *to, by_value);
    for (uint64_t i = 0; i < b->pairs; i++)
        if (i == 0 || to[i] != to[distinct - 1])
            to[distinct++] = to[i];
    if (distinct > UINT32_MAX)
        return dp_fail(err, DP_DATA, "%s: more than 2^32 - 1 %s", b->options->path,
                       side == USERS ? "users" : "items");
    content->facts[side] = distinct;
    content->keys_len += distinct;
    return DP_OK;
}

static enum dp_status number_ids(struct builder *b, struct dp_error *err)
{
    struct dp_content *content = b->content;
    bool trains = content->lists == 0 && !b->options->scored;
    enum dp_status st = dp_content_grow_u64(&content->keys, 2 * b->pairs, err);
    if (st == DP_OK)
        st = dp_content_grow_u32(&content->codes, (trains ? 3 : 2) * b->pairs, err);
    for (int side = USERS; st == DP_OK && side <= ITEMS; side++)
        st = number_side(b, side, err);
    if (st != DP_OK)
        return st;
    uint64_t users = content->facts[USERS], items = content->facts[ITEMS];
    for (uint64_t i = 0; i < b->pairs; i++) {
        content->codes[2 * i] = place_of(content->keys, users, b->ids[2 * i]);
        content->codes[2 * i + 1] = place_of(content->keys + users, items, b->ids[2 * i + 1]);
        content->digest =
            dp_content_digest(content->digest, dp_mix(b->ids[2 * i]) + b->ids[2 * i + 1] * DP_CONTENT_GOLDEN);
    }
    content->codes_len = 2 * b->pairs;
    return dp_content_grow_u64(&content->keys, content->keys_len, err);
}

/* A user who met every item leaves nothing to sample. */
static enum dp_status all_met(const struct builder *b, uint64_t user, struct dp_error *err)
{
    uint64_t line = 0;
    for (uint64_t i = 0; i < b->pairs; i++)
        if (b->content->codes[2 * i] == user)
            line = b->lines[i];
    return dp_fail(err, DP_DATA,
                   "%s:%" PRIu64 ": user %" PRIu64 " has met all %" PRIu64
                   " items of the file: none is left to sample; leave this user out",
                   b->options->path, line, b->content->keys[user], b->content->facts[ITEMS]);
}

/* What each user met: codes behind the pairs, sorted by user, then by item, each once. */
static enum dp_status gather_met(struct builder *b, struct dp_error *err)
{
    struct dp_content *content = b->content;
    uint64_t users = content->facts[USERS], behind = 2 * b->pairs;
    enum dp_status st = dp_content_grow_u64(&content->offsets, users + 2, err);
    if (st != DP_OK)
        return st;
    uint64_t *at =
        content->offsets + 1; /* at[u]: where user u's next item goes; afterwards offsets[u] is its first */
    memset(content->offsets, 0, (users + 2) * sizeof *at);
    for (uint64_t i = 0; i < b->pairs; i++)
        at[content->codes[2 * i] + 1]++;
    at[0] = behind;
    for (uint64_t u = 1; u <= users; u++)
        at[u] += at[u - 1];
    for (uint64_t i = 0; i < b->pairs; i++)
        content->codes[at[content->codes[2 * i]]++] = content->codes[2 * i + 1];
    content->offsets[0] = behind;
    uint64_t to = behind;
    for (uint64_t u = 0; u < users; u++) {
        uint64_t from = content->offsets[u], end = content->offsets[u + 1], first = to;
        qsort(content->codes + from, (size_t)(end - from), sizeof *content->codes, by_code);
        for (uint64_t i = from; i < end; i++)
            if (to == first || content->codes[i] != content->codes[to - 1])
                content->codes[to++] = content->codes[i];
        content->offsets[u] = first;
        if (to - first == content->facts[ITEMS])
            return all_met(b, u, err);
    }
    content->offsets[users] = to;
    content->offsets_len = users + 1;
    content->codes_len = to;
    return dp_content_grow_u32(&content->codes, to, err);
}

static enum dp_status load(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                           struct dp_content *out, struct dp_error *err)
{
    struct builder b = {.options = options, .content = out};
    enum dp_status st = dp_lines_of(unpack, false, (struct dp_lines_sink){add_pair, &b}, err);
    if (st == DP_OK && b.pairs == 0)
        st = dp_fail(err, DP_DATA, "%s: holds no pairs: expected lines of 'user item' or 'user,item'",
                     options->path);
    if (st == DP_OK && options->negatives_path)
        st = read_lists(&b, err);
    if (st == DP_OK)
        st = number_ids(&b, err);
    if (st == DP_OK && out->lists == 0 && !options->scored)
        st = gather_met(&b, err);
    out->examples = b.pairs;
    for (uint64_t i = 0; st == DP_OK && i < out->keys_len; i++)
        out->keys[i] = dp_mix(out->keys[i]);
    free(b.ids);
    free(b.lines);
    return st;
}

/* Ids are numbers, and name themselves. */
static enum dp_status names(const struct dp_dataset_options *options, const struct dp_content *content,
                            struct dp_name_set *set, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    (void)options;
    for (uint64_t i = 0; st == DP_OK && i < content->keys_len; i++) {
        char text[24];
        uint32_t group = i < content->facts[USERS] ? DP_FORM_USERS : DP_FORM_ITEMS;
        uint64_t id = dp_unmix(content->keys[i]);
        int len = snprintf(text, sizeof text, "%" PRIu64, id);
        const struct dp_vocab_name name = {.group = group, .key = id, .text = text, .len = (size_t)len};
        st = dp_name_set_add(set, &name, id, group, err);
    }
    return st;
}

/* ---- minibatches */

/* Examples of one pair: itself, and itself with each sampled item. */
static uint64_t examples_of_pair(const struct dp_dataset_options *options, const struct dp_content *content)
{
    return options->form == DP_FORM_PAIRS && content->lists == 0 && !options->scored
               ? 1 + (uint64_t)options->negatives
               : 1;
}

static uint64_t examples(const struct dp_dataset_options *options, const struct dp_content *content)
{
    return content->examples * examples_of_pair(options, content);
}

static enum dp_status shape(const struct dp_dataset_options *options, const struct dp_content *content,
                            uint32_t take, struct dp_batch_shape *out, struct dp_error *err)
{
    (void)content, (void)err;
    out->groups = 2;
    out->lists = options->form == DP_FORM_TRIPLES ? 3 : 2;
    for (uint32_t l = 0; l < out->lists; l++)
        out->list[l] = (struct dp_list_shape){
            .group = l == DP_FORM_USERS ? DP_FORM_USERS : DP_FORM_ITEMS, .entries = take, .each = 1};
    return DP_OK;
}

/* The unmet item that `random` says, each as likely as the others. */
static uint32_t draw_unmet(const struct dp_content *content, uint32_t user, uint64_t random)
{
    const uint32_t *met = content->codes + content->offsets[user];
    uint64_t count = content->offsets[user + 1] - content->offsets[user];
    uint64_t k = ((random >> 32) * (content->facts[ITEMS] - count)) >> 32;
    uint64_t low = 0; /* met items below the k-th unmet one: at least low, at most low + count */
    while (count > 0) {
        uint64_t half = (count + 1) / 2, mid = low + half - 1;
        low = met[mid] - mid <= k ? low + half : low; /* no branch, which no processor could foresee */
        count -= half;
    }
    return (uint32_t)(k + low);
}

static uint64_t state_of(const struct dp_format_fill *what)
{
    const uint64_t sampling = 0x73616d706c696e67u; /* so that order and draws have nothing in common */
    return dp_mix(dp_mix(what->options->seed ^ sampling) + ((uint64_t)what->epoch + 1) * DP_CONTENT_GOLDEN);
}

/* The item of an example (list ITEMS), or the one that it is compared with (list OTHER). */
static uint32_t item_of(const struct dp_format_fill *what, uint64_t each, uint64_t state, uint64_t example,
                        uint32_t list)
{
    const struct dp_content *content = what->content;
    uint64_t pair = example / each;
    bool sampled =
        list == DP_FORM_OTHER ? content->lists == 0 && !what->options->scored : example % each != 0;
    if (!sampled)
        return content->codes[2 * pair + 1];
    return draw_unmet(content, content->codes[2 * pair], dp_mix(state + (example + 1) * DP_CONTENT_GOLDEN));
}

/* Asks memory for what drawing an item for an example will look at: the eighths of what its user met (users were read
 * just before, and are near). */
static void look_ahead(const struct dp_format_fill *what, uint64_t each, uint64_t example)
{
    const struct dp_content *content = what->content;
    uint32_t user = content->codes[2 * (example / each)];
    const uint32_t *met = content->codes + content->offsets[user];
    uint64_t count = content->offsets[user + 1] - content->offsets[user];
    for (int eighth = 1; eighth < 8; eighth++)
        __builtin_prefetch(met + count * (uint64_t)eighth / 8);
}

static void fill_labels(const struct dp_format_fill *what, uint64_t each, struct dp_batch *batch)
{
    const struct dp_content *content = what->content;
    for (uint32_t i = 0; i < what->examples; i++)
        batch->labels[i] = what->order[i] % each == 0;
    if (content->lists == 0)
        return;
    /* The first of each list is the one that is held out. */
    for (uint32_t i = 0; i < what->examples; i++)
        batch->labels[i] = bsearch(&what->order[i], content->offsets, (size_t)content->lists,
                                   sizeof *content->offsets, by_value) != NULL;
}

static void fill(const struct dp_format_fill *what, struct dp_batch *batch)
{
    const struct dp_content *content = what->content;
    uint64_t each = examples_of_pair(what->options, content), state = state_of(what);
    const uint64_t *items = content->keys + content->facts[USERS];
    fill_labels(what, each, batch);
    dp_batch_fill_group(batch, DP_FORM_USERS);
    dp_batch_fill_list(batch, DP_FORM_USERS);
    for (uint32_t i = 0; i < what->examples; i++) {
        uint64_t pair = what->order[i] / each;
        if (AHEAD < what->examples - i)
            __builtin_prefetch(&content->codes[2 * (what->order[i + AHEAD] / each)]);
        dp_batch_fill_entries(batch, &content->keys[content->codes[2 * pair]], NULL, 1);
        dp_batch_fill_example(batch);
    }
    dp_batch_fill_group_end(batch);
    dp_batch_fill_group(batch, DP_FORM_ITEMS);
    uint32_t ahead = content->lists == 0 && !what->options->scored ? AHEAD : what->examples;
    for (uint32_t list = DP_FORM_ITEMS; list < batch->room.lists; list++) {
        dp_batch_fill_list(batch, list);
        for (uint32_t i = 0; i < what->examples; i++) {
            if (ahead < what->examples - i)
                look_ahead(what, each, what->order[i + ahead]);
            uint32_t item = item_of(what, each, state, what->order[i], list);
            dp_batch_fill_entries(batch, &items[item], NULL, 1);
            dp_batch_fill_example(batch);
        }
    }
    dp_batch_fill_group_end(batch);
}

const struct dp_format dp_format_pairs = {.name = "pairs",
                                          .holds = "lines of 'user item' or 'user,item'",
                                          .forms = 1u << DP_FORM_PAIRS | 1u << DP_FORM_TRIPLES,
                                          .negatives_apart = true,
                                          .decodes_slowly = true,
                                          .load = load,
                                          .names = names,
                                          .examples = examples,
                                          .shape = shape,
                                          .fill = fill};
