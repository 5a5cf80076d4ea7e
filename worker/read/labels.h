/* Labels: which labels a file may have, and their values in a batch: numbers by a rule, texts of a CSV by
 * names.
 *     numbers:  map, map, ... -> settle          texts: see, see, ... -> names;  find
 * Thread    One at a time: rule and texts remember the labels of the file. find: any.
 * Failure   DP_DATA, with a text that the caller wraps with the place; DP_NOMEM. */
#ifndef DP_READ_LABELS_H
#define DP_READ_LABELS_H

#include "worker/read/csv_record.h"
#include "worker/read/dataset.h"

struct dp_label_rule {
    enum dp_labels kind;
    uint32_t classes;
    uint32_t base; /* the number of class 0, or DP_LABEL_BASE_AUTO: 0, or 1 if the labels are 1 .. classes */
    bool has_zero, has_minus, has_one, has_top; /* top: the label `classes`, which only base 1 allows */
};

struct dp_label_rule dp_label_rule_of(const struct dp_dataset_options *options);
/* With DP_LABEL_BASE_AUTO *out is not final before settle. */
enum dp_status dp_label_map(struct dp_label_rule *rule, float label, float *out, struct dp_error *err);
/* Call after the last label. Sets *base to the detected (or given) base, and makes the mapped labels
 * final. */
enum dp_status dp_label_settle(const struct dp_label_rule *rule, float *labels, uint64_t count,
                               uint32_t *base, struct dp_error *err);

/* Texts of labels, each once, in ascending order of their bytes, class 0 first; of two the second is the
 * positive one. yes and no, true and false, t and f, y and n are case-insensitive, and ordered
 * in lower case. A text is kept as the file first writes it. */
struct dp_label_texts {
    char **text;    /* [count] */
    uint64_t *line; /* [count], where each was first */
    uint32_t count, room;
};

/* line: the label's; max: the largest number of texts, for the message: 2, or the model's classes. */
enum dp_status dp_label_see(struct dp_label_texts *texts, enum dp_labels kind, struct dp_cell cell,
                            uint64_t line, uint32_t max, struct dp_error *err);
/* Moves the texts to a schema. */
void dp_label_name(struct dp_label_texts *texts, struct dp_schema *schema);
void dp_label_texts_clear(struct dp_label_texts *texts); /* accepts {0} */
enum dp_status dp_label_find(const struct dp_schema *schema, enum dp_labels kind, struct dp_cell cell,
                             float *out, struct dp_error *err);

#endif
