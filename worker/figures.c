#include "worker/figures.h"

#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum dp_status dp_worker_figures_init(struct dp_worker_figures *figures, uint32_t worker, uint32_t epochs,
                                      struct dp_error *err)
{
    *figures = (struct dp_worker_figures){.worker = worker, .epochs = epochs};
    figures->epoch = calloc(epochs ? epochs : 1, sizeof *figures->epoch);
    return figures->epoch ? DP_OK : dp_fail(err, DP_NOMEM, "no memory for the figures of %u epochs", epochs);
}

void dp_worker_figures_clear(struct dp_worker_figures *figures)
{
    free(figures->epoch);
    *figures = (struct dp_worker_figures){0};
}

uint64_t dp_worker_figures_examples(const struct dp_worker_figures *figures)
{
    uint64_t n = figures->found_examples;
    for (uint32_t e = 0; e < figures->epochs; e++)
        n += figures->epoch[e].examples;
    return n;
}

uint64_t dp_worker_figures_new_examples(const struct dp_worker_figures *figures)
{
    uint64_t n = dp_worker_figures_examples(figures) - figures->found_examples;
    return n > figures->repeated_examples ? n - figures->repeated_examples : 0;
}

double dp_worker_figures_seconds(const struct dp_worker_figures *figures)
{
    double seconds = 0;
    for (uint32_t e = 0; e < figures->epochs; e++)
        seconds += figures->epoch[e].seconds;
    return seconds;
}

static json_t *integer(uint64_t value)
{
    return json_integer((json_int_t)value);
}

enum dp_status dp_worker_figures_pack(const struct dp_worker_figures *figures, char **text,
                                      struct dp_error *err)
{
    const struct dp_staleness *s = &figures->staleness;
    json_t *epochs = json_array(), *histogram = json_array(), *spent = json_array(), *root = json_object();
    uint32_t used = figures->epochs;
    int bad = 0;
    while (used > 0 && figures->epoch[used - 1].examples == 0)
        used--;
    for (uint32_t e = 0; e < used; e++) {
        const struct dp_epoch_figures *figure = &figures->epoch[e];
        bad |= json_array_append_new(epochs,
                                     json_pack("[f,I,f,f]", figure->loss_sum, (json_int_t)figure->examples,
                                               figure->begun, figure->seconds));
    }
    for (uint32_t i = 0; i < DP_STALENESS_BUCKETS; i++)
        bad |= json_array_append_new(histogram, integer(s->histogram[i]));
    bad |= json_object_set_new(root, "worker", integer(figures->worker));
    bad |= json_object_set_new(root, "ended", integer(figures->ended));
    bad |= json_object_set_new(root, "pushes", integer(figures->pushes));
    bad |= json_object_set_new(root, "found_examples", integer(figures->found_examples));
    bad |= json_object_set_new(root, "repeated_examples", integer(figures->repeated_examples));
    bad |= json_object_set_new(root, "measured_pushes", integer(s->pushes));
    bad |= json_object_set_new(root, "repeated", integer(s->repeated));
    bad |= json_object_set_new(root, "measured", integer(s->measured));
    bad |= json_object_set_new(root, "sum", integer(s->sum));
    bad |= json_object_set_new(root, "max", integer(s->max));
    bad |= json_object_set_new(root, "histogram", histogram);
    for (int i = 0; i < DP_SPENT_KINDS; i++)
        bad |= json_array_append_new(spent, json_real(figures->spent.seconds[i]));
    bad |= json_object_set_new(root, "spent", spent);
    bad |= json_object_set_new(root, "device", json_string(figures->device));
    bad |= json_object_set_new(root, "epochs", epochs);
    *text = bad ? NULL : json_dumps(root, JSON_COMPACT);
    json_decref(root);
    return *text ? DP_OK : dp_fail(err, DP_INTERNAL, "a worker's figures could not be put into JSON");
}

static bool read_u64(const json_t *object, const char *key, uint64_t *out)
{
    const json_t *value = json_object_get(object, key);
    if (!json_is_integer(value) || json_integer_value(value) < 0)
        return false;
    *out = (uint64_t)json_integer_value(value);
    return true;
}

static bool read_epochs(const json_t *array, struct dp_worker_figures *out)
{
    if (!json_is_array(array) || json_array_size(array) > out->epochs)
        return false;
    for (uint32_t e = 0; e < json_array_size(array); e++) {
        const json_t *row = json_array_get(array, e);
        const json_t *loss = json_array_get(row, 0), *examples = json_array_get(row, 1),
                     *begun = json_array_get(row, 2), *seconds = json_array_get(row, 3);
        if (!json_is_real(loss) || !json_is_integer(examples) || !json_is_real(begun) ||
            !json_is_real(seconds))
            return false;
        out->epoch[e] = (struct dp_epoch_figures){.loss_sum = json_real_value(loss),
                                                  .examples = (uint64_t)json_integer_value(examples),
                                                  .begun = json_real_value(begun),
                                                  .seconds = json_real_value(seconds)};
    }
    return true;
}

static bool read_spent(const json_t *array, struct dp_spent *out)
{
    if (!json_is_array(array) || json_array_size(array) != DP_SPENT_KINDS)
        return false;
    for (int i = 0; i < DP_SPENT_KINDS; i++) {
        const json_t *seconds = json_array_get(array, (size_t)i);
        if (!json_is_real(seconds))
            return false;
        out->seconds[i] = json_real_value(seconds);
    }
    return true;
}

static bool read_figures(const json_t *root, struct dp_worker_figures *out)
{
    struct dp_staleness *s = &out->staleness;
    uint64_t worker, ended;
    if (!read_u64(root, "worker", &worker) || worker > UINT32_MAX || !read_u64(root, "ended", &ended) ||
        ended > out->epochs || !read_u64(root, "pushes", &out->pushes) ||
        !read_u64(root, "found_examples", &out->found_examples) ||
        !read_u64(root, "repeated_examples", &out->repeated_examples) ||
        !read_u64(root, "measured_pushes", &s->pushes) || !read_u64(root, "repeated", &s->repeated) ||
        !read_u64(root, "measured", &s->measured) || !read_u64(root, "sum", &s->sum) ||
        !read_u64(root, "max", &s->max))
        return false;
    out->worker = (uint32_t)worker;
    out->ended = (uint32_t)ended;
    const json_t *histogram = json_object_get(root, "histogram");
    if (!json_is_array(histogram) || json_array_size(histogram) != DP_STALENESS_BUCKETS)
        return false;
    for (uint32_t i = 0; i < DP_STALENESS_BUCKETS; i++)
        s->histogram[i] = (uint64_t)json_integer_value(json_array_get(histogram, i));
    const json_t *device = json_object_get(root, "device");
    if (!json_is_string(device))
        return false;
    (void)snprintf(out->device, sizeof out->device, "%s", json_string_value(device));
    return read_spent(json_object_get(root, "spent"), &out->spent) &&
           read_epochs(json_object_get(root, "epochs"), out);
}

enum dp_status dp_worker_figures_unpack(const char *text, size_t size, uint32_t epochs,
                                        struct dp_worker_figures *out, struct dp_error *err)
{
    enum dp_status st = dp_worker_figures_init(out, 0, epochs, err);
    if (st != DP_OK)
        return st;
    json_error_t where;
    json_t *root = json_loadb(text, size, 0, &where);
    if (!root || !read_figures(root, out)) {
        dp_worker_figures_clear(out);
        st = dp_fail(err, DP_DATA,
                     "a note does not hold the figures of a worker of %u epochs: do all workers "
                     "read the same cluster file?",
                     epochs);
    }
    json_decref(root);
    return st;
}
