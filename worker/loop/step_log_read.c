/* The step log, asked what is in it; and cut where the servers have less. */
#include "common/base/log.h"
#include "worker/loop/step_log_inner.h"
#include "worker/loop/step_record.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *dp_step_log_text(const struct dp_step_log *log)
{
    return log->text;
}

struct dp_step_log_plan dp_step_log_plan_of(const struct dp_step_log *log)
{
    return log->plan;
}

void dp_step_log_last(const struct dp_step_log *log, uint32_t *epoch, uint64_t *groups)
{
    *epoch = log->last_epoch;
    *groups = log->last_groups;
}

/* The record of its end; false: there is none. */
static bool get_whole(const struct dp_step_log *log, uint32_t epoch, struct dp_step_sum *sum)
{
    *sum = (struct dp_step_sum){0};
    for (size_t at = 0; at < log->kept.size;
         at += DP_STEP_RECORD_HEAD + dp_step_record_payload(log->kept.at + at))
        (void)dp_step_record_get_sum(log->kept.at + at, epoch, sum);
    return sum->groups > 0;
}

struct dp_step_sum dp_step_log_sum(const struct dp_step_log *log, uint32_t epoch)
{
    struct dp_step_sum sum;
    if (!get_whole(log, epoch, &sum) && log->part.size > 0)
        (void)dp_step_record_get_sum(log->part.at, epoch, &sum);
    return sum;
}

void dp_step_log_sums(const struct dp_step_log *log, struct dp_step_sum *sums, uint32_t epochs)
{
    for (size_t at = 0; at < log->kept.size;
         at += DP_STEP_RECORD_HEAD + dp_step_record_payload(log->kept.at + at)) {
        const unsigned char *record = log->kept.at + at;
        uint32_t epoch = dp_load_u32le(record + DP_STEP_RECORD_HEAD);
        if (dp_step_record_kind(record) == DP_STEP_KIND_SUM && epoch < epochs)
            (void)dp_step_record_get_sum(record, epoch, &sums[epoch]);
    }
}

struct placed {
    struct dp_step step;
    size_t at; /* in the file */
};

static int by_group(const void *a, const void *b)
{
    const struct placed *x = a, *y = b;
    int order = (x->step.group > y->step.group) - (x->step.group < y->step.group);
    return order ? order : (x->at > y->at) - (x->at < y->at);
}

/* The pushes of the epoch from group `from` on that are done, ascending, each once. */
static enum dp_status collect(const struct dp_step_log *log, uint32_t epoch, uint64_t from,
                              bool (*done)(const void *of, uint32_t epoch, uint64_t group), const void *of,
                              struct dp_step **steps, size_t *count, struct dp_error *err)
{
    struct placed *placed = calloc(log->steps_len + 1, sizeof *placed);
    size_t n = 0;
    *count = 0;
    *steps = calloc(log->steps_len + 1, sizeof **steps);
    if (!placed || !*steps) {
        free(placed);
        free(*steps);
        *steps = NULL;
        return dp_fail(err, DP_NOMEM, "no memory for the losses of %zu pushes", log->steps_len);
    }
    for (size_t i = 0; i < log->steps_len; i++)
        if (log->steps[i].epoch == epoch && log->steps[i].group >= from &&
            done(of, epoch, log->steps[i].group))
            placed[n++] = (struct placed){.step = log->steps[i], .at = i};
    qsort(placed, n, sizeof *placed, by_group);
    for (size_t i = 0; i < n; i++) /* of a push that was made twice the later one */
        if (i + 1 == n || placed[i + 1].step.group != placed[i].step.group)
            (*steps)[(*count)++] = placed[i].step;
    free(placed);
    return DP_OK;
}

enum dp_status dp_step_log_steps(const struct dp_step_log *log, uint32_t epoch,
                                 bool (*done)(const void *of, uint32_t epoch, uint64_t group), const void *of,
                                 struct dp_step **steps, size_t *count, struct dp_error *err)
{
    struct dp_step_sum whole;
    bool ended = get_whole(log, epoch, &whole); /* its sum has them all */
    return collect(log, epoch, ended ? UINT64_MAX : dp_step_log_sum(log, epoch).groups, done, of, steps,
                   count, err);
}

void dp_step_log_visit(const struct dp_step_log *log,
                       void (*visit)(void *context, enum dp_step_note kind, uint32_t epoch, const void *bytes,
                                     size_t size),
                       void *context)
{
    const struct dp_step_bytes *const both[] = {&log->kept, &log->totals};
    for (int k = 0; k < 2; k++) {
        const struct dp_step_bytes *in = both[k];
        for (size_t at = 0, payload; at < in->size; at += DP_STEP_RECORD_HEAD + payload) {
            const unsigned char *record = in->at + at, *from = record + DP_STEP_RECORD_HEAD;
            payload = dp_step_record_payload(record);
            if (dp_step_record_kind(record) == DP_STEP_KIND_NOTE)
                visit(context, (enum dp_step_note)dp_load_u32le(from), dp_load_u32le(from + 4),
                      from + DP_STEP_RECORD_NOTE, payload - DP_STEP_RECORD_NOTE);
        }
    }
}

enum dp_status dp_step_log_path(const char *prefix, uint32_t worker, char *out, size_t size,
                                struct dp_error *err)
{
    int n = snprintf(out, size, "%s-%" PRIu32 ".log", prefix, worker);
    return n > 0 && (size_t)n < size
               ? DP_OK
               : dp_fail(err, DP_ARGUMENT, "path '%.200s...' (training.steps) is too long", prefix);
}

/* ---- cut */

static bool any(const void *of, uint32_t epoch, uint64_t group)
{
    (void)of, (void)epoch, (void)group;
    return true;
}

static bool is_kept(const struct dp_step_log_cut *cut, const unsigned char *record, bool keeps_whole)
{
    const unsigned char *from = record + DP_STEP_RECORD_HEAD;
    if (dp_step_record_kind(record) == DP_STEP_KIND_SUM)
        return dp_load_u32le(from) < cut->epoch || (dp_load_u32le(from) == cut->epoch && keeps_whole);
    /* Notes of an epoch count from 1. */
    return dp_step_record_kind(record) != DP_STEP_KIND_NOTE || dp_load_u32le(from + 4) <= cut->epoch;
}

/* Whether something was left out. */
static bool cut_kept(struct dp_step_log *log, const struct dp_step_log_cut *cut, bool keeps_whole)
{
    size_t left = 0;
    for (size_t at = 0, size; at < log->kept.size; at += size) {
        size = DP_STEP_RECORD_HEAD + dp_step_record_payload(log->kept.at + at);
        if (!is_kept(cut, log->kept.at + at, keeps_whole))
            continue;
        memmove(log->kept.at + left, log->kept.at + at, size);
        left += size;
    }
    bool changed = left < log->kept.size;
    log->kept.size = left;
    return changed;
}

/* A sum of the first pushes of an epoch. */
static bool cut_part(struct dp_step_log *log, const struct dp_step_log_cut *cut)
{
    struct dp_step_sum sum = {0};
    bool is_ours = log->part.size > 0 && dp_step_record_get_sum(log->part.at, cut->epoch, &sum);
    uint32_t epoch = log->part.size > 0 ? dp_load_u32le(log->part.at + DP_STEP_RECORD_HEAD) : 0;
    bool stays = log->part.size == 0 || epoch < cut->epoch || (is_ours && sum.groups <= cut->first);
    if (!stays)
        log->part.size = 0;
    return !stays;
}

static bool is_whole_still(const struct dp_step_log *log, const struct dp_step_log_cut *cut, size_t logged,
                           size_t made)
{
    struct dp_step_sum whole;
    if (!get_whole(log, cut->epoch, &whole))
        return true;
    return whole.groups <= (logged >= whole.groups ? made : cut->made);
}

enum dp_status dp_step_log_cut(struct dp_step_log *log, const struct dp_step_log_cut *cut,
                               struct dp_error *err)
{
    struct dp_step *logged = NULL, *made = NULL;
    struct dp_step_bytes pushes = {0};
    size_t all = 0, count = 0;
    enum dp_status st = collect(log, cut->epoch, 0, any, NULL, &logged, &all, err);
    if (st == DP_OK)
        st = collect(log, cut->epoch, 0, cut->done, cut->of, &made, &count, err);
    free(logged);
    bool behind = st == DP_OK && log->last_epoch > cut->epoch; /* pushes of epochs that have not begun */
    if (st == DP_OK)
        behind = cut_kept(log, cut, is_whole_still(log, cut, all, count)) || behind;
    if (st == DP_OK)
        behind = cut_part(log, cut) || behind;
    if (behind) {
        size_t left = 0;
        for (size_t i = 0; i < log->steps_len; i++)
            if (log->steps[i].epoch < cut->epoch)
                log->steps[left++] = log->steps[i];
        for (size_t i = 0; i < count; i++) {
            unsigned char record[DP_STEP_RECORD_HEAD + DP_STEP_RECORD_STEP];
            (void)dp_step_log_append(&pushes, record, dp_step_record_put_step(&made[i], log->seed, record));
            log->steps[left++] = made[i];
        }
        log->steps_len = left;
        log->totals.size = 0;
        log->last_epoch = cut->epoch;
        log->last_groups = count > 0 ? made[count - 1].group + 1 : 0;
        dp_step_log_rewrite(log, cut->epoch, &pushes);
        dp_log(DP_LOG_INFO,
               "'%s' is ahead of the servers, which were restored: what it has behind epoch %" PRIu32
               " and %zu pushes of the next is forgotten",
               log->path, cut->epoch, count);
    }
    free(made);
    free(pushes.at);
    return st;
}
