/* MNIST's idx files (LeCun, Cortes, Burges): images (idx3, bytes), and their labels (idx1, bytes) in a
 * second file, which images to be scored do not need. Magic number, counts and sizes are checked to the
 * byte. */
#include "worker/read/format.h"

#include "common/base/bytes.h"
#include "worker/read/labels.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MAGIC_IMAGES  0x00000803u /* unsigned bytes, 3 dimensions */
#define MAGIC_LABELS  0x00000801u /* unsigned bytes, 1 dimension */
#define IMAGES_HEADER 16u
#define LABELS_HEADER 8u

static enum dp_status ends_early(const struct dp_unpack *unpack, uint64_t len, const char *what,
                                 uint64_t wanted, struct dp_error *err)
{
    return dp_fail(err, DP_DATA, "%s: byte %" PRIu64 ": file ends, expected %s up to byte %" PRIu64,
                   dp_unpack_name(unpack), len, what, wanted);
}

/* The magic number, and the numbers up to byte `size`. */
static enum dp_status read_header(struct dp_unpack *unpack, uint32_t magic, const char *what, uint64_t size,
                                  struct dp_unpack_bytes *bytes, struct dp_error *err)
{
    enum dp_status st = dp_unpack_read(unpack, size, bytes, err);
    if (st == DP_OK && bytes->len >= 4 && dp_load_u32be(bytes->at) != magic)
        return dp_fail(err, DP_DATA, "%s: byte 0: expected the magic number 0x%08x of %s, found 0x%08x",
                       dp_unpack_name(unpack), magic, what, dp_load_u32be(bytes->at));
    return st == DP_OK && bytes->len < size ? ends_early(unpack, bytes->len, "an idx header", size, err) : st;
}

/* The rest of the file: exactly `len` bytes after the header, which is taken out. */
static enum dp_status read_rest(struct dp_unpack *unpack, uint64_t header, uint64_t len, const char *what,
                                struct dp_unpack_bytes *bytes, struct dp_error *err)
{
    uint64_t end = header + len;
    enum dp_status st = dp_unpack_read(unpack, end + 1, bytes, err);
    if (st != DP_OK)
        return st;
    if (bytes->len < end)
        return ends_early(unpack, bytes->len, what, end, err);
    if (bytes->len > end)
        return dp_fail(err, DP_DATA, "%s: byte %" PRIu64 ": expected the end of the file after the %s",
                       dp_unpack_name(unpack), end, what);
    memmove(bytes->at, bytes->at + header, len);
    void *less = realloc(bytes->at, len);
    bytes->at = less ? less : bytes->at;
    return DP_OK;
}

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
    enum dp_status st = DP_CONTENT_GROW(out->labels, out->examples, err);
    for (uint64_t i = 0; i < out->examples && st == DP_OK; i++) {
        st = dp_label_map(&rule, (float)bytes[i], &out->labels[i], err);
        if (st != DP_OK)
            st = dp_wrap(err, st, "%s: byte %" PRIu64, path, i + LABELS_HEADER);
    }
    if (st != DP_OK)
        return st;
    st = dp_label_settle(&rule, out->labels, out->examples, &out->label_base, err);
    return st == DP_OK ? st : dp_wrap(err, st, "%s", path);
}

static enum dp_status read_labels(struct dp_unpack *unpack, uint64_t count, struct dp_unpack_bytes *bytes,
                                  struct dp_error *err)
{
    enum dp_status st = read_header(unpack, MAGIC_LABELS, "idx1 labels of bytes", LABELS_HEADER, bytes, err);
    uint32_t found = st == DP_OK ? dp_load_u32be(bytes->at + 4) : 0;
    if (st == DP_OK && found != count)
        return dp_fail(err, DP_DATA, "%s: byte 4: expected %" PRIu64 " labels, one an image, found %" PRIu32,
                       dp_unpack_name(unpack), count, found);
    return st == DP_OK ? read_rest(unpack, LABELS_HEADER, count, "labels", bytes, err) : st;
}

static enum dp_status load_labels(const struct dp_dataset_options *options, struct dp_content *out,
                                  struct dp_error *err)
{
    char *path = NULL;
    struct dp_unpack_bytes bytes = {0};
    struct dp_unpack *unpack = NULL;
    enum dp_status st = labels_path(options, &path, err);
    if (st == DP_OK)
        st = dp_unpack_open(path, &unpack, err);
    if (st == DP_OK)
        st = read_labels(unpack, out->examples, &bytes, err);
    if (st == DP_OK)
        st = map_labels(options, path, bytes.at, out, err);
    if (st == DP_OK)
        out->digest = dp_content_digest_bytes(out->digest, bytes.at, out->examples);
    dp_unpack_close(&unpack);
    free(bytes.at);
    free(path);
    return st;
}

/* The images become the content's. */
static enum dp_status read_images(struct dp_unpack *unpack, uint32_t width, struct dp_content *out,
                                  struct dp_error *err)
{
    struct dp_unpack_bytes bytes = {0};
    enum dp_status st = read_header(unpack, MAGIC_IMAGES, "idx3 images of bytes", IMAGES_HEADER, &bytes, err);
    uint32_t count = 0, rows = 0, columns = 0;
    if (st == DP_OK) {
        count = dp_load_u32be(bytes.at + 4);
        rows = dp_load_u32be(bytes.at + 8);
        columns = dp_load_u32be(bytes.at + 12);
    }
    if (st == DP_OK && count == 0)
        st =
            dp_fail(err, DP_DATA, "%s: byte 4: expected at least one image, found 0", dp_unpack_name(unpack));
    if (st == DP_OK && (uint64_t)rows * columns != width)
        st = dp_fail(err, DP_DATA,
                     "%s: byte 8: images are %" PRIu32 " x %" PRIu32 ", but the model takes %" PRIu32
                     " columns",
                     dp_unpack_name(unpack), rows, columns, width);
    if (st == DP_OK)
        st = read_rest(unpack, IMAGES_HEADER, (uint64_t)count * width, "images", &bytes, err);
    out->pixels = bytes.at;
    out->examples = count;
    if (st != DP_OK)
        return st;
    out->digest = dp_content_digest(dp_content_digest(out->digest, count), (uint64_t)rows << 32 | columns);
    out->digest = dp_content_digest_bytes(out->digest, out->pixels, out->examples * width);
    return DP_OK;
}

static enum dp_status load(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                           struct dp_content *out, struct dp_error *err)
{
    if (!isfinite((float)(255 * options->scale)))
        return dp_fail(err, DP_ARGUMENT, "%s: scale %g makes bright pixels infinite", options->path,
                       options->scale);
    enum dp_status st = read_images(unpack, options->width, out, err);
    if (st != DP_OK)
        return st;
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
