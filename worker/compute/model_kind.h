/* Model kind: the interface of each file in models/, and the parts that models are made of: parsed text,
 * layers, biases, rows. The table of all kinds is in models/model.c. To add a model: ADDING.md.
 * Thread    Any: a kind is constant.
 * Failure   DP_ARGUMENT: the error names the fault in the model's text. */
#ifndef DP_COMPUTE_MODEL_KIND_H
#define DP_COMPUTE_MODEL_KIND_H

#include "worker/compute/graph.h"
#include "worker/read/dataset.h"
#include "worker/read/measure.h"

#define DP_MODEL_OPTIONS_MAX 7

/* For a training that does not say (worker/context/defaults.h). */
#define DP_MODEL_BATCH_MAX    128u
#define DP_MODEL_EXAMPLES_MAX UINT64_C(20000000)
#define DP_MODEL_RATE         0.001

struct dp_model {
    struct dp_graph *graph;
    enum dp_data_form form; /* of its data */
    bool rated;             /* DP_FORM_PAIRS: labels are the ratings of pairs, and nothing is sampled */
    uint32_t width;         /* columns */
    uint32_t fields;        /* categories or tokens */
    uint32_t pooled;        /* lists of categories */
    enum dp_labels labels;
    uint32_t classes; /* DP_LABELS_CLASS */
    /* For a training whose number of epochs is not given (worker/context/defaults.h). 0 in declare: the
     * kind's. rare_steps: at most as many times the steps where a label is rare; 0: no more. */
    uint32_t steps_wanted, epochs_min, rare_steps;
    /* NULL, or "key=value,...": settings of a cluster file with which `downpour run` begins a new training of
     * this model, where no flag gives them. */
    const char *settings;
    /* The same, as numbers, since rules compute with them (worker/context/defaults.h, deploy/compare): its
     * largest minibatch, the most examples in all, and the rate. 0 in declare: usual. */
    uint32_t batch_max;
    uint64_t examples_max;
    double rate;
    double rate_further; /* of a run that continues another one; 0 in declare: that rate */
    bool starts_at_half; /* a probability, not at the odds of the label */
    bool decays; /* that rate falls to 0 over a run, in a line: else small data is fitted too closely */
    /* Whether a pair's score is the product of its user's and its item's vectors, plus biases: the
     * parameters, or -1. */
    bool has_factors;
    struct dp_model_factors {
        int user, item, user_bias, item_bias, bias;
    } factors;
};

/* "name:shape,option=value,...", parsed. The options' names are among those that the kind allows, each at
 * most once. */
struct dp_model_text {
    const struct dp_model_kind *kind;
    const char *shape; /* "" when there is none */
    int options;
    struct {
        const char *name, *value;
    } option[DP_MODEL_OPTIONS_MAX];
};

#define DP_MODEL_FULL_BYTES 256
struct dp_model_full {
    char shape[DP_MODEL_FULL_BYTES], options[DP_MODEL_FULL_BYTES];
};

/* What a model is, and what `downpour run --help models` says of it. */
struct dp_model_kind {
    const char *name;    /* "fm" */
    const char *grammar; /* "fm:K" */
    const char *example; /* opens as it is */
    const char *about;   /* description and source */
    const char *shape;   /* the meaning of each part of the grammar; NULL: it has no shape */
    const char *reads;   /* data and labels */
    struct dp_model_option {
        const char *name;
        const char *values; /* "logistic|squared" */
        const char *start;  /* the default */
        const char *about;
    } option[DP_MODEL_OPTIONS_MAX]; /* name NULL ends them */
    /* Declares model->graph (new and empty) and sets the other fields. dp_model_open checks the graph. */
    enum dp_status (*declare)(const struct dp_model_text *text, struct dp_model *model, struct dp_error *err);
    /* Writes the full shape of a text that leaves out what its training file has, and further options
     * (",a=1"). NULL: nothing is left out. */
    enum dp_status (*complete)(const struct dp_model_text *text, const struct dp_measure *has,
                               struct dp_model_full *out, struct dp_error *err);
    /* For dp_model. Rows of users, items and categories fit noise when they are trained on too often. */
    uint32_t steps_wanted, epochs_min;
    bool decays; /* with two classes at most */
};

/* The prior of a weight of a feature (dp_graph_set_prior). Without one, a feature with few labels 1 fits them
 * exactly. 1 is scikit-learn's default; here a row shrinks only in the minibatches that have it. */
#define DP_MODEL_PRIOR 2.0f
/* With it, logistic and fm gain from this many times the steps. Hidden layers fit noise then. */
#define DP_MODEL_RARE_STEPS 5

extern const struct dp_model_kind dp_model_logistic, dp_model_mlp, dp_model_fm, dp_model_mf, dp_model_neumf,
    dp_model_wide_deep, dp_model_deepfm, dp_model_dlrm, dp_model_skipgram, dp_model_lstm;

/* The value of an option, or its default if it is not given. */
const char *dp_model_option(const struct dp_model_text *text, const char *name);

bool dp_model_has_option(const struct dp_model_text *text, const char *name);
/* For `complete`: appends ",columns=N,fields=N,lists=N" unless they are given, or are the defaults.
 * DP_ARGUMENT: the file has neither categories nor lists. */
enum dp_status dp_model_complete_fields(const struct dp_model_text *text, const struct dp_measure *has,
                                        struct dp_model_full *out, struct dp_error *err);

/* Parses "784-256-10" into at most `room` widths. `what`: an example, for messages. */
enum dp_status dp_model_widths(const char *text, uint32_t *widths, int room, int *count, const char *what,
                               struct dp_error *err);
/* Parses a shape that is one integer of 1 .. high. */
enum dp_status dp_model_shape_number(const struct dp_model_text *text, const char *what, uint32_t high,
                                     uint32_t *out, struct dp_error *err);
/* Parses an option that is an integer of low .. high. */
enum dp_status dp_model_number(const struct dp_model_text *text, const char *name, uint64_t low,
                               uint64_t high, uint32_t *out, struct dp_error *err);
/* Ends the graph with the loss of one output by the option "loss", and sets the labels. */
#define DP_MODEL_LOSS                                                                                        \
    {                                                                                                        \
        "loss", "logistic|squared", "logistic", "logistic: labels 0 and 1; squared: regression"              \
    }
enum dp_status dp_model_loss(const struct dp_model_text *text, struct dp_model *model, int x,
                             struct dp_error *err);
/* x times prefix.w<number> plus prefix.b<number>. The weights are initialized by He's rule before a ReLU,
 * else by Glorot's. */
int dp_model_layer(struct dp_graph *graph, const char *prefix, int x, int number, uint32_t in, uint32_t out,
                   bool before_relu);
/* The same with one output that starts near 0 (weights of mean 0 and deviation 0.01): the first steps would
 * undo a large initial output, and change all layers below it too. */
int dp_model_small_layer(struct dp_graph *graph, const char *prefix, int x, int number, uint32_t in);
/* Layers of the given widths, from x of widths[0], each followed by a ReLU and dropout; without relu_last not
 * the last. */
int dp_model_layers(struct dp_graph *graph, const char *prefix, int x, const uint32_t *widths, int count,
                    bool relu_last, float dropout);
/* A logit plus a bias of the whole model, `name` [1, 1], initially 0. */
int dp_model_bias(struct dp_graph *graph, const char *name, int x);
/* The option "lists": columns of lists of categories. */
#define DP_MODEL_LISTS_MAX 16
#define DP_MODEL_LISTS                                                                                       \
    {                                                                                                        \
        "lists", "N", "0",                                                                                   \
            "lists of categories in an example (0 .. 16), each the mean of its rows; run: those of the file" \
    }
/* Rows for the keys of a group, initialized with mean 0 and this standard deviation. */
int dp_model_rows(struct dp_graph *graph, int group, const char *name, uint32_t width, float deviation);

#endif
