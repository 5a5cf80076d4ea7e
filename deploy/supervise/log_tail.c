#include "deploy/supervise/log_tail.h"

#include <signal.h>
#include <string.h>
#include <sys/wait.h>

#define TAIL_LINES 8
#define TAIL_BYTES 4096
#define TIME       (sizeof "2000-01-01T00:00:00.000Z" - 1)

/* The end of the log, without line ends behind it. */
static size_t read_tail(const char *path, long begin, char text[TAIL_BYTES + 1])
{
    FILE *log = fopen(path, "re");
    text[0] = '\0';
    if (!log)
        return 0;
    (void)fseek(log, 0, SEEK_END);
    long size = ftell(log);
    (void)fseek(log, size - begin > TAIL_BYTES ? size - TAIL_BYTES : begin, SEEK_SET);
    size_t n = fread(text, 1, TAIL_BYTES, log);
    (void)fclose(log);
    while (n > 0 && text[n - 1] == '\n')
        n--;
    text[n] = '\0';
    return n;
}

void dp_last_lines(const char *path, long begin, FILE *file)
{
    char text[TAIL_BYTES + 1];
    size_t from = read_tail(path, begin, text);
    for (int lines = 0; from > 0; from--)
        if (text[from - 1] == '\n' && ++lines == TAIL_LINES)
            break;
    for (char *line = text + from; line && *line;) {
        char *end = strchr(line, '\n');
        fprintf(file, "    %.*s\n", (int)strcspn(line, "\n"), line);
        line = end ? end + 1 : NULL;
    }
}

/* Where in a line of its log a child says why it ends; NULL: the line is another. */
static const char *why_it_ends(const char *name, const char *line)
{
    char prefix[64]; /* as dp_log writes it, behind the time */
    size_t len = (size_t)snprintf(prefix, sizeof prefix, " error %s: ", name);
    return strlen(line) > TIME && strncmp(line + TIME, prefix, len) == 0 ? line + TIME + len : NULL;
}

bool dp_end_of_log(const char *path, long from, const char *name, char *out, size_t size)
{
    char line[TAIL_BYTES];
    FILE *log = fopen(path, "re");
    out[0] = '\0';
    if (!log)
        return false;
    (void)fseek(log, from, SEEK_SET);
    while (fgets(line, sizeof line, log)) {
        line[strcspn(line, "\n")] = '\0';
        const char *why = why_it_ends(name, line);
        if (why)
            (void)snprintf(out, size, "%s", why);
    }
    (void)fclose(log);
    return out[0] != '\0';
}

static bool is_fault(int signal)
{
    static const int faults[] = {SIGABRT, SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS, SIGXFSZ, SIGXCPU};
    for (size_t i = 0; i < sizeof faults / sizeof faults[0]; i++)
        if (signal == faults[i])
            return true;
    return false;
}

bool dp_last_fault_repeats(struct dp_last_fault *fault, int status, const char *log, long from)
{
    char text[TAIL_BYTES + 1];
    struct dp_last_fault now = {.signal =
                                    WIFSIGNALED(status) && is_fault(WTERMSIG(status)) ? WTERMSIG(status) : 0};
    (void)read_tail(log, from, text);
    const char *end = strrchr(text, '\n'), *line = end ? end + 1 : text;
    if (strlen(line) > TIME && line[TIME - 1] == 'Z')
        line += TIME;
    (void)snprintf(now.line, sizeof now.line, "%.*s", (int)sizeof now.line - 1, line);
    bool same = now.signal != 0 && now.signal == fault->signal && strcmp(now.line, fault->line) == 0;
    *fault = now;
    return same;
}
