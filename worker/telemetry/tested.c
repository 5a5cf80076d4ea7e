#include "worker/telemetry/tested.h"

#include "common/base/json.h"

#include <math.h>

static double number_of(const json_t *value)
{
    return json_is_real(value) ? json_real_value(value) : (double)NAN;
}

/* Metrics of ranking among all items; null when the set is not ranked. */
static json_t *ranks_pack(const struct dp_figures *f)
{
    if (!f->ranked_users)
        return json_null();
    json_t *ranks = json_array();
    (void)json_array_append_new(ranks, json_integer((json_int_t)f->ranked_users));
    (void)json_array_append_new(ranks, json_integer((json_int_t)f->ranked_items));
    for (int t = 0; t < 2; t++) {
        (void)json_array_append_new(ranks, json_integer(f->top[t]));
        (void)json_array_append_new(ranks, dp_json_real(f->recall[t]));
        (void)json_array_append_new(ranks, dp_json_real(f->ndcg[t]));
    }
    return ranks;
}

static void ranks_unpack(const json_t *ranks, struct dp_figures *f)
{
    if (json_array_size(ranks) != 8)
        return;
    f->ranked_users = (uint64_t)json_integer_value(json_array_get(ranks, 0));
    f->ranked_items = (uint64_t)json_integer_value(json_array_get(ranks, 1));
    for (size_t t = 0; t < 2; t++) {
        f->top[t] = (uint32_t)json_integer_value(json_array_get(ranks, 2 + 3 * t));
        f->recall[t] = number_of(json_array_get(ranks, 3 + 3 * t));
        f->ndcg[t] = number_of(json_array_get(ranks, 4 + 3 * t));
    }
}

struct json_t *dp_tested_json(const struct dp_tested *tested, uint32_t epochs)
{
    json_t *root = json_array();
    int bad = 0;
    while (epochs > 0 && !tested[epochs - 1].known)
        epochs--;
    for (uint32_t e = 0; e < epochs; e++) {
        const struct dp_figures *f = &tested[e].figures;
        json_t *row = json_null();
        if (tested[e].known) {
            row = json_array();
            bad |= json_array_append_new(row, json_integer((json_int_t)f->examples));
            bad |= json_array_append_new(row, dp_json_real(f->loss));
            bad |= json_array_append_new(row, dp_json_real(f->accuracy));
            bad |= json_array_append_new(row, dp_json_real(f->auc));
            bad |= json_array_append_new(row, dp_json_real(f->rmse));
            bad |= json_array_append_new(row, dp_json_real(f->hr10));
            bad |= json_array_append_new(row, dp_json_real(f->ndcg10));
            bad |= json_array_append_new(row, ranks_pack(f));
        }
        bad |= json_array_append_new(root, row);
    }
    if (!bad)
        return root;
    json_decref(root);
    return NULL;
}

char *dp_tested_pack(const struct dp_tested *tested, uint32_t epochs)
{
    json_t *root = dp_tested_json(tested, epochs);
    char *text = root ? json_dumps(root, JSON_COMPACT) : NULL;
    json_decref(root);
    return text;
}

bool dp_tested_read(const struct json_t *array, uint32_t epochs, struct dp_tested *tested)
{
    bool good = json_is_array(array) && json_array_size(array) <= epochs;
    for (uint32_t e = 0; good && e < json_array_size(array); e++) {
        const json_t *row = json_array_get(array, e);
        if (json_is_null(row))
            continue;
        good = json_is_array(row) && json_array_size(row) == 8 && json_is_integer(json_array_get(row, 0));
        if (!good)
            break;
        tested[e] =
            (struct dp_tested){.known = true,
                               .figures = {.examples = (uint64_t)json_integer_value(json_array_get(row, 0)),
                                           .loss = number_of(json_array_get(row, 1)),
                                           .accuracy = number_of(json_array_get(row, 2)),
                                           .auc = number_of(json_array_get(row, 3)),
                                           .rmse = number_of(json_array_get(row, 4)),
                                           .hr10 = number_of(json_array_get(row, 5)),
                                           .ndcg10 = number_of(json_array_get(row, 6))}};
        ranks_unpack(json_array_get(row, 7), &tested[e].figures);
    }
    return good;
}

bool dp_tested_unpack(const char *text, size_t size, uint32_t epochs, struct dp_tested *tested)
{
    json_t *root = json_loadb(text, size, 0, NULL);
    bool good = dp_tested_read(root, epochs, tested);
    json_decref(root);
    return good;
}
