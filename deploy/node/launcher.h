/* Launcher: the process that started this one, and whether it is still there.
 * Promise   It is missing once this process has another parent, or once nothing reads standard error any more
 *           (a pipe or terminal whose other end was closed). A launcher that is killed by SIGKILL cannot say
 *           more: mpirun, srun and sshd leave one or both signs. Where SIGHUP is ignored (nohup), this
 *           process is meant to outlive its parent, and neither counts.
 * Thread    One. */
#ifndef DP_NODE_LAUNCHER_H
#define DP_NODE_LAUNCHER_H

#include <stdbool.h>
#include <sys/types.h>

struct dp_launcher {
    bool counts; /* false: it may end before this process */
    bool read;   /* standard error was, when this process began */
    pid_t parent;
};

struct dp_launcher dp_launcher_begin(void);
bool dp_launcher_is_missing(const struct dp_launcher *launcher);

#endif
