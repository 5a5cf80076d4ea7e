#include "deploy/run/status_measures.h"

#include "common/base/json.h"
#include "deploy/cli/progress.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

static struct dp_histogram *find(struct dp_histogram *all, uint32_t count, const struct dp_histogram *like)
{
    for (uint32_t i = 0; i < count; i++)
        if (dp_histogram_alike(&all[i], like))
            return &all[i];
    return NULL;
}

static void add_shard(const struct dp_status_report *report, struct dp_status_measures *out)
{
    for (uint32_t h = 0; h < report->histograms; h++) {
        struct dp_histogram *into = find(out->all, out->count, &report->histogram[h]);
        if (into)
            dp_histogram_merge(into, &report->histogram[h]);
        else if (out->count < DP_HISTOGRAMS_MAX)
            out->all[out->count++] = report->histogram[h];
    }
}

void dp_status_measures_gather(const struct dp_queries *asks, const struct dp_status_measures *earlier,
                               struct dp_status_measures *out)
{
    *out = (struct dp_status_measures){0};
    for (uint32_t i = 0; i < asks->shards; i++)
        if (asks->shard[i].state == DP_ASK_ANSWERED)
            add_shard(&asks->shard[i].report, out);
    memcpy(out->shown, out->all, sizeof out->shown);
    for (uint32_t i = 0; earlier && i < earlier->count; i++) {
        struct dp_histogram *since = find(out->shown, out->count, &earlier->all[i]);
        if (since)
            (void)dp_histogram_since(since, &earlier->all[i]);
    }
}

/* ---- text */

static void put_number(const struct dp_histogram *h, uint32_t bucket, char out[48])
{
    uint64_t least = dp_histogram_least(h, bucket);
    if (isinf(h->upper[bucket]))
        (void)snprintf(out, 48, "%" PRIu64 " or more", least);
    else if ((uint64_t)h->upper[bucket] > least)
        (void)snprintf(out, 48, "%" PRIu64 " to %.0f", least, h->upper[bucket]);
    else
        (void)snprintf(out, 48, "%" PRIu64, least);
}

static void put_share(const struct dp_histogram *h, uint32_t bucket, char out[48])
{
    if (bucket == 0)
        (void)snprintf(out, 48, "0%%");
    else
        (void)snprintf(out, 48, "%.0f to %.0f%%", 100 * h->upper[bucket - 1], 100 * h->upper[bucket]);
}

/* Of any bounds. */
static void put_bound(const struct dp_histogram *h, uint32_t bucket, char out[48])
{
    (void)snprintf(out, 48, "up to %g", h->upper[bucket]);
}

/* What this program knows how to say; of others the name is shown. */
static const struct known {
    const char *name, *text;
    void (*init)(struct dp_histogram *h, const char *name);
    void (*put)(const struct dp_histogram *h, uint32_t bucket, char out[48]);
} known[] = {
    {"staleness", "Staleness in pushes", dp_histogram_init_numbers, put_number},
    {"clock_gap", "Clock gap in steps", dp_histogram_init_numbers, put_number},
    {"changed", "Changed rows of a push", dp_histogram_init_shares, put_share},
};

static bool is_known(const struct known *as, const struct dp_histogram *h)
{
    struct dp_histogram like;
    as->init(&like, as->name);
    return dp_histogram_alike(&like, h);
}

static void print_one(const struct dp_histogram *h, FILE *to)
{
    const struct known other = {.text = h->name, .put = put_bound}, *as = &other;
    char half[48], most[48], pushes[32];
    for (size_t i = 0; i < sizeof known / sizeof known[0]; i++)
        as = is_known(&known[i], h) ? &known[i] : as;
    as->put(h, dp_histogram_quantile(h, 0.5), half);
    as->put(h, dp_histogram_quantile(h, 0.99), most);
    fprintf(to, "%.30s: p50 %s, p99 %s (%s pushes)\n", as->text, half, most,
            dp_cli_number((double)dp_histogram_total(h), pushes, sizeof pushes));
}

void dp_status_measures_print(const struct dp_status_measures *measures, FILE *to)
{
    for (uint32_t i = 0; i < measures->count; i++)
        if (dp_histogram_total(&measures->shown[i]) > 0)
            print_one(&measures->shown[i], to);
}

/* ---- JSON */

json_t *dp_status_measures_list(const struct dp_histogram *histogram, uint32_t count)
{
    json_t *array = json_array();
    for (uint32_t i = 0; i < count; i++)
        (void)json_array_append_new(array, dp_json_histogram(&histogram[i]));
    return array;
}

json_t *dp_status_measures_json(const struct dp_status_measures *measures)
{
    return dp_status_measures_list(measures->shown, measures->count);
}
