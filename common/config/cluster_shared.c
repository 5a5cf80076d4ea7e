#include "common/config/cluster_shared.h"

#include <stdlib.h>
#include <string.h>

static size_t line_len(const char *text, size_t size)
{
    const char *end = memchr(text, '\n', size);
    return end ? (size_t)(end - text) : size;
}

/* The length of "servers[1].port" in its line. */
static size_t key_len(const char *line, size_t len)
{
    size_t n = 0;
    while (n < len && line[n] != ' ')
        n++;
    return n;
}

static enum dp_status refuse(const char *mine, size_t len, const char *first, size_t first_len,
                             const char *whose, struct dp_error *err)
{
    size_t key = key_len(mine, len), first_key = key_len(first, first_len), skip = key + strlen(" = ");
    bool same = key == first_key && memcmp(mine, first, key) == 0 && len > skip && first_len > skip;
    if (same)
        return dp_fail(err, DP_ARGUMENT,
                       "'%.*s' is %.*s in %s cluster file, and %.*s in that of the first server: "
                       "give all hosts the same file, and start server 0 with it",
                       (int)key, mine, (int)(len - skip < 60 ? len - skip : 60), mine + skip, whose,
                       (int)(first_len - skip < 60 ? first_len - skip : 60), first + skip);
    /* The longer file has a key that the other one lacks. */
    return dp_fail(
        err, DP_ARGUMENT, "the key '%.*s' is in %s cluster file only: give all hosts the same file",
        (int)(len > 0 ? key : first_key), len > 0 ? mine : first, len > 0 ? whose : "the first server's");
}

enum dp_status dp_cluster_shared_compare(const struct dp_cluster *cluster, const char *first, size_t size,
                                         const char *whose, struct dp_error *err)
{
    char *text = NULL;
    enum dp_status st = dp_cluster_shared_text(cluster, &text, err);
    const char *mine = text;
    size_t left = text ? strlen(text) : 0;
    while (st == DP_OK && (left > 0 || size > 0)) {
        size_t len = line_len(mine, left), first_len = line_len(first, size);
        if (len != first_len || (len > 0 && memcmp(mine, first, len) != 0))
            st = refuse(mine, len, first, first_len, whose, err);
        len += len < left;
        first_len += first_len < size;
        mine += len;
        left -= len;
        first += first_len;
        size -= first_len;
    }
    free(text);
    return st;
}
