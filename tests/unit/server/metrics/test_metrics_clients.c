/* Clients of the metrics thread: rubbish, other methods, large headers, clients that send nothing or read
 * nothing, and more of them than there are places. After each one a good client is answered. */
#include "tests/unit/server/metrics/metrics_bed.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define MANY 200

static struct bed bed;

static int setup(void **state)
{
    bed_start(&bed);
    return 0;
}

static int teardown(void **state)
{
    bed_stop(&bed);
    return 0;
}

static void is_well(void)
{
    char *text;
    assert_int_equal(bed_get(&bed, "/healthz", &text), 200);
    assert_string_equal(text, "ok\n");
    free(text);
}

static int status_of(const char *request, size_t size)
{
    char *text;
    int status = bed_send(&bed, request, size, &text);
    free(text);
    return status;
}

static void other_methods_and_paths_are_refused(void **state)
{
    static const char *const methods[] = {"POST",  "PUT",     "DELETE", "OPTIONS",
                                          "TRACE", "CONNECT", "get",    "XYZ"};
    char request[256], *text;
    for (size_t i = 0; i < sizeof methods / sizeof methods[0]; i++) {
        int n = snprintf(request, sizeof request,
                         "%s /metrics HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello", methods[i]);
        assert_int_equal(status_of(request, (size_t)n), 405);
    }
    static const char *const paths[] = {"/metrics/", "/metric", "/../etc/passwd", "/%2e%2e/x", "/metrics%00"};
    for (size_t i = 0; i < sizeof paths / sizeof paths[0]; i++) {
        int n = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", paths[i]);
        assert_int_equal(status_of(request, (size_t)n), i == 4 ? 200 : 404); /* %00 ends the path */
    }
    static const char head[] = "HEAD /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    assert_int_equal(bed_send(&bed, head, sizeof head - 1, &text), 200);
    assert_non_null(strstr(text, "Content-Type: text/plain; version=0.0.4"));
    assert_string_equal(strstr(text, "\r\n\r\n"), "\r\n\r\n");
    free(text);
    is_well();
}

static void rubbish_and_large_requests_end_nothing(void **state)
{
    static const char *const rubbish[] = {
        "\r\n\r\n\r\n",
        "GET\r\n\r\n",
        "GET / HTTP/9.9\r\n\r\n",
        "\x16\x03\x01\x02",
        "GET / HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n",
        "GET / HTTP/1.1\r\nTransfer-Encoding: chunked\r\nHost: x\r\n\r\nzz\r\n"};
    for (size_t i = 0; i < sizeof rubbish / sizeof rubbish[0]; i++) {
        int fd = bed_connect(&bed);
        (void)send(fd, rubbish[i], strlen(rubbish[i]), MSG_NOSIGNAL);
        (void)close(fd);
    }
    char *large = malloc(1 << 20);
    assert_non_null(large);
    memset(large, 'a', 1 << 20);
    memcpy(large, "GET / HTTP/1.1\r\nX: ", 19);
    int status = status_of(large, 1 << 20);
    assert_true(status == 0 || status == 413 || status == 431);
    memcpy(large, "GET /aaaaaaaaaaaaaa", 19);
    status = status_of(large, 1 << 20);
    assert_true(status == 0 || status == 414 || status == 431);
    srand(7);
    for (uint32_t i = 0; i < 64; i++) {
        for (uint32_t k = 0; k < 300; k++)
            large[k] = (char)(rand() >> 3);
        int fd = bed_connect(&bed);
        (void)send(fd, large, 300, MSG_NOSIGNAL);
        (void)close(fd);
    }
    free(large);
    is_well();
}

/* None of them sends a request, and none leaves. */
static void many_silent_clients_keep_no_other_out(void **state)
{
    int fds[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        fds[i] = bed_connect(&bed);
        (void)send(fds[i], "GET /metrics HTTP/1.1\r\nX: ", i % 27, MSG_NOSIGNAL);
    }
    is_well();
    for (uint32_t i = 0; i < MANY; i++)
        (void)close(fds[i]);
    is_well();
}

/* They ask, and do not read. */
static void clients_that_do_not_read_keep_no_other_out(void **state)
{
    static const char get[] = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";
    int fds[MANY], small = 1024;
    for (uint32_t i = 0; i < MANY; i++) {
        fds[i] = bed_connect(&bed);
        (void)setsockopt(fds[i], SOL_SOCKET, SO_RCVBUF, &small, sizeof small);
        (void)send(fds[i], get, sizeof get - 1, MSG_NOSIGNAL);
    }
    is_well();
    for (uint32_t i = 0; i < MANY; i++)
        (void)close(fds[i]);
}

static void a_port_in_use_is_refused_with_the_remedy(void **state)
{
    struct dp_exporter *second = NULL;
    struct dp_error err = {0};
    const struct dp_exporter_source source = {.shards = 1};
    assert_int_equal(dp_exporter_start(&bed.address, &source, &second, &err), DP_IO);
    assert_non_null(strstr(err.text, "Address already in use; choose another address or port"));
    /* A server that is only counted may have the next ones. */
    struct dp_metrics_address counted = bed.address;
    counted.more = 20;
    assert_int_equal(dp_exporter_start(&counted, &source, &second, &err), DP_OK);
    assert_string_not_equal(dp_exporter_url(second), dp_exporter_url(bed.metrics));
    dp_exporter_stop(&second);
    assert_null(second);
    is_well();
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(other_methods_and_paths_are_refused),
        cmocka_unit_test(rubbish_and_large_requests_end_nothing),
        cmocka_unit_test(many_silent_clients_keep_no_other_out),
        cmocka_unit_test(clients_that_do_not_read_keep_no_other_out),
        cmocka_unit_test(a_port_in_use_is_refused_with_the_remedy),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
