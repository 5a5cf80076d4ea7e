#include "worker/whole.h"

#include <errno.h>
#include <stdbool.h>
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
    /* Close in any case; the first failure says why. A write that failed earlier left no errno behind. */
    bool good = ferror(whole->stream) == 0;
    int why = good ? 0 : EIO;
    if (good && (fflush(whole->stream) != 0 || fsync(fileno(whole->stream)) != 0)) {
        why = errno;
        good = false;
    }
    if (fclose(whole->stream) != 0 && good) {
        why = errno;
        good = false;
    }
    whole->stream = NULL;
    if (good && rename(whole->temporary, whole->path) != 0) {
        why = errno;
        good = false;
    }
    enum dp_status st = good ? DP_OK : dp_fail(err, DP_IO, "cannot write %s: %s", whole->path, strerror(why));
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
