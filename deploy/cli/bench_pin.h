/* Pin: which of two processors this process, those it starts, and one thread of those run on.
 * Promise   What is started after a call (a process, a thread of ZeroMQ's) stays where the call put it.    */
#ifndef DP_CLI_BENCH_PIN_H
#define DP_CLI_BENCH_PIN_H

#include <stdbool.h>
#include <stdint.h>

enum dp_pin_kind {
    DP_PIN_NONE,    /* as the kernel likes */
    DP_PIN_PROCESS, /* the client on one, the server on the other */
    DP_PIN_SHARD,   /* the thread that serves on one, everything else (client, sockets, disk) on the other */
};

struct dp_pin {
    enum dp_pin_kind kind; /* NONE, too, where only one processor is allowed */
    uint32_t client, server;
};

struct dp_pin dp_pin_choose(enum dp_pin_kind kind);
/* The calling thread: where clients are; where servers are started; where a server's serving thread is. */
void dp_pin_client(const struct dp_pin *pin);
void dp_pin_server(const struct dp_pin *pin);
void dp_pin_serving(const struct dp_pin *pin);
/* The thread of that name, of that process, is a serving one. */
void dp_pin_thread(const struct dp_pin *pin, long pid, const char *name);

#endif
