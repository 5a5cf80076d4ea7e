#include "common/config/cluster_text.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FILE_BYTES_MAX (4u << 20)

static enum dp_status load(const char *path, char **out, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    struct stat info;
    char *text = NULL;
    size_t have = 0;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* does not hang on a FIFO */
    FILE *file = fd >= 0 ? fdopen(fd, "r") : NULL;
    bool good = file && fstat(fd, &info) == 0;
    if (good && (!S_ISREG(info.st_mode) || info.st_size > (off_t)FILE_BYTES_MAX)) {
        st = dp_fail(err, DP_ARGUMENT, "cluster file '%s' is %s", path,
                     S_ISREG(info.st_mode) ? "larger than 4 MiB" : "no regular file");
        goto done;
    }
    text = good ? calloc(1, (size_t)info.st_size + 1) : NULL;
    if (text)
        have = fread(text, 1, (size_t)info.st_size, file);
    if (!good || (text && ferror(file)))
        st = dp_fail(err, DP_IO, "cannot read '%.300s': %s", path, strerror(errno));
    else if (!text)
        st = dp_fail(err, DP_NOMEM, "no memory for cluster file '%s'", path);
    else if (strlen(text) != have)
        st = dp_fail(err, DP_ARGUMENT, "cluster file '%s' holds a 0 byte: it is no text file", path);
done:
    if (file)
        (void)fclose(file);
    else if (fd >= 0)
        (void)close(fd);
    if (st != DP_OK) {
        free(text);
        text = NULL;
    }
    *out = text;
    return st;
}

/* Bytes of the comment, string or name that begins here; 0: none does. */
static size_t passed_over(const char *p)
{
    size_t n = 1;
    if (*p == '#' || (p[0] == '/' && p[1] == '/'))
        return strcspn(p, "\n");
    if (p[0] == '/' && p[1] == '*') {
        const char *end = strstr(p + 2, "*/");
        return end ? (size_t)(end + 2 - p) : strlen(p);
    }
    if (*p == '"') {
        while (p[n] && p[n] != '"')
            n += p[n] == '\\' && p[n + 1] ? 2 : 1;
        return n + (p[n] == '"');
    }
    if (!isalpha((unsigned char)*p) && *p != '*')
        return 0;
    while (p[n] && (isalnum((unsigned char)p[n]) || strchr("_-*", p[n])))
        n++;
    return n;
}

/* Bytes of the number that begins here; 0: none does. *wide: it needs an L and has none. errno: ERANGE above 64 bits. */
static size_t number(const char *p, bool *wide)
{
    size_t n = (size_t)(*p == '-' || *p == '+');
    if (*p == '.')
        return 1 + strspn(p + 1, "0123456789eE+-");
    if (!isdigit((unsigned char)p[n]))
        return 0;
    if (p[0] == '0' && (p[1] == 'x' || p[1] == 'X')) {
        n = 2 + strspn(p + 2, "0123456789abcdefABCDEF");
        *wide = strtoull(p, NULL, 16) > UINT32_MAX;
    } else {
        long long value = strtoll(p, NULL, 10);
        n += strspn(p + n, "0123456789");
        if (p[n] == '.' || p[n] == 'e' || p[n] == 'E') {
            errno = 0;
            return n + strspn(p + n, "0123456789.eE+-");
        }
        *wide = value > INT32_MAX || value < INT32_MIN;
    }
    *wide = *wide && p[n] != 'L';
    return n + strspn(p + n, "L");
}

static enum dp_status prepare(const char *path, const char *at, char *to, struct dp_error *err)
{
    bool line_start = true; /* nothing but blanks before, on this line */
    for (int line = 1; *at;) {
        bool wide = false;
        if (line_start && strncmp(at, "@include", 8) == 0)
            return dp_fail(err, DP_ARGUMENT,
                           "%s:%d: '@include' is not supported: keep the cluster in one file", path, line);
        line_start = *at == '\n' || (line_start && (*at == ' ' || *at == '\t'));
        size_t n = passed_over(at);
        errno = 0;
        if (n == 0)
            n = number(at, &wide);
        if (errno == ERANGE)
            return dp_fail(err, DP_ARGUMENT, "%s:%d: %.*s has more than 64 bits", path, line,
                           (int)(n < 40 ? n : 40), at);
        for (n = n ? n : 1; n > 0; n--) {
            line += *at == '\n';
            *to++ = *at++;
        }
        if (wide)
            *to++ = 'L';
    }
    *to = '\0';
    return DP_OK;
}

enum dp_status dp_cluster_text(const char *path, char **out, struct dp_error *err)
{
    static const char mark[] = "\xef\xbb\xbf"; /* UTF-8's, which some editors put */
    char *text = NULL;
    *out = NULL;
    enum dp_status st = load(path, &text, err);
    if (st != DP_OK)
        return st;
    *out = malloc(2 * strlen(text) + 1); /* an L at most behind each digit */
    st = *out ? prepare(path, text + (strncmp(text, mark, 3) == 0 ? 3 : 0), *out, err)
              : dp_fail(err, DP_NOMEM, "no memory for cluster file '%s'", path);
    free(text);
    if (st != DP_OK) {
        free(*out);
        *out = NULL;
    }
    return st;
}
