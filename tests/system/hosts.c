#define _GNU_SOURCE /* unshare */
#include "tests/system/hosts.h"

#include "tests/lib/test.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <inttypes.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

#define WRONG "02:00:00:00:00:99" /* of no host: what is sent there is lost */

static struct dp_process *holder[DP_HOSTS_MAX + 1];
static uint32_t address[DP_HOSTS_MAX + 1];

static bool put(const char *path, const char *text)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool good = fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text);
    if (fd >= 0)
        (void)close(fd);
    return good;
}

/* As an ordinary user, in a user namespace, in which it is root. */
static bool leave_network(void)
{
    char map[32];
    if (unshare(CLONE_NEWNET | CLONE_NEWNS) == 0)
        return true;
    (void)snprintf(map, sizeof map, "0 %u 1", (unsigned)geteuid());
    return unshare(CLONE_NEWUSER | CLONE_NEWNET | CLONE_NEWNS) == 0 && put("/proc/self/setgroups", "deny") &&
           put("/proc/self/uid_map", map);
}

/* For this program and those that it starts. */
static bool ask_here_for_names(void)
{
    char path[] = "/tmp/dp_resolv_XXXXXX";
    int fd = mkstemp(path);
    bool good = fd >= 0 && dprintf(fd, "nameserver 10.77.0.254\noptions timeout:2 attempts:1\n") > 0 &&
                mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0 &&
                mount(path, "/etc/resolv.conf", NULL, MS_BIND, NULL) == 0;
    if (fd >= 0) {
        (void)close(fd);
        (void)unlink(path);
    }
    return good;
}

bool dp_hosts_possible(void)
{
    return leave_network() && ask_here_for_names() &&
           system("ip link set lo up && ip link add br0 type bridge && ip link set br0 up && "
                  "ip addr add 10.77.0.254/24 dev br0 && command -v ss nsenter >/dev/null") == 0;
}

static void run(struct dp_place *place, const char *command)
{
    (void)dp_place_try(place, 0, "/bin/sh", "-c", command);
}

static unsigned pid_of(uint32_t host)
{
    return (unsigned)dp_process_pid(holder[host]);
}

void dp_hosts_do(struct dp_place *place, uint32_t host, const char *command)
{
    run(place, dp_place_text(place, "nsenter -t %u -n /bin/sh -c '%s'", pid_of(host), command));
}

void dp_hosts_open(struct dp_place *place, uint32_t count)
{
    for (uint32_t i = 1; i <= count; i++) {
        holder[i] =
            dp_place_start(place, "unshare", "--net", "sh", "-c", "echo made; exec sleep 100000", NULL);
        dp_place_awaits(holder[i], "made");
        address[i] = i;
        run(place, dp_place_text(
                       place,
                       "ip link del vh%u 2>/dev/null; ip link add vh%u type veth peer name eth0 netns %u && "
                       "ip link set vh%u master br0 up",
                       (unsigned)i, (unsigned)i, pid_of(i), (unsigned)i));
        dp_hosts_do(
            place, i,
            dp_place_text(place, "ip link set lo up; ip addr add 10.77.0.%u/24 dev eth0; ip link set eth0 up",
                          (unsigned)i));
    }
}

struct dp_process *dp_hosts_start(struct dp_place *place, uint32_t host, const char *program, const char *a,
                                  const char *b, const char *c, const char *d)
{
    return dp_place_start(place, "nsenter", "-t", dp_place_text(place, "%u", pid_of(host)), "-n", program, a,
                          b, c, d, NULL);
}

static void lose(struct dp_place *place, uint32_t from, uint32_t to)
{
    dp_hosts_do(place, from,
                dp_place_text(place, "ip neigh replace 10.77.0.%u lladdr " WRONG " dev eth0 nud permanent",
                              (unsigned)address[to]));
}

static void lose_no_more(struct dp_place *place, uint32_t from, uint32_t to)
{
    dp_hosts_do(place, from, dp_place_text(place, "ip neigh del 10.77.0.%u dev eth0", (unsigned)address[to]));
}

void dp_hosts_cut(struct dp_place *place, enum dp_hosts_cut kind, uint32_t a, uint32_t b)
{
    if (kind == DP_HOSTS_ALL) {
        run(place, dp_place_text(place, "ip link set vh%u down", (unsigned)a));
        return;
    }
    lose(place, a, b);
    if (kind == DP_HOSTS_PAIR)
        lose(place, b, a);
}

void dp_hosts_heal(struct dp_place *place, enum dp_hosts_cut kind, uint32_t a, uint32_t b)
{
    if (kind == DP_HOSTS_ALL) {
        run(place, dp_place_text(place, "ip link set vh%u up", (unsigned)a));
        return;
    }
    lose_no_more(place, a, b);
    if (kind == DP_HOSTS_PAIR)
        lose_no_more(place, b, a);
}

void dp_hosts_move(struct dp_place *place, uint32_t host, uint32_t to)
{
    dp_hosts_do(place, host,
                dp_place_text(place, "ip addr del 10.77.0.%u/24 dev eth0; ip addr add 10.77.0.%u/24 dev eth0",
                              (unsigned)address[host], (unsigned)to));
    address[host] = to;
}

struct dp_process *dp_hosts_name_server(struct dp_place *place)
{
    struct dp_process *server =
        dp_place_start(place, "python3", DP_SOURCE "/tests/system/name_server.py", "10.77.0.254", NULL);
    dp_place_awaits(server, "serving");
    return server;
}

const char *dp_hosts_connections(struct dp_place *place, uint32_t host, uint32_t from)
{
    struct dp_process *ss = dp_place_try(place, 0, "nsenter", "-t", dp_place_text(place, "%u", pid_of(host)),
                                         "-n", "/bin/sh", "-c",
                                         dp_place_text(place,
                                                       "ss -tnH state established dst 10.77.0.%u | "
                                                       "awk \"{ print \\$3, \\$4 }\" | sort",
                                                       (unsigned)address[from]));
    return dp_place_text(place, "%s", dp_process_out(ss));
}

uint64_t dp_hosts_received(uint32_t host, uint32_t from)
{
    char command[160], line[4096];
    uint64_t most = 0, bytes;
    (void)snprintf(command, sizeof command, "nsenter -t %u -n ss -tinH state established dst 10.77.0.%u",
                   pid_of(host), (unsigned)address[from]);
    FILE *pipe = popen(command, "re");
    assert_non_null(pipe);
    while (fgets(line, sizeof line, pipe)) {
        const char *at = strstr(line, "bytes_received:");
        if (at && sscanf(at, "bytes_received:%" SCNu64, &bytes) == 1 && bytes > most)
            most = bytes;
    }
    (void)pclose(pipe);
    return most;
}
