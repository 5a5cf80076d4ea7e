/* block: freed once, by whichever thread lets go last, with all of its bytes readable until then. */
#include "tests/lib/test.h"

#include "common/client/block.h"

#include <pthread.h>
#include <string.h>

enum { FRAMES = 2000, BYTES = 4096 };

static void *read_and_release(void *arg)
{
    struct dp_frame *frame = arg;
    uintptr_t sum = 0;
    for (int i = 0; i < FRAMES; i++) {
        for (size_t b = 0; b < frame[i].size; b++)
            sum += ((const unsigned char *)frame[i].data)[b];
        dp_frame_release(&frame[i]);
    }
    return (void *)sum;
}

static void the_last_holder_frees(void **state)
{
    (void)state;
    static struct dp_frame frame[FRAMES];
    pthread_t thread;
    void *sum = NULL;
    uintptr_t expected = 0;
    struct dp_block *block = NULL;
    for (int i = 0; i < FRAMES; i++) {
        if (i % 4 == 0) { /* one maker and four frames each; the maker lets go while the thread does */
            dp_block_drop(&block);
            block = dp_block_new(BYTES);
            assert_non_null(block);
            assert_int_equal((uintptr_t)dp_block_bytes(block) % 64, 0);
            memset(dp_block_bytes(block), i % 251, BYTES);
        }
        frame[i] = dp_block_frame(block, (size_t)i % 8, 16);
        expected += 16u * (uintptr_t)((i - i % 4) % 251);
    }
    assert_int_equal(pthread_create(&thread, NULL, read_and_release, frame), 0);
    dp_block_drop(&block);
    assert_null(block);
    dp_block_drop(&block);
    assert_int_equal(pthread_join(thread, &sum), 0);
    assert_int_equal((uintptr_t)sum, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_last_holder_frees)};
    return cmocka_run_group_tests_name("block", tests, NULL, NULL);
}
