/* Accounts: each peer has its own, they are bounded, and an idle one is used again: the longest unused first. */
#include "tests/lib/test.h"

#include "common/net/account.h"

#include <pthread.h>

static struct dp_peer peer(uint32_t n)
{
    return (struct dp_peer){.size = 5,
                            .id = {0, (uint8_t)(n >> 24), (uint8_t)(n >> 16), (uint8_t)(n >> 8), (uint8_t)n}};
}

static struct dp_account *find(struct dp_accounts *accounts, uint32_t n)
{
    struct dp_peer who = peer(n);
    return dp_accounts_find(accounts, &who);
}

static void each_peer_has_its_own(void **state)
{
    (void)state;
    struct dp_accounts *accounts = dp_accounts_new();
    assert_non_null(accounts);
    for (uint32_t n = 0; n < DP_ACCOUNTS_MAX; n++) /* far apart, so that buckets are shared */
        dp_account_give(find(accounts, n * 77777), n + 1);
    for (uint32_t n = 0; n < DP_ACCOUNTS_MAX; n++)
        assert_int_equal(dp_account_unsent(find(accounts, n * 77777)), n + 1);
    assert_null(find(accounts, 1)); /* none is idle */
    struct dp_account *second = find(accounts, 77777), *third = find(accounts, 2 * 77777);
    dp_account_back(third, 3);
    dp_account_back(second, 2); /* idle later, but unused for longer */
    assert_ptr_equal(find(accounts, 1), second);
    assert_int_equal(dp_account_unsent(second), 0);
    assert_ptr_equal(find(accounts, 2), third);
    dp_account_give(second, 5);
    dp_account_give(third, 5);
    assert_null(find(accounts, 3));
    assert_ptr_equal(find(accounts, 1), second);
    dp_account_back(second, 5);
    dp_account_back(third, 5);
    for (uint32_t n = 0; n < DP_ACCOUNTS_MAX; n++) {
        if (n != 1 && n != 2)
            dp_account_back(find(accounts, n * 77777), n + 1);
    }
    dp_accounts_free(&accounts);
    assert_null(accounts);
    dp_accounts_free(&accounts);
}

static void *give_back(void *arg)
{
    for (int i = 0; i < 100000; i++)
        dp_account_back(arg, 600);
    return NULL;
}

/* The last frame may come back before the table goes or after: the sanitizers see both. */
static void accounts_outlive_their_table(void **state)
{
    (void)state;
    for (int turn = 0; turn < 20; turn++) {
        struct dp_accounts *accounts = dp_accounts_new();
        assert_non_null(accounts);
        struct dp_account *account = find(accounts, 9);
        pthread_t thread;
        for (int i = 0; i < 100000; i++)
            dp_account_give(account, 600);
        assert_int_equal(pthread_create(&thread, NULL, give_back, account), 0);
        if (turn % 2)
            assert_int_equal(pthread_join(thread, NULL), 0);
        dp_accounts_free(&accounts);
        if (turn % 2 == 0)
            assert_int_equal(pthread_join(thread, NULL), 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(each_peer_has_its_own),
        cmocka_unit_test(accounts_outlive_their_table),
    };
    return cmocka_run_group_tests_name("account", tests, NULL, NULL);
}
