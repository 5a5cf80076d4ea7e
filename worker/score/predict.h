/* Predict: the trained model's answer for each example of a file, one line each, in the file's order:
 *     binary      the probability of 1        class   the probabilities of all classes, blanks between
 *     regression  the value
 *     with a column of ids (data.id) that the file has: the id and a tab before it
  * with nine digits, so that an f32 reads back exactly. The labels of the file are ignored.
 * Promise   The file is complete or absent. Tables are not created: DP_NOT_FOUND when one is missing.
 * Failure   DP_NOT_FINITE: the weights give an example a score that is NaN or infinite. */
#ifndef DP_SCORE_PREDICT_H
#define DP_SCORE_PREDICT_H

#include "worker/context/job.h"
#include "worker/read/schema.h"

#include <stdio.h>

/* Whether scores depend on how the training file was read, and the training kept no schema (data.columns). */
bool dp_predict_needs_training_data(const struct dp_job *job);
/* labels: the labels file of an idx file; NULL: derived from its name. like: the schema of the training file;
 * NULL: the kept one, if there is one. */
enum dp_status dp_predict(struct dp_job *job, const char *data, const char *labels,
                          const struct dp_schema *like, const char *out, struct dp_error *err);

/* Of a score that is NaN or infinite: what it is the score of, the cause and the remedy. Returns DP_NOT_FINITE. */
enum dp_status dp_predict_not_finite(const struct dp_job *job, const char *what, float score,
                                     struct dp_error *err);

/* Writes one example's line. output: [width] logits or values. scale: of a regression's labels. */
void dp_predict_line(FILE *stream, enum dp_labels labels, const struct dp_label_scale *scale,
                     const float *output, uint32_t width);

#endif
