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
    return json_pack("[I,I,I,o,o,I,o,o]", (json_int_t)f->ranked_users, (json_int_t)f->ranked_items,
                     (json_int_t)f->top[0], dp_json_real(f->recall[0]), dp_json_real(f->ndcg[0]),
                     (json_int_t)f->top[1], dp_json_real(f->recall[1]), dp_json_real(f->ndcg[1]));
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

/* [examples, each metric, ranks] */
#define ROW (DP_FIGURES_REALS + 2u)

static json_t *row_pack(const struct dp_figures *f)
{
    json_t *row = json_pack("[I]", (json_int_t)f->examples);
    for (int i = 0; i < DP_FIGURES_REALS; i++)
        (void)json_array_append_new(row, dp_json_real(*dp_figures_real(f, i)));
    (void)json_array_append_new(row, ranks_pack(f));
    if (json_array_size(row) == ROW)
        return row;
    json_decref(row);
    return NULL;
}

struct json_t *dp_tested_json(const struct dp_tested *tested, uint32_t epochs)
{
    json_t *root = json_array();
    int bad = 0;
    while (epochs > 0 && !tested[epochs - 1].known)
        epochs--;
    for (uint32_t e = 0; e < epochs; e++)
        bad |= json_array_append_new(root, tested[e].known ? row_pack(&tested[e].figures) : json_null());
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
        good = json_is_array(row) && json_array_size(row) == ROW && json_is_integer(json_array_get(row, 0));
        if (!good)
            break;
        tested[e] = (struct dp_tested){
            .known = true, .figures.examples = (uint64_t)json_integer_value(json_array_get(row, 0))};
        for (int i = 0; i < DP_FIGURES_REALS; i++)
            *dp_figures_real(&tested[e].figures, i) = number_of(json_array_get(row, 1 + (size_t)i));
        ranks_unpack(json_array_get(row, ROW - 1), &tested[e].figures);
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
