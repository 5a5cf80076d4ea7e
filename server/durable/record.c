#include "server/durable/record.h"

#include "common/base/bytes.h"

#define FORMAT  1u
#define HEAD    32u
#define SECTION 16u

uint32_t dp_record_encode(const struct dp_request *push, const uint32_t *dims, enum dp_status refused,
                          char *head, struct dp_journal_piece pieces[DP_RECORD_PIECES_MAX])
{
    uint32_t sections = refused == DP_OK ? push->sections : 0, n = 1;
    dp_store_u32le(head, FORMAT);
    dp_store_u32le(head + 4, sections);
    dp_store_u64le(head + 8, push->stream);
    dp_store_u64le(head + 16, push->number);
    memcpy(head + 24, &push->rate, 4);
    dp_store_u32le(head + 28, (uint32_t)refused);
    for (uint32_t s = 0; s < sections; s++) {
        const struct dp_section *section = &push->section[s];
        char *at = head + HEAD + s * SECTION;
        dp_store_u32le(at, section->table);
        dp_store_u32le(at + 4, section->rows);
        dp_store_u32le(at + 8, section->type == DP_BF16);
        dp_store_u32le(at + 12, dims[s]);
        if (section->rows == 0)
            continue;
        pieces[n++] = (struct dp_journal_piece){section->keys, (size_t)section->rows * 8};
        pieces[n++] = (struct dp_journal_piece){section->values, section->value_bytes};
    }
    pieces[0] = (struct dp_journal_piece){head, HEAD + sections * SECTION};
    return n;
}

enum dp_status dp_record_decode(const void *bytes, size_t size, struct dp_request *out,
                                enum dp_status *refused, uint32_t dims[DP_SECTIONS_MAX], struct dp_error *err)
{
    const char *head = bytes;
    if (size < HEAD || dp_load_u32le(head) != FORMAT || dp_load_u32le(head + 4) > DP_SECTIONS_MAX ||
        size < HEAD + dp_load_u32le(head + 4) * SECTION)
        return dp_fail(err, DP_CORRUPT, "a record of %zu bytes that is not format %u", size, FORMAT);
    out->kind = DP_REQUEST_PUSH;
    out->sections = dp_load_u32le(head + 4);
    out->stream = dp_load_u64le(head + 8);
    out->number = dp_load_u64le(head + 16);
    memcpy(&out->rate, head + 24, 4);
    *refused = dp_status_from_number((int)dp_load_u32le(head + 28));
    const char *at = head + HEAD + out->sections * SECTION;
    size_t left = size - (size_t)(at - head);
    for (uint32_t s = 0; s < out->sections; s++) {
        const char *section = head + HEAD + s * SECTION;
        uint32_t rows = dp_load_u32le(section + 4);
        enum dp_value_type type = dp_load_u32le(section + 8) ? DP_BF16 : DP_F32;
        dims[s] = dp_load_u32le(section + 12);
        size_t values = (size_t)rows * dims[s] * dp_value_bytes(type);
        if (rows > DP_ROWS_MAX || dims[s] > DP_TABLE_DIM_MAX || left < (size_t)rows * 8 ||
            left - (size_t)rows * 8 < values)
            return dp_fail(err, DP_CORRUPT, "a record whose section %u is longer than the record", s);
        out->section[s] = (struct dp_section){.table = dp_load_u32le(section),
                                              .rows = rows,
                                              .type = type,
                                              .keys = at,
                                              .values = at + (size_t)rows * 8,
                                              .value_bytes = values};
        at += (size_t)rows * 8 + values;
        left -= (size_t)rows * 8 + values;
    }
    return left == 0 ? DP_OK : dp_fail(err, DP_CORRUPT, "a record with %zu bytes too many", left);
}
