#define _DEFAULT_SOURCE /* SO_COOKIE */
#include "common/net/guard.h"

#include "common/base/deadline.h"
#include "common/base/log.h"
#include "common/base/memory.h"
#include "common/net/net.h"
#include "common/net/socket.h"

#include <errno.h>
#include <inttypes.h>
#include <linux/tcp.h>
#include <netinet/in.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <zmq.h>

#define LOOK_MS    20u
#define PEERS_A_MS 4u    /* more peers are looked at less often */
#define FDS_LEAST  4096u /* descriptors watched, whatever the limit of open files is */
#define FDS_MOST   (1u << 20)
#define OWN_BYTES  1024u /* of a connection at most: ZeroMQ's greeting and handshake, which are never taken */
#define EVENTS     (ZMQ_EVENT_ACCEPTED | ZMQ_EVENT_DISCONNECTED | ZMQ_EVENT_MONITOR_STOPPED)

/* One connection, as the thread inside sees it. */
struct watched {
    int fd;
    uint64_t cookie;   /* which socket the descriptor was */
    uint64_t base;     /* taken - received, modulo 2^64, when nothing waited */
    uint64_t waiting;  /* at the last look */
    uint64_t taken;    /* at the last look */
    uint64_t taken_ms; /* when that was news, or no message waited */
    uint64_t acked;    /* by the peer, of what was sent to it */
    uint64_t acked_ms; /* when that was news, or nothing waited for it */
};

struct dp_guard {
    void *monitor; /* the thread's, once it runs */
    pthread_t thread;
    char endpoint[256];
    uint32_t count, fds;
    size_t room; /* of watched */
    struct watched *watched;
    _Atomic uint64_t peer_bytes, all_bytes, dropped;
    _Atomic uint32_t stall_ms;
    _Atomic int asked;        /* descriptor of the peer to drop; -1: none */
    _Atomic uint64_t taken[]; /* [fds]: ever, of all that had the descriptor */
};

/* False: no TCP socket, or a kernel that does not count. */
static bool measure(int fd, struct tcp_info *info, uint64_t *cookie)
{
    socklen_t bytes = sizeof *info, cookie_bytes = sizeof *cookie;
    return getsockopt(fd, IPPROTO_TCP, TCP_INFO, info, &bytes) == 0 &&
           bytes >= offsetof(struct tcp_info, tcpi_notsent_bytes) + sizeof info->tcpi_notsent_bytes &&
           getsockopt(fd, SOL_SOCKET, SO_COOKIE, cookie, &cookie_bytes) == 0;
}

static void forget(struct dp_guard *guard, int fd)
{
    for (uint32_t i = 0; i < guard->count; i++)
        if (guard->watched[i].fd == fd)
            guard->watched[i--] = guard->watched[--guard->count];
}

static void watch(struct dp_guard *guard, int fd)
{
    struct tcp_info info = {0};
    struct watched one = {.fd = fd, .acked_ms = dp_now_ms(), .taken_ms = dp_now_ms()};
    forget(guard, fd);
    if (fd < 0 || (uint32_t)fd >= guard->fds || !measure(fd, &info, &one.cookie))
        return;
    if (!dp_array_reserve(&guard->watched, guard->count, &guard->room, sizeof guard->watched[0])) {
        (void)shutdown(fd, SHUT_RDWR); /* a peer that cannot be watched cannot stay */
        return;
    }
    /* What came before this look counts as taken; where it was not, the next looks correct it. */
    one.base = atomic_load(&guard->taken[fd]) - info.tcpi_bytes_received;
    guard->watched[guard->count++] = one;
}

static void drop(struct dp_guard *guard, const struct watched *one, const char *why)
{
    struct tcp_info info;
    uint64_t cookie = 0;
    if (!measure(one->fd, &info, &cookie) || cookie != one->cookie) { /* closed since: it may be another's */
        forget(guard, one->fd);
        return;
    }
    dp_log(DP_LOG_WARN, "%s: a peer loses its connection: %s (%llu MB of its messages wait)", guard->endpoint,
           why, (unsigned long long)(one->waiting >> 20));
    (void)shutdown(one->fd, SHUT_RDWR);
    atomic_fetch_add(&guard->dropped, 1);
    forget(guard, one->fd);
}

/* Measures one connection again. NULL: it may stay; else why not. */
static const char *look(struct dp_guard *guard, struct watched *one, uint64_t now)
{
    struct tcp_info info = {0};
    uint64_t cookie = 0;
    uint64_t before = atomic_load(&guard->taken[one->fd]);
    if (!measure(one->fd, &info, &cookie) || cookie != one->cookie) {
        one->waiting = 0; /* closed: its event is on the way */
        one->acked_ms = one->taken_ms = now;
        return NULL;
    }
    /* What was taken while the kernel was asked counts in the peer's favour, both times. */
    uint64_t after = atomic_load(&guard->taken[one->fd]);
    if ((info.tcpi_bytes_received + one->base - before) >>
        63) /* more was taken than had seemed to be there */
        one->base = before - info.tcpi_bytes_received;
    one->waiting = info.tcpi_bytes_received + one->base - after;
    if (one->waiting >> 63)
        one->waiting = 0;
    if (one->waiting <= OWN_BYTES || after != one->taken) {
        one->taken = after;
        one->taken_ms = now;
    }
    if (info.tcpi_bytes_acked != one->acked || info.tcpi_notsent_bytes == 0) {
        one->acked = info.tcpi_bytes_acked;
        one->acked_ms = now;
    }
    if (one->waiting > atomic_load(&guard->peer_bytes))
        return "it sends more than is taken from it, or a message without end";
    if (now - one->acked_ms > atomic_load(&guard->stall_ms))
        return "it does not read its answers";
    return NULL;
}

/* Bytes times how long nothing was taken: many small messages without end must not push out the larger one of
 * a sound peer, which is soon whole and taken. */
static double burden(const struct watched *one, uint64_t now)
{
    return (double)one->waiting * (double)(now - one->taken_ms + 1);
}

static void look_at_all(struct dp_guard *guard)
{
    uint64_t all = 0, now = dp_now_ms();
    const struct watched *most = NULL;
    for (uint32_t i = 0; i < guard->count;) {
        struct watched one;
        const char *why = look(guard, &guard->watched[i], now);
        one = guard->watched[i];
        if (why) {
            drop(guard, &one, why);
            continue; /* another took its place */
        }
        all += one.waiting;
        i++;
    }
    if (all <= atomic_load(&guard->all_bytes))
        return;
    for (uint32_t i = 0; i < guard->count; i++)
        if (!most || burden(&guard->watched[i], now) > burden(most, now))
            most = &guard->watched[i];
    struct watched one = *most;
    drop(guard, &one, "too many bytes of all peers wait, and this peer has the most for the longest time");
}

static void drop_asked(struct dp_guard *guard)
{
    int fd = atomic_load(&guard->asked);
    for (uint32_t i = 0; i < guard->count && fd >= 0; i++)
        if (guard->watched[i].fd == fd) {
            struct watched one = guard->watched[i];
            drop(guard, &one, "peers leave too many replies unread, and this peer has the most");
            break;
        }
    atomic_store(&guard->asked, -1);
}

/* One event of the monitor: a frame with its number and a value, a frame with the address. False: it was the
 * last. */
static bool take_event(struct dp_guard *guard, bool *none)
{
    unsigned char frame[64];
    uint16_t event = 0;
    uint32_t value = 0;
    int n = zmq_recv(guard->monitor, frame, sizeof frame, ZMQ_DONTWAIT);
    *none = n < 0;
    if (n < 6)
        return n >= 0 || errno == EAGAIN || errno == EINTR;
    memcpy(&event, frame, sizeof event);
    memcpy(&value, frame + 2, sizeof value);
    (void)zmq_recv(guard->monitor, frame, sizeof frame, ZMQ_DONTWAIT);
    if (event == ZMQ_EVENT_ACCEPTED)
        watch(guard, (int)value);
    else if (event == ZMQ_EVENT_DISCONNECTED)
        forget(guard, (int)value);
    return event != ZMQ_EVENT_MONITOR_STOPPED;
}

static void *run(void *arg)
{
    struct dp_guard *guard = arg;
    uint64_t next = 0;
    for (bool goes_on = true; goes_on;) {
        zmq_pollitem_t item = {.socket = guard->monitor, .events = ZMQ_POLLIN};
        (void)zmq_poll(&item, 1, guard->count > 0 ? (long)(LOOK_MS + guard->count / PEERS_A_MS) : -1);
        bool none = false;
        while (goes_on && !none)
            goes_on = take_event(guard, &none);
        uint64_t now = dp_now_ms();
        if (goes_on && now >= next) {
            drop_asked(guard);
            look_at_all(guard);
            next = now + LOOK_MS + guard->count / PEERS_A_MS;
        }
    }
    return NULL;
}

static uint32_t fds_max(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) != 0 || limit.rlim_cur > FDS_MOST)
        return FDS_MOST;
    return limit.rlim_cur < FDS_LEAST ? FDS_LEAST : (uint32_t)limit.rlim_cur;
}

enum dp_status dp_guard_open(struct dp_net *net, void *socket, const char *endpoint, struct dp_guard **out,
                             struct dp_error *err)
{
    uint32_t fds = fds_max();
    struct dp_guard *guard = calloc(1, sizeof *guard + fds * sizeof guard->taken[0]);
    *out = NULL;
    if (!guard)
        return dp_fail(err, DP_NOMEM, "out of memory for the listener '%s'", endpoint);
    guard->fds = fds;
    atomic_store(&guard->asked, -1);
    dp_guard_limit(guard, DP_PEER_WAITING_MAX, DP_ALL_WAITING_MAX, DP_STALL_MS);
    (void)snprintf(guard->endpoint, sizeof guard->endpoint, "%s", endpoint);
    enum dp_status st = dp_socket_monitor(net, socket, EVENTS, true, endpoint, &guard->monitor, err);
    if (st == DP_OK && pthread_create(&guard->thread, NULL, run, guard) != 0)
        st = dp_fail(err, DP_NOMEM, "cannot start the thread that watches '%s'", endpoint);
    if (st != DP_OK) {
        (void)zmq_socket_monitor(socket, NULL, 0);
        if (guard->monitor)
            (void)zmq_close(guard->monitor);
        free(guard);
        return st;
    }
    *out = guard;
    return DP_OK;
}

void dp_guard_close(struct dp_guard **guard, void *socket)
{
    if (!*guard)
        return;
    (void)zmq_socket_monitor(socket, NULL, 0); /* its last event ends the thread */
    DP_ASSERT(pthread_join((*guard)->thread, NULL) == 0);
    (void)zmq_close((*guard)->monitor);
    free((*guard)->watched);
    free(*guard);
    *guard = NULL;
}

void dp_guard_limit(struct dp_guard *guard, uint64_t peer_bytes, uint64_t all_bytes, uint32_t stall_ms)
{
    atomic_store(&guard->peer_bytes, peer_bytes);
    atomic_store(&guard->all_bytes, all_bytes);
    atomic_store(&guard->stall_ms, stall_ms);
}

void dp_guard_taken(struct dp_guard *guard, int fd, uint64_t bytes)
{
    if (fd >= 0 && (uint32_t)fd < guard->fds)
        atomic_fetch_add_explicit(&guard->taken[fd], bytes, memory_order_relaxed);
}

void dp_guard_ask(struct dp_guard *guard, int fd)
{
    int none = -1;
    (void)atomic_compare_exchange_strong(&guard->asked, &none, fd);
}

bool dp_guard_is_asked(const struct dp_guard *guard)
{
    return atomic_load(&guard->asked) >= 0;
}

uint64_t dp_guard_dropped(const struct dp_guard *guard)
{
    return atomic_load(&guard->dropped);
}
