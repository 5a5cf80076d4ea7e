/* table: every field out of its range is refused by name; two specs are the same only if every field is; ids
 * and names are pinned; a record's size follows from its optimizer. */
#include "tests/lib/test.h"

#include "common/model/optimizer_kinds.h"
#include "common/model/row.h"
#include "common/model/table.h"

#include <math.h>
#include <string.h>

static struct dp_table_spec spec_of(enum dp_optimizer_kind kind)
{
    struct dp_table_spec spec = {.name = "items.v-1_A", .dim = 16, .seed = 7};
    spec.init = (struct dp_init_spec){.kind = DP_INIT_NORMAL, .scale = 0.01f};
    spec.optimizer = dp_optimizer_defaults(kind);
    return spec;
}

static void refused(const struct dp_table_spec *spec, const char *word)
{
    struct dp_error err = {0};
    assert_int_equal(dp_table_check(spec, &err), DP_ARGUMENT);
    if (!strstr(err.text, word))
        fail_msg("'%s' does not name '%s'", err.text, word);
}

static void allowed(const struct dp_table_spec *spec)
{
    struct dp_error err = {0};
    if (dp_table_check(spec, &err) != DP_OK)
        fail_msg("refused: %s", err.text);
}

static void defaults_are_allowed(void **state)
{
    for (int kind = DP_OPT_SGD; kind <= DP_OPT_FTRL; kind++) {
        struct dp_table_spec spec = spec_of((enum dp_optimizer_kind)kind);
        allowed(&spec);
    }
}

static void bad_names_are_refused(void **state)
{
    static const char *const bad[] = {"", "a b", "a/b", "\xc3\xa4", "a\n", "a:"};
    struct dp_table_spec spec = spec_of(DP_OPT_SGD);
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        memset(spec.name, 0, sizeof spec.name);
        memcpy(spec.name, bad[i], strlen(bad[i]));
        refused(&spec, "name");
    }
    memset(spec.name, 'x', sizeof spec.name);
    refused(&spec, "too long");
    spec.name[DP_TABLE_NAME_MAX] = '\0';
    allowed(&spec);
    for (int c = 1; c < 256; c++) {
        spec.name[0] = (char)c;
        if (strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.-", c))
            allowed(&spec);
        else
            refused(&spec, "place 1");
    }
}

static void bad_widths_and_kinds_are_refused(void **state)
{
    struct dp_table_spec spec = spec_of(DP_OPT_SGD);
    spec.dim = 0;
    refused(&spec, "dim");
    spec.dim = DP_TABLE_DIM_MAX + 1;
    refused(&spec, "dim");
    spec.dim = DP_TABLE_DIM_MAX;
    allowed(&spec);
    spec = spec_of(DP_OPT_SGD);
    int unknown = 99;
    memcpy(&spec.optimizer.kind, &unknown, sizeof unknown);
    refused(&spec, "optimizer kind");
    spec = spec_of(DP_OPT_SGD);
    memcpy(&spec.init.kind, &unknown, sizeof unknown);
    refused(&spec, "init kind");
}

static void bad_initial_values_are_refused(void **state)
{
    struct dp_table_spec spec = spec_of(DP_OPT_SGD);
    static const float bad[] = {0, -1, NAN, INFINITY, 1e-31f, 1e31f};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        spec.init.scale = bad[i];
        refused(&spec, "scale");
    }
    spec.init = (struct dp_init_spec){.kind = DP_INIT_XAVIER, .fan_in = 0, .fan_out = 1};
    refused(&spec, "fan_in");
    spec.init = (struct dp_init_spec){.kind = DP_INIT_XAVIER, .fan_in = 1, .fan_out = 0};
    refused(&spec, "fan_out");
    spec.init = (struct dp_init_spec){.kind = DP_INIT_HE, .fan_in = 0};
    refused(&spec, "fan_in");
    spec.init.fan_in = 1;
    allowed(&spec);
    spec.init = (struct dp_init_spec){.kind = DP_INIT_ZERO};
    allowed(&spec);
    spec.init.scale = NAN;
    refused(&spec, "scale");
}

/* One hyperparameter: the kind that uses it, one that does not, the first values outside, the ends inside. */
struct limit {
    const char *name;
    size_t offset;
    enum dp_optimizer_kind user;
    int stranger; /* -1: each kind uses it */
    float below, least, most, above;
};

#define AT(field) #field, offsetof(struct dp_optimizer_spec, field)
static const struct limit LIMITS[] = {
    {AT(l2), DP_OPT_ADAM, -1, -1e-9f, 0, 1e30f, INFINITY},
    {AT(momentum), DP_OPT_SGD, DP_OPT_ADAM, -1e-9f, 0, 0x1.fffffep-1f, 1},
    {AT(beta1), DP_OPT_ADAM, DP_OPT_SGD, -1e-9f, 0, 0x1.fffffep-1f, 1},
    {AT(beta2), DP_OPT_ADAM, DP_OPT_FTRL, -1e-9f, 0, 0x1.fffffep-1f, 1},
    {AT(epsilon), DP_OPT_ADAM, DP_OPT_SGD, 0, 1e-15f, 1e30f, INFINITY},
    {AT(epsilon), DP_OPT_ADAGRAD, DP_OPT_FTRL, 0, 1e-15f, 1e30f, INFINITY},
    {AT(decay), DP_OPT_ADAM, DP_OPT_ADAGRAD, -1e-9f, 0, 1e30f, INFINITY},
    {AT(l1), DP_OPT_FTRL, DP_OPT_ADAM, -1e-9f, 0, 1e30f, INFINITY},
    {AT(ftrl_beta), DP_OPT_FTRL, DP_OPT_ADAM, 0, 1e-15f, 1e30f, INFINITY},
    {AT(accumulator), DP_OPT_ADAGRAD, DP_OPT_ADAM, -1e-9f, 0, 1e30f, INFINITY},
};

static struct dp_table_spec spec_with(enum dp_optimizer_kind kind, const struct limit *limit, float value)
{
    struct dp_table_spec spec = spec_of(kind);
    memcpy((char *)&spec.optimizer + limit->offset, &value, sizeof value);
    return spec;
}

static void hyperparameters_keep_their_ranges(void **state)
{
    for (size_t i = 0; i < sizeof LIMITS / sizeof LIMITS[0]; i++) {
        const struct limit *limit = &LIMITS[i];
        const float outside[] = {limit->below, limit->above, NAN, -INFINITY};
        for (size_t k = 0; k < sizeof outside / sizeof outside[0]; k++) {
            struct dp_table_spec spec = spec_with(limit->user, limit, outside[k]);
            refused(&spec, limit->name);
        }
        struct dp_table_spec least = spec_with(limit->user, limit, limit->least);
        struct dp_table_spec most = spec_with(limit->user, limit, limit->most);
        allowed(&least);
        allowed(&most);
        if (limit->stranger < 0)
            continue;
        struct dp_table_spec unused = spec_with((enum dp_optimizer_kind)limit->stranger, limit, 0.5f);
        refused(&unused, limit->name);
    }
}

static void differs(const struct dp_table_spec *have, const struct dp_table_spec *want, const char *field,
                    const char *had, const char *wanted)
{
    struct dp_error err = {0};
    assert_int_equal(dp_table_same(have, want, &err), DP_EXISTS);
    if (!strstr(err.text, field) || !strstr(err.text, had) || !strstr(err.text, wanted))
        fail_msg("'%s' lacks one of '%s' '%s' '%s'", err.text, field, had, wanted);
}

static void tables_that_differ_are_named_with_both_values(void **state)
{
    const struct dp_table_spec have = spec_of(DP_OPT_ADAM);
    struct dp_table_spec want = have;
    struct dp_error err = {0};
    assert_int_equal(dp_table_same(&have, &want, &err), DP_OK);
    /* What lies behind the name's end does not count. */
    want.name[DP_TABLE_NAME_MAX] = 'x';
    assert_int_equal(dp_table_same(&have, &want, &err), DP_OK);
    memcpy(want.name, "users", 6);
    differs(&have, &want, "name", "items.v-1_A", "users");
    want = have, want.dim = 32;
    differs(&have, &want, "dim", "16", "32");
    want = have, want.seed = UINT64_MAX;
    differs(&have, &want, "seed", "7", "18446744073709551615");
    want = have, want.init.kind = DP_INIT_UNIFORM;
    differs(&have, &want, "init", "normal", "uniform");
    want = have, want.init.scale = nextafterf(0.01f, 1);
    differs(&have, &want, "scale", "0.00999999978", "0.0100000007");
    want = have, want.init.fan_in = 3;
    differs(&have, &want, "fan_in", " 0", " 3");
    want = have, want.init.fan_out = 4;
    differs(&have, &want, "fan_out", " 0", " 4");
    want = have, want.optimizer.kind = DP_OPT_SGD;
    differs(&have, &want, "optimizer", "adam", "sgd");
    for (size_t i = 0; i < sizeof LIMITS / sizeof LIMITS[0]; i++) {
        want = spec_with(DP_OPT_ADAM, &LIMITS[i], 0.75f);
        differs(&have, &want, LIMITS[i].name, " ", "0.75");
    }
}

/* DP_OPTIMIZER_NAMES has each name that is known; a spec goes by the name that it was made of. */
static void names_go_both_ways(void **state)
{
    char names[] = DP_OPTIMIZER_NAMES, *rest = names;
    uint32_t kinds = 0;
    for (const char *name = strtok_r(names, ", ", &rest); name; name = strtok_r(NULL, ", ", &rest)) {
        struct dp_table_spec spec = spec_of(DP_OPT_SGD);
        if (strcmp(name, "or") == 0)
            continue;
        assert_true(dp_optimizer_named(name, &spec.optimizer));
        assert_string_equal(dp_optimizer_traits(&spec.optimizer)->name, name);
        allowed(&spec);
        bool kind = strcmp(dp_optimizer_name(spec.optimizer.kind), name) == 0;
        assert_int_equal(dp_optimizer_from_name(name), kind ? (int)spec.optimizer.kind : -1);
        kinds += kind;
    }
    assert_true(kinds > 0 && dp_optimizer_is_kind(kinds - 1) && !dp_optimizer_is_kind(kinds));
    assert_string_equal(dp_optimizer_name(DP_OPT_ADAM), "adam");
    assert_string_equal(dp_init_name(DP_INIT_HE), "he");
    assert_string_equal(dp_init_name(DP_INIT_CONSTANT), "constant");
    struct dp_optimizer_spec spec;
    assert_false(dp_optimizer_named("", &spec));
    assert_false(dp_optimizer_named("Adam", &spec));
    assert_int_equal(dp_optimizer_from_name(NULL), -1);
    int unknown = -1;
    memcpy(&spec.kind, &unknown, sizeof unknown);
    assert_null(dp_optimizer_name(spec.kind));
    assert_null(dp_optimizer_traits(&spec));
}

/* Each has a name, those of squares among them; no name twice in one kind. */
static void slots_have_names(void **state)
{
    for (int kind = 0; dp_optimizer_is_kind((uint32_t)kind); kind++) {
        const struct dp_optimizer_spec spec = dp_optimizer_defaults((enum dp_optimizer_kind)kind);
        const struct dp_optimizer_traits *traits = dp_optimizer_traits(&spec);
        uint32_t slots = dp_row_slots(&spec);
        assert_true(traits->squares <= slots);
        assert_true((traits->squares == 0) == (traits->square_factor == NULL));
        assert_null(dp_row_slot_name(&spec, slots));
        if (slots == 2)
            assert_string_not_equal(dp_row_slot_name(&spec, 0), dp_row_slot_name(&spec, 1));
    }
}

static void ids_are_pinned(void **state)
{
    assert_int_equal(dp_table_id("items"), 0x744189);
    assert_int_equal(dp_table_id("users"), 0xf066c2e5);
    assert_int_not_equal(dp_table_id(""), 0);
}

static void records_hold_their_slots(void **state)
{
    static const size_t slots[] = {0, 1, 2, 2};
    for (int kind = DP_OPT_SGD; kind <= DP_OPT_FTRL; kind++) {
        struct dp_table_spec spec = spec_of((enum dp_optimizer_kind)kind);
        assert_int_equal(dp_row_bytes(&spec), 16 + 4 * 16 * (1 + slots[kind]));
    }
    struct dp_table_spec spec = spec_of(DP_OPT_SGD);
    spec.optimizer.momentum = 0.9f;
    assert_int_equal(dp_row_bytes(&spec), 16 + 4 * 16 * 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(defaults_are_allowed),
        cmocka_unit_test(bad_names_are_refused),
        cmocka_unit_test(bad_widths_and_kinds_are_refused),
        cmocka_unit_test(bad_initial_values_are_refused),
        cmocka_unit_test(hyperparameters_keep_their_ranges),
        cmocka_unit_test(tables_that_differ_are_named_with_both_values),
        cmocka_unit_test(names_go_both_ways),
        cmocka_unit_test(slots_have_names),
        cmocka_unit_test(ids_are_pinned),
        cmocka_unit_test(records_hold_their_slots),
    };
    return cmocka_run_group_tests_name("table", tests, NULL, NULL);
}
