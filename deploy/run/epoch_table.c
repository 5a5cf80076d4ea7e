#include "deploy/run/epoch_table.h"

#include "deploy/cli/progress.h"

#include <stdlib.h>
#include <string.h>

#define WIDTH 11 /* behind a space; of a longer name its length */

/* In this order, where an epoch has them. */
static const struct epoch_column {
    const char *key, *heading;
    const char *in; /* "test": inside that; NULL: beside it */
    int digits;     /* behind the point; -1: a whole number, its thousands apart */
} columns[] = {
    {"train_loss", "train loss", NULL, 5},
    {"loss", "v. loss", "validation", 5}, /* v.: of the validation set */
    {"accuracy", "v. accuracy", "validation", 4},
    {"auc", "v. AUC", "validation", 5},
    {"rmse", "v. RMSE", "validation", 5},
    {"hr10", "v. HR@10", "validation", 4},
    {"ndcg10", "v. NDCG@10", "validation", 4},
    {"recall@", "v. ", "validation", 4}, /* "...@": of items ranked among all, the highest K */
    {"ndcg@", "v. ", "validation", 4},
    {"loss", "test loss", "test", 5},
    {"accuracy", "accuracy", "test", 4},
    {"auc", "AUC", "test", 5},
    {"rmse", "RMSE", "test", 5},
    {"hr10", "HR@10", "test", 4},
    {"ndcg10", "NDCG@10", "test", 4},
    {"recall@", "", "test", 4},
    {"ndcg@", "", "test", 4},
    {"seconds", "seconds", NULL, 2},
    {"examples_per_s", "examples/s", NULL, -1},
};
#define COLUMNS (sizeof columns / sizeof columns[0])

_Static_assert(COLUMNS <= DP_EPOCH_COLUMNS_MAX, "a table has a name for each");

/* Of those that begin so the one of the highest K; NULL: there is none. */
static const char *key_of_all(const json_t *all, const char *begins)
{
    const char *found = NULL;
    unsigned long most = 0;
    for (void *i = json_object_iter((json_t *)(uintptr_t)all); i;
         i = json_object_iter_next((json_t *)(uintptr_t)all, i)) {
        const char *key = json_object_iter_key(i);
        if (strncmp(key, begins, strlen(begins)) != 0)
            continue;
        unsigned long k = strtoul(key + strlen(begins), NULL, 10);
        if (!found || k > most) {
            found = key;
            most = k;
        }
    }
    return found;
}

/* key: what the epoch calls it. */
static const json_t *figure(const json_t *epoch, const struct epoch_column *column, const char **key)
{
    const json_t *in = column->in ? json_object_get(epoch, column->in) : epoch;
    *key = column->key;
    if (strchr(column->key, '@')) {
        in = json_object_get(in, "all_items");
        *key = key_of_all(in, column->key);
    }
    const json_t *value = *key ? json_object_get(in, *key) : NULL;
    return json_is_number(value) ? value : NULL;
}

bool dp_epoch_table_see(struct dp_epoch_table *table, const json_t *epoch)
{
    uint32_t before = table->columns;
    bool valid = json_object_get(epoch, "validation") != NULL;
    for (size_t c = 0; c < COLUMNS; c++) {
        const char *key;
        bool hidden = valid && columns[c].in && strcmp(columns[c].in, "test") == 0;
        if (hidden || !figure(epoch, &columns[c], &key) || (table->columns >> c & 1))
            continue;
        table->columns |= UINT32_C(1) << c;
        (void)snprintf(table->name[c], sizeof table->name[c], "%s%s", columns[c].heading,
                       strchr(columns[c].key, '@') ? key : "");
    }
    return table->columns != before;
}

static int width_of(const struct dp_epoch_table *table, size_t column)
{
    int len = (int)strlen(table->name[column]);
    return len > WIDTH ? len : WIDTH;
}

void dp_epoch_table_head(const struct dp_epoch_table *table)
{
    fprintf(table->file, "%5s", "epoch");
    for (size_t c = 0; c < COLUMNS; c++)
        if (table->columns >> c & 1)
            fprintf(table->file, " %*s", width_of(table, c), table->name[c]);
    fputc('\n', table->file);
}

/* A value of another size than the column's first: one that is too wide as a power of 10, a far smaller one
 * with its own digits. */
static void put_metric(struct dp_epoch_table *table, size_t c, double value)
{
    char text[400]; /* of any double */
    int own = dp_cli_digits(value, columns[c].digits), *digits = &table->digits[c];
    if (*digits == 0)
        *digits = own + 1;
    (void)snprintf(text, sizeof text, "%.*f", own > *digits + 2 ? own : *digits - 1, value);
    if (strlen(text) <= WIDTH)
        fprintf(table->file, " %*s", width_of(table, c), text);
    else
        fprintf(table->file, " %*.5g", width_of(table, c), value);
}

void dp_epoch_table_add(struct dp_epoch_table *table, const json_t *epoch)
{
    char number[32];
    if (dp_epoch_table_see(table, epoch))
        dp_epoch_table_head(table);
    fprintf(table->file, "%5lld", (long long)json_integer_value(json_object_get(epoch, "epoch")));
    for (size_t c = 0; c < COLUMNS; c++) {
        const char *key;
        const json_t *value = figure(epoch, &columns[c], &key);
        if (!(table->columns >> c & 1))
            continue;
        if (!value)
            fprintf(table->file, " %*s", width_of(table, c), "-");
        else if (columns[c].digits < 0)
            fprintf(table->file, " %*s", width_of(table, c),
                    dp_cli_number(json_number_value(value), number, sizeof number));
        else
            put_metric(table, c, json_number_value(value));
    }
    fputc('\n', table->file);
}
