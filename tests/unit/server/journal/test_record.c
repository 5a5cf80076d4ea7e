/* Goal    What was put into a record comes out of it, of each kind; bytes that are none
 *         are CORRUPT.
 * Method  Records are encoded, joined and decoded; each shorter one, and one with a byte more, is refused. */
#include "server/journal/record.h"
#include "tests/lib/test.h"

#include "common/base/bytes.h"

#include <stdlib.h>
#include <string.h>

static char bytes[4096];
static struct dp_request push, out;

static const uint64_t keys[3] = {1, 5, 9};
static const float values[6] = {1, 2, 3, 4, 5, 6};

static void fill(void)
{
    push =
        (struct dp_request){.kind = DP_REQUEST_PUSH, .stream = 7, .number = 11, .rate = 0.5f, .sections = 2};
    push.section[0] = (struct dp_section){
        .table = 3, .rows = 3, .keys = keys, .values = values, .value_bytes = sizeof values};
    push.section[1] = (struct dp_section){.table = 4, .rows = 0, .keys = keys, .type = DP_BF16};
}

static size_t encode(const struct dp_record *record, const struct dp_request *of)
{
    struct dp_journal_piece pieces[DP_RECORD_PIECES_MAX];
    char head[DP_RECORD_HEAD_MAX];
    uint32_t n = dp_record_encode(record, of, head, pieces);
    size_t size = 0;
    for (uint32_t i = 0; i < n; size += pieces[i++].bytes)
        memcpy(bytes + size, pieces[i].data, pieces[i].bytes);
    return size;
}

static void check_push(void)
{
    assert_int_equal(out.stream, 7);
    assert_int_equal(out.number, 11);
    assert_true(out.rate == 0.5f);
    assert_int_equal(out.sections, 2);
    assert_int_equal(out.section[0].table, 3);
    assert_int_equal(out.section[0].rows, 3);
    assert_memory_equal(out.section[0].keys, keys, sizeof keys);
    assert_int_equal(out.section[0].value_bytes, sizeof values);
    assert_memory_equal(out.section[0].values, values, sizeof values);
    assert_int_equal(out.section[1].rows, 0);
    assert_int_equal(out.section[1].type, DP_BF16);
}

static void test_kinds(void **state)
{
    const enum dp_record_kind kinds[] = {DP_RECORD_PUSH, DP_RECORD_KEPT_PUSH, DP_RECORD_CLOSE};
    fill();
    for (size_t k = 0; k < 3; k++) {
        const struct dp_record record = {.kind = kinds[k],
                                         .members = 2,
                                         .run = 4,
                                         .rank = 1,
                                         .step = UINT64_C(1) << 40,
                                         .examples = UINT64_C(3) << 33,
                                         .view = 6,
                                         .rate = 0.5f,
                                         .dims = {2, 8}};
        struct dp_record back;
        struct dp_error err = {0};
        size_t size = encode(&record, &push);
        assert_int_equal(dp_record_decode(bytes, size, &back, &out, &err), DP_OK);
        assert_int_equal(back.kind, kinds[k]);
        assert_int_equal(back.refused, DP_OK);
        assert_int_equal(back.members, 2);
        assert_int_equal(back.run, 4);
        assert_int_equal(back.rank, 1);
        assert_true(back.step == UINT64_C(1) << 40 && back.examples == UINT64_C(3) << 33);
        assert_int_equal(back.view, 6);
        assert_int_equal(back.dims[0], 2);
        assert_int_equal(back.dims[1], 8);
        check_push();
        for (size_t cut = 0; cut < size; cut++)
            assert_int_equal(dp_record_decode(bytes, cut, &back, &out, &err), DP_CORRUPT);
        assert_int_equal(dp_record_decode(bytes, size + 1, &back, &out, &err), DP_CORRUPT);
    }
}

static void test_refused(void **state)
{
    const struct dp_record record = {.kind = DP_RECORD_PUSH, .refused = DP_NOT_FINITE};
    struct dp_record back;
    struct dp_error err = {0};
    fill();
    assert_int_equal(dp_record_decode(bytes, encode(&record, &push), &back, &out, &err), DP_OK);
    assert_int_equal(back.refused, DP_NOT_FINITE);
    assert_int_equal(out.number, 11);
    assert_int_equal(out.sections, 0);
}

/* Only its number, with all that it says of its member. */
static void test_dropped(void **state)
{
    const struct dp_record record = {
        .kind = DP_RECORD_PUSH, .dropped = true, .members = 1, .run = 4, .rank = 1, .step = 9};
    struct dp_record back;
    struct dp_error err = {0};
    fill();
    assert_int_equal(dp_record_decode(bytes, encode(&record, &push), &back, &out, &err), DP_OK);
    assert_int_equal(back.refused, DP_OK);
    assert_true(back.members == 1 && back.run == 4 && back.rank == 1 && back.step == 9);
    assert_int_equal(out.number, 11);
    assert_int_equal(out.sections, 0);
}

static void test_view(void **state)
{
    const struct dp_record record = {.kind = DP_RECORD_VIEW, .bytes = "members", .size = 7};
    struct dp_record back;
    struct dp_error err = {0};
    size_t size = encode(&record, NULL);
    assert_int_equal(dp_record_decode(bytes, size, &back, &out, &err), DP_OK);
    assert_int_equal(back.kind, DP_RECORD_VIEW);
    assert_int_equal(out.sections, 0);
    assert_int_equal(back.size, 7);
    assert_memory_equal(back.bytes, "members", 7);
    dp_store_u32le(bytes + 4, 1); /* it has no sections */
    assert_int_equal(dp_record_decode(bytes, size, &back, &out, &err), DP_CORRUPT);
    (void)encode(&record, NULL);
    dp_store_u32le(bytes + 32, 6); /* a kind of later builds */
    assert_int_equal(dp_record_decode(bytes, size, &back, &out, &err), DP_CORRUPT);
    dp_store_u32le(bytes + 32, 0);
    assert_int_equal(dp_record_decode(bytes, size, &back, &out, &err), DP_CORRUPT);
}

static void test_void(void **state)
{
    const struct dp_record record = {.kind = DP_RECORD_VOID};
    struct dp_record back;
    struct dp_error err = {0};
    size_t size = encode(&record, NULL);
    assert_int_equal(size, 72);
    assert_int_equal(dp_record_decode(bytes, size, &back, &out, &err), DP_OK);
    assert_int_equal(back.kind, DP_RECORD_VOID);
    assert_int_equal(out.sections, 0);
    assert_false(dp_record_changes_rows(&back));
    assert_int_equal(dp_record_decode(bytes, size + 1, &back, &out, &err), DP_CORRUPT);
    dp_store_u32le(bytes + 4, 1);
    memset(bytes + size, 0, 16); /* a section without rows */
    assert_int_equal(dp_record_decode(bytes, size + 16, &back, &out, &err), DP_CORRUPT);
}

static void test_formats(void **state)
{
    struct dp_record record = {.kind = DP_RECORD_PUSH, .rate = 0.5f, .dims = {2, 8}}, back;
    struct dp_error err = {0};
    fill();
    size_t size = encode(&record, &push);
    for (uint32_t format = 1; format <= 3; format += 2) {
        dp_store_u32le(bytes, format);
        assert_int_equal(dp_record_decode(bytes, size, &back, &out, &err), DP_CORRUPT);
        assert_non_null(strstr(err.text, "of format 1: start the last build of version 0.1.0"));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_kinds), cmocka_unit_test(test_refused), cmocka_unit_test(test_dropped),
        cmocka_unit_test(test_view),  cmocka_unit_test(test_void),    cmocka_unit_test(test_formats),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
