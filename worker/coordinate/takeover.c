#include "worker/coordinate/takeover.h"

#include "common/base/log.h"
#include "common/model/stream.h"
#include "worker/context/retry.h"
#include "worker/coordinate/membership.h"
#include "worker/history/position.h"
#include "worker/loop/step.h"
#include "worker/schedule/rate.h"
#include "worker/schedule/shares.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#define MS_NS    UINT64_C(1000000)
#define ASK_MS   1000u
#define LOOKS    8u /* within the timeout, as often as members heartbeat at least (common/client/heartbeats.c) */
#define IN_A_ROW 3u
#define SLICE_MS 10000u
/* Groups after the first that some shard lacks: more pushes are never unanswered (training.pushes_max). */
#define TORN_MAX 64u

static struct dp_rounds rounds_of(const struct dp_job *job, const struct dp_dataset *data, uint32_t worker)
{
    const struct dp_cluster_training *training = &job->cluster->training;
    const struct dp_share share = {
        .batches = dp_dataset_batches(data), .worker = worker, .workers = training->workers};
    return dp_rounds_of(training, share);
}

uint64_t dp_takeover_undone(const struct dp_rounds *rounds, uint64_t until, uint32_t epochs)
{
    uint64_t epoch = until / rounds->count, mine = dp_share_positions(rounds->share);
    uint64_t done = until % rounds->count * rounds->every;
    DP_ASSERT(done <= mine); /* a step without minibatches is the last of its epoch (shares.h) */
    return epoch < epochs ? mine - done + (epochs - epoch - 1) * mine : 0;
}

/* ---- where it was */

/* bits: those of the groups first .. first + count - 1. */
static enum dp_status ask_anywhere(struct dp_job *second, const struct dp_position *at, uint64_t count,
                                   uint64_t *bits, struct dp_error *err)
{
    const struct dp_cluster_training *training = &second->cluster->training;
    uint64_t numbers = (count - 1) * training->workers + 1;
    uint64_t *all = calloc((size_t)(numbers + 63) / 64, sizeof *all);
    enum dp_status st;
    if (!all)
        return dp_fail(err, DP_NOMEM, "no memory for %" PRIu64 " push numbers", numbers);
    struct dp_retry retry = dp_retry_begin(second);
    do
        st = dp_client_pushed_anywhere(second->client, dp_push_stream(training->run, at->epoch),
                                       dp_push_number(second->worker, training->workers, at->first),
                                       (size_t)numbers, all, dp_retry_slice_ms(&retry, SLICE_MS), err);
    while (dp_retry_more(&retry, &st, err));
    for (uint64_t g = 0; st == DP_OK && g < count; g++) {
        uint64_t n = g * training->workers;
        bits[g / 64] |= (all[n / 64] >> n % 64 & 1) << g % 64;
    }
    free(all);
    return st;
}

/* *end: the first group of position->epoch from which on no shard has any. */
static enum dp_status find_end(struct dp_job *second, const struct dp_position *position, uint64_t *end,
                               struct dp_error *err)
{
    uint64_t left = position->groups - position->first, bits[(TORN_MAX + 63) / 64] = {0};
    uint64_t count = left < TORN_MAX ? left : TORN_MAX;
    *end = position->first;
    if (position->epoch == second->cluster->training.epochs || count == 0)
        return DP_OK;
    enum dp_status st = ask_anywhere(second, position, count, bits, err);
    for (uint64_t g = 0; st == DP_OK && g < count; g++)
        if (bits[g / 64] >> g % 64 & 1)
            *end = position->first + g + 1;
    return st;
}

/* ---- what some shards lack */

/* To the loop of an epoch, what is not to be made is done. */
static enum dp_status make_again(struct dp_job *second, const struct dp_dataset *data,
                                 struct dp_position *position, uint64_t end, struct dp_error *err)
{
    struct dp_progress progress;
    struct dp_worker_stats stats = {0};
    struct dp_stats_history history = {0};
    struct dp_loop *loop = NULL;
    const struct dp_loop_options options = {.job = second,
                                            .data = data,
                                            .progress = &progress,
                                            .stats = &stats,
                                            .position = position,
                                            .history = &history};
    for (uint64_t g = end; g < position->groups; g++)
        position->bits[g / 64] |= UINT64_C(1) << g % 64;
    dp_progress_init(&progress, second, 0);
    enum dp_status st = dp_worker_stats_init(&stats, second->worker, second->cluster->training.epochs, err);
    if (st == DP_OK)
        st = dp_loop_open(&options, &loop, err);
    if (st == DP_OK)
        st = dp_loop_epoch(loop, position->epoch, err);
    if (st != DP_OK) /* before its buffers go: a pull may be unanswered */
        dp_job_disconnect(second);
    dp_loop_close(&loop);
    dp_stats_history_close(&history);
    dp_worker_stats_clear(&stats);
    return st;
}

static enum dp_status push_empty(struct dp_job *second, const struct dp_rounds *rounds,
                                 const struct dp_position *position, uint64_t end, struct dp_error *err)
{
    const struct dp_cluster_training *training = &second->cluster->training;
    struct dp_rate rate = dp_rate_of(training, rounds->share.batches * training->epochs);
    enum dp_status st = DP_OK;
    for (uint64_t g = position->first; st == DP_OK && g < end; g++) {
        uint64_t rated = position->epoch * rounds->share.batches + dp_rounds_rated(rounds, g, 0);
        const struct dp_push_options options = {.rate = dp_rate_at(&rate, rated),
                                                .stream = dp_push_stream(training->run, position->epoch),
                                                .number =
                                                    dp_push_number(second->worker, training->workers, g),
                                                .in_step = true,
                                                .step = dp_rounds_step(rounds, position->epoch, g)};
        struct dp_ticket ticket = {0};
        st = dp_client_push(second->client, &options, NULL, 0, training->timeout_ms, &ticket, err);
        if (st == DP_OK)
            st = dp_job_wait(second, &ticket, false, NULL, err);
    }
    return st;
}

/* ---- standing in */

/* A process may have come in its place: it sends heartbeats before it joins (common/client/heartbeats.h). */
static enum dp_status ask_once_more(struct dp_takeover *s, uint32_t worker, struct dp_error *err)
{
    struct dp_error unheard = {0};
    if (dp_client_silences(s->job->client, s->silent_ms, ASK_MS, &unheard) != DP_OK)
        return dp_fail(err, DP_UNAVAILABLE, "%s", unheard.text);
    if (s->silent_ms[worker] <= s->timeout_ms)
        return dp_fail(err, DP_REPLACED, "worker %" PRIu32 " is heard again", worker);
    return DP_OK;
}

static enum dp_status act(struct dp_takeover *s, struct dp_job *second, const struct dp_rounds *rounds,
                          struct dp_error *err)
{
    struct dp_position position = {0};
    struct dp_seat seat = {0};
    uint64_t end = 0;
    bool drops = dp_cluster_rule_backups(rounds->rule) > 0;
    enum dp_status st = ask_once_more(s, second->worker, err);
    if (st == DP_OK)
        st = dp_membership_join(second, rounds, false, err);
    if (st == DP_OK)
        seat = dp_membership_seat_of(second);
    if (st == DP_OK) /* now that no push of its process is taken any more */
        st = dp_position_find(second, rounds, seat, &position, err);
    if (st == DP_OK)
        st = find_end(second, &position, &end, err);
    uint64_t until = dp_rounds_step(rounds, position.epoch, end);
    if (until < seat.from) /* it came back when all was over, and had not left yet */
        until = seat.from;
    if (st == DP_OK && end > position.first) {
        dp_log(DP_LOG_WARN,
               "worker %" PRIu32 " for worker %" PRIu32 ": some shards have its pushes up to step %" PRIu64
               ", others lack %" PRIu64 " of them: making those again",
               s->job->worker, second->worker, until, end - position.first);
        st = drops ? push_empty(second, rounds, &position, end, err)
                   : make_again(second, s->data, &position, end, err);
    }
    dp_position_clear(&position);
    if (st == DP_OK)
        st = dp_membership_leave_before(second, until, err);
    if (st == DP_OK)
        s->gone[second->worker] = (struct dp_gone){.is = true, .until = until, .missed = seat.missed};
    return st;
}

static void tell_gone(const struct dp_takeover *s, uint32_t worker)
{
    const struct dp_gone *gone = &s->gone[worker];
    const struct dp_rounds rounds = rounds_of(s->job, s->data, worker);
    const struct dp_cluster_training *training = &s->job->cluster->training;
    uint64_t undone = dp_takeover_undone(&rounds, gone->until, s->epochs);
    if (undone > 0)
        dp_log(DP_LOG_WARN,
               "worker %" PRIu32 " has left before step %" PRIu64 ", in epoch %" PRIu64 ": %" PRIu64
               " of its minibatches will not be trained, unless it comes back",
               worker, gone->until, training->first_epoch + gone->until / rounds.count + 1, undone);
}

static enum dp_status take_over(struct dp_takeover *s, uint32_t worker, struct dp_error *err)
{
    const struct dp_rounds rounds = rounds_of(s->job, s->data, worker);
    struct dp_job second;
    struct dp_error why = {0};
    dp_log(DP_LOG_WARN,
           "worker %" PRIu32 " has been silent for %" PRIu64 ".%" PRIu64
           " s, longer than --worker-timeout (training.worker_timeout): this worker lets it leave",
           worker, s->silent_ms[worker] / 1000, s->silent_ms[worker] / 100 % 10);
    enum dp_status st = dp_job_act_for(s->job, worker, &second, &why);
    if (st == DP_OK)
        st = act(s, &second, &rounds, &why);
    dp_job_disconnect(&second);
    switch (st) {
    case DP_OK:
        tell_gone(s, worker);
        return DP_OK;
    case DP_REPLACED:
        dp_log(DP_LOG_WARN,
               "worker %" PRIu32 " is heard again, or another process came in its place: it stays", worker);
        return DP_OK;
    case DP_TIMEOUT:
    case DP_UNAVAILABLE:
        dp_log(DP_LOG_WARN, "worker %" PRIu32 " could not leave, another attempt follows: %s", worker,
               why.text);
        return DP_OK;
    default:
        return dp_fail(err, st, "letting worker %" PRIu32 " leave: %s", worker, why.text);
    }
}

/* It had come back before it left, or before the end. */
static enum dp_status say_missed(const struct dp_takeover *s, uint32_t worker, const struct dp_rounds *rounds,
                                 struct dp_worker_stats *stats, struct dp_error *err)
{
    const struct dp_gone *gone = &s->gone[worker];
    uint64_t end = dp_rounds_step(rounds, s->epochs, 0);
    const struct dp_seat seat = {.from = gone->until, .missed = gone->missed};
    struct dp_position position = {0};
    enum dp_status st = dp_position_find(s->job, rounds, seat, &position, err);
    if (st != DP_OK)
        return st;
    const struct dp_tally tally =
        dp_position_tally(&position, rounds, dp_dataset_examples(s->data), dp_job_batch(s->job));
    dp_position_clear(&position);
    uint64_t made = tally.before.minibatches + tally.here.minibatches;
    if (gone->until < end) {
        stats->left.undone = s->epochs * dp_share_positions(rounds->share) - made;
        return DP_OK;
    }
    uint64_t behind = gone->until - end; /* it came back when all was over */
    uint64_t all =
        s->epochs * dp_share_examples(rounds->share, dp_dataset_examples(s->data), dp_job_batch(s->job));
    stats->missed = gone->missed > behind ? gone->missed - behind : 0;
    stats->missed_examples = all - dp_tally_examples(&tally);
    return DP_OK;
}

enum dp_status dp_takeover_say(const struct dp_takeover *s, uint32_t worker, struct dp_worker_stats *stats,
                               struct dp_error *err)
{
    if (!s->job)
        return DP_OK;
    const struct dp_rounds rounds = rounds_of(s->job, s->data, worker);
    const struct dp_gone *gone = &s->gone[worker];
    uint64_t undone = dp_takeover_undone(&rounds, gone->until, s->epochs);
    stats->left = (struct dp_worker_left){.is = undone > 0,
                                          .step = gone->until,
                                          .epoch = (uint32_t)(gone->until / rounds.count) + 1,
                                          .undone = undone};
    return gone->missed > 0 ? say_missed(s, worker, &rounds, stats, err) : DP_OK;
}

/* ---- silent workers */

/* False: it is no view of this run's members. Clears the value. */
static bool take_view(const struct dp_takeover *s, struct dp_register_value *value, struct dp_view *view)
{
    struct dp_error unread = {0};
    bool known = value->version > 0 && dp_view_unpack(value->bytes, value->size, view, &unread) == DP_OK;
    dp_register_value_clear(value);
    return known && view->members == s->rounds.members;
}

static bool get_view(const struct dp_takeover *s, struct dp_view *view)
{
    struct dp_register_value value = {0};
    struct dp_error unheard = {0};
    char name[32];
    (void)snprintf(name, sizeof name, "run/%" PRIu32 "/view", s->job->cluster->training.run);
    return dp_client_register_get(s->job->client, name, 0, 0, ASK_MS, &value, &unheard) == DP_OK &&
           take_view(s, &value, view);
}

/* Looks are in a row if none was missing for so long that all may have been suspended. False: this one is not. */
static bool count_looks(struct dp_takeover *s, uint64_t now_ns)
{
    bool goes_on = now_ns - s->looked_ns <= (s->timeout_ms + ASK_MS) * MS_NS;
    s->looked_ns = now_ns;
    for (uint32_t w = 0; w < s->rounds.members; w++) {
        uint32_t before = goes_on ? s->in_a_row[w] : 0;
        bool silent = w != s->job->worker && s->silent_ms[w] > s->timeout_ms;
        s->in_a_row[w] = !silent ? 0 : before < IN_A_ROW ? before + 1 : before;
    }
    return goes_on;
}

static bool is_silent(const struct dp_takeover *s, uint32_t worker)
{
    return s->in_a_row[worker] == IN_A_ROW;
}

/* Of the ranks below this worker's, a live one acts first. */
static bool is_lowest(const struct dp_takeover *s, const struct dp_view *view)
{
    for (uint32_t w = 0; w < s->job->worker; w++)
        if (view->member[w].incarnation != 0 && !is_silent(s, w))
            return false;
    return true;
}

static void tell_first(struct dp_takeover *s)
{
    if (!s->told)
        dp_log(DP_LOG_WARN,
               "worker 0 is silent for longer than --worker-timeout (training.worker_timeout), but it "
               "writes the report and does not leave: start it again");
    s->told = true;
}

/* An evaluation without it pulls as no member: every shard has to have closed the steps that waited for it. */
static enum dp_status let_go(struct dp_takeover *s, uint32_t worker, const struct dp_member *member,
                             struct dp_error *err)
{
    enum dp_status st = dp_membership_hand_over(s->job, &s->rounds, err);
    if (st != DP_OK)
        return st;
    s->gone[worker] = (struct dp_gone){.is = true, .until = member->until, .missed = member->missed};
    tell_gone(s, worker);
    return DP_OK;
}

/* Of those that left: a worker that came back is not among them, and one that left again is looked at again. */
static void find_back(struct dp_takeover *s, const struct dp_view *view)
{
    for (uint32_t w = 0; w < s->rounds.members; w++) {
        const struct dp_member *member = &view->member[w];
        if (!s->gone[w].is || member->until == s->gone[w].until)
            continue;
        s->gone[w] = (struct dp_gone){0};
        s->in_a_row[w] = 0;
        if (member->until == UINT64_MAX)
            dp_log(DP_LOG_INFO, "worker %" PRIu32 " is back from step %" PRIu64 ", in epoch %" PRIu64, w,
                   member->from, s->job->cluster->training.first_epoch + member->from / s->rounds.count + 1);
    }
}

/* At most one takeover at a look: the silences of the others may have changed since. */
static enum dp_status judge(struct dp_takeover *s, const struct dp_view *view, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t w = 0; st == DP_OK && w < s->rounds.members; w++) {
        if (s->gone[w].is || !is_silent(s, w) || view->member[w].incarnation == 0)
            continue;
        if (view->member[w].until != UINT64_MAX) {
            st = let_go(s, w, &view->member[w], err);
        } else if (w == 0) {
            tell_first(s);
        } else if (is_lowest(s, view)) {
            return take_over(s, w, err);
        }
    }
    return st;
}

/* A worker that left may be back, and silent again. */
static bool needs_view(const struct dp_takeover *s)
{
    for (uint32_t w = 0; w < s->rounds.members; w++)
        if (is_silent(s, w) || s->gone[w].is)
            return true;
    return false;
}

/* The client finds its place taken, if it was. */
static enum dp_status check_own(const struct dp_takeover *s, const struct dp_view *view, struct dp_error *err)
{
    bool left = view->member[s->job->worker].until != UINT64_MAX && !s->ended;
    return left ? dp_membership_hand_over(s->job, &s->rounds, err) : DP_OK;
}

static enum dp_status look(void *of, struct dp_error *err)
{
    struct dp_takeover *s = of;
    struct dp_view view = {0};
    struct dp_error unheard = {0};
    enum dp_status st = DP_OK;
    uint64_t now_ns = dp_clock_ns(&s->job->clock);
    if (now_ns < s->due_ns)
        return DP_OK;
    s->due_ns = now_ns + s->timeout_ms / LOOKS * MS_NS;
    if (dp_client_silences(s->job->client, s->silent_ms, ASK_MS, &unheard) != DP_OK)
        return DP_OK;
    bool slept = !count_looks(s, now_ns);
    if ((slept || needs_view(s)) && get_view(s, &view)) {
        find_back(s, &view);
        st = check_own(s, &view, err);
        if (st == DP_OK)
            st = judge(s, &view, err);
    }
    dp_view_clear(&view);
    return st;
}

static enum dp_status recheck(void *of, struct dp_error *err)
{
    struct dp_takeover *s = of;
    struct dp_register_value value = {0};
    struct dp_view view = {0};
    enum dp_status st = dp_shared_get(s->job, "view", 0, 0, &value, err);
    if (st == DP_OK && take_view(s, &value, &view))
        find_back(s, &view);
    dp_view_clear(&view);
    return st;
}

static bool is_gone(const void *of, uint32_t worker)
{
    const struct dp_takeover *s = of;
    return worker < s->rounds.members && s->gone[worker].is;
}

enum dp_status dp_takeover_check(const struct dp_cluster_training *training, const struct dp_rounds *rounds,
                                 struct dp_error *err)
{
    const struct dp_share *share = &rounds->share;
    uint64_t pushes = rounds->count * training->workers;
    if (training->worker_timeout == 0 || !dp_cluster_rule_waits(rounds->rule))
        return DP_OK;
    if (share->batches < share->workers)
        return dp_fail(err, DP_ARGUMENT,
                       "--worker-timeout (training.worker_timeout) is %" PRIu32 " s, but %" PRIu32
                       " workers are more than the %" PRIu64
                       " minibatches, and a worker without minibatches cannot take over. Give fewer workers "
                       "(--workers), smaller minibatches (--batch), or no --worker-timeout",
                       training->worker_timeout, share->workers, share->batches);
    if (pushes > DP_PUSH_WINDOW)
        return dp_fail(
            err, DP_ARGUMENT,
            "--worker-timeout (training.worker_timeout) is %" PRIu32 " s, but an epoch has %" PRIu64
            " pushes, more than %u: servers take none so far ahead of those that a worker that left has "
            "not made: give larger minibatches (--batch), more of them a push (--push-every), or no "
            "--worker-timeout",
            training->worker_timeout, pushes, DP_PUSH_WINDOW);
    return DP_OK;
}

enum dp_status dp_takeover_open(struct dp_takeover *s, struct dp_job *job, const struct dp_dataset *data,
                                const struct dp_rounds *rounds, struct dp_error *err)
{
    uint32_t timeout_ms = job->cluster->training.worker_timeout * 1000;
    *s = (struct dp_takeover){0};
    enum dp_status st = dp_takeover_check(&job->cluster->training, rounds, err);
    if (st != DP_OK)
        return st;
    if (timeout_ms == 0 || rounds->members == 0)
        return DP_OK;
    *s = (struct dp_takeover){.job = job,
                              .data = data,
                              .rounds = *rounds,
                              .timeout_ms = timeout_ms,
                              .epochs = job->cluster->training.epochs};
    s->silent_ms = calloc(rounds->members, sizeof *s->silent_ms);
    s->in_a_row = calloc(rounds->members, sizeof *s->in_a_row);
    s->gone = calloc(rounds->members, sizeof *s->gone);
    if (!s->silent_ms || !s->in_a_row || !s->gone)
        return dp_fail(err, DP_NOMEM, "no memory for the silences of %" PRIu32 " workers", rounds->members);
    dp_client_heartbeats(job->client, timeout_ms);
    s->absence = (struct dp_absence){.look = look, .is_gone = is_gone, .recheck = recheck, .of = s};
    job->absence = &s->absence;
    return DP_OK;
}

void dp_takeover_close(struct dp_takeover *s)
{
    if (s->job)
        s->job->absence = NULL;
    free(s->silent_ms);
    free(s->in_a_row);
    free(s->gone);
    *s = (struct dp_takeover){0};
}
