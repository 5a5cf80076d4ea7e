/* View: the members of a run, and its consistency mode. It is a numbered value in the register
 * (`run/N/view`; its number is the value's version). Clients hand it to shards, and shards journal it.
 * Little endian:
 *     format u32 (2) | run u32 | number u64 | mode u32 | slack u32 | first_step u64 | members u32 | 0 u32 |
 *     members times, by rank: incarnation u64 | until u64 | from u64 | missed u64
 * Format 1, of registers and journals of before members could return, ends after `until` and is read with
 * from = first_step.
 * Promise   An unpacked view can be acted on: known mode, run, number and members from 1, sizes that fit.
 * Memory    A view's members are on the heap: dp_view_clear. */
#ifndef DP_WIRE_VIEW_H
#define DP_WIRE_VIEW_H

#include "common/base/status.h"
#include "common/model/mode.h"
#include "common/wire/limits.h"

#include <stddef.h>
#include <stdint.h>

#define DP_VIEW_HEAD      40u
#define DP_VIEW_MEMBER    32u
#define DP_VIEW_BYTES_MAX (DP_VIEW_HEAD + DP_VIEW_MEMBER * DP_MEMBERS_MAX)

/* It takes part in the steps from <= s < until. A member that returns after it has left gets a later `from`. */
struct dp_member {
    uint64_t incarnation; /* of the process in this place; 0: no process has joined yet */
    uint64_t until;       /* UINT64_MAX: it has not left */
    uint64_t from;        /* first_step or more */
    uint64_t missed;      /* steps before `from` in which it took no part, in all */
};

struct dp_view {
    uint32_t run;
    uint64_t number; /* from 1 */
    enum dp_consistency mode;
    uint32_t slack; /* as the mode says (dp_mode_check) */
    uint64_t first_step;
    uint32_t members;
    struct dp_member *member; /* [members], by rank; heap */
};

/* Copies into *out, which is overwritten. */
enum dp_status dp_view_copy(const struct dp_view *view, struct dp_view *out, struct dp_error *err);
void dp_view_clear(struct dp_view *view); /* accepts {0} */
static inline size_t dp_view_bytes(const struct dp_view *view)
{
    return DP_VIEW_HEAD + (size_t)view->members * DP_VIEW_MEMBER;
}
/* to: dp_view_bytes. */
void dp_view_pack(const struct dp_view *view, void *to);
/* Either format. DP_INVALID names what is wrong; *out is {0} then. */
enum dp_status dp_view_unpack(const void *bytes, size_t size, struct dp_view *out, struct dp_error *err);

/* The same of the register's `version` of run `run`'s view. DP_INVALID says how to train further. */
enum dp_status dp_view_of_register(const void *bytes, size_t size, uint32_t run, uint64_t version,
                                   struct dp_view *out, struct dp_error *err);

#endif
