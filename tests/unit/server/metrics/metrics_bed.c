#include "tests/unit/server/metrics/metrics_bed.h"

#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

static void shard(void *context, uint32_t at, struct dp_exporter_shard *out)
{
    *out = ((struct bed *)context)->shard[at];
}

static uint64_t idle(void *context)
{
    return ((struct bed *)context)->control_idle_ms;
}

static void each_note(void *context, const char *prefix,
                      void (*see)(void *to, const struct dp_board_note *note, uint64_t age_ns), void *to)
{
    const struct bed *bed = context;
    for (uint32_t i = 0; i < bed->notes; i++)
        if (strncmp(bed->note[i].name, prefix, strlen(prefix)) == 0)
            see(to, &bed->note[i], bed->note_age_ns);
}

static void fill(struct dp_shard_observed *o)
{
#define OWN(own, kind, help) o->counter[o->counters++] = (struct dp_counter){#own, 1000};
    DP_COUNTER_MAP(OWN)
#undef OWN
#define STORE(own, kind, help) o->counter[o->counters++] = (struct dp_counter){"store_" #own, 1000};
    DP_STORE_COUNTER_MAP(STORE)
#undef STORE
    o->histograms = 3;
    dp_histogram_init_numbers(&o->histogram[0], "staleness");
    dp_histogram_init_numbers(&o->histogram[1], "clock_gap");
    dp_histogram_init_shares(&o->histogram[2], "changed");
    for (uint32_t h = 0; h < 3; h++)
        for (uint32_t i = 0; i < 4; i++)
            dp_histogram_add(&o->histogram[h], i * 0.25 + (h < 2 && i == 3 ? 99999 : 0));
    o->refusals[dp_refusal_cause(DP_AGAIN, DP_WAIT_DISK)] = 7;
    o->refusals[dp_refusal_cause(DP_INVALID, DP_WAIT_NONE)] = 5;
}

void bed_start(struct bed *bed)
{
    struct dp_error err = {0};
    const struct dp_metrics_address any = {.host = "127.0.0.1"};
    const struct dp_exporter_source source = {.cluster = "a \"test\"",
                                              .server = 1,
                                              .first_shard = 4,
                                              .shards = BED_SHARDS,
                                              .started_s = 1700000000,
                                              .shard = shard,
                                              .control_idle_ms = idle,
                                              .each_note = each_note,
                                              .context = bed};
    *bed = (struct bed){.address = {.host = "127.0.0.1"}};
    for (uint32_t i = 0; i < BED_SHARDS; i += 2) {
        bed->shard[i].since_s = 1700000000 + i;
        fill(&bed->shard[i].observed);
    }
    (void)dp_fail_wait(&bed->shard[1].why, DP_AGAIN,
                       (struct dp_wait){.reason = DP_WAIT_RECOVERING, .done = 3, .total = 9},
                       "shard 5 is recovering: <3 of 9>");
    assert_int_equal(dp_exporter_start(&any, &source, &bed->metrics, &err), DP_OK);
    bed->address.port = (uint16_t)strtoul(strrchr(dp_exporter_url(bed->metrics), ':') + 1, NULL, 10);
}

void bed_stop(struct bed *bed)
{
    dp_exporter_stop(&bed->metrics);
    for (uint32_t i = 0; i < bed->notes; i++) {
        free(bed->note[i].name);
        free(bed->note[i].bytes);
    }
}

void bed_note(struct bed *bed, const char *name, const char *text)
{
    bed->note[bed->notes++] =
        (struct dp_board_note){.name = strdup(name), .bytes = strdup(text), .size = strlen(text)};
}

int bed_connect(const struct bed *bed)
{
    struct sockaddr_in to = {.sin_family = AF_INET, .sin_port = htons(bed->address.port)};
    struct timeval wait = {.tv_sec = 10};
    to.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    int fd = socket(AF_INET, SOCK_STREAM, 0);
    assert_true(fd >= 0);
    assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait), 0);
    assert_int_equal(connect(fd, (const struct sockaddr *)&to, sizeof to), 0);
    return fd;
}

int bed_send(const struct bed *bed, const char *bytes, size_t size, char **answer)
{
    int fd = bed_connect(bed), status = 0;
    size_t got = 0, room = 1 << 20;
    ssize_t n = send(fd, bytes, size, MSG_NOSIGNAL);
    *answer = calloc(1, room + 1);
    assert_non_null(*answer);
    while (n >= 0 && got < room && (n = recv(fd, *answer + got, room - got, 0)) > 0)
        got += (size_t)n;
    (void)close(fd);
    return sscanf(*answer, "HTTP/1.%*d %d", &status) == 1 ? status : 0;
}

int bed_get(const struct bed *bed, const char *path, char **body)
{
    char request[256];
    const struct timespec cached = {.tv_nsec = 120 * 1000000};
    (void)nanosleep(&cached, NULL);
    int n = snprintf(request, sizeof request, "GET %s HTTP/1.1\r\nHost: x\r\n\r\n", path);
    int status = bed_send(bed, request, (size_t)n, body);
    char *end = strstr(*body, "\r\n\r\n");
    if (end)
        memmove(*body, end + 4, strlen(end + 4) + 1);
    return status;
}
