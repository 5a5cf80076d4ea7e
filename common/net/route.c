#include "common/net/names.h"
#include "common/net/socket.h"

#include <errno.h>
#include <netdb.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

/* NULL: it is no address. */
static struct addrinfo *parse(const char *address)
{
    struct addrinfo *to = NULL;
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM, .ai_flags = AI_NUMERICHOST};
    char plain[64];
    size_t skip = address[0] == '[', len = strcspn(address + skip, "]");
    (void)snprintf(plain, sizeof plain, "%.*s", (int)len, address + skip);
    return getaddrinfo(plain, "0", &hints, &to) == 0 ? to : NULL;
}

bool dp_net_is_own(const char *address)
{
    struct addrinfo *own = parse(address);
    int fd = own ? socket(own->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0) : -1;
    bool yes = fd < 0 || bind(fd, own->ai_addr, own->ai_addrlen) == 0 || errno != EADDRNOTAVAIL;
    if (fd >= 0)
        (void)close(fd);
    if (own)
        freeaddrinfo(own);
    return yes;
}

/* A connected UDP socket has the address that the kernel would send from; nothing is sent. errno, or 0. */
static int ask_kernel(const char *address, char *out, size_t size)
{
    struct sockaddr_storage own;
    socklen_t own_size = sizeof own;
    struct addrinfo *to = parse(address);
    char text[INET6_ADDRSTRLEN + 32];
    if (!to)
        return EADDRNOTAVAIL;
    int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    int number = fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
                         getsockname(fd, (struct sockaddr *)&own, &own_size) == 0
                     ? 0
                     : errno;
    if (number == 0 &&
        getnameinfo((struct sockaddr *)&own, own_size, text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0)
        number = EADDRNOTAVAIL;
    if (number == 0)
        (void)snprintf(out, size, to->ai_family == AF_INET6 ? "[%s]" : "%s", text);
    if (fd >= 0)
        (void)close(fd);
    freeaddrinfo(to);
    return number;
}

enum dp_status dp_net_route(struct dp_net *net, const char *endpoint, uint32_t timeout_ms, char *out,
                            size_t size, struct dp_error *err)
{
    struct dp_name_found found = {.count = 1};
    char host[256];
    int number = EADDRNOTAVAIL;
    if (dp_names_is_one(endpoint, host, sizeof host)) {
        dp_names_ask(net->names, host);
        if (!dp_names_wait(net->names, host, timeout_ms, &found))
            return dp_fail(err, DP_UNAVAILABLE, "no name server answers for '%s'", host);
        if (found.error)
            return dp_fail(err, DP_UNAVAILABLE, "the name '%s' cannot be resolved (%s)", host,
                           dp_names_reason(found.error));
    } else {
        const char *at = endpoint + strlen("tcp://");
        (void)snprintf(found.address[0], sizeof found.address[0], "%.*s", (int)(strrchr(endpoint, ':') - at),
                       at);
    }
    for (uint32_t i = 0; i < found.count && number != 0; i++)
        number = ask_kernel(found.address[i], out, size);
    return number == 0 ? DP_OK
                       : dp_fail(err, DP_UNAVAILABLE, "there is no route to '%s' (%s)", found.address[0],
                                 strerror(number));
}
