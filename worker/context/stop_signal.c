#include "worker/context/stop_signal.h"

#include <signal.h>
#include <stddef.h>

/* A signal handler can reach nothing else. */
static atomic_int stop_signal;

static void on_signal(int number)
{
    atomic_store(&stop_signal, number);
}

const atomic_int *dp_stop_signal(void)
{
    return &stop_signal;
}

void dp_stop_signal_catch(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    (void)sigemptyset(&action.sa_mask);
    (void)sigaction(SIGTERM, &action, NULL);
    (void)sigaction(SIGINT, &action, NULL);
}
