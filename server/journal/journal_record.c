#include "server/journal/journal_record.h"

#include "common/base/bytes.h"
#include "server/journal/crc32c.h"

#define PAGE_MAGIC   0x314a5044u /* "DPJ1" */
#define HEADER_MAGIC 0x524a5044u /* "DPJR" */

/* Page and header: magic at 0, CRC of [8, 64) at 4. */
static void seal(uint8_t *to, uint32_t magic)
{
    dp_store_u32le(to, magic);
    dp_store_u32le(to + 4, dp_crc32c(magic, to + 8, DP_JOURNAL_HEADER - 8));
}

static bool sealed(const uint8_t *from, uint32_t magic)
{
    return dp_load_u32le(from) == magic &&
           dp_load_u32le(from + 4) == dp_crc32c(magic, from + 8, DP_JOURNAL_HEADER - 8);
}

void dp_journal_page_put(uint8_t to[DP_JOURNAL_PAGE], const struct dp_journal_page *page)
{
    memset(to, 0, DP_JOURNAL_PAGE);
    dp_store_u32le(to + 8, page->version);
    dp_store_u64le(to + 16, page->number);
    dp_store_u64le(to + 24, page->incarnation);
    dp_store_u64le(to + 32, page->first_lsn);
    dp_store_u64le(to + 40, page->synced_lsn);
    dp_store_u64le(to + 48, page->bytes);
    dp_store_u64le(to + 56, page->secret);
    seal(to, PAGE_MAGIC);
}

bool dp_journal_page_take(const uint8_t from[DP_JOURNAL_HEADER], struct dp_journal_page *out)
{
    if (!sealed(from, PAGE_MAGIC))
        return false;
    *out = (struct dp_journal_page){
        .version = dp_load_u32le(from + 8),
        .number = dp_load_u64le(from + 16),
        .incarnation = dp_load_u64le(from + 24),
        .first_lsn = dp_load_u64le(from + 32),
        .synced_lsn = dp_load_u64le(from + 40),
        .bytes = dp_load_u64le(from + 48),
        .secret = dp_load_u64le(from + 56),
    };
    return true;
}

void dp_journal_header_put(uint8_t to[DP_JOURNAL_HEADER], const struct dp_journal_header *header)
{
    memset(to, 0, DP_JOURNAL_HEADER);
    dp_store_u32le(to + 8, header->payload_crc);
    dp_store_u32le(to + 12, (uint32_t)header->kind);
    dp_store_u64le(to + 16, header->bytes);
    dp_store_u64le(to + 24, header->lsn);
    dp_store_u64le(to + 32, header->incarnation);
    dp_store_u64le(to + 40, header->synced_lsn);
    dp_store_u64le(to + 48, header->secret);
    seal(to, HEADER_MAGIC);
}

bool dp_journal_header_take(const uint8_t from[DP_JOURNAL_HEADER], struct dp_journal_header *out)
{
    if (!sealed(from, HEADER_MAGIC))
        return false;
    uint32_t kind = dp_load_u32le(from + 12);
    if (kind < DP_JOURNAL_RECORD || kind > DP_JOURNAL_CLOSED)
        return false;
    *out = (struct dp_journal_header){
        .payload_crc = dp_load_u32le(from + 8),
        .kind = (enum dp_journal_kind)kind,
        .bytes = dp_load_u64le(from + 16),
        .lsn = dp_load_u64le(from + 24),
        .incarnation = dp_load_u64le(from + 32),
        .synced_lsn = dp_load_u64le(from + 40),
        .secret = dp_load_u64le(from + 48),
    };
    return true;
}

bool dp_journal_header_resembles(const uint8_t from[DP_JOURNAL_HEADER],
                                 const struct dp_journal_header *wanted)
{
    int same = (dp_load_u32le(from) == HEADER_MAGIC) + (dp_load_u32le(from + 12) == (uint32_t)wanted->kind) +
               (dp_load_u64le(from + 24) == wanted->lsn) + (dp_load_u64le(from + 32) == wanted->incarnation) +
               (dp_load_u64le(from + 48) == wanted->secret);
    return same >= 4; /* of 5: other bytes do not match that by chance */
}

uint32_t dp_journal_payload_seed(uint64_t incarnation, uint64_t lsn)
{
    uint8_t both[16];
    dp_store_u64le(both, incarnation);
    dp_store_u64le(both + 8, lsn);
    return dp_crc32c(0, both, sizeof both);
}
