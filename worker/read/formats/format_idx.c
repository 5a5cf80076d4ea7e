/* MNIST's idx files: images, and their labels in a second file, which images to be scored do not need. */
#include "worker/read/format.h"

#include "worker/read/idx.h"
#include "worker/read/labels.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

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
                       "%s: is an idx file of images: name its labels file too (without '%s' in the name it "
                       "cannot be derived)",
                       options->path, images);
    memcpy(*out + (found - *out), labels, sizeof labels - 1);
    return DP_OK;
}

static enum dp_status map_labels(const struct dp_dataset_options *options, const char *path,
                                 const uint8_t *bytes, struct dp_content *out, struct dp_error *err)
{
    struct dp_label_rule rule = dp_label_rule_of(options);
    enum dp_status st = dp_content_grow_f32(&out->labels, out->examples, err);
    for (uint64_t i = 0; i < out->examples && st == DP_OK; i++) {
        st = dp_label_map(&rule, (float)bytes[i], &out->labels[i], err);
        if (st != DP_OK)
            st = dp_wrap(err, st, "%s: byte %" PRIu64, path, i + DP_IDX_LABELS_HEADER);
    }
    if (st != DP_OK)
        return st;
    st = dp_label_settle(&rule, out->labels, out->examples, &out->label_base, err);
    return st == DP_OK ? st : dp_wrap(err, st, "%s", path);
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
        out->digest = dp_content_digest_bytes(out->digest, bytes, out->examples);
    dp_unpack_close(&unpack);
    free(bytes);
    free(path);
    return st;
}

static enum dp_status load(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                           struct dp_content *out, struct dp_error *err)
{
    struct dp_idx_images images = {0};
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
    out->digest = dp_content_digest(dp_content_digest(out->digest, images.count),
                                    (uint64_t)images.rows << 32 | images.columns);
    out->digest = dp_content_digest_bytes(out->digest, images.pixels, out->examples * options->width);
    if (!options->scored || options->labels_path)
        return load_labels(options, out, err);
    out->labels = calloc(out->examples, sizeof *out->labels);
    return out->labels ? DP_OK : dp_fail(err, DP_NOMEM, "%s: no memory for its labels", options->path);
}

/* ---- minibatches */

static enum dp_status shape(const struct dp_dataset_options *options, const struct dp_content *content,
                            uint32_t take, struct dp_batch_shape *out, struct dp_error *err)
{
    (void)content, (void)take, (void)err;
    out->width = options->width;
    return DP_OK;
}

static void fill_pixels(const struct dp_format_fill *what, uint64_t example, const float *pixel, float *row)
{
    uint32_t width = what->options->width;
    const uint8_t *pixels = what->content->pixels + example * width;
    for (uint32_t i = 0; i < width; i++)
        row[i] = pixel[pixels[i]];
    if (!what->options->normalize)
        return;
    double squares = 0;
    for (uint32_t i = 0; i < width; i++)
        squares += (double)row[i] * (double)row[i];
    double norm = sqrt(squares);
    for (uint32_t i = 0; squares > 0 && i < width; i++)
        row[i] = (float)((double)row[i] / norm);
}

static void fill(const struct dp_format_fill *what, struct dp_batch *batch)
{
    float pixel[256]; /* the value of a byte */
    for (int p = 0; p < 256; p++)
        pixel[p] = (float)(p * what->options->scale);
    for (uint32_t i = 0; i < what->examples; i++) {
        batch->labels[i] = what->content->labels[what->order[i]];
        fill_pixels(what, what->order[i], pixel, batch->dense + (size_t)i * batch->width);
    }
}

const struct dp_format dp_format_idx = {.name = "idx",
                                        .holds = "images as idx3, labels as idx1",
                                        .forms = 1u << DP_FORM_DENSE,
                                        .labels_apart = true,
                                        .scale = 1 / 255.0,
                                        .load = load,
                                        .shape = shape,
                                        .fill = fill};
