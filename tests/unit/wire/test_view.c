/* View: comes back as it went; what cannot be acted on is refused by name. */
#include "tests/lib/test.h"

#include "common/base/bytes.h"
#include "common/wire/view.h"

#include <stdlib.h>
#include <string.h>

static struct dp_member members[] = {
    {11, UINT64_MAX, 7, 0}, {0, UINT64_MAX, 25, UINT64_MAX}, {UINT64_MAX, 12, UINT64_MAX, 1}};

static struct dp_view three(void)
{
    return (struct dp_view){
        .run = 4, .number = 9, .mode = DP_SSP, .slack = 3, .first_step = 7, .members = 3, .member = members};
}

static void a_view_comes_back_as_it_went(void **state)
{
    struct dp_error err = {0};
    struct dp_view view = three(), got, copy;
    char bytes[DP_VIEW_HEAD + 3 * DP_VIEW_MEMBER];
    assert_int_equal(dp_view_bytes(&view), sizeof bytes);
    dp_view_pack(&view, bytes);
    assert_int_equal(dp_view_unpack(bytes, sizeof bytes, &got, &err), DP_OK);
    assert_true(got.run == 4 && got.number == 9 && got.mode == DP_SSP && got.slack == 3);
    assert_true(got.first_step == 7 && got.members == 3);
    assert_memory_equal(got.member, members, sizeof members);
    assert_int_equal(dp_view_copy(&got, &copy, &err), DP_OK);
    dp_view_clear(&got);
    assert_null(got.member);
    assert_memory_equal(copy.member, members, sizeof members);
    dp_view_clear(&copy);
}

static void refused(char *bytes, size_t size, const char *why)
{
    struct dp_error err = {0};
    struct dp_view got;
    assert_int_equal(dp_view_unpack(bytes, size, &got, &err), DP_INVALID);
    assert_non_null(strstr(err.text, why));
    assert_null(got.member);
}

static void what_cannot_be_acted_on_is_refused(void **state)
{
    static const struct {
        size_t at;
        uint32_t value;
        const char *why;
    } cases[] = {{0, 3, "format 3"},
                 {4, 0, "run 0"},
                 {8, 0, "number 0"},
                 {16, 3, "mode 3"},
                 {16, 0, "slack 3"},
                 {32, 0, "0 members"},
                 {32, 4, "4 members"},
                 {32, 1025, "1025 members"},
                 {16, 2, "3 backup members of 3"},
                 {DP_VIEW_HEAD + DP_VIEW_MEMBER + 16, 6, "worker 1 takes part from step 6"}};
    struct dp_view view = three();
    char bytes[DP_VIEW_HEAD + 3 * DP_VIEW_MEMBER];
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        dp_view_pack(&view, bytes);
        dp_store_u32le(bytes + cases[i].at, cases[i].value);
        refused(bytes, sizeof bytes, cases[i].why);
    }
    dp_view_pack(&view, bytes);
    for (size_t size = 0; size < sizeof bytes; size++) /* cut at every byte: the sanitizer watches */
        refused(bytes, size, "view:");
}

/* As versions before wrote it: who takes part does from the run's first step on. */
static void the_first_format_is_still_read(void **state)
{
    struct dp_error err = {0};
    struct dp_view view = three(), got;
    char bytes[DP_VIEW_HEAD + 3 * DP_VIEW_MEMBER];
    dp_view_pack(&view, bytes);
    dp_store_u32le(bytes, 1);
    for (uint32_t i = 0; i < 3; i++)
        memmove(bytes + DP_VIEW_HEAD + i * 16, bytes + DP_VIEW_HEAD + i * DP_VIEW_MEMBER, 16);
    size_t size = DP_VIEW_HEAD + 3 * 16;
    assert_int_equal(dp_view_unpack(bytes, size, &got, &err), DP_OK);
    assert_true(got.run == 4 && got.members == 3);
    for (uint32_t i = 0; i < 3; i++) {
        assert_true(got.member[i].incarnation == members[i].incarnation);
        assert_true(got.member[i].until == members[i].until);
        assert_true(got.member[i].from == 7 && got.member[i].missed == 0);
    }
    dp_view_clear(&got);
    refused(bytes, sizeof bytes, "136 bytes for 3 members"); /* its sizes are its own */
    while (size-- > 0)
        refused(bytes, size, "view:");
}

static void backup_members_are_fewer_than_all(void **state)
{
    struct dp_error err = {0};
    struct dp_view view = three(), got;
    char bytes[DP_VIEW_HEAD + 3 * DP_VIEW_MEMBER];
    view.mode = DP_SYNC;
    for (view.slack = 0; view.slack < 3; view.slack++) {
        dp_view_pack(&view, bytes);
        assert_int_equal(dp_view_unpack(bytes, sizeof bytes, &got, &err), DP_OK);
        assert_true(got.mode == DP_SYNC && got.slack == view.slack);
        dp_view_clear(&got);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_view_comes_back_as_it_went),
        cmocka_unit_test(the_first_format_is_still_read),
        cmocka_unit_test(what_cannot_be_acted_on_is_refused),
        cmocka_unit_test(backup_members_are_fewer_than_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
