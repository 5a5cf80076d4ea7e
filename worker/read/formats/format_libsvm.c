/* libsvm and libfm text, as lists of features or as columns. */
#include "worker/read/format.h"

#include "common/model/mix.h"
#include "worker/read/batch_fill.h"
#include "worker/read/labels.h"
#include "worker/read/libsvm.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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
    enum dp_status st = dp_content_grow_u64(&b->content->keys, max, err);
    if (st == DP_OK)
        st = dp_content_grow_f32(&b->content->values, max, err);
    if (st == DP_OK)
        b->entries_max = max;
    return st;
}

static enum dp_status resize_examples(struct libsvm_builder *b, uint64_t max, struct dp_error *err)
{
    enum dp_status st = dp_content_grow_u64(&b->content->offsets, max + 1, err);
    if (st == DP_OK)
        st = dp_content_grow_f32(&b->content->labels, max, err);
    if (st == DP_OK)
        b->examples_max = max;
    return st;
}

static enum dp_status make_room(struct libsvm_builder *b, size_t entries, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    if (b->content->examples == b->examples_max)
        st = resize_examples(b, b->examples_max * 2 + 1024, err);
    /* At least once, so that the arrays are not NULL. */
    if (st == DP_OK && (b->entries_max == 0 || entries > b->entries_max - b->entries))
        st = resize_entries(b, (b->entries_max + entries) * 2 + 1024, err);
    return st;
}

static enum dp_status scale_values(const struct libsvm_builder *b, const struct dp_libsvm_example *example,
                                   float *values, struct dp_error *err)
{
    double squares = 0;
    for (size_t i = 0; i < example->entries; i++) {
        values[i] = (float)((double)example->values[i] * b->options->scale);
        if (!isfinite(values[i]))
            return dp_fail(err, DP_DATA, "value %g of index %" PRIu64 " is infinite after scale %g",
                           (double)example->values[i], example->indices[i], b->options->scale);
        squares += (double)values[i] * (double)values[i];
    }
    if (b->options->normalize && squares > 0) {
        double norm = sqrt(squares);
        for (size_t i = 0; i < example->entries; i++)
            values[i] = (float)((double)values[i] / norm);
    }
    return DP_OK;
}

static enum dp_status place_keys(const struct libsvm_builder *b, const struct dp_libsvm_example *example,
                                 uint64_t *keys, struct dp_error *err)
{
    uint64_t base = b->options->index_base, width = b->options->width;
    for (size_t i = 0; i < example->entries; i++) {
        uint64_t index = example->indices[i];
        if (b->options->form == DP_FORM_SPARSE) {
            keys[i] = dp_mix(index);
            continue;
        }
        if (index < base || index - base >= width)
            return dp_fail(err, DP_DATA,
                           "index %" PRIu64 ": expected %" PRIu64 " to %" PRIu64
                           ", as the model takes %" PRIu64 " columns",
                           index, base, base + width - 1, width);
        keys[i] = index - base;
    }
    return DP_OK;
}

static enum dp_status add_example(void *self, const struct dp_libsvm_example *example, struct dp_error *err)
{
    struct libsvm_builder *b = self;
    struct dp_content *content = b->content;
    enum dp_status st = make_room(b, example->entries, err);
    if (st == DP_OK)
        st = dp_label_map(&b->rule, example->label, &content->labels[content->examples], err);
    if (st == DP_OK)
        st = place_keys(b, example, content->keys + b->entries, err);
    if (st == DP_OK)
        st = scale_values(b, example, content->values + b->entries, err);
    if (st != DP_OK)
        return st;
    uint64_t digest = dp_content_digest(content->digest, bits_of(example->label) << 32 ^ example->entries);
    for (size_t i = 0; i < example->entries; i++)
        digest = dp_content_digest(digest, dp_mix(example->indices[i]) +
                                               bits_of(example->values[i]) * DP_HASH_GOLDEN);
    content->digest = digest;
    content->offsets[content->examples++] = b->entries;
    b->entries += example->entries;
    content->offsets[content->examples] = b->entries;
    return DP_OK;
}

static enum dp_status load(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                           struct dp_content *out, struct dp_error *err)
{
    struct libsvm_builder b = {.options = options, .rule = dp_label_rule_of(options), .content = out};
    struct dp_libsvm *libsvm = NULL;
    const unsigned char *bytes;
    size_t len = 1;
    enum dp_status st =
        dp_libsvm_new(options->path, options->scored, (struct dp_libsvm_sink){add_example, &b}, &libsvm, err);
    while (st == DP_OK && len > 0) {
        st = dp_unpack_next(unpack, &bytes, &len, err);
        if (st == DP_OK)
            st = len > 0 ? dp_libsvm_feed(libsvm, bytes, len, err) : dp_libsvm_finish(libsvm, err);
    }
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
        st = st == DP_OK ? st : dp_wrap(err, st, "%s", options->path);
    }
    out->labels_len = out->examples;
    out->offsets_len = out->examples + 1;
    out->keys_len = out->values_len = b.entries;
    dp_libsvm_free(&libsvm);
    return st;
}

/* ---- minibatches */

static uint64_t entries_of(const struct dp_content *content, uint64_t example)
{
    return content->offsets[example + 1] - content->offsets[example];
}

/* The sum of the `take` largest examples, without sorting: the size of the take-th largest is found by binary
 * search, with a pass over the offsets for each of its bits. */
static uint64_t worst_entries(const struct dp_content *content, uint64_t take)
{
    uint64_t low = 0,
             high = 0; /* at most `take` examples are larger than high; more than `take` than low - 1 */
    for (uint64_t i = 0; i < content->examples; i++)
        if (entries_of(content, i) > high)
            high = entries_of(content, i);
    while (low < high) {
        uint64_t mid = low + (high - low) / 2, larger = 0;
        for (uint64_t i = 0; i < content->examples; i++)
            larger += entries_of(content, i) > mid;
        if (larger <= take)
            high = mid;
        else
            low = mid + 1;
    }
    uint64_t sum = 0, larger = 0;
    for (uint64_t i = 0; i < content->examples; i++)
        if (entries_of(content, i) > low) {
            sum += entries_of(content, i);
            larger++;
        }
    return sum + (take - larger) * low;
}

static enum dp_status shape(const struct dp_dataset_options *options, const struct dp_content *content,
                            uint32_t take, struct dp_batch_shape *out, struct dp_error *err)
{
    if (options->form == DP_FORM_DENSE) {
        out->width = options->width;
        return DP_OK;
    }
    uint64_t entries = worst_entries(content, take);
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
                              (uint32_t)entries_of(content, example));
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
