/* Cache: the decoded content of a file, kept on disk and mapped into memory by the next process that opens
 * it.
 *     get: sources measured -> (a valid cache file of these sources and options: mapped)
 *                           -> (else: decoded -> written to a temp file, synced, renamed -> mapped)
 * Promise   The mapped content equals the decoded content, bit for bit. A cache file is used only if the
 *           checksums of its head and of each array are right, and the size and digest of its sources are
 *           unchanged. Otherwise the source is decoded again, and the log gives the reason. A cache that
 *           cannot be written is not an error.
 * Thread    Any. Several processes may get the same file: each writes a temp file of its own, the last rename
 *           wins, and all files are equal. A process that has mapped an older file keeps it.
 * Memory    The mapped arrays are the file's pages, shared by all processes of the machine. At most 8 bytes
 *           an element.
 * Failure   The status of the decoding. */
#ifndef DP_READ_CACHE_H
#define DP_READ_CACHE_H

#include "worker/read/format.h"

/* As format->load, with a cache in the directory options->cache (not NULL, created if missing). It opens the
 * sources itself. */
enum dp_status dp_cache_get(const struct dp_dataset_options *options, const struct dp_format *format,
                            struct dp_content *out, struct dp_error *err);

#endif
