/* Labels: what a label in a file may be, and what it becomes in a batch: numbers by a rule, texts of a CSV by names.
 *     numbers:  map, map, ... -> settle          texts: see, see, ... -> names;  find
 * Thread    One at a time: both remember what the file has. find: any.
 * Failure   DP_DATA with a text that names no place: the caller wraps it; DP_NOMEM. */
#ifndef DP_READ_LABELS_H
#define DP_READ_LABELS_H

#include "worker/read/dataset.h"
#include "worker/read/record.h"

struct dp_label_rule {
    enum dp_labels kind;
    uint32_t classes;
    uint32_t
        base; /* the number of class 0, or DP_LABEL_BASE_AUTO: 0, or 1 where the labels are 1 .. classes */
    bool has_zero, has_minus, has_one, has_top; /* top: one above those that begin at 0 */
};

struct dp_label_rule dp_label_rule_of(const struct dp_dataset_options *options);
/* With a base that is found out *out is not final before settle. */
DP_MUST_USE
enum dp_status dp_label_map(struct dp_label_rule *rule, float label, float *out, struct dp_error *err);
/* After the last: *base is the one that was found (or given), and what map gave is made final. */
DP_MUST_USE
enum dp_status dp_label_settle(const struct dp_label_rule *rule, float *labels, uint64_t count,
                               uint32_t *base, struct dp_error *err);

/* Texts of labels, each once, in ascending order of their bytes: class 0 first; of two the second is the positive one. yes and no,
 * true and false, t and f, y and n are the same in any case of letters, and kept in small ones. */
struct dp_label_texts {
    char **text; /* [count] */
    uint32_t count, room;
};

/* max: how many there may be, for the message: 2, or the model's classes. */
DP_MUST_USE
enum dp_status dp_label_see(struct dp_label_texts *texts, enum dp_labels kind, struct dp_cell cell,
                            uint32_t max, struct dp_error *err);
/* Moves the texts to a schema; of a pair of words the one that was not there is added. */
DP_MUST_USE
enum dp_status dp_label_name(struct dp_label_texts *texts, enum dp_labels kind, struct dp_schema *schema,
                             struct dp_error *err);
void dp_label_texts_clear(struct dp_label_texts *texts); /* accepts {0} */
DP_MUST_USE
enum dp_status dp_label_find(const struct dp_schema *schema, enum dp_labels kind, struct dp_cell cell,
                             float *out, struct dp_error *err);

#endif
