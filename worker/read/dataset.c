#include "worker/read/dataset.h"

#include "worker/read/batch_fill.h"
#include "worker/read/content.h"
#include "worker/read/order.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Labels are f32 in batches: a class must be a whole number that f32 can hold. */
#define CLASSES_MAX ((uint32_t)1 << 24)

struct dp_dataset {
    struct dp_dataset_options options; /* without the paths */
    struct dp_content content;
    struct dp_batch_shape shape; /* of the worst batch */
    uint64_t batches;
    float pixel[256]; /* idx: the value of a pixel */
};

static enum dp_status check_options(const struct dp_dataset_options *o, struct dp_error *err)
{
    if (!o->path || o->path[0] == '\0')
        return dp_fail(err, DP_ARGUMENT, "no data file named");
    if (o->batch == 0)
        return dp_fail(err, DP_ARGUMENT, "%s: a minibatch of 0 examples: expected at least 1", o->path);
    if (!isfinite(o->scale) || o->scale == 0)
        return dp_fail(err, DP_ARGUMENT, "%s: scale %g: expected a finite number other than 0", o->path,
                       o->scale);
    if (o->form != DP_FORM_SPARSE && o->form != DP_FORM_DENSE)
        return dp_fail(err, DP_UNSUPPORTED, "%s: this format gives no %s", o->path, dp_form_text(o->form));
    if (o->form == DP_FORM_DENSE && o->width == 0)
        return dp_fail(err, DP_ARGUMENT, "%s: a dense form of 0 columns: expected at least 1", o->path);
    if (o->labels == DP_LABELS_CLASS && (o->classes == 0 || o->classes > CLASSES_MAX))
        return dp_fail(err, DP_ARGUMENT, "%s: %" PRIu32 " classes: expected 1 to %" PRIu32, o->path,
                       o->classes, CLASSES_MAX);
    return DP_OK;
}

static uint64_t entries_of(const struct dp_content *content, uint64_t example)
{
    return content->offsets[example + 1] - content->offsets[example];
}

/* Sum of the `take` largest examples, without sorting: the size of the take-th largest is found by bisection,
 * a pass over the offsets for each of its bits. */
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

static enum dp_status plan(struct dp_dataset *dataset, const char *path, struct dp_error *err)
{
    const struct dp_dataset_options *o = &dataset->options;
    uint64_t n = dataset->content.examples, take = n < o->batch ? n : o->batch;
    uint64_t entries = o->form == DP_FORM_SPARSE ? worst_entries(&dataset->content, take) : 0;
    if (entries > UINT32_MAX)
        return dp_fail(err, DP_ARGUMENT,
                       "%s: a minibatch of %" PRIu32 " examples may have %" PRIu64
                       " entries, over 2^32: make it smaller",
                       path, o->batch, entries);
    dataset->batches = n / o->batch + (n % o->batch != 0);
    dataset->shape.examples = (uint32_t)take;
    if (o->form == DP_FORM_DENSE) {
        dataset->shape.width = o->width;
    } else {
        dataset->shape.groups = dataset->shape.lists = 1;
        dataset->shape.list[0] = (struct dp_list_shape){.entries = (uint32_t)entries};
    }
    for (int p = 0; p < 256; p++)
        dataset->pixel[p] = (float)(p * o->scale);
    return DP_OK;
}

enum dp_status dp_dataset_open(const struct dp_dataset_options *options, struct dp_dataset **out,
                               struct dp_error *err)
{
    *out = NULL;
    enum dp_status st = check_options(options, err);
    if (st != DP_OK)
        return st;
    struct dp_dataset *dataset = calloc(1, sizeof *dataset);
    if (!dataset)
        return dp_fail(err, DP_NOMEM, "%s: no memory to read it", options->path);
    dataset->options = *options;
    dataset->options.path = dataset->options.labels_path = NULL;
    st = dp_content_load(options, &dataset->content, err);
    if (st == DP_OK)
        st = plan(dataset, options->path, err);
    if (st != DP_OK)
        dp_dataset_close(&dataset);
    *out = dataset;
    return st;
}

void dp_dataset_close(struct dp_dataset **dataset)
{
    if (!*dataset)
        return;
    dp_content_clear(&(*dataset)->content);
    free(*dataset);
    *dataset = NULL;
}

uint64_t dp_dataset_examples(const struct dp_dataset *dataset)
{
    return dataset->content.examples;
}

uint64_t dp_dataset_batches(const struct dp_dataset *dataset)
{
    return dataset->batches;
}

const struct dp_batch_shape *dp_dataset_shape(const struct dp_dataset *dataset)
{
    return &dataset->shape;
}

uint64_t dp_dataset_digest(const struct dp_dataset *dataset)
{
    return dataset->content.digest;
}

enum dp_status dp_batch_new(const struct dp_dataset *dataset, struct dp_batch **out, struct dp_error *err)
{
    return dp_batch_reserve(&dataset->shape, out, err);
}

uint64_t dp_dataset_example_at(const struct dp_dataset *dataset, uint32_t epoch, uint64_t at)
{
    DP_ASSERT(at < dataset->content.examples);
    if (!dataset->options.shuffle)
        return at;
    struct dp_order order;
    dp_order_init(&order, dataset->content.examples, dataset->options.seed, epoch);
    return dp_order_at(&order, at);
}

static void fill_columns(const struct dp_content *content, uint64_t example, uint32_t width, float *row)
{
    memset(row, 0, width * sizeof *row);
    for (uint64_t i = content->offsets[example]; i < content->offsets[example + 1]; i++)
        row[content->keys[i]] = content->values[i];
}

static void fill_pixels(const struct dp_dataset *dataset, uint64_t example, float *row)
{
    uint32_t width = dataset->shape.width;
    const uint8_t *pixels = dataset->content.pixels + example * width;
    for (uint32_t i = 0; i < width; i++)
        row[i] = dataset->pixel[pixels[i]];
    if (!dataset->options.normalize)
        return;
    double squares = 0;
    for (uint32_t i = 0; i < width; i++)
        squares += (double)row[i] * (double)row[i];
    double norm = sqrt(squares);
    for (uint32_t i = 0; squares > 0 && i < width; i++)
        row[i] = (float)((double)row[i] / norm);
}

static void fill_dense(const struct dp_dataset *dataset, uint64_t example, float *row)
{
    if (dataset->content.pixels)
        fill_pixels(dataset, example, row);
    else
        fill_columns(&dataset->content, example, dataset->shape.width, row);
}

void dp_dataset_fill(const struct dp_dataset *dataset, uint32_t epoch, uint64_t number,
                     struct dp_batch *batch)
{
    const struct dp_content *content = &dataset->content;
    const struct dp_dataset_options *o = &dataset->options;
    DP_ASSERT(number < dataset->batches);
    uint64_t first = number * o->batch, left = content->examples - first;
    uint32_t examples = left < o->batch ? (uint32_t)left : o->batch;
    bool sparse = o->form == DP_FORM_SPARSE;
    DP_ASSERT(batch->room.lists == dataset->shape.lists && batch->room.examples >= examples &&
              batch->width == dataset->shape.width);
    struct dp_order order;
    dp_order_init(&order, content->examples, o->seed, epoch);
    batch->epoch = epoch;
    batch->number = number;
    batch->examples = examples;
    if (sparse) {
        dp_batch_fill_group(batch, 0);
        dp_batch_fill_list(batch, 0);
    }
    for (uint32_t i = 0; i < examples; i++) {
        uint64_t example = o->shuffle ? dp_order_at(&order, first + i) : first + i;
        batch->labels[i] = content->labels[example];
        if (!sparse) {
            fill_dense(dataset, example, batch->dense + (size_t)i * batch->width);
            continue;
        }
        uint64_t from = content->offsets[example];
        dp_batch_fill_entries(batch, content->keys + from, content->values + from,
                              (uint32_t)entries_of(content, example));
        dp_batch_fill_example(batch);
    }
    if (sparse)
        dp_batch_fill_group_end(batch);
}
