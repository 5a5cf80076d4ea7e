#include "server/store/store_id.h"

#include "common/base/bytes.h"

#include <sys/random.h>

void dp_store_id_draw(uint64_t *number)
{
    *number = 0;
    while (*number == 0)
        DP_ASSERT(getrandom(number, sizeof *number, 0) == (ssize_t)sizeof *number);
}

void dp_store_id_encode(const struct dp_store_id *id, char bytes[DP_STORE_ID_BYTES])
{
    dp_store_u64le(bytes, id->id);
    dp_store_u64le(bytes + 8, id->register_id);
    dp_store_u64le(bytes + 16, id->opening);
    dp_store_u64le(bytes + 24, id->before);
}

struct dp_store_id dp_store_id_decode(const char bytes[DP_STORE_ID_BYTES])
{
    return (struct dp_store_id){.id = dp_load_u64le(bytes),
                                .register_id = dp_load_u64le(bytes + 8),
                                .opening = dp_load_u64le(bytes + 16),
                                .before = dp_load_u64le(bytes + 24)};
}

enum dp_status dp_store_gate_admit(const struct dp_store_gate *gate, const struct dp_store_id *found,
                                   bool is_new, struct dp_store_id *put, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    *put = *found;
    if (gate)
        st = gate->admit(gate->context, found, is_new, put, err);
    else if (found->id == 0)
        dp_store_id_draw(&put->id);
    return st;
}
