#include "deploy/checkpoint/saved_names.h"

#include "deploy/checkpoint/file_bytes.h"
#include "server/checkpoint/making.h"

#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* linked NULL: not linked. */
static enum dp_status put(const char *path, const char *name, const char *directory, uint64_t order,
                          uint64_t *linked, struct dp_manifest_file *out, struct dp_error *err)
{
    struct stat is;
    struct dp_error why = {0};
    char *bytes = NULL;
    size_t size = 0;
    if (!path[0] || stat(path, &is) != 0 || !S_ISREG(is.st_mode))
        return DP_OK;
    if (is.st_size > (off_t)DP_SAVED_NAMES_MAX)
        (void)dp_fail(&why, DP_ARGUMENT, "%s has more than %u MiB", path, DP_SAVED_NAMES_MAX >> 20);
    enum dp_status st = why.text[0] ? DP_OK : dp_file_bytes_read(path, &bytes, &size, &why);
    if (why.text[0])
        fprintf(stderr, "downpour: warning: %s: the checkpoint lacks it\n", why.text);
    else
        st = dp_checkpoint_put_again(directory, order, name, bytes, size, out, linked, err);
    free(bytes);
    return why.text[0] ? DP_OK : st;
}

enum dp_status dp_saved_names_put(const struct dp_cluster *cluster, const char *directory, uint64_t order,
                                  bool full, struct dp_manifest *manifest, struct dp_error *err)
{
    uint64_t *linked = full ? NULL : &manifest->bytes_linked;
    enum dp_status st =
        put(cluster->data.names, "names.tsv", directory, order, linked, &manifest->names, err);
    return st == DP_OK
               ? put(cluster->data.columns, "columns.csv", directory, order, linked, &manifest->columns, err)
               : st;
}
