/* cluster, counted servers: the form, its patterns, and what names the first server. */
#include "tests/unit/config/cluster_text.h"

#define COUNTED(x) TOP DATA "servers = { count = 3; shards = 2; store = \"/s\"; " x " };\n"

static struct dp_cluster *read_good(const char *text)
{
    struct dp_cluster *c = NULL;
    struct dp_error err = {0};
    if (read_text(text, &c, &err) != DP_OK)
        fail_msg("%s", err.text);
    return c;
}

static void no_environment(void)
{
    static const char *const names[] = {"DOWNPOUR_FIRST", "MASTER_ADDR", "SLURM_JOB_ID",
                                        "PBS_JOBID",      "LSB_JOBID",   "JOB_ID"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++)
        (void)unsetenv(names[i]);
}

static void says(struct dp_cluster *c, uint32_t server, const char *control, const char *socket_1)
{
    char text[DP_HOST_MAX + 32];
    dp_cluster_control_endpoint(c, server, text, sizeof text);
    assert_string_equal(text, control);
    dp_cluster_listen_endpoint(c, server, 1, text, sizeof text);
    assert_string_equal(text, socket_1);
}

static void servers_may_be_counted(void **state)
{
    no_environment();
    struct dp_cluster *c = read_good(COUNTED("") "first = \"h1:6000\";");
    struct dp_error err = {0};
    char text[DP_HOST_MAX + 32];
    assert_int_equal(c->server_count, 3);
    assert_int_equal(dp_cluster_shards(c), 6);
    says(c, 0, "tcp://h1:6000", "tcp://h1:*");
    says(c, 1, "", "");
    dp_cluster_shard_endpoint(c, 0, text, sizeof text);
    assert_string_equal(text, ""); /* the register knows it */
    assert_int_equal(dp_cluster_settle(c, 1, &err), DP_OK);
    assert_string_equal(c->server[1].store, "/s/server-1");
    (void)snprintf(c->server[1].host, sizeof c->server[1].host, "fd00::7"); /* its route */
    says(c, 1, "tcp://[fd00::7]:*", "tcp://[fd00::7]:*");
    assert_int_equal(dp_cluster_settle(c, 0, &err), DP_OK);
    says(c, 0, "tcp://h1:6000", "tcp://h1:*");
    dp_cluster_free(&c);
}

static void port_is_the_same_on_each_host(void **state)
{
    no_environment();
    struct dp_cluster *c = read_good(COUNTED("port = 5000; listen = \"0.0.0.0\";") "first = \"h1\";");
    struct dp_error err = {0};
    says(c, 0, "tcp://h1:5000", "tcp://h1:5001"); /* before it is settled */
    assert_int_equal(dp_cluster_settle(c, 0, &err), DP_OK);
    assert_int_equal(dp_cluster_settle(c, 2, &err), DP_OK);
    (void)snprintf(c->server[2].host, sizeof c->server[2].host, "10.0.0.2");
    says(c, 0, "tcp://h1:5000", "tcp://0.0.0.0:5001");
    says(c, 2, "tcp://10.0.0.2:5000", "tcp://0.0.0.0:5001");
    dp_cluster_free(&c);
}

/* The flag, the file, DOWNPOUR_FIRST, MASTER_ADDR, in this order. */
static void first_server_is_named_by(void **state)
{
    struct dp_error err = {0};
    no_environment();
    struct dp_cluster *c = read_good(COUNTED(""));
    assert_null(c->first.from);
    assert_int_equal(dp_cluster_has_first(c, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, "DOWNPOUR_FIRST"));
    dp_cluster_free(&c);
    (void)setenv("MASTER_ADDR", "m1", 1);
    c = read_good(COUNTED(""));
    assert_string_equal(c->first.from, "MASTER_ADDR");
    says(c, 0, "tcp://m1:5700", "tcp://m1:*");
    dp_cluster_free(&c);
    (void)setenv("DOWNPOUR_FIRST", "[fd00::1]:99", 1);
    c = read_good(COUNTED(""));
    assert_string_equal(c->first.from, "DOWNPOUR_FIRST");
    says(c, 0, "tcp://[fd00::1]:99", "tcp://[fd00::1]:*");
    dp_cluster_free(&c);
    c = read_good(COUNTED("") "first = \"fd00::2\";");
    assert_string_equal(c->first.from, "'first'");
    says(c, 0, "tcp://[fd00::2]:5700", "tcp://[fd00::2]:*");
    assert_int_equal(dp_cluster_set_first(c, "f1:7", "--first", &err), DP_OK);
    assert_string_equal(c->first.from, "--first");
    says(c, 0, "tcp://f1:7", "tcp://f1:*");
    static const char *const bad[] = {"", "a:", "a:0", "a:65536", "a b", "tcp://a", ":7", "[fd00::1", "a:x"};
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++)
        if (dp_cluster_set_first(c, bad[i], "--first", &err) != DP_ARGUMENT || !strstr(err.text, "--first"))
            fail_msg("'%s': '%s'", bad[i], err.text);
    dp_cluster_free(&c);
    c = read_good(GOOD); /* a list needs none, whatever the environment says */
    assert_null(c->first.from);
    assert_int_equal(dp_cluster_set_first(c, "f1", "--first", &err), DP_ARGUMENT);
    dp_cluster_free(&c);
    no_environment();
}

static void patterns_are_filled_in_by_the_server(void **state)
{
    struct dp_error err = {0};
    char host[256] = "", expected[512];
    no_environment();
    assert_int_equal(gethostname(host, sizeof host - 1), 0);
    static const char text[] =
        TOP DATA "servers = { count = 2; store = \"/s/%h/%j/%n/100%%\"; host = \"%h.x\"; }; first = \"a\";";
    struct dp_cluster *c = read_good(text);
    assert_int_equal(dp_cluster_settle(c, 1, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, "SLURM_JOB_ID"));
    (void)setenv("JOB_ID", "8", 1);
    (void)setenv("SLURM_JOB_ID", "77", 1);
    assert_int_equal(dp_cluster_settle(c, 1, &err), DP_OK);
    (void)snprintf(expected, sizeof expected, "/s/%s/77/1/100%%", host);
    assert_string_equal(c->server[1].store, expected);
    (void)snprintf(expected, sizeof expected, "%s.x", host);
    assert_string_equal(c->server[1].host, expected);
    dp_cluster_free(&c);
    c = read_good(text);
    (void)setenv("SLURM_JOB_ID", "../7", 1);
    assert_int_equal(dp_cluster_settle(c, 1, &err), DP_ARGUMENT);
    dp_cluster_free(&c);
    no_environment();
}

static void counted_form_reads_back(void **state)
{
    no_environment();
    struct dp_cluster *back = NULL,
                      *c = read_good(COUNTED("port = 9; host = \"%h\"; listen = \"::\";") "first = \"h1\";");
    struct dp_error err = {0};
    assert_int_equal(dp_cluster_write(c, file_path, &err), DP_OK);
    assert_int_equal(dp_cluster_read(file_path, &back, &err), DP_OK);
    assert_true(memcmp(&c->counted, &back->counted, sizeof c->counted) == 0);
    assert_string_equal(back->first_text, "h1");
    assert_string_equal(back->server[2].store, "/s/server-%n");
    dp_cluster_free(&back);
    dp_cluster_uncount(c);
    assert_int_equal(c->server_count, 3);
    dp_cluster_free(&c);
}

static void wrong_forms_are_refused(void **state)
{
    static const struct bad bad[] = {
        {TOP DATA "servers = { shards = 2; store = \"s\"; };", ":4: ", "missing key 'servers.count'"},
        {TOP DATA "servers = { count = 2; };", ":4: ", "missing key 'servers.store'"},
        {TOP DATA "servers = { count = 0; store = \"s\"; };", ": ", "'servers.count' is 0"},
        {TOP DATA "servers = { count = 257; store = \"s\"; };", ": ", "'servers.count' is 257"},
        {TOP DATA "servers = { count = 1; shards = 65; store = \"s\"; };", ": ", "'servers.shards' is 65"},
        {TOP DATA "servers = { count = 1; shards = 9; port = 65530; store = \"s\"; };", ": ",
         "ports up to 65539"},
        {TOP DATA "servers = { count = 1; store = \"s/%x\"; };", ": ",
         "'servers.store' is \"s/%x\": only %h"},
        {TOP DATA "servers = { count = 1; store = \"s%\"; };", ": ", "'servers.store'"},
        {TOP DATA "servers = { count = 1; store = \"s\"; host = \"a b\"; };", ": ", "'servers.host'"},
        {TOP DATA "servers = { count = 1; store = \"s\"; listen = \"tcp://a\"; };", ": ", "'servers.listen'"},
        {TOP DATA "servers = { cuont = 1; store = \"s\"; };", ":4: ", "did you mean 'servers.count'"},
        {TOP DATA "servers = 3;", ":4: ", "or a group { count = N; ... }"},
        {TOP DATA "servers = { count = 1; store = \"s\"; }; first = \"a:b\";", ": ", "'first'"},
        {GOOD "first = \"a\";", ": ", "'first' goes with servers = { count"},
        {TOP DATA "servers = ({ host = \"a\"; port = 1; store = \"s\"; listen = \"a b\"; });", ": ",
         "'servers.listen'"},
    };
    no_environment();
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        struct dp_cluster *c = NULL;
        struct dp_error err = {0};
        if (read_text(bad[i].text, &c, &err) != DP_ARGUMENT || !strstr(err.text, bad[i].line) ||
            !strstr(err.text, bad[i].key))
            fail_msg("%s: '%s'", bad[i].text, err.text);
    }
    (void)setenv("MASTER_ADDR", "a b", 1);
    struct dp_cluster *c = NULL;
    struct dp_error err = {0};
    assert_int_equal(read_text(COUNTED(""), &c, &err), DP_ARGUMENT);
    assert_non_null(strstr(err.text, "MASTER_ADDR is \"a b\""));
    no_environment();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(servers_may_be_counted),   cmocka_unit_test(port_is_the_same_on_each_host),
        cmocka_unit_test(first_server_is_named_by), cmocka_unit_test(patterns_are_filled_in_by_the_server),
        cmocka_unit_test(counted_form_reads_back),  cmocka_unit_test(wrong_forms_are_refused),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
