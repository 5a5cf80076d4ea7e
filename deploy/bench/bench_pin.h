/* Pin: assigns this process, its children, and one thread of those to two processors.
 * Promise   Whatever starts after a call (a process, a ZeroMQ thread) stays where the call put it. */
#ifndef DP_BENCH_BENCH_PIN_H
#define DP_BENCH_BENCH_PIN_H

#include <stdbool.h>
#include <stdint.h>

enum dp_pin_kind {
    DP_PIN_NONE,    /* left to the kernel */
    DP_PIN_PROCESS, /* the client on one, the server on the other */
    DP_PIN_SHARD,   /* the thread that serves on one, everything else (client, sockets, disk) on the other */
};

struct dp_pin {
    enum dp_pin_kind kind; /* NONE, too, if only one processor is allowed */
    uint32_t client, server;
};

struct dp_pin dp_pin_choose(enum dp_pin_kind kind);
/* Move the calling thread to the processor of clients, of servers that it starts, or of a server's serving
 * thread. */
void dp_pin_client(const struct dp_pin *pin);
void dp_pin_server(const struct dp_pin *pin);
void dp_pin_serving(const struct dp_pin *pin);
/* Moves the threads of that name in process `pid` to the serving processor. */
void dp_pin_thread(const struct dp_pin *pin, long pid, const char *name);

#endif
