/* cluster_shared: files of two hosts agree, or the first key that differs is named, with both values. */
#include "tests/unit/config/cluster_text.h"

#include "common/config/cluster_shared.h"

#define TWO                                                                                                  \
    "servers = ( { host = \"127.0.0.1\"; port = 5000; store = \"a\"; }, { host = \"127.0.0.1\"; port = "     \
    "5010; store = \"b\"; "                                                                                  \
    "} );\n"
#define CHECKPOINT "checkpoint = { to = \"/c\"; every = 60; };\n"

static enum dp_status compare(const char *here, const char *first, struct dp_error *err)
{
    struct dp_cluster *mine = NULL, *other = NULL;
    char *text = NULL;
    assert_int_equal(read_text(here, &mine, err), DP_OK);
    assert_int_equal(read_text(first, &other, err), DP_OK);
    assert_int_equal(dp_cluster_shared_text(other, &text, err), DP_OK);
    enum dp_status st = dp_cluster_shared_compare(mine, text, strlen(text), "this server's", err);
    free(text);
    dp_cluster_free(&mine);
    dp_cluster_free(&other);
    return st;
}

static void hosts_may_differ_in_some(void **state)
{
    struct dp_error err = {0};
    assert_int_equal(compare(TOP TWO DATA, TOP TWO DATA, &err), DP_OK);
    assert_int_equal(compare(TOP "cache_bytes = \"64MiB\"; journal_bytes = \"32MiB\";\n" TWO DATA
                                 "training = { rate = 0.5; };",
                             TOP TWO DATA, &err),
                     DP_OK);
    assert_int_equal(
        compare(TOP "servers = ( { host = \"127.0.0.1\"; port = 5000; store = \"mine\"; } );\n" DATA,
                TOP "servers = ( { host = \"127.0.0.1\"; port = 5000; store = \"its\"; } );\n" DATA, &err),
        DP_OK);
}

static void the_first_key_is_named(void **state)
{
    static const char *const cases[][3] = {
        {TOP "durability = \"process\";\n" TWO DATA, TOP TWO DATA,
         "'durability' is \"process\" in this server's cluster file, and \"machine\" in that of the first "
         "server"},
        {TOP "servers = ( { host = \"127.0.0.1\"; port = 5001; store = \"a\"; } );\n" DATA,
         TOP "servers = ( { host = \"127.0.0.1\"; port = 5000; store = \"a\"; } );\n" DATA,
         "'servers[0].port' is 5001 in this"},
        {TOP TWO DATA, TOP "servers = ( { host = \"127.0.0.1\"; port = 5000; store = \"a\"; } );\n" DATA,
         "'servers' is 2 in this server's cluster file, and 1 in"},
        {TOP TWO CHECKPOINT DATA, TOP TWO DATA,
         "the key 'checkpoint.to' is in this server's cluster file only"},
        {TOP TWO DATA, TOP TWO CHECKPOINT DATA,
         "the key 'checkpoint.to' is in the first server's cluster file only"},
        {TOP TWO "checkpoint = { to = \"/d\"; every = 60; };\n" DATA, TOP TWO CHECKPOINT DATA,
         "'checkpoint.to' is \"/d\" in this"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        struct dp_error err = {0};
        assert_int_equal(compare(cases[i][0], cases[i][1], &err), DP_ARGUMENT);
        if (!strstr(err.text, cases[i][2]))
            fail_msg("%s", err.text);
    }
}

/* A register's value is at most 64 KiB. */
static void a_long_text_is_its_hash(void **state)
{
    struct dp_cluster *c = NULL;
    struct dp_error err = {0};
    char *text = NULL, *other = NULL;
    assert_int_equal(read_text(GOOD, &c, &err), DP_OK);
    free(c->server);
    c->server = calloc(DP_SERVERS_MAX, sizeof c->server[0]);
    c->server_count = DP_SERVERS_MAX;
    for (uint32_t i = 0; i < DP_SERVERS_MAX; i++)
        memset(c->server[i].host, 'h', DP_HOST_MAX);
    assert_int_equal(dp_cluster_shared_text(c, &text, &err), DP_OK);
    assert_true(strlen(text) < 100);
    c->server[7].port = 7;
    assert_int_equal(dp_cluster_shared_text(c, &other, &err), DP_OK);
    assert_string_not_equal(text, other);
    assert_int_equal(dp_cluster_shared_compare(c, text, strlen(text), "this server's", &err), DP_ARGUMENT);
    free(text);
    free(other);
    dp_cluster_free(&c);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(hosts_may_differ_in_some),
        cmocka_unit_test(the_first_key_is_named),
        cmocka_unit_test(a_long_text_is_its_hash),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
