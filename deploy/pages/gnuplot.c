#include "deploy/pages/gnuplot.h"

#include "common/base/deadline.h"
#include "common/base/text.h"
#include "deploy/pages/svg.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define OUTPUT_MAX  (8u << 20)
#define PIECE       65536u
#define END_LOOK_MS 10

extern char **environ;

struct gnuplot_child {
    FILE *script, *complaints;
    int output; /* the end to read; -1 */
    pid_t pid;
    char *bytes;
    size_t size;
    uint64_t deadline_ms;
};

static enum dp_status prepare(struct gnuplot_child *child, const struct dp_plot *plot, struct dp_error *err)
{
    child->script = tmpfile();
    child->complaints = tmpfile();
    if (!child->script || !child->complaints)
        return dp_fail(err, DP_IO, "cannot make a temp file for gnuplot: %s", strerror(errno));
    dp_plot_script(plot, child->script);
    if (fflush(child->script) != 0 || lseek(fileno(child->script), 0, SEEK_SET) != 0)
        return dp_fail(err, DP_IO, "cannot write a temp file for gnuplot: %s", strerror(errno));
    return DP_OK;
}

static enum dp_status start(struct gnuplot_child *child, struct dp_error *err)
{
    char *const argv[] = {"gnuplot", "-d", NULL}; /* -d: without the user's settings */
    int ends[2];
    posix_spawn_file_actions_t files;
    if (pipe(ends) != 0)
        return dp_fail(err, DP_IO, "cannot make a pipe for gnuplot: %s", strerror(errno));
    child->output = ends[0];
    (void)fcntl(ends[0], F_SETFD, FD_CLOEXEC);
    (void)fcntl(ends[1], F_SETFD, FD_CLOEXEC);
    int why = posix_spawn_file_actions_init(&files);
    if (why == 0) {
        why = posix_spawn_file_actions_adddup2(&files, fileno(child->script), STDIN_FILENO);
        if (why == 0)
            why = posix_spawn_file_actions_adddup2(&files, ends[1], STDOUT_FILENO);
        if (why == 0)
            why = posix_spawn_file_actions_adddup2(&files, fileno(child->complaints), STDERR_FILENO);
        if (why == 0)
            why = posix_spawnp(&child->pid, argv[0], &files, NULL, argv, environ);
        (void)posix_spawn_file_actions_destroy(&files);
    }
    (void)close(ends[1]);
    if (why == 0)
        return DP_OK;
    child->pid = 0;
    return why == ENOENT ? dp_fail(err, DP_NOT_FOUND, "gnuplot is not installed")
                         : dp_fail(err, DP_IO, "cannot start gnuplot: %s", strerror(why));
}

static int left_ms(const struct gnuplot_child *child)
{
    uint64_t now = dp_now_ms();
    return now >= child->deadline_ms ? 0 : (int)(child->deadline_ms - now);
}

/* All that it writes. */
static enum dp_status read_output(struct gnuplot_child *child, struct dp_error *err)
{
    for (;;) {
        struct pollfd wait = {.fd = child->output, .events = POLLIN};
        int ready = poll(&wait, 1, left_ms(child));
        if (ready < 0 && errno == EINTR)
            continue;
        if (ready == 0)
            return dp_fail(err, DP_TIMEOUT, "gnuplot did not end in time");
        char *more =
            ready > 0 && child->size < OUTPUT_MAX ? realloc(child->bytes, child->size + PIECE) : NULL;
        if (!more)
            return dp_fail(err, DP_FULL, "gnuplot wrote more than %u bytes, or there is no memory for it",
                           OUTPUT_MAX);
        child->bytes = more;
        ssize_t n = read(child->output, child->bytes + child->size, PIECE);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return dp_fail(err, DP_IO, "cannot read the output of gnuplot: %s", strerror(errno));
        if (n == 0)
            return DP_OK;
        child->size += (size_t)n;
    }
}

/* What it said first, or its exit code. */
static enum dp_status failed(struct gnuplot_child *child, int code, struct dp_error *err)
{
    char line[200] = "";
    rewind(child->complaints);
    while (fgets(line, sizeof line, child->complaints) && strspn(line, " ^\t\n") == strlen(line))
        continue;
    line[strcspn(line, "\n")] = '\0';
    dp_text_clean(line);
    return dp_fail(err, DP_DATA, "gnuplot failed (%s %d): %s", WIFSIGNALED(code) ? "signal" : "exit code",
                   WIFSIGNALED(code) ? WTERMSIG(code) : WEXITSTATUS(code), line);
}

/* Its output ended, so it is about to. */
static enum dp_status await_end(struct gnuplot_child *child, struct dp_error *err)
{
    int code = 0;
    for (;;) {
        pid_t ended = waitpid(child->pid, &code, WNOHANG);
        if (ended == child->pid)
            break;
        if (ended < 0 && errno != EINTR)
            return dp_fail(err, DP_IO, "cannot wait for gnuplot: %s", strerror(errno));
        if (left_ms(child) == 0)
            return dp_fail(err, DP_TIMEOUT, "gnuplot did not end in time");
        (void)poll(NULL, 0, END_LOOK_MS);
    }
    child->pid = 0;
    return WIFEXITED(code) && WEXITSTATUS(code) == 0 ? DP_OK : failed(child, code, err);
}

static void end(struct gnuplot_child *child)
{
    if (child->pid > 0) {
        (void)kill(child->pid, SIGKILL);
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    if (child->output >= 0)
        (void)close(child->output);
    if (child->script)
        (void)fclose(child->script);
    if (child->complaints)
        (void)fclose(child->complaints);
    free(child->bytes);
}

enum dp_status dp_gnuplot_draw(const struct dp_plot *plot, uint32_t timeout_ms, char **out,
                               struct dp_error *err)
{
    struct gnuplot_child child = {.output = -1, .deadline_ms = dp_now_ms() + timeout_ms};
    *out = NULL;
    enum dp_status st = prepare(&child, plot, err);
    if (st == DP_OK)
        st = start(&child, err);
    if (st == DP_OK)
        st = read_output(&child, err);
    if (st == DP_OK)
        st = await_end(&child, err);
    if (st == DP_OK)
        st = dp_svg_take(child.bytes ? child.bytes : "", child.size, plot->caption,
                         plot->kind != DP_PLOT_LINES && plot->count > 1, out, err);
    end(&child);
    return st;
}
