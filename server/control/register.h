/* Register: small named values with versions, which a cluster agrees on by compare-and-set (members, stores,
 * decisions).
 *     set: version == expected -> write version expected + 1 to the file, synced -> memory -> answer
 * Promise   Once a get or set has shown a version of a value, no earlier version is shown again, even after a
 *           loss of power. A set takes effect once, however often it is sent: the register recognises its
 *           nonce until DP_REGISTER_NONCES_MAX later sets of the same value have succeeded.
 *           The register holds at most DP_REGISTER_BYTES_MAX bytes and DP_REGISTER_VALUES_MAX values. When a
 *           set does not fit, the values of the oldest run ("run/12/...") are dropped, all at once; the
 *           newest run and the run of the set itself are never dropped. From then on, requests for that run
 *           or an older one fail with DP_TOO_OLD, so a dropped value is never mistaken for one that was never
 *           set. Values without a run are never dropped. Space for the value "stores" is always reserved.
 * Thread    The control thread.
 * Memory    The register copies its arguments. An entry is borrowed until the next set.
 * Failure   A set that fails changes nothing in memory and may be sent again. After a loss of power its value
 *           may be there all the same, as won. DP_FULL: the register or the disk is full. DP_IO: the disk
 *           failed.
 * Holds     names strictly ascending; every version 1 or more; a nonce for each of a value's last versions;
 *           the file's size <= DP_REGISTER_BYTES_MAX; no value of a run <= gone_run. */
#ifndef DP_CONTROL_REGISTER_H
#define DP_CONTROL_REGISTER_H

#include "common/env/disk.h"

#include <stdbool.h>
#include <stddef.h>

struct dp_control_register;

struct dp_control_register_options {
    const struct dp_disk *disk; /* the struct is copied; the disk must outlive the register */
    uint64_t new_id;            /* random, not 0: the id of a register that open creates */
    /* Create the register if it is missing. Without this, a missing one is DP_NOT_FOUND, or empty if
     * read-only. */
    bool create;
    bool read_only; /* nothing is written; a set fails with DP_UNSUPPORTED */
};

struct dp_control_register_entry {
    uint64_t version; /* 0: never set */
    const void *bytes;
    size_t size;
    bool won; /* after a set: it took effect, now or when it was first received */
};

struct dp_control_register_change {
    const char *name; /* 1 .. DP_NOTE_NAME_MAX bytes */
    uint64_t expected, nonce;
    const void *bytes;
    size_t size; /* DP_REGISTER_VALUE_BYTES_MAX at most */
};

/* Sets *made if open created the register; it is durable then. A damaged file is refused (DP_CORRUPT) and
 * left as it is. */
enum dp_status dp_control_register_open(const struct dp_control_register_options *options,
                                        struct dp_control_register **out, bool *made, struct dp_error *err);
void dp_control_register_close(struct dp_control_register **values); /* accepts NULL inside */
/* The random id given when the register was created; 0: read-only, and there is no register. */
uint64_t dp_control_register_id(const struct dp_control_register *values);
/* The run number in "run/12/...": 1 to UINT32_MAX; 0: the name belongs to no run. */
uint64_t dp_control_register_run_of(const char *name);
/* A value that was never set is DP_OK with version 0. DP_TOO_OLD: the values of its run were dropped. */
enum dp_status dp_control_register_get(const struct dp_control_register *values, const char *name,
                                       struct dp_control_register_entry *out, struct dp_error *err);
/* DP_OK: *out is the current value, whether the set won or not. DP_NOT_FOUND: the value has never reached the
 * expected version. DP_TOO_OLD: too many sets came after the expected version to know whether this one won,
 * or the values of its run were dropped. */
enum dp_status dp_control_register_set(struct dp_control_register *values,
                                       const struct dp_control_register_change *change,
                                       struct dp_control_register_entry *out, struct dp_error *err);

/* The bytes and the number of the values that `counts` accepts by name, except `but`. */
void dp_control_register_measure(const struct dp_control_register *values, bool (*counts)(const char *name),
                                 const char *but, size_t *bytes, uint32_t *count);

/* Makes *bytes, which the caller frees: all values, as the file has them. *changes: 1, and how many sets took effect
 * since the opening. DP_NOT_FOUND: read-only, and there is no register. */
enum dp_status dp_control_register_copy(const struct dp_control_register *values, void **bytes, size_t *size,
                                        uint64_t *changes, struct dp_error *err);

#endif
