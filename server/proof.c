#include "server/proof.h"

#include "common/env/atomic_file.h"
#include "common/env/directory.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <unistd.h>

#define DIGITS 16

static enum dp_status name_it(const struct dp_cluster *cluster, struct dp_proof *proof, struct dp_error *err)
{
    return dp_checkpoint_path(&proof->path, err, "%s/begun-%016" PRIx64, cluster->checkpoint.to, cluster->id);
}

/* The directory is opened first: a file system of a network then asks for its names again. */
static FILE *open_shared(const struct dp_cluster *cluster, const struct dp_proof *proof)
{
    int directory = open(cluster->checkpoint.to, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    int fd = directory < 0 ? -1 : openat(directory, strrchr(proof->path.text, '/') + 1, O_RDONLY | O_CLOEXEC);
    int why = errno;
    FILE *file = fd < 0 ? NULL : fdopen(fd, "r");
    if (directory >= 0)
        (void)close(directory);
    errno = fd < 0 ? why : errno;
    return file;
}

enum dp_status dp_proof_read(const struct dp_cluster *cluster, struct dp_proof *out, struct dp_error *err)
{
    *out = (struct dp_proof){0};
    enum dp_status st = name_it(cluster, out, err);
    if (st != DP_OK)
        return st;
    FILE *file = open_shared(cluster, out);
    if (!file && errno == ENOENT)
        return dp_fail(err, DP_NOT_FOUND, "there is no file %s", out->path.text);
    if (!file)
        return dp_checkpoint_failed(err, "cannot open", out->path.text);
    bool is_proof = fscanf(file, "%" SCNx64 " %" SCNu64 " %" SCNx64 " ", &out->mark, &out->generation,
                           &out->history) == 3 &&
                    out->mark != 0;
    (void)fclose(file);
    return is_proof
               ? DP_OK
               : dp_fail(err, DP_CORRUPT,
                         "%s, which says that the cluster was begun, is damaged: bring it back from a copy; "
                         "or, where all stores are in their places, remove it",
                         out->path.text);
}

enum dp_status dp_proof_write(const struct dp_cluster *cluster, const struct dp_proof *proof,
                              struct dp_error *err)
{
    struct dp_atomic_file file = {0};
    struct dp_proof named = *proof;
    DP_ASSERT(proof->mark != 0);
    enum dp_status st = name_it(cluster, &named, err);
    if (st == DP_OK)
        st = dp_directory_make(cluster->checkpoint.to, err);
    if (st == DP_OK)
        st = dp_atomic_file_open(named.path.text, &file, err);
    if (st != DP_OK)
        return st;
    fprintf(file.stream, "%0*" PRIx64 " %" PRIu64 " %0*" PRIx64 " %s\n", DIGITS, proof->mark,
            proof->generation, DIGITS, proof->history, cluster->name);
    return dp_atomic_file_commit(&file, err);
}
