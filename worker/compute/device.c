#include "worker/compute/device.h"

#include "common/base/log.h"
#include "common/base/parse.h"
#include "worker/compute/cuda/cuda.h"

#include <dlfcn.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define PLUGIN    "libdownpour-cuda.so"
#define USED_SIZE 64

static enum dp_status precision_of(const char *text, enum dp_precision *out, struct dp_error *err)
{
    static const char *const names[] = {"f32", "tf32", "bf16"};
    for (unsigned i = 0; i < sizeof names / sizeof names[0]; i++)
        if (strcmp(text, names[i]) == 0) {
            *out = (enum dp_precision)i;
            return DP_OK;
        }
    return dp_fail(err, DP_ARGUMENT, "precision '%.32s' is not known: f32, tf32 or bf16", text);
}

/* "cuda" or "cuda:N" */
static enum dp_status number_of(const char *device, int *out, struct dp_error *err)
{
    uint64_t number = 0;
    enum dp_status st = DP_OK;
    if (device[4] != '\0')
        st = dp_parse_u64(device + 5, 0, 1023, "number of the CUDA device", &number, err);
    *out = (int)number;
    return st;
}

/* Beside the program, where a build has it, or where it was installed. */
static void *load(struct dp_error *err)
{
    char program[PATH_MAX], path[PATH_MAX + 64];
    static const char *const places[] = {"", "/../lib/downpour", "/../lib/x86_64-linux-gnu/downpour"};
    ssize_t len = readlink("/proc/self/exe", program, sizeof program - 1);
    program[len > 0 ? len : 0] = '\0';
    const char *slash = strrchr(program, '/');
    void *plugin = NULL;
    for (unsigned i = 0; slash && !plugin && i < sizeof places / sizeof places[0]; i++) {
        (void)snprintf(path, sizeof path, "%.*s%s/" PLUGIN, (int)(slash - program), program, places[i]);
        if (access(path, R_OK) == 0 && !(plugin = dlopen(path, RTLD_NOW | RTLD_LOCAL)))
            (void)dp_fail(err, DP_NOT_FOUND, "%s cannot be loaded: %s; is the CUDA runtime installed?", path,
                          dlerror());
    }
    if (!plugin && err->status == DP_OK)
        (void)dp_fail(err, DP_NOT_FOUND,
                      "this build has no CUDA backend (" PLUGIN " beside the program): build where nvcc is");
    return plugin;
}

/* The plugin stays loaded until the process ends: its operations are in it. */
static enum dp_status open_cuda(const struct dp_cuda_options *options, struct dp_backend *out,
                                struct dp_error *err)
{
    struct dp_error why = {0};
    enum dp_status (*open)(const struct dp_cuda_options *, struct dp_backend *, struct dp_error *) = NULL;
    void *plugin = load(&why);
    if (!plugin)
        return dp_fail(err, why.status, "%s", why.text);
    *(void **)&open = dlsym(plugin, "dp_cuda_open");
    enum dp_status st = open ? open(options, out, err)
                             : dp_fail(err, DP_VERSION, PLUGIN " is of another build: %s", dlerror());
    if (st != DP_OK)
        (void)dlclose(plugin);
    return st;
}

static enum dp_status open_cpu(const struct dp_device_options *options, enum dp_precision precision,
                               struct dp_backend *out, char *used, struct dp_error *err)
{
    if (precision != DP_PRECISION_F32)
        return dp_fail(err, DP_ARGUMENT, "the CPU computes in f32, not in %s: leave precision out",
                       options->precision);
    if (used)
        (void)snprintf(used, USED_SIZE, "cpu, %" PRIu32 " thread%s", options->threads,
                       options->threads == 1 ? "" : "s");
    return dp_backend_cpu(options->threads, out, err);
}

enum dp_status dp_device_open(const struct dp_device_options *options, struct dp_backend *out, char *used,
                              struct dp_error *err)
{
    struct dp_cuda_options cuda = {0};
    struct dp_error why = {0};
    const char *device = options->device;
    bool is_auto = strcmp(device, "auto") == 0;
    *out = (struct dp_backend){0};
    enum dp_status st = precision_of(options->precision, &cuda.precision, err);
    if (st != DP_OK)
        return st;
    if (strcmp(device, "cpu") == 0)
        return open_cpu(options, cuda.precision, out, used, err);
    bool is_cuda = strncmp(device, "cuda", 4) == 0 && (device[4] == '\0' || device[4] == ':');
    if (!is_auto && !is_cuda)
        return dp_fail(err, DP_ARGUMENT, "device '%.32s' is not known: cpu, cuda, cuda:N or auto", device);
    st = is_auto ? DP_OK : number_of(device, &cuda.device, err);
    if (st == DP_OK)
        st = open_cuda(&cuda, out, &why);
    if (st == DP_OK) {
        if (used)
            (void)snprintf(used, USED_SIZE, "cuda:%d, %s", cuda.device, options->precision);
        return DP_OK;
    }
    if (!is_auto)
        return why.status != DP_OK ? dp_fail(err, why.status, "device %s: %s", device, why.text) : st;
    dp_log(DP_LOG_INFO, "device auto: the CPU is taken: %s", why.text);
    cuda.precision = DP_PRECISION_F32;
    return open_cpu(options, cuda.precision, out, used, err);
}
