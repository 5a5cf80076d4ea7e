/* Graph: a model as a static list of operations, with a derived backward pass.
 *     declare (each call adds a node, inputs before users)  ->  check  ->  program.h runs it
 * A node is a matrix [examples, width] of f32. A parameter is a table on the servers:
 *     sparse  the rows of a group's distinct keys, [distinct, width]; its gradient is the sparse gradient
 *     dense   a matrix [rows, width], cut into table rows of `block` floats, row-major (key = block number)
 * A node or parameter may be used any number of times: its gradients are summed in the backward pass.
 * Thread    Constant after check.
 * Memory    The graph owns all that it returns; names are copied.
 * Failure   Declaring never fails: the graph keeps the first mistake (shapes that do not fit, too many
 *           nodes), and dp_graph_check reports it with the operation's name and shapes; later calls on a
 *           broken graph do nothing. Numbers that no call returned, and a name given twice, are asserted. */
#ifndef DP_COMPUTE_GRAPH_H
#define DP_COMPUTE_GRAPH_H

#include "common/model/table.h"
#include "worker/read/batch.h"

#include <stdbool.h>

enum dp_op {
    DP_OP_INPUT_DENSE, /* the batch's dense columns                        [B, width] */
    /* Over the entries j of example i in a list, with r(j) = value[j] * P[slot[j]], P sparse: */
    DP_OP_GATHER_SUM,   /* out[i] = sum of r(j)                             [B, P.width] */
    DP_OP_GATHER_MEAN,  /* their mean; 0 without entries                    [B, P.width] */
    DP_OP_GATHER,       /* r(j) in sequence; every example has `each`       [B, each * P.width] */
    DP_OP_INTERACTIONS, /* factorization machine (Rendle 2010): sum over pairs j < k of r(j) . r(k), computed
                           as half of |sum r(j)|^2 - sum |r(j)|^2           [B, 1] */
    DP_OP_MATMUL,       /* X [B, k] times dense P [k, width]                [B, width] */
    DP_OP_BIAS,         /* X [B, width] + dense P [1, width], each row      [B, width] */
    DP_OP_RELU,
    DP_OP_SIGMOID,
    DP_OP_TANH,
    DP_OP_DROPOUT,  /* 0 with probability `rate`, else x / (1 - rate); in training only. Which elements is a
                           function of (seed, epoch, number of the minibatch, operation)  [B, width] */
    DP_OP_SLICE,    /* columns from .. from + width - 1                 [B, width] */
    DP_OP_ADD,      /* X + Y, both [B, width]: residuals, wide and deep       [B, width] */
    DP_OP_MULTIPLY, /* X * Y, element by element                        [B, width] */
    DP_OP_DOT,      /* X . Y, row by row                                [B, 1] */
    DP_OP_CONCAT,   /* the columns of up to 32, one after the other     [B, sum of widths] */
    DP_OP_PAIRS, /* X as n vectors of width / n: the products x_a . x_b of all pairs a < b, (0,1), (0,2), ...
                           (1,2), ... (DLRM: Naumov et al. 2019)            [B, n (n - 1) / 2] */
    DP_OP_NEAR, /* over the entries j of example i in a list: the sum of |v| log(1 + e^(-sign(v) X[i] . P[slot[j]])), v =
                           value[j]: above 0 for rows that belong to it, below for sampled ones (negative sampling,
                           Mikolov et al. 2013)                             [B, 1] */
    DP_OP_SOFTMAX_LOSS, /* logits [B, C], class labels; mean over examples of -log softmax[label]    [1, 1] */
    DP_OP_LOGISTIC_LOSS, /* logit [B, 1], labels 0 .. 1; mean of log(1 + e^x) - y x                  [1, 1] */
    DP_OP_SQUARED_LOSS,  /* X [B, 1], labels; mean of (x - y)^2                                      [1, 1] */
    DP_OP_MEAN_LOSS,     /* X [B, 1], no labels: its mean                                            [1, 1] */
    DP_OP_BPR_LOSS,      /* X, Y [B, 1], no labels; mean of log(1 + e^(y - x)): ranks x above y (Rendle 2009)
                            [1, 1] */
    DP_OPS
};

#define DP_GRAPH_NODES_MAX      1024
#define DP_GRAPH_PARAMETERS_MAX 64
/* Class labels up to this size are exact in f32, and fit BLAS's 32-bit sizes. */
#define DP_GRAPH_WIDTH_MAX (1u << 24)
/* Floats of one dense parameter (8 GiB): every worker holds all of it, and its gradient. */
#define DP_GRAPH_DENSE_MAX (1ull << 31)

#define DP_NODE_INPUTS_MAX 32

struct dp_node {
    enum dp_op op;
    int inputs; /* number of inputs */
    int input[DP_NODE_INPUTS_MAX];
    int parameter; /* or -1 */
    int list;      /* of the batch, or -1 */
    uint32_t width;
    uint32_t from;   /* SLICE: its first column; PAIRS: number of vectors */
    float rate;      /* DROPOUT */
    bool recomputed; /* dp_graph_recompute */
};

struct dp_parameter {
    struct dp_table_spec table; /* name, dim (sparse: width; dense: block), init, optimizer, seed */
    bool sparse;
    float l2;             /* added to the optimizer's */
    float prior;          /* sparse */
    uint32_t group;       /* sparse: the group of its keys */
    uint32_t rows, width; /* dense: [rows, width]; sparse: rows is 0 */
};

struct dp_graph;

enum dp_status dp_graph_new(struct dp_graph **out, struct dp_error *err);
void dp_graph_free(struct dp_graph **graph);

/* Declare what the graph reads of a batch (worker/read/batch.h) besides its dense columns: groups (kinds of
 * keys), and lists of entries with keys of one group; each: entries in every example, 0: it varies. Both are
 * numbered from 0 in the order of declaration, which must be that of the data set. */
int dp_graph_group(struct dp_graph *graph);
int dp_graph_list(struct dp_graph *graph, int group, uint32_t each);

/* L2 regularisation of this parameter alone, added to that of the optimizer, which is set later. */
void dp_graph_add_l2(struct dp_graph *graph, int parameter, float l2);
/* L2 regularisation of the factors of each dot product, by example: their gradients are those of the mean
 * loss plus l2 / 2 times the mean of |x|^2 + |y|^2. The reported loss is without it. Unlike dp_graph_add_l2
 * it is no setting of a table, and means the same in minibatches of any size. */
void dp_graph_set_dot_l2(struct dp_graph *graph, float l2);
float dp_graph_dot_l2(const struct dp_graph *graph);
/* A Gaussian prior around 0 of a sparse parameter's weights. dp_graph_set_examples puts it in force (0: out
 * of it): each row of a minibatch has prior / examples times itself added to its gradient, so it fades as
 * examples become more. Like dot_l2 it is no setting of a table. */
void dp_graph_set_prior(struct dp_graph *graph, int parameter, float prior);
void dp_graph_set_examples(struct dp_graph *graph, uint64_t examples);
/* The prior / examples of a parameter, and the floats that a program keeps for these and dot_l2. */
float dp_graph_prior(const struct dp_graph *graph, int parameter);
bool dp_graph_has_prior(const struct dp_graph *graph); /* in force */
size_t dp_graph_shrunk(const struct dp_graph *graph, const struct dp_batch_shape *worst);
/* Declare parameters. The returned number is >= 0 also on a broken graph. The model's caller sets optimizer
 * and seed (dp_graph_set_optimizer). Names become table names. */
int dp_graph_sparse(struct dp_graph *graph, int group, const char *name, uint32_t width,
                    struct dp_init_spec init);
int dp_graph_dense(struct dp_graph *graph, const char *name, uint32_t rows, uint32_t width,
                   struct dp_init_spec init);
/* The bias that the loss's input ends with has this initial value; without one of width 1: nothing. */
void dp_graph_set_start(struct dp_graph *graph, float value);
void dp_graph_set_optimizer(struct dp_graph *graph, const struct dp_optimizer_spec *optimizer, uint64_t seed);

/* Declare operations. Each returns its node. */
int dp_graph_input(struct dp_graph *graph, uint32_t width);
/* The list's keys are of the parameter's group. */
int dp_graph_gather_sum(struct dp_graph *graph, int sparse_parameter, int list);
int dp_graph_gather_mean(struct dp_graph *graph, int sparse_parameter, int list);
/* The list has the same number of entries in every example. */
int dp_graph_gather(struct dp_graph *graph, int sparse_parameter, int list);
int dp_graph_interactions(struct dp_graph *graph, int sparse_parameter, int list);
int dp_graph_matmul(struct dp_graph *graph, int x, int dense_parameter);
int dp_graph_bias(struct dp_graph *graph, int x, int dense_parameter);
int dp_graph_unary(struct dp_graph *graph, enum dp_op op, int x); /* RELU, SIGMOID, TANH */
int dp_graph_dropout(struct dp_graph *graph, int x, float rate);  /* 0 <= rate < 1 */
int dp_graph_slice(struct dp_graph *graph, int x, uint32_t from, uint32_t width);
int dp_graph_add(struct dp_graph *graph, int x, int y);
int dp_graph_multiply(struct dp_graph *graph, int x, int y);
int dp_graph_dot(struct dp_graph *graph, int x, int y);
int dp_graph_concat(struct dp_graph *graph, const int *x, int count); /* 1 .. DP_NODE_INPUTS_MAX */
int dp_graph_pairs(struct dp_graph *graph, int x, uint32_t vectors);  /* 2 or more, of equal width */
/* x has the width of the parameter, whose group the list's keys are of. */
int dp_graph_near(struct dp_graph *graph, int x, int sparse_parameter, int list);
/* Declares the loss, the last operation of a graph. `x` is also the output of predict (logits or value). */
void dp_graph_loss(struct dp_graph *graph, enum dp_op op, int x);
/* The same with two inputs; predict outputs x. */
void dp_graph_loss_of_pair(struct dp_graph *graph, enum dp_op op, int x, int y);

/* Activation checkpointing (Chen et al. 2016): the output of this operation is not kept for the backward pass
 * but computed again, so that other values can use its memory in between. Results are equal, bit for bit. */
void dp_graph_recompute(struct dp_graph *graph, int node);

/* DP_ARGUMENT for the first mistake, a missing loss, a node or parameter that the loss does not depend on, or
 * a table that dp_table_check refuses. */
enum dp_status dp_graph_check(const struct dp_graph *graph, struct dp_error *err);

const char *dp_op_name(enum dp_op op); /* "matmul" */

/* Reading a graph, for programs, the oracle of the tests, and the creation of tables. */
int dp_graph_nodes(const struct dp_graph *graph);
const struct dp_node *dp_graph_node(const struct dp_graph *graph, int node);
int dp_graph_groups(const struct dp_graph *graph);
int dp_graph_lists(const struct dp_graph *graph);
struct dp_graph_list {
    uint32_t group, each;
};
struct dp_graph_list dp_graph_list_at(const struct dp_graph *graph, int list);
int dp_graph_parameters(const struct dp_graph *graph);
const struct dp_parameter *dp_graph_parameter(const struct dp_graph *graph, int parameter);
int dp_graph_output(const struct dp_graph *graph);       /* the loss's first input */
uint32_t dp_graph_columns(const struct dp_graph *graph); /* the dense ones that it reads; 0: none */
uint64_t dp_graph_seed(const struct dp_graph *graph);

/* The size in floats of a dense parameter's buffer: rows * width, rounded up to whole blocks. */
static inline size_t dp_parameter_floats(const struct dp_parameter *p)
{
    size_t n = (size_t)p->rows * p->width, block = p->table.dim;
    return (n + block - 1) / block * block;
}

#endif
