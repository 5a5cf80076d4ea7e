#include "common/config/cluster_text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX (4u << 20)

static enum dp_status read_all(int fd, const char *path, char *text, size_t size, struct dp_error *err)
{
    size_t have = 0;
    while (have < size) {
        ssize_t got = read(fd, text + have, size - have);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return dp_fail(err, DP_IO, "cannot read cluster file '%s': %s", path, strerror(errno));
        if (got == 0)
            break;
        have += (size_t)got;
    }
    text[have] = '\0';
    if (strlen(text) != have)
        return dp_fail(err, DP_ARGUMENT, "cluster file '%s' holds a 0 byte: it is no text file", path);
    return DP_OK;
}

static enum dp_status load(const char *path, char **out, struct dp_error *err)
{
    enum dp_status st;
    struct stat info;
    char *text = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* does not hang on a FIFO */
    if (fd < 0 || fstat(fd, &info) != 0) {
        st = dp_fail(err, DP_IO, "cannot read cluster file '%.300s': %s", path, strerror(errno));
        goto done;
    }
    if (!S_ISREG(info.st_mode) || info.st_size > (off_t)FILE_BYTES_MAX) {
        st = dp_fail(err, DP_ARGUMENT, "cluster file '%s' is %s", path,
                     S_ISREG(info.st_mode) ? "larger than 4 MiB" : "no regular file");
        goto done;
    }
    text = malloc((size_t)info.st_size + 1);
    if (!text) {
        st = dp_fail(err, DP_NOMEM, "no memory for cluster file '%s'", path);
        goto done;
    }
    st = read_all(fd, path, text, (size_t)info.st_size, err);
done:
    if (fd >= 0)
        (void)close(fd);
    if (st != DP_OK) {
        free(text);
        text = NULL;
    }
    *out = text;
    return st;
}

/* Where we are in the text, and where the next byte goes in what is made of it. */
struct scan {
    const char *path, *at;
    char *to;
    int line;
    bool line_start; /* nothing but blanks before, on this line */
    struct dp_error *err;
};

static void copy(struct scan *scan, size_t n)
{
    for (; n > 0 && *scan->at; n--) {
        scan->line += *scan->at == '\n';
        *scan->to++ = *scan->at++;
    }
}

/* A comment or a string, whole. false: there is none here. */
static bool pass_over(struct scan *scan)
{
    const char *p = scan->at;
    if (*p == '#' || (p[0] == '/' && p[1] == '/')) {
        copy(scan, strcspn(p, "\n"));
    } else if (p[0] == '/' && p[1] == '*') {
        const char *end = strstr(p + 2, "*/");
        copy(scan, end ? (size_t)(end + 2 - p) : strlen(p));
    } else if (*p == '"') {
        size_t n = 1;
        while (p[n] && p[n] != '"')
            n += p[n] == '\\' && p[n + 1] ? 2 : 1;
        copy(scan, n + 1);
    } else if (isalpha((unsigned char)*p) || *p == '*') {
        size_t n = 1;
        while (isalnum((unsigned char)p[n]) || strchr("_-*", p[n]) != NULL) {
            if (p[n] == '\0')
                break;
            n++;
        }
        copy(scan, n);
    } else {
        return false;
    }
    return true;
}

static enum dp_status too_wide(const struct scan *scan, size_t digits)
{
    return dp_fail(scan->err, DP_ARGUMENT, "%s:%d: %.*s has more than 64 bits", scan->path, scan->line,
                   (int)(digits < 40 ? digits : 40), scan->at);
}

/* A number: copied, with an L where it needs one. */
static enum dp_status number(struct scan *scan)
{
    const char *p = scan->at;
    bool wide;
    size_t n;
    errno = 0;
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
        n = 2 + strspn(p + 2, "0123456789abcdefABCDEF");
        wide = strtoull(p, NULL, 16) > UINT32_MAX;
    } else {
        n = (size_t)(*p == '-' || *p == '+');
        n += strspn(p + n, "0123456789");
        if (p[n] == '.' || p[n] == 'e' || p[n] == 'E') {
            copy(scan, n + strspn(p + n, "0123456789.eE+-"));
            return DP_OK;
        }
        long long value = strtoll(p, NULL, 10);
        wide = value > INT32_MAX || value < INT32_MIN;
    }
    if (errno == ERANGE)
        return too_wide(scan, n);
    copy(scan, n);
    if (*scan->at == 'L')
        copy(scan, strspn(scan->at, "L"));
    else if (wide)
        *scan->to++ = 'L';
    return DP_OK;
}

static enum dp_status prepare(struct scan *scan)
{
    while (*scan->at) {
        const char *p = scan->at;
        bool blank = *p == ' ' || *p == '\t', line_start = scan->line_start;
        scan->line_start = *p == '\n' || (line_start && blank);
        if (line_start && strncmp(p, "@include", 8) == 0)
            return dp_fail(scan->err, DP_ARGUMENT,
                           "%s:%d: '@include' is not supported: keep the cluster in one file", scan->path,
                           scan->line);
        if (pass_over(scan))
            continue;
        if (isdigit((unsigned char)p[0]) || ((*p == '-' || *p == '+') && isdigit((unsigned char)p[1]))) {
            enum dp_status st = number(scan);
            if (st != DP_OK)
                return st;
        } else if (*p == '.') {
            copy(scan, 1 + strspn(p + 1, "0123456789eE+-"));
        } else {
            copy(scan, 1);
        }
    }
    *scan->to = '\0';
    return DP_OK;
}

enum dp_status dp_cluster_text(const char *path, char **out, struct dp_error *err)
{
    char *text = NULL, *ready = NULL;
    struct scan scan = {.path = path, .line = 1, .line_start = true, .err = err};
    enum dp_status st = load(path, &text, err);
    if (st != DP_OK)
        goto done;
    ready = malloc(2 * strlen(text) + 1); /* an L at most behind each digit */
    if (!ready) {
        st = dp_fail(err, DP_NOMEM, "no memory for cluster file '%s'", path);
        goto done;
    }
    scan.at =
        text + (strncmp(text, "\xef\xbb\xbf", 3) == 0 ? 3 : 0); /* UTF-8's mark, which some editors put */
    scan.to = ready;
    st = prepare(&scan);
done:
    free(text);
    if (st != DP_OK) {
        free(ready);
        ready = NULL;
    }
    *out = ready;
    return st;
}
