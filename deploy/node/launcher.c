#include "deploy/node/launcher.h"

#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <unistd.h>

static bool is_read(void)
{
    struct pollfd fd = {.fd = STDERR_FILENO};
    return poll(&fd, 1, 0) == 0;
}

struct dp_launcher dp_launcher_begin(void)
{
    struct sigaction hangup = {0};
    bool ignored = sigaction(SIGHUP, NULL, &hangup) == 0 && hangup.sa_handler == SIG_IGN;
    return (struct dp_launcher){.counts = !ignored, .read = is_read(), .parent = getppid()};
}

bool dp_launcher_is_missing(const struct dp_launcher *launcher)
{
    return launcher->counts && (getppid() != launcher->parent || (launcher->read && !is_read()));
}
