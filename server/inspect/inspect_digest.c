#include "server/inspect/inspect_digest.h"

#include "common/base/bytes.h"
#include "common/model/row.h"

#include <inttypes.h>
#include <sodium.h>
#include <stdio.h>

#define BYTES 16u

static void begin(crypto_generichash_blake2b_state *state)
{
    DP_ASSERT(crypto_generichash_blake2b_init(state, NULL, 0, BYTES) == 0);
}

static void put(crypto_generichash_blake2b_state *state, const void *bytes, size_t count)
{
    DP_ASSERT(crypto_generichash_blake2b_update(state, bytes, count) == 0);
}

static struct dp_digest end(crypto_generichash_blake2b_state *state)
{
    unsigned char hash[BYTES];
    DP_ASSERT(crypto_generichash_blake2b_final(state, hash, sizeof hash) == 0);
    return (struct dp_digest){.low = dp_load_u64le(hash), .high = dp_load_u64le(hash + 8)};
}

void dp_digest_add_row(struct dp_digest *digest, uint64_t key, const void *row, size_t row_bytes)
{
    crypto_generichash_blake2b_state state;
    unsigned char head[12];
    DP_ASSERT(row_bytes >= DP_ROW_HEADER);
    dp_store_u64le(head, key);
    dp_store_u32le(head + 8, dp_row_step(row));
    begin(&state);
    put(&state, head, sizeof head);
    put(&state, (const char *)row + DP_ROW_HEADER, row_bytes - DP_ROW_HEADER);
    struct dp_digest one = end(&state);
    one.rows = 1;
    dp_digest_add(digest, &one);
}

void dp_digest_add(struct dp_digest *digest, const struct dp_digest *other)
{
    digest->low += other->low;
    digest->high += other->high + (digest->low < other->low);
    digest->rows += other->rows;
}

void dp_digest_text(const struct dp_digest *digest, char text[DP_DIGEST_TEXT])
{
    (void)snprintf(text, DP_DIGEST_TEXT, "%016" PRIx64 "%016" PRIx64, digest->high, digest->low);
}

struct dp_digest dp_digest_of_all(const struct dp_digest_table *tables, size_t count)
{
    crypto_generichash_blake2b_state state;
    uint64_t rows = 0;
    begin(&state);
    for (size_t i = 0; i < count; i++) {
        unsigned char bytes[DP_TABLE_NAME_MAX + 1 + 4 + 8 + BYTES] = {0}, *at = bytes + DP_TABLE_NAME_MAX + 1;
        size_t len = strlen(tables[i].name);
        DP_ASSERT(len <= DP_TABLE_NAME_MAX && (i == 0 || strcmp(tables[i - 1].name, tables[i].name) < 0));
        memcpy(bytes, tables[i].name, len);
        dp_store_u32le(at, tables[i].dim);
        dp_store_u64le(at + 4, tables[i].digest.rows);
        dp_store_u64le(at + 12, tables[i].digest.low);
        dp_store_u64le(at + 20, tables[i].digest.high);
        put(&state, bytes, sizeof bytes);
        rows += tables[i].digest.rows;
    }
    struct dp_digest all = end(&state);
    all.rows = rows;
    return all;
}
