#define _GNU_SOURCE
#include "tests/lib/process.h"

#include "common/base/status.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PAUSE_NS (4 * 1000000L)
#define END_MS   10000u
#define TIMES    4u /* that a deadline may be put off by progress, in all */

struct stream {
    char path[1024];
    char *text;
};

struct dp_process {
    pid_t pid;
    bool ended;
    int status; /* of waitpid, once it has ended */
    struct stream out, err;
};

uint64_t dp_process_now_ms(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint64_t)now.tv_sec * 1000u + (uint64_t)now.tv_nsec / 1000000u;
}

void dp_process_pause(void)
{
    const struct timespec pause = {.tv_nsec = PAUSE_NS};
    (void)nanosleep(&pause, NULL);
}

char *dp_process_slurp(const char *path, size_t *size)
{
    FILE *file = fopen(path, "re");
    char *text = NULL;
    size_t len = 0, room = 0;
    if (!file)
        return NULL;
    do {
        if (len + 1 >= room) {
            room = room ? 2 * room : 65536;
            text = realloc(text, room);
            DP_ASSERT(text);
        }
        size_t got = fread(text + len, 1, room - len - 1, file);
        len += got;
        if (got == 0)
            break;
    } while (true);
    (void)fclose(file);
    text[len] = '\0';
    if (size)
        *size = len;
    return text;
}

/* In the child, after fork: only calls that are safe there. */
static _Noreturn void become(const struct dp_process_options *options, pid_t parent, int out, int err)
{
    (void)setsid();
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    int in = open("/dev/null", O_RDONLY);
    bool good = getppid() == parent && in >= 0 && dup2(in, 0) >= 0 && dup2(out, 1) >= 0 && dup2(err, 2) >= 0;
    if (good && options->cwd)
        good = chdir(options->cwd) == 0;
    for (const char *const *text = options->environment; good && text && *text; text++)
        good = putenv((char *)(uintptr_t)*text) == 0;
    if (good)
        (void)execvp(options->argv[0], (char *const *)(uintptr_t)options->argv);
    _exit(127);
}

struct dp_process *dp_process_start(const struct dp_process_options *options)
{
    struct dp_process *process = calloc(1, sizeof *process);
    DP_ASSERT(process);
    (void)snprintf(process->out.path, sizeof process->out.path, "%s.out", options->prefix);
    (void)snprintf(process->err.path, sizeof process->err.path, "%s.err", options->prefix);
    int out = open(process->out.path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    int err = open(process->err.path, O_WRONLY | O_CREAT | O_TRUNC | O_APPEND | O_CLOEXEC, 0666);
    DP_ASSERT(out >= 0 && err >= 0);
    pid_t parent = getpid();
    process->pid = fork();
    DP_ASSERT(process->pid >= 0);
    if (process->pid == 0)
        become(options, parent, out, err);
    (void)close(out);
    (void)close(err);
    return process;
}

/* Of /proc/PID/stat behind the command's name, which may hold anything: state, then session. */
static bool runs_in_session(pid_t pid, pid_t session)
{
    char path[64], line[1024];
    (void)snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    size_t len = fread(line, 1, sizeof line - 1, file);
    (void)fclose(file);
    line[len] = '\0';
    const char *behind = strrchr(line, ')');
    char state;
    long found;
    return behind && sscanf(behind + 1, " %c %*d %*d %ld", &state, &found) == 2 && found == (long)session &&
           state != 'Z' && state != 'X';
}

static bool command_holds(pid_t pid, const char *text)
{
    char path[64];
    size_t size = 0;
    (void)snprintf(path, sizeof path, "/proc/%ld/cmdline", (long)pid);
    char *line = dp_process_slurp(path, &size);
    if (!line)
        return false;
    for (size_t i = 0; i + 1 < size; i++)
        if (line[i] == '\0')
            line[i] = ' ';
    bool holds = strstr(line, text);
    free(line);
    return holds;
}

/* Calls for each of the session that runs, but its leader; how many there were. */
static uint32_t each_left(const struct dp_process *process, const char *text, int kill_with, pid_t *first)
{
    uint32_t n = 0;
    DIR *proc = opendir("/proc");
    DP_ASSERT(proc);
    for (const struct dirent *entry = readdir(proc); entry; entry = readdir(proc)) {
        pid_t pid = (pid_t)strtol(entry->d_name, NULL, 10);
        if (pid <= 0 || pid == process->pid || !runs_in_session(pid, process->pid))
            continue;
        if (text && !command_holds(pid, text))
            continue;
        if (first && n == 0)
            *first = pid;
        if (kill_with)
            (void)kill(pid, kill_with);
        n++;
    }
    (void)closedir(proc);
    return n;
}

uint32_t dp_process_left(const struct dp_process *process)
{
    return each_left(process, NULL, 0, NULL);
}

pid_t dp_process_find(const struct dp_process *process, const char *text)
{
    pid_t first = 0;
    (void)each_left(process, text, 0, &first);
    return first;
}

void dp_process_free(struct dp_process **process)
{
    struct dp_process *p = *process;
    if (!p)
        return;
    uint64_t deadline = dp_process_now_ms() + END_MS;
    if (!p->ended)
        (void)kill(p->pid, SIGKILL);
    while (each_left(p, NULL, SIGKILL, NULL) > 0 && dp_process_now_ms() < deadline)
        dp_process_pause();
    (void)dp_process_wait(p, END_MS);
    free(p->out.text);
    free(p->err.text);
    free(p);
    *process = NULL;
}

pid_t dp_process_pid(const struct dp_process *process)
{
    return process->pid;
}

/* A deadline for a process that makes progress: on a loaded machine it takes longer, and goes on saying something. */
struct deadline {
    uint64_t timeout_ms, until_ms, last_ms;
    off_t said;
};

static struct deadline deadline_in(uint32_t timeout_ms)
{
    uint64_t patient_ms = (uint64_t)timeout_ms * DP_PATIENCE, now_ms = dp_process_now_ms();
    return (struct deadline){patient_ms, now_ms + patient_ms, now_ms + patient_ms * TIMES, -1};
}

static off_t said(const struct dp_process *process)
{
    struct stat out, err;
    return stat(process->out.path, &out) == 0 && stat(process->err.path, &err) == 0
               ? out.st_size + err.st_size
               : 0;
}

static bool is_over(struct deadline *deadline, const struct dp_process *process)
{
    uint64_t now_ms = dp_process_now_ms();
    off_t so_far = said(process);
    if (so_far != deadline->said && deadline->said >= 0)
        deadline->until_ms = now_ms + deadline->timeout_ms;
    deadline->said = so_far;
    return now_ms >= deadline->until_ms || now_ms >= deadline->last_ms;
}

static bool has_ended(struct dp_process *process)
{
    if (!process->ended)
        process->ended = waitpid(process->pid, &process->status, WNOHANG) == process->pid;
    return process->ended;
}

static int result_of(const struct dp_process *process)
{
    if (!process->ended)
        return DP_PROCESS_RUNS;
    return WIFEXITED(process->status) ? WEXITSTATUS(process->status) : -WTERMSIG(process->status);
}

int dp_process_wait(struct dp_process *process, uint32_t timeout_ms)
{
    uint64_t deadline = dp_process_now_ms() + (uint64_t)timeout_ms * DP_PATIENCE;
    while (!has_ended(process) && dp_process_now_ms() < deadline)
        dp_process_pause();
    return result_of(process);
}

int dp_process_end(struct dp_process *process, uint32_t timeout_ms)
{
    struct deadline deadline = deadline_in(timeout_ms);
    while (!has_ended(process) && !is_over(&deadline, process))
        dp_process_pause();
    return result_of(process);
}
void dp_process_signal(const struct dp_process *process, int number)
{
    if (!process->ended) /* else the number may be another's by now */
        (void)kill(process->pid, number);
}

static const char *text_of(struct stream *stream)
{
    free(stream->text);
    stream->text = dp_process_slurp(stream->path, NULL);
    return stream->text ? stream->text : "";
}

const char *dp_process_out(struct dp_process *process)
{
    return text_of(&process->out);
}

const char *dp_process_err(struct dp_process *process)
{
    return text_of(&process->err);
}

bool dp_process_await(struct dp_process *process, const char *text, uint32_t timeout_ms)
{
    struct deadline deadline = deadline_in(timeout_ms);
    for (;;) {
        bool over = has_ended(process) || is_over(&deadline, process);
        if (strstr(dp_process_err(process), text) || strstr(dp_process_out(process), text))
            return true;
        if (over)
            return false;
        dp_process_pause();
    }
}
