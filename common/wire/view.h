/* View: who takes part in a run, and by which consistency mode: a numbered value that the register keeps
 * (`run/N/view`, its number is the value's version), that clients hand to shards, and that shards journal.
 * Little endian:
 *     format u32 (2) | run u32 | number u64 | mode u32 | slack u32 | first_step u64 | members u32 | 0 u32 |
 *     members times, by rank: incarnation u64 | until u64 | from u64 | missed u64
 * Format 1, of registers and journals of before members could return, ends after `until` and is read with from = first_step.
 * Promise   What unpack accepts can be acted on: known mode, run, number and members from 1, sizes that fit.
 * Memory    A view's members are on the heap: dp_view_clear. */
#ifndef DP_WIRE_VIEW_H
#define DP_WIRE_VIEW_H

#include "common/base/status.h"
#include "common/wire/limits.h"

#include <stddef.h>
#include <stdint.h>

#define DP_VIEW_HEAD      40u
#define DP_VIEW_MEMBER    32u
#define DP_VIEW_BYTES_MAX (DP_VIEW_HEAD + DP_VIEW_MEMBER * DP_MEMBERS_MAX)

/* Numbers go on the wire and into journals. */
enum dp_consistency {
    DP_ASYNC = 0, /* nobody waits */
    DP_SSP = 1,   /* a pull for step t sees at least t - slack steps of every member (Ho et al. 2013) */
    DP_SYNC =
        2, /* a pull for step t sees exactly the steps before it; each closes without up to slack members (Chen et al. 2016) */
};

/* It takes part in the steps from <= s < until. A member that returns after it has left gets a later `from`. */
struct dp_member {
    uint64_t incarnation; /* of the process in this place; 0: nobody has joined yet */
    uint64_t until;       /* UINT64_MAX: it has not left */
    uint64_t from;        /* first_step or more */
    uint64_t missed;      /* steps before `from` in which it took no part, in all */
};

struct dp_view {
    uint32_t run;
    uint64_t number; /* from 1 */
    enum dp_consistency mode;
    uint32_t slack; /* ssp: S; sync: B, backup members, fewer than members; async: 0 */
    uint64_t first_step;
    uint32_t members;
    struct dp_member *member; /* [members], by rank; heap */
};

/* Copies into *out, which is overwritten. */
DP_MUST_USE
enum dp_status dp_view_copy(const struct dp_view *view, struct dp_view *out, struct dp_error *err);
void dp_view_clear(struct dp_view *view); /* accepts {0} */
static inline size_t dp_view_bytes(const struct dp_view *view)
{
    return DP_VIEW_HEAD + (size_t)view->members * DP_VIEW_MEMBER;
}
/* to: dp_view_bytes. */
void dp_view_pack(const struct dp_view *view, void *to);
/* Either format. DP_INVALID names what is wrong; *out is {0} then. */
DP_MUST_USE
enum dp_status dp_view_unpack(const void *bytes, size_t size, struct dp_view *out, struct dp_error *err);

/* The same of the register's `version` of run `run`'s view. DP_INVALID says how to train further. */
DP_MUST_USE
enum dp_status dp_view_of_register(const void *bytes, size_t size, uint32_t run, uint64_t version,
                                   struct dp_view *out, struct dp_error *err);

/* "async", "ssp:3", "sync", "sync:1": size 16 is enough. */
void dp_consistency_text(enum dp_consistency mode, uint32_t slack, char *out, size_t size);

#endif
