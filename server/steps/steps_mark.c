#include "server/steps/steps_mark.h"

#include "common/base/bytes.h"

#define FORMAT 2u
#define HEAD   16u
#define PLACE  24u /* of a member, after the view */
#define OLD    1u  /* of before members could return */

size_t dp_steps_mark_bytes(const struct dp_steps *steps)
{
    return steps->view.run == 0 ? 0
                                : HEAD + dp_view_bytes(&steps->view) + (size_t)steps->view.members * PLACE;
}

void dp_steps_mark_pack(const struct dp_steps *steps, void *to)
{
    char *at = to;
    dp_store_u32le(at, FORMAT);
    dp_store_u32le(at + 4, 0);
    dp_store_u64le(at + 8, steps->open);
    dp_view_pack(&steps->view, at + HEAD);
    at += HEAD + dp_view_bytes(&steps->view);
    for (uint32_t rank = 0; rank < steps->view.members; rank++, at += PLACE) {
        dp_store_u64le(at, steps->next[rank]);
        dp_store_u64le(at + 8, steps->start[rank]);
        dp_store_u64le(at + 16, steps->former[rank]);
    }
}

static enum dp_status corrupt(struct dp_error *err, size_t size, const char *what)
{
    return dp_fail(err, DP_CORRUPT, "the store's mark 'steps', %zu bytes: %s", size, what);
}

/* at: after the view. Whether it can be so. */
static bool take_places(const char *at, const struct dp_view *view, struct dp_steps_place *place)
{
    for (uint32_t rank = 0; rank < view->members; rank++, at += PLACE) {
        const struct dp_member *member = &view->member[rank];
        place[rank] = (struct dp_steps_place){
            .next = dp_load_u64le(at), .start = dp_load_u64le(at + 8), .former = dp_load_u64le(at + 16)};
        if (place[rank].next < view->first_step ||
            (place[rank].start != member->from && place[rank].start != UINT64_MAX) ||
            place[rank].former > member->from)
            return false;
    }
    return true;
}

/* The view is in front of the same for each of its members, so its size follows from all of it. */
enum dp_status dp_steps_mark_unpack(const void *bytes, size_t size, struct dp_steps *steps, uint64_t now_ns,
                                    struct dp_error *err)
{
    const char *at = bytes;
    struct dp_steps_place place[DP_MEMBERS_MAX];
    struct dp_view view;
    uint32_t format = size >= HEAD + DP_VIEW_HEAD ? dp_load_u32le(at) : 0;
    if (format == OLD)
        return dp_fail(
            err, DP_UNSUPPORTED,
            "the store's mark 'steps' has format %u, which this version does not read: start the last "
            "build of version 0.1.0 on the store once, which writes format %u, and stop it",
            OLD, FORMAT);
    if (format != FORMAT || (size - HEAD - DP_VIEW_HEAD) % (DP_VIEW_MEMBER + PLACE) != 0)
        return corrupt(err, size, "it is not format 2");
    size_t members = (size - HEAD - DP_VIEW_HEAD) / (DP_VIEW_MEMBER + PLACE);
    size_t view_bytes = DP_VIEW_HEAD + members * DP_VIEW_MEMBER;
    if (dp_view_unpack(at + HEAD, view_bytes, &view, err) != DP_OK)
        return dp_wrap(err, DP_CORRUPT, "the store's mark 'steps'");
    uint64_t open = dp_load_u64le(at + 8);
    bool right = open >= view.first_step && take_places(at + HEAD + view_bytes, &view, place);
    if (right)
        dp_steps_restore(steps, &view, open, place, now_ns);
    dp_view_clear(&view);
    return right ? DP_OK : corrupt(err, size, "its steps are not those of its view");
}
