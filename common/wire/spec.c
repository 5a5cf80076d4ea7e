#include "common/wire/spec.h"

#include "common/model/optimizer_kinds.h"
#include "common/wire/header.h"

void dp_spec_to_wire(const struct dp_table_spec *spec, Downpour__TableSpec *out)
{
    downpour__table_spec__init(out);
    out->name = (char *)spec->name;
    out->dim = spec->dim;
    out->seed = spec->seed;
    out->init_kind = (uint32_t)spec->init.kind;
    out->init_scale = spec->init.scale;
    out->fan_in = spec->init.fan_in;
    out->fan_out = spec->init.fan_out;
    out->optimizer_kind = (uint32_t)spec->optimizer.kind;
    out->l2 = spec->optimizer.l2;
    out->momentum = spec->optimizer.momentum;
    out->beta1 = spec->optimizer.beta1;
    out->beta2 = spec->optimizer.beta2;
    out->epsilon = spec->optimizer.epsilon;
    out->decay = spec->optimizer.decay;
    out->l1 = spec->optimizer.l1;
    out->ftrl_beta = spec->optimizer.ftrl_beta;
    out->accumulator = spec->optimizer.accumulator;
}

enum dp_status dp_spec_from_wire(const Downpour__TableSpec *wire, struct dp_table_spec *out,
                                 struct dp_error *err)
{
    if (!wire)
        return dp_fail(err, DP_INVALID, "spec: absent");
    *out = (struct dp_table_spec){
        .dim = wire->dim,
        .seed = wire->seed,
        .init = {.scale = wire->init_scale, .fan_in = wire->fan_in, .fan_out = wire->fan_out},
        .optimizer = {.l2 = wire->l2,
                      .momentum = wire->momentum,
                      .beta1 = wire->beta1,
                      .beta2 = wire->beta2,
                      .epsilon = wire->epsilon,
                      .decay = wire->decay,
                      .l1 = wire->l1,
                      .ftrl_beta = wire->ftrl_beta,
                      .accumulator = wire->accumulator},
    };
    enum dp_status st = dp_header_name("spec.name", wire->name, 1, DP_TABLE_NAME_MAX, out->name, err);
    if (st != DP_OK)
        return st;
    /* Here, not in dp_table_check, so that no enum ever holds a number it does not have. */
    if (wire->init_kind > DP_INIT_CONSTANT)
        return dp_fail(err, DP_INVALID, "spec.init_kind: %u is not known", wire->init_kind);
    if (!dp_optimizer_is_kind(wire->optimizer_kind))
        return dp_fail(err, DP_INVALID, "spec.optimizer_kind: %u is not known", wire->optimizer_kind);
    out->init.kind = (enum dp_init_kind)wire->init_kind;
    out->optimizer.kind = (enum dp_optimizer_kind)wire->optimizer_kind;
    if (dp_table_check(out, err) != DP_OK)
        return dp_wrap(err, DP_INVALID, "spec");
    return DP_OK;
}
