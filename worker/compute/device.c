#include "worker/compute/device.h"

#include "common/base/log.h"
#include "common/base/parse.h"
#include "worker/compute/plugin.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

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

/* "cuda", "cuda:N" or "cuda:each" */
static enum dp_status number_of(const struct dp_device_options *options, struct dp_cuda_options *out,
                                struct dp_error *err)
{
    const char *device = options->device;
    uint64_t number = 0;
    enum dp_status st = DP_OK;
    out->each = strcmp(device + 4, ":each") == 0;
    if (out->each)
        number = options->worker;
    else if (device[4] != '\0')
        st = dp_parse_u64(device + 5, 0, 1023, "number of the CUDA device", &number, err);
    out->device = (int)number;
    return st;
}

static enum dp_status open_cpu(const struct dp_device_options *options, enum dp_precision precision,
                               struct dp_backend *out, char *used, struct dp_error *err)
{
    if (precision != DP_PRECISION_F32)
        return dp_fail(err, DP_ARGUMENT, "the CPU computes in f32, not in %s: omit the precision, or set f32",
                       options->precision);
    if (used)
        (void)snprintf(used, USED_SIZE, "cpu, %" PRIu32 " thread%s", options->threads,
                       options->threads == 1 ? "" : "s");
    return dp_backend_cpu(options->threads, out, err);
}

/* Whether "auto" falls back to the CPU: there is no GPU that this build can use. A GPU that fails is an
 * error: a resumed training would become many times slower, with other bits. */
static bool may_pass(enum dp_status why)
{
    return why == DP_NOT_FOUND || why == DP_UNSUPPORTED;
}

static enum dp_status open_auto(const struct dp_device_options *options, struct dp_cuda_options *cuda,
                                struct dp_backend *out, char *used, struct dp_error *err)
{
    struct dp_error why = {0};
    bool f32 = cuda->precision == DP_PRECISION_F32;
    enum dp_status st = dp_plugin_open(NULL, cuda, out, &why);
    if (st == DP_OK && used)
        (void)snprintf(used, USED_SIZE, "cuda:%d, %s", cuda->device, options->precision);
    if (st == DP_OK)
        return st;
    if (!may_pass(st))
        return dp_fail(err, st, "device auto: %s; or choose the CPU (cpu)", why.text);
    dp_log(DP_LOG_INFO, "device auto: using the CPU%s%s: %s", f32 ? "" : ", in f32 instead of ",
           f32 ? "" : options->precision, why.text);
    return open_cpu(options, DP_PRECISION_F32, out, used, err);
}

enum dp_status dp_device_open(const struct dp_device_options *options, struct dp_backend *out, char *used,
                              struct dp_error *err)
{
    int taken = 0;
    struct dp_cuda_options cuda = {.wait_ms = options->wait_ms, .taken = &taken};
    struct dp_error why = {0};
    const char *device = options->device;
    *out = (struct dp_backend){0};
    enum dp_status st = precision_of(options->precision, &cuda.precision, err);
    if (st != DP_OK)
        return st;
    if (strcmp(device, "cpu") == 0)
        return open_cpu(options, cuda.precision, out, used, err);
    if (strcmp(device, "auto") == 0)
        return open_auto(options, &cuda, out, used, err);
    if (strncmp(device, "cuda", 4) != 0 || (device[4] != '\0' && device[4] != ':'))
        return dp_fail(err, DP_ARGUMENT, "device '%.32s' is not known: cpu, cuda, cuda:N, cuda:each or auto",
                       device);
    st = number_of(options, &cuda, err);
    if (st != DP_OK)
        return st;
    st = dp_plugin_open(NULL, &cuda, out, &why);
    if (st != DP_OK)
        return dp_fail(err, st, "device %s: %s", device, why.text);
    if (used)
        (void)snprintf(used, USED_SIZE, "cuda:%d, %s", taken, options->precision);
    return DP_OK;
}
