#include "deploy/cli/local.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHILDREN_MAX  1024
#define TAIL_LINES    8
#define TAIL_BYTES    4096
#define CLOSE_WORKERS 5000
#define CLOSE_SERVERS 60000
#define KILL_MS       10000

struct child {
    enum dp_local_role role;
    pid_t pid;
    bool running;
    bool stopping; /* it was asked to end */
    bool told;     /* how it ended has been said */
    int status;    /* of waitpid, when it has ended */
    char name[32];
    char *log;
};

struct dp_local {
    int signals; /* signalfd */
    sigset_t before;
    int asked; /* the first of SIGINT, SIGTERM, SIGHUP */
    unsigned asked_count;
    uint32_t children;
    struct child child[CHILDREN_MAX];
};

enum dp_status dp_local_open(struct dp_local **out, struct dp_error *err)
{
    sigset_t set;
    struct dp_local *local = calloc(1, sizeof *local);
    *out = NULL;
    if (!local)
        return dp_fail(err, DP_NOMEM, "no memory to supervise processes");
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGCHLD);
    (void)sigprocmask(SIG_BLOCK, &set, &local->before);
    local->signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    if (local->signals < 0) {
        enum dp_status st = dp_fail(err, DP_IO, "cannot watch for signals: %s", strerror(errno));
        (void)sigprocmask(SIG_SETMASK, &local->before, NULL);
        free(local);
        return st;
    }
    *out = local;
    return DP_OK;
}

void dp_local_close(struct dp_local **local)
{
    struct dp_local *l = *local;
    if (!l)
        return;
    (void)dp_local_stop(l, DP_LOCAL_WORKER, CLOSE_WORKERS);
    (void)dp_local_stop(l, DP_LOCAL_SERVER, CLOSE_SERVERS);
    for (uint32_t i = 0; i < l->children; i++)
        free(l->child[i].log);
    (void)close(l->signals);
    /* The signals stay blocked: one that waits to be delivered would end this process before it has said
     * how it went. */
    free(l);
    *local = NULL;
}

/* Between fork and exec: async-signal-safe calls only, as other threads may have held any lock. */
static _Noreturn void become(const char *const *argv, int log, int keep_fd, pid_t parent, int at_death)
{
    static const char failed[] = "cannot be executed; is it beside the downpour command?\n";
    struct sigaction ordinary = {.sa_handler = SIG_DFL};
    sigset_t none;
    int empty = open("/dev/null", O_RDONLY);
    (void)setpgid(0, 0);
    (void)sigaction(SIGINT, &ordinary, NULL);
    (void)sigaction(SIGTERM, &ordinary, NULL);
    (void)sigaction(SIGHUP, &ordinary, NULL);
    (void)sigaction(SIGPIPE, &ordinary, NULL);
    (void)prctl(PR_SET_PDEATHSIG, at_death);
    if (getppid() != parent)
        _exit(1); /* it died before the line above */
    (void)dup2(empty, STDIN_FILENO);
    (void)dup2(log, STDOUT_FILENO);
    (void)dup2(log, STDERR_FILENO);
    if (keep_fd >= 0)
        (void)fcntl(keep_fd, F_SETFD, 0);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)execv(argv[0], (char *const *)(uintptr_t)argv);
    (void)!write(STDERR_FILENO, argv[0], strlen(argv[0]));
    (void)!write(STDERR_FILENO, ": ", 2);
    (void)!write(STDERR_FILENO, failed, sizeof failed - 1);
    _exit(127);
}

enum dp_status dp_local_start(struct dp_local *local, enum dp_local_role role, const char *name,
                              const char *const *argv, const char *log, int keep_fd, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    struct child *child = &local->child[local->children];
    if (local->children == CHILDREN_MAX)
        return dp_fail(err, DP_FULL, "more than %d processes: start them by hand, from one cluster file",
                       CHILDREN_MAX);
    int fd = open(log, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    if (fd < 0)
        return dp_fail(err, DP_IO, "cannot write log '%s': %s", log, strerror(errno));
    *child = (struct child){.role = role, .log = strdup(log)};
    (void)snprintf(child->name, sizeof child->name, "%s", name);
    pid_t parent = getpid();
    pid_t pid = child->log ? fork() : -1;
    if (pid == 0)
        become(argv, fd, keep_fd, parent, role == DP_LOCAL_SERVER ? SIGTERM : SIGKILL);
    if (pid < 0) {
        st = dp_fail(err, DP_NOMEM, "cannot start %s: %s", name, strerror(errno));
        free(child->log);
    } else {
        (void)setpgid(pid, pid); /* here too: it may be signalled before it came that far */
        child->pid = pid;
        child->running = true;
        local->children++;
    }
    (void)close(fd);
    return st;
}

static void reap(struct dp_local *local)
{
    for (uint32_t i = 0; i < local->children; i++) {
        struct child *child = &local->child[i];
        siginfo_t info = {0};
        if (!child->running || waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid == 0)
            continue;
        /* What it had started itself goes with it, while its id still keeps the group's number from others.
         */
        (void)kill(-child->pid, SIGKILL);
        (void)waitpid(child->pid, &child->status, 0);
        child->running = false;
    }
}

void dp_local_wait(struct dp_local *local, uint32_t timeout_ms)
{
    struct pollfd fd = {.fd = local->signals, .events = POLLIN};
    struct signalfd_siginfo info;
    (void)poll(&fd, 1, (int)timeout_ms);
    while (read(local->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGCHLD)
            continue;
        local->asked_count++;
        if (!local->asked)
            local->asked = (int)info.ssi_signo;
    }
    reap(local);
}

int dp_local_signal(const struct dp_local *local)
{
    return local->asked;
}

uint32_t dp_local_running(const struct dp_local *local, enum dp_local_role role)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < local->children; i++)
        n += local->child[i].running && local->child[i].role == role;
    return n;
}

static bool ended_badly(const struct child *child)
{
    if (child->running || child->stopping)
        return false;
    return child->role == DP_LOCAL_SERVER || !WIFEXITED(child->status) || WEXITSTATUS(child->status) != 0;
}

static const struct child *first_failed(const struct dp_local *local)
{
    for (uint32_t i = 0; i < local->children; i++)
        if (ended_badly(&local->child[i]))
            return &local->child[i];
    return NULL;
}

bool dp_local_failed(const struct dp_local *local)
{
    return first_failed(local) != NULL;
}

bool dp_local_server_failed(const struct dp_local *local)
{
    const struct child *child = first_failed(local);
    return child && child->role == DP_LOCAL_SERVER; /* servers were started first, and so stand first */
}

static void show_tail(const char *path, FILE *file)
{
    char text[TAIL_BYTES + 1];
    FILE *log = fopen(path, "re");
    if (!log)
        return;
    (void)fseek(log, 0, SEEK_END);
    long size = ftell(log);
    (void)fseek(log, size > TAIL_BYTES ? size - TAIL_BYTES : 0, SEEK_SET);
    size_t n = fread(text, 1, TAIL_BYTES, log);
    (void)fclose(log);
    while (n > 0 && text[n - 1] == '\n')
        n--;
    text[n] = '\0';
    size_t from = n;
    for (int lines = 0; from > 0; from--)
        if (text[from - 1] == '\n' && ++lines == TAIL_LINES)
            break;
    for (char *line = text + from; line && *line;) {
        char *end = strchr(line, '\n');
        fprintf(file, "    %.*s\n", (int)strcspn(line, "\n"), line);
        line = end ? end + 1 : NULL;
    }
}

static void explain_one(const struct child *child, FILE *file)
{
    if (WIFSIGNALED(child->status))
        fprintf(file, "downpour: %s was killed by signal %d (%s)", child->name, WTERMSIG(child->status),
                strsignal(WTERMSIG(child->status)));
    else
        fprintf(file, "downpour: %s ended with status %d", child->name, WEXITSTATUS(child->status));
    fprintf(file, "; its log, %s, ends with:\n", child->log);
    show_tail(child->log, file);
}

void dp_local_explain(const struct dp_local *local, FILE *file)
{
    const struct child *child = first_failed(local);
    if (child)
        explain_one(child, file); /* the others end because of it, more often than not */
}

static uint64_t now_ms(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t)t.tv_sec * 1000 + (uint64_t)t.tv_nsec / 1000000;
}

static void signal_all(struct dp_local *local, enum dp_local_role role, int signal)
{
    for (uint32_t i = 0; i < local->children; i++) {
        struct child *child = &local->child[i];
        if (!child->running || child->role != role)
            continue;
        child->stopping = true;
        /* SIGTERM to the process, which ends its own; SIGKILL to the group. */
        (void)kill(signal == SIGKILL ? -child->pid : child->pid, signal);
    }
}

/* Whether all of the role have ended; false when the time is over, or at a signal if hurried. */
static bool await_end(struct dp_local *local, enum dp_local_role role, uint32_t timeout_ms, bool hurried)
{
    unsigned asked = local->asked_count;
    uint64_t deadline = now_ms() + timeout_ms;
    reap(local);
    while (dp_local_running(local, role) > 0) {
        uint64_t now = now_ms();
        if (now >= deadline || (hurried && local->asked_count != asked))
            return false;
        dp_local_wait(local, (uint32_t)(deadline - now));
    }
    return true;
}

enum dp_status dp_local_stop(struct dp_local *local, enum dp_local_role role, uint32_t grace_ms)
{
    enum dp_status st = DP_OK;
    reap(local);
    signal_all(local, role, grace_ms ? SIGTERM : SIGKILL);
    if (grace_ms == 0) {
        (void)await_end(local, role, KILL_MS, false);
        for (uint32_t i = 0; i < local->children; i++) /* that it was killed is no news */
            local->child[i].told |= local->child[i].stopping;
        return DP_OK;
    }
    if (!await_end(local, role, grace_ms, true)) {
        for (uint32_t i = 0; i < local->children; i++)
            if (local->child[i].running && local->child[i].role == role)
                fprintf(stderr, "downpour: %s did not stop when asked to, and is killed; its log: %s\n",
                        local->child[i].name, local->child[i].log);
        signal_all(local, role, SIGKILL);
        (void)await_end(local, role, KILL_MS, false);
        return DP_TIMEOUT;
    }
    for (uint32_t i = 0; role == DP_LOCAL_SERVER && i < local->children; i++) {
        struct child *child = &local->child[i];
        if (child->role != role || !child->stopping || child->told)
            continue;
        child->told = true;
        if (!WIFEXITED(child->status) || WEXITSTATUS(child->status) != 0) {
            explain_one(child, stderr);
            st = DP_IO;
        }
    }
    return st;
}
