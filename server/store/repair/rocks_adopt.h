/* Rocks adopt: makes a copy of a store's database a store of its own.
 *     files copied or linked into a directory -> adopt -> dp_rocks_store_open, as after a crash
 * The copy may have been taken while that store was open (store.h, a link job). It gets its own marks, with an id
 * that is new, and is known to no register, so it joins a cluster as a new store does.
 * Promise   All marks are put at once, durably, or none is. Rows are left alone.
 * Thread    One, while the directory is not open.
 * Failure   DP_CORRUPT: the copy is damaged or incomplete, or not of that store. DP_FULL, DP_IO. */
#ifndef DP_STORE_REPAIR_ROCKS_ADOPT_H
#define DP_STORE_REPAIR_ROCKS_ADOPT_H

#include "server/store/rocks_store.h"

struct dp_rocks_adoption {
    /* As for an opening of the copy; range: that of the store that was copied. journaled: the next opening replays the
     * journal that lies next to the copy; else it takes the copy for clean. No gate, no wake, not read-only. */
    struct dp_rocks_store_options store;
    uint64_t of;                       /* id of the store that was copied */
    const struct dp_store_mark *marks; /* put, or removed where the value is NULL; none of the store's own */
    uint32_t count;
};

enum dp_status dp_rocks_store_adopt(const struct dp_rocks_adoption *adoption, struct dp_error *err);

#endif
