/* A finish for which there is no memory: refused, nothing of it stays, and sent again it is taken.
 * Method    As test_cut; the test stands before calloc and free. */
#include "tests/unit/server/shard/cut_bed.h"

#include "common/base/bytes.h"

#include <stdlib.h>

#define MISSING 11u

void *__real_calloc(size_t count, size_t bytes);
void *__wrap_calloc(size_t count, size_t bytes);
void __real_free(void *memory);
void __wrap_free(void *memory);

static struct {
    bool fails;    /* the next array of MISSING + 1 pushes */
    uint32_t live; /* of those arrays */
    const void *array[4];
} memory;

void *__wrap_calloc(size_t count, size_t bytes)
{
    if (count != MISSING + 1 || bytes != sizeof(struct dp_copy_push))
        return __real_calloc(count, bytes);
    if (memory.fails) {
        memory.fails = false;
        return NULL;
    }
    void *array = __real_calloc(count, bytes);
    assert_true(memory.live < 4);
    memory.array[memory.live++] = array;
    return array;
}

void __wrap_free(void *old)
{
    for (uint32_t i = 0; old && i < memory.live; i++)
        if (memory.array[i] == old) {
            memory.array[i] = memory.array[--memory.live];
            break;
        }
    __real_free(old);
}

static void a_finish_without_memory_leaves_nothing(void **state)
{
    char pushes[16 * MISSING];
    const struct dp_checkpoint_ask finish = {
        .action = DP_CHECKPOINT_FINISH, .order = CUT_ORDER, .cut = 1, .missing = MISSING, .pushes = pushes};
    struct cut_bed c;
    for (uint32_t i = 0; i < MISSING; i++) {
        dp_store_u64le(pushes + i * 16, CUT_STREAM);
        dp_store_u64le(pushes + i * 16 + 8, 100 + i);
    }
    cut_bed_start(&c);
    (void)cut_bed_push(&c, 10);
    cut_bed_begin(&c);
    (void)cut_bed_cut(&c, 1);
    memory.fails = true;
    assert_int_equal(cut_bed_refused(&c, &finish), DP_AGAIN);
    assert_false(memory.fails);
    assert_int_equal(memory.live, 0);
    assert_int_equal(cut_bed_at_once(&c, &finish)->stage, DP_CHECKPOINT_WAITING);
    assert_int_equal(memory.live, 1);
    cut_bed_stop(&c);
    assert_int_equal(memory.live, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_finish_without_memory_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
