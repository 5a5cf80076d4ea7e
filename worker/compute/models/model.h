/* Model: makes a graph from a name with options. Each model is a kind (model_kind.h) in a file of its own.
 *     logistic                                   binary labels; sparse weights "w", dense bias "b"
 *     mlp:784-256-128-10                         classification: softmax over the last width
 *     mlp:64-32-1,loss=squared,activation=tanh   regression: the last width is 1
  * Failure   DP_ARGUMENT names the known models or options. */
#ifndef DP_COMPUTE_MODELS_MODEL_H
#define DP_COMPUTE_MODELS_MODEL_H

#include "worker/compute/model_kind.h"

DP_MUST_USE
enum dp_status dp_model_open(const char *text, struct dp_model *out, struct dp_error *err);
/* The name of the model with this number, from 0; NULL after the last. */
const char *dp_model_name(size_t number);
void dp_model_close(struct dp_model *model);

#endif
