#include "common/config/injection.h"

#include "common/base/hash.h"
#include "common/base/parse.h"
#include "common/config/fields.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#define ITEM_BYTES 32u

/* One of a list: "3:10x" or "3:50ms". */
struct straggler {
    uint64_t worker;
    double times;
    uint64_t longer_ns;
};

/* The next item of the list, from *at on; false: there is none, or it is longer than any that is right (then item is "?"). */
static bool next_item(const char **at, char item[ITEM_BYTES])
{
    if (**at == '\0')
        return false;
    size_t len = strcspn(*at, ",");
    (void)snprintf(item, ITEM_BYTES, "%.*s", len < ITEM_BYTES ? (int)len : 1, len < ITEM_BYTES ? *at : "?");
    *at += len + ((*at)[len] == ',');
    return true;
}

static bool parse_item(const char *item, struct straggler *out)
{
    const char *colon = strchr(item, ':');
    char worker[ITEM_BYTES], amount[ITEM_BYTES];
    *out = (struct straggler){.times = 1};
    if (!colon)
        return false;
    (void)snprintf(worker, sizeof worker, "%.*s", (int)(colon - item), item);
    (void)snprintf(amount, sizeof amount, "%s", colon + 1);
    if (dp_parse_u64(worker, 0, UINT32_MAX, "worker", &out->worker, NULL) != DP_OK)
        return false;
    size_t len = strlen(amount);
    if (len == 0 || amount[len - 1] != 'x')
        return dp_parse_time(amount, DP_INJECTION_LONGER_MAX_NS, "time", &out->longer_ns, NULL) == DP_OK;
    amount[len - 1] = '\0';
    return strspn(amount, "0123456789.") == len - 1 &&
           dp_parse_f64(amount, 1, DP_INJECTION_TIMES_MAX, "times", &out->times, NULL) == DP_OK;
}

static bool is_none(const char *list)
{
    return list[0] == '\0' || strcmp(list, "none") == 0;
}

/* The straggler of this worker's; none: as the others. */
static struct straggler straggler_of(const struct dp_cluster_training *t, uint32_t worker)
{
    const char *at = is_none(t->straggler) ? "" : t->straggler;
    char item[ITEM_BYTES];
    struct straggler one;
    while (next_item(&at, item))
        if (parse_item(item, &one) && one.worker == worker)
            return one;
    return (struct straggler){.worker = worker, .times = 1};
}

static enum dp_status check_item(const struct dp_cluster_training *t, const struct dp_setting_names *names,
                                 const char *item, struct straggler *out, struct dp_error *err)
{
    char name[DP_SETTING_NAME_BYTES], other[DP_SETTING_NAME_BYTES];
    const char *what = dp_setting_name(names, "training.straggler", name);
    if (!parse_item(item, out))
        return dp_fail(err, DP_ARGUMENT,
                       "%s has \"%s\", but must be WORKER:FACTORx, a factor of 1 .. %d by which its "
                       "minibatches take longer "
                       "(3:10x), or WORKER:TIME, up to %" PRIu64
                       "s that they take more (3:50ms); several with commas between",
                       what, item, DP_INJECTION_TIMES_MAX, DP_INJECTION_LONGER_MAX_NS / 1000000000);
    if (out->worker >= t->workers)
        return dp_fail(err, DP_ARGUMENT,
                       "%s has \"%s\", but the workers are 0 .. %" PRIu32 ": name one of them, or raise %s",
                       what, item, t->workers - 1, dp_setting_name(names, "training.workers", other));
    return DP_OK;
}

static enum dp_status check_stragglers(const struct dp_cluster_training *t,
                                       const struct dp_setting_names *names, uint64_t pace_ns,
                                       struct dp_error *err)
{
    char name[DP_SETTING_NAME_BYTES], pace[DP_SETTING_NAME_BYTES], item[ITEM_BYTES], before[ITEM_BYTES];
    const char *at = t->straggler;
    struct straggler one, earlier;
    while (next_item(&at, item)) {
        enum dp_status st = check_item(t, names, item, &one, err);
        if (st != DP_OK)
            return st;
        for (const char *from = t->straggler; next_item(&from, before) && from < at;)
            if (parse_item(before, &earlier) && earlier.worker == one.worker)
                return dp_fail(err, DP_ARGUMENT, "%s names worker %" PRIu64 " twice: leave one out",
                               dp_setting_name(names, "training.straggler", name), one.worker);
        double mean_ns = (double)pace_ns * one.times + (double)one.longer_ns;
        if (mean_ns > (double)DP_INJECTION_LONGER_MAX_NS)
            return dp_fail(err, DP_ARGUMENT,
                           "%s has \"%s\", and %s is %s: a minibatch of worker %" PRIu64
                           " would take %.0f s, over %" PRIu64 ": lower one of them",
                           dp_setting_name(names, "training.straggler", name), item,
                           dp_setting_name(names, "training.pace", pace), t->pace[0] ? t->pace : "none",
                           one.worker, mean_ns / 1e9, DP_INJECTION_LONGER_MAX_NS / 1000000000);
    }
    return DP_OK;
}

static enum dp_status parse_pace(const struct dp_cluster_training *t, const char *what, uint64_t *out_ns,
                                 struct dp_error *err)
{
    *out_ns = 0;
    return is_none(t->pace) ? DP_OK : dp_parse_time(t->pace, DP_INJECTION_PACE_MAX_NS, what, out_ns, err);
}

enum dp_status dp_injection_check(const struct dp_cluster_training *training,
                                  const struct dp_setting_names *names, struct dp_error *err)
{
    char name[DP_SETTING_NAME_BYTES], other[DP_SETTING_NAME_BYTES];
    uint64_t pace_ns;
    enum dp_status st = parse_pace(training, dp_setting_name(names, "training.pace", name), &pace_ns, err);
    if (st == DP_OK && training->jitter != DP_JITTER_NONE && pace_ns == 0)
        st = dp_fail(err, DP_ARGUMENT,
                     "%s is %s, which multiplies the time of a minibatch, but %s gives no time: give one "
                     "(20ms), or leave the first out",
                     dp_setting_name(names, "training.jitter", other),
                     dp_cluster_jitter_name(training->jitter), dp_setting_name(names, "training.pace", name));
    return st == DP_OK && !is_none(training->straggler) ? check_stragglers(training, names, pace_ns, err)
                                                        : st;
}

const char *dp_injection_lacks_pace(const struct dp_cluster_training *training)
{
    const char *at = is_none(training->straggler) ? "" : training->straggler;
    char item[ITEM_BYTES];
    struct straggler one;
    bool multiplies = false;
    while (next_item(&at, item))
        multiplies |= parse_item(item, &one) && one.times > 1;
    return multiplies && dp_injection_of(training, 0).pace_ns == 0 ? training->straggler : NULL;
}

struct dp_injection dp_injection_of(const struct dp_cluster_training *training, uint32_t worker)
{
    const struct straggler straggler = straggler_of(training, worker);
    struct dp_injection out = {
        .jitter = training->jitter, .times = straggler.times, .longer_ns = straggler.longer_ns};
    enum dp_status st = parse_pace(training, "training.pace", &out.pace_ns, NULL);
    DP_ASSERT(st == DP_OK);
    return out;
}

double dp_injection_draw(enum dp_cluster_jitter jitter, uint64_t seed, uint64_t epoch, uint64_t number)
{
    uint64_t h = dp_hash_mix(DP_HASH_GOLDEN + seed);
    h = dp_hash_mix(DP_HASH_GOLDEN + epoch + h);
    h = dp_hash_mix(DP_HASH_GOLDEN + number + h);
    double u = ((double)(h >> 11) + 0.5) * 0x1p-53;
    switch (jitter) {
    case DP_JITTER_NONE:
        return 1;
    case DP_JITTER_EXP:
        return -log(u);
    case DP_JITTER_UNIFORM:
        return 2 * u;
    }
    return 1;
}

uint64_t dp_injection_takes_ns(const struct dp_injection *injection, uint64_t seed, uint64_t epoch,
                               uint64_t number, uint64_t computed_ns)
{
    const struct dp_injection *i = injection;
    double least = (double)i->pace_ns * dp_injection_draw(i->jitter, seed, epoch, number);
    return (uint64_t)(fmax((double)computed_ns, least) * i->times) + i->longer_ns;
}

static const char *time_text(uint64_t ns, char out[24])
{
    bool small = ns < 1000000000;
    (void)snprintf(out, 24, "%.6g %s", (double)ns / (small ? 1e6 : 1e9), small ? "ms" : "s");
    return out;
}

static size_t add_pace(const struct dp_cluster_training *t, char *out, size_t size)
{
    uint64_t ns = dp_injection_of(t, 0).pace_ns;
    char time[24];
    int n = 0;
    if (ns == 0)
        return 0;
    if (t->jitter == DP_JITTER_NONE)
        n = snprintf(out, size, "minibatches take %s or more", time_text(ns, time));
    else
        n = snprintf(out, size, "minibatches take times drawn from the %s distribution of mean %s, or more",
                     t->jitter == DP_JITTER_EXP ? "exponential" : "uniform", time_text(ns, time));
    return (size_t)n;
}

const char *dp_injection_text(const struct dp_cluster_training *training, char out[DP_INJECTION_TEXT_BYTES])
{
    const size_t size = DP_INJECTION_TEXT_BYTES;
    const char *list = is_none(training->straggler) ? "" : training->straggler;
    char item[ITEM_BYTES], time[24];
    struct straggler one;
    out[0] = '\0';
    size_t at = add_pace(training, out, size);
    while (next_item(&list, item) && at < size) {
        if (!parse_item(item, &one))
            continue;
        char by[48];
        if (one.longer_ns > 0)
            (void)snprintf(by, sizeof by, "%s longer", time_text(one.longer_ns, time));
        else
            (void)snprintf(by, sizeof by, "%.6g times as long", one.times);
        int n = snprintf(out + at, size - at,
                         at ? "; worker %" PRIu64 "'s take %s" : "worker %" PRIu64 "'s minibatches take %s",
                         one.worker, by);
        at += n > 0 ? (size_t)n : 0;
    }
    return out;
}
