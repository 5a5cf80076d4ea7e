/* CRC32C (Castagnoli, polynomial 0x1EDC6F41, reflected; RFC 3720): the checksum of everything the journal
 * keeps. The processor's instruction in three interleaved lanes where it has one (SSE4.2), else tables; both
 * give equal results. dp_crc32c(dp_crc32c(0, a), b) is the checksum of a followed by b.
 * Thread    Any. */
#ifndef DP_STORE_CRC32C_H
#define DP_STORE_CRC32C_H

#include <stddef.h>
#include <stdint.h>

uint32_t dp_crc32c(uint32_t before, const void *data, size_t bytes);
/* The form on tables, for the test that compares. */
uint32_t dp_crc32c_portable(uint32_t before, const void *data, size_t bytes);

#endif
