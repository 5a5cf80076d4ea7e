#include "server/journal/record.h"

#include "common/base/bytes.h"

#define FORMAT  2u
#define HEAD    72u
#define SECTION 16u

static void encode_head(const struct dp_record *record, uint32_t sections, char *head)
{
    dp_store_u32le(head, FORMAT);
    dp_store_u32le(head + 4, sections);
    dp_store_u32le(head + 28, (uint32_t)record->refused);
    dp_store_u32le(head + 32, (uint32_t)record->kind);
    dp_store_u32le(head + 36, record->members);
    dp_store_u32le(head + 40, record->run);
    dp_store_u32le(head + 44, record->rank);
    dp_store_u64le(head + 48, record->step);
    dp_store_u64le(head + 56, record->examples);
    dp_store_u64le(head + 64, record->view);
}

/* Of a VOID, bytes and size are none. */
static uint32_t encode_view(const struct dp_record *record, char *head, struct dp_journal_piece *pieces)
{
    memset(head, 0, HEAD);
    encode_head(record, 0, head);
    pieces[0] = (struct dp_journal_piece){head, HEAD};
    if (record->size == 0) /* no piece without bytes: their address may be NULL */
        return 1;
    pieces[1] = (struct dp_journal_piece){record->bytes, record->size};
    return 2;
}

uint32_t dp_record_encode(const struct dp_record *record, const struct dp_request *push, char *head,
                          struct dp_journal_piece pieces[DP_RECORD_PIECES_MAX])
{
    DP_ASSERT((record->kind == DP_RECORD_VIEW || record->kind == DP_RECORD_VOID) == !push);
    DP_ASSERT(record->kind != DP_RECORD_VOID || record->size == 0);
    if (!push)
        return encode_view(record, head, pieces);
    uint32_t sections = record->refused == DP_OK && !record->dropped ? push->sections : 0, n = 1;
    encode_head(record, sections, head);
    dp_store_u64le(head + 8, push->stream);
    dp_store_u64le(head + 16, push->number);
    memcpy(head + 24, &record->rate, 4);
    for (uint32_t s = 0; s < sections; s++) {
        const struct dp_section *section = &push->section[s];
        char *at = head + HEAD + s * SECTION;
        dp_store_u32le(at, section->table);
        dp_store_u32le(at + 4, section->rows);
        dp_store_u32le(at + 8, section->type == DP_BF16);
        dp_store_u32le(at + 12, record->dims[s]);
        if (section->rows == 0)
            continue;
        pieces[n++] = (struct dp_journal_piece){section->keys, (size_t)section->rows * 8};
        pieces[n++] = (struct dp_journal_piece){section->values, section->value_bytes};
    }
    pieces[0] = (struct dp_journal_piece){head, HEAD + sections * SECTION};
    return n;
}

/* Fills *record but its dims; false: it is none. */
static bool decode_head(const char *head, size_t size, struct dp_record *record)
{
    if (size < HEAD || dp_load_u32le(head) != FORMAT || dp_load_u32le(head + 4) > DP_SECTIONS_MAX)
        return false;
    uint32_t kind = dp_load_u32le(head + 32);
    *record = (struct dp_record){.kind = (enum dp_record_kind)kind};
    record->refused = dp_status_from_number((int)dp_load_u32le(head + 28));
    record->members = dp_load_u32le(head + 36);
    record->run = dp_load_u32le(head + 40);
    record->rank = dp_load_u32le(head + 44);
    record->step = dp_load_u64le(head + 48);
    record->examples = dp_load_u64le(head + 56);
    record->view = dp_load_u64le(head + 64);
    return kind >= DP_RECORD_PUSH && kind <= DP_RECORD_VOID &&
           (kind == DP_RECORD_PUSH || record->refused == DP_OK) &&
           ((kind != DP_RECORD_VIEW && kind != DP_RECORD_VOID) || dp_load_u32le(head + 4) == 0);
}

enum dp_status dp_record_decode(const void *bytes, size_t size, struct dp_record *record,
                                struct dp_request *out, struct dp_error *err)
{
    const char *head = bytes;
    if (!decode_head(head, size, record) || size < HEAD + dp_load_u32le(head + 4) * SECTION)
        return dp_fail(
            err, DP_CORRUPT,
            "a record of %zu bytes that is not format %u (of format 1: start the last build of version "
            "0.1.0 on the store once, and stop it)",
            size, FORMAT);
    out->kind = DP_REQUEST_PUSH;
    out->sections = dp_load_u32le(head + 4);
    out->stream = dp_load_u64le(head + 8);
    out->number = dp_load_u64le(head + 16);
    memcpy(&out->rate, head + 24, 4);
    record->rate = out->rate;
    const char *at = head + HEAD + out->sections * SECTION;
    size_t left = size - (size_t)(at - head);
    if (record->kind == DP_RECORD_VIEW) {
        record->bytes = at;
        record->size = left;
        return DP_OK;
    }
    for (uint32_t s = 0; s < out->sections; s++) {
        const char *section = head + HEAD + s * SECTION;
        uint32_t rows = dp_load_u32le(section + 4), dim = dp_load_u32le(section + 12);
        enum dp_value_type type = dp_load_u32le(section + 8) ? DP_BF16 : DP_F32;
        record->dims[s] = dim;
        size_t values = (size_t)rows * dim * dp_value_bytes(type);
        if (rows > DP_ROWS_MAX || dim > DP_TABLE_DIM_MAX || left < (size_t)rows * 8 ||
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
