/* Interactions of users and items (pairs.h), as "user item" or as lists "user item item ...". For training,
 * items without an interaction with the user are sampled for each. For testing, as in Neural Collaborative
 * Filtering (He et al. 2017), a second file has for each pair a line "(user,item) item item ...", and the
 * pair's item is ranked among those.
 *     pairs -> (interactions of earlier data) -> numbers of users and items, ascending by key -> the items of
 *     each user
 * Why   An item without an interaction is drawn by its rank among those, found by binary search: no draw
 *       is rejected, however many interactions a user has, and the draw is a function of (seed, epoch,
 *       number of the example) alone.
 *       A training on further data rehearses earlier interactions, drawn for each epoch. Without them, users
 *       and items forget what earlier data taught, the more the longer it trains. */
#include "worker/read/format.h"

#include "common/base/log.h"
#include "common/base/search.h"
#include "common/model/mix.h"
#include "worker/read/batch_fill.h"
#include "worker/read/csv_record.h"
#include "worker/read/holdout.h"
#include "worker/read/interactions.h"
#include "worker/read/pairs_columns.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Facts: the numbers of users and items, whether the file is of lists, the digest of all its pairs, and the
 * bits of its lowest and highest rating (f32), the number of users that are left out, and of the file's
 * pairs: the examples after those are rehearsed. */
enum { USERS = DP_PAIRS_USERS, ITEMS = DP_PAIRS_ITEMS, LISTS, WHOLE, RATING_LOW, RATING_HIGH, LEFT_OUT, OWN };

#define REHEARSED 4u /* for each pair of the file, at most */

#define TIMES 1e6f /* numbers of this size in an unnamed column are times */
#define AHEAD 16u  /* how many examples ahead memory is prefetched */

/* content:  keys   mixed keys of the distinct users, then of the distinct items
 *           codes  for each pair the numbers of its user and its item; the same of earlier interactions that
 *                  the file lacks; then the items of each user, ascending
 *           offsets  for training: of user u's items in codes; with lists: of the lists */
struct pairs_builder {
    const struct dp_dataset_options *options;
    struct dp_content *content;
    struct dp_pairs pairs;
    uint64_t own; /* pairs of the file; after them are the interactions of earlier data */
};

static uint32_t place_of(const uint64_t *ids, uint64_t count, uint64_t id)
{
    const uint64_t *found = bsearch(&id, ids, (size_t)count, sizeof id, dp_compare_u64);
    DP_ASSERT(found);
    return (uint32_t)(found - ids);
}

static uint64_t digest_of(const struct dp_pairs *pairs)
{
    uint64_t digest = 0;
    for (uint64_t i = 0; i < pairs->count; i++)
        digest =
            dp_content_digest(digest, dp_mix(pairs->keys[2 * i]) + pairs->keys[2 * i + 1] * DP_HASH_GOLDEN);
    return digest;
}

/* Appends the distinct ids of one side, ascending, to content->keys. */
static enum dp_status number_side(struct pairs_builder *b, int side, struct dp_error *err)
{
    struct dp_content *content = b->content;
    uint64_t *to = content->keys + content->keys_len, distinct = 0;
    for (uint64_t i = 0; i < b->pairs.count; i++)
        to[i] = b->pairs.keys[2 * i + (uint64_t)side];
    qsort(to, (size_t)b->pairs.count, sizeof *to, dp_compare_u64);
    for (uint64_t i = 0; i < b->pairs.count; i++)
        if (i == 0 || to[i] != to[distinct - 1])
            to[distinct++] = to[i];
    if (distinct > UINT32_MAX)
        return dp_fail(err, DP_DATA, "%s: more than 2^32 - 1 %s", b->options->path,
                       side == USERS ? "users" : "items");
    content->facts[side] = distinct;
    content->keys_len += distinct;
    return DP_OK;
}

static enum dp_status number_ids(struct pairs_builder *b, struct dp_error *err)
{
    struct dp_content *content = b->content;
    bool trains = content->lists == 0 && !b->options->scored;
    enum dp_status st = DP_CONTENT_GROW(content->keys, 2 * b->pairs.count, err);
    if (st == DP_OK)
        st = DP_CONTENT_GROW(content->codes, (trains ? 3 : 2) * b->pairs.count, err);
    for (int side = USERS; st == DP_OK && side <= ITEMS; side++)
        st = number_side(b, side, err);
    if (st != DP_OK)
        return st;
    uint64_t users = content->facts[USERS], items = content->facts[ITEMS];
    for (uint64_t i = 0; i < b->pairs.count; i++) {
        content->codes[2 * i] = place_of(content->keys, users, b->pairs.keys[2 * i]);
        content->codes[2 * i + 1] = place_of(content->keys + users, items, b->pairs.keys[2 * i + 1]);
    }
    content->codes_len = 2 * b->pairs.count;
    return DP_CONTENT_GROW(content->keys, content->keys_len, err);
}

/* In place of labels that say whether there is an interaction. */
static enum dp_status keep_ratings(struct pairs_builder *b, struct dp_error *err)
{
    struct dp_content *content = b->content;
    enum dp_status st = DP_CONTENT_GROW(content->labels, b->own, err);
    for (uint64_t i = 0; st == DP_OK && i < b->own; i++) {
        float rating = b->pairs.ratings[i];
        uint32_t bits;
        memcpy(&bits, &rating, sizeof bits);
        content->labels[i] = isnan(rating) ? 0 : rating;
        content->digest = dp_content_digest(content->digest, bits);
    }
    content->labels_len = st == DP_OK ? b->own : 0;
    return st;
}

/* Where a pair is among the items of its user. */
static uint64_t met_at(const struct dp_content *content, const uint32_t *pair)
{
    uint64_t first = content->offsets[pair[0]], count = content->offsets[pair[0] + 1] - first;
    return first + dp_lower_bound_u32(content->codes + first, count, pair[1]);
}

/* Of the interactions of earlier data, those that the file lacks stay after its pairs, unless the user has
 * all items. `count`: items of all users. */
static enum dp_status keep_earlier(struct pairs_builder *b, uint64_t count, struct dp_error *err)
{
    struct dp_content *content = b->content;
    uint64_t kept = b->own, after = content->offsets[0];
    bool *own = calloc(count, sizeof *own);
    if (!own)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " interactions", count);
    for (uint64_t i = 0; i < b->own; i++)
        own[met_at(content, &content->codes[2 * i]) - after] = true;
    for (uint64_t i = b->own; i < b->pairs.count; i++) {
        const uint32_t *pair = &content->codes[2 * i];
        uint64_t items = content->offsets[pair[0] + 1] - content->offsets[pair[0]];
        if (!own[met_at(content, pair) - after] && items < content->facts[ITEMS])
            memmove(&content->codes[2 * kept++], pair, 2 * sizeof *pair);
    }
    free(own);
    memmove(content->codes + 2 * kept, content->codes + after, count * sizeof *content->codes);
    for (uint64_t u = 0; u < content->offsets_len; u++)
        content->offsets[u] -= after - 2 * kept;
    content->codes_len = 2 * kept + count;
    return DP_CONTENT_GROW(content->codes, content->codes_len, err);
}

/* Appends the items of each user's interactions to the codes, sorted by user, then by item, each once. */
static enum dp_status gather_met(struct pairs_builder *b, struct dp_error *err)
{
    struct dp_content *content = b->content;
    uint64_t users = content->facts[USERS], after = 2 * b->pairs.count;
    enum dp_status st = DP_CONTENT_GROW(content->offsets, users + 2, err);
    if (st != DP_OK)
        return st;
    uint64_t *at =
        content->offsets + 1; /* at[u]: where user u's next item goes; afterwards offsets[u] is its first */
    memset(content->offsets, 0, (users + 2) * sizeof *at);
    for (uint64_t i = 0; i < b->pairs.count; i++)
        at[content->codes[2 * i] + 1]++;
    at[0] = after;
    for (uint64_t u = 1; u <= users; u++)
        at[u] += at[u - 1];
    for (uint64_t i = 0; i < b->pairs.count; i++)
        content->codes[at[content->codes[2 * i]]++] = content->codes[2 * i + 1];
    content->offsets[0] = after;
    uint64_t to = after;
    for (uint64_t u = 0; u < users; u++) {
        uint64_t from = content->offsets[u], end = content->offsets[u + 1], first = to;
        qsort(content->codes + from, (size_t)(end - from), sizeof *content->codes, dp_compare_u32);
        for (uint64_t i = from; i < end; i++)
            if (to == first || content->codes[i] != content->codes[to - 1])
                content->codes[to++] = content->codes[i];
        content->offsets[u] = first;
    }
    content->offsets[users] = to;
    content->offsets_len = users + 1;
    return keep_earlier(b, to - after, err);
}

/* Leaves out the examples of users with interactions with every item, as none can be sampled for them. *left:
 * how many users. */
static enum dp_status leave_out(struct pairs_builder *b, uint64_t *left, struct dp_error *err)
{
    const struct dp_content *content = b->content;
    struct dp_pairs *p = &b->pairs;
    uint64_t kept = 0, users = content->facts[USERS], items = content->facts[ITEMS], last = 0, line = 0;
    bool *out = calloc(users, sizeof *out);
    char number[24];
    if (!out)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " users", users);
    *left = 0;
    for (uint64_t i = 0; i < b->own; i++) {
        uint32_t u = content->codes[2 * i];
        if (content->offsets[u + 1] - content->offsets[u] == items) {
            *left += !out[u];
            out[u] = true;
            last = u;
            line = p->lines[i];
            continue;
        }
        memcpy(&p->keys[2 * kept], &p->keys[2 * i], 2 * sizeof *p->keys);
        p->lines[kept++] = p->lines[i];
    }
    free(out);
    if (*left == 0)
        return DP_OK;
    const char *shown = dp_pairs_text(p, USERS, content->keys[last], number);
    if (kept == 0)
        return dp_fail(err, DP_DATA,
                       "%s:%" PRIu64 ": user %.120s has all %" PRIu64
                       " items, as has each other user, so none can be sampled: a model has nothing to learn",
                       b->options->path, line, shown, items);
    dp_log(DP_LOG_INFO,
           "%s: users that have all %" PRIu64 " items are left out, as none can be sampled for them: %" PRIu64
           "; the last is %.120s, line %" PRIu64,
           b->options->path, items, *left, shown, line);
    memmove(&p->keys[2 * kept], &p->keys[2 * b->own], 2 * (p->count - b->own) * sizeof *p->keys);
    p->count -= b->own - kept;
    b->own = kept;
    b->content->facts[LEFT_OUT] += *left;
    return DP_OK;
}

/* Users and items by number, and the items of each user. The rest may have fewer items, which a further user
 * has all. */
static enum dp_status number_trained(struct pairs_builder *b, struct dp_error *err)
{
    enum dp_status st;
    uint64_t left;
    do {
        b->content->keys_len = 0;
        left = 0;
        st = number_ids(b, err);
        if (st == DP_OK)
            st = gather_met(b, err);
        if (st == DP_OK && !b->options->rated && !b->options->with_held)
            st = leave_out(b, &left, err);
    } while (st == DP_OK && left > 0);
    return st;
}

/* Adds the lists of the second file to the pairs of the first. */
static enum dp_status read_negatives(struct pairs_builder *b, struct dp_error *err)
{
    struct dp_content *content = b->content;
    uint64_t lists = b->pairs.count;
    enum dp_status st = dp_pairs_read_negatives(&b->pairs, b->options, &content->offsets, err);
    if (st != DP_OK)
        return st;
    content->lists = lists;
    content->offsets_len = lists + 1;
    return DP_OK;
}

static enum dp_status keep_columns(const struct dp_pairs *pairs, struct dp_content *out, struct dp_error *err)
{
    struct dp_schema schema = pairs->columns.schema; /* lent */
    char *text;
    if (schema.columns == 0)
        return DP_OK;
    (void)snprintf(schema.format, sizeof schema.format, "pairs");
    enum dp_status st = dp_schema_write(&schema, &text, err);
    out->schema = (uint8_t *)text;
    out->schema_len = text ? strlen(text) : 0;
    memcpy(&out->facts[RATING_LOW], &pairs->rating_low, sizeof pairs->rating_low);
    memcpy(&out->facts[RATING_HIGH], &pairs->rating_high, sizeof pairs->rating_high);
    return st;
}

static enum dp_status add_earlier(struct pairs_builder *b, struct dp_error *err)
{
    struct dp_interactions earlier;
    struct dp_pairs *pairs = &b->pairs;
    enum dp_status st = dp_interactions_read(b->options->interactions_path, &earlier, err);
    if (st == DP_OK)
        st = DP_CONTENT_GROW(pairs->keys, 2 * (pairs->count + earlier.count), err);
    for (uint64_t u = 0; st == DP_OK && u < earlier.users; u++)
        for (uint64_t i = earlier.first[u]; i < earlier.first[u + 1]; i++) {
            uint64_t item = earlier.item[earlier.code[i] & ~DP_INTERACTION_HELD];
            if ((earlier.code[i] & DP_INTERACTION_HELD) && !b->options->with_held)
                continue;
            pairs->keys[2 * pairs->count] = earlier.user[u];
            pairs->keys[2 * pairs->count++ + 1] = item;
        }
    dp_interactions_clear(&earlier);
    return st;
}

/* Earlier interactions that the file lacks. */
static uint64_t earlier_pairs(const struct dp_content *content)
{
    return content->offsets[0] / 2 - content->facts[OWN];
}

static uint64_t own(const struct dp_content *content, uint64_t *all)
{
    const bool rehearses = content->examples > content->facts[OWN];
    *all = content->facts[OWN] + (rehearses ? earlier_pairs(content) : 0);
    return content->facts[OWN];
}

static enum dp_status load_as(const struct dp_dataset_options *options, bool lists, struct dp_unpack *unpack,
                              struct dp_content *out, struct dp_error *err)
{
    struct pairs_builder b = {.options = options, .content = out};
    if (options->rated && (lists || options->negatives_path))
        return dp_fail(err, DP_ARGUMENT,
                       lists ? "%s: is a file of lists, which have no ratings: give lines 'user,item,rating'"
                             : "%s: ratings are not ranked: leave out the file of negatives",
                       options->path);
    enum dp_status st = dp_pairs_read(&b.pairs, options, lists, unpack, err);
    out->facts[LISTS] = lists;
    out->facts[WHOLE] = digest_of(&b.pairs);
    if (st == DP_OK)
        st = keep_columns(&b.pairs, out, err);
    if (st == DP_OK && dp_holdout_any(options))
        st = dp_holdout_keep(&b.pairs, options, err);
    if (st == DP_OK && options->negatives_path)
        st = read_negatives(&b, err);
    b.own = b.pairs.count;
    out->digest = digest_of(&b.pairs);
    bool trains = out->lists == 0 && !options->scored;
    if (st == DP_OK && trains && options->interactions_path)
        st = add_earlier(&b, err);
    if (st == DP_OK)
        st = trains ? number_trained(&b, err) : number_ids(&b, err);
    if (st == DP_OK && options->rated)
        st = keep_ratings(&b, err);
    out->examples = out->facts[OWN] = b.own;
    if (st == DP_OK && trains && !options->rated && !options->with_held)
        out->examples += earlier_pairs(out) < REHEARSED * b.own ? earlier_pairs(out) : REHEARSED * b.own;
    for (uint64_t i = 0; st == DP_OK && i < out->keys_len; i++)
        out->keys[i] = dp_mix(out->keys[i]);
    dp_pairs_clear(&b.pairs);
    return st;
}

static enum dp_status load(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                           struct dp_content *out, struct dp_error *err)
{
    return load_as(options, false, unpack, out, err);
}

static enum dp_status load_lists(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                                 struct dp_content *out, struct dp_error *err)
{
    return load_as(options, true, unpack, out, err);
}

static uint64_t left_out(const struct dp_content *content)
{
    return content->facts[LEFT_OUT];
}

static bool begins_lists(const struct dp_dataset_options *options, const unsigned char *bytes, size_t len)
{
    (void)options;
    return dp_pairs_are_lists(bytes, len);
}

/* Which column is what; and ratings that make no difference. */
static void understood(const struct dp_dataset_options *options, const struct dp_content *content,
                       const struct dp_schema *schema, struct dp_understood *out)
{
    float low, high;
    uint32_t at = 0;
    char columns[DP_UNDERSTOOD_WIDTH];
    dp_pairs_columns_text(schema, columns, sizeof columns);
    if (columns[0])
        (void)snprintf(out->line[out->lines++], sizeof out->line[0], "columns: %s", columns);
    if (content->examples > content->facts[OWN])
        (void)snprintf(out->line[out->lines++], sizeof out->line[0],
                       "rehearsed: %" PRIu64 " interactions in each epoch, drawn from earlier data",
                       content->examples - content->facts[OWN]);
    if (content->facts[LEFT_OUT] > 0)
        (void)snprintf(
            out->note[out->notes++], sizeof out->note[0],
            "%s: users that have all items are left out, as none can be sampled for them: %" PRIu64,
            options->path, content->facts[LEFT_OUT]);
    memcpy(&low, &content->facts[RATING_LOW], sizeof low);
    memcpy(&high, &content->facts[RATING_HIGH], sizeof high);
    while (at < schema->columns && schema->column[at].kind != DP_COLUMN_RATING)
        at++;
    if (options->rated || at == schema->columns || !(low < high) ||
        (high >= TIMES && schema->column[at].name[0] == '\0'))
        return;
    const char *name = schema->column[at].name;
    (void)snprintf(out->note[out->notes++], sizeof out->note[0],
                   "%s: column %" PRIu32
                   " (%s, %g .. %g) is not used: each line counts as an interaction. Leave "
                   "out the lines that are none, or predict the ratings: --model mf:16,loss=squared",
                   options->path, at + 1, name[0] ? dp_cell_show(dp_cell_of(name)).text : "rating",
                   (double)low, (double)high);
}

static int by_unmixed(const void *a, const void *b)
{
    uint64_t x = dp_unmix(*(const uint64_t *)a), y = dp_unmix(*(const uint64_t *)b);
    return (x > y) - (x < y);
}

/* The place of a key among those of one side; NULL: it is not there. */
static const uint64_t *find_id(const struct dp_content *content, int side, uint64_t key)
{
    const uint64_t mixed = dp_mix(key), *ids = content->keys + (side == ITEMS ? content->facts[USERS] : 0);
    return bsearch(&mixed, ids, (size_t)content->facts[side], sizeof mixed, by_unmixed);
}

static enum dp_status add_name(struct dp_pairs *pairs, int side, uint64_t key, struct dp_name_set *set,
                               struct dp_error *err)
{
    char number[24];
    const char *text = dp_pairs_text(pairs, side, key, number);
    const struct dp_vocab_name name = {.group = side == USERS ? DP_FORM_USERS : DP_FORM_ITEMS,
                                       .key = key,
                                       .text = text,
                                       .len = strlen(text)};
    return dp_name_set_add(set, &name, key, (uint64_t)side << 63 | key, err);
}

/* Ascending by key. Ids of earlier data, whose names are not in the file, are not named; nor are those of
 * pairs that are held out alone. */
static enum dp_status names(const struct dp_dataset_options *options, const struct dp_content *content,
                            struct dp_name_set *set, struct dp_error *err)
{
    struct dp_unpack *unpack = NULL;
    struct dp_pairs pairs = {0};
    enum dp_status st = dp_unpack_open_text(options->path, options->encoding, &unpack, err);
    if (st == DP_OK)
        st = dp_pairs_read(&pairs, options, content->facts[LISTS], unpack, err);
    if (st == DP_OK && digest_of(&pairs) != content->facts[WHOLE])
        st = dp_fail(err, DP_DATA, "%s: has changed since it was read", options->path);
    for (uint64_t i = 0; st == DP_OK && i < 2 * pairs.count; i++) {
        int side = i % 2 == 0 ? USERS : ITEMS;
        if (find_id(content, side, pairs.keys[i]))
            st = add_name(&pairs, side, pairs.keys[i], set, err);
    }
    dp_pairs_clear(&pairs);
    dp_unpack_close(&unpack);
    return st;
}

static bool interactions(const struct dp_content *content, uint64_t user,
                         void (*visit)(void *context, uint64_t item), void *context)
{
    const uint64_t *found = find_id(content, USERS, user), users = content->facts[USERS];
    if (!found || content->lists > 0)
        return false;
    for (uint64_t i = content->offsets[found - content->keys],
                  end = content->offsets[found - content->keys + 1];
         i < end; i++)
        visit(context, dp_unmix(content->keys[users + content->codes[i]]));
    return true;
}

/* ---- minibatches */

/* The examples of one pair: itself, and its user with each sampled item. */
static uint64_t examples_of_pair(const struct dp_dataset_options *options, const struct dp_content *content)
{
    return options->form == DP_FORM_PAIRS && content->lists == 0 && !options->scored && !options->rated
               ? 1 + (uint64_t)options->negatives
               : 1;
}

static uint64_t examples(const struct dp_dataset_options *options, const struct dp_content *content)
{
    return content->examples * examples_of_pair(options, content);
}

enum dp_status dp_format_pairs_shape(const struct dp_dataset_options *options,
                                     const struct dp_content *content, uint32_t take,
                                     struct dp_batch_shape *out, struct dp_error *err)
{
    (void)content, (void)err;
    out->groups = 2;
    out->lists = options->form == DP_FORM_TRIPLES ? 3 : 2;
    for (uint32_t l = 0; l < out->lists; l++)
        out->list[l] = (struct dp_list_shape){
            .group = l == DP_FORM_USERS ? DP_FORM_USERS : DP_FORM_ITEMS, .entries = take, .each = 1};
    return DP_OK;
}

/* The item without an interaction that `random` chooses, all with the same probability. */
static uint32_t draw_unmet(const struct dp_content *content, uint32_t user, uint64_t random)
{
    const uint32_t *trained = content->codes + content->offsets[user];
    uint64_t count = content->offsets[user + 1] - content->offsets[user];
    uint64_t k = ((random >> 32) * (content->facts[ITEMS] - count)) >> 32;
    uint64_t low =
        0; /* items with an interaction below the k-th without: at least low, at most low + count */
    while (count > 0) {
        uint64_t half = (count + 1) / 2, mid = low + half - 1;
        low = trained[mid] - mid <= k ? low + half : low; /* no branch, since none could be predicted */
        count -= half;
    }
    return (uint32_t)(k + low);
}

static uint64_t state_of(const struct dp_format_fill *what)
{
    const uint64_t sampling = 0x73616d706c696e67u; /* so that order and draws have nothing in common */
    return dp_mix(dp_mix(what->options->seed ^ sampling) + ((uint64_t)what->epoch + 1) * DP_HASH_GOLDEN);
}

/* The user and the item of a pair of the file, or of an earlier one that the epoch draws. */
static const uint32_t *pair_of(const struct dp_content *content, uint64_t state, uint64_t number)
{
    const uint64_t rehearsing = 0x7265686561727365u, own = content->facts[OWN];
    if (number >= own)
        number = own + dp_mix((state ^ rehearsing) + number * DP_HASH_GOLDEN) % earlier_pairs(content);
    return &content->codes[2 * number];
}

/* The item of an example (list ITEMS), or the item that it is compared with (list OTHER). */
static uint32_t item_of(const struct dp_format_fill *what, uint64_t each, uint64_t state, uint64_t example,
                        uint32_t list)
{
    const struct dp_content *content = what->content;
    const uint32_t *pair = pair_of(content, state, example / each);
    bool sampled =
        list == DP_FORM_OTHER ? content->lists == 0 && !what->options->scored : example % each != 0;
    if (!sampled)
        return pair[1];
    return draw_unmet(content, pair[0], dp_mix(state + (example + 1) * DP_HASH_GOLDEN));
}

/* Prefetches the memory that drawing an item for an example will read: the eighths of its user's items.
 * (Users were just read, and are cached.) */
static void look_ahead(const struct dp_format_fill *what, uint64_t each, uint64_t state, uint64_t example)
{
    const struct dp_content *content = what->content;
    uint32_t user = *pair_of(content, state, example / each);
    const uint32_t *trained = content->codes + content->offsets[user];
    uint64_t count = content->offsets[user + 1] - content->offsets[user];
    for (int eighth = 1; eighth < 8; eighth++)
        __builtin_prefetch(trained + count * (uint64_t)eighth / 8);
}

static void fill_labels(const struct dp_format_fill *what, uint64_t each, struct dp_batch *batch)
{
    const struct dp_content *content = what->content;
    for (uint32_t i = 0; i < what->examples; i++)
        batch->labels[i] =
            what->options->rated ? content->labels[what->order[i]] : (float)(what->order[i] % each == 0);
    if (content->lists == 0)
        return;
    /* The first of each list is the held-out item. */
    for (uint32_t i = 0; i < what->examples; i++)
        batch->labels[i] = bsearch(&what->order[i], content->offsets, (size_t)content->lists,
                                   sizeof *content->offsets, dp_compare_u64) != NULL;
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
        if (AHEAD < what->examples - i)
            __builtin_prefetch(pair_of(content, state, what->order[i + AHEAD] / each));
        uint32_t user = *pair_of(content, state, what->order[i] / each);
        dp_batch_fill_entries(batch, &content->keys[user], NULL, 1);
        dp_batch_fill_example(batch);
    }
    dp_batch_fill_group_end(batch);
    dp_batch_fill_group(batch, DP_FORM_ITEMS);
    uint32_t ahead = content->lists == 0 && !what->options->scored ? AHEAD : what->examples;
    for (uint32_t list = DP_FORM_ITEMS; list < batch->room.lists; list++) {
        dp_batch_fill_list(batch, list);
        for (uint32_t i = 0; i < what->examples; i++) {
            if (ahead < what->examples - i)
                look_ahead(what, each, state, what->order[i + ahead]);
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
                                          .holds_out = true,
                                          .load = load,
                                          .understood = understood,
                                          .names = names,
                                          .interactions = interactions,
                                          .left_out = left_out,
                                          .own = own,
                                          .examples = examples,
                                          .shape = dp_format_pairs_shape,
                                          .fill = fill};

const struct dp_format dp_format_lists = {.name = "lists",
                                          .holds = "lines of 'user item item ...'",
                                          .forms = 1u << DP_FORM_PAIRS | 1u << DP_FORM_TRIPLES,
                                          .negatives_apart = true,
                                          .decodes_slowly = true,
                                          .holds_out = true,
                                          .begins = begins_lists,
                                          .load = load_lists,
                                          .names = names,
                                          .interactions = interactions,
                                          .left_out = left_out,
                                          .own = own,
                                          .examples = examples,
                                          .shape = dp_format_pairs_shape,
                                          .fill = fill};
