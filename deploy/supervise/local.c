#include "deploy/supervise/local.h"

#include "common/base/deadline.h"
#include "deploy/supervise/log_tail.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/signalfd.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHILDREN_MAX   1024
#define LOG_BYTES_MAX  (16l << 20) /* a longer one makes room when the next run begins */
#define CLOSE_WORKERS  5000
#define CLOSE_SERVERS  60000
#define KILL_MS        10000
#define PAUSE_FIRST_MS 100u
#define PAUSE_MAX_MS   5000u
#define RETRY_PAUSE_MS 3000u  /* the longest of one that found its servers out of reach */
#define LIVED_MS       10000u /* one that lived so long begins with the first pause again */
#define RESTARTS_IN_MS 600000u
#define NEWS_MAX       8u

struct child {
    enum dp_local_role role;
    pid_t pid;
    bool running;
    bool stopping; /* it was asked to end */
    bool told;     /* how it ended has been said */
    bool spared;   /* dp_local_spare_worker */
    bool waits;    /* it died, and is started again at due_ms */
    uint64_t started_ms, due_ms;
    uint32_t pause_ms;
    char **argv; /* one block */
    int keep_fd;
    int status; /* of waitpid, when it has ended */
    char name[32];
    char *log;
    long log_from; /* where this run's part of the log begins */
    struct dp_last_fault fault;
};

struct dp_local {
    char title[64]; /* of what the children do, for their logs; empty: these are made anew */
    int signals;    /* signalfd */
    sigset_t before;
    int asked; /* the first of SIGINT, SIGTERM, SIGHUP */
    unsigned asked_count;
    bool ending;           /* since a stop, until the next start: who dies is not started again */
    bool restarts_retries; /* dp_local_restart_retries */
    uint32_t restarts_max;
    uint32_t restarts;    /* ever */
    uint64_t *restart_ms; /* [restarts_max], a ring: when the last ones were */
    uint32_t news_first, news_len;
    char news[NEWS_MAX][256];
    uint32_t children;
    struct child child[CHILDREN_MAX];
};

enum dp_status dp_local_open(struct dp_local **out, struct dp_error *err)
{
    sigset_t set;
    struct sigaction hangup = {0};
    struct dp_local *local = calloc(1, sizeof *local);
    *out = NULL;
    if (!local)
        return dp_fail(err, DP_NOMEM, "no memory to supervise processes");
    (void)sigemptyset(&set);
    (void)sigaddset(&set, SIGINT);
    (void)sigaddset(&set, SIGTERM);
    if (sigaction(SIGHUP, NULL, &hangup) != 0 || hangup.sa_handler != SIG_IGN) /* nohup */
        (void)sigaddset(&set, SIGHUP);
    (void)sigaddset(&set, SIGTSTP);
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
    (void)dp_local_stop(l, DP_LOCAL_OBSERVER, CLOSE_WORKERS);
    (void)dp_local_stop(l, DP_LOCAL_WORKER, CLOSE_WORKERS);
    (void)dp_local_stop(l, DP_LOCAL_SERVER, CLOSE_SERVERS);
    for (uint32_t i = 0; i < l->children; i++) {
        free(l->child[i].log);
        free(l->child[i].argv);
    }
    free(l->restart_ms);
    (void)close(l->signals);
    /* The signals stay blocked: a pending one would end this process before it has said how it went. */
    free(l);
    *local = NULL;
}

/* Between fork and exec: async-signal-safe calls only, as other threads may have held any lock. */
static _Noreturn void become(const char *const *argv, int log, int keep_fd, pid_t parent, int at_death)
{
    static const char failed[] = "cannot be executed; is it in the directory of the downpour command?\n";
    struct sigaction ordinary = {.sa_handler = SIG_DFL};
    sigset_t none;
    int empty = open("/dev/null", O_RDONLY);
    (void)setpgid(0, 0);
    (void)sigaction(SIGINT, &ordinary, NULL);
    (void)sigaction(SIGTERM, &ordinary, NULL);
    (void)sigaction(SIGHUP, &ordinary, NULL);
    (void)sigaction(SIGTSTP, &ordinary, NULL);
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

/* One block: the pointers, then the words. NULL: no memory. */
static char **copy_argv(const char *const *argv)
{
    size_t n = 0, bytes = 0;
    for (; argv[n]; n++)
        bytes += strlen(argv[n]) + 1;
    char **copy = malloc((n + 1) * sizeof *copy + bytes);
    if (!copy)
        return NULL;
    char *at = (char *)(copy + n + 1);
    for (size_t i = 0; i < n; i++) {
        size_t size = strlen(argv[i]) + 1;
        memcpy(at, argv[i], size);
        copy[i] = at;
        at += size;
    }
    copy[n] = NULL;
    return copy;
}

/* log_flags: O_TRUNC at first, later its log goes on. */
static enum dp_status launch(struct child *child, int log_flags, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    int fd = open(child->log, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC | log_flags, 0666);
    if (fd < 0)
        return dp_fail(err, DP_IO, "cannot write log '%s': %s", child->log, strerror(errno));
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        become((const char *const *)child->argv, fd, child->keep_fd, parent,
               child->role == DP_LOCAL_SERVER ? SIGTERM : SIGKILL);
    if (pid < 0) {
        st = dp_fail(err, DP_NOMEM, "cannot start %s: %s", child->name, strerror(errno));
    } else {
        (void)setpgid(pid, pid); /* here too: it may be signalled before it came that far */
        child->pid = pid;
        child->running = true;
        child->started_ms = dp_now_ms();
    }
    (void)close(fd);
    return st;
}

void dp_local_title(struct dp_local *local, const char *title)
{
    (void)snprintf(local->title, sizeof local->title, "%s", title);
}

/* The log goes on behind those of earlier runs, below a line that says where; one that has grown long takes the name log.1 first. */
static enum dp_status begin_log(const struct dp_local *local, struct child *child, struct dp_error *err)
{
    char old[4096 + 8], when[32];
    struct stat is;
    struct tm utc;
    const time_t now = time(NULL);
    if (!local->title[0])
        return DP_OK;
    (void)snprintf(old, sizeof old, "%s.1", child->log);
    if (stat(child->log, &is) == 0 && is.st_size > LOG_BYTES_MAX)
        (void)rename(child->log, old); /* else it goes on growing */
    FILE *log = fopen(child->log, "ae");
    if (!log)
        return dp_fail(err, DP_IO, "cannot write log '%s': %s", child->log, strerror(errno));
    (void)gmtime_r(&now, &utc);
    (void)strftime(when, sizeof when, "%Y-%m-%dT%H:%M:%SZ", &utc);
    fprintf(log, "==== %s, %s ====\n", local->title, when);
    (void)fclose(log); /* on a full disk the line is missing */
    child->log_from = stat(child->log, &is) == 0 ? (long)is.st_size : 0;
    return DP_OK;
}

enum dp_status dp_local_start(struct dp_local *local, enum dp_local_role role, const char *name,
                              const char *const *argv, const char *log, int keep_fd, struct dp_error *err)
{
    struct child *child = &local->child[local->children];
    local->ending = false;
    if (local->children == CHILDREN_MAX)
        return dp_fail(err, DP_FULL, "more than %d processes: start them manually from one cluster file",
                       CHILDREN_MAX);
    *child = (struct child){.role = role, .log = strdup(log), .argv = copy_argv(argv), .keep_fd = keep_fd};
    (void)snprintf(child->name, sizeof child->name, "%s", name);
    enum dp_status st = child->log && child->argv ? begin_log(local, child, err)
                                                  : dp_fail(err, DP_NOMEM, "cannot start %s", name);
    if (st == DP_OK)
        st = launch(child, local->title[0] ? 0 : O_TRUNC, err);
    if (st == DP_OK) {
        local->children++;
    } else {
        free(child->log);
        free(child->argv);
    }
    return st;
}

/* ---- starting again */

void dp_local_restart_dead(struct dp_local *local, uint32_t max)
{
    uint64_t *ring = max ? calloc(max, sizeof *ring) : NULL;
    free(local->restart_ms);
    local->restart_ms = ring;
    local->restarts_max = ring ? max : 0; /* without memory none is started again */
}

void dp_local_restart_retries(struct dp_local *local)
{
    local->restarts_retries = true;
}

void dp_local_start_again_with(struct dp_local *local, const char *without, const char *with)
{
    for (uint32_t i = 0; i < local->children; i++) {
        struct child *child = &local->child[i];
        size_t n = 0, kept = 0;
        while (child->argv[n])
            n++;
        const char **next = calloc(n + 2, sizeof *next);
        for (size_t k = 0; next && k < n; k++)
            if (strcmp(child->argv[k], without) != 0)
                next[kept++] = child->argv[k];
        if (next)
            next[kept] = with;
        char **argv = next ? copy_argv(next) : NULL;
        if (argv) {
            free(child->argv);
            child->argv = argv;
        }
        free(next);
    }
}

static void tell(struct dp_local *local, const char *text)
{
    if (local->news_len == NEWS_MAX) {
        local->news_first = (local->news_first + 1) % NEWS_MAX;
        local->news_len--;
    }
    char *news = local->news[(local->news_first + local->news_len++) % NEWS_MAX];
    (void)snprintf(news, sizeof local->news[0], "%.255s", text);
}

bool dp_local_news(struct dp_local *local, char *text, size_t size)
{
    if (local->news_len == 0)
        return false;
    (void)snprintf(text, size, "%s", local->news[local->news_first]);
    local->news_first = (local->news_first + 1) % NEWS_MAX;
    local->news_len--;
    return true;
}

static void how_it_ended(const struct child *child, char *text, size_t size)
{
    if (WIFSIGNALED(child->status))
        (void)snprintf(text, size, "%s was killed by signal %d (%s)", child->name, WTERMSIG(child->status),
                       strsignal(WTERMSIG(child->status)));
    else if (!child->stopping && child->role == DP_LOCAL_SERVER && WEXITSTATUS(child->status) == 0)
        (void)snprintf(text, size, "%s was ended by a SIGTERM from another program, and closed its store",
                       child->name);
    else
        (void)snprintf(text, size, "%s ended with status %d", child->name, WEXITSTATUS(child->status));
}

static uint32_t restarts_lately(const struct dp_local *local, uint64_t now)
{
    uint32_t kept = local->restarts < local->restarts_max ? local->restarts : local->restarts_max, n = 0;
    for (uint32_t i = 0; i < kept; i++)
        n += now - local->restart_ms[i] < RESTARTS_IN_MS;
    return n;
}

static void start_later(struct child *child, uint64_t now, uint32_t pause_max_ms)
{
    bool lived = now - child->started_ms >= LIVED_MS;
    child->pause_ms = lived || child->pause_ms == 0 ? PAUSE_FIRST_MS : child->pause_ms * 2;
    if (child->pause_ms > pause_max_ms)
        child->pause_ms = pause_max_ms;
    child->due_ms = now + child->pause_ms;
    child->waits = true;
}

/* Whether its exit code asks to be started again. */
static bool wants_retry(const struct dp_local *local, const struct child *child)
{
    return local->restarts_retries && WIFEXITED(child->status) && WEXITSTATUS(child->status) == DP_EXIT_RETRY;
}

/* After its end: whether it is to be started again, and when. */
static void consider(struct dp_local *local, struct child *child)
{
    char text[160], line[256];
    uint64_t now = dp_now_ms();
    bool retry = wants_retry(local, child);
    if (child->stopping || local->asked || child->role == DP_LOCAL_OBSERVER ||
        (WIFEXITED(child->status) && !retry) || (local->restarts_max == 0 && !retry))
        return;
    how_it_ended(child, text, sizeof text);
    if (retry && child->role == DP_LOCAL_WORKER) {
        start_later(child, now, RETRY_PAUSE_MS);
        (void)snprintf(line, sizeof line, "%s; it is started again in %.1f s", text,
                       child->pause_ms / 1000.0);
        tell(local, line);
        return;
    }
    bool lived = now - child->started_ms >= LIVED_MS;
    if (dp_last_fault_repeats(&child->fault, child->status, child->log, child->log_from) && !lived) {
        (void)snprintf(line, sizeof line, "%s, twice in the same way, and is not started again", text);
        tell(local, line);
        return;
    }
    if (restarts_lately(local, now) == local->restarts_max) {
        (void)snprintf(line, sizeof line,
                       "%s, and is not started again: %u restarts within 10 minutes are the limit "
                       "(--restarts)",
                       text, local->restarts_max);
        tell(local, line);
        return;
    }
    start_later(child, now, PAUSE_MAX_MS);
    local->restart_ms[local->restarts++ % local->restarts_max] = now;
    (void)snprintf(line, sizeof line,
                   "%s; it is started again in %.1f s (restart %u of %u within 10 minutes)", text,
                   child->pause_ms / 1000.0, local->restarts, local->restarts_max);
    tell(local, line);
}

/* Those that are due. One that cannot be started stays as it ended. */
static void start_again(struct dp_local *local)
{
    uint64_t now = dp_now_ms();
    for (uint32_t i = 0; i < local->children; i++) {
        struct child *child = &local->child[i];
        struct dp_error err = {0};
        if (!child->waits || now < child->due_ms)
            continue;
        child->waits = false;
        if (launch(child, 0, &err) != DP_OK)
            tell(local, err.text);
    }
}

static uint32_t until_due(const struct dp_local *local, uint32_t timeout_ms)
{
    uint64_t now = dp_now_ms(), left = timeout_ms;
    for (uint32_t i = 0; i < local->children; i++) {
        const struct child *child = &local->child[i];
        uint64_t in = child->due_ms > now ? child->due_ms - now : 0;
        if (child->waits && in < left)
            left = in;
    }
    return (uint32_t)left;
}

static const struct child *first_worker(const struct dp_local *local)
{
    uint32_t i = 0;
    while (i < local->children && local->child[i].role != DP_LOCAL_WORKER)
        i++;
    return i < local->children ? &local->child[i] : NULL;
}

static bool ended_badly(const struct child *child)
{
    if (child->running || child->waits || child->stopping || child->role == DP_LOCAL_OBSERVER)
        return false;
    return child->role == DP_LOCAL_SERVER || !WIFEXITED(child->status) || WEXITSTATUS(child->status) != 0;
}

static void tell_spared(struct dp_local *local, const struct child *child)
{
    char text[160], line[256];
    if (!child->spared || !ended_badly(child))
        return;
    how_it_ended(child, text, sizeof text);
    (void)snprintf(line, sizeof line, "%s; the others continue without it", text);
    tell(local, line);
}

static void reap(struct dp_local *local)
{
    for (uint32_t i = 0; i < local->children; i++) {
        struct child *child = &local->child[i];
        siginfo_t info = {0};
        if (!child->running || waitid(P_PID, (id_t)child->pid, &info, WEXITED | WNOHANG | WNOWAIT) != 0 ||
            info.si_pid == 0)
            continue;
        /* What it started goes with it, while its id still keeps the group's number from others. */
        (void)kill(-child->pid, SIGKILL);
        (void)waitpid(child->pid, &child->status, 0);
        child->running = false;
        if (local->ending)
            child->stopping = true; /* then the stop of its role tells how it ended */
        else
            consider(local, child);
        tell_spared(local, child);
    }
}

static void signal_groups(const struct dp_local *local, enum dp_local_role role, int signal)
{
    for (uint32_t i = 0; i < local->children; i++)
        if (local->child[i].running && local->child[i].role == role)
            (void)kill(-local->child[i].pid, signal);
}

/* Ctrl-Z: the children are in groups of their own, where the terminal does not reach them. Workers first and last, so that
 * none waits for a server that rests. */
static void suspend(const struct dp_local *local)
{
    signal_groups(local, DP_LOCAL_OBSERVER, SIGSTOP);
    signal_groups(local, DP_LOCAL_WORKER, SIGSTOP);
    signal_groups(local, DP_LOCAL_SERVER, SIGSTOP);
    (void)raise(SIGSTOP); /* until SIGCONT */
    signal_groups(local, DP_LOCAL_SERVER, SIGCONT);
    signal_groups(local, DP_LOCAL_WORKER, SIGCONT);
    signal_groups(local, DP_LOCAL_OBSERVER, SIGCONT);
}

void dp_local_wait(struct dp_local *local, uint32_t timeout_ms)
{
    struct pollfd fd = {.fd = local->signals, .events = POLLIN};
    struct signalfd_siginfo info;
    (void)poll(&fd, 1, (int)until_due(local, timeout_ms));
    while (read(local->signals, &info, sizeof info) == (ssize_t)sizeof info) {
        if (info.ssi_signo == SIGTSTP)
            suspend(local);
        if (info.ssi_signo == SIGCHLD || info.ssi_signo == SIGTSTP)
            continue;
        local->asked_count++;
        if (!local->asked)
            local->asked = (int)info.ssi_signo;
    }
    reap(local);
    if (!local->asked && !local->ending)
        start_again(local);
}

int dp_local_signal(const struct dp_local *local)
{
    return local->asked;
}

uint32_t dp_local_running(const struct dp_local *local, enum dp_local_role role)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < local->children; i++)
        n += (local->child[i].running || local->child[i].waits) && local->child[i].role == role;
    return n;
}

static const struct child *first_failed(const struct dp_local *local)
{
    for (uint32_t i = 0; i < local->children; i++)
        if (ended_badly(&local->child[i]) && !local->child[i].spared)
            return &local->child[i];
    return NULL;
}

void dp_local_spare_worker(struct dp_local *local, uint32_t worker)
{
    uint32_t n = 0;
    for (uint32_t i = 0; i < local->children; i++) {
        struct child *child = &local->child[i];
        if (child->role != DP_LOCAL_WORKER || n++ != worker || child->spared || worker == 0)
            continue;
        child->spared = true;
        tell_spared(local, child);
    }
}

bool dp_local_first_worker_ended(const struct dp_local *local)
{
    const struct child *first = first_worker(local);
    return first && !first->running && !first->waits && !ended_badly(first);
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

/* In which a child that ended by itself said why; false: how it ended. */
static bool last_words(const struct child *child, char *out, size_t size)
{
    bool by_itself = WIFEXITED(child->status) && (WEXITSTATUS(child->status) == DP_EXIT_FAILED ||
                                                  WEXITSTATUS(child->status) == DP_EXIT_RETRY);
    if (by_itself && dp_end_of_log(child->log, child->log_from, child->name, out, size))
        return true;
    how_it_ended(child, out, size);
    return false;
}

static void explain_one(const struct child *child, FILE *file)
{
    char text[1024];
    if (last_words(child, text, sizeof text)) {
        fprintf(file, "downpour: %s: %s\ndownpour: its log is %s\n", child->name, text, child->log);
        return;
    }
    fprintf(file, "downpour: %s; its log, %s, ends with:\n", text, child->log);
    dp_last_lines(child->log, child->log_from, file);
}

void dp_local_explain(const struct dp_local *local, FILE *file)
{
    if (first_failed(local))
        explain_one(first_failed(local), file); /* the others end because of it, more often than not */
}

bool dp_local_log_tail(const struct dp_local *local, char *out, size_t size)
{
    const struct child *child = first_failed(local);
    return child && last_words(child, out, size);
}

static void signal_all(struct dp_local *local, enum dp_local_role role, int signal)
{
    for (uint32_t i = 0; i < local->children; i++) {
        struct child *child = &local->child[i];
        if (child->role == role && child->waits) { /* it has ended already */
            child->waits = false;
            child->stopping = child->told = true;
        }
        if (!child->running || child->role != role)
            continue;
        child->stopping = true;
        child->told |= signal == SIGKILL; /* that it was killed is no news */
        /* SIGTERM to the process, which ends its own; SIGKILL to the group. */
        (void)kill(signal == SIGKILL ? -child->pid : child->pid, signal);
    }
}

int dp_local_exit_code(const struct dp_local *local)
{
    const struct child *child = &local->child[0];
    if (local->children == 0 || child->running || child->waits)
        return -1;
    return WIFEXITED(child->status) ? WEXITSTATUS(child->status) : 128 + WTERMSIG(child->status);
}

void dp_local_ask_to_stop(struct dp_local *local, enum dp_local_role role)
{
    reap(local);
    local->ending = true;
    signal_all(local, role, SIGTERM);
}

/* Whether all of the role have ended; false when the time is over, or at a second signal if hurried. (The first one may come now.) */
static bool await_end(struct dp_local *local, enum dp_local_role role, uint32_t timeout_ms, bool hurried)
{
    unsigned asked = local->asked_count ? local->asked_count : 1;
    uint64_t deadline = dp_now_ms() + timeout_ms;
    reap(local);
    while (dp_local_running(local, role) > 0) {
        uint64_t now = dp_now_ms();
        if (now >= deadline || (hurried && local->asked_count > asked))
            return false;
        dp_local_wait(local, (uint32_t)(deadline - now));
    }
    return true;
}

enum dp_status dp_local_stop(struct dp_local *local, enum dp_local_role role, uint32_t grace_ms)
{
    enum dp_status st = DP_OK;
    unsigned asked = local->asked_count ? local->asked_count : 1;
    reap(local);
    local->ending = true;
    signal_all(local, role, grace_ms ? SIGTERM : SIGKILL);
    if (!await_end(local, role, grace_ms ? grace_ms : KILL_MS, grace_ms > 0) && grace_ms > 0) {
        for (uint32_t i = 0; i < local->children; i++)
            if (local->child[i].running && local->child[i].role == role)
                fprintf(stderr, "downpour: %s %s; its log: %s\n", local->child[i].name,
                        local->asked_count > asked ? "is killed, as a second signal asks"
                                                   : "did not stop on request and is killed",
                        local->child[i].log);
        signal_all(local, role, SIGKILL);
        (void)await_end(local, role, KILL_MS, false);
        return DP_TIMEOUT;
    }
    for (uint32_t i = 0; role == DP_LOCAL_SERVER && i < local->children; i++) {
        struct child *child = &local->child[i];
        if (child->role != role || !child->stopping || child->told)
            continue;
        child->told = true;
        if (WIFSIGNALED(child->status) && WTERMSIG(child->status) == SIGTERM)
            continue; /* asked before it could close its store, and so before it opened one */
        if (WIFEXITED(child->status) && WEXITSTATUS(child->status) == DP_EXIT_RETRY)
            continue; /* it says so of the signal, too */
        if (!WIFEXITED(child->status) || WEXITSTATUS(child->status) != 0) {
            explain_one(child, stderr);
            st = DP_IO;
        }
    }
    return st;
}
