/* Dataset: a file of labelled examples, decoded once, any minibatch of which can be read without those
 * before it.
 *     open (unpack, detect, parse, check)  ->  fill(epoch, number), from any thread, in any order
 * Formats   libsvm / libfm text ("label index:value ...", '#' comments), MNIST idx (images + labels, dense
 *           only), pairs of users and items and lists of a user's items, Criteo's click logs, CSV, text (told by what is wanted and by the first bytes, not
 *           by the name), each plain, gzip or zstd (by the first bytes).
 * Promise   What fill gives is a function of (data, options, epoch, number) alone. Numbers 0 .. batches-1 of
 *           one epoch hold every example once, shuffled by (seed, epoch): a keyed permutation, no array of it
 *           is kept. The last batch may be short. Entries keep the order of their line.
 * Thread    Constant after open: fill may be called from several threads, each with its own batch.
 * Memory    The decoded examples: 12 bytes an entry and 12 an example (text), 1 byte a pixel (idx). Nothing
 *           of `options` is needed after open.
 * Failure   DP_DATA naming file and line (text) or file and byte (idx) and what was expected, or file and
 *           place of a broken gzip or zstd stream; DP_IO naming the file; DP_ARGUMENT for options that do
 *           not go together. */
#ifndef DP_READ_DATASET_H
#define DP_READ_DATASET_H

#include "common/base/status.h"
#include "common/vocab/vocab.h"
#include "worker/read/batch.h"
#include "worker/read/form.h"
#include "worker/read/schema.h"

#include <stdbool.h>
#include <stddef.h>

enum dp_labels {
    DP_LABELS_ANY,    /* any finite number: regression */
    DP_LABELS_BINARY, /* {0, 1} or {-1, +1} in the file (not mixed: -1 and 0 in one file is refused); 0 / 1 in
                         batches */
    DP_LABELS_CLASS,  /* whole numbers 0 .. classes-1 */
};

#define DP_LABEL_BASE_MAX  ((uint32_t)1 << 24)
#define DP_LABEL_BASE_AUTO UINT32_MAX

/* What of a file of pairs is its test set (holdout.h). */
enum dp_holdout { DP_HOLDOUT_NONE, DP_HOLDOUT_ONE, DP_HOLDOUT_SHARE };

struct dp_dataset_options {
    const char *path;
    const char
        *format; /* "libsvm", "pairs", ...; NULL or "auto": by the form wanted and the file's first bytes */
    const char
        *labels_path; /* idx only; NULL: `path` with "images-idx3" replaced by "labels-idx1", none where it is
                                only scored */
    enum dp_labels labels;
    uint32_t classes; /* DP_LABELS_CLASS */
    /* Of BINARY and CLASS the number of class 0, up to DP_LABEL_BASE_MAX. DP_LABEL_BASE_AUTO: 0, or 1 where the labels of the file
     * are 1 .. classes. A file that is read like another has that one's. */
    uint32_t label_base;
    enum dp_data_form form;
    uint32_t fields; /* FIELDS, TABLES: categories; WINDOWS: tokens */
    uint32_t
        width; /* DP_FORM_DENSE: columns the model takes; idx: rows x columns of an image must equal it */
    uint32_t index_base; /* DP_FORM_DENSE from libsvm: index of the first column (1: the libsvm habit; 0:
                            libfm's) */
    double
        scale; /* every value is multiplied by it; finite. 0: 1/255 for the pixels of idx, which are 0 .. 255, else 1 */
    bool words; /* PAIRS, where the format is to be told: of a text's words, not of users and items */
    const char *negatives_path; /* pairs: the file of items that each pair's own is ranked among; or NULL */
    uint32_t window;            /* text, PAIRS: how many words a near word may be away */
    uint32_t negatives;         /* PAIRS: items or words that are sampled for each pair */
    const char *label;          /* csv: the name of its column */
    const char *
        categories; /* csv: names of columns, "a,b"; NULL: those whose first 1,000 lines are not all numbers */
    const char
        *like_path; /* csv: the file whose header and first lines say what is what; NULL: `path` itself */
    const struct dp_schema *like; /* of the training file, in place of like_path; NULL: `path` is one, or: */
    const char *columns_path;     /* that as a file; or NULL */
    bool
        standardize; /* csv: numbers of a training file become (x - mean) / deviation; other files are as it was */
    uint32_t hash_bits; /* of a category's key, 1 .. 63; 0: 63 */
    const char
        *cache; /* directory of decoded files that are mapped instead of decoded (cache.h); NULL: none */
    bool
        scored; /* only for what a model says of it: nothing is sampled, labels may be missing in the whole file */
    bool normalize; /* each example is divided by its Euclidean norm, after scale (all zero: left so) */
    /* A share of the examples, drawn by (seed, number) from the whole file whatever its order, is held out: at least one,
     * and one is left. held: this data set is those; else the others. 0: none is. Not of text. Of pairs: of each user's items
     * (holdout.h). */
    double held_out; /* 0 .. 0.9 */
    bool held;
    /* pairs: the test set that is drawn from the file before held_out; held_test: this data set is that. */
    enum dp_holdout holdout;
    double holdout_share; /* SHARE: above 0, 0.9 at most */
    bool held_test;
    bool shuffle;
    uint64_t seed;
    uint32_t batch; /* examples in a minibatch, > 0 */
};

struct dp_dataset;

DP_MUST_USE
enum dp_status dp_dataset_open(const struct dp_dataset_options *options, struct dp_dataset **out,
                               struct dp_error *err);
void dp_dataset_close(struct dp_dataset **dataset);

/* The name of its format: "lists". */
const char *dp_dataset_format(const struct dp_dataset *dataset);
uint64_t dp_dataset_examples(const struct dp_dataset *dataset);
uint64_t dp_dataset_batches(const struct dp_dataset *dataset); /* minibatches in an epoch */
/* Of the worst batch of all epochs: a list's entries are the sum of the `batch` largest examples. Lent. */
const struct dp_batch_shape *dp_dataset_shape(const struct dp_dataset *dataset);
/* Cuts the same examples into minibatches of another size, > 0. Before any of them is filled. path: for messages. */
DP_MUST_USE
enum dp_status dp_dataset_set_batch(struct dp_dataset *dataset, uint32_t batch, const char *path,
                                    struct dp_error *err);
/* Example behind position `at` (0 .. examples-1) of an epoch's order: a permutation. */
uint64_t dp_dataset_example_at(const struct dp_dataset *dataset, uint32_t epoch, uint64_t at);
/* Lists whose examples are ranked among each other (pairs with negatives_path), one of each labelled 1; 0: there are
 * none. Not for shuffled data. And which of them an example is in, ascending. */
uint32_t dp_dataset_lists(const struct dp_dataset *dataset);
uint32_t dp_dataset_list_of(const struct dp_dataset *dataset, uint64_t example);
/* Makes a data set of pairs as they are (options.scored) one whose items are ranked (rank_set.h) among those of the training set,
 * which must outlive it. sampled: items drawn beside each pair; ranks_sampled: the pair is to be ranked among them, too.
 * DP_DATA: no pair can be ranked. */
struct dp_rank_set;
DP_MUST_USE
enum dp_status dp_dataset_rank(struct dp_dataset *dataset, const struct dp_dataset *train, uint32_t sampled,
                               bool ranks_sampled, struct dp_error *err);
/* NULL: it is none. Lent. */
const struct dp_rank_set *dp_dataset_ranked(const struct dp_dataset *dataset);
/* Label of an example, as batches have it, wherever it stands in an epoch's order; false: such labels are drawn as a batch is filled. */
bool dp_dataset_label(const struct dp_dataset *dataset, uint64_t example, float *out);
/* Digest of what the file says (labels, indices, values, in order; before labels are mapped and values
 * scaled; however it was packed), for a report to say what was trained on. */
uint64_t dp_dataset_digest(const struct dp_dataset *dataset);

/* How the training file was read: this file, or the one that it was read like. Lent. */
const struct dp_schema *dp_dataset_schema(const struct dp_dataset *dataset);

/* What the training file calls keys and columns, each once, in the order in which its tables are exported: words by how often they
 * occur, ids ascending, features column by column; of features of libsvm, pixels and bytes nothing, which their numbers name. Reads
 * the file again. *cut: a million categories, or 16 million words or ids, were told, and there are more. options: those of
 * dp_dataset_open. DP_DATA: the file has changed since. */
DP_MUST_USE
enum dp_status dp_dataset_names(const struct dp_dataset *dataset, const struct dp_dataset_options *options,
                                struct dp_vocab_sink sink, bool *cut, struct dp_error *err);

/* The items that a user met in a training file of pairs, each once, ascending; keys are not mixed. false: the file has no such user. */
bool dp_dataset_met(const struct dp_dataset *dataset, uint64_t user,
                    void (*visit)(void *context, uint64_t item), void *context);
/* A data set without a file: each of the users with each of the items, users first, in this order; example e is user e / items and
 * item e % items. form: PAIRS or TRIPLES (the item beside itself). Keys are not mixed. */
struct dp_cross {
    const uint64_t *user, *item;
    uint64_t users, items;
};
DP_MUST_USE
enum dp_status dp_dataset_open_cross(const struct dp_cross *cross, enum dp_data_form form, uint32_t batch,
                                     struct dp_dataset **out, struct dp_error *err);

/* A batch sized for this data set's worst. */
DP_MUST_USE
enum dp_status dp_batch_new(const struct dp_dataset *dataset, struct dp_batch **out, struct dp_error *err);
/* number < batches. Sorts and deduplicates keys (radix sort; no allocation). */
void dp_dataset_fill(const struct dp_dataset *dataset, uint32_t epoch, uint64_t number,
                     struct dp_batch *batch);

#endif
