/* Record: the log of file calls that the recorder writes and the disk model reads.
 *     start -> (open, write, sync begin, sync end, rename, ...)* -> start -> ...       with the client's sent and acked between
 * Promise   The order of the records is one in which the calls may have happened: each call is made and logged under one lock.
 *           A sync is two records: what was written before `begin` is durable from `end` on. Each record is
 *           appended in one write, so that the client's own stand in true order with the server's: what stands
 *           behind a sync's end may have been caused by it.
 * Format    This header, the name, the other name, the data, one behind the other; of this machine only. */
#ifndef DP_TESTS_FAULT_RECORD_H
#define DP_TESTS_FAULT_RECORD_H

#include <stdint.h>

#define DP_RECORD_MAGIC 0x31524644u
/* What the recorder is told by its environment: the directory, the log, and, if at all, before which call the process dies. */
#define DP_RECORD_ROOT   "DP_RECORD_ROOT"
#define DP_RECORD_LOG    "DP_RECORD_LOG"
#define DP_RECORD_DIE_AT "DP_RECORD_DIE_AT"

enum dp_record_kind {
    DP_RECORD_START = 1,  /* a process begins: no file is open */
    DP_RECORD_OPEN,       /* fd, name; at: DP_RECORD_OPEN_... */
    DP_RECORD_CLOSE,      /* fd */
    DP_RECORD_WRITE,      /* fd, at, data */
    DP_RECORD_CUT,        /* fd; at: its new size */
    DP_RECORD_RESERVE,    /* fd; at: its size from now, at least */
    DP_RECORD_SYNC_BEGIN, /* fd, a directory's too; at: number of the sync */
    DP_RECORD_SYNC_END,   /* at: number of the sync */
    DP_RECORD_RENAME,     /* name, other: its new one */
    DP_RECORD_LINK,       /* name, other: its second one */
    DP_RECORD_REMOVE,     /* name of a file */
    DP_RECORD_MAKE,       /* name of a directory */
    DP_RECORD_UNMAKE,     /* name of a directory */
    DP_RECORD_UNKNOWN,    /* name: a call that the model does not follow */
    DP_RECORD_SENT,       /* fd: number of the client; at: of its push */
    DP_RECORD_ACKED,
    DP_RECORD_KINDS
};

#define DP_RECORD_OPEN_CREATED 1u
#define DP_RECORD_OPEN_EMPTIED 2u

struct dp_record {
    uint32_t magic, kind;
    int32_t fd;
    uint32_t name_bytes, other_bytes; /* without a 0 */
    uint32_t zero;
    uint64_t at, data_bytes;
};

#endif
