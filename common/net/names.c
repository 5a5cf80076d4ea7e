#include "common/net/names.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

struct name {
    struct name *next;
    struct dp_names *names;
    bool runs;
    struct dp_name_found found;
    char host[];
};

struct dp_names {
    pthread_mutex_t lock;
    pthread_cond_t ended;
    uint32_t holders; /* the owner and the running lookups */
    struct name *first;
};

struct dp_names *dp_names_new(void)
{
    struct dp_names *names = calloc(1, sizeof *names);
    if (!names)
        return NULL;
    pthread_condattr_t attr;
    (void)pthread_mutex_init(&names->lock, NULL);
    (void)pthread_condattr_init(&attr);
    (void)pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    (void)pthread_cond_init(&names->ended, &attr);
    (void)pthread_condattr_destroy(&attr);
    names->holders = 1;
    return names;
}

/* Lock held; releases it. The last holder frees all. */
static void let_go(struct dp_names *names)
{
    bool last = --names->holders == 0;
    (void)pthread_mutex_unlock(&names->lock);
    if (!last)
        return;
    for (struct name *name = names->first, *next; name; name = next) {
        next = name->next;
        free(name);
    }
    (void)pthread_cond_destroy(&names->ended);
    (void)pthread_mutex_destroy(&names->lock);
    free(names);
}

void dp_names_free(struct dp_names **names)
{
    if (!*names)
        return;
    (void)pthread_mutex_lock(&(*names)->lock);
    let_go(*names);
    *names = NULL;
}

bool dp_names_is_one(const char *endpoint, char *host, size_t size)
{
    unsigned char address[sizeof(struct in6_addr)];
    const char *port = strrchr(endpoint, ':');
    if (strncmp(endpoint, "tcp://", 6) != 0 || port < endpoint + 6)
        return false;
    size_t len = (size_t)(port - (endpoint + 6));
    if (len == 0 || len >= size || endpoint[6] == '[' || endpoint[6] == '*')
        return false;
    memcpy(host, endpoint + 6, len);
    host[len] = '\0';
    return inet_pton(AF_INET, host, address) != 1;
}

/* IPv4 first: such an address needs no other setting of the socket. */
static void add_all(struct dp_name_found *found, const struct addrinfo *list, int family)
{
    for (const struct addrinfo *at = list; at && found->count < DP_NAME_ADDRESSES_MAX; at = at->ai_next) {
        char text[INET6_ADDRSTRLEN], *to = found->address[found->count];
        bool known = false;
        if (at->ai_family != family ||
            getnameinfo(at->ai_addr, at->ai_addrlen, text, sizeof text, NULL, 0, NI_NUMERICHOST) != 0)
            continue;
        (void)snprintf(to, sizeof found->address[0], family == AF_INET6 ? "[%s]" : "%s", text);
        for (uint32_t i = 0; i < found->count; i++)
            known |= strcmp(found->address[i], to) == 0;
        found->count += !known;
    }
}

static void *look_up(void *arg)
{
    struct name *name = arg;
    struct dp_names *names = name->names;
    struct dp_name_found found = {0};
    struct addrinfo *list = NULL;
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    found.error = getaddrinfo(name->host, NULL, &hints, &list);
    if (found.error == 0) {
        add_all(&found, list, AF_INET);
        add_all(&found, list, AF_INET6);
        freeaddrinfo(list);
        found.error = found.count > 0 ? 0 : EAI_NONAME;
    }
    (void)pthread_mutex_lock(&names->lock);
    found.lookups = name->found.lookups + 1;
    name->found = found;
    name->runs = false;
    (void)pthread_cond_broadcast(&names->ended);
    let_go(names);
    return NULL;
}

/* Lock held. NULL: there is none, and with `add` no memory for it. */
static struct name *find(struct dp_names *names, const char *host, bool add)
{
    struct name *name = names->first;
    while (name && strcmp(name->host, host) != 0)
        name = name->next;
    if (name || !add)
        return name;
    name = calloc(1, sizeof *name + strlen(host) + 1);
    if (!name)
        return NULL;
    memcpy(name->host, host, strlen(host) + 1);
    name->names = names;
    name->next = names->first;
    return names->first = name;
}

void dp_names_ask(struct dp_names *names, const char *host)
{
    pthread_t thread;
    sigset_t all, before;
    (void)sigfillset(&all);
    (void)pthread_mutex_lock(&names->lock);
    struct name *name = find(names, host, true);
    if (name && !name->runs) {
        (void)pthread_sigmask(SIG_SETMASK, &all,
                              &before); /* the thread inherits it: signals are the program's */
        name->runs = pthread_create(&thread, NULL, look_up, name) == 0;
        (void)pthread_sigmask(SIG_SETMASK, &before, NULL);
        if (name->runs) {
            (void)pthread_detach(thread);
            names->holders++;
        } else {
            name->found.error = EAI_MEMORY;
            name->found.lookups++;
        }
    }
    (void)pthread_mutex_unlock(&names->lock);
}

void dp_names_look(struct dp_names *names, const char *host, struct dp_name_found *out)
{
    (void)pthread_mutex_lock(&names->lock);
    const struct name *name = find(names, host, false);
    *out = name ? name->found : (struct dp_name_found){0};
    (void)pthread_mutex_unlock(&names->lock);
}

bool dp_names_wait(struct dp_names *names, const char *host, uint32_t timeout_ms, struct dp_name_found *out)
{
    struct timespec until;
    (void)clock_gettime(CLOCK_MONOTONIC, &until);
    until.tv_sec += timeout_ms / 1000;
    until.tv_nsec += (long)(timeout_ms % 1000) * 1000000;
    until.tv_sec += until.tv_nsec / 1000000000;
    until.tv_nsec %= 1000000000;
    (void)pthread_mutex_lock(&names->lock);
    const struct name *name = find(names, host, false);
    while (name && name->runs && pthread_cond_timedwait(&names->ended, &names->lock, &until) == 0)
        ;
    bool ended = name && !name->runs;
    *out = name ? name->found : (struct dp_name_found){0};
    (void)pthread_mutex_unlock(&names->lock);
    return ended;
}

const char *dp_names_reason(int error)
{
    return gai_strerror(error);
}

void dp_names_endpoint(const char *endpoint, const char *address, char *out, size_t size)
{
    (void)snprintf(out, size, "tcp://%s%s", address, strrchr(endpoint, ':'));
}
