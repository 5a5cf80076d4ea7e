/* Table: the settings of a table without its rows: name, width, initial values and optimizer.
 * A table's id is a hash of its name, so servers need not agree on it. If two names have one id, a server
 * refuses the second by name. */
#ifndef DP_MODEL_TABLE_H
#define DP_MODEL_TABLE_H

#include "common/base/status.h"

#include <stddef.h>
#include <stdint.h>

#define DP_TABLE_NAME_MAX 47
#define DP_TABLE_DIM_MAX  65536

/* Initial value of a weight, a pure function of (seed, table name, key, column): init.h. */
enum dp_init_kind {
    DP_INIT_ZERO = 0,
    DP_INIT_NORMAL = 1,   /* mean 0, standard deviation `scale` */
    DP_INIT_UNIFORM = 2,  /* [-scale, scale) */
    DP_INIT_XAVIER = 3,   /* uniform, limit sqrt(6 / (fan_in + fan_out)) (Glorot and Bengio 2010, eq. 16) */
    DP_INIT_HE = 4,       /* normal, deviation sqrt(2 / fan_in) (He et al. 2015, eq. 10) */
    DP_INIT_CONSTANT = 5, /* `scale`, in each column */
};

struct dp_init_spec {
    enum dp_init_kind kind;
    float scale;
    uint32_t fan_in, fan_out;
};

/* What else is to know of each is in optimizer_kinds.h. g' = g + l2 w.
 *     SGD       v = momentum v + g';  w -= rate v
 *     Adagrad   n += g'^2;  w -= rate g' / (sqrt(n) + epsilon)                          (Duchi et al. 2011)
 *     Adam      per-row lazy: t is this row's own step count; rows that are not pushed do not decay.
 *               m = b1 m + (1-b1) g';  v = b2 v + (1-b2) g'^2
 *               w -= rate decay w;  w -= rate (m / (1-b1^t)) / (sqrt(v / (1-b2^t)) + epsilon)
 *               (Kingma and Ba 2015, alg. 1; decay: Loshchilov and Hutter 2019)
 *     FTRL      n' = n + g^2;  s = (sqrt(n') - sqrt(n)) / rate;  z += g - s w;
 *               w = |z| <= l1 ? 0 : (sign(z) l1 - z) / ((ftrl_beta + sqrt(n')) / rate + l2)
 *               At the first push z starts where the closed form gives the row's initial weight.
 *               (McMahan et al. 2013, alg. 1) */
enum dp_optimizer_kind {
    DP_OPT_SGD = 0, /* the velocity v is kept only where momentum > 0 */
    DP_OPT_ADAGRAD = 1,
    DP_OPT_ADAM = 2, /* decay > 0 makes it AdamW */
    DP_OPT_FTRL = 3,
};

/* Names for --optimizer and 'training.optimizer.kind'. */
#define DP_OPTIMIZER_NAMES "sgd, momentum, adagrad, adam, adamw or ftrl"

/* Hyperparameters; the learning rate is not among them: each push carries the rate of its step. Fields that a
 * kind does not use are 0. */
struct dp_optimizer_spec {
    enum dp_optimizer_kind kind;
    float l2; /* each kind: the gradient is g + l2 * w; FTRL: lambda2 of its closed form */
    float momentum;
    float beta1, beta2, epsilon;
    float decay;       /* decoupled */
    float l1;          /* FTRL: lambda1 */
    float ftrl_beta;   /* FTRL: beta of its per-coordinate rate */
    float accumulator; /* Adagrad: sum of squares at the start */
};

struct dp_table_spec {
    char name[DP_TABLE_NAME_MAX + 1]; /* [A-Za-z0-9_.-]+, so that it can stand in files and metrics */
    uint32_t dim;                     /* weights in a row, 1 .. DP_TABLE_DIM_MAX */
    uint64_t seed;
    struct dp_init_spec init;
    struct dp_optimizer_spec optimizer;
};

/* Widely used settings of a kind. */
struct dp_optimizer_spec dp_optimizer_defaults(enum dp_optimizer_kind kind);

/* DP_ARGUMENT, with the field, unless every field is within its range. */
enum dp_status dp_table_check(const struct dp_table_spec *spec, struct dp_error *err);
/* DP_EXISTS, naming the first field that differs, unless both describe the same table. */
enum dp_status dp_table_same(const struct dp_table_spec *have, const struct dp_table_spec *want,
                             struct dp_error *err);
/* Never 0. */
uint32_t dp_table_id(const char *name);

/* Names as flags and files have them ("adam", "normal"); NULL / -1 for an unknown one. "adamw" is not a kind:
 * it is adam with decay. */
const char *dp_optimizer_name(enum dp_optimizer_kind kind);
const char *dp_init_name(enum dp_init_kind kind);
int dp_optimizer_from_name(const char *name);

#endif
