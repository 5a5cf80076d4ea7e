#include "server/metrics/shard_series.h"

#include "server/metrics/series.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

#define NAME_BYTES 96

/* Counters whose names Prometheus's conventions would not have. Others keep theirs. */
static const struct renamed {
    const char *counter, *name;
    double unit; /* of the counter, in that of the series */
} renamed[] = {
    {"up_ms", "up_seconds", 1e-3},
    {"pulls_held_ms", "pulls_held_seconds", 1e-3},
    {"turn_ns_max", "turn_max_seconds", 1e-9},
    {"checkpoint_cut_ns_max", "checkpoint_cut_max_seconds", 1e-9},
    {"cache_budget", "cache_budget_bytes", 1},
    {"bytes_replayed", "replayed_bytes", 1},
    {"journal_bytes", "journal_appended_bytes", 1},
    {"staleness_sum", "staleness_pushes_sum", 1},
    {"staleness_pushes", "pushes_measured", 1},
    {"clock_gap_sum", "clock_gap_steps_sum", 1},
    {"clock_gap_pushes", "pushes_of_members", 1},
    {"clock_gap_max", "clock_gap_max_steps", 1},
};

static const struct measure {
    const char *histogram, *name, *help;
} measures[] = {
    {"staleness", "downpour_shard_push_staleness", "pushes applied between a push and its pull"},
    {"clock_gap", "downpour_shard_push_clock_gap_steps", "steps of a push ahead of the slowest member"},
    {"changed", "downpour_shard_push_changed_rows_ratio",
     "share of a push's rows that changed between its pull and the push"},
};

struct shard_label {
    char number[12];
    struct dp_label label[3]; /* the shard, one more, and the end */
};

static void init_label(struct shard_label *l, const struct dp_exporter_source *source, uint32_t at)
{
    (void)snprintf(l->number, sizeof l->number, "%" PRIu32, source->first_shard + at);
    l->label[0] = (struct dp_label){"shard", l->number};
    l->label[1] = l->label[2] = (struct dp_label){NULL, NULL};
}

/* The place of the next shard that serves, from `at` on; source->shards: none does. */
static uint32_t next_serving(const struct dp_exporter_source *source, const struct dp_exporter_shard *shard,
                             uint32_t at)
{
    while (at < source->shards && shard[at].since_s == 0)
        at++;
    return at;
}

static const struct renamed *rename_of(const char *counter)
{
    for (size_t i = 0; i < sizeof renamed / sizeof renamed[0]; i++)
        if (strcmp(renamed[i].counter, counter) == 0)
            return &renamed[i];
    return NULL;
}

static void put_counter(FILE *to, const struct dp_exporter_source *source,
                        const struct dp_exporter_shard *shard, uint32_t counter, uint32_t first)
{
    const char *own = shard[first].observed.counter[counter].name;
    const struct dp_counter_text *text = dp_counter_text(own);
    const struct renamed *as = rename_of(own);
    char name[NAME_BYTES];
    bool total = text && text->kind == DP_COUNTER_TOTAL;
    (void)snprintf(name, sizeof name, "downpour_shard_%s%s", as ? as->name : own, total ? "_total" : "");
    dp_series_family(to, name, total ? "counter" : "gauge", text ? text->help : own);
    for (uint32_t i = first; i < source->shards; i = next_serving(source, shard, i + 1)) {
        struct shard_label l;
        uint64_t value = shard[i].observed.counter[counter].value;
        init_label(&l, source, i);
        if (as && as->unit < 1)
            dp_series_real(to, name, "", l.label, (double)value * as->unit);
        else
            dp_series_u64(to, name, "", l.label, value);
    }
}

static const struct measure *measure_of(const char *histogram)
{
    for (size_t i = 0; i < sizeof measures / sizeof measures[0]; i++)
        if (strcmp(measures[i].histogram, histogram) == 0)
            return &measures[i];
    return NULL;
}

static void put_buckets(FILE *to, const char *name, struct shard_label *l, const struct dp_histogram *h)
{
    uint64_t below = 0;
    char bound[32];
    l->label[1] = (struct dp_label){"le", bound};
    for (uint32_t b = 0; b < h->buckets; b++) {
        below += h->count[b];
        if (isinf(h->upper[b]))
            break;
        (void)snprintf(bound, sizeof bound, "%.15g", h->upper[b]);
        dp_series_u64(to, name, "_bucket", l->label, below);
    }
    (void)snprintf(bound, sizeof bound, "+Inf");
    dp_series_u64(to, name, "_bucket", l->label, below);
    l->label[1] = (struct dp_label){NULL, NULL};
    dp_series_real(to, name, "_sum", l->label, h->sum);
    dp_series_u64(to, name, "_count", l->label, below);
}

static void put_histogram(FILE *to, const struct dp_exporter_source *source,
                          const struct dp_exporter_shard *shard, uint32_t histogram, uint32_t first)
{
    const struct measure *as = measure_of(shard[first].observed.histogram[histogram].name);
    if (!as)
        return;
    dp_series_family(to, as->name, "histogram", as->help);
    for (uint32_t i = first; i < source->shards; i = next_serving(source, shard, i + 1)) {
        struct shard_label l;
        init_label(&l, source, i);
        put_buckets(to, as->name, &l, &shard[i].observed.histogram[histogram]);
    }
}

/* Of each cause that a request can be refused for, from the start: a series that appears with its first
 * refusal hides that one from rate(). NULL: there is no such cause. */
static const char *cause_name(uint32_t cause)
{
    const enum dp_wait_reason reason = dp_wait_from_number(cause - DP_REFUSAL_REASONS);
    if (cause >= DP_REFUSAL_REASONS)
        return reason != DP_WAIT_NONE ? dp_wait_name(reason) : NULL;
    const enum dp_status_class class = dp_status_class((int)cause);
    bool refused =
        class == DP_CLASS_CALLER || class == DP_CLASS_FATAL || cause == DP_SESSION || cause == DP_ORDER;
    return refused && dp_status_from_number((int)cause) == (enum dp_status)cause ? dp_status_name((int)cause)
                                                                                 : NULL;
}

static void put_refusals(FILE *to, const struct dp_exporter_source *source,
                         const struct dp_exporter_shard *shard)
{
    static const char name[] = "downpour_shard_refusals_total";
    dp_series_family(
        to, name, "counter",
        "requests answered with an error, by what they would have had to wait for, or else by its name");
    for (uint32_t i = next_serving(source, shard, 0); i < source->shards;
         i = next_serving(source, shard, i + 1)) {
        struct shard_label l;
        init_label(&l, source, i);
        for (uint32_t c = 0; c < DP_REFUSALS; c++) {
            char word[DP_SERIES_WORD];
            const char *cause = cause_name(c);
            l.label[1] = (struct dp_label){"cause", dp_series_word(cause, word)};
            if (cause)
                dp_series_u64(to, name, "", l.label, shard[i].observed.refusals[c]);
        }
    }
}

/* Whether they serve, and how far those are that do not. */
static void put_states(FILE *to, const struct dp_exporter_source *source,
                       const struct dp_exporter_shard *shard)
{
    static const struct {
        const char *name, *help;
    } states[] = {
        {"downpour_shard_serving",
         "1: the shard answers pulls and pushes; 0: it opens its store, recovers, or closes"},
        {"downpour_shard_start_time_seconds",
         "when the shard began to serve, since 1970: its counters are since then"},
        {"downpour_shard_recovery_done_bytes",
         "bytes of the journal that a shard that does not serve has read"},
        {"downpour_shard_recovery_bytes",
         "bytes of the journal that a shard that does not serve has to read"},
    };
    for (uint32_t s = 0; s < sizeof states / sizeof states[0]; s++) {
        dp_series_family(to, states[s].name, "gauge", states[s].help);
        for (uint32_t i = 0; i < source->shards; i++) {
            struct shard_label l;
            const struct dp_wait *wait = &shard[i].why.wait;
            bool serves = shard[i].since_s > 0, recovers = !serves && wait->reason == DP_WAIT_RECOVERING;
            init_label(&l, source, i);
            if (s == 0)
                dp_series_u64(to, states[s].name, "", l.label, serves);
            else if (s == 1 && serves)
                dp_series_u64(to, states[s].name, "", l.label, shard[i].since_s);
            else if (s > 1 && recovers)
                dp_series_u64(to, states[s].name, "", l.label, s == 2 ? wait->done : wait->total);
        }
    }
}

void dp_exporter_shards(FILE *to, const struct dp_exporter_source *source,
                        const struct dp_exporter_shard *shard)
{
    uint32_t first = next_serving(source, shard, 0);
    put_states(to, source, shard);
    if (first == source->shards)
        return;
    for (uint32_t c = 0; c < shard[first].observed.counters; c++)
        put_counter(to, source, shard, c, first);
    for (uint32_t h = 0; h < shard[first].observed.histograms; h++)
        put_histogram(to, source, shard, h, first);
    put_refusals(to, source, shard);
}
