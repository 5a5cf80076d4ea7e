#include "common/model/optimizer_kinds.h"

#include <math.h>
#include <string.h>

/* The largest f32 below 1: the end of [0, 1). */
#define BELOW_1 0x1.fffffep-1f

enum {
    L2 = 1 << 0,
    MOMENTUM = 1 << 1,
    BETA1 = 1 << 2,
    BETA2 = 1 << 3,
    EPSILON = 1 << 4,
    DECAY = 1 << 5,
    L1 = 1 << 6,
    FTRL_BETA = 1 << 7,
    ACCUMULATOR = 1 << 8
};

#define AT(name) offsetof(struct dp_optimizer_spec, name)

/* In the order of those bits. Epsilon's least value lies above what is lost when a small gradient's square underflows, so that such a
 * gradient makes a small step and never a huge one. */
const struct dp_optimizer_field dp_optimizer_fields[] = {
    {"l2", AT(l2), 0, HUGE_VALF, "at least 0"},
    {"momentum", AT(momentum), 0, BELOW_1, "in [0, 1)"},
    {"beta1", AT(beta1), 0, BELOW_1, "in [0, 1)"},
    {"beta2", AT(beta2), 0, BELOW_1, "in [0, 1)"},
    {"epsilon", AT(epsilon), 1e-15f, HUGE_VALF, "at least 1e-15"},
    {"decay", AT(decay), 0, HUGE_VALF, "at least 0"},
    {"l1", AT(l1), 0, HUGE_VALF, "at least 0"},
    {"ftrl_beta", AT(ftrl_beta), 1e-15f, HUGE_VALF, "at least 1e-15"},
    {"accumulator", AT(accumulator), 0, HUGE_VALF, "at least 0"},
};
const size_t dp_optimizer_fields_len = sizeof dp_optimizer_fields / sizeof dp_optimizer_fields[0];

static float whole_square(const struct dp_optimizer_spec *spec)
{
    (void)spec;
    return 1.0f;
}

static float adam_square(const struct dp_optimizer_spec *spec)
{
    return 1.0f - spec->beta2;
}

#define ADAM                                                                                                 \
    .uses = L2 | BETA1 | BETA2 | EPSILON | DECAY, .slot = {"m", "v"}, .squares = 2,                          \
    .square_factor = adam_square, .corrected = true, .rate_is_step = true

/* A kind before the names that are made of it. */
static const struct dp_optimizer_traits ROWS[] = {
    {.name = "sgd", .spec = {.kind = DP_OPT_SGD}, .uses = L2 | MOMENTUM},
    {.name = "momentum",
     .spec = {.kind = DP_OPT_SGD, .momentum = 0.9f},
     .when = AT(momentum),
     .uses = L2 | MOMENTUM,
     .slot = {"velocity"}},
    {.name = "adagrad",
     .spec = {.kind = DP_OPT_ADAGRAD, .epsilon = 1e-10f},
     .uses = L2 | EPSILON | ACCUMULATOR,
     .slot = {"squares"},
     .squares = 1,
     .square_factor = whole_square},
    {.name = "adam", .spec = {.kind = DP_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f}, ADAM},
    {.name = "adamw",
     .spec = {.kind = DP_OPT_ADAM, .beta1 = 0.9f, .beta2 = 0.999f, .epsilon = 1e-8f, .decay = 0.01f},
     .when = AT(decay),
     ADAM},
    {.name = "ftrl",
     .spec = {.kind = DP_OPT_FTRL, .ftrl_beta = 1.0f},
     .uses = L2 | L1 | FTRL_BETA,
     .slot = {"z", "n"},
     .squares = 2,
     .square_factor = whole_square,
     .weights_in_slots = true},
};
#define ROWS_LEN (sizeof ROWS / sizeof ROWS[0])

float dp_optimizer_value(const struct dp_optimizer_spec *spec, size_t offset)
{
    float value;
    memcpy(&value, (const char *)spec + offset, sizeof value);
    return value;
}

const struct dp_optimizer_traits *dp_optimizer_traits(const struct dp_optimizer_spec *spec)
{
    for (size_t i = ROWS_LEN; i-- > 0;)
        if (ROWS[i].spec.kind == spec->kind &&
            (ROWS[i].when == 0 || dp_optimizer_value(spec, ROWS[i].when) > 0))
            return &ROWS[i];
    return NULL;
}

/* The row of the kind itself. */
static const struct dp_optimizer_traits *row_of(long long kind)
{
    for (size_t i = 0; i < ROWS_LEN; i++)
        if ((long long)ROWS[i].spec.kind == kind && ROWS[i].when == 0)
            return &ROWS[i];
    return NULL;
}

bool dp_optimizer_named(const char *name, struct dp_optimizer_spec *out)
{
    for (size_t i = 0; i < ROWS_LEN; i++)
        if (strcmp(ROWS[i].name, name) == 0) {
            *out = ROWS[i].spec;
            return true;
        }
    return false;
}

bool dp_optimizer_is_kind(uint32_t number)
{
    return row_of(number) != NULL;
}

const char *dp_optimizer_name(enum dp_optimizer_kind kind)
{
    const struct dp_optimizer_traits *row = row_of((long long)kind);
    return row ? row->name : NULL;
}

int dp_optimizer_from_name(const char *name)
{
    struct dp_optimizer_spec spec;
    bool known = name && dp_optimizer_named(name, &spec) && strcmp(dp_optimizer_name(spec.kind), name) == 0;
    return known ? (int)spec.kind : -1;
}

struct dp_optimizer_spec dp_optimizer_defaults(enum dp_optimizer_kind kind)
{
    const struct dp_optimizer_traits *row = row_of((long long)kind);
    return row ? row->spec : (struct dp_optimizer_spec){.kind = kind};
}

bool dp_optimizer_uses(enum dp_optimizer_kind kind, size_t offset)
{
    const struct dp_optimizer_traits *row = row_of((long long)kind);
    for (size_t i = 0; row && i < dp_optimizer_fields_len; i++)
        if (dp_optimizer_fields[i].offset == offset)
            return (row->uses & 1u << i) != 0;
    return false;
}
