/* Dataset: a file of labelled examples, decoded once. Any minibatch can be read without those before it.
 *     open (unpack, detect, parse, check)  ->  fill(epoch, number), from any thread, in any order
 * Formats   libsvm and libfm text ("label index:value ...", '#' comments), MNIST idx (images and labels,
 *           dense only), pairs of users and items, lists of a user's items, Criteo's click logs, CSV, text.
 *           The format is detected from the wanted form and the first bytes, not from the name; each may be
 *           plain, gzip, zstd, xz, bzip2 or zip.
 * Promise   What fill gives is a function of (data, options, epoch, number) alone. The minibatches 0 ..
 *           batches-1 of an epoch hold every example once, shuffled by (seed, epoch): a keyed permutation,
 *           without an array of it. The last batch may be short. Entries keep the order of their line.
 * Thread    Constant after open: several threads may call fill, each with its own batch.
 * Memory    The decoded examples: 12 bytes an entry and 12 an example (text), 1 byte a pixel (idx). Nothing
 *           of `options` is needed after open.
 * Failure   DP_DATA names the file, the line (text) or byte (idx, a broken compressed stream), and the
 *           expected form; DP_IO names the file; DP_ARGUMENT for options that do not go together. */
#ifndef DP_READ_DATASET_H
#define DP_READ_DATASET_H

#include "common/base/status.h"
#include "common/vocab/tokenizer.h"
#include "worker/read/batch.h"
#include "worker/read/form.h"
#include "worker/read/schema.h"
#include "worker/read/understood.h"

#include <stdbool.h>
#include <stddef.h>

enum dp_labels {
    DP_LABELS_ANY,    /* any finite number: regression */
    DP_LABELS_BINARY, /* {0, 1} or {-1, +1} in the file (not both -1 and 0); 0 or 1 in batches */
    DP_LABELS_CLASS,  /* integers 0 .. classes-1 */
    DP_LABELS_NONE,   /* none: the model's output is each example's loss */
};

#define DP_LABEL_BASE_AUTO UINT32_MAX

/* What a column of pairs is. */
enum dp_pairs_role { DP_PAIRS_USERS, DP_PAIRS_ITEMS, DP_PAIRS_RATINGS, DP_PAIRS_TIMES, DP_PAIRS_ROLES };

/* Which pairs of a file are its test set (holdout.h). */
enum dp_holdout { DP_HOLDOUT_NONE, DP_HOLDOUT_ONE, DP_HOLDOUT_SHARE };

struct dp_dataset_options {
    const char *path;
    /* "libsvm", "pairs", ...; NULL or "auto": detected from the wanted form and the first bytes. */
    const char *format;
    /* idx: NULL: `path` with "images-idx3" replaced by "labels-idx1"; with `scored` the file may be
     * missing. */
    const char *labels_path;
    enum dp_labels labels;
    uint32_t classes; /* DP_LABELS_CLASS */
    /* BINARY, CLASS: the number of class 0, up to DP_LABEL_BASE_MAX. DP_LABEL_BASE_AUTO: 0, or 1 if the
     * labels of the file are 1 .. classes. A file that is read like another takes the base of that one. */
    uint32_t label_base;
    enum dp_data_form form;
    uint32_t fields;     /* FIELDS, TABLES: categories; WINDOWS: tokens */
    uint32_t pooled;     /* FIELDS, TABLES: columns with several categories in a cell */
    uint32_t width;      /* DP_FORM_DENSE: columns that the model takes; idx: pixels of an image */
    uint32_t index_base; /* DP_FORM_DENSE from libsvm: index of the first column (libsvm: 1; libfm: 0) */
    /* ANY: labels are standardized: as in the file that this one is read like, else by `label_scale` if
     * there is an earlier one, else by their mean and deviation in this file (one that is only scored is not
     * measured). */
    bool scale_labels;
    const struct dp_label_scale *label_scale;
    double scale; /* multiplies every value; finite. 0: 1/255 for the pixels of idx, else 1 */
    bool rated;   /* PAIRS: labels are the ratings, nothing is sampled; with `scored` they may be missing */
    const char *negatives_path; /* pairs: the file of items that each pair's item is ranked among; or NULL */
    /* pairs: the columns, each by name or number from 1; NULL: by the header, or the first ones. */
    const char *roles[DP_PAIRS_ROLES];
    uint32_t window;             /* WORDS: the largest distance of a near word, in words */
    double subsample;            /* WORDS: frequent words are dropped at random (form.h); 0: none */
    enum dp_word_rule word_rule; /* WORDS: how it is cut into words */
    uint32_t min_count;          /* WORDS: words that occur less often are left out */
    uint32_t negatives;          /* PAIRS: items sampled for each pair; WORDS: words sampled for each word */
    const char *label;           /* csv: name of the label's column */
    /* csv: names of columns, "a,b"; NULL: those whose first 1,000 lines are not all numbers. */
    const char *categories;
    const char *lists;   /* csv: names of columns with several categories in a cell, "a,b"; NULL: none */
    const char *ignore;  /* csv: names of columns that are left out, "a,b"; NULL: none */
    const char *id;      /* csv: a column that is left out too; or NULL */
    bool keeps_ids;      /* with `scored`: for dp_dataset_id */
    const char *missing; /* csv: texts of cells that count as missing, "?,-"; NULL: no further ones */
    /* csv: the column, by name or number from 1, of the weights by which the losses of examples are
     * multiplied; NULL: none, or that of `like`. */
    const char *weight;
    const char *class_weight; /* "balanced", or "yes=5,no=1"; NULL: none */
    bool
        weighs; /* a training file: without it the weights are not looked at, and the column may be missing */
    const struct dp_schema *like; /* the schema of the training file; NULL: `path` is that file */
    const char *columns_path;     /* the same as a file; or NULL */
    const char *encoding;         /* of texts, a name for iconv(3); NULL: UTF-8 */
    /* csv, read by `like`: columns of this file that the training file lacks are left out, and columns that
     * this file lacks are empty cells. Else both are refused. */
    bool new_ignored, missing_empty;
    bool standardize;   /* csv: training numbers become (x - mean) / deviation; others by `like` */
    uint32_t hash_bits; /* of a category's key, 1 .. 63; 0: 63 */
    const char *cache;  /* directory of decoded files to map instead of decoding (cache.h); or NULL */
    bool scored;    /* the model only scores the file: nothing is sampled, labels may be missing throughout */
    bool normalize; /* divides each example by its Euclidean norm, after scale; zeros stay zeros */
    /* The share of the examples that is held out, drawn by (seed, number) from the whole file whatever its
     * order: at least one example, and at least one is left. held: this data set is the held-out part, else
     * the rest. Not for text. For pairs: of each user's items (holdout.h). */
    double held_out; /* 0 .. 0.9; 0: none */
    bool held;
    /* pairs: the test set, drawn before held_out; held_test: this data set is the test set. */
    enum dp_holdout holdout;
    double holdout_share; /* SHARE: above 0, at most 0.9 */
    bool held_test;
    bool shuffle;
    uint64_t seed;
    uint32_t batch; /* examples in a minibatch, > 0 */
    /* pairs: a file with the interactions of earlier data (interactions.h), or NULL. Its items and users
     * count as this file's for sampling and ranking, and epochs rehearse them. with_held: also those that
     * were held out of earlier trainings, and none is rehearsed. */
    const char *interactions_path;
    bool with_held;
};

struct dp_dataset;

enum dp_status dp_dataset_open(const struct dp_dataset_options *options, struct dp_dataset **out,
                               struct dp_error *err);
void dp_dataset_close(struct dp_dataset **dataset);

/* The name of the format, as "lists". */
const char *dp_dataset_format(const struct dp_dataset *dataset);
uint64_t dp_dataset_examples(const struct dp_dataset *dataset);
uint64_t dp_dataset_batches(const struct dp_dataset *dataset); /* minibatches in an epoch */
/* The examples of an epoch that are the file's, and not rehearsed. *all: if none were left out, with those of
 * all earlier interactions. */
uint64_t dp_dataset_own(const struct dp_dataset *dataset, uint64_t *all);
/* The shape of the worst batch of all epochs: a list's entries are the sum of the `batch` largest examples.
 * Lent. */
const struct dp_batch_shape *dp_dataset_shape(const struct dp_dataset *dataset);
/* Changes the size of minibatches (> 0). Call before the first fill. path: for messages. */
enum dp_status dp_dataset_set_batch(struct dp_dataset *dataset, uint32_t batch, const char *path,
                                    struct dp_error *err);
/* The example at position `at` (0 .. examples-1) of an epoch: a permutation. */
uint64_t dp_dataset_example_at(const struct dp_dataset *dataset, uint32_t epoch, uint64_t at);
/* Pairs with negatives_path: the number of lists. The examples of a list are ranked among each other, and one
 * of them is labelled 1. 0: there are no lists. Not for shuffled data. list_of: an example's list;
 * ascending. */
uint32_t dp_dataset_lists(const struct dp_dataset *dataset);
uint32_t dp_dataset_list_of(const struct dp_dataset *dataset, uint64_t example);
/* Makes a data set of pairs (opened with options.scored) a rank set (rank_set.h): its items are ranked among
 * those of the training set, which must outlive it. sampled: items drawn for each pair; ranks_sampled: the
 * pair is ranked among them, too. DP_DATA when no pair can be ranked. */
struct dp_rank_set;
enum dp_status dp_dataset_rank(struct dp_dataset *dataset, const struct dp_dataset *train, uint32_t sampled,
                               bool ranks_sampled, struct dp_error *err);
/* NULL when it is not a rank set. Lent. */
const struct dp_rank_set *dp_dataset_ranked(const struct dp_dataset *dataset);
/* The label of an example, before it is standardized. False when labels are drawn as batches are filled. */
bool dp_dataset_label(const struct dp_dataset *dataset, uint64_t example, float *out);
/* By which the example's loss is multiplied in training; 1 without weights. */
double dp_dataset_weight(const struct dp_dataset *dataset, uint64_t example);
/* The text that names an example of a file with keeps_ids, in the file's order; NULL: the file has no such
 * column. Lent. */
const char *dp_dataset_id(const struct dp_dataset *dataset, uint64_t example);
/* Digest of the file's content (labels, indices, values, in order, before mapping and scaling, whatever the
 * compression). It identifies the data of a training. */
uint64_t dp_dataset_digest(const struct dp_dataset *dataset);

/* The schema of the training file: this file, or the one that it was read like. Lent. */
const struct dp_schema *dp_dataset_schema(const struct dp_dataset *dataset);

/* Describes a training file as it was read, and likely mistakes in it, with their remedies. May read the
 * file's first lines again. options: those of dp_dataset_open. */
void dp_dataset_understood(const struct dp_dataset *dataset, const struct dp_dataset_options *options,
                           struct dp_understood *out);

/* Visits the names that the training file gives to keys and columns, each once, in the order in which its
 * tables are exported: words by frequency, ids ascending, features column by column. Features of libsvm,
 * pixels and bytes have only numbers, and no names. Reads the file again. options: those of dp_dataset_open.
 * DP_DATA when the file has changed since. */
struct dp_names_limit {
    uint64_t max; /* a million categories, or 16 million words or ids; set before the first visit */
    bool cut;     /* the file has more */
};
enum dp_status dp_dataset_names(const struct dp_dataset *dataset, const struct dp_dataset_options *options,
                                struct dp_vocab_sink sink, struct dp_names_limit *limit,
                                struct dp_error *err);

/* Visits the items of a user's interactions in a training file of pairs, each once, ascending; keys are
 * not mixed. False when the file has no such user. */
bool dp_dataset_interactions(const struct dp_dataset *dataset, uint64_t user,
                             void (*visit)(void *context, uint64_t item), void *context);
/* Whether users of pairs are left out, as they have all items: all, below, has them. */
bool dp_dataset_leaves_out(const struct dp_dataset *dataset);
/* Writes the interactions of a training set of pairs, those of earlier data included (interactions.h). all:
 * the same with_held and without a share or a test set that is held out. */
enum dp_status dp_dataset_keep_interactions(const struct dp_dataset *trained, const struct dp_dataset *all,
                                            uint64_t run, bool earlier, const char *path,
                                            struct dp_error *err);
/* Whether it is a training set of pairs. */
bool dp_dataset_has_interactions(const struct dp_dataset *dataset);
/* A data set without a file: each of the users with each of the items; example e is user e / items and item e
 * % items. form: PAIRS, or TRIPLES (the item twice). Keys are not mixed. */
struct dp_cross {
    const uint64_t *user, *item;
    uint64_t users, items;
};
enum dp_status dp_dataset_open_cross(const struct dp_cross *cross, enum dp_data_form form, uint32_t batch,
                                     struct dp_dataset **out, struct dp_error *err);

/* A batch that is large enough for this data set's worst. */
enum dp_status dp_batch_new(const struct dp_dataset *dataset, struct dp_batch **out, struct dp_error *err);
/* number < batches. Sorts and deduplicates keys (radix sort; no allocation). */
void dp_dataset_fill(const struct dp_dataset *dataset, uint32_t epoch, uint64_t number,
                     struct dp_batch *batch);

#endif
