/* Models: what a model's function gets to work with, and the functions that model.c knows. Inside this room
 * only. To add a model: ADDING.md.                                                                         */
#ifndef DP_COMPUTE_MODELS_H
#define DP_COMPUTE_MODELS_H

#include "worker/compute/model.h"

#define DP_MODEL_OPTIONS_MAX 8

/* "name:shape,option=value,..." taken apart. The options' names are among those that the table allows, each
 * at most once. */
struct dp_model_text {
    const char *shape; /* "" where there is none */
    int options;
    struct {
        const char *name, *value;
    } option[DP_MODEL_OPTIONS_MAX];
};

/* Value of an option, or `otherwise` where it is not given. */
const char *dp_model_option(const struct dp_model_text *text, const char *name, const char *otherwise);

/* "784-256-10" -> widths; count: at most `room`. `what` names it in messages, `example` shows one. */
enum dp_status dp_model_widths(const char *text, uint32_t *widths, int room, int *count, const char *what,
                               struct dp_error *err);
/* A shape that is one whole number, 1 .. high. */
enum dp_status dp_model_shape_number(const struct dp_model_text *text, const char *what, uint32_t high,
                                     uint32_t *out, struct dp_error *err);
/* An option that is a whole number of low .. high. */
enum dp_status dp_model_number(const struct dp_model_text *text, const char *name, uint64_t otherwise,
                               uint64_t low, uint64_t high, uint32_t *out, struct dp_error *err);
/* x times prefix.w<number> plus prefix.b<number>; the weights start by He's rule before a ReLU, else by Glorot's. */
int dp_model_layer(struct dp_graph *graph, const char *prefix, int x, int number, uint32_t in, uint32_t out,
                   bool before_relu);
/* The same into one output that starts near 0, weights of mean 0 and deviation 0.01: a large initial output is unlearned first, by
 * steps that carry all layers below it along. */
int dp_model_small_layer(struct dp_graph *graph, const char *prefix, int x, int number, uint32_t in);
/* Layers of the widths given, from x of widths[0], each with a ReLU (and dropout) behind it, or all but the last. */
int dp_model_layers(struct dp_graph *graph, const char *prefix, int x, const uint32_t *widths, int count,
                    bool relu_last, float dropout);
/* A logit plus a bias of the whole model, `name` [1, 1], which starts at 0. */
int dp_model_bias(struct dp_graph *graph, const char *name, int x);
/* One row a key, of a group, mean 0 and this standard deviation. */
int dp_model_rows(struct dp_graph *graph, int group, const char *name, uint32_t width, float deviation);

/* Each declares model->graph (new and empty) and sets the other fields. dp_model_open checks the graph. */
enum dp_status dp_model_logistic(const struct dp_model_text *text, struct dp_model *model,
                                 struct dp_error *err);
enum dp_status dp_model_mlp(const struct dp_model_text *text, struct dp_model *model, struct dp_error *err);
enum dp_status dp_model_fm(const struct dp_model_text *text, struct dp_model *model, struct dp_error *err);
enum dp_status dp_model_mf(const struct dp_model_text *text, struct dp_model *model, struct dp_error *err);
enum dp_status dp_model_neumf(const struct dp_model_text *text, struct dp_model *model, struct dp_error *err);
enum dp_status dp_model_wide_deep(const struct dp_model_text *text, struct dp_model *model,
                                  struct dp_error *err);
enum dp_status dp_model_deepfm(const struct dp_model_text *text, struct dp_model *model,
                               struct dp_error *err);
enum dp_status dp_model_dlrm(const struct dp_model_text *text, struct dp_model *model, struct dp_error *err);
enum dp_status dp_model_skipgram(const struct dp_model_text *text, struct dp_model *model,
                                 struct dp_error *err);
enum dp_status dp_model_lstm(const struct dp_model_text *text, struct dp_model *model, struct dp_error *err);

#endif
