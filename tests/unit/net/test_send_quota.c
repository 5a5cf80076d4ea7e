/* Send quotas: each peer has its own, they are bounded, and an idle one is used again: the longest unused first. */
#include "tests/lib/test.h"

#include "common/net/send_quota.h"

#include <pthread.h>

static struct dp_peer peer(uint32_t n)
{
    return (struct dp_peer){.size = 5,
                            .id = {0, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n}};
}

static struct dp_send_quota *find(struct dp_send_quotas *quotas, uint32_t n)
{
    struct dp_peer who = peer(n);
    return dp_send_quotas_find(quotas, &who);
}

static void each_peer_has_its_own(void **state)
{
    struct dp_send_quotas *quotas = dp_send_quotas_new();
    assert_non_null(quotas);
    for (uint32_t n = 0; n < DP_SEND_QUOTAS_MAX; n++) /* far apart, so that buckets are shared */
        dp_send_quota_give(find(quotas, n * 77777), n + 1);
    for (uint32_t n = 0; n < DP_SEND_QUOTAS_MAX; n++)
        assert_int_equal(dp_send_quota_unsent(find(quotas, n * 77777)), n + 1);
    assert_null(find(quotas, 1)); /* none is idle */
    struct dp_send_quota *second = find(quotas, 77777), *third = find(quotas, 2 * 77777);
    dp_send_quota_back(third, 3);
    dp_send_quota_back(second, 2); /* idle later, but unused for longer */
    assert_ptr_equal(find(quotas, 1), second);
    assert_int_equal(dp_send_quota_unsent(second), 0);
    assert_ptr_equal(find(quotas, 2), third);
    dp_send_quota_give(second, 5);
    dp_send_quota_give(third, 5);
    assert_null(find(quotas, 3));
    assert_ptr_equal(find(quotas, 1), second);
    dp_send_quota_back(second, 5);
    dp_send_quota_back(third, 5);
    for (uint32_t n = 0; n < DP_SEND_QUOTAS_MAX; n++) {
        if (n != 1 && n != 2)
            dp_send_quota_back(find(quotas, n * 77777), n + 1);
    }
    dp_send_quotas_free(&quotas);
    assert_null(quotas);
    dp_send_quotas_free(&quotas);
}

static void *give_back(void *arg)
{
    for (int i = 0; i < 100000; i++)
        dp_send_quota_back(arg, 600);
    return NULL;
}

/* The last frame may come back before the table goes or after: the sanitizers see both. */
static void quotas_outlive_their_table(void **state)
{
    for (int turn = 0; turn < 20; turn++) {
        struct dp_send_quotas *quotas = dp_send_quotas_new();
        assert_non_null(quotas);
        struct dp_send_quota *quota = find(quotas, 9);
        pthread_t thread;
        for (int i = 0; i < 100000; i++)
            dp_send_quota_give(quota, 600);
        assert_int_equal(pthread_create(&thread, NULL, give_back, quota), 0);
        if (turn % 2)
            assert_int_equal(pthread_join(thread, NULL), 0);
        dp_send_quotas_free(&quotas);
        if (turn % 2 == 0)
            assert_int_equal(pthread_join(thread, NULL), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_peer_has_its_own),
        cmocka_unit_test(quotas_outlive_their_table),
    };
    return cmocka_run_group_tests_name("send_quota", tests, NULL, NULL);
}
