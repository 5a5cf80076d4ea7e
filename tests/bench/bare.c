#include "tests/bench/bare.h"

#include "server/store/rocks_error.h"
#include "server/store/rows.h"

#include <stdlib.h>

struct dp_bare {
    struct dp_rocks_db db;
};

struct dp_bare_scratch {
    struct dp_rows_scratch rows;
};
_Static_assert(DP_BARE_KEYS_MAX == DP_ROWS_CHUNK, "asked as a server's reader asks");

enum dp_status dp_bare_open(const char *directory, struct dp_bare **out, struct dp_error *err)
{
    *out = calloc(1, sizeof **out);
    if (!*out)
        return dp_fail(err, DP_NOMEM, "no memory for a store opened read-only");
    enum dp_status st = dp_rocks_db_open_beside(directory, &(*out)->db, err);
    if (st != DP_OK)
        dp_bare_close(out);
    return st;
}

void dp_bare_close(struct dp_bare **bare)
{
    if (*bare)
        dp_rocks_db_close(&(*bare)->db);
    free(*bare);
    *bare = NULL;
}

struct dp_bare_scratch *dp_bare_scratch_new(void)
{
    return calloc(1, sizeof(struct dp_bare_scratch));
}

enum dp_status dp_bare_read(const struct dp_bare *bare, struct dp_bare_scratch *scratch,
                            const struct dp_store_key *keys, uint32_t n, uint64_t *missing,
                            struct dp_error *err)
{
    struct dp_rows_scratch *s = &scratch->rows;
    enum dp_status st = DP_OK;
    DP_ASSERT(n <= DP_BARE_KEYS_MAX);
    for (uint32_t i = 0; i < n; i++) {
        dp_key_put(s->keys[i], keys[i]);
        s->key[i] = s->keys[i];
        s->key_bytes[i] = DP_KEY_BYTES;
        s->values[i] = NULL;
        s->errors[i] = NULL;
    }
    rocksdb_batched_multi_get_cf(bare->db.db, bare->db.read, bare->db.families[DP_ROCKS_ROWS], n, s->key,
                                 s->key_bytes, s->values, s->errors, true);
    for (uint32_t i = 0; i < n; i++) { /* to the end, also after a failure: all of it is freed here */
        size_t bytes = 0;
        if (st == DP_OK)
            st = dp_rocks_error_take(&s->errors[i], bare->db.directory, "read rows", err);
        else
            rocksdb_free(s->errors[i]);
        *missing += !s->values[i] || !rocksdb_pinnableslice_value(s->values[i], &bytes);
        if (s->values[i])
            rocksdb_pinnableslice_destroy(s->values[i]);
    }
    return st;
}
