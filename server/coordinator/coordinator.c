#include "server/coordinator/coordinator.h"

#include "common/base/deadline.h"
#include "common/base/log.h"
#include "common/client/checkpoint.h"
#include "common/config/cluster_client.h"
#include "common/env/atomic_file.h"
#include "common/env/directory.h"
#include "server/checkpoint/listing.h"
#include "server/checkpoint/making.h"
#include "server/checkpoint/prune.h"
#include "server/coordinator/coordination.h"

#include <inttypes.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <time.h>
#include <unistd.h>

#define OPEN_MS      10000u
#define LAST_OPEN_MS 3000u /* of the last one: a server that is down is not waited for */
#define ABANDON_MS   5000u
#define STOP_MS      2000u
#define LET_GO_MS    60000u /* shards that hear nothing let go */
#define SWEEP_MS     1000u  /* between two tries */
#define ORDERS       8u
#define SILENCE_MS   60000u /* of a client that is then taken for dead */
#define WAIT_MS      10000u /* for pushes that only some shards have, where the cluster file asks */
#define LAST_MS      2000u  /* the same, of the last one: workers have left */
#define LOOK_MS      20u
#define RETRY_MS     1000u /* before the last one is tried again */

struct dp_coordinator {
    struct dp_coordinator_options o;
    struct dp_checkpoint_path note; /* the file that names the order under way */
    pthread_t thread;
    bool started, ended;   /* ended: under the lock */
    bool sweeps;           /* the thread's: what a life before left is to be removed */
    atomic_bool gives_up;  /* the order under way, at a stop, too */
    atomic_ullong ends_ms; /* a stop was asked for: no wait is longer; 0: not yet */
    pthread_mutex_t lock;
    pthread_cond_t changed;
    struct dp_checkpoint_ask ask; /* under the lock, as what follows: the last order */
    bool by_file;                 /* the cluster file asks for it, and not a client */
    bool wants_last;              /* take_last waits for one that begins from now on */
    bool failed;                  /* the last one that ended */
    bool takes_last;              /* the order under way is it */
    bool said_same;               /* the thread's: the log says that no push has come since */
    struct coordinator_order {
        struct dp_checkpoint_state state; /* NONE: there was none */
        struct dp_checkpoint_made made;
    } order[ORDERS];    /* the last ones, whose clients may still ask: a ring */
    uint32_t last;      /* of them */
    uint64_t due_ms;    /* the next one by the cluster file */
    uint64_t looked_ms; /* the last order's client asked last */
};

/* Under the lock. */
static bool is_under_way(const struct dp_coordinator *c)
{
    enum dp_checkpoint_stage stage = c->order[c->last].state.stage;
    return stage != DP_CHECKPOINT_NONE && stage != DP_CHECKPOINT_COPIED && stage != DP_CHECKPOINT_ABANDONED;
}

static bool is_stopped(void *context)
{
    struct dp_coordinator *c = context;
    return atomic_load(&c->gives_up);
}

/* A killed client neither gives up nor needs the pushes that it would wait for: others may ask for a checkpoint. */
static bool is_watched(void *context)
{
    struct dp_coordinator *c = context;
    DP_ASSERT(pthread_mutex_lock(&c->lock) == 0);
    bool is = dp_now_ms() - c->looked_ms < SILENCE_MS;
    DP_ASSERT(pthread_mutex_unlock(&c->lock) == 0);
    return is;
}

/* Of the client. */
static bool gives_up(void *context)
{
    struct dp_coordinator *c = context;
    uint64_t ends_ms = atomic_load(&c->ends_ms);
    return ends_ms > 0 && dp_now_ms() >= ends_ms;
}

/* Under the lock. */
static void begin(struct dp_coordinator *c, const struct dp_checkpoint_ask *ask, bool by_file)
{
    c->ask = *ask;
    c->by_file = by_file;
    if (c->ask.wait_ms > DP_CHECKPOINT_WAIT_MS_MAX)
        c->ask.wait_ms = DP_CHECKPOINT_WAIT_MS_MAX;
    c->looked_ms = dp_now_ms();
    c->last = (c->last + 1) % ORDERS;
    c->order[c->last] = (struct coordinator_order){
        .state = {.stage = DP_CHECKPOINT_PREPARING, .order = ask->order, .why = "asking the shards"}};
    atomic_store(&c->gives_up, false);
    DP_ASSERT(pthread_cond_signal(&c->changed) == 0);
}

enum dp_status dp_coordinator_take(struct dp_coordinator *c, const struct dp_checkpoint_ask *ask,
                                   struct dp_checkpoint_state *state, struct dp_checkpoint_made *made,
                                   struct dp_error *err)
{
    enum dp_status st = DP_OK;
    uint32_t at = 0;
    DP_ASSERT(pthread_mutex_lock(&c->lock) == 0);
    while (at < ORDERS && c->order[at].state.order != ask->order)
        at++;
    if (ask->action == DP_CHECKPOINT_BEGIN && at == ORDERS && is_under_way(c))
        st = dp_fail(err, DP_IN_USE, "another checkpoint is being made, in %.300s; wait until it ends",
                     c->ask.directory);
    else if (ask->action == DP_CHECKPOINT_BEGIN && at == ORDERS) {
        begin(c, ask, false);
        at = c->last;
    } else if (ask->action == DP_CHECKPOINT_ABANDON && at == c->last)
        atomic_store(&c->gives_up, true);
    else if (ask->action != DP_CHECKPOINT_BEGIN && ask->action != DP_CHECKPOINT_LOOK &&
             ask->action != DP_CHECKPOINT_ABANDON)
        st = dp_fail(err, DP_INVALID,
                     "the first server begins, looks at and abandons checkpoints; other "
                     "orders are for shards");
    if (at == c->last)
        c->looked_ms = dp_now_ms();
    *state = at < ORDERS ? c->order[at].state : (struct dp_checkpoint_state){0};
    *made = at < ORDERS ? c->order[at].made : (struct dp_checkpoint_made){0};
    DP_ASSERT(pthread_mutex_unlock(&c->lock) == 0);
    return st;
}

/* ---- one checkpoint */

static void show(void *context, const struct dp_checkpoint_state *state)
{
    struct dp_coordinator *c = context;
    DP_ASSERT(pthread_mutex_lock(&c->lock) == 0);
    c->order[c->last].state = *state;
    DP_ASSERT(pthread_mutex_unlock(&c->lock) == 0);
}

/* The run's file, where it is on this machine; else this server's own. */
static enum dp_status read_cluster(const struct dp_coordinator *c, const struct dp_checkpoint_ask *ask,
                                   const char **file, struct dp_cluster **out, struct dp_error *err)
{
    struct dp_error ignored;
    *file = ask->file;
    if (ask->file[0] && dp_cluster_read(ask->file, out, &ignored) == DP_OK) {
        if ((*out)->id == c->o.cluster->id && dp_cluster_shards(*out) == dp_cluster_shards(c->o.cluster))
            return DP_OK;
        dp_cluster_free(out);
    }
    *file = c->o.file;
    return dp_cluster_read(c->o.file, out, err);
}

static enum dp_status open_client(struct dp_coordinator *c, struct dp_client **out, struct dp_error *err)
{
    const struct dp_client_options options = {.name = "checkpoint coordinator",
                                              .open_timeout_ms = c->takes_last ? LAST_OPEN_MS : OPEN_MS,
                                              .gives_up = gives_up,
                                              .gives_up_context = c};
    return dp_cluster_client(c->o.cluster, &options, out, err);
}

/* 0: all are kept. */
static enum dp_status prune(const struct dp_coordinator *c, const struct dp_checkpoint_ask *ask, bool reads,
                            struct dp_prune *out, struct dp_error *err)
{
    int held = -1;
    struct dp_pace pace = dp_pace_real();
    pace.cancelled = &c->gives_up;
    *out = (struct dp_prune){0};
    if (ask->keep == 0)
        return DP_OK;
    enum dp_status st = dp_checkpoint_lock(ask->directory, &held, err);
    if (st == DP_OK)
        st = dp_checkpoint_prune(ask->directory, c->o.cluster->id, ask->keep, reads ? &pace : NULL, out, err);
    dp_checkpoint_unlock(&held);
    return st;
}

/* The note names what the next life of this server removes. */
static enum dp_status put_note(const struct dp_coordinator *c, const struct dp_checkpoint_ask *ask,
                               struct dp_error *err)
{
    struct dp_atomic_file file;
    enum dp_status st = dp_atomic_file_open(c->note.text, &file, err);
    if (st != DP_OK)
        return st;
    fprintf(file.stream, "%016" PRIx64 " %s\n", ask->order, ask->directory);
    return dp_atomic_file_commit(&file, err);
}

static enum dp_status run_noted(const struct dp_coordinator *c, struct dp_coordination_options *coordination,
                                struct dp_checkpoint_made *made, struct dp_error *err)
{
    bool leaves = false;
    coordination->leaves = &leaves;
    enum dp_status st = put_note(c, coordination->asked, err);
    if (st != DP_OK)
        return st;
    st = dp_coordination_run(coordination, made, err);
    /* Else the next life makes sure that shards elsewhere let go. */
    if (!leaves || atomic_load(&c->ends_ms) == 0)
        (void)unlink(c->note.text);
    return st;
}

static enum dp_status make(struct dp_coordinator *c, const struct dp_checkpoint_ask *ask, bool by_file,
                           struct dp_checkpoint_made *made, struct dp_error *err)
{
    struct dp_coordination_options coordination = {.asked = ask,
                                                   .if_new = by_file,
                                                   .stopped = is_stopped,
                                                   .is_watched = is_watched,
                                                   .show = show,
                                                   .context = c};
    struct dp_cluster *cluster = NULL;
    struct dp_prune pruned = {0}, last;
    struct dp_error why;
    enum dp_status st = read_cluster(c, ask, &coordination.file, &cluster, err);
    if (st == DP_OK)
        st = open_client(c, &coordination.client, err);
    coordination.cluster = cluster;
    /* A limit of this process, and not a disk to make room on. */
    if (st == DP_FULL)
        st = dp_wrap(err, DP_UNAVAILABLE, "no checkpoint was begun");
    else if (st == DP_OK)
        st = run_noted(c, &coordination, made, err);
    if (st == DP_FULL && prune(c, ask, true, &pruned, &why) == DP_OK && pruned.checkpoints > 0)
        st = run_noted(c, &coordination, made, err);
    made->pruned = pruned.checkpoints;
    made->pruned_bytes = pruned.bytes;
    if (st == DP_OK && prune(c, ask, false, &last, &why) != DP_OK)
        dp_log(DP_LOG_WARN, "earlier checkpoints cannot be removed; the next one tries again: %s", why.text);
    dp_client_close(&coordination.client);
    dp_cluster_free(&cluster);
    return st;
}

/* ---- what a life before this one left */

static bool read_note(const struct dp_coordinator *c, struct dp_checkpoint_ask *out)
{
    FILE *file = fopen(c->note.text, "re");
    *out = (struct dp_checkpoint_ask){.action = DP_CHECKPOINT_ABANDON};
    bool is_read = file && fscanf(file, "%" SCNx64 " %1023[^\n]", &out->order, out->directory) == 2;
    if (file)
        (void)fclose(file);
    return is_read;
}

/* Shards of other servers still hold files and journal for it. One that does not answer lets go by itself. */
static enum dp_status abandon_shards(struct dp_coordinator *c, const struct dp_checkpoint_ask *left,
                                     struct dp_error *err)
{
    struct dp_client *client = NULL;
    uint32_t shards = dp_cluster_shards(c->o.cluster);
    struct dp_checkpoint_ask *asks = calloc(shards, sizeof *asks);
    struct dp_checkpoint_answer *answers = calloc(shards, sizeof *answers);
    for (uint32_t i = 0; asks && i < shards; i++)
        asks[i] = (struct dp_checkpoint_ask){.action = DP_CHECKPOINT_ABANDON, .order = left->order};
    enum dp_status st = asks && answers ? open_client(c, &client, err) : dp_fail(err, DP_NOMEM, "no memory");
    if (st == DP_OK)
        st = dp_client_checkpoint(client, asks, answers, ABANDON_MS, err);
    if (answers)
        dp_client_checkpoint_clear(answers, shards);
    dp_client_close(&client);
    free(answers);
    free(asks);
    return st;
}

static void remove_left(struct dp_coordinator *c, const struct dp_checkpoint_ask *left)
{
    struct dp_error err = {0};
    struct dp_checkpoint_path making;
    int held = -1;
    if (access(left->directory, F_OK) != 0) { /* not mounted yet? */
        dp_log(DP_LOG_WARN,
               "a checkpoint in %s was cut off when this server ended: that directory cannot be reached, "
               "the next start tries again",
               left->directory);
        return;
    }
    enum dp_status st = dp_checkpoint_path_making(left->directory, left->order, &making, &err);
    bool was_there = st == DP_OK && access(making.text, F_OK) == 0;
    if (st == DP_OK)
        st = dp_checkpoint_lock(left->directory, &held, &err);
    if (st == DP_OK)
        st = dp_checkpoint_abandon(left->directory, left->order, &err);
    dp_checkpoint_unlock(&held);
    if (st == DP_OK)
        (void)unlink(c->note.text);
    if (st != DP_OK || was_there)
        dp_log(st == DP_OK ? DP_LOG_INFO : DP_LOG_WARN,
               "a checkpoint in %s was cut off when this server ended: %s", left->directory,
               st == DP_OK ? "what it left is removed" : err.text);
}

/* Files go once no shard writes them. last: a shard that does not answer is not waited for. */
static void sweep(struct dp_coordinator *c, bool last)
{
    struct dp_checkpoint_ask left;
    struct dp_error err;
    c->sweeps = false;
    if (!read_note(c, &left))
        return;
    enum dp_status st = abandon_shards(c, &left, &err);
    c->sweeps = st != DP_OK && !last;
    if (c->sweeps)
        return;
    if (st != DP_OK)
        dp_log(DP_LOG_INFO, "shards let go of an earlier checkpoint by themselves: %s", err.text);
    remove_left(c, &left);
}

/* ---- the thread */

/* Under the lock. */
static void end_last(struct dp_coordinator *c)
{
    c->wants_last &= !c->takes_last;
    c->takes_last = false;
}

/* Each time that one is due comes to the same one: the log says so once. */
static void say_ended(struct dp_coordinator *c, const struct dp_checkpoint_ask *ask,
                      const struct dp_checkpoint_made *made, enum dp_status st, const struct dp_error *err)
{
    if (st == DP_OK)
        dp_log(DP_LOG_INFO,
               "checkpoint %" PRIu64 " in %s: %" PRIu64 " bytes, %" PRIu64 " new, in %" PRIu64 " ms",
               made->number, ask->directory, made->bytes, made->bytes_new, made->took_ms);
    else if (st != DP_EXISTS)
        dp_log(DP_LOG_WARN, "no checkpoint in %s: %s", ask->directory, err->text);
    else if (!c->said_same)
        dp_log(DP_LOG_INFO, "no checkpoint is due: %s", err->text);
    c->said_same = st == DP_EXISTS;
}

/* Under the lock; left out while it works. */
static void make_asked(struct dp_coordinator *c)
{
    const struct dp_checkpoint_ask ask = c->ask;
    const bool by_file = c->by_file;
    struct dp_checkpoint_made made = {0};
    struct dp_error err = {0};
    DP_ASSERT(pthread_mutex_unlock(&c->lock) == 0);
    enum dp_status st = make(c, &ask, by_file, &made, &err);
    if (st == DP_STOPPING) /* the client that hears it is not to stop */
        st = dp_wrap(&err, DP_UNAVAILABLE,
                     atomic_load(&c->ends_ms) ? "the first server shuts down" : "its client gave it up");
    say_ended(c, &ask, &made, st, &err);
    DP_ASSERT(pthread_mutex_lock(&c->lock) == 0);
    if (c->due_ms < dp_now_ms()) /* it took that long: a client may come before the next one */
        c->due_ms = dp_now_ms() + c->o.cluster->checkpoint.every * UINT64_C(1000);
    c->failed = st != DP_OK && st != DP_EXISTS;
    end_last(c);
    struct dp_checkpoint_state *state = &c->order[c->last].state;
    c->order[c->last].made = made;
    state->stage = st == DP_OK ? DP_CHECKPOINT_COPIED : DP_CHECKPOINT_ABANDONED;
    state->why_status = (uint32_t)st;
    (void)snprintf(state->why, sizeof state->why, "%.*s", (int)sizeof state->why - 1, err.text);
}

/* Under the lock: by the cluster file, if one is due. */
static void begin_due(struct dp_coordinator *c)
{
    const struct dp_cluster_checkpoint *by = &c->o.cluster->checkpoint;
    struct dp_checkpoint_ask ask = {
        .action = DP_CHECKPOINT_BEGIN, .wait_ms = c->wants_last ? LAST_MS : WAIT_MS, .keep = by->keep};
    if (by->every == 0 || is_under_way(c) || (dp_now_ms() < c->due_ms && !c->wants_last))
        return;
    c->due_ms = dp_now_ms() + by->every * UINT64_C(1000);
    c->takes_last = c->wants_last;
    struct dp_error err;
    if (dp_directory_absolute(by->to, ask.directory, sizeof ask.directory, &err) != DP_OK)
        dp_log(DP_LOG_WARN, "no checkpoint: %s", err.text);
    else if (getrandom(&ask.order, sizeof ask.order, 0) == (ssize_t)sizeof ask.order && ask.order != 0) {
        begin(c, &ask, true);
        return;
    }
    end_last(c);
}

static struct timespec to_timespec(uint64_t ms)
{
    return (struct timespec){.tv_sec = (time_t)(ms / 1000), .tv_nsec = (long)(ms % 1000) * 1000000};
}

/* Under the lock: until something is asked for, or due. */
static void wait_for_work(struct dp_coordinator *c)
{
    uint64_t due_ms = c->o.cluster->checkpoint.every > 0 ? c->due_ms : UINT64_MAX;
    if (c->wants_last && due_ms < UINT64_MAX) /* since the last look, while it swept */
        return;
    if (c->sweeps && due_ms > dp_now_ms() + SWEEP_MS)
        due_ms = dp_now_ms() + SWEEP_MS;
    const struct timespec until = to_timespec(due_ms);
    if (due_ms < UINT64_MAX)
        (void)pthread_cond_timedwait(&c->changed, &c->lock, &until);
    else
        (void)pthread_cond_wait(&c->changed, &c->lock);
}

/* Under the lock, left out while it works: before the next order's note, and until the shards let go by themselves. */
static void sweep_left(struct dp_coordinator *c, uint64_t until_ms)
{
    bool last = is_under_way(c) || dp_now_ms() >= until_ms;
    DP_ASSERT(pthread_mutex_unlock(&c->lock) == 0);
    sweep(c, last);
    DP_ASSERT(pthread_mutex_lock(&c->lock) == 0);
}

static void *coordinate(void *arg)
{
    struct dp_coordinator *c = arg;
    uint64_t until_ms = dp_now_ms() + LET_GO_MS;
    DP_ASSERT(pthread_mutex_lock(&c->lock) == 0);
    while (atomic_load(&c->ends_ms) == 0) {
        begin_due(c);
        if (c->sweeps)
            sweep_left(c, until_ms);
        if (is_under_way(c) && !c->sweeps)
            make_asked(c);
        else if (!is_under_way(c) && atomic_load(&c->ends_ms) == 0)
            wait_for_work(c);
    }
    c->ended = true;
    DP_ASSERT(pthread_cond_signal(&c->changed) == 0);
    DP_ASSERT(pthread_mutex_unlock(&c->lock) == 0);
    return NULL;
}

static void coordinator_free(struct dp_coordinator **coordinator)
{
    DP_ASSERT(pthread_cond_destroy(&(*coordinator)->changed) == 0 &&
              pthread_mutex_destroy(&(*coordinator)->lock) == 0);
    free(*coordinator);
    *coordinator = NULL;
}

enum dp_status dp_coordinator_new(const struct dp_coordinator_options *options, struct dp_coordinator **out,
                                  struct dp_error *err)
{
    pthread_condattr_t monotonic;
    struct dp_coordinator *c = calloc(1, sizeof *c);
    *out = NULL;
    if (!c)
        return dp_fail(err, DP_NOMEM, "no memory for the checkpoint coordinator");
    c->o = *options;
    c->sweeps = true;
    if (dp_checkpoint_path(&c->note, err, "%s/" DP_CHECKPOINT_ORDER, options->directory) != DP_OK) {
        free(c);
        return err->status;
    }
    c->due_ms = dp_now_ms() + options->cluster->checkpoint.every * UINT64_C(1000);
    DP_ASSERT(pthread_condattr_init(&monotonic) == 0 &&
              pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC) == 0 &&
              pthread_cond_init(&c->changed, &monotonic) == 0 && pthread_condattr_destroy(&monotonic) == 0 &&
              pthread_mutex_init(&c->lock, NULL) == 0);
    *out = c;
    return DP_OK;
}

enum dp_status dp_coordinator_start(struct dp_coordinator *c, struct dp_error *err)
{
    c->started = pthread_create(&c->thread, NULL, coordinate, c) == 0;
    return c->started ? DP_OK : dp_fail(err, DP_NOMEM, "cannot start the checkpoint coordinator's thread");
}

void dp_coordinator_take_last(struct dp_coordinator *c, uint32_t retry_ms, bool (*stopped)(void *context),
                              void *context)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    const uint64_t until_ms = dp_now_ms() + retry_ms;
    uint64_t next_ms = 0;
    DP_ASSERT(pthread_mutex_lock(&c->lock) == 0);
    c->wants_last = true;
    DP_ASSERT(pthread_cond_signal(&c->changed) == 0);
    while ((c->wants_last || (c->failed && dp_now_ms() < until_ms)) && !c->ended && !stopped(context)) {
        if (c->wants_last)
            next_ms = dp_now_ms() + RETRY_MS;
        else if (dp_now_ms() >= next_ms) {
            c->wants_last = true;
            DP_ASSERT(pthread_cond_signal(&c->changed) == 0);
        }
        DP_ASSERT(pthread_mutex_unlock(&c->lock) == 0);
        (void)nanosleep(&pause, NULL);
        DP_ASSERT(pthread_mutex_lock(&c->lock) == 0);
    }
    DP_ASSERT(pthread_mutex_unlock(&c->lock) == 0);
}

void dp_coordinator_give_up(struct dp_coordinator *c)
{
    if (!c)
        return;
    DP_ASSERT(pthread_mutex_lock(&c->lock) == 0);
    const uint64_t ends_ms = dp_now_ms() + STOP_MS;
    const struct timespec until = to_timespec(ends_ms);
    atomic_store(&c->ends_ms, ends_ms);
    atomic_store(&c->gives_up, true);
    DP_ASSERT(pthread_cond_signal(&c->changed) == 0);
    while (c->started && !c->ended && dp_now_ms() < ends_ms)
        (void)pthread_cond_timedwait(&c->changed, &c->lock, &until);
    DP_ASSERT(pthread_mutex_unlock(&c->lock) == 0);
}

void dp_coordinator_stop(struct dp_coordinator **coordinator)
{
    struct dp_coordinator *c = *coordinator;
    if (!c)
        return;
    dp_coordinator_give_up(c);
    if (c->started)
        DP_ASSERT(pthread_join(c->thread, NULL) == 0);
    coordinator_free(coordinator);
}
