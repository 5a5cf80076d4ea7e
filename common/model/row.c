#include "common/model/row.h"

#include "common/model/optimizer_kinds.h"

const char *dp_row_slot_name(const struct dp_optimizer_spec *optimizer, uint32_t slot)
{
    const struct dp_optimizer_traits *traits = dp_optimizer_traits(optimizer);
    DP_ASSERT(traits); /* a table of another kind is refused: dp_table_check */
    return slot < DP_OPTIMIZER_SLOTS_MAX ? traits->slot[slot] : NULL;
}

uint32_t dp_row_slots(const struct dp_optimizer_spec *optimizer)
{
    uint32_t slots = 0;
    while (dp_row_slot_name(optimizer, slots))
        slots++;
    return slots;
}
