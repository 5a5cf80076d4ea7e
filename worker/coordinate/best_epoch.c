#include "worker/coordinate/best_epoch.h"

#include "common/base/deadline.h"
#include "common/env/installed.h"

#include <dirent.h>
#include <errno.h>
#include <inttypes.h>
#include <jansson.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define FIRST_MS 5u
#define LOOK_MS  50u
#define AGAIN_MS 200u

/* Between fork and exec: async-signal-safe calls only, as other threads may have held any lock. */
static _Noreturn void become(const char *const *argv, pid_t parent)
{
    sigset_t none;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* then the servers abandon the order, or the next command does */
    if (getppid() != parent)
        _exit(1);
    (void)sigemptyset(&none);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    (void)execv(argv[0], (char *const *)(uintptr_t)argv);
    _exit(127);
}

/* *worked: the command ended with 0. */
static enum dp_status run_once(struct dp_job *job, const char *const *argv, bool *worked,
                               struct dp_error *err)
{
    int status = 0;
    uint32_t ms = FIRST_MS;
    pid_t parent = getpid(), pid = fork();
    if (pid == 0)
        become(argv, parent);
    if (pid < 0)
        return dp_fail(err, DP_NOMEM, "cannot start %s: %s", argv[0], strerror(errno));
    enum dp_status st = DP_OK;
    while (st == DP_OK && waitpid(pid, &status, WNOHANG) == 0) {
        st = dp_shared_pause(job, ms, err);
        ms = ms < LOOK_MS / 2 ? 2 * ms : LOOK_MS;
    }
    if (st != DP_OK) {
        (void)kill(pid, SIGKILL);
        (void)waitpid(pid, &status, 0);
    }
    *worked = st == DP_OK && WIFEXITED(status) && WEXITSTATUS(status) == 0;
    return st;
}

enum dp_status dp_best_epoch_save(struct dp_job *job, uint32_t epoch, struct dp_error *err)
{
    const char *best = job->cluster->training.best;
    char program[DP_PATH_MAX + 1], which[32];
    bool worked = false;
    const char *const argv[] = {program,  "checkpoint", "--cluster", job->cluster_file, "--to", best,
                                "--best", which,        NULL};
    (void)snprintf(which, sizeof which, "%" PRIu32 ":%" PRIu32, job->cluster->training.run, epoch);
    enum dp_status st = dp_installed_program("downpour", program, sizeof program, err);
    /* A server that was killed comes back, and another checkpoint under way ends: the workers rest until then. */
    const uint64_t end_ms = dp_now_ms() + job->cluster->training.timeout_ms;
    if (st == DP_OK)
        st = run_once(job, argv, &worked, err);
    while (st == DP_OK && !worked && dp_now_ms() < end_ms) {
        st = dp_shared_pause(job, AGAIN_MS, err);
        if (st == DP_OK)
            st = run_once(job, argv, &worked, err);
    }
    if (st == DP_OK && !worked)
        st = dp_fail(
            err, DP_UNAVAILABLE,
            "the weights of this epoch, the best so far, cannot be saved in '%.300s' (why: above, in this "
            "log)",
            best);
    return st;
}

/* The manifest's fields: server/checkpoint/README.md, format 1. */
static bool is_of(const char *manifest, const struct dp_job *job, uint32_t epoch)
{
    char id[17];
    json_t *root = json_load_file(manifest, 0, NULL);
    const json_t *at = json_object_get(root, "position");
    const char *of = json_string_value(json_object_get(json_object_get(root, "cluster"), "id"));
    (void)snprintf(id, sizeof id, "%016" PRIx64, job->cluster->id);
    bool is = of && strcmp(of, id) == 0 && json_is_integer(json_object_get(at, "epoch")) &&
              json_integer_value(json_object_get(at, "run")) == (json_int_t)job->cluster->training.run &&
              json_integer_value(json_object_get(at, "epoch")) + 1 == (json_int_t)epoch;
    json_decref(root);
    return is;
}

bool dp_best_epoch_is_there(const struct dp_job *job, uint32_t epoch)
{
    const char *best = job->cluster->training.best;
    char manifest[DP_PATH_MAX + 300];
    bool is = false;
    DIR *list = opendir(best);
    for (struct dirent *entry = list ? readdir(list) : NULL; entry && !is; entry = readdir(list)) {
        (void)snprintf(manifest, sizeof manifest, "%s/%s/manifest.json", best, entry->d_name);
        is = strncmp(entry->d_name, "checkpoint-", 11) == 0 && is_of(manifest, job, epoch);
    }
    if (list)
        (void)closedir(list);
    return is;
}
