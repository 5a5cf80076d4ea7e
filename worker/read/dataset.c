#include "worker/read/dataset.h"

#include "common/base/search.h"
#include "common/base/text.h"
#include "worker/read/batch_fill.h"
#include "worker/read/cache.h"
#include "worker/read/example_weights.h"
#include "worker/read/interactions.h"
#include "worker/read/name_set.h"
#include "worker/read/order.h"
#include "worker/read/rank_set.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Labels are f32 in batches, so a class must be an integer that f32 represents exactly. */
#define CLASSES_MAX ((uint32_t)1 << 24)

struct dp_dataset {
    struct dp_dataset_options options; /* without the paths */
    const struct dp_format *format;
    struct dp_schema schema; /* of the training file */
    struct dp_content content;
    struct dp_batch_shape shape; /* of the worst batch */
    uint64_t examples, batches;  /* of an epoch */
    struct dp_order parts;       /* with held_out: an order of all examples, the held-out ones last */
    uint64_t parts_first;        /* where this data set's part begins in it */
    struct dp_rank_set *ranked;  /* or NULL */
    float *weights;              /* [content.examples], with a mean of 1; NULL: all are 1 */
};

#define NAMES_MAX (UINT64_C(1) << 24)

/* An epoch's number that no training reaches. */
#define PARTS_EPOCH UINT32_MAX

static enum dp_status check_options(const struct dp_dataset_options *o, struct dp_error *err)
{
    if (!o->path || o->path[0] == '\0')
        return dp_fail(err, DP_ARGUMENT, "no data file named");
    if (o->batch == 0)
        return dp_fail(err, DP_ARGUMENT, "%s: a minibatch of 0 examples: expected at least 1", o->path);
    if (!isfinite(o->scale))
        return dp_fail(err, DP_ARGUMENT, "%s: scale %g: expected a finite number", o->path, o->scale);
    if (o->hash_bits > 63)
        return dp_fail(err, DP_ARGUMENT, "%s: keys of %" PRIu32 " bits: expected at most 63", o->path,
                       o->hash_bits);
    if (!(o->held_out >= 0 && o->held_out <= 0.9) || (o->held && o->held_out == 0))
        return dp_fail(err, DP_ARGUMENT, "%s: held-out share %g: expected 0 to 0.9", o->path, o->held_out);
    if (o->holdout == DP_HOLDOUT_SHARE && !(o->holdout_share > 0 && o->holdout_share <= 0.9))
        return dp_fail(err, DP_ARGUMENT, "%s: test share %g: expected above 0 and at most 0.9", o->path,
                       o->holdout_share);
    if (o->held_test && o->holdout == DP_HOLDOUT_NONE)
        return dp_fail(err, DP_ARGUMENT, "%s: no test set is held out", o->path);
    if (o->form == DP_FORM_DENSE && o->width == 0)
        return dp_fail(err, DP_ARGUMENT, "%s: a dense form of 0 columns: expected at least 1", o->path);
    if (o->label_base > DP_LABEL_BASE_MAX && o->label_base != DP_LABEL_BASE_AUTO)
        return dp_fail(err, DP_ARGUMENT, "%s: a label base of %" PRIu32 ": expected at most %" PRIu32,
                       o->path, o->label_base, DP_LABEL_BASE_MAX);
    if (o->labels == DP_LABELS_CLASS && (o->classes == 0 || o->classes > CLASSES_MAX))
        return dp_fail(err, DP_ARGUMENT, "%s: %" PRIu32 " classes: expected 1 to %" PRIu32, o->path,
                       o->classes, CLASSES_MAX);
    return DP_OK;
}

static enum dp_status plan_parts(struct dp_dataset *dataset, const char *path, struct dp_error *err)
{
    const struct dp_dataset_options *o = &dataset->options;
    uint64_t all = dataset->examples, held = (uint64_t)((double)all * o->held_out);
    if (dataset->format->holds_out) /* load has held it out */
        dataset->options.held_out = 0;
    if (o->held_out == 0)
        return DP_OK;
    if (dataset->format->examples)
        return dp_fail(err, DP_ARGUMENT,
                       "%s: no share of a file of %s can be held out: give a validation file", path,
                       dataset->format->name);
    if (all < 2)
        return dp_fail(err, DP_ARGUMENT, "%s: of %" PRIu64 " examples none can be held out", path, all);
    held = held < 1 ? 1 : held < all ? held : all - 1;
    dp_order_init(&dataset->parts, all, o->seed, PARTS_EPOCH);
    dataset->parts_first = o->held ? all - held : 0;
    dataset->examples = o->held ? held : all - held;
    return DP_OK;
}

static enum dp_status plan(struct dp_dataset *dataset, const char *path, struct dp_error *err)
{
    const struct dp_dataset_options *o = &dataset->options;
    const struct dp_format *format = dataset->format;
    dataset->examples = format->examples ? format->examples(o, &dataset->content) : dataset->content.examples;
    enum dp_status st = plan_parts(dataset, path, err);
    if (st != DP_OK)
        return st;
    uint64_t n = dataset->examples, take = n < o->batch ? n : o->batch;
    dataset->batches = n / o->batch + (n % o->batch != 0);
    dataset->shape.examples = (uint32_t)take;
    st = format->shape(o, &dataset->content, (uint32_t)take, &dataset->shape, err);
    return st == DP_OK ? DP_OK : dp_wrap(err, st, "%s", path);
}

/* Reads the schema that a training kept in a file. */
static enum dp_status read_like(struct dp_dataset_options *o, struct dp_schema *out, bool *absent,
                                struct dp_error *err)
{
    struct dp_error why = {0};
    *absent = false;
    if (o->like || !o->columns_path)
        return DP_OK;
    enum dp_status st = dp_schema_read_file(o->columns_path, out, &why);
    o->like = st == DP_OK ? out : NULL;
    if (st != DP_IO)
        return st == DP_OK ? st : dp_fail(err, st, "%s", why.text);
    *absent = access(o->columns_path, F_OK) != 0 && errno == ENOENT;
    return dp_fail(err, st, "%s; this file says how the training data was read: restore it", why.text);
}

/* Scores of features that were not trained on would be worthless. */
static enum dp_status check_like(const struct dp_dataset_options *o, const struct dp_format *format,
                                 struct dp_error *err)
{
    if (!o->like || dp_schema_same_kind(o->like->format, format->name))
        return DP_OK;
    return dp_fail(
        err, DP_ARGUMENT,
        "%s: is a file of format %s (%s), but the training file is of format %s: give data of that "
        "format, or name the format of both (--format, data.format)",
        o->path, format->name, format->holds, o->like->format);
}

static struct dp_schema_inputs inputs_of(const struct dp_dataset_options *o)
{
    return (struct dp_schema_inputs){.known = true,
                                     .hash_bits = o->hash_bits ? o->hash_bits : 63,
                                     .index_base = o->index_base,
                                     .scale = o->scale,
                                     .normalize = o->normalize,
                                     .words = o->form == DP_FORM_WORDS ? 1 + (uint32_t)o->word_rule : 0};
}

enum shown_as { NUMBER, YES_NO, RULE };

static void show_setting(double value, enum shown_as as, char out[32])
{
    if (as == RULE)
        (void)snprintf(out, 32, "%s", value == 1 + (double)DP_WORD_PLAIN ? "plain" : "simple");
    else if (as == YES_NO)
        (void)snprintf(out, 32, "%s", value != 0 ? "yes" : "no");
    else
        (void)snprintf(out, 32, "%.9g", value);
}

static bool has_numbers(const struct dp_schema *schema)
{
    for (uint32_t i = 0; i < schema->columns; i++)
        if (schema->column[i].kind == DP_COLUMN_NUMBER)
            return true;
    return false;
}

/* Weights that were trained on inputs of other settings would mean something else. */
static enum dp_status check_inputs(const struct dp_dataset_options *o, struct dp_error *err)
{
    const struct dp_schema *like = o->like;
    const struct dp_schema_inputs is = inputs_of(o), was = like && like->inputs.known ? like->inputs : is;
    bool columns = like && has_numbers(like);
    const struct {
        const char *flag, *key;
        double before, now;
        enum shown_as as;
    } setting[] = {{"--hash-bits", "data.hash_bits", was.hash_bits, is.hash_bits, NUMBER},
                   {"--index-base", "data.index_base", was.index_base, is.index_base, NUMBER},
                   {"--scale", "data.scale", was.scale, is.scale, NUMBER},
                   {"--normalize", "data.normalize", was.normalize, is.normalize, YES_NO},
                   {"--standardize", "data.standardize", columns ? like->standardized : o->standardize,
                    o->standardize, YES_NO},
                   {"--words", "data.words", was.words ? was.words : is.words, is.words, RULE}};
    for (size_t i = 0; i < sizeof setting / sizeof setting[0]; i++) {
        char before[32], now[32];
        if (setting[i].before == setting[i].now)
            continue;
        show_setting(setting[i].before, setting[i].as, before);
        show_setting(setting[i].now, setting[i].as, now);
        return dp_fail(err, DP_ARGUMENT,
                       "%s: %s (%s) is %s, but was %s when the weights were trained: their inputs would "
                       "change their meaning. Give what it was, or train with --fresh or in another --dir",
                       o->path, setting[i].flag, setting[i].key, now, before);
    }
    return DP_OK;
}

/* Welford 1962; in the order of the file, so that each worker has the same bits. */
static struct dp_label_scale measure_labels(const struct dp_content *content)
{
    double mean = 0, squares = 0;
    for (uint64_t i = 0; i < content->examples; i++) {
        double delta = (double)content->labels[i] - mean;
        mean += delta / (double)(i + 1);
        squares += delta * ((double)content->labels[i] - mean);
    }
    return squares > 0 ? (struct dp_label_scale){mean, sqrt(squares / (double)content->examples)}
                       : dp_label_scale_constant(mean);
}

/* Weights that were trained on one value of the label alone say nothing in another unit. */
static struct dp_label_scale label_scale_of(const struct dp_dataset *dataset,
                                            const struct dp_dataset_options *o)
{
    if (!o->scale_labels)
        return (struct dp_label_scale){0};
    if (o->like && (o->scored || !dp_label_scale_is_constant(&o->like->label_scale)))
        return o->like->label_scale;
    if (o->label_scale && (o->scored || !dp_label_scale_is_constant(o->label_scale)))
        return *o->label_scale;
    bool has = !o->scored && dataset->content.labels && dataset->content.examples > 0;
    return has ? measure_labels(&dataset->content) : (struct dp_label_scale){0};
}

static enum dp_status take_schema(struct dp_dataset *dataset, const struct dp_dataset_options *o,
                                  struct dp_error *err)
{
    const struct dp_content *content = &dataset->content;
    struct dp_schema *schema = &dataset->schema;
    if (content->schema_len > 0) {
        enum dp_status st = dp_schema_parse("the schema", content->schema, content->schema_len, schema, err);
        if (st != DP_OK)
            return st;
    }
    if (schema->classes == 0)
        schema->label_base = content->label_base;
    schema->inputs = inputs_of(&dataset->options);
    schema->label_scale = label_scale_of(dataset, o);
    (void)snprintf(schema->format, sizeof schema->format, "%s", dataset->format->name);
    return DP_OK;
}

/* The format's default when no scale is given. */
static double scale_of(const struct dp_format *format, enum dp_data_form form)
{
    bool columns = form == DP_FORM_FIELDS || form == DP_FORM_TABLES;
    double scale = columns && format->columns_scale != 0 ? format->columns_scale : format->scale;
    return scale != 0 ? scale : 1;
}

static enum dp_status load(struct dp_dataset *dataset, const struct dp_dataset_options *options,
                           struct dp_error *err)
{
    struct dp_unpack *unpack = NULL;
    struct dp_schema like = {0};
    struct dp_dataset_options o = *options;
    struct dp_error kept_why = {0};
    bool absent;
    enum dp_status st = dp_unpack_open_text(o.path, o.encoding, &unpack, err),
                   kept = st == DP_OK ? read_like(&o, &like, &absent, &kept_why) : DP_OK;
    if (st == DP_OK)
        st = dp_format_choose(&o, unpack, &dataset->format, err);
    /* Scores of features need none, if they are in no unit. */
    bool needed = dataset->format && dataset->format->schema_needed;
    if (st == DP_OK && kept != DP_OK && (!absent || needed || !o.scored || o.scale_labels))
        st = dp_fail(err, kept, "%s", kept_why.text);
    if (st == DP_OK)
        st = check_like(&o, dataset->format, err);
    if (st == DP_OK && o.like && o.label_base == DP_LABEL_BASE_AUTO)
        o.label_base = o.like->label_base;
    if (st == DP_OK && o.holdout != DP_HOLDOUT_NONE && !dataset->format->holds_out)
        st = dp_fail(err, DP_ARGUMENT,
                     "%s: no items of users can be held out of a file of format %s (data.holdout, "
                     "--holdout): give a test file or a validation share",
                     o.path, dataset->format->name);
    if (st == DP_OK) {
        const struct dp_format *format = dataset->format;
        if (o.scale == 0)
            o.scale = scale_of(format, o.form);
        dataset->options.scale = o.scale;
        st = check_inputs(&o, err);
    }
    if (st == DP_OK) {
        const struct dp_format *format = dataset->format;
        st = o.cache && format->decodes_slowly ? dp_cache_get(&o, format, &dataset->content, err)
                                               : format->load(&o, unpack, &dataset->content, err);
    }
    dp_unpack_close(&unpack);
    if (st == DP_OK)
        st = take_schema(dataset, &o, err);
    if (st == DP_OK) {
        st = dp_example_weights_new(&o, &dataset->content, &dataset->schema, &dataset->weights, err);
        st = st == DP_OK ? st : dp_wrap(err, st, "%s", o.path);
    }
    dp_schema_clear(&like);
    return st;
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
    dataset->options.path = dataset->options.labels_path = dataset->options.format = NULL;
    dataset->options.negatives_path = NULL;
    dataset->options.columns_path = dataset->options.interactions_path = NULL;
    dataset->options.like = NULL;
    dataset->options.encoding = dataset->options.ignore = dataset->options.id = NULL;
    dataset->options.missing = dataset->options.lists = NULL;
    dataset->options.weight = dataset->options.class_weight = NULL;
    memset(dataset->options.roles, 0, sizeof dataset->options.roles);
    dataset->options.label_scale = NULL;
    dataset->options.cache = dataset->options.label = dataset->options.categories = NULL;
    st = load(dataset, options, err);
    if (st == DP_OK)
        st = plan(dataset, options->path, err);
    if (st != DP_OK)
        dp_dataset_close(&dataset);
    *out = dataset;
    return st;
}

enum dp_status dp_dataset_set_batch(struct dp_dataset *dataset, uint32_t batch, const char *path,
                                    struct dp_error *err)
{
    DP_ASSERT(batch > 0);
    dataset->options.batch = batch;
    dataset->shape = (struct dp_batch_shape){0};
    return plan(dataset, path, err);
}

void dp_dataset_close(struct dp_dataset **dataset)
{
    if (!*dataset)
        return;
    dp_rank_set_free(&(*dataset)->ranked);
    dp_content_clear(&(*dataset)->content);
    dp_schema_clear(&(*dataset)->schema);
    free((*dataset)->weights);
    free(*dataset);
    *dataset = NULL;
}

const char *dp_dataset_format(const struct dp_dataset *dataset)
{
    return dataset->format->name;
}

uint64_t dp_dataset_examples(const struct dp_dataset *dataset)
{
    return dataset->examples;
}

uint64_t dp_dataset_batches(const struct dp_dataset *dataset)
{
    return dataset->batches;
}

const struct dp_batch_shape *dp_dataset_shape(const struct dp_dataset *dataset)
{
    return &dataset->shape;
}

uint32_t dp_dataset_lists(const struct dp_dataset *dataset)
{
    return (uint32_t)dataset->content.lists;
}

uint32_t dp_dataset_list_of(const struct dp_dataset *dataset, uint64_t example)
{
    const struct dp_content *content = &dataset->content;
    DP_ASSERT(content->lists > 0 && example < dataset->examples);
    return (uint32_t)(dp_lower_bound_u64(content->offsets, content->lists, example + 1) - 1);
}

enum dp_status dp_dataset_rank(struct dp_dataset *dataset, const struct dp_dataset *train, uint32_t sampled,
                               bool ranks_sampled, struct dp_error *err)
{
    DP_ASSERT(dataset->format->holds_out && train->format->holds_out && dataset->options.scored &&
              dataset->ranked == NULL && train->content.lists == 0 && !train->options.scored);
    enum dp_status st = dp_rank_set_new(&train->content, &dataset->content, &dataset->ranked, err);
    if (st != DP_OK)
        return st;
    dataset->ranked->sampled = sampled;
    dataset->ranked->ranks_sampled = ranks_sampled;
    dataset->ranked->seed = dataset->options.seed;
    return DP_OK;
}

const struct dp_rank_set *dp_dataset_ranked(const struct dp_dataset *dataset)
{
    return dataset->ranked;
}

/* The place of an example among all of the file. */
static uint64_t place_of(const struct dp_dataset *dataset, uint64_t example)
{
    DP_ASSERT(example < dataset->examples);
    if (dataset->options.held_out != 0) {
        example += dataset->parts_first;
        dp_order_each(&dataset->parts, &example, 1);
    }
    DP_ASSERT(example < dataset->content.examples);
    return example;
}

double dp_dataset_weight(const struct dp_dataset *dataset, uint64_t example)
{
    return dataset->weights ? (double)dataset->weights[place_of(dataset, example)] : 1;
}

bool dp_dataset_label(const struct dp_dataset *dataset, uint64_t example, float *out)
{
    const struct dp_content *content = &dataset->content;
    DP_ASSERT(example < dataset->examples);
    if ((dataset->format->examples && !dataset->options.rated) || content->lists > 0 || !content->labels)
        return false;
    *out = content->labels[place_of(dataset, example)];
    return true;
}

const char *dp_dataset_id(const struct dp_dataset *dataset, uint64_t example)
{
    const struct dp_content *content = &dataset->content;
    if (!dataset->options.keeps_ids || content->schema_len == 0 || !content->pixels)
        return NULL; /* others have other things in these arrays */
    DP_ASSERT(example + 1 < content->offsets_len);
    return (const char *)content->pixels + content->offsets[example];
}

uint64_t dp_dataset_digest(const struct dp_dataset *dataset)
{
    return dataset->content.digest;
}

void dp_dataset_understood(const struct dp_dataset *dataset, const struct dp_dataset_options *options,
                           struct dp_understood *out)
{
    char of[32];
    *out = (struct dp_understood){.lines = 1};
    (void)snprintf(out->line[0], sizeof out->line[0], "%s: %s, %s examples", options->path,
                   dataset->format->name, dp_text_grouped(dataset->content.examples, of));
    dp_text_mend_end(out->line[0]);
    if (dataset->format->understood)
        dataset->format->understood(options, &dataset->content, &dataset->schema, out);
    if (!dataset->weights)
        return;
    DP_ASSERT(out->lines < DP_UNDERSTOOD_LINES);
    dp_example_weights_text(options, &dataset->content, &dataset->schema, out->line[out->lines++],
                            sizeof out->line[0]);
}

const struct dp_schema *dp_dataset_schema(const struct dp_dataset *dataset)
{
    return &dataset->schema;
}

enum dp_status dp_dataset_names(const struct dp_dataset *dataset, const struct dp_dataset_options *options,
                                struct dp_vocab_sink sink, struct dp_names_limit *limit, struct dp_error *err)
{
    struct dp_name_set set = {.max = NAMES_MAX};
    struct dp_dataset_options as = *options;
    if (!as.like && as.columns_path) { /* the kept schema may be this file's by now */
        as.like = &dataset->schema;
        memset(as.roles, 0, sizeof as.roles);
    }
    enum dp_status st =
        dataset->format->names ? dataset->format->names(&as, &dataset->content, &set, err) : DP_OK;
    *limit = (struct dp_names_limit){set.max, set.cut};
    if (st == DP_OK)
        st = dp_name_set_visit(&set, sink, err);
    dp_name_set_clear(&set);
    return st;
}

uint64_t dp_dataset_own(const struct dp_dataset *dataset, uint64_t *all)
{
    *all = dataset->examples;
    if (!dataset->format->own || dataset->examples == 0)
        return dataset->examples;
    const uint64_t each = dataset->examples / dataset->content.examples;
    const uint64_t own = each * dataset->format->own(&dataset->content, all);
    *all *= each;
    return own;
}

bool dp_dataset_leaves_out(const struct dp_dataset *dataset)
{
    return dataset->format->left_out && dataset->format->left_out(&dataset->content) > 0;
}

bool dp_dataset_interactions(const struct dp_dataset *dataset, uint64_t user,
                             void (*visit)(void *context, uint64_t item), void *context)
{
    return dataset->format->interactions &&
           dataset->format->interactions(&dataset->content, user, visit, context);
}

bool dp_dataset_has_interactions(const struct dp_dataset *dataset)
{
    return dataset->format->interactions && dataset->content.lists == 0 && !dataset->options.scored;
}

enum dp_status dp_dataset_keep_interactions(const struct dp_dataset *trained, const struct dp_dataset *all,
                                            uint64_t run, bool earlier, const char *path,
                                            struct dp_error *err)
{
    DP_ASSERT(dp_dataset_has_interactions(trained) && dp_dataset_has_interactions(all));
    return dp_interactions_keep(&trained->content, &all->content, run, earlier, path, err);
}

enum dp_status dp_dataset_open_cross(const struct dp_cross *cross, enum dp_data_form form, uint32_t batch,
                                     struct dp_dataset **out, struct dp_error *err)
{
    DP_ASSERT(cross->users > 0 && cross->items > 0 && cross->users <= UINT64_MAX / cross->items && batch > 0);
    struct dp_dataset *dataset = calloc(1, sizeof *dataset);
    *out = NULL;
    if (!dataset)
        return dp_fail(err, DP_NOMEM, "no memory for the items of users");
    dataset->format = &dp_format_cross;
    dataset->options = (struct dp_dataset_options){.form = form, .batch = batch, .scored = true, .scale = 1};
    enum dp_status st = dp_cross_load(cross, &dataset->content, err);
    if (st == DP_OK)
        st = plan(dataset, "users and items", err);
    if (st != DP_OK)
        dp_dataset_close(&dataset);
    *out = dataset;
    return st;
}

enum dp_status dp_batch_new(const struct dp_dataset *dataset, struct dp_batch **out, struct dp_error *err)
{
    return dp_batch_reserve(&dataset->shape, out, err);
}

/* Examples are shuffled in runs of so many. Those at the end that make no complete run stay there. Words next
 * to each other have the same near words, so a minibatch of runs needs fewer rows. */
static uint64_t together(const struct dp_dataset *dataset)
{
    return dataset->options.form == DP_FORM_WORDS ? 64 : 1;
}

static void order_init(const struct dp_dataset *dataset, uint32_t epoch, struct dp_order *order)
{
    uint64_t runs = dataset->examples / together(dataset);
    dp_order_init(order, runs ? runs : 1, dataset->options.seed, epoch);
}

static void shuffle_runs(const struct dp_dataset *dataset, const struct dp_order *order, uint64_t *at,
                         uint32_t count)
{
    uint64_t each = together(dataset), run = UINT64_MAX, to = 0;
    for (uint32_t i = 0; i < count; i++) {
        if (at[i] / each != run) {
            run = at[i] / each;
            to = run < dataset->examples / each ? dp_order_at(order, run) : run;
        }
        at[i] = to * each + at[i] % each;
    }
}

/* Turns places in an epoch, whose order is made, into examples. */
static void examples_at(const struct dp_dataset *dataset, const struct dp_order *order, uint64_t *at,
                        uint32_t count)
{
    if (dataset->options.shuffle && together(dataset) > 1)
        shuffle_runs(dataset, order, at, count);
    else if (dataset->options.shuffle)
        dp_order_each(order, at, count);
    if (dataset->options.held_out == 0)
        return;
    for (uint32_t i = 0; i < count; i++)
        at[i] += dataset->parts_first;
    dp_order_each(&dataset->parts, at, count);
}

uint64_t dp_dataset_example_at(const struct dp_dataset *dataset, uint32_t epoch, uint64_t at)
{
    struct dp_order order;
    DP_ASSERT(at < dataset->examples);
    order_init(dataset, epoch, &order);
    examples_at(dataset, &order, &at, 1);
    return at;
}

void dp_dataset_fill(const struct dp_dataset *dataset, uint32_t epoch, uint64_t number,
                     struct dp_batch *batch)
{
    const struct dp_dataset_options *o = &dataset->options;
    DP_ASSERT(number < dataset->batches);
    uint64_t first = number * o->batch, left = dataset->examples - first;
    uint32_t examples = left < o->batch ? (uint32_t)left : o->batch;
    DP_ASSERT(batch->room.lists == dataset->shape.lists && batch->room.examples >= examples &&
              batch->width == dataset->shape.width);
    uint64_t *at = batch->scratch->order;
    struct dp_order order;
    order_init(dataset, epoch, &order);
    for (uint32_t i = 0; i < examples; i++)
        at[i] = first + i;
    examples_at(dataset, &order, at, examples);
    batch->epoch = epoch;
    batch->number = number;
    batch->examples = examples;
    const struct dp_format_fill what = {
        .options = o, .content = &dataset->content, .epoch = epoch, .examples = examples, .order = at};
    dataset->format->fill(&what, batch);
    batch->weighted = dataset->weights != NULL;
    for (uint32_t i = 0; batch->weighted && i < examples; i++)
        batch->weights[i] = dataset->weights[at[i]];
    const struct dp_label_scale *scale = &dataset->schema.label_scale;
    for (uint32_t i = 0; scale->deviation > 0 && i < examples; i++)
        batch->labels[i] = (float)(((double)batch->labels[i] - scale->mean) / scale->deviation);
}
