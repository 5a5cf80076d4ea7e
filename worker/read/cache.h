/* Cache: the decoded content of a file, kept on disk and mapped into memory by the next one who opens it.
 *     get: sources measured -> (its cache file, whole and of these sources and options: mapped)
 *                           -> (else: decoded -> written under a temporary name, synced, renamed -> mapped)
 * Promise   What is mapped is what decoding would give, bit for bit. A cache file counts only with the right checksums of
 *           its head and of each array, and for sources of the size and the digest that it was made from; else the file is
 *           decoded again, and a line in the log says why. A cache that cannot be written stops nothing.
 * Thread    Any. Several processes may get the same file: each writes whole files under a name of its own, the last rename
 *           stands, and all are equal. Those who have mapped an older one keep it.
 * Memory    The mapped arrays are the file's pages, shared by all on the machine. 8 bytes an element at most.
 * Failure   What decoding returns. */
#ifndef DP_READ_CACHE_H
#define DP_READ_CACHE_H

#include "worker/read/format.h"

/* As format->load, by way of the directory options->cache (made if it is missing), not NULL. It opens the sources itself. */
DP_MUST_USE
enum dp_status dp_cache_get(const struct dp_dataset_options *options, const struct dp_format *format,
                            struct dp_content *out, struct dp_error *err);

#endif
