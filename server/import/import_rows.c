#include "server/import/import_rows.h"

#include "common/model/init.h"
#include "common/model/mix.h"
#include "common/model/row.h"

#include <inttypes.h>
#include <stdlib.h>

struct import_place {
    uint64_t mixed, index;
};

static int by_mixed(const void *a, const void *b)
{
    const struct import_place *x = a, *y = b;
    return (x->mixed > y->mixed) - (x->mixed < y->mixed);
}

typedef enum dp_status import_visit(void *context, struct dp_store_key key, const void *row, size_t row_bytes,
                                    struct dp_error *err);

static enum dp_status visit_table(const struct dp_import_table *t, import_visit *visit, void *context,
                                  struct dp_error *err)
{
    struct import_place *place =
        t->rows <= SIZE_MAX / sizeof *place - 1 ? malloc((t->rows + 1) * sizeof *place) : NULL;
    size_t row_bytes = dp_row_bytes(&t->spec);
    void *row = malloc(row_bytes);
    enum dp_status st = place && row ? DP_OK
                                     : dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " rows of table '%s'",
                                               t->rows, t->spec.name);
    for (uint64_t i = 0; st == DP_OK && i < t->rows; i++)
        place[i] = (struct import_place){dp_mix(t->key(t->of, i)), i};
    if (st == DP_OK)
        qsort(place, t->rows, sizeof *place, by_mixed);
    for (uint64_t i = 0; st == DP_OK && i < t->rows; i++) {
        const struct dp_store_key key = {dp_table_id(t->spec.name), place[i].mixed};
        DP_ASSERT(i == 0 || place[i - 1].mixed < place[i].mixed);
        bool stored = true;
        dp_init_row(&t->spec, dp_unmix(place[i].mixed), row);
        st = t->fill(t->of, place[i].index, row, &stored, err);
        if (st != DP_OK || !stored)
            continue;
        dp_row_set_lsn(row, DP_IMPORT_LSN);
        st = visit(context, key, row, row_bytes, err);
    }
    if (st == DP_OK && t->unchanged)
        st = t->unchanged(t->of, err);
    free(place);
    free(row);
    return st;
}

static enum dp_status visit_rows(void *self, import_visit *visit, void *context, struct dp_error *err)
{
    const struct dp_import_rows *rows = self;
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; st == DP_OK && i < rows->tables; i++)
        st = visit_table(rows->table[i], visit, context, err);
    return st;
}

struct dp_store dp_import_rows_store(const struct dp_import_rows *rows)
{
    return (struct dp_store){.visit_rows = visit_rows, .self = (void *)(uintptr_t)rows};
}
