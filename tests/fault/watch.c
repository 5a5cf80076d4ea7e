#define _GNU_SOURCE
#include "tests/fault/watch.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static struct {
    bool begun;
    char root[PATH_MAX];
    char *name[DP_WATCH_FDS];
} watch;

bool dp_watch_begin(const char *root)
{
    watch.begun = root && realpath(root, watch.root);
    return watch.begun;
}

const char *dp_watch_name(int fd)
{
    return fd >= 0 && fd < DP_WATCH_FDS ? watch.name[fd] : NULL;
}

/* Components . and .. do not occur in what is watched. */
bool dp_watch_inside(int at, const char *path, char out[PATH_MAX])
{
    char whole[PATH_MAX];
    size_t len = 0, root = strlen(watch.root);
    int n;
    if (!watch.begun || !path)
        return false;
    if (path[0] == '/')
        n = snprintf(whole, sizeof whole, "%s", path);
    else if (dp_watch_name(at))
        n = snprintf(whole, sizeof whole, "%s/%s/%s", watch.root, dp_watch_name(at), path);
    else
        return false;
    if (n < 0 || n >= PATH_MAX)
        return false;
    for (const char *p = whole; *p; p++) /* one / for many, none at the end */
        if (*p != '/' || (p[1] && p[1] != '/'))
            whole[len++] = *p;
    whole[len] = '\0';
    if (strncmp(whole, watch.root, root) != 0 || (whole[root] && whole[root] != '/'))
        return false;
    (void)strcpy(out, whole + root + (whole[root] == '/'));
    return true;
}

bool dp_watch_add(int fd, const char *name)
{
    dp_watch_forget(fd);
    if (fd < 0 || fd >= DP_WATCH_FDS)
        return false;
    watch.name[fd] = strdup(name);
    return watch.name[fd] != NULL;
}

void dp_watch_forget(int fd)
{
    if (fd < 0 || fd >= DP_WATCH_FDS)
        return;
    free(watch.name[fd]);
    watch.name[fd] = NULL;
}
