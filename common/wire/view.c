#include "common/wire/view.h"

#include "common/base/bytes.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT 2u

/* Format 1: members without `from` and `missed`. */
#define FORMAT_1 1u
#define MEMBER_1 16u

enum dp_status dp_view_copy(const struct dp_view *view, struct dp_view *out, struct dp_error *err)
{
    struct dp_member *member = calloc(view->members, sizeof *member);
    if (!member)
        return dp_fail(err, DP_NOMEM, "no memory for the %" PRIu32 " members of a view", view->members);
    memcpy(member, view->member, view->members * sizeof *member);
    *out = *view;
    out->member = member;
    return DP_OK;
}

void dp_view_clear(struct dp_view *view)
{
    free(view->member);
    *view = (struct dp_view){0};
}

void dp_view_pack(const struct dp_view *view, void *to)
{
    char *at = to;
    dp_store_u32le(at, FORMAT);
    dp_store_u32le(at + 4, view->run);
    dp_store_u64le(at + 8, view->number);
    dp_store_u32le(at + 16, (uint32_t)view->mode);
    dp_store_u32le(at + 20, view->slack);
    dp_store_u64le(at + 24, view->first_step);
    dp_store_u32le(at + 32, view->members);
    dp_store_u32le(at + 36, 0);
    at += DP_VIEW_HEAD;
    for (uint32_t i = 0; i < view->members; i++, at += DP_VIEW_MEMBER) {
        dp_store_u64le(at, view->member[i].incarnation);
        dp_store_u64le(at + 8, view->member[i].until);
        dp_store_u64le(at + 16, view->member[i].from);
        dp_store_u64le(at + 24, view->member[i].missed);
    }
}

static enum dp_status check(const struct dp_view *view, uint32_t mode, struct dp_error *err)
{
    if (view->run == 0 || view->number == 0)
        return dp_fail(err, DP_INVALID,
                       "view: run %" PRIu32 ", number %" PRIu64 ", expected 1 or more of each", view->run,
                       view->number);
    if (mode >= DP_MODE_COUNT)
        return dp_fail(err, DP_INVALID, "view: mode %" PRIu32 " is not known here", mode);
    enum dp_status st = dp_mode_check((enum dp_consistency)mode, view->slack, view->members, err);
    return st == DP_OK ? st : dp_wrap(err, st, "view");
}

/* at: the members. */
static enum dp_status take_members(const char *at, size_t each, struct dp_view *view, struct dp_error *err)
{
    for (uint32_t i = 0; i < view->members; i++, at += each) {
        struct dp_member *member = &view->member[i];
        *member = (struct dp_member){
            .incarnation = dp_load_u64le(at), .until = dp_load_u64le(at + 8), .from = view->first_step};
        if (each == MEMBER_1)
            continue;
        member->from = dp_load_u64le(at + 16);
        member->missed = dp_load_u64le(at + 24);
        if (member->from < view->first_step)
            return dp_fail(err, DP_INVALID,
                           "view: worker %" PRIu32 " takes part from step %" PRIu64 ", expected %" PRIu64
                           ", the run's first, or later",
                           i, member->from, view->first_step);
    }
    return DP_OK;
}

enum dp_status dp_view_unpack(const void *bytes, size_t size, struct dp_view *out, struct dp_error *err)
{
    const char *at = bytes;
    *out = (struct dp_view){0};
    uint32_t format = size >= 4 ? dp_load_u32le(at) : 0;
    uint32_t members = size >= DP_VIEW_HEAD ? dp_load_u32le(at + 32) : 0;
    size_t each = format == FORMAT_1 ? MEMBER_1 : DP_VIEW_MEMBER;
    if (format != FORMAT && format != FORMAT_1)
        return dp_fail(err, DP_INVALID, "view: format %" PRIu32 ", expected %u or %u", format, FORMAT_1,
                       FORMAT);
    if (members == 0 || members > DP_MEMBERS_MAX || size != DP_VIEW_HEAD + members * each)
        return dp_fail(err, DP_INVALID,
                       "view: %zu bytes for %" PRIu32
                       " members, expected 1 to %u members, %u bytes and %zu of each",
                       size, members, DP_MEMBERS_MAX, DP_VIEW_HEAD, each);
    uint32_t mode = dp_load_u32le(at + 16);
    struct dp_view view = {.run = dp_load_u32le(at + 4),
                           .number = dp_load_u64le(at + 8),
                           .slack = dp_load_u32le(at + 20),
                           .first_step = dp_load_u64le(at + 24),
                           .members = members};
    enum dp_status st = check(&view, mode, err);
    if (st != DP_OK)
        return st;
    view.mode = (enum dp_consistency)mode;
    view.member = calloc(members, sizeof *view.member);
    if (!view.member)
        return dp_fail(err, DP_NOMEM, "no memory for the %" PRIu32 " members of a view", members);
    st = take_members(at + DP_VIEW_HEAD, each, &view, err);
    if (st == DP_OK)
        *out = view;
    else
        dp_view_clear(&view);
    return st;
}

enum dp_status dp_view_of_register(const void *bytes, size_t size, uint32_t run, uint64_t version,
                                   struct dp_view *out, struct dp_error *err)
{
    struct dp_error why = {0};
    enum dp_status st = dp_view_unpack(bytes, size, out, &why);
    if (st == DP_OK && (out->run != run || out->number != version)) {
        st = dp_fail(&why, DP_INVALID, "view %" PRIu64 " of run %" PRIu32, out->number, out->run);
        dp_view_clear(out);
    }
    if (st != DP_INVALID)
        return st == DP_OK ? DP_OK : dp_fail(err, st, "%s", why.text);
    return dp_fail(
        err, st,
        "the register's value 'run/%" PRIu32 "/view', version %" PRIu64
        ", which lists the workers of the run, cannot be used (%.160s): another program set it. "
        "The weights are intact: train further under a higher run number (downpour run --continue, or "
        "training.run)",
        run, version, why.text);
}
