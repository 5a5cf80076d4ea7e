/* Spec: a table's spec as protobuf has it. Of this room only. */
#ifndef DP_WIRE_SPEC_H
#define DP_WIRE_SPEC_H

#include "common/model/table.h"

#include "downpour.pb-c.h"

/* Lends spec's name. */
void dp_spec_to_wire(const struct dp_table_spec *spec, Downpour__TableSpec *out);
/* NULL is an absent field. DP_INVALID with the field; dp_table_check has passed on DP_OK. */
enum dp_status dp_spec_from_wire(const Downpour__TableSpec *wire, struct dp_table_spec *out,
                                 struct dp_error *err);

#endif
