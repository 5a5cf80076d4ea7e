#include "common/wire/counters.h"

#include <assert.h>
#include <string.h>

#define OWN(counter, kind, help)   {#counter, DP_COUNTER_##kind, help},
#define STORE(counter, kind, help) {"store_" #counter, DP_COUNTER_##kind, help},
static const struct dp_counter_text texts[] = {DP_COUNTER_MAP(OWN) DP_STORE_COUNTER_MAP(STORE)};
static_assert(sizeof texts / sizeof texts[0] <= DP_COUNTERS_MAX, "a report holds so many");

const struct dp_counter_text *dp_counter_text(const char *name)
{
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++)
        if (strcmp(texts[i].name, name) == 0)
            return &texts[i];
    return NULL;
}

const char *dp_counter_kind_name(enum dp_counter_kind kind)
{
    static const char *const names[] = {"total", "now", "most"};
    return names[kind];
}

uint64_t dp_counter_value(const struct dp_counter *counters, uint32_t n, const char *name)
{
    for (uint32_t i = 0; i < n; i++)
        if (strcmp(counters[i].name, name) == 0)
            return counters[i].value;
    return 0;
}

void dp_counter_merge(struct dp_counter *into, uint32_t n, const struct dp_counter *more, uint32_t more_n)
{
    for (uint32_t i = 0; i < n; i++) {
        const struct dp_counter_text *text = dp_counter_text(into[i].name);
        uint64_t value = dp_counter_value(more, more_n, into[i].name);
        if (!text || text->kind != DP_COUNTER_MOST)
            into[i].value += value;
        else if (value > into[i].value)
            into[i].value = value;
    }
}
