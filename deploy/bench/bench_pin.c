#define _GNU_SOURCE
#include "deploy/bench/bench_pin.h"

#include <dirent.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct dp_pin dp_pin_choose(enum dp_pin_kind kind)
{
    struct dp_pin pin = {0};
    cpu_set_t allowed;
    uint32_t found = 0;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0)
        return pin;
    for (uint32_t cpu = 0; cpu < CPU_SETSIZE && found < 2; cpu++)
        if (CPU_ISSET(cpu, &allowed))
            *(found++ == 0 ? &pin.client : &pin.server) = cpu;
    pin.kind = found == 2 ? kind : DP_PIN_NONE;
    return pin;
}

static void pin_to(const struct dp_pin *pin, int thread, uint32_t cpu)
{
    cpu_set_t set;
    CPU_ZERO(&set);
    CPU_SET(cpu, &set);
    if (pin->kind != DP_PIN_NONE)
        (void)sched_setaffinity(thread, sizeof set, &set);
}

void dp_pin_client(const struct dp_pin *pin)
{
    pin_to(pin, 0, pin->client);
}

void dp_pin_server(const struct dp_pin *pin)
{
    pin_to(pin, 0, pin->kind == DP_PIN_SHARD ? pin->client : pin->server);
}

void dp_pin_serving(const struct dp_pin *pin)
{
    pin_to(pin, 0, pin->server);
}

static bool has_name(long pid, const char *thread, const char *name)
{
    char path[320], line[64] = "";
    (void)snprintf(path, sizeof path, "/proc/%ld/task/%s/comm", pid, thread);
    FILE *file = fopen(path, "re");
    bool same = file && fgets(line, sizeof line, file) && strncmp(line, name, strlen(name)) == 0;
    if (file)
        (void)fclose(file);
    return same;
}

void dp_pin_thread(const struct dp_pin *pin, long pid, const char *name)
{
    char path[64];
    (void)snprintf(path, sizeof path, "/proc/%ld/task", pid);
    DIR *threads = pin->kind == DP_PIN_SHARD ? opendir(path) : NULL;
    for (const struct dirent *one = threads ? readdir(threads) : NULL; one; one = readdir(threads))
        if (one->d_name[0] != '.' && has_name(pid, one->d_name, name))
            pin_to(pin, atoi(one->d_name), pin->server);
    if (threads)
        (void)closedir(threads);
}
