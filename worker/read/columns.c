#include "worker/read/columns.h"

#include "common/model/mix.h"
#include "worker/read/batch_fill.h"
#include "worker/read/lines.h"
#include "worker/read/number.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS, FIELDS, LISTS }; /* facts */

#define LABEL_DIGEST                                                                                         \
    (UINT64_C(1) << 32) /* above the bits of an f32: another column as the label is other data */
#define WEIGHT_DIGEST (UINT64_C(1) << 33)

/* content:  values  [examples][columns], NaN where a cell is empty
 *           keys    [examples][fields], then those of the numeric columns, for lists of features, then the
 *                   entries of lists
 *           codes   [examples][lists], and one more: where the entries of a cell begin */

static enum dp_status lists_fit(const struct dp_dataset_options *o, uint32_t lists, struct dp_error *err)
{
    if (o->form == DP_FORM_DENSE && lists > 0)
        return dp_fail(
            err, DP_ARGUMENT,
            "%s: has %" PRIu32
            " columns of lists (--lists, data.lists), but the model takes numbers only: choose deepfm, "
            "wide-deep, dlrm, fm or logistic, or leave them out (--ignore, data.ignore)",
            o->path, lists);
    if ((o->form == DP_FORM_FIELDS || o->form == DP_FORM_TABLES) && lists != o->pooled)
        return dp_fail(err, DP_ARGUMENT,
                       "%s: has %" PRIu32
                       " columns of lists (--lists, data.lists), but the model takes %" PRIu32
                       ": write lists=%" PRIu32 " in the model, or name the columns",
                       o->path, lists, o->pooled, lists);
    return DP_OK;
}

enum dp_status dp_columns_fit(const struct dp_dataset_options *o, const struct dp_columns_count *count,
                              const char *why, struct dp_error *err)
{
    uint32_t columns = count->numbers, fields = count->categories;
    const char *open = why ? " (" : "", *close = why ? ")" : "",
               *named = why ? ", or name the categories (--categories, data.categories)" : "";
    why = why ? why : "";
    if (o->form == DP_FORM_DENSE && fields > 0)
        return dp_fail(
            err, DP_ARGUMENT,
            "%s: has %" PRIu32
            " columns of categories%s%s%s, but the model takes numbers only: choose another model, or leave "
            "them out (--ignore, data.ignore)",
            o->path, fields, open, why, close);
    if (o->form == DP_FORM_DENSE && columns != o->width)
        return dp_fail(err, DP_ARGUMENT,
                       "%s: has %" PRIu32 " columns of numbers, but the model takes %" PRIu32, o->path,
                       columns, o->width);
    bool clicks = o->form == DP_FORM_FIELDS || o->form == DP_FORM_TABLES;
    if (clicks && (columns != o->width || fields != o->fields))
        return dp_fail(err, DP_ARGUMENT,
                       "%s: has %" PRIu32 " columns of numbers and %" PRIu32
                       " of categories%s%s%s, but the model takes %" PRIu32 " and %" PRIu32
                       ": add columns=%" PRIu32 ",fields=%" PRIu32 " to the model%s",
                       o->path, columns, fields, open, why, close, o->width, o->fields, columns, fields,
                       named);
    if (clicks && o->normalize)
        return dp_fail(err, DP_ARGUMENT,
                       "%s: categories cannot be normalized: leave --normalize (data.normalize) out",
                       o->path);
    return lists_fit(o, count->lists, err);
}

enum dp_status dp_columns_begin(struct dp_columns *out, const struct dp_dataset_options *options,
                                struct dp_content *content, const struct dp_columns_count *count,
                                struct dp_error *err)
{
    *out = (struct dp_columns){.options = options,
                               .content = content,
                               .rule = dp_label_rule_of(options),
                               .columns = count->numbers,
                               .fields = count->categories,
                               .lists = count->lists};
    content->facts[COLUMNS] = count->numbers;
    content->facts[FIELDS] = count->categories;
    content->facts[LISTS] = count->lists;
    return dp_columns_fit(options, count, NULL, err);
}

void dp_columns_standardize(struct dp_columns *columns, const double *mean, const double *deviation)
{
    columns->mean = mean;
    columns->deviation = deviation;
}

static enum dp_status resize(struct dp_columns *c, uint64_t max, struct dp_error *err)
{
    enum dp_status st = DP_CONTENT_GROW(c->content->labels, max, err);
    if (st == DP_OK && c->weighs)
        st = DP_CONTENT_GROW(c->content->weights, max, err);
    if (st == DP_OK)
        st = DP_CONTENT_GROW(c->content->values, max * c->columns + 1, err);
    if (st == DP_OK)
        st = DP_CONTENT_GROW(c->content->keys, max * c->fields + c->columns + c->entries_len + 1, err);
    if (st == DP_OK && c->lists > 0)
        st = DP_CONTENT_GROW(c->content->codes, max * c->lists + 1, err);
    if (st == DP_OK)
        c->examples_max = max;
    return st;
}

enum dp_status dp_columns_row(struct dp_columns *c, struct dp_error *err)
{
    struct dp_content *content = c->content;
    if (content->examples == c->examples_max) {
        enum dp_status st = resize(c, c->examples_max * 2 + 1024, err);
        if (st != DP_OK)
            return st;
    }
    uint64_t row = content->examples++;
    c->label = content->labels + row;
    c->weight = c->weighs ? content->weights + row : NULL;
    c->values = content->values + row * c->columns;
    c->keys = content->keys + row * c->fields;
    return DP_OK;
}

enum dp_status dp_columns_end(struct dp_columns *c, const uint64_t *salt, struct dp_error *err)
{
    struct dp_content *content = c->content;
    uint64_t n = content->examples;
    if (n == 0)
        return dp_fail(err, DP_DATA, "%s: holds no examples", c->options->path);
    enum dp_status st = resize(c, n, err);
    if (st != DP_OK)
        return st;
    c->keys = content->keys + n * c->fields;
    for (uint32_t i = 0; i < c->columns; i++)
        c->keys[i] = dp_mix(dp_columns_key(c->options, salt[i], NULL, 0));
    if (c->entries_len > 0)
        memcpy(c->keys + c->columns, c->entries, c->entries_len * sizeof *c->entries);
    st = dp_label_settle(&c->rule, content->labels, n, &content->label_base, err);
    content->facts[DP_CONTENT_MINUS] = c->rule.has_minus;
    if (st != DP_OK)
        return dp_wrap(err, st, "%s", c->options->path);
    content->labels_len = n;
    content->weights_len = c->weighs ? n : 0;
    content->values_len = n * c->columns;
    content->keys_len = n * c->fields + c->columns + c->entries_len;
    content->codes_len = c->lists > 0 ? n * c->lists + 1 : 0;
    return DP_OK;
}

void dp_columns_clear(struct dp_columns *c)
{
    free(c->entries);
    c->entries = NULL;
}

static uint64_t hash_of(uint64_t salt, const char *text, size_t len)
{
    return dp_hash_bytes(DP_HASH_BEGIN ^ dp_mix(salt), text, len);
}

static double standardize(const struct dp_columns *c, uint32_t column, double x)
{
    return c->deviation[column] > 0 ? (x - c->mean[column]) / c->deviation[column] : 0;
}

enum dp_status dp_columns_number(struct dp_columns *c, uint32_t column, const char *at, const char *end,
                                 double (*of)(double x), struct dp_error *err)
{
    float single = NAN;
    double x = NAN;
    c->values[column] = NAN;
    if (at < end && (dp_number_f32(at, end, &single) != end || dp_number_f64(at, end, &x) != end))
        return dp_lines_unexpected(dp_number_end(at, end) == end ? "a number in the range of f32, or nothing"
                                                                 : "a number, or nothing",
                                   at, end, err);
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    c->content->digest = dp_content_digest(c->content->digest, at < end ? bits : UINT64_MAX);
    if (at == end)
        return DP_OK;
    double value = c->mean ? standardize(c, column, x) : of ? of((double)single) : (double)single;
    c->values[column] = (float)(value * c->options->scale);
    if (isfinite(c->values[column]))
        return DP_OK;
    return c->mean
               ? dp_fail(err, DP_DATA,
                         "value %g is %g deviations away from the training file's mean, beyond f32: leave it "
                         "empty, or train with --standardize no (data.standardize)",
                         x, value * c->options->scale)
               : dp_fail(err, DP_DATA, "value %g is infinite after scale %g", x, c->options->scale);
}

void dp_columns_category(struct dp_columns *c, uint32_t field, uint64_t salt, const char *at, size_t len)
{
    uint64_t hash = dp_mix(hash_of(salt, at, len));
    c->content->digest = dp_content_digest(c->content->digest, hash);
    c->keys[field] = dp_mix(hash >> (c->options->hash_bits ? 64 - c->options->hash_bits : 1));
}

enum dp_status dp_columns_entry(struct dp_columns *c, uint64_t salt, const char *at, size_t len,
                                struct dp_error *err)
{
    uint64_t hash = dp_mix(hash_of(salt, at, len));
    enum dp_status st = DP_OK;
    if (c->entries_len == UINT32_MAX)
        return dp_fail(err, DP_DATA, "its lists have more than %" PRIu32 " entries in all", UINT32_MAX);
    if (c->entries_len == c->entries_max) {
        st = DP_CONTENT_GROW(c->entries, c->entries_max * 2 + 1024, err);
        c->entries_max = st == DP_OK ? c->entries_max * 2 + 1024 : c->entries_max;
    }
    if (st != DP_OK)
        return st;
    c->content->digest = dp_content_digest(c->content->digest, hash);
    c->entries[c->entries_len++] = dp_mix(hash >> (c->options->hash_bits ? 64 - c->options->hash_bits : 1));
    return DP_OK;
}

static int order_keys(const void *a, const void *b)
{
    const uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Sorted, so that equal ones are together. */
void dp_columns_list_end(struct dp_columns *c, uint32_t list)
{
    uint32_t *begin = c->content->codes + (c->content->examples - 1) * c->lists + list;
    begin[0] = c->content->examples == 1 && list == 0 ? 0 : begin[0];
    begin[1] = (uint32_t)c->entries_len;
    if (begin[1] - begin[0] > 1)
        qsort(c->entries + begin[0], begin[1] - begin[0], sizeof *c->entries, order_keys);
    c->content->digest = dp_content_digest(c->content->digest, begin[1] - begin[0]);
}

void dp_columns_name_labels(struct dp_columns *columns, const struct dp_schema *schema)
{
    columns->texts = schema;
}

enum dp_status dp_columns_label(struct dp_columns *c, const char *at, const char *end, struct dp_error *err)
{
    float label = 0;
    if (c->texts) {
        size_t len = (size_t)(end - at);
        c->content->digest = dp_content_digest(c->content->digest, dp_mix(hash_of(LABEL_DIGEST, at, len)));
        return dp_label_find(c->texts, c->options->labels, (struct dp_cell){at, end}, c->label, err);
    }
    bool missing = at == end && c->options->scored;
    if (!missing && (at == end || dp_number_f32(at, end, &label) != end))
        return dp_lines_unexpected("a label (a number)", at, end, err);
    uint32_t bits;
    memcpy(&bits, &label, sizeof bits);
    c->content->digest = dp_content_digest(c->content->digest, LABEL_DIGEST | bits);
    return dp_label_map(&c->rule, label, c->label, err);
}

enum dp_status dp_columns_weight(struct dp_columns *c, const char *at, const char *end, struct dp_error *err)
{
    float weight = 0;
    uint32_t bits;
    if (at == end || dp_number_f32(at, end, &weight) != end || weight < 0)
        return dp_lines_unexpected("a weight (a number of 0 or more)", at, end, err);
    memcpy(&bits, &weight, sizeof bits);
    c->content->digest = dp_content_digest(c->content->digest, WEIGHT_DIGEST | bits);
    *c->weight = weight;
    return DP_OK;
}

uint64_t dp_columns_key(const struct dp_dataset_options *options, uint64_t salt, const char *text, size_t len)
{
    uint64_t hash = dp_mix(text ? hash_of(salt, text, len) : salt);
    return hash >> (options->hash_bits ? 64 - options->hash_bits : 1);
}

/* ---- names */

enum dp_status dp_columns_name_number(const struct dp_dataset_options *o, const struct dp_columns_name *of,
                                      struct dp_name_set *set, struct dp_error *err)
{
    bool sparse = o->form == DP_FORM_SPARSE;
    const struct dp_vocab_name name = {
        .group = sparse ? 0 : DP_VOCAB_COLUMN,
        .key = sparse ? dp_columns_key(o, of->salt, NULL, 0) : of->place,
        .text = of->column,
        .len = strlen(of->column),
    };
    return dp_name_set_add(set, &name, dp_mix(of->salt), of->order, err);
}

enum dp_status dp_columns_name_category(const struct dp_dataset_options *o, const struct dp_columns_name *of,
                                        const char *at, size_t len, struct dp_name_set *set,
                                        struct dp_error *err)
{
    char text[DP_VOCAB_TEXT_MAX];
    uint64_t hash = dp_mix(hash_of(of->salt, at, len));
    uint32_t group = o->form == DP_FORM_TABLES ? of->place : 0;
    if (dp_name_set_find(set, group, hash)) /* most are known: the text is made for new ones only */
        return DP_OK;
    size_t used = strlen(of->column), room = sizeof text - 1;
    used = used < room ? used : room;
    memcpy(text, of->column, used);
    text[used++] = '=';
    len = len < sizeof text - used ? len : sizeof text - used;
    uint64_t key = hash >> (o->hash_bits ? 64 - o->hash_bits : 1);
    memcpy(text + used, at, len);
    const struct dp_vocab_name name = {.group = group, .key = key, .text = text, .len = used + len};
    return dp_name_set_add(set, &name, hash, of->order, err);
}

/* ---- minibatches */

static uint64_t entries_of(const struct dp_content *content, uint64_t example, uint32_t list)
{
    const uint32_t *begin = content->codes + example * content->facts[LISTS] + list;
    return begin[1] - begin[0];
}

static uint64_t all_entries_of(const struct dp_content *content, uint64_t example, uint32_t list)
{
    uint64_t lists = content->facts[LISTS], sum = content->facts[COLUMNS] + content->facts[FIELDS];
    for (list = 0; list < lists; list++)
        sum += entries_of(content, example, list);
    return sum;
}

struct dp_columns_entries dp_columns_entries(const struct dp_content *content, uint32_t list)
{
    struct dp_columns_entries out = {0};
    for (uint64_t i = 0; i < content->examples; i++) {
        uint64_t entries = entries_of(content, i, list);
        out.all += entries;
        out.most = entries > out.most ? entries : out.most;
    }
    return out;
}

static uint64_t shape_sparse(const struct dp_content *content, uint32_t take, struct dp_batch_shape *out)
{
    uint64_t each = content->facts[COLUMNS] + content->facts[FIELDS],
             entries =
                 content->facts[LISTS] ? dp_content_worst(content, take, 0, all_entries_of) : each * take;
    out->width = 0;
    out->groups = out->lists = 1;
    out->list[0] = (struct dp_list_shape){.entries = (uint32_t)entries};
    return entries;
}

/* One list for all fields, or with tables of their own one each; then each column of lists. */
static uint64_t shape_fields(const struct dp_content *content, bool tables, uint32_t take,
                             struct dp_batch_shape *out)
{
    uint32_t fields = (uint32_t)content->facts[FIELDS], lists = (uint32_t)content->facts[LISTS],
             plain = tables ? fields : fields > 0, each = tables ? 1 : fields;
    uint64_t all = 0;
    out->groups = tables ? fields + lists : 1;
    out->lists = plain + lists;
    for (uint32_t l = 0; l < out->lists; l++) {
        bool pooled = l >= plain;
        uint64_t entries =
            pooled ? dp_content_worst(content, take, l - plain, entries_of) : (uint64_t)each * take;
        out->list[l] = (struct dp_list_shape){
            .group = tables ? l : 0, .entries = (uint32_t)entries, .each = pooled ? 0 : each};
        all += entries;
    }
    return all;
}

enum dp_status dp_columns_shape(const struct dp_dataset_options *options, const struct dp_content *content,
                                uint32_t take, struct dp_batch_shape *out, struct dp_error *err)
{
    bool tables = options->form == DP_FORM_TABLES;
    uint64_t groups = tables ? content->facts[FIELDS] + content->facts[LISTS] : 1, entries = 0;
    out->width = (uint32_t)content->facts[COLUMNS];
    if (options->form == DP_FORM_DENSE)
        return DP_OK;
    DP_ASSERT(options->form == DP_FORM_SPARSE ||
              content->facts[LISTS] < DP_BATCH_LISTS_MAX); /* as the model */
    if (groups <= DP_BATCH_GROUPS_MAX)
        entries = options->form == DP_FORM_SPARSE ? shape_sparse(content, take, out)
                                                  : shape_fields(content, tables, take, out);
    return groups <= DP_BATCH_GROUPS_MAX && entries <= UINT32_MAX
               ? DP_OK
               : dp_fail(err, DP_ARGUMENT,
                         "a minibatch of %" PRIu32 " examples with %" PRIu64 " entries is too large", take,
                         entries);
}

/* The number that all values of a row are divided by. */
static double norm_of(const struct dp_format_fill *what, const float *values, uint64_t columns,
                      double squares)
{
    if (!what->options->normalize)
        return 1;
    for (uint64_t i = 0; i < columns; i++)
        squares += isnan(values[i]) ? 0 : (double)values[i] * (double)values[i];
    return squares > 0 ? sqrt(squares) : 1;
}

static void fill_dense(const struct dp_format_fill *what, struct dp_batch *batch)
{
    const struct dp_content *content = what->content;
    for (uint32_t i = 0; i < what->examples; i++) {
        const float *values = content->values + what->order[i] * batch->width;
        float *row = batch->dense + (size_t)i * batch->width;
        double norm = norm_of(what, values, batch->width, 0);
        for (uint32_t c = 0; c < batch->width; c++)
            row[c] = isnan(values[c]) ? 0 : (float)((double)values[c] / norm);
    }
}

static const uint64_t *cell_of(const struct dp_content *content, uint64_t example, uint32_t list)
{
    return content->keys + content->examples * content->facts[FIELDS] + content->facts[COLUMNS] +
           content->codes[example * content->facts[LISTS] + list];
}

/* How often the first of `count` entries is there. */
static uint64_t times_of(const uint64_t *entries, uint64_t count)
{
    uint64_t times = 1;
    while (times < count && entries[times] == entries[0])
        times++;
    return times;
}

/* Of the values of an example's lists. */
static double squares_of(const struct dp_content *content, uint64_t example)
{
    double squares = 0;
    for (uint32_t l = 0; l < content->facts[LISTS]; l++) {
        const uint64_t *entries = cell_of(content, example, l), count = entries_of(content, example, l);
        for (uint64_t e = 0, times; e < count; e += times) {
            times = times_of(entries + e, count - e);
            squares += (double)times * (double)times / ((double)count * (double)count);
        }
    }
    return squares;
}

/* The sum of its entries is their mean. One that is there twice is one of twice the value. */
static void fill_cell(const struct dp_content *content, uint64_t example, uint32_t list, double norm,
                      struct dp_batch *batch)
{
    const uint64_t *entries = cell_of(content, example, list), count = entries_of(content, example, list);
    for (uint64_t e = 0, times; e < count; e += times) {
        times = times_of(entries + e, count - e);
        float value = (float)((double)times / ((double)count * norm));
        dp_batch_fill_entries(batch, &entries[e], &value, 1);
    }
}

/* First the columns that are not empty, then the categories and lists. */
static void fill_sparse(const struct dp_format_fill *what, struct dp_batch *batch)
{
    const struct dp_content *content = what->content;
    uint64_t columns = content->facts[COLUMNS], fields = content->facts[FIELDS];
    const uint64_t *column_key = content->keys + content->examples * fields;
    dp_batch_fill_group(batch, 0);
    dp_batch_fill_list(batch, 0);
    for (uint32_t i = 0; i < what->examples; i++) {
        const float *values = content->values + what->order[i] * columns;
        const uint64_t *keys = content->keys + what->order[i] * fields;
        double norm = norm_of(what, values, columns, (double)fields + squares_of(content, what->order[i]));
        float one = (float)(1 / norm);
        for (uint64_t c = 0; c < columns; c++) {
            float value = (float)((double)values[c] / norm);
            if (!isnan(value))
                dp_batch_fill_entries(batch, &column_key[c], &value, 1);
        }
        for (uint64_t f = 0; f < fields; f++)
            dp_batch_fill_entries(batch, &keys[f], &one, 1);
        for (uint32_t l = 0; l < content->facts[LISTS]; l++)
            fill_cell(content, what->order[i], l, norm, batch);
        dp_batch_fill_example(batch);
    }
    dp_batch_fill_group_end(batch);
}

static void fill_fields(const struct dp_format_fill *what, struct dp_batch *batch)
{
    const struct dp_content *content = what->content;
    const uint32_t fields = (uint32_t)content->facts[FIELDS], lists = batch->room.lists,
                   plain = lists - (uint32_t)content->facts[LISTS], each = plain ? fields / plain : 0;
    for (uint32_t l = 0; l < lists; l++) {
        if (l == 0 || batch->room.groups > 1)
            dp_batch_fill_group(batch, batch->room.list[l].group);
        dp_batch_fill_list(batch, l);
        for (uint32_t i = 0; i < what->examples; i++) {
            if (l < plain)
                dp_batch_fill_entries(batch, content->keys + what->order[i] * fields + l, NULL, each);
            else
                fill_cell(content, what->order[i], l - plain, 1, batch);
            dp_batch_fill_example(batch);
        }
        if (l == lists - 1 || batch->room.groups > 1)
            dp_batch_fill_group_end(batch);
    }
}

void dp_columns_fill(const struct dp_format_fill *what, struct dp_batch *batch)
{
    for (uint32_t i = 0; i < what->examples; i++)
        batch->labels[i] = what->content->labels[what->order[i]];
    if (what->options->form == DP_FORM_SPARSE)
        fill_sparse(what, batch);
    else
        fill_dense(what, batch);
    if (what->options->form == DP_FORM_FIELDS || what->options->form == DP_FORM_TABLES)
        fill_fields(what, batch);
}
