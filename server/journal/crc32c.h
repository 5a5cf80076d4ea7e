/* CRC32C (Castagnoli, polynomial 0x1EDC6F41, reflected; RFC 3720): the checksum of everything the journal
 * keeps. It uses the processor's instruction (SSE4.2) in three interleaved lanes, or tables if there is none;
 * the results are equal. dp_crc32c(dp_crc32c(0, a), b) is the checksum of a followed by b.
 * Thread    Any. */
#ifndef DP_JOURNAL_CRC32C_H
#define DP_JOURNAL_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t dp_crc32c(uint32_t before, const void *data, size_t bytes);
/* The implementation with tables, for the test that compares both. */
uint32_t dp_crc32c_portable(uint32_t before, const void *data, size_t bytes);

#endif
