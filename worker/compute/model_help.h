/* What a user may write as a model: the text of `downpour run --help models`.
 * Promise   Has an entry for each model that dp_model_open knows, with each of its options; examples open. (A test compares.)
 * Thread    Constant.
 * Links     A library of its own, without the models: the command has the text, and not what computes.   */
#ifndef DP_COMPUTE_MODEL_HELP_H
#define DP_COMPUTE_MODEL_HELP_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define DP_MODEL_HELP_OPTIONS_MAX 5

struct dp_model_help {
    const char *name;    /* "fm" */
    const char *grammar; /* "fm:K" */
    const char *example; /* opens as it is */
    const char *about;   /* what it is, and its source */
    const char *shape;   /* what each part of the grammar means; "": there are none */
    const char *reads;   /* which data, which labels */
    struct {
        const char *name;
        const char *values; /* "logistic|squared" */
        const char *start;  /* the default, as it would be written */
        const char *about;
    } option[DP_MODEL_HELP_OPTIONS_MAX]; /* name NULL ends them */
};

/* The entry with this number, from 0; NULL: there are no more. */
const struct dp_model_help *dp_model_help(size_t number);
/* name NULL: all models, and the grammar that they share. false: no model has that name; nothing is written. */
bool dp_model_help_print(const char *name, FILE *file);

#endif
