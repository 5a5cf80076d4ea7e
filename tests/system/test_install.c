/* Downpour as it is installed: the client library in a program of a user's own, by pkg-config and by CMake's
 * package, and the programs beside it. */
#include "tests/lib/test.h"
#include "tests/system/place.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXAMPLE DP_SOURCE "/tests/system/example_client.c"

static struct dp_process *shell(struct dp_place *place, int code, const char *line)
{
    return dp_place_try(place, code, "/bin/sh", "-c", line);
}

static void install(struct dp_place *place)
{
    (void)dp_place_try(place, 0, DP_CMAKE, "--install", DP_BUILD, "--prefix", dp_place_path(place, "prefix"));
}

/* Runs a client three times, the last time on servers that were started again: each takes the weight down by
 * 0.5 from where it was. */
static void client_works(struct dp_place *place, const char *program)
{
    struct dp_place_cluster cluster = {.servers = 2, .top = "id = 7;"};
    const char *conf = dp_place_conf(place, &cluster);
    const char *start = dp_place_text(
        place,
        "LD_LIBRARY_PATH=$(dirname %s/lib*/libdownpour.so %s/lib/*/libdownpour.so 2>/dev/null | "
        "tr '\\n' :) EXAMPLE_CLUSTER=7 exec %s ",
        dp_place_path(place, "prefix"), dp_place_path(place, "prefix"), program);
    const char *line[2] = {dp_place_text(place, "%s tcp://127.0.0.1:%u tcp://127.0.0.1:%u", start,
                                         (unsigned)cluster.port + 1, (unsigned)cluster.port + 3),
                           dp_place_text(place, "%s %s", start, conf)};
    double last = 0;
    for (int i = 0; i < 3; i++) {
        struct dp_process *server[2] = {dp_place_server(place, conf, 0), dp_place_server(place, conf, 1)};
        for (int twice = 0; twice < 1 + (i == 0); twice++) {
            double before = 0, after = 0;
            struct dp_process *client = shell(place, 0, line[twice]);
            if (sscanf(dp_process_out(client), "1000 rows of 8: weight %lf before, %lf after", &before,
                       &after) != 2)
                fail_msg("it said '%s'", dp_process_out(client));
            assert_true(before - after > 0.4999 && before - after < 0.5001);
            assert_true(i + twice == 0 || (before - last < 0.0001 && last - before < 0.0001));
            last = after;
        }
        dp_place_stops_cleanly(server[0]);
        dp_place_stops_cleanly(server[1]);
    }
}

static void a_client_by_pkg_config(void **state)
{
    struct dp_place *place = *state;
    install(place);
    const char *prefix = dp_place_path(place, "prefix"), *program = dp_place_path(place, "client");
    const char *find = dp_place_text(
        place, "PKG_CONFIG_PATH=$(find %s -name pkgconfig -type d | head -n 1) && export PKG_CONFIG_PATH && ",
        prefix);
    (void)shell(
        place, 0,
        dp_place_text(
            place,
            "%spkg-config --exists downpour && %s -std=c17 -Wall -Wextra -Werror %s -DDOWNPOUR_INSTALLED "
            "-o %s %s $(pkg-config --cflags --libs downpour)",
            find, DP_CC, DP_FLAGS, program, EXAMPLE));
    client_works(place, program);
}

static void a_client_by_cmakes_package(void **state)
{
    static const char lists[] = "cmake_minimum_required(VERSION 3.22)\n"
                                "project(client C)\n"
                                "find_package(downpour REQUIRED)\n"
                                "add_executable(client " EXAMPLE ")\n"
                                "target_compile_definitions(client PRIVATE DOWNPOUR_INSTALLED)\n"
                                "target_link_libraries(client PRIVATE downpour::downpour)\n";
    struct dp_place *place = *state;
    install(place);
    (void)shell(place, 0, dp_place_text(place, "mkdir %s", dp_place_path(place, "client")));
    (void)dp_place_file(place, "client/CMakeLists.txt", lists, strlen(lists));
    const char *build = dp_place_path(place, "client/build");
    (void)dp_place_try(place, 0, DP_CMAKE, "-S", dp_place_path(place, "client"), "-B", build,
                       dp_place_text(place, "-DCMAKE_PREFIX_PATH=%s", dp_place_path(place, "prefix")),
                       dp_place_text(place, "-DCMAKE_C_COMPILER=%s", DP_CC),
                       dp_place_text(place, "-DCMAKE_C_FLAGS=%s", DP_FLAGS));
    (void)dp_place_try(place, 0, DP_CMAKE, "--build", build);
    client_works(place, dp_place_path(place, "client/build/client"));
}

static void the_installed_programs_train(void **state)
{
    struct dp_place *place = *state;
    install(place);
    const char *downpour = dp_place_path(place, "prefix/bin/downpour"), *run = dp_place_path(place, "run");
    (void)dp_place_try(place, 0, downpour, "run", "--dir", run, "--servers", "2", "--workers", "2", "--model",
                       "mlp:64-64-10", "--train", DP_DIGITS_TRAIN, "--test", DP_DIGITS_TEST, "--scale",
                       "0.0625", "--epochs", "2");
    (void)dp_place_try(place, 0, downpour, "predict", "--from", run, "--data", DP_DIGITS_TEST);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(a_client_by_pkg_config, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(a_client_by_cmakes_package, dp_place_setup, dp_place_teardown),
        cmocka_unit_test_setup_teardown(the_installed_programs_train, dp_place_setup, dp_place_teardown),
    };
    return cmocka_run_group_tests_name("install", tests, NULL, NULL);
}
