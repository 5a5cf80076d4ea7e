/* Optimizer kinds: the properties of each optimizer, one row for each name that users give. A new optimizer
 * is its number and formula in table.h, a row here, and its two forms (optimizer_portable.c,
 * optimizer_avx2.c). One with a hyperparameter that no other has also needs a field in table.h and FIELDS,
 * the cluster file (common/config/fields.c), the wire (common/wire/spec.c) and the table's mark
 * (server/durable/table_mark.c).
 * Thread    Constant. */
#ifndef DP_MODEL_OPTIMIZER_KINDS_H
#define DP_MODEL_OPTIMIZER_KINDS_H

#include "common/model/table.h"

#include <stdbool.h>

#define DP_OPTIMIZER_SLOTS_MAX 2

struct dp_optimizer_traits {
    const char *name;              /* as flags and files have it */
    struct dp_optimizer_spec spec; /* the defaults, with the kind */
    /* Of a name that is a kind with one setting more ("adamw"): that setting's offset; a spec where it is over 0 goes by this name. 0:
     * the name is the kind's own. */
    size_t when;
    unsigned uses; /* hyperparameters, as bits of its own (dp_optimizer_uses) */
    /* Names of what it keeps for each weight, as inspections and exports have them; NULL: no more. */
    const char *slot[DP_OPTIMIZER_SLOTS_MAX];
    uint32_t
        squares; /* the slot, from 1, that is a sum of squares, of which the next push takes the root; 0: none */
    /* The factor with which a gradient's square is taken, which must stay finite; NULL: no square is taken. */
    float (*square_factor)(const struct dp_optimizer_spec *spec);
    bool corrected;        /* by the row's step count (dp_correction) */
    bool rate_is_step;     /* a step moves a weight by about the rate, however large the gradient is */
    bool weights_in_slots; /* a push makes the weights from the slots, not from the weights before */
};

/* NULL: its kind is none. */
const struct dp_optimizer_traits *dp_optimizer_traits(const struct dp_optimizer_spec *spec);
/* By a name of a row, with its defaults. false: unknown. */
bool dp_optimizer_named(const char *name, struct dp_optimizer_spec *out);
/* Whether the number is one of a kind: a peer's message may hold another. */
bool dp_optimizer_is_kind(uint32_t number);

/* A hyperparameter: where it lies in dp_optimizer_spec, and its range for the kinds that use it. */
struct dp_optimizer_field {
    const char *name;
    size_t offset;
    float least, most;
    const char *range;
};
extern const struct dp_optimizer_field dp_optimizer_fields[];
extern const size_t dp_optimizer_fields_len;

bool dp_optimizer_uses(enum dp_optimizer_kind kind, size_t offset);
float dp_optimizer_value(const struct dp_optimizer_spec *spec, size_t offset);

#endif
