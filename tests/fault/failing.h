/* Failing: a library in front of libc that lets chosen file calls of a process fail, and counts them all.
 *     environment -> each call below the directory: count it by (call, file); fail it, if it is the one
 * Told by   DP_FAILING_ROOT: the directory. DP_FAILING_COUNTS: a file of struct dp_failing_counts, shared, so that the counts
 *           outlast the process. DP_FAILING: "CALL FILE N ERROR FOR", as `dp_failing_plan` writes it; absent: only count.
 * Errors    A short write writes half of its bytes and says so; the next write to that file is ENOSPC, for a correct program tries
 *           the rest. A sync that fails may lose what it was to make durable: with DP_FAILING_LOSE those bytes read as zeros
 *           from then on, as after a writeback error when the cached pages are gone.
 * Thread    Any. */
#ifndef DP_TESTS_FAULT_FAILING_H
#define DP_TESTS_FAULT_FAILING_H

#include <stdint.h>

enum dp_failing_call {
    DP_FAILING_WRITE, /* write, pwrite, ... */
    DP_FAILING_SYNC,  /* fsync, fdatasync, sync_file_range */
    DP_FAILING_RENAME,
    DP_FAILING_LINK,
    DP_FAILING_CREATE, /* open that may make a file */
    DP_FAILING_RESIZE, /* ftruncate, fallocate */
    DP_FAILING_REMOVE,
    DP_FAILING_CALLS
};

/* By name; of rename and link: by the new one. */
enum dp_failing_file {
    DP_FAILING_MANIFEST,
    DP_FAILING_CURRENT, /* and the file that is renamed to it */
    DP_FAILING_MARKS,   /* and the temp file that is renamed to it */
    DP_FAILING_TABLE,   /* *.sst, *.ldb, ingest-tmp */
    DP_FAILING_OPTIONS,
    DP_FAILING_JOURNAL,
    DP_FAILING_DIRECTORY,
    DP_FAILING_OTHER, /* LOG, LOCK, IDENTITY, ... */
    DP_FAILING_FILES
};

enum dp_failing_error {
    DP_FAILING_EIO,
    DP_FAILING_ENOSPC,
    DP_FAILING_SHORT,
    DP_FAILING_LOSE,
    DP_FAILING_ERRORS
};

struct dp_failing_counts {
    uint32_t calls[DP_FAILING_CALLS][DP_FAILING_FILES];
    uint32_t failed;
};

#define DP_FAILING_ROOT   "DP_FAILING_ROOT"
#define DP_FAILING_COUNTS "DP_FAILING_COUNTS"
#define DP_FAILING_PLAN   "DP_FAILING"

/* The n-th such call (from 1) fails; `on`: and all later ones of that call and file, too. */
struct dp_failing_plan {
    enum dp_failing_call call;
    enum dp_failing_file file;
    uint32_t n;
    enum dp_failing_error error;
    int on;
};
#define DP_FAILING_FORMAT "%u %u %u %u %u"

#endif
