/* block: freed once, by whichever thread lets go last, with all of its bytes readable until then. */
#include "tests/lib/test.h"

#include "common/client/block.h"

#include <pthread.h>
#include <string.h>

enum { FRAMES = 200000, SHARE = 50000, BYTES = 64 };

struct reader {
    pthread_barrier_t *start;
    struct dp_frame *frame; /* each second one from here */
    uintptr_t sum;
};

static void *read_and_release(void *arg)
{
    struct reader *reader = arg;
    (void)pthread_barrier_wait(reader->start);
    for (int i = 0; i < FRAMES; i += 2) {
        struct dp_frame *frame = &reader->frame[i];
        /* One byte: of each word the thread sanitizer remembers a few accesses only. */
        reader->sum += *(const unsigned char *)frame->data;
        dp_frame_release(frame);
    }
    return NULL;
}

static void the_last_holder_frees(void **state)
{
    static struct dp_frame frame[FRAMES];
    pthread_barrier_t start;
    struct reader reader[2] = {{&start, frame, 0}, {&start, frame + 1, 0}};
    pthread_t thread[2];
    uintptr_t expected = 0;
    struct dp_block *block = NULL;
    for (int i = 0; i < FRAMES; i++) {
        if (i % SHARE == 0) { /* many frames of one block, half of them for either thread */
            dp_block_drop(&block);
            block = dp_block_new(BYTES);
            assert_non_null(block);
            assert_int_equal((uintptr_t)dp_block_bytes(block) % 64, 0);
            memset(dp_block_bytes(block), i / SHARE, BYTES);
        }
        frame[i] = dp_block_frame(block, 8, 16);
        expected += (uintptr_t)(i / SHARE);
    }
    dp_block_drop(&block);
    assert_null(block);
    dp_block_drop(&block);
    assert_int_equal(pthread_barrier_init(&start, NULL, 2), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_create(&thread[i], NULL, read_and_release, &reader[i]), 0);
    for (int i = 0; i < 2; i++)
        assert_int_equal(pthread_join(thread[i], NULL), 0);
    (void)pthread_barrier_destroy(&start);
    assert_int_equal(reader[0].sum + reader[1].sum, expected);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_last_holder_frees)};
    return cmocka_run_group_tests_name("block", tests, NULL, NULL);
}
