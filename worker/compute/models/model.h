/* Model: makes a graph from a name with options. Each model is a kind (model_kind.h) in a file of its own.
 *     logistic                                   binary labels; sparse weights "w", dense bias "b"
 *     mlp:784-256-128-10                         classification: softmax over the last width
 *     mlp:64-32-1,loss=squared,activation=tanh   regression: the last width is 1
  * Failure   DP_ARGUMENT names the known models or options. */
#ifndef DP_COMPUTE_MODELS_MODEL_H
#define DP_COMPUTE_MODELS_MODEL_H

#include "worker/compute/model_kind.h"

enum dp_status dp_model_open(const char *text, struct dp_model *out, struct dp_error *err);
/* Whether a text may leave out what the training file has: then how that is measured (form, labels). */
bool dp_model_wants(const char *text, struct dp_dataset_options *data);
/* Writes the text in full. A text that is in full stays, byte for byte. DP_ARGUMENT: neither fits the file;
 * the error has the texts that do. */
enum dp_status dp_model_complete(const char *text, const struct dp_measure *has, char *out, size_t size,
                                 struct dp_error *err);
/* The model with this number, from 0; NULL after the last. */
const struct dp_model_kind *dp_model_kind(size_t number);
/* The text of `downpour run --help models`: prints one model, or with name NULL all models and their common
 * grammar. False, with nothing written, when there is no such model. */
bool dp_model_help_print(const char *name, FILE *file);
void dp_model_close(struct dp_model *model);

#endif
