#include "server/durable/steps_mark.h"

#include "common/base/bytes.h"

#define FORMAT 1u
#define HEAD   16u

size_t dp_steps_mark_bytes(const struct dp_steps *steps)
{
    return steps->view.run == 0 ? 0 : HEAD + dp_view_bytes(&steps->view) + (size_t)steps->view.members * 8;
}

void dp_steps_mark_pack(const struct dp_steps *steps, void *to)
{
    char *at = to;
    dp_store_u32le(at, FORMAT);
    dp_store_u32le(at + 4, 0);
    dp_store_u64le(at + 8, steps->open);
    dp_view_pack(&steps->view, at + HEAD);
    at += HEAD + dp_view_bytes(&steps->view);
    for (uint32_t rank = 0; rank < steps->view.members; rank++)
        dp_store_u64le(at + (size_t)rank * 8, steps->next[rank]);
}

static enum dp_status corrupt(struct dp_error *err, size_t size, const char *what)
{
    return dp_fail(err, DP_CORRUPT, "the store's mark 'steps', %zu bytes: %s", size, what);
}

/* The view is in front of 8 bytes for each of its members, so its size follows from all of it. */
enum dp_status dp_steps_mark_unpack(const void *bytes, size_t size, struct dp_steps *steps, uint64_t now_ns,
                                    struct dp_error *err)
{
    const char *at = bytes;
    uint64_t next[DP_MEMBERS_MAX];
    struct dp_view view;
    if (size < HEAD + DP_VIEW_HEAD || (size - HEAD - DP_VIEW_HEAD) % 24 != 0 || dp_load_u32le(at) != FORMAT)
        return corrupt(err, size, "it is not format 1");
    size_t members = (size - HEAD - DP_VIEW_HEAD) / 24, view_bytes = DP_VIEW_HEAD + members * 16;
    if (dp_view_unpack(at + HEAD, view_bytes, &view, err) != DP_OK)
        return dp_wrap(err, DP_CORRUPT, "the store's mark 'steps'");
    uint64_t open = dp_load_u64le(at + 8);
    bool right = open >= view.first_step;
    for (uint32_t rank = 0; rank < view.members; rank++) {
        next[rank] = dp_load_u64le(at + HEAD + view_bytes + (size_t)rank * 8);
        right = right && next[rank] >= view.first_step;
    }
    if (right)
        dp_steps_restore(steps, &view, open, next, now_ns);
    dp_view_clear(&view);
    return right ? DP_OK : corrupt(err, size, "its steps begin before the run's first");
}
