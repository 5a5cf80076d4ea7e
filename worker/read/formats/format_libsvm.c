/* libsvm and libfm text, lines "label index:value ... # comment", as lists of features or as columns.
 * Blanks and tabs separate; indices are 0 .. 2^63-1 in any order, none twice in a line; label and values
 * are finite f32. */
#include "worker/read/format.h"

#include "common/base/search.h"
#include "common/model/mix.h"
#include "worker/read/batch_fill.h"
#include "worker/read/labels.h"
#include "worker/read/lines.h"
#include "worker/read/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define CLICK_TABS_MIN 13u /* label and integers of Criteo's logs; the rest may be empty */
#define CLICK_TABS     39u

static uint64_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

struct libsvm_builder {
    const struct dp_dataset_options *options;
    struct dp_label_rule rule;
    struct dp_content *content;
    uint64_t entries, entries_max, examples_max;
};

static enum dp_status resize_entries(struct libsvm_builder *b, uint64_t max, struct dp_error *err)
{
    enum dp_status st = DP_CONTENT_GROW(b->content->keys, max, err);
    if (st == DP_OK)
        st = DP_CONTENT_GROW(b->content->values, max, err);
    if (st == DP_OK)
        b->entries_max = max;
    return st;
}

static enum dp_status resize_examples(struct libsvm_builder *b, uint64_t max, struct dp_error *err)
{
    enum dp_status st = DP_CONTENT_GROW(b->content->offsets, max + 1, err);
    if (st == DP_OK)
        st = DP_CONTENT_GROW(b->content->labels, max, err);
    if (st == DP_OK)
        b->examples_max = max;
    return st;
}

/* ---- a line: "label index:value ... # comment" */

static inline bool is_blank(char c)
{
    return c == ' ' || c == '\t';
}

static inline bool ends_token(const char *at, const char *end)
{
    return at == end || is_blank(*at) || *at == '#';
}

static inline const char *skip_blanks(const char *at, const char *end)
{
    while (at < end && is_blank(*at))
        at++;
    return at;
}

static enum dp_status unexpected(const char *what, const char *at, const char *end, struct dp_error *err)
{
    const char *stop = at;
    while (!ends_token(stop, end))
        stop++;
    return dp_lines_unexpected(what, at, stop, err);
}

static enum dp_status bad_entry(const char *at, const char *end, struct dp_error *err)
{
    uint64_t index;
    if (*at == '-')
        return unexpected("index:value with a non-negative index", at, end, err);
    const char *after = dp_number_index(at, end, &index);
    if (!after && *at >= '0' && *at <= '9')
        return unexpected("an index below 9223372036854775808 (2^63)", at, end, err);
    if (!after || after == end || *after != ':')
        return unexpected("index:value", at, end, err);
    return unexpected(
        "index:value with a finite decimal value in the range of f32, of at most 127 characters", at, end,
        err);
}

/* For a line whose indices do not ascend. */
static enum dp_status check_twice(const uint64_t *indices, uint64_t count, struct dp_error *err)
{
    uint64_t *sorted = malloc(count * sizeof *sorted), twice = 0;
    if (!sorted)
        return dp_fail(err, DP_NOMEM, "no memory for a line this long");
    memcpy(sorted, indices, count * sizeof *sorted);
    qsort(sorted, count, sizeof *sorted, dp_compare_u64);
    for (uint64_t i = 1; i < count && twice == 0; i++)
        twice = sorted[i] == sorted[i - 1] ? i : 0;
    enum dp_status st =
        twice == 0 ? DP_OK
                   : dp_fail(err, DP_DATA,
                             "expected each index once a line, found %" PRIu64 " twice: add up its values",
                             sorted[twice]);
    free(sorted);
    return st;
}

/* Adds the entries of a line to those of the content, as they are written, and counts them. */
static enum dp_status read_entries(struct libsvm_builder *b, const char *at, const char *end, uint64_t *count,
                                   struct dp_error *err)
{
    enum dp_status st = DP_OK;
    bool ascending = true;
    for (*count = 0, at = skip_blanks(at, end); at < end && *at != '#'; at = skip_blanks(at, end)) {
        uint64_t to = b->entries + *count;
        if (to == b->entries_max && (st = resize_entries(b, 2 * to + 1024, err)) != DP_OK)
            return st;
        uint64_t *index = &b->content->keys[to];
        const char *after = dp_number_index(at, end, index);
        if (after && after < end && *after == ':')
            after = dp_number_f32(after + 1, end, &b->content->values[to]);
        else
            after = NULL;
        if (!after || !ends_token(after, end))
            return bad_entry(at, end, err);
        ascending = ascending && (*count == 0 || index[-1] < *index);
        ++*count;
        at = after;
    }
    return ascending ? DP_OK : check_twice(b->content->keys + b->entries, *count, err);
}

/* Applies the settings to the last `count` entries. */
static enum dp_status scale_values(const struct libsvm_builder *b, uint64_t count, struct dp_error *err)
{
    const uint64_t *indices = b->content->keys + b->entries;
    float *values = b->content->values + b->entries;
    double squares = 0;
    for (uint64_t i = 0; i < count; i++) {
        float value = values[i];
        values[i] = (float)((double)value * b->options->scale);
        if (!isfinite(values[i]))
            return dp_fail(err, DP_DATA, "value %g of index %" PRIu64 " is infinite after scale %g",
                           (double)value, indices[i], b->options->scale);
        squares += (double)values[i] * (double)values[i];
    }
    if (b->options->normalize && squares > 0) {
        double norm = sqrt(squares);
        for (uint64_t i = 0; i < count; i++)
            values[i] = (float)((double)values[i] / norm);
    }
    return DP_OK;
}

static enum dp_status place_keys(const struct libsvm_builder *b, uint64_t count, struct dp_error *err)
{
    uint64_t base = b->options->index_base, width = b->options->width, *keys = b->content->keys + b->entries;
    for (uint64_t i = 0; i < count; i++) {
        if (b->options->form == DP_FORM_SPARSE) {
            keys[i] = dp_mix(keys[i]);
            continue;
        }
        if (keys[i] < base || keys[i] - base >= width)
            return dp_fail(err, DP_DATA,
                           "index %" PRIu64 ": expected %" PRIu64 " to %" PRIu64
                           ", as the model takes %" PRIu64 " columns",
                           keys[i], base, base + width - 1, width);
        keys[i] -= base;
    }
    return DP_OK;
}

static void add_digest(const struct libsvm_builder *b, float label, uint64_t count)
{
    const uint64_t *indices = b->content->keys + b->entries;
    const float *values = b->content->values + b->entries;
    uint64_t digest = dp_content_digest(b->content->digest, bits_of(label) << 32 ^ count);
    for (uint64_t i = 0; i < count; i++)
        digest = dp_content_digest(digest, dp_mix(indices[i]) + bits_of(values[i]) * DP_HASH_GOLDEN);
    b->content->digest = digest;
}

/* The message when the first line is a table's: it is of another format, which it misses narrowly. */
static enum dp_status explain_table(const char *at, const char *end, enum dp_status st, struct dp_error *err)
{
    const struct dp_error cause = err ? *err : (struct dp_error){0};
    uint32_t tabs = 0, others = 0;
    for (const char *p = at; p < end; p++) {
        tabs += *p == '\t';
        others += *p == ',' || *p == ';';
    }
    if (memchr(at, ':', (size_t)(end - at)) || tabs + others == 0)
        return st;
    if (tabs > CLICK_TABS_MIN)
        return dp_fail(
            err, st,
            "%s. If this is a log of clicks (Criteo): expected 40 columns, separated by tabs, found %" PRIu32
            "%s",
            cause.text, tabs + 1, tabs < CLICK_TABS ? ": empty fields at the end need their tabs, too" : "");
    return dp_fail(err, st,
                   "%s. If this is a table (CSV): its first line must be its header, and --label NAME "
                   "(data.label) names the column of the label",
                   cause.text);
}

static enum dp_status add_line(void *self, const char *at, const char *end, uint64_t line,
                               struct dp_error *err)
{
    struct libsvm_builder *b = self;
    struct dp_content *content = b->content;
    float label = 0;
    uint64_t count = 0;
    (void)line;
    at = skip_blanks(at, end);
    if (at == end || *at == '#')
        return DP_OK;
    const char *after = dp_number_f32(at, end, &label);
    if (b->options->scored && after && after < end && *after == ':') {
        label = 0;
        after = at;
    } else if (!after || !ends_token(after, end)) {
        enum dp_status bad =
            unexpected("a label (a finite decimal number) at the start of the line", at, end, err);
        return content->examples == 0 ? explain_table(at, end, bad, err) : bad;
    }
    enum dp_status st = read_entries(b, after, end, &count, err);
    if (st == DP_DATA && content->examples == 0)
        st = explain_table(at, end, st, err);
    if (st == DP_OK && content->examples == b->examples_max)
        st = resize_examples(b, b->examples_max * 2 + 1024, err);
    if (st == DP_OK)
        st = dp_label_map(&b->rule, label, &content->labels[content->examples], err);
    if (st != DP_OK)
        return st;
    add_digest(b, label, count);
    st = scale_values(b, count, err);
    if (st == DP_OK)
        st = place_keys(b, count, err);
    content->offsets[content->examples++] = b->entries;
    b->entries += count;
    content->offsets[content->examples] = b->entries;
    return st;
}

static enum dp_status load(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                           struct dp_content *out, struct dp_error *err)
{
    struct libsvm_builder b = {.options = options, .rule = dp_label_rule_of(options), .content = out};
    enum dp_status st = dp_lines_of(unpack, false, (struct dp_lines_sink){add_line, &b}, err);
    if (st == DP_OK && out->examples == 0)
        st = dp_fail(err, DP_DATA, "%s: holds no examples: expected lines of 'label index:value ...'",
                     options->path);
    /* Returns the excess of doubling. At least one element, since examples may have no entries. */
    if (st == DP_OK)
        st = resize_entries(&b, b.entries + 1, err);
    if (st == DP_OK)
        st = resize_examples(&b, out->examples, err);
    if (st == DP_OK) {
        st = dp_label_settle(&b.rule, out->labels, out->examples, &out->label_base, err);
        out->facts[DP_CONTENT_MINUS] = b.rule.has_minus;
        st = st == DP_OK ? st : dp_wrap(err, st, "%s", options->path);
    }
    out->labels_len = out->examples;
    out->offsets_len = out->examples + 1;
    out->keys_len = out->values_len = b.entries;
    return st;
}

/* ---- minibatches */

static uint64_t entries_of(const struct dp_content *content, uint64_t example, uint32_t list)
{
    (void)list;
    return content->offsets[example + 1] - content->offsets[example];
}

static enum dp_status shape(const struct dp_dataset_options *options, const struct dp_content *content,
                            uint32_t take, struct dp_batch_shape *out, struct dp_error *err)
{
    if (options->form == DP_FORM_DENSE) {
        out->width = options->width;
        return DP_OK;
    }
    uint64_t entries = dp_content_worst(content, take, 0, entries_of);
    if (entries > UINT32_MAX)
        return dp_fail(err, DP_ARGUMENT,
                       "a minibatch of %" PRIu32 " examples may have %" PRIu64
                       " entries, over 2^32: make it smaller",
                       options->batch, entries);
    out->groups = out->lists = 1;
    out->list[0] = (struct dp_list_shape){.entries = (uint32_t)entries};
    return DP_OK;
}

static void fill_columns(const struct dp_content *content, uint64_t example, uint32_t width, float *row)
{
    memset(row, 0, width * sizeof *row);
    for (uint64_t i = content->offsets[example]; i < content->offsets[example + 1]; i++)
        row[content->keys[i]] = content->values[i];
}

static void fill_sparse(const struct dp_format_fill *what, struct dp_batch *batch)
{
    const struct dp_content *content = what->content;
    dp_batch_fill_group(batch, 0);
    dp_batch_fill_list(batch, 0);
    for (uint32_t i = 0; i < what->examples; i++) {
        uint64_t example = what->order[i], from = content->offsets[example];
        dp_batch_fill_entries(batch, content->keys + from, content->values + from,
                              (uint32_t)entries_of(content, example, 0));
        dp_batch_fill_example(batch);
    }
    dp_batch_fill_group_end(batch);
}

static void fill(const struct dp_format_fill *what, struct dp_batch *batch)
{
    for (uint32_t i = 0; i < what->examples; i++)
        batch->labels[i] = what->content->labels[what->order[i]];
    if (what->options->form == DP_FORM_SPARSE)
        fill_sparse(what, batch);
    for (uint32_t i = 0; what->options->form == DP_FORM_DENSE && i < what->examples; i++)
        fill_columns(what->content, what->order[i], batch->width, batch->dense + (size_t)i * batch->width);
}

/* A feature's number is its key; a column is numbered from index_base. */
static enum dp_status names(const struct dp_dataset_options *options, const struct dp_content *content,
                            struct dp_name_set *set, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    (void)content;
    for (uint32_t i = 0; st == DP_OK && options->form == DP_FORM_DENSE && i < options->width; i++) {
        char text[24];
        int len = snprintf(text, sizeof text, "%" PRIu64, (uint64_t)options->index_base + i);
        const struct dp_vocab_name name = {DP_VOCAB_COLUMN, i, text, (size_t)len};
        st = dp_name_set_add(set, &name, i, 0, err);
    }
    return st;
}

const struct dp_format dp_format_libsvm = {.name = "libsvm",
                                           .holds = "lines of 'label index:value ...'",
                                           .forms = 1u << DP_FORM_SPARSE | 1u << DP_FORM_DENSE,
                                           .decodes_slowly = true,
                                           .load = load,
                                           .names = names,
                                           .shape = shape,
                                           .fill = fill};
