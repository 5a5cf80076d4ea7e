/* Format: one kind of file: how it is decoded, and how its examples enter a minibatch. Private to this room.
 *     choose -> load -> (examples, shape) -> fill, from any thread
 * A new format is a file format_<name>.c with one such struct, its line here and in format.c's table. */
#ifndef DP_READ_FORMAT_H
#define DP_READ_FORMAT_H

#include "worker/read/content.h"
#include "worker/read/name_set.h"
#include "worker/read/understood.h"
#include "worker/read/unpack.h"

struct dp_format_fill {
    const struct dp_dataset_options *options; /* without paths */
    const struct dp_content *content;
    uint32_t epoch;
    uint32_t examples;
    const uint64_t *order; /* [examples]: which of the epoch's examples */
};

struct dp_format {
    const char *name;     /* "libsvm" */
    const char *holds;    /* its content, for messages: "lines of 'label index:value ...'" */
    uint32_t forms;       /* the supported ones: bits 1 << enum dp_data_form */
    bool labels_apart;    /* options.labels_path names a second file */
    bool schema_needed;   /* files that are like a training file cannot be read without its schema */
    bool decodes_slowly;  /* a cache of its content is worth the space */
    bool negatives_apart; /* options.negatives_path does */
    bool holds_out;       /* load applies options.held_out and options.holdout (holdout.h) */
    double scale;         /* if options.scale is 0; 0: 1 */
    double columns_scale; /* the same for forms that have columns next to categories; 0: scale */
    /* Whether a file that begins with these bytes has this format, if options->form is one of `forms`.
         * NULL: always. The first match in the table is taken (format.c also checks the options). */
    bool (*begins)(const struct dp_dataset_options *options, const unsigned char *bytes, size_t len);
    /* Decodes the file into an empty content, which the caller clears after a failure. */
    enum dp_status (*load)(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                           struct dp_content *out, struct dp_error *err);
    /* NULL, or adds the names of keys and columns (dp_dataset_names). May lower the set's limit. */
    enum dp_status (*names)(const struct dp_dataset_options *options, const struct dp_content *content,
                            struct dp_name_set *set, struct dp_error *err);
    /* NULL, or adds to dp_dataset_understood. */
    void (*understood)(const struct dp_dataset_options *options, const struct dp_content *content,
                       const struct dp_schema *schema, struct dp_understood *out);
    /* NULL, or how many users are left out (dp_dataset_leaves_out). */
    uint64_t (*left_out)(const struct dp_content *content);
    /* NULL, or dp_dataset_interactions; keys are mixed. */
    bool (*interactions)(const struct dp_content *content, uint64_t user,
                         void (*visit)(void *context, uint64_t item), void *context);
    /* NULL, or dp_dataset_own, counted in content->examples. */
    uint64_t (*own)(const struct dp_content *content, uint64_t *all);
    /* The examples of an epoch: NULL: those of the content; more when some are sampled. */
    uint64_t (*examples)(const struct dp_dataset_options *options, const struct dp_content *content);
    /* Columns, groups and lists of the worst minibatch of `take` examples (out->examples is set already). */
    enum dp_status (*shape)(const struct dp_dataset_options *options, const struct dp_content *content,
                            uint32_t take, struct dp_batch_shape *out, struct dp_error *err);
    /* Fills labels, columns and entries (batch_fill.h): a function of (content, options, epoch, order)
         * alone. */
    void (*fill)(const struct dp_format_fill *what, struct dp_batch *batch);
};

extern const struct dp_format dp_format_criteo, dp_format_tabular, dp_format_idx, dp_format_libsvm,
    dp_format_lists, dp_format_pairs, dp_format_text;

/* The shape of PAIRS and TRIPLES, for dp_format_pairs, _lists and _cross. */
enum dp_status dp_format_pairs_shape(const struct dp_dataset_options *options,
                                     const struct dp_content *content, uint32_t take,
                                     struct dp_batch_shape *out, struct dp_error *err);
extern const struct dp_format dp_format_cross; /* of dp_dataset_open_cross */
enum dp_status dp_cross_load(const struct dp_cross *cross, struct dp_content *out, struct dp_error *err);

/* Chooses by options->format, or by the wanted form and the file's first bytes. DP_ARGUMENT when the format
 * does not support the form; DP_DATA for an empty file. */
enum dp_status dp_format_choose(const struct dp_dataset_options *options, struct dp_unpack *unpack,
                                const struct dp_format **out, struct dp_error *err);

#endif
