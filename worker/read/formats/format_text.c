/* Text: its bytes as windows of tokens, with the next byte as the class; or its words, each with the words
 * near it and with sampled words (Mikolov et al. 2013). The words (tokenizer.h) are those that are not seldom.
 * A line is a sentence, as in word2vec: only words of one line are near each other.
 *     stays    frequent words are dropped at random, and are then as if they were not in the text
 *     near     the words up to b away, b drawn from 1 .. window for each word, so that closer ones count more
 *     sampled  `negatives` for each near word, by the count of a word to the power 0.75; none that is near
 * All are drawn by (seed, epoch, place), so that a minibatch needs none before it. */
#include "worker/read/format.h"

#include "common/base/search.h"
#include "common/base/text.h"
#include "common/model/mix.h"
#include "worker/read/batch_fill.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define WINDOW_MAX  1000
#define SCAN        32 /* words that are looked at for each near one: of others nearly all are dropped */
#define GUIDE_BITS  16
#define GUIDE       (UINT64_C(1) << GUIDE_BITS)
#define CHANCE_UNIT 1048576.0           /* stands for 1 in the cumulative weights */
#define FIRST       0x80000000u         /* flag of a code: the word is the first of its line */
#define FIRST_KEY   (UINT64_C(1) << 63) /* the same of a key, which has 63 bits */

/* facts: different words that are kept, and all; words of the text; how often the most frequent one occurs */
enum { WORDS, FOUND, READ, MOST };

/* content, windows:  pixels  the bytes
 * content, words:    keys    mixed hashes of the distinct words, ascending by hash
 *                    codes   for each word of the text its number among those, with FIRST; then draws' guide
 *                    offsets cumulative weights: word w has offsets[w] .. offsets[w + 1]
 *                    values  the chance that each word stays */

static enum dp_status load_bytes(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                                 struct dp_content *out, struct dp_error *err)
{
    struct dp_unpack_bytes bytes = {0};
    uint64_t fields = options->fields;
    enum dp_status st = dp_unpack_read(unpack, UINT64_MAX, &bytes, err);
    out->pixels = bytes.at;
    for (uint64_t i = 0; st == DP_OK && i < bytes.len; i++)
        if (bytes.at[i] >= options->classes)
            st = dp_fail(err, DP_DATA,
                         "%s: byte %" PRIu64 " is %u, but the model has %" PRIu32
                         " classes: add classes=256 to it",
                         options->path, i, bytes.at[i], options->classes);
    if (st == DP_OK && bytes.len <= fields)
        st =
            dp_fail(err, DP_DATA, "%s: has %" PRIu64 " bytes: expected more than the %" PRIu64 " of a window",
                    options->path, bytes.len, fields);
    if (st != DP_OK)
        return st;
    out->pixels_len = bytes.len;
    out->examples = bytes.len - fields;
    out->digest = dp_content_digest_bytes(out->digest, out->pixels, bytes.len);
    return DP_OK;
}

/* ---- words */

/* Words one after the other, and what is done with each. */
struct words {
    enum dp_status (*take)(struct words *words, uint64_t key, struct dp_error *err);
    struct dp_tokenizer tokenizer;
    struct dp_content *content;
    uint64_t *hashes, count, max;   /* while the file is loaded: the words' keys */
    const struct dp_content *named; /* while its words are named: the content, */
    struct dp_name_set *set;
    uint64_t *counts; /* [distinct]: and how often each occurs */
};

static enum dp_status read_words(struct words *w, struct dp_unpack *unpack, struct dp_error *err)
{
    struct dp_tokenizer *t = &w->tokenizer;
    const unsigned char *bytes;
    size_t len = 1;
    bool word = false;
    enum dp_status st = DP_OK;
    dp_unpack_check_text(unpack);
    while (st == DP_OK && len > 0) {
        st = dp_unpack_next(unpack, &bytes, &len, err);
        for (size_t at = 0; st == DP_OK && at < len;) {
            at += dp_tokenizer_next(t, bytes + at, len - at, &word);
            st = word ? w->take(w, dp_mix(t->hash) >> 1, err) : DP_OK;
        }
    }
    return st == DP_OK && dp_tokenizer_end(t) ? w->take(w, dp_mix(t->hash) >> 1, err) : st;
}

static enum dp_status add_word(struct words *w, uint64_t key, struct dp_error *err)
{
    if (w->count == w->max) {
        uint64_t max = w->max * 2 + 4096;
        enum dp_status st = DP_CONTENT_GROW(w->hashes, max, err);
        if (st != DP_OK)
            return st;
        w->max = max;
    }
    key |= w->tokenizer.first ? FIRST_KEY : 0;
    w->content->digest = dp_content_digest(w->content->digest, key);
    w->hashes[w->count++] = key;
    return DP_OK;
}

/* Sorts the distinct words that occur often enough to content->keys. */
static void select_words(struct words *w, uint32_t min_count)
{
    struct dp_content *content = w->content;
    uint64_t kept = 0, i = 0;
    for (uint64_t k = 0; k < w->count; k++)
        content->keys[k] = w->hashes[k] & ~FIRST_KEY;
    qsort(content->keys, (size_t)w->count, sizeof *content->keys, dp_compare_u64);
    while (i < w->count) {
        uint64_t key = content->keys[i], first = i;
        while (i < w->count && content->keys[i] == key)
            i++;
        content->facts[FOUND]++;
        if (i - first >= min_count)
            content->keys[kept++] = key;
        if (i - first > content->facts[MOST])
            content->facts[MOST] = i - first;
    }
    content->facts[WORDS] = content->keys_len = kept;
}

static enum dp_status number_words(struct words *w, uint32_t min_count, struct dp_error *err)
{
    struct dp_content *content = w->content;
    uint32_t first = 0;
    enum dp_status st = DP_CONTENT_GROW(content->keys, w->count, err);
    if (st == DP_OK)
        st = DP_CONTENT_GROW(content->codes, w->count, err);
    if (st != DP_OK)
        return st;
    select_words(w, min_count);
    for (uint64_t i = 0; i < w->count; i++) {
        uint64_t key = w->hashes[i] & ~FIRST_KEY;
        const uint64_t *found =
            bsearch(&key, content->keys, (size_t)content->keys_len, sizeof key, dp_compare_u64);
        if (w->hashes[i] & FIRST_KEY)
            first = FIRST;
        if (!found)
            continue;
        content->codes[content->codes_len++] = (uint32_t)(found - content->keys) | first;
        first = 0;
    }
    content->facts[READ] = w->count;
    if (content->keys_len == 0)
        return DP_OK;
    st = DP_CONTENT_GROW(content->codes, content->codes_len, err);
    return st == DP_OK ? DP_CONTENT_GROW(content->keys, content->keys_len, err) : st;
}

/* A 64-bit number as a share of all weights. */
static uint64_t share_of(const struct dp_content *content, uint64_t number)
{
    return (uint64_t)((unsigned __int128)number * content->offsets[content->facts[WORDS]] >> 64);
}

static uint32_t word_at(const struct dp_content *content, uint64_t at)
{
    return content->codes[at] & ~FIRST;
}

/* The chance that each word stays in an epoch (Mikolov et al. 2013, as word2vec computes it). */
static enum dp_status find_stays(const struct dp_dataset_options *options, struct dp_content *content,
                                 const uint64_t *counts, struct dp_error *err)
{
    uint64_t words = content->facts[WORDS];
    enum dp_status st = DP_CONTENT_GROW(content->values, words, err);
    for (uint64_t i = 0; st == DP_OK && i < words; i++) {
        double often = options->subsample > 0
                           ? (double)counts[i] / ((double)content->codes_len * options->subsample)
                           : 0;
        content->values[i] = often > 0 ? (float)((sqrt(often) + 1) / often) : 1.0f;
    }
    content->values_len = st == DP_OK ? words : 0;
    return st;
}

/* count^0.75 by square roots, which every machine rounds in the same way. */
static enum dp_status sum_chances(const struct dp_dataset_options *options, struct dp_content *content,
                                  struct dp_error *err)
{
    uint64_t words = content->facts[WORDS], sum = 0;
    enum dp_status st = DP_CONTENT_GROW(content->offsets, words + 1, err);
    if (st != DP_OK)
        return st;
    memset(content->offsets, 0, (words + 1) * sizeof *content->offsets);
    for (uint64_t i = 0; i < content->codes_len; i++)
        content->offsets[word_at(content, i)]++;
    st = find_stays(options, content, content->offsets, err);
    for (uint64_t i = 0; i <= words; i++) {
        double root = sqrt((double)content->offsets[i]);
        content->offsets[i] = sum;
        sum += (uint64_t)(root * sqrt(root) * CHANCE_UNIT);
    }
    content->offsets_len = words + 1;
    return st;
}

/* Where a draw begins to look for its word: at the start of each of so many equal parts of all weights. */
static enum dp_status add_guide(struct dp_content *content, struct dp_error *err)
{
    uint32_t word = 0, *guide = NULL;
    enum dp_status st = DP_CONTENT_GROW(content->codes, content->examples + GUIDE, err);
    if (st != DP_OK)
        return st;
    guide = content->codes + content->examples;
    for (uint64_t g = 0; g < GUIDE; g++) {
        while (content->offsets[word + 1] <= share_of(content, g << (64 - GUIDE_BITS)))
            word++;
        guide[g] = word;
    }
    content->codes_len = content->examples + GUIDE;
    return DP_OK;
}

static enum dp_status too_few(const struct dp_dataset_options *options, const struct dp_content *content,
                              struct dp_error *err)
{
    const uint64_t *facts = content->facts;
    if (facts[FOUND] < 2)
        return dp_fail(err, DP_DATA, "%s: has %" PRIu64 " different words: expected 2 at least",
                       options->path, facts[FOUND]);
    return dp_fail(err, DP_DATA,
                   "%s: of its %" PRIu64 " different words %" PRIu64 " occur at least %" PRIu32
                   " times (the most frequent one %" PRIu64
                   " times): give a smaller --min-count (data.min_count), or a larger text",
                   options->path, facts[FOUND], facts[WORDS], options->min_count, facts[MOST]);
}

static bool has_near(const struct dp_content *content)
{
    uint64_t at = 0;
    while (at < content->codes_len && (content->codes[at] & FIRST))
        at++;
    return at < content->codes_len;
}

static enum dp_status load_words(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                                 struct dp_content *out, struct dp_error *err)
{
    struct words w = {.take = add_word, .tokenizer = {.kind = options->word_rule}, .content = out};
    enum dp_status st = read_words(&w, unpack, err);
    if (st == DP_OK && w.count > FIRST)
        st = dp_fail(err, DP_DATA, "%s: has over 2^31 words", options->path);
    if (st == DP_OK && w.count > 0)
        st = number_words(&w, options->min_count, err);
    if (st == DP_OK && out->facts[WORDS] < 2)
        st = too_few(options, out, err);
    if (st == DP_OK && !has_near(out))
        st = dp_fail(err, DP_DATA,
                     "%s: no line has two of its words, and only words of one line are near each other: join "
                     "its lines",
                     options->path);
    if (st == DP_OK)
        st = sum_chances(options, out, err);
    out->examples = out->codes_len;
    if (st == DP_OK)
        st = add_guide(out, err);
    for (uint64_t i = 0; st == DP_OK && i < out->keys_len; i++)
        out->keys[i] = dp_mix(out->keys[i]);
    free(w.hashes);
    return st;
}

/* "words: 7,120 that occur at least 5 times, of 24,001 different ones: 702,113 of 792,681 in the text" */
static void understood(const struct dp_dataset_options *options, const struct dp_content *content,
                       const struct dp_schema *schema, struct dp_understood *out)
{
    (void)schema;
    char number[4][32];
    const uint64_t of[4] = {content->facts[WORDS], content->facts[FOUND], content->examples,
                            content->facts[READ]};
    if (options->form != DP_FORM_WORDS)
        return;
    for (int i = 0; i < 4; i++)
        (void)dp_text_grouped(of[i], number[i]);
    char *line = out->line[out->lines++];
    if (of[0] == of[1])
        (void)snprintf(line, sizeof out->line[0], "words: %s different ones, %s in the text", number[0],
                       number[2]);
    else
        (void)snprintf(line, sizeof out->line[0],
                       "words: %s that occur at least %" PRIu32
                       " times, of %s different ones: %s of %s in the text",
                       number[0], options->min_count, number[1], number[2], number[3]);
}

/* ---- names */

static int by_unmixed(const void *a, const void *b)
{
    uint64_t x = *(const uint64_t *)a, y = dp_unmix(*(const uint64_t *)b);
    return (x > y) - (x < y);
}

static enum dp_status name_word(struct words *w, uint64_t key, struct dp_error *err)
{
    if (dp_name_set_find(w->set, DP_VOCAB_EVERY_GROUP, key))
        return DP_OK;
    const uint64_t *found =
        bsearch(&key, w->named->keys, (size_t)w->named->facts[WORDS], sizeof key, by_unmixed);
    if (!found && w->named->facts[WORDS] < w->named->facts[FOUND]) /* it occurs too seldom */
        return DP_OK;
    if (!found)
        return dp_fail(err, DP_DATA, "changed while it was read");
    const struct dp_vocab_name name = {
        .group = DP_VOCAB_EVERY_GROUP, .key = key, .text = w->tokenizer.text, .len = w->tokenizer.len};
    enum dp_status st =
        dp_name_set_add(w->set, &name, key, UINT64_MAX - w->counts[found - w->named->keys], err);
    return st == DP_OK && w->set->cut ? dp_fail(err, DP_STOPPING, "enough") : st;
}

/* The most frequent words first. */
static enum dp_status names(const struct dp_dataset_options *options, const struct dp_content *content,
                            struct dp_name_set *set, struct dp_error *err)
{
    struct words w = {
        .take = name_word, .tokenizer = {.kind = options->word_rule}, .named = content, .set = set};
    struct dp_unpack *unpack = NULL;
    if (options->form != DP_FORM_WORDS)
        return DP_OK;
    w.counts = calloc(content->facts[WORDS], sizeof *w.counts);
    if (!w.counts)
        return dp_fail(err, DP_NOMEM, "%s: no memory for its words", options->path);
    for (uint64_t i = 0; i < content->examples; i++)
        w.counts[word_at(content, i)]++;
    enum dp_status st = dp_unpack_open_text(options->path, options->encoding, &unpack, err);
    if (st == DP_OK)
        st = read_words(&w, unpack, err);
    dp_unpack_close(&unpack);
    free(w.counts);
    return st == DP_OK || st == DP_STOPPING ? DP_OK : dp_wrap(err, st, "%s", options->path);
}

static enum dp_status load(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                           struct dp_content *out, struct dp_error *err)
{
    if (options->form == DP_FORM_WINDOWS)
        return load_bytes(options, unpack, out, err);
    if (options->window == 0 || options->window > WINDOW_MAX)
        return dp_fail(err, DP_ARGUMENT, "%s: a window of %" PRIu32 " words: expected 1 to %d", options->path,
                       options->window, WINDOW_MAX);
    return load_words(options, unpack, out, err);
}

/* ---- minibatches */

/* An epoch has one example for each word of the text: labels of bytes are drawn from the content. */
static uint64_t examples(const struct dp_dataset_options *options, const struct dp_content *content)
{
    (void)options;
    return content->examples;
}

static enum dp_status shape(const struct dp_dataset_options *options, const struct dp_content *content,
                            uint32_t take, struct dp_batch_shape *out, struct dp_error *err)
{
    (void)content;
    if (options->form == DP_FORM_WORDS) {
        uint64_t others = take * 2 * (uint64_t)options->window * (1 + (uint64_t)options->negatives);
        if (others > UINT32_MAX)
            return dp_fail(err, DP_ARGUMENT,
                           "a minibatch of %" PRIu32 " words with %" PRIu32 " near words each, and %" PRIu32
                           " sampled ones for each of these, is too large",
                           take, 2 * options->window, options->negatives);
        out->groups = out->lists = 2;
        out->list[0] = (struct dp_list_shape){.group = 0, .entries = take};
        out->list[1] = (struct dp_list_shape){.group = 1, .entries = (uint32_t)others};
        return DP_OK;
    }
    if ((uint64_t)take * options->fields > UINT32_MAX)
        return dp_fail(err, DP_ARGUMENT,
                       "a minibatch of %" PRIu32 " windows of %" PRIu32 " tokens is too large", take,
                       options->fields);
    out->groups = out->lists = 1;
    out->list[0] = (struct dp_list_shape){.entries = take * options->fields, .each = options->fields};
    return DP_OK;
}

static void fill_windows(const struct dp_format_fill *what, struct dp_batch *batch)
{
    uint64_t key[256];
    uint32_t fields = what->options->fields;
    for (uint64_t i = 0; i < 256; i++)
        key[i] = dp_mix(i);
    dp_batch_fill_group(batch, 0);
    dp_batch_fill_list(batch, 0);
    for (uint32_t i = 0; i < what->examples; i++) {
        const uint8_t *window = what->content->pixels + what->order[i];
        for (uint32_t t = 0; t < fields; t++)
            dp_batch_fill_entries(batch, &key[window[t]], NULL, 1);
        dp_batch_fill_example(batch);
        batch->labels[i] = window[fields];
    }
    dp_batch_fill_group_end(batch);
}

/* Draws a word by its weight. */
static uint32_t draw(const struct dp_content *content, uint64_t random)
{
    uint64_t at = share_of(content, random);
    uint32_t word = content->codes[content->examples + (random >> (64 - GUIDE_BITS))];
    while (content->offsets[word + 1] <= at)
        word++;
    return word;
}

static uint64_t state_of(const struct dp_format_fill *what)
{
    const uint64_t sampling = 0x776f726473u; /* so that order and draws have nothing in common */
    return dp_mix(dp_mix(what->options->seed ^ sampling) + ((uint64_t)what->epoch + 1) * DP_HASH_GOLDEN);
}

/* What is drawn for the word at a place: one number for whether it stays, its window and its samples. */
static uint64_t drawn_at(uint64_t state, uint64_t at)
{
    return dp_mix(state + (at + 1) * DP_HASH_GOLDEN);
}

static bool stays(const struct dp_content *content, uint64_t drawn, uint32_t word)
{
    return (float)(drawn >> 40) * 0x1p-24f < content->values[word];
}

/* The words of the line next to the one at `at` that stay, up to `most` on each side, in the order of the
 * text. */
static uint32_t find_near(const struct dp_content *content, uint64_t state, uint64_t at, uint32_t most,
                          uint64_t *near)
{
    uint64_t first = at, scan = (uint64_t)most * SCAN;
    uint32_t count = 0, left = 0;
    while (left < most && !(content->codes[first] & FIRST) && at - first < scan) {
        first--;
        left += stays(content, drawn_at(state, first), word_at(content, first));
    }
    for (uint64_t i = first; i < at; i++)
        if (stays(content, drawn_at(state, i), word_at(content, i)))
            near[count++] = content->keys[word_at(content, i)];
    for (uint64_t i = at + 1;
         i < content->examples && !(content->codes[i] & FIRST) && i - at <= scan && count < left + most; i++)
        if (stays(content, drawn_at(state, i), word_at(content, i)))
            near[count++] = content->keys[word_at(content, i)];
    return count;
}

static bool is_among(uint64_t key, const uint64_t *keys, uint32_t count)
{
    uint32_t i = 0;
    while (i < count && keys[i] != key)
        i++;
    return i < count;
}

/* A word's near words, and `negatives` sampled ones for each. With fewer that count as often, the rows of
 * seldom words are noise: nearest words then agree less with a long training's. */
static void fill_near(const struct dp_format_fill *what, uint64_t state, uint64_t at, struct dp_batch *batch)
{
    const struct dp_content *content = what->content;
    uint64_t near[2 * WINDOW_MAX], drawn = drawn_at(state, at);
    uint32_t window = what->options->window, negatives = what->options->negatives;
    uint32_t count = find_near(content, state, at, 1 + (uint32_t)drawn % window, near);
    float each = 1.0f / ((float)(window + 1) * (float)(negatives + 1)), sampled = -each;
    for (uint32_t i = 0; i < count; i++)
        dp_batch_fill_entries(batch, &near[i], &each, 1);
    for (uint32_t k = 1; k <= count * negatives; k++) {
        uint64_t key = content->keys[draw(content, dp_mix(drawn + k * DP_HASH_GOLDEN))];
        if (!is_among(key, near, count))
            dp_batch_fill_entries(batch, &key, &sampled, 1);
    }
}

static void fill_words(const struct dp_format_fill *what, struct dp_batch *batch)
{
    const struct dp_content *content = what->content;
    uint64_t state = state_of(what);
    for (uint32_t side = 0; side < 2; side++) {
        dp_batch_fill_group(batch, side);
        dp_batch_fill_list(batch, side);
        for (uint32_t i = 0; i < what->examples; i++) {
            uint64_t at = what->order[i];
            uint32_t word = word_at(content, at);
            bool in = stays(content, drawn_at(state, at), word);
            if (in && side == 0)
                dp_batch_fill_entries(batch, &content->keys[word], NULL, 1);
            else if (in)
                fill_near(what, state, at, batch);
            dp_batch_fill_example(batch);
            batch->labels[i] = 0;
        }
        dp_batch_fill_group_end(batch);
    }
}

static void fill(const struct dp_format_fill *what, struct dp_batch *batch)
{
    if (what->options->form == DP_FORM_WORDS)
        fill_words(what, batch);
    else
        fill_windows(what, batch);
}

const struct dp_format dp_format_text = {.name = "text",
                                         .holds = "any text",
                                         .forms = 1u << DP_FORM_WORDS | 1u << DP_FORM_WINDOWS,
                                         .decodes_slowly = true,
                                         .load = load,
                                         .names = names,
                                         .understood = understood,
                                         .examples = examples,
                                         .shape = shape,
                                         .fill = fill};
