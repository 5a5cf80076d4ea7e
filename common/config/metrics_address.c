#include "common/config/metrics_address.h"

#include "common/base/parse.h"

#include <arpa/inet.h>
#include <inttypes.h>
#include <string.h>

static bool is_address(const char *host, bool bracketed)
{
    unsigned char bytes[sizeof(struct in6_addr)];
    return inet_pton(bracketed ? AF_INET6 : AF_INET, host, bytes) == 1;
}

enum dp_status dp_metrics_address_parse(const char *text, const char *what, struct dp_metrics_address *out,
                                        struct dp_error *err)
{
    const char *colon = strrchr(text, ':'), *port = colon ? colon + 1 : text;
    size_t length = colon ? (size_t)(colon - text) : 0;
    bool bracketed = length > 2 && text[0] == '[' && text[length - 1] == ']';
    uint64_t number = 0;
    if (bracketed)
        length -= 2;
    if (length >= sizeof out->host)
        return dp_fail(err, DP_ARGUMENT, "%s is longer than %u bytes", what, DP_METRICS_TEXT_MAX);
    memcpy(out->host, text + bracketed, length);
    out->host[length] = '\0';
    if (length == 0 || strcmp(out->host, "localhost") == 0)
        (void)snprintf(out->host, sizeof out->host, "127.0.0.1");
    if (!is_address(out->host, bracketed) || !*port ||
        dp_parse_u64(port, 0, 65535, what, &number, err) != DP_OK)
        return dp_fail(
            err, DP_ARGUMENT,
            "%s is \"%s\", but must be ADDRESS:PORT (127.0.0.1:9600, 0.0.0.0:9600 for all addresses, "
            "[::1]:9600) or PORT, which is on loopback; port 0: any free one",
            what, text);
    out->port = (uint16_t)number;
    out->more = 0;
    return DP_OK;
}

enum dp_status dp_metrics_address_of(const struct dp_cluster *cluster, uint32_t server,
                                     struct dp_metrics_address *out, struct dp_error *err)
{
    uint32_t before = 0;
    enum dp_status st = dp_metrics_address_parse(cluster->metrics, "'metrics'", out, err);
    if (st != DP_OK || out->port == 0)
        return st;
    if (cluster->counted.count > 0) {
        uint32_t others = cluster->server_count - 1, left = 65535u - out->port;
        out->more = (uint16_t)(others < left ? others : left);
        return DP_OK;
    }
    for (uint32_t i = 0; i < server; i++)
        before += strcmp(cluster->server[i].host, cluster->server[server].host) == 0;
    if (before > 65535u - out->port)
        return dp_fail(err, DP_ARGUMENT,
                       "'metrics' is \"%s\", and servers on one host take the next ports: server %" PRIu32
                       " would get %" PRIu32 ", above 65535; give it a lower one",
                       cluster->metrics, server, before + out->port);
    out->port = (uint16_t)(out->port + before);
    return DP_OK;
}
