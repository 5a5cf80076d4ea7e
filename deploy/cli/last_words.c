#include "deploy/cli/last_words.h"

#include <string.h>

#define TAIL_LINES 8
#define TAIL_BYTES 4096

void dp_last_lines(const char *path, long begin, FILE *file)
{
    char text[TAIL_BYTES + 1];
    FILE *log = fopen(path, "re");
    if (!log)
        return;
    (void)fseek(log, 0, SEEK_END);
    long size = ftell(log);
    (void)fseek(log, size - begin > TAIL_BYTES ? size - TAIL_BYTES : begin, SEEK_SET);
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

/* Where in a line of its log a child says why it ends; NULL: the line is another. */
static const char *why_it_ends(const char *name, const char *line)
{
    char prefix[64]; /* as dp_log writes it, behind the time */
    size_t time = sizeof "2000-01-01T00:00:00.000Z" - 1;
    size_t len = (size_t)snprintf(prefix, sizeof prefix, " error %s: ", name);
    return strlen(line) > time && strncmp(line + time, prefix, len) == 0 ? line + time + len : NULL;
}

bool dp_last_words(const char *path, long from, const char *name, char *out, size_t size)
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
