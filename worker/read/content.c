#include "worker/read/content.h"

#include "common/base/bytes.h"
#include "common/model/mix.h"
#include "worker/read/idx.h"
#include "worker/read/labels.h"
#include "worker/read/libsvm.h"
#include "worker/read/unpack.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define GOLDEN 0x9e3779b97f4a7c15u

static uint64_t digest_add(uint64_t digest, uint64_t word)
{
    return dp_mix((digest + GOLDEN) ^ word);
}

static uint64_t bits_of(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* --- text ------------------------------------------------------------------------------------------ */

struct builder {
    const struct dp_dataset_options *options;
    struct dp_label_rule rule;
    struct dp_content *content;
    uint64_t entries, entries_max, examples_max;
};

static enum dp_status grow(void **array, uint64_t count, size_t each, struct dp_error *err)
{
    void *grown = count <= SIZE_MAX / each ? realloc(*array, count * each) : NULL;
    if (!grown)
        return dp_fail(err, DP_NOMEM,
                       "no memory for %" PRIu64 " decoded numbers: the data set must fit in memory", count);
    *array = grown;
    return DP_OK;
}

static enum dp_status grow_u64(uint64_t **array, uint64_t count, struct dp_error *err)
{
    void *block = *array;
    enum dp_status st = grow(&block, count, sizeof **array, err);
    *array = block;
    return st;
}

static enum dp_status grow_f32(float **array, uint64_t count, struct dp_error *err)
{
    void *block = *array;
    enum dp_status st = grow(&block, count, sizeof **array, err);
    *array = block;
    return st;
}

static enum dp_status resize_entries(struct builder *b, uint64_t max, struct dp_error *err)
{
    enum dp_status st = grow_u64(&b->content->keys, max, err);
    if (st == DP_OK)
        st = grow_f32(&b->content->values, max, err);
    if (st == DP_OK)
        b->entries_max = max;
    return st;
}

static enum dp_status resize_examples(struct builder *b, uint64_t max, struct dp_error *err)
{
    enum dp_status st = grow_u64(&b->content->offsets, max + 1, err);
    if (st == DP_OK)
        st = grow_f32(&b->content->labels, max, err);
    if (st == DP_OK)
        b->examples_max = max;
    return st;
}

static enum dp_status make_room(struct builder *b, size_t entries, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    if (b->content->examples == b->examples_max)
        st = resize_examples(b, b->examples_max * 2 + 1024, err);
    if (st == DP_OK && entries > b->entries_max - b->entries)
        st = resize_entries(b, (b->entries_max + entries) * 2 + 1024, err);
    return st;
}

static enum dp_status scale_values(const struct builder *b, const struct dp_libsvm_example *example,
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

static enum dp_status place_keys(const struct builder *b, const struct dp_libsvm_example *example,
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
    struct builder *b = self;
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
    uint64_t digest = digest_add(content->digest, bits_of(example->label) << 32 ^ example->entries);
    for (size_t i = 0; i < example->entries; i++)
        digest = digest_add(digest, dp_mix(example->indices[i]) + bits_of(example->values[i]) * GOLDEN);
    content->digest = digest;
    content->offsets[content->examples++] = b->entries;
    b->entries += example->entries;
    content->offsets[content->examples] = b->entries;
    return DP_OK;
}

static enum dp_status load_text(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                                struct dp_content *out, struct dp_error *err)
{
    struct builder b = {
        .options = options, .rule = {options->labels, options->classes, false, false}, .content = out};
    struct dp_libsvm *libsvm = NULL;
    const unsigned char *bytes;
    size_t len = 1;
    enum dp_status st = dp_libsvm_new(options->path, (struct dp_libsvm_sink){add_example, &b}, &libsvm, err);
    while (st == DP_OK && len > 0) {
        st = dp_unpack_next(unpack, &bytes, &len, err);
        if (st == DP_OK)
            st = len > 0 ? dp_libsvm_feed(libsvm, bytes, len, err) : dp_libsvm_finish(libsvm, err);
    }
    if (st == DP_OK && out->examples == 0)
        st = dp_fail(err, DP_DATA, "%s: holds no examples: expected lines of 'label index:value ...'",
                     options->path);
    /* What doubling took too much goes back; an example may have no entries, so ask for one at least. */
    if (st == DP_OK)
        st = resize_entries(&b, b.entries + 1, err);
    if (st == DP_OK)
        st = resize_examples(&b, out->examples, err);
    dp_libsvm_free(&libsvm);
    return st;
}

/* --- idx ------------------------------------------------------------------------------------------- */

static enum dp_status labels_path(const struct dp_dataset_options *options, char **out, struct dp_error *err)
{
    static const char images[] = "images-idx3", labels[] = "labels-idx1";
    const char *found = NULL;
    *out = strdup(options->labels_path ? options->labels_path : options->path);
    if (!*out)
        return dp_fail(err, DP_NOMEM, "%s: no memory for the name of its labels", options->path);
    if (options->labels_path)
        return DP_OK;
    for (const char *at = *out; (at = strstr(at, images)); at++)
        found = at;
    if (!found)
        return dp_fail(err, DP_ARGUMENT,
                       "%s: is an idx file of images: name its file of labels too (without '%s' in the name "
                       "it cannot be guessed)",
                       options->path, images);
    memcpy(*out + (found - *out), labels, sizeof labels - 1);
    return DP_OK;
}

static enum dp_status map_labels(const struct dp_dataset_options *options, const char *path,
                                 const uint8_t *bytes, struct dp_content *out, struct dp_error *err)
{
    struct dp_label_rule rule = {options->labels, options->classes, false, false};
    enum dp_status st = grow_f32(&out->labels, out->examples, err);
    for (uint64_t i = 0; i < out->examples && st == DP_OK; i++) {
        st = dp_label_map(&rule, (float)bytes[i], &out->labels[i], err);
        if (st != DP_OK)
            st = dp_wrap(err, st, "%s: byte %" PRIu64, path, i + DP_IDX_LABELS_HEADER);
    }
    return st;
}

static uint64_t digest_bytes(uint64_t digest, const uint8_t *bytes, uint64_t len)
{
    uint64_t i = 0;
    for (; i + 8 <= len; i += 8)
        digest = digest_add(digest, dp_load_u64le(bytes + i));
    for (; i < len; i++)
        digest = digest_add(digest, bytes[i]);
    return digest;
}

static enum dp_status load_labels(const struct dp_dataset_options *options, struct dp_content *out,
                                  struct dp_error *err)
{
    char *path = NULL;
    uint8_t *bytes = NULL;
    struct dp_unpack *unpack = NULL;
    enum dp_status st = labels_path(options, &path, err);
    if (st == DP_OK)
        st = dp_unpack_open(path, &unpack, err);
    if (st == DP_OK)
        st = dp_idx_read_labels(unpack, (uint32_t)out->examples, &bytes, err);
    if (st == DP_OK)
        st = map_labels(options, path, bytes, out, err);
    if (st == DP_OK)
        out->digest = digest_bytes(out->digest, bytes, out->examples);
    dp_unpack_close(&unpack);
    free(bytes);
    free(path);
    return st;
}

static enum dp_status load_idx(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                               struct dp_content *out, struct dp_error *err)
{
    struct dp_idx_images images = {0};
    if (options->form != DP_FORM_DENSE)
        return dp_fail(err, DP_ARGUMENT,
                       "%s: idx images are dense, but the model takes sparse keys: choose a model of dense "
                       "columns or convert the file to libsvm",
                       options->path);
    if (!isfinite((float)(255 * options->scale)))
        return dp_fail(err, DP_ARGUMENT, "%s: scale %g makes bright pixels infinite", options->path,
                       options->scale);
    enum dp_status st = dp_idx_read_images(unpack, &images, err);
    out->pixels = images.pixels;
    out->examples = images.count;
    if (st != DP_OK)
        return st;
    if ((uint64_t)images.rows * images.columns != options->width)
        return dp_fail(err, DP_DATA,
                       "%s: byte 8: images are %" PRIu32 " x %" PRIu32 ", but the model takes %" PRIu32
                       " columns",
                       options->path, images.rows, images.columns, options->width);
    out->digest =
        digest_add(digest_add(out->digest, images.count), (uint64_t)images.rows << 32 | images.columns);
    out->digest = digest_bytes(out->digest, images.pixels, out->examples * options->width);
    return load_labels(options, out, err);
}

/* --------------------------------------------------------------------------------------------------- */

enum dp_status dp_content_load(const struct dp_dataset_options *options, struct dp_content *out,
                               struct dp_error *err)
{
    struct dp_unpack *unpack = NULL;
    const unsigned char *bytes = NULL;
    size_t len = 0;
    *out = (struct dp_content){0};
    enum dp_status st = dp_unpack_open(options->path, &unpack, err);
    if (st == DP_OK)
        st = dp_unpack_peek(unpack, &bytes, &len, err);
    if (st != DP_OK)
        goto done;
    if (len == 0)
        st = dp_fail(err, DP_DATA, "%s: is empty: expected lines of 'label index:value ...' or idx images",
                     options->path);
    else if (bytes[0] == 0) /* the magic number of idx starts with two zero bytes; no text has one */
        st = load_idx(options, unpack, out, err);
    else if (options->labels_path)
        st = dp_fail(err, DP_ARGUMENT,
                     "%s: is no idx file, its labels are in it: leave out the file of labels '%s'",
                     options->path, options->labels_path);
    else
        st = load_text(options, unpack, out, err);
done:
    dp_unpack_close(&unpack);
    if (st != DP_OK)
        dp_content_clear(out);
    return st;
}

void dp_content_clear(struct dp_content *content)
{
    free(content->labels);
    free(content->offsets);
    free(content->keys);
    free(content->values);
    free(content->pixels);
    *content = (struct dp_content){0};
}
