/* The register that goes with a cut. Goal: what the workers had decided before the cut, and all else from behind it; no epoch that has pushes
 * in the cut follows one that is not judged. */
#include "common/env/directory.h"
#include "common/env/disk.h"
#include "server/control/register_file.h"
#include "server/coordinator/saved_register.h"
#include "tests/lib/test.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct values {
    const char *members;         /* NULL: there is none */
    uint32_t judged, judged_run; /* of run/<judged_run>/verdict; run 0: there is none */
};

static struct dp_control_register_item *item(const char *name, const char *bytes, uint64_t version)
{
    struct dp_control_register_item *one =
        dp_control_register_item_new(name, strlen(name), bytes, strlen(bytes));
    assert_non_null(one);
    one->version = version;
    one->nonces = version < DP_REGISTER_NONCES_MAX ? (uint32_t)version : DP_REGISTER_NONCES_MAX;
    return one;
}

static struct dp_register_value copy_of(const struct values *values)
{
    struct dp_control_register_item *list[2];
    struct dp_control_register_content content = {.id = 5, .item = list};
    struct dp_register_value copy = {.version = 1, .register_id = 5};
    char name[32], text[64];
    if (values->members)
        list[content.count++] = item("members", values->members, strlen(values->members));
    (void)snprintf(name, sizeof name, "run/%u/verdict", values->judged_run);
    (void)snprintf(text, sizeof text, "{\"epoch\":%u}", values->judged);
    if (values->judged_run > 0)
        list[content.count++] = item(name, text, values->judged + 1);
    copy.size = dp_control_register_file_bytes(&content);
    assert_non_null(copy.bytes = dp_control_register_file_pack(&content));
    for (uint32_t i = 0; i < content.count; i++)
        free(list[i]);
    return copy;
}

/* epoch: of the last push, from 0. */
static enum dp_status choose(const struct values *before, const struct values *behind, uint32_t epoch,
                             bool strict, struct dp_control_register_content *out)
{
    struct dp_register_value a = copy_of(before), b = copy_of(behind), chosen = {0};
    const struct dp_saved_register_position position = {1, epoch};
    struct dp_error err = {0};
    *out = (struct dp_control_register_content){0};
    enum dp_status st = dp_saved_register(&a, &b, &position, strict, &chosen, &err);
    if (st == DP_OK)
        assert_int_equal(dp_control_register_file_unpack(chosen.bytes, chosen.size, out, &err), DP_OK);
    free(a.bytes);
    free(b.bytes);
    free(chosen.bytes);
    return st;
}

static void expect(const struct values *before, const struct values *behind, uint32_t epoch, bool strict,
                   const char *members, const char *verdict)
{
    struct dp_control_register_content out;
    uint32_t at = 0;
    assert_int_equal(choose(before, behind, epoch, strict, &out), DP_OK);
    assert_int_equal(out.count, (members != NULL) + (verdict != NULL));
    if (members)
        assert_memory_equal(out.item[at++]->bytes, members, strlen(members));
    if (verdict)
        assert_memory_equal(out.item[at]->bytes, verdict, strlen(verdict));
    dp_control_register_content_clear(&out);
}

static void decisions_are_of_before(void **state)
{
    const struct values third = {"a", 3, 1}, fourth = {"a", 4, 1}, fifth = {"a", 5, 1}, none = {"a", 0, 0};
    expect(&third, &third, 3, true, "a", "{\"epoch\":3}");  /* in the middle of epoch 4 */
    expect(&third, &fourth, 3, true, "a", "{\"epoch\":3}"); /* judged again, on the same weights */
    expect(&third, &fifth, 3, true, "a", "{\"epoch\":3}");
    expect(&fourth, &fourth, 3, true, "a", "{\"epoch\":4}"); /* nobody has begun the next */
    expect(&none, &fourth, 0, true, "a", NULL);
    expect(&none, &none, 7, true, "a", NULL); /* nobody judges */
}

static void an_epoch_that_began_is_cut_anew(void **state)
{
    const struct values third = {"a", 3, 1}, fourth = {"a", 4, 1}, none = {"a", 0, 0};
    struct dp_control_register_content out;
    for (uint32_t strict = 0; strict < 2; strict++) {
        assert_int_equal(choose(&third, &fourth, 4, strict, &out), DP_AGAIN);
        assert_int_equal(choose(&none, &fourth, 1, strict, &out), DP_AGAIN);
    }
}

static void members_are_of_behind(void **state)
{
    const struct values before = {"a", 3, 1}, behind = {"ab", 4, 1}, none = {NULL, 3, 1};
    struct dp_control_register_content out;
    assert_int_equal(choose(&before, &behind, 3, true, &out), DP_AGAIN);
    assert_int_equal(choose(&none, &behind, 3, true, &out), DP_AGAIN);
    expect(&before, &behind, 3, false, "ab", "{\"epoch\":3}");
    expect(&none, &behind, 3, false, "ab", "{\"epoch\":3}");
}

static void other_runs_decisions_are_as_any_value(void **state)
{
    const struct values before = {"a", 3, 2}, behind = {"a", 4, 2};
    struct dp_control_register_content out;
    assert_int_equal(choose(&before, &behind, 9, true, &out), DP_AGAIN);
    expect(&before, &behind, 9, false, "a", "{\"epoch\":4}");
}

/* A run that begins or ends is no push, and is in no checkpoint from before. */
static void a_checkpoint_knows_the_last_run(void **state)
{
    char at[] = "/tmp/saved-register-XXXXXX";
    const char *const runs[] = {NULL, "{\"run\":1,\"done\":false}", "{\"run\":1,\"done\":true}"};
    struct dp_disk disk;
    struct dp_error err = {0};
    (void)state;
    assert_non_null(mkdtemp(at));
    assert_int_equal(dp_disk_open(at, &disk, &err), DP_OK);
    for (size_t saved = 0; saved < 3; saved++)
        for (size_t now = 0; now < 3; now++) {
            struct dp_control_register_item *was = item("runs", runs[saved] ? runs[saved] : "", 1),
                                            *is = item("runs", runs[now] ? runs[now] : "", 2);
            struct dp_control_register_content content = {
                .id = 5, .count = runs[saved] != NULL, .item = &was};
            assert_int_equal(dp_control_register_file_write(&disk, &content, &err), DP_OK);
            content.count = runs[now] != NULL;
            content.item = &is;
            struct dp_register_value copy = {.size = dp_control_register_file_bytes(&content),
                                             .bytes = dp_control_register_file_pack(&content)};
            assert_non_null(copy.bytes);
            assert_int_equal(dp_saved_register_has_runs(at, &copy), saved == now);
            assert_int_equal(dp_saved_register_has_runs("/nothing", &copy), false);
            free(copy.bytes);
            free(was);
            free(is);
        }
    dp_disk_close(&disk);
    assert_int_equal(dp_directory_remove(at, true, 1, &err), DP_OK);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(decisions_are_of_before),
        cmocka_unit_test(an_epoch_that_began_is_cut_anew),
        cmocka_unit_test(members_are_of_behind),
        cmocka_unit_test(other_runs_decisions_are_as_any_value),
        cmocka_unit_test(a_checkpoint_knows_the_last_run),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
