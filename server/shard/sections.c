#include "server/shard/sections.h"

#include "common/base/bytes.h"

#include <assert.h>
#include <inttypes.h>

static_assert(DP_SECTIONS_MAX == DP_LOOKUP_SECTIONS_MAX,
              "a lookup has a place for each section of a request");

static enum dp_status check_section(const struct dp_shard_base *base, const struct dp_cached_tables *tables,
                                    const struct dp_section *section, struct dp_cached_table **out,
                                    struct dp_error *err)
{
    struct dp_cached_table *table = dp_cached_tables_find(tables, section->table);
    if (!table)
        return dp_fail(err, DP_NOT_FOUND, "table %08" PRIx32 " is not on shard %" PRIu32 ": create it first",
                       section->table, base->index);
    if (!table->durable)
        return dp_fail_wait(err, DP_AGAIN, (struct dp_wait){.reason = DP_WAIT_MARK, .subject = table->id},
                            "table '%s' is being created", table->spec.name);
    if (section->rows > 0) {
        uint64_t first = dp_load_u64le(section->keys);
        uint64_t last = dp_load_u64le((const char *)section->keys + (size_t)(section->rows - 1) * 8);
        if (!dp_range_has(base->range, first) || !dp_range_has(base->range, last))
            return dp_fail(err, DP_INVALID,
                           "table '%s': mixed keys %016" PRIx64 " to %016" PRIx64
                           " are not all in shard %" PRIu32 "'s range, %016" PRIx64 " to %016" PRIx64,
                           table->spec.name, first, last, base->index, base->range.first, base->range.last);
    }
    *out = table;
    return DP_OK;
}

enum dp_status dp_sections_check(const struct dp_shard_base *base, const struct dp_cached_tables *tables,
                                 struct dp_waiting *waiting, struct dp_error *err)
{
    const struct dp_request *request = &waiting->request;
    struct dp_lookup *lookup = &waiting->lookup;
    enum dp_status st = DP_OK;
    lookup->makes = request->kind != DP_REQUEST_PULL;
    lookup->sections = request->sections;
    for (uint32_t s = 0; s < request->sections && st == DP_OK; s++) {
        const struct dp_section *section = &request->section[s];
        struct dp_cached_table *table = NULL;
        st = check_section(base, tables, section, &table, err);
        for (uint32_t before = 0; before < s && st == DP_OK; before++)
            if (lookup->section[before].table == table)
                st = dp_fail(err, DP_INVALID, "table '%s' is in two sections of one request",
                             table->spec.name);
        lookup->section[s].table = table;
        lookup->section[s].keys = section->keys;
        lookup->section[s].rows = section->rows;
    }
    return st;
}

bool dp_sections_wait(struct dp_misses *misses, const struct dp_schedule *schedule,
                      struct dp_waiting *waiting, struct dp_error *err)
{
    bool first = dp_schedule_is_first(schedule, DP_WAIT_ROOM, waiting);
    enum dp_found found = dp_misses_find(misses, &waiting->lookup, first, err);
    waiting->waits_for = found == DP_FOUND_READING ? DP_WAIT_STORE
                         : found == DP_FOUND_PARK  ? DP_WAIT_ROOM
                                                   : DP_WAIT_NONE;
    return waiting->waits_for != DP_WAIT_NONE;
}
