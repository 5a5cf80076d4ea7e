/* index pages: blocks of all sizes, taken and given back in any order, do not overlap, keep what is in them,
 * and leave no page behind. */
#include "tests/lib/test.h"

#include "server/cache/index_pages.h"

#include <stdbool.h>
#include <string.h>

#define BLOCKS 200u

struct block {
    unsigned char *at;
    size_t bytes;
};

static uint64_t next_random(uint64_t *seed)
{
    *seed = *seed * UINT64_C(6364136223846793005) + 1442695040888963407u;
    return *seed >> 33;
}

/* Its first and last bytes say which it is. */
static bool is_kept(const struct block *block, unsigned char mark)
{
    return block->at[0] == mark && block->at[block->bytes / 2] == mark && block->at[block->bytes - 1] == mark;
}

static void blocks_keep_what_is_in_them(void **state)
{
    struct dp_index_pages pages = {0};
    struct block block[BLOCKS] = {0};
    uint64_t seed = 1;
    size_t most = 0;
    for (uint32_t i = 0; i < 20000; i++) {
        unsigned char mark = (unsigned char)(next_random(&seed) % BLOCKS);
        struct block *one = &block[mark];
        if (one->at) {
            assert_true(is_kept(one, mark));
            dp_index_pages_give(&pages, one->at, one->bytes);
            one->at = NULL;
        } else {
            one->bytes = (size_t)128 << next_random(&seed) % 15; /* up to 2 MB */
            one->at = dp_index_pages_take(&pages, one->bytes);
            assert_non_null(one->at);
            one->at[0] = one->at[one->bytes / 2] = one->at[one->bytes - 1] = mark;
        }
        most = pages.count > most ? pages.count : most;
    }
    assert_true(most > 1);
    for (uint32_t i = 0; i < BLOCKS; i++)
        if (block[i].at) {
            assert_true(is_kept(&block[i], (unsigned char)i));
            dp_index_pages_give(&pages, block[i].at, block[i].bytes);
        }
    assert_int_equal(pages.count, 0);
    dp_index_pages_clear(&pages);
}

/* Two blocks of half a page share one, at any order of giving back. */
static void a_page_is_filled_before_the_next(void **state)
{
    struct dp_index_pages pages = {0};
    const size_t half = (size_t)1 << 20, small = (size_t)32 << 10;
    void *first = dp_index_pages_take(&pages, half), *second = dp_index_pages_take(&pages, small);
    void *third = dp_index_pages_take(&pages, half), *fourth = dp_index_pages_take(&pages, small);
    assert_int_equal(pages.count, 2);
    dp_index_pages_give(&pages, first, half);
    first = dp_index_pages_take(&pages, half);
    assert_int_equal(pages.count, 2);
    dp_index_pages_give(&pages, third, half);
    assert_int_equal(pages.count, 1);
    dp_index_pages_give(&pages, second, small);
    dp_index_pages_give(&pages, fourth, small);
    dp_index_pages_give(&pages, first, half);
    dp_index_pages_give(&pages, NULL, half);
    assert_int_equal(pages.count, 0);
    dp_index_pages_clear(&pages);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blocks_keep_what_is_in_them),
        cmocka_unit_test(a_page_is_filled_before_the_next),
    };
    return cmocka_run_group_tests_name("index pages", tests, NULL, NULL);
}
