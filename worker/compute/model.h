/* Model: a name with options becomes a graph. Each model is one short function in a file of its own.
 *     logistic                                   binary labels; sparse weights "w", dense bias "b"
 *     mlp:784-256-128-10                         classification: softmax over the last width
 *     mlp:64-32-1,loss=squared,activation=tanh   regression: the last width is 1
 * Failure   DP_ARGUMENT that says what is known.                                                        */
#ifndef DP_COMPUTE_MODEL_H
#define DP_COMPUTE_MODEL_H

#include "worker/compute/graph.h"
#include "worker/read/dataset.h"

struct dp_model {
    struct dp_graph *graph;
    enum dp_data_form form; /* what it reads */
    bool words;             /* DP_FORM_PAIRS: of a text's words, not of users and items */
    uint32_t width;         /* columns it takes */
    uint32_t fields;        /* categories or tokens it takes */
    enum dp_labels labels;
    uint32_t classes; /* DP_LABELS_CLASS */
    /* What a training that names no number of epochs is to have (worker/defaults.h). */
    uint32_t steps_wanted, epochs_min;
    /* Whether a pair's score is its users' and its item's vector multiplied, and biases: these parameters (-1: there is none). */
    bool has_factors;
    struct dp_model_factors {
        int user, item, user_bias, item_bias, bias;
    } factors;
};

DP_MUST_USE
enum dp_status dp_model_open(const char *text, struct dp_model *out, struct dp_error *err);
/* Names of the models that are known, from number 0 on; NULL: there are no more. */
const char *dp_model_name(size_t number);
void dp_model_close(struct dp_model *model);

#endif
