#include "worker/compute/plugin.h"

#include <dlfcn.h>
#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define NAME "libdownpour-cuda.so"

/* DP_PLUGIN_FOLDER: from the programs' folder to that of libraries, where both are installed. */
static enum dp_status find(char *path, size_t size, struct dp_error *err)
{
    static const char *const places[] = {"", "/" DP_PLUGIN_FOLDER};
    char program[PATH_MAX];
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    if (len < 0) /* not DP_NOT_FOUND: there may be a plugin, and "auto" would fall back */
        return dp_fail(err, DP_IO,
                       "cannot find this program's directory, and so not whether " NAME
                       " is in its directory: /proc/self/exe: %s; is /proc mounted?",
                       strerror(errno));
    program[len] = '\0';
    const char *slash = strrchr(program, '/');
    for (unsigned i = 0; slash && i < sizeof places / sizeof places[0]; i++) {
        int n = snprintf(path, size, "%.*s%s/" NAME, (int)(slash - program), program, places[i]);
        if (n <= 0 || (size_t)n >= size)
            continue;
        /* If it is there but cannot be read, loading it says why. */
        if (access(path, F_OK) == 0 || (errno != ENOENT && errno != ENOTDIR))
            return DP_OK;
    }
    return dp_fail(err, DP_NOT_FOUND,
                   "this build has no CUDA backend (" NAME
                   " in the program's directory, or in " DP_PLUGIN_FOLDER
                   " from there): build where nvcc is");
}

static enum dp_status check_size(const char *path, const char *what, uint32_t has, uint32_t wanted,
                                 struct dp_error *err)
{
    if (has == wanted)
        return DP_OK;
    return dp_fail(err, DP_VERSION,
                   "%s is of another build: %s has %" PRIu32 " bytes there, %" PRIu32
                   " in this program: install both from one build",
                   path, what, has, wanted);
}

static enum dp_status check_layout(const char *path, const struct dp_cuda_layout *has, struct dp_error *err)
{
    static const struct dp_cuda_layout ours = DP_CUDA_LAYOUT;
    if (!has)
        return dp_fail(err, DP_VERSION,
                       "%s is of another build: it does not say its layout: install both from one build",
                       path);
    if (has->version != ours.version)
        return dp_fail(err, DP_VERSION,
                       "%s is of another build: its interface is number %" PRIu32
                       ", this program's is %" PRIu32 ": install both from one build",
                       path, has->version, ours.version);
    enum dp_status st = check_size(path, "the table of operations", has->operations, ours.operations, err);
    if (st == DP_OK)
        st = check_size(path, "the structs that it is opened with", has->options, ours.options, err);
    if (st == DP_OK)
        st = check_size(path, "a list of entries", has->entries, ours.entries, err);
    if (st == DP_OK)
        st = check_size(path, "a range of columns", has->columns, ours.columns, err);
    if (st == DP_OK)
        st = check_size(path, "a step's times", has->times, ours.times, err);
    if (st == DP_OK)
        st = check_size(path, "an error", has->error, ours.error, err);
    return st;
}

/* Whether all operations are there: a missing one would be called as NULL. From gather_sum on all must be. */
static bool is_whole(const struct dp_backend_ops *ops)
{
    void (*operation)(void) = NULL;
    if (!ops || (ops->pin == NULL) != (ops->unpin == NULL) || (ops->mark == NULL) != (ops->done == NULL) ||
        (ops->mark == NULL) != (ops->wait == NULL) || !ops->name || !ops->close || !ops->alloc ||
        !ops->release || !ops->copy_in || !ops->copy_out || !ops->zero || !ops->finish)
        return false;
    for (size_t at = offsetof(struct dp_backend_ops, gather_sum); at < sizeof *ops; at += sizeof operation) {
        memcpy(&operation, (const char *)ops + at, sizeof operation);
        if (!operation)
            return false;
    }
    return true;
}

static enum dp_status open_with(void *library, const char *path, const struct dp_cuda_options *options,
                                struct dp_backend *out, struct dp_error *err)
{
    enum dp_status (*open)(const struct dp_cuda_options *, struct dp_backend *, struct dp_error *) = NULL;
    enum dp_status st = check_layout(path, dlsym(library, "dp_cuda_layout"), err);
    if (st != DP_OK)
        return st;
    *(void **)&open = dlsym(library, "dp_cuda_open");
    if (!open)
        return dp_fail(err, DP_VERSION, "%s is of another build: it has no dp_cuda_open", path);
    st = open(options, out, err);
    if (st == DP_OK && !is_whole(out->ops)) {
        *out = (struct dp_backend){0};
        st = dp_fail(err, DP_VERSION, "%s lacks an operation: install it and this program from one build",
                     path);
    }
    return st;
}

/* With a driver this counts as a machine with a GPU, and "auto" must not ignore a plugin that fails, for
 * whatever reason. Without a driver no plugin would find a GPU. */
static enum dp_status cannot_load(const char *path, struct dp_error *err)
{
    char why[512];
    const char *says = dlerror(); /* lent until the next dlopen */
    (void)snprintf(why, sizeof why, "%s", says ? says : "the loader does not say why");
    if (!dlopen("libcuda.so.1", RTLD_LAZY | RTLD_LOCAL))
        return dp_fail(err, DP_NOT_FOUND,
                       "this machine has no NVIDIA driver (libcuda.so.1), and %s cannot be loaded: %s", path,
                       why);
    return dp_fail(
        err, DP_IO,
        "this machine has an NVIDIA driver (libcuda.so.1), and %s cannot be loaded: %s; install "
        "CUDA's libraries (cudart, cublas) or name their folder in LD_LIBRARY_PATH; if the file is "
        "damaged, install it again",
        path, why);
}

enum dp_status dp_plugin_open(const char *path, const struct dp_cuda_options *options, struct dp_backend *out,
                              struct dp_error *err)
{
    char found[PATH_MAX + 64];
    *out = (struct dp_backend){0};
    if (!path) {
        enum dp_status st = find(found, sizeof found, err);
        if (st != DP_OK)
            return st;
        path = found;
    }
    void *library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    return library ? open_with(library, path, options, out, err) : cannot_load(path, err);
}
