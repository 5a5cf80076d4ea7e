/* Digest of rows: 128 bits that depend on the rows' contents, and on nothing else.
 *     digest of a table = sum over its rows, modulo 2^128, of BLAKE2b-128(key u64 | step u32 | weights | slots)
 *     digest of all     = BLAKE2b-128 over its tables, ascending by name: name 48 | dim u32 | rows u64 | digest 16
 * Order     Addition modulo 2^128 is associative and commutative: rows may come in any order, from any
 *           number of shards and files, and sums of parts add up to the sum of all. The key (the user's,
 *           unmixed) is hashed with the row, so two exchanged rows change the sum. Keys are unique in a
 *           table, so none is counted twice. lsn, row format, shard and file are not hashed.
 * Strength  BLAKE2b is a cryptographic hash (RFC 7693), so sums of different contents are equal with a
 *           chance of about 2^-128. An attacker can find equal sums with less work (generalised birthdays):
 *           the digest detects accidents and is no signature.
 * Thread    Any, each with a digest of its own. */
#ifndef DP_INSPECT_INSPECT_DIGEST_H
#define DP_INSPECT_INSPECT_DIGEST_H

#include "common/model/table.h"

#define DP_DIGEST_TEXT 33u /* 32 hex digits */

struct dp_digest { /* {0}: of no rows */
    uint64_t low, high;
    uint64_t rows;
};

/* row: a complete record (row.h) of its table's size. */
void dp_digest_add_row(struct dp_digest *digest, uint64_t key, const void *row, size_t row_bytes);
void dp_digest_add(struct dp_digest *digest, const struct dp_digest *other);
void dp_digest_text(const struct dp_digest *digest, char text[DP_DIGEST_TEXT]);

struct dp_digest_table {
    const char *name;
    uint32_t dim;
    struct dp_digest digest;
};
/* tables: ascending by name, each once (asserted). */
struct dp_digest dp_digest_of_all(const struct dp_digest_table *tables, size_t count);

#endif
