#include "worker/whole.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum dp_status dp_whole_open(const char *path, struct dp_whole *out, struct dp_error *err)
{
    *out = (struct dp_whole){0};
    size_t size = strlen(path) + 32;
    out->path = strdup(path);
    out->temporary = malloc(size);
    enum dp_status st = DP_NOMEM;
    if (!out->path || !out->temporary) {
        (void)dp_fail(err, st, "no memory to write %s", path);
        goto done;
    }
    (void)snprintf(out->temporary, size, "%s.tmp.%ld", path, (long)getpid());
    out->stream = fopen(out->temporary, "we");
    st = out->stream ? DP_OK : dp_fail(err, DP_IO, "cannot write %s: %s", out->temporary, strerror(errno));
done:
    if (st != DP_OK)
        dp_whole_drop(out);
    return st;
}

enum dp_status dp_whole_commit(struct dp_whole *whole, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    int bad = ferror(whole->stream);
    errno = 0;
    bad |= fflush(whole->stream);
    bad |= fsync(fileno(whole->stream));
    int why = errno; /* of the first that says something */
    bad |= fclose(whole->stream);
    whole->stream = NULL;
    if (bad || rename(whole->temporary, whole->path) != 0)
        st = dp_fail(err, DP_IO, "cannot write %s: %s", whole->path, strerror(why ? why : errno));
    if (st == DP_OK) {
        free(whole->temporary);
        whole->temporary = NULL; /* it has its name now: nothing to remove */
    }
    dp_whole_drop(whole);
    return st;
}

void dp_whole_drop(struct dp_whole *whole)
{
    if (whole->stream)
        (void)fclose(whole->stream);
    if (whole->temporary)
        (void)unlink(whole->temporary);
    free(whole->path);
    free(whole->temporary);
    *whole = (struct dp_whole){0};
}
