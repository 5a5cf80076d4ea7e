#include "common/model/row.h"

uint32_t dp_row_slots(const struct dp_optimizer_spec *optimizer)
{
    switch (optimizer->kind) {
    case DP_OPT_SGD:
        return optimizer->momentum > 0 ? 1 : 0;
    case DP_OPT_ADAGRAD:
        return 1;
    case DP_OPT_ADAM:
    case DP_OPT_FTRL:
        return 2;
    }
    DP_ASSERT(false); /* a table of another kind is refused: dp_table_check */
    return 0;
}
