/* Model help: the text of `downpour run --help models`.
 * Promise   There is an entry for each model that dp_model_open knows, with each of its options; the examples
 *           open. (A test compares.)
 * Thread    Constant.
 * Links     A library of its own without the models, so that the command does not link the operations. */
#ifndef DP_COMPUTE_MODELS_MODEL_HELP_H
#define DP_COMPUTE_MODELS_MODEL_HELP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define DP_MODEL_HELP_OPTIONS_MAX 5

struct dp_model_help {
    const char *name;    /* "fm" */
    const char *grammar; /* "fm:K" */
    const char *example; /* opens as it is */
    const char *about;   /* description and source */
    const char *shape;   /* the meaning of each part of the grammar; "" when it has none */
    const char *reads;   /* data and labels */
    struct {
        const char *name;
        const char *values; /* "logistic|squared" */
        const char *start;  /* the default */
        const char *about;
    } option[DP_MODEL_HELP_OPTIONS_MAX]; /* name NULL ends them */
};

/* The entry with this number, from 0; NULL after the last. */
const struct dp_model_help *dp_model_help(size_t number);
/* Prints one model, or with name NULL all models and their common grammar. False, with nothing written, when
 * there is no such model. */
bool dp_model_help_print(const char *name, FILE *file);

#endif
