/* Optimizers are constant, and Adam's table of corrections takes longer to make than a small world to run: each that is
 * asked for is made once, and kept. */
#include "common/model/optimizer.h"

#include <stdlib.h>
#include <string.h>

#define KEPT 256u

/* The product's, compiled under this name (CMakeLists.txt). */
enum dp_status sim_optimizer_make(const struct dp_table_spec *spec, enum dp_optimizer_form form,
                                  struct dp_optimizer **out, struct dp_error *err);

static struct {
    struct dp_optimizer_spec spec;
    uint32_t dim;
    enum dp_optimizer_form form;
    struct dp_optimizer *optimizer;
} kept[KEPT];
static uint32_t count;

enum dp_status dp_optimizer_new(const struct dp_table_spec *spec, enum dp_optimizer_form form,
                                struct dp_optimizer **out, struct dp_error *err)
{
    for (uint32_t i = 0; i < count; i++)
        if (kept[i].dim == spec->dim && kept[i].form == form &&
            memcmp(&kept[i].spec, &spec->optimizer, sizeof spec->optimizer) == 0) {
            *out = kept[i].optimizer;
            return DP_OK;
        }
    enum dp_status st = sim_optimizer_make(spec, form, out, err);
    if (st != DP_OK)
        return st;
    DP_ASSERT(count < KEPT);
    kept[count].spec = spec->optimizer;
    kept[count].dim = spec->dim;
    kept[count].form = form;
    kept[count++].optimizer = *out;
    return st;
}

void dp_optimizer_free(struct dp_optimizer **optimizer)
{
    *optimizer = NULL;
}
