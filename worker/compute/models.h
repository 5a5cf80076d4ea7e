/* Models: what a model's function gets to work with, and the functions that model.c knows. Inside this room
 * only. To add a model: a file with one function, its line here, its line in model.c's table.              */
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

/* Each declares model->graph (new and empty) and sets the other fields. dp_model_open checks the graph. */
enum dp_status dp_model_logistic(const struct dp_model_text *text, struct dp_model *model,
                                 struct dp_error *err);
enum dp_status dp_model_mlp(const struct dp_model_text *text, struct dp_model *model, struct dp_error *err);

#endif
