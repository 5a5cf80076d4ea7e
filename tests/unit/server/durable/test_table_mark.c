/* A table's specification outlives its server: each field by itself, through the mark's bytes and through a shard that is
 * opened again. A field that the mark forgot would come back as 0 and train on under other settings, silently. */
#include "server/durable/table_mark.h"
#include "tests/unit/server/shard/bed.h"

#include <stddef.h>
#include <string.h>

#define SESSION 1u

/* Each field of the specification with the kind that uses it and a value that is nobody's default. */
struct field {
    const char *name;
    size_t offset, size;
    enum dp_optimizer_kind kind;
    enum dp_init_kind init;
    union {
        uint32_t u32;
        uint64_t u64;
        float f32;
    } value;
};

#define FIELD(field) #field, offsetof(struct dp_table_spec, field), sizeof(((struct dp_table_spec *)0)->field)
static const struct field FIELDS[] = {
    {FIELD(dim), DP_OPT_SGD, DP_INIT_ZERO, {.u32 = 5}},
    {FIELD(seed), DP_OPT_SGD, DP_INIT_ZERO, {.u64 = UINT64_C(0xfedcba9876543210)}},
    {FIELD(init.scale), DP_OPT_SGD, DP_INIT_NORMAL, {.f32 = 0.375f}},
    {FIELD(init.scale), DP_OPT_SGD, DP_INIT_UNIFORM, {.f32 = 0.375f}},
    {FIELD(init.fan_in), DP_OPT_SGD, DP_INIT_HE, {.u32 = 70001}},
    {FIELD(init.fan_out), DP_OPT_SGD, DP_INIT_XAVIER, {.u32 = 70002}},
    {FIELD(optimizer.l2), DP_OPT_SGD, DP_INIT_ZERO, {.f32 = 0.011f}},
    {FIELD(optimizer.l2), DP_OPT_ADAGRAD, DP_INIT_ZERO, {.f32 = 0.011f}},
    {FIELD(optimizer.l2), DP_OPT_ADAM, DP_INIT_ZERO, {.f32 = 0.011f}},
    {FIELD(optimizer.l2), DP_OPT_FTRL, DP_INIT_ZERO, {.f32 = 0.011f}},
    {FIELD(optimizer.momentum), DP_OPT_SGD, DP_INIT_ZERO, {.f32 = 0.625f}},
    {FIELD(optimizer.beta1), DP_OPT_ADAM, DP_INIT_ZERO, {.f32 = 0.625f}},
    {FIELD(optimizer.beta2), DP_OPT_ADAM, DP_INIT_ZERO, {.f32 = 0.625f}},
    {FIELD(optimizer.epsilon), DP_OPT_ADAM, DP_INIT_ZERO, {.f32 = 0.125f}},
    {FIELD(optimizer.epsilon), DP_OPT_ADAGRAD, DP_INIT_ZERO, {.f32 = 0.125f}},
    {FIELD(optimizer.decay), DP_OPT_ADAM, DP_INIT_ZERO, {.f32 = 0.013f}},
    {FIELD(optimizer.l1), DP_OPT_FTRL, DP_INIT_ZERO, {.f32 = 0.017f}},
    {FIELD(optimizer.ftrl_beta), DP_OPT_FTRL, DP_INIT_ZERO, {.f32 = 2.5f}},
    {FIELD(optimizer.accumulator), DP_OPT_ADAGRAD, DP_INIT_ZERO, {.f32 = 0.75f}},
};
#define FIELDS_LEN (sizeof FIELDS / sizeof FIELDS[0])

static struct dp_table_spec plain(const struct field *field)
{
    struct dp_table_spec spec = {.name = "t", .dim = 2, .seed = 7};
    spec.optimizer = dp_optimizer_defaults(field->kind);
    spec.init.kind = field->init;
    spec.init.scale = field->init == DP_INIT_NORMAL || field->init == DP_INIT_UNIFORM ? 1 : 0;
    spec.init.fan_in = field->init == DP_INIT_HE || field->init == DP_INIT_XAVIER;
    spec.init.fan_out = field->init == DP_INIT_XAVIER;
    return spec;
}

static struct dp_table_spec spec_with(const struct field *field)
{
    struct dp_table_spec spec = plain(field);
    struct dp_error err = {0};
    memcpy((char *)&spec + field->offset, &field->value, field->size);
    if (dp_table_check(&spec, &err) != DP_OK)
        fail_msg("%s", err.text);
    return spec;
}

/* Whether the list above has every field: a member that is added to a specification must be added there too. */
static void every_field_is_listed(void **state)
{
    bool covered[sizeof(struct dp_table_spec)] = {false};
    memset(covered, true, sizeof((struct dp_table_spec *)0)->name);
    memset(covered + offsetof(struct dp_table_spec, init.kind), true, sizeof(enum dp_init_kind));
    memset(covered + offsetof(struct dp_table_spec, optimizer.kind), true, sizeof(enum dp_optimizer_kind));
    for (size_t i = 0; i < FIELDS_LEN; i++)
        memset(covered + FIELDS[i].offset, true, FIELDS[i].size);
    size_t missing = 0; /* what is left must be padding */
    for (size_t i = 0; i < sizeof covered; i++)
        missing += !covered[i];
    size_t members = sizeof((struct dp_table_spec *)0)->name + sizeof(uint32_t) + sizeof(uint64_t) +
                     sizeof(struct dp_init_spec) + sizeof(struct dp_optimizer_spec);
    assert_int_equal(missing, sizeof(struct dp_table_spec) - members);
}

static void each_field_goes_through_the_mark(void **state)
{
    for (size_t i = 0; i < FIELDS_LEN; i++) {
        char bytes[DP_TABLE_MARK_BYTES];
        struct dp_table_spec want = spec_with(&FIELDS[i]), got;
        uint64_t rows = 0;
        struct dp_error err = {0};
        struct dp_store_mark mark = dp_table_mark_encode(&want, 1000 + i, bytes);
        if (dp_table_mark_decode(&mark, &got, &rows, &err) != DP_OK ||
            dp_table_same(&want, &got, &err) != DP_OK)
            fail_msg("%s of %s: %s", FIELDS[i].name, dp_optimizer_name(FIELDS[i].kind), err.text);
        assert_int_equal(rows, 1000 + i);
    }
}

/* The same specification is the same table after a restart, and one without that field's value is another. */
static void each_field_goes_through_a_restart(void **state)
{
    for (size_t i = 0; i < FIELDS_LEN; i++) {
        struct bed bed = {0};
        struct dp_table_spec spec = spec_with(&FIELDS[i]), other = plain(&FIELDS[i]);
        bed_open(&bed, 0, 1);
        bed_meet(&bed, SESSION);
        bed_make_table(&bed, SESSION, 1, &spec);
        bed_restart(&bed);
        bed_meet(&bed, SESSION);
        uint64_t same = bed_create(&bed, SESSION, 1, &spec);
        bed_turn(&bed);
        const struct bed_reply *answer = bed_reply_to(&bed, same);
        if (!answer || answer->reply.status != DP_OK)
            fail_msg("%s of %s: %s", FIELDS[i].name, dp_optimizer_name(FIELDS[i].kind),
                     answer ? answer->reply.reason : "no answer");
        uint64_t another = bed_create(&bed, SESSION, 2, &other);
        bed_turn(&bed);
        (void)bed_expect(&bed, another, DP_EXISTS);
        bed_close(&bed);
    }
}

static void marks_that_are_none_are_refused(void **state)
{
    char bytes[DP_TABLE_MARK_BYTES], value[DP_TABLE_MARK_BYTES + 1];
    struct dp_table_spec spec = spec_with(&FIELDS[0]), got;
    uint64_t rows;
    struct dp_error err = {0};
    const struct dp_store_mark whole = dp_table_mark_encode(&spec, 1, bytes);
    struct dp_store_mark mark = whole;
    mark.value_bytes--;
    assert_int_equal(dp_table_mark_decode(&mark, &got, &rows, &err), DP_CORRUPT);
    mark = whole;
    memcpy(value, whole.value, whole.value_bytes);
    mark.value = value;
    mark.value_bytes++;
    assert_int_equal(dp_table_mark_decode(&mark, &got, &rows, &err), DP_CORRUPT);
    mark.value_bytes--;
    assert_int_equal(dp_table_mark_decode(&mark, &got, &rows, &err), DP_OK);
    value[0]++; /* another format */
    assert_int_equal(dp_table_mark_decode(&mark, &got, &rows, &err), DP_CORRUPT);
    value[0]--;
    memset(value + 52, 0, 4); /* no width */
    assert_int_equal(dp_table_mark_decode(&mark, &got, &rows, &err), DP_CORRUPT);
    mark = whole;
    mark.key_bytes--;
    assert_int_equal(dp_table_mark_decode(&mark, &got, &rows, &err), DP_CORRUPT);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(every_field_is_listed),
                                       cmocka_unit_test(each_field_goes_through_the_mark),
                                       cmocka_unit_test(each_field_goes_through_a_restart),
                                       cmocka_unit_test(marks_that_are_none_are_refused)};
    return cmocka_run_group_tests_name("table_mark", tests, NULL, NULL);
}
