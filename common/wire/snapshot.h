/* Snapshot: what a shard may be ordered to do with copies of its rows (proto/README.md). Numbers go on the wire. */
#ifndef DP_WIRE_SNAPSHOT_H
#define DP_WIRE_SNAPSHOT_H

enum dp_snapshot_action {
    DP_SNAPSHOT_LOOK = 0,
    DP_SNAPSHOT_TAKE = 1,
    DP_SNAPSHOT_REVERT = 2,
    DP_SNAPSHOT_DROP = 3
};

#endif
