#include "deploy/checkpoint/course.h"
#include "deploy/checkpoint/file_bytes.h"

#include "common/base/deadline.h"
#include "common/client/checkpoint.h"
#include "common/wire/reply.h"
#include "deploy/checkpoint/dead_orders.h"
#include "deploy/checkpoint/judged.h"
#include "deploy/checkpoint/partial_pushes.h"
#include "deploy/checkpoint/saved_logs.h"
#include "deploy/checkpoint/saved_names.h"
#include "deploy/cli/progress.h"
#include "server/checkpoint/listing.h"
#include "server/checkpoint/making.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/union.h"
#include "server/checkpoint/verify.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ASK_MS     20000u /* until a shard answers an order */
#define ABANDON_MS 5000u
#define LOOK_MS    50u
#define STILL_MS   120000u /* nothing moves: a disk or a server hangs */
#define PREPARE_MS 600000u /* nobody tells how far a write-back is */
#define CUTS_MAX   5u
#define NOTES_MS   2000u

struct checkpoint_course {
    const struct dp_course_options *o;
    uint64_t order, machine;
    uint32_t shards, cut;
    struct dp_checkpoint_ask *asks;
    struct dp_checkpoint_answer *answers;
    struct dp_register_value registered;
    struct dp_union cut_of_all;
    struct dp_saved_logs logs;
    struct dp_manifest manifest;
    struct dp_partial_known known;
};

/* ---- one order to all shards */

static enum dp_status check_answers(const struct checkpoint_course *c, struct dp_error *err)
{
    for (uint32_t i = 0; i < c->shards; i++) {
        const struct dp_checkpoint_state *state = &c->answers[i].state;
        if (state->stage == DP_CHECKPOINT_ABANDONED)
            return dp_fail(err, state->why_status == DP_FULL ? DP_FULL : DP_UNAVAILABLE,
                           "shard %" PRIu32 " gave the checkpoint up: %s", i, state->why);
        if (state->stage == DP_CHECKPOINT_NONE)
            return dp_fail(err, DP_UNAVAILABLE,
                           "shard %" PRIu32
                           " does not know the checkpoint any more: its server was started again; try again",
                           i);
    }
    return DP_OK;
}

static enum dp_status order(struct checkpoint_course *c, enum dp_checkpoint_action action,
                            struct dp_error *err)
{
    for (uint32_t i = 0; i < c->shards; i++) {
        struct dp_checkpoint_ask *ask = &c->asks[i];
        memset(ask, 0, sizeof *ask);
        ask->action = action;
        ask->order = c->order;
        ask->cut = action == DP_CHECKPOINT_CUT || action == DP_CHECKPOINT_FINISH ? c->cut : 0;
        if (action == DP_CHECKPOINT_BEGIN) {
            (void)snprintf(ask->directory, sizeof ask->directory, "%s", c->o->directory);
            ask->full = c->o->full;
            ask->link = c->o->best_run > 0;
            ask->rate = c->o->rate;
        } else if (action == DP_CHECKPOINT_END) {
            ask->number = c->manifest.number;
        } else if (action == DP_CHECKPOINT_FINISH) {
            ask->step = c->cut_of_all.step;
            ask->missing = c->cut_of_all.lacking[i].count;
            ask->pushes = c->cut_of_all.lacking[i].push; /* as the wire has it: pairs of u64, little endian */
        }
    }
    bool ends = action == DP_CHECKPOINT_END || action == DP_CHECKPOINT_ABANDON;
    dp_client_checkpoint_clear(c->answers, c->shards);
    enum dp_status st =
        dp_client_checkpoint(c->o->client, c->asks, c->answers, ends ? ABANDON_MS : ASK_MS, err);
    return st == DP_OK && !ends ? check_answers(c, err) : st;
}

/* ---- waiting */

static void show(const struct checkpoint_course *c, const char *what)
{
    struct dp_course_progress progress = {.what = what};
    for (uint32_t i = 0; i < c->shards; i++) {
        progress.done_bytes += c->answers[i].state.done_bytes;
        progress.all_bytes += c->answers[i].state.all_bytes;
    }
    if (c->o->show)
        c->o->show(c->o->context, &progress);
}

static enum dp_status look(struct checkpoint_course *c, const char *what, struct dp_error *err)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    show(c, what);
    (void)nanosleep(&pause, NULL);
    if (c->o->stopped(c->o->context))
        return dp_fail(err, DP_STOPPING, "interrupted while %s", what);
    return order(c, DP_CHECKPOINT_LOOK, err);
}

/* The first shard that is not there yet; shards: none. */
static uint32_t find_behind(const struct checkpoint_course *c, enum dp_checkpoint_stage stage)
{
    uint32_t i = 0;
    while (i < c->shards && c->answers[i].state.stage >= stage &&
           (stage != DP_CHECKPOINT_IS_CUT || c->answers[i].state.cut == c->cut))
        i++;
    return i;
}

/* What changes as long as anything goes on. */
static uint64_t movement(const struct checkpoint_course *c)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->shards; i++)
        sum += c->answers[i].state.done_bytes + c->answers[i].state.stage;
    return sum;
}

static enum dp_status await(struct checkpoint_course *c, enum dp_checkpoint_stage stage, const char *what,
                            struct dp_error *err)
{
    uint64_t moved_ms = dp_now_ms(), moved = movement(c);
    uint32_t still_ms = stage == DP_CHECKPOINT_PREPARED ? PREPARE_MS : STILL_MS;
    uint32_t behind;
    enum dp_status st = DP_OK;
    while (st == DP_OK && (behind = find_behind(c, stage)) < c->shards) {
        uint64_t now_ms = dp_now_ms();
        if (movement(c) != moved) {
            moved = movement(c);
            moved_ms = now_ms;
        }
        if (now_ms - moved_ms > still_ms)
            return dp_fail(err, DP_TIMEOUT,
                           "shard %" PRIu32 " has not come further for %" PRIu32
                           " s while %s: look at its server's log and disk",
                           behind, still_ms / 1000, what);
        st = look(c, what, err);
    }
    return st;
}

static enum dp_status fail_waiting(const struct checkpoint_course *c, uint32_t shard, struct dp_error *err)
{
    const struct dp_checkpoint_state *state = &c->answers[shard].state;
    const struct dp_copy_push lacking = {state->lack_stream, state->lack_number};
    const struct dp_partial_wait wait = {.training = &c->o->cluster->training,
                                         .has_sync = c->cut_of_all.has_sync,
                                         .shard = shard,
                                         .wait_ms = c->o->wait_ms,
                                         .lacking = state->lacking > 0 ? &lacking : NULL};
    return dp_partial_fail(&wait, err);
}

/* Where it cannot be read, what it gave up is waited for again. */
static void read_before(struct checkpoint_course *c)
{
    struct dp_checkpoint_list list = {0};
    struct dp_manifest last = {0};
    uint64_t generation, history;
    dp_client_generation(c->o->client, &generation, &history);
    if (dp_checkpoint_list_read(c->o->directory, &list, NULL) == DP_OK && list.count > 0 &&
        dp_manifest_read_numbered(c->o->directory, list.number[list.count - 1], &last, NULL) == DP_OK &&
        last.cluster == c->o->cluster->id && last.generation == generation && last.history == history) {
        c->known.before = last.partial;
        last.partial = (struct dp_copy_pushes){0};
    }
    dp_manifest_clear(&last);
    dp_checkpoint_list_clear(&list);
}

/* A push that has come to all shards since the cut is acknowledged, so the checkpoint must have it: those are taken off the list. */
static enum dp_status keep_partial(const struct checkpoint_course *c, struct dp_copy_pushes *gone,
                                   struct dp_error *err)
{
    uint32_t still = 0;
    for (uint32_t i = 0; i < gone->count; i++) {
        uint64_t bits = 0;
        enum dp_status st =
            dp_client_pushed(c->o->client, gone->push[i].stream, gone->push[i].number, 1, &bits, ASK_MS, err);
        if (st != DP_OK && st != DP_TOO_OLD) /* too old: it comes no more */
            return dp_wrap(err, st, "cannot ask which pushes all shards have");
        if (st == DP_TOO_OLD || !(bits & 1))
            gone->push[still++] = gone->push[i];
    }
    gone->count = still;
    return DP_OK;
}

/* Each push is asked for once, so that all shards hear the same of it. */
static enum dp_status give_up(struct checkpoint_course *c,
                              bool (*rule)(const void *known, const struct dp_copy_push *push),
                              struct dp_error *err)
{
    struct dp_copy_pushes gone = {0};
    enum dp_status st = dp_union_find_lacking(&c->cut_of_all, rule, &c->known, &gone, err);
    if (st == DP_OK)
        st = keep_partial(c, &gone, err);
    if (st == DP_OK)
        st = dp_union_give_up(&c->cut_of_all, dp_union_has_push, &gone, err);
    free(gone.push);
    return st == DP_OK ? order(c, DP_CHECKPOINT_FINISH, err) : st;
}

static enum dp_status finish(struct checkpoint_course *c, struct dp_error *err)
{
    read_before(c);
    c->known.last_run = c->cut_of_all.last_run;
    return give_up(c, dp_partial_is_over, err);
}

/* Pushes of clients that do not train. The shards then lack pushes of workers only. */
static enum dp_status give_up_clients(struct checkpoint_course *c, struct dp_error *err)
{
    enum dp_status st = give_up(c, dp_partial_is_of_client, err);
    for (uint32_t i = 0; i < c->shards && st == DP_OK; i++)
        if (c->answers[i].state.lacking > 0)
            st = fail_waiting(c, i, err);
    return st;
}

/* A push is on all shards or on none: what only some shards had at the cut arrives within moments, or is recomputed when its worker is back.
 * In a synchronous run a step that one shard has closed is closed on all. */
static enum dp_status await_missing(struct checkpoint_course *c, struct dp_error *err)
{
    uint64_t end_ms = dp_now_ms() + c->o->wait_ms;
    uint32_t behind;
    bool gave_up = false;
    enum dp_status st = DP_OK;
    while (st == DP_OK && (behind = find_behind(c, DP_CHECKPOINT_COPYING)) < c->shards) {
        if (dp_now_ms() >= end_ms && gave_up)
            return fail_waiting(c, behind, err);
        if (dp_now_ms() >= end_ms) {
            gave_up = true;
            end_ms = dp_now_ms() + dp_partial_grace_ms(c->cut_of_all.has_sync);
            st = give_up_clients(c, err);
        }
        if (st == DP_OK)
            st = look(c, "waiting for pushes under way", err);
    }
    return st;
}

/* ---- the cut */

static enum dp_status unite(struct checkpoint_course *c, struct dp_error *err)
{
    struct dp_union_part *parts = calloc(c->shards, sizeof *parts);
    if (!parts)
        return dp_fail(err, DP_NOMEM, "no memory for a cut");
    for (uint32_t i = 0; i < c->shards; i++)
        parts[i] = (struct dp_union_part){.ids = c->answers[i].frame[0],
                                          .ids_bytes = c->answers[i].bytes[0],
                                          .steps = c->answers[i].frame[1],
                                          .steps_bytes = c->answers[i].bytes[1]};
    dp_union_clear(&c->cut_of_all);
    enum dp_status st = dp_union_make(parts, c->shards, &c->cut_of_all, err);
    free(parts);
    return st;
}

/* Whoever asks for an epoch's end may have been suspended since: what is there stays. */
static enum dp_status check_best(const struct checkpoint_course *c, struct dp_error *err)
{
    const struct dp_union *of = &c->cut_of_all;
    if (c->o->best_run == 0 || (of->last_run == c->o->best_run && of->last_epoch + 1 == c->o->best_epoch))
        return DP_OK;
    return dp_fail(err, DP_INVALID,
                   "--best: epoch %" PRIu32 " of run %" PRIu32
                   " was asked for, and the last push is of epoch %" PRIu32 " of run %" PRIu32,
                   c->o->best_epoch, c->o->best_run, of->last_epoch + 1, of->last_run);
}

/* DP_AGAIN: the register changed meanwhile, an epoch or a run begins, or a worker has ended within the open step. */
static enum dp_status cut_once(struct checkpoint_course *c, struct dp_error *err)
{
    struct dp_register_value before = {0}, behind = {0};
    dp_register_value_clear(&c->registered);
    c->cut++;
    enum dp_status st = dp_client_register_copy(c->o->client, ASK_MS, &before, err);
    if (st == DP_OK)
        st = order(c, DP_CHECKPOINT_CUT, err);
    if (st == DP_OK)
        st = await(c, DP_CHECKPOINT_IS_CUT, "cutting", err);
    if (st == DP_OK)
        st = dp_client_register_copy(c->o->client, ASK_MS, &behind, err);
    if (st == DP_OK)
        st = unite(c, err);
    const struct dp_judged_position position = {c->cut_of_all.last_run, c->cut_of_all.last_epoch};
    if (st == DP_OK)
        st = check_best(c, err);
    if (st == DP_OK)
        st = dp_judged_register(&before, &behind, &position, c->cut < CUTS_MAX, &c->registered, err);
    dp_register_value_clear(&before);
    dp_register_value_clear(&behind);
    return st;
}

/* What changes takes its time: the first wait is LOOK_MS, each further one twice the one before. */
static enum dp_status wait_between(struct checkpoint_course *c, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; i < 1u << (c->cut - 1) && st == DP_OK; i++)
        st = look(c, "waiting for a moment to cut", err);
    return st;
}

static enum dp_status cut(struct checkpoint_course *c, struct dp_error *err)
{
    enum dp_status st = cut_once(c, err);
    while (st == DP_AGAIN && c->cut < CUTS_MAX) {
        st = wait_between(c, err);
        if (st == DP_OK)
            st = cut_once(c, err);
    }
    if (st == DP_AGAIN)
        return dp_wrap(err, DP_AGAIN, "each of %u cuts came while the cluster changed; try again", CUTS_MAX);
    return st;
}

/* ---- the manifest */

static enum dp_status take_shards(struct checkpoint_course *c, struct dp_error *err)
{
    struct dp_manifest *m = &c->manifest;
    m->shard = calloc(c->shards, sizeof *m->shard);
    if (!m->shard)
        return dp_fail(err, DP_NOMEM, "no memory for a manifest");
    for (uint32_t i = 0; i < c->shards; i++) {
        m->shards = i + 1;
        if (dp_manifest_shard_parse(c->answers[i].frame[0], c->answers[i].bytes[0], &m->shard[i], err) !=
            DP_OK)
            return dp_wrap(err, DP_INVALID, "shard %" PRIu32, i);
        if (m->shard[i].index != i || m->shard[i].shards != c->shards)
            return dp_fail(err, DP_INVALID, "shard %" PRIu32 " calls itself %" PRIu32 " of %" PRIu32, i,
                           m->shard[i].index, m->shard[i].shards);
    }
    return DP_OK;
}

static enum dp_status put_files(struct checkpoint_course *c, struct dp_error *err)
{
    const struct dp_union *of = &c->cut_of_all;
    const char *to = c->o->directory;
    struct dp_manifest *m = &c->manifest;
    char *text = NULL;
    size_t size = 0;
    enum dp_status st = dp_checkpoint_put(to, c->order, "ids", of->ids, of->ids_bytes, &m->ids, err);
    if (st == DP_OK && of->steps)
        st = dp_checkpoint_put(to, c->order, "steps", of->steps, of->steps_bytes, &m->steps, err);
    if (st == DP_OK)
        st = dp_checkpoint_put(to, c->order, "register", c->registered.bytes, c->registered.size,
                               &m->register_file, err);
    if (st == DP_OK)
        st = dp_file_bytes_read(c->o->file, &text, &size, err);
    if (st == DP_OK)
        st = dp_checkpoint_put(to, c->order, "cluster.conf", text, size, &m->cluster_file, err);
    free(text);
    if (st == DP_OK)
        st = dp_saved_names_put(c->o->cluster, to, c->order, c->o->full, m, err);
    return st == DP_OK ? dp_saved_logs_put(&c->logs, to, c->order, m, err) : st;
}

static void visit_note(void *context, const char *name, const void *bytes, size_t size)
{
    (void)name;
    dp_cli_progress_add(context, bytes, size);
}

/* For a person: where training stood. */
static void take_position(struct checkpoint_course *c)
{
    struct dp_manifest_position *at = &c->manifest.position;
    struct dp_cli_progress seen = {0};
    char prefix[64];
    *at = (struct dp_manifest_position){.known = c->cut_of_all.last_run > 0,
                                        .run = c->cut_of_all.last_run,
                                        .epoch = c->cut_of_all.last_epoch,
                                        .step = c->cut_of_all.pushes,
                                        .loss = NAN};
    (void)snprintf(prefix, sizeof prefix, "run/%" PRIu32 "/progress/", at->run);
    if (at->known && dp_client_notes(c->o->client, prefix, visit_note, &seen, NOTES_MS, NULL) == DP_OK &&
        seen.loss_examples > 0)
        at->loss = seen.loss_sum / (double)seen.loss_examples;
}

/* For a person, too: as the servers count now, with the rows of pushes behind the cut. A table that one does not tell of stays uncounted. */
static void take_rows(struct checkpoint_course *c)
{
    struct dp_manifest_tables *tables = &c->manifest.tables;
    struct dp_status_report *report = NULL;
    uint64_t *rows = calloc(tables->count + 1, sizeof *rows);
    bool known = rows != NULL;
    for (uint32_t i = 0; i < c->shards && known; i++) {
        known = dp_client_status(c->o->client, i, NOTES_MS, &report, NULL) == DP_OK;
        for (uint32_t k = 0; known && k < report->tables; k++)
            for (size_t t = 0; t < tables->count; t++)
                if (strcmp(tables->table[t].spec.name, report->table[k].spec.name) == 0)
                    rows[t] += report->table[k].rows;
        if (known)
            dp_client_status_free(&report);
    }
    for (size_t t = 0; known && t < tables->count; t++)
        tables->table[t].rows = rows[t];
    free(rows);
}

static enum dp_status fill_manifest(struct checkpoint_course *c, struct dp_error *err)
{
    struct dp_manifest *m = &c->manifest;
    char made[32];
    struct tm tm;
    time_t now = time(NULL);
    (void)strftime(made, sizeof made, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    m->order = c->order;
    m->made = strdup(made);
    m->cluster = c->o->cluster->id;
    m->cluster_name = strdup(c->o->cluster->name);
    dp_client_generation(c->o->client, &m->generation, &m->history);
    if (!m->made || !m->cluster_name)
        return dp_fail(err, DP_NOMEM, "no memory for a manifest");
    m->partial = c->cut_of_all.partial;
    c->cut_of_all.partial = (struct dp_copy_pushes){0};
    enum dp_status st = take_shards(c, err);
    if (st == DP_OK)
        st = put_files(c, err);
    if (st == DP_OK)
        st = dp_manifest_sum(m, err);
    take_rows(c);
    take_position(c);
    return st;
}

static enum dp_status publish(struct checkpoint_course *c, struct dp_error *err)
{
    struct dp_verify seen;
    enum dp_status st = fill_manifest(c, err);
    if (st == DP_OK)
        st = dp_checkpoint_publish(c->o->directory, &c->manifest, err);
    if (st != DP_OK)
        return st;
    /* Checksums were read back as each file was written. */
    const struct dp_verify_options verify = {.directory = c->o->directory, .number = c->manifest.number};
    st = dp_checkpoint_verify(&verify, &seen, err);
    return st == DP_OK ? st : dp_wrap(err, st, "checkpoint %" PRIu32, c->manifest.number);
}

/* ---- all */

static uint64_t lap(uint64_t *since_ms)
{
    uint64_t before = *since_ms;
    *since_ms = dp_now_ms();
    return *since_ms - before;
}

static enum dp_status go(struct checkpoint_course *c, struct dp_course_result *out, struct dp_error *err)
{
    uint32_t removed;
    uint64_t since_ms = dp_now_ms();
    struct dp_dead_orders dead = {.cluster = c->o->cluster->id,
                                  .machine = c->machine,
                                  .directory = c->o->directory,
                                  .stopped = c->o->stopped,
                                  .context = c->o->context};
    enum dp_status st = dp_dead_orders_end(&dead, c->o->client, err);
    if (st == DP_OK)
        st = dp_checkpoint_begin(c->o->directory, c->order, err);
    if (st == DP_OK)
        st = dp_checkpoint_sweep(c->o->directory, c->order, (uint64_t)time(NULL), &removed, err);
    if (st == DP_OK)
        st = order(c, DP_CHECKPOINT_BEGIN, err);
    if (st == DP_OK)
        dp_dead_orders_sweep(&dead);
    if (st == DP_OK)
        st = await(c, DP_CHECKPOINT_PREPARED, "writing back changed rows", err);
    out->prepare_ms = lap(&since_ms);
    if (st == DP_OK)
        st = cut(c, err);
    out->cut_ms = lap(&since_ms);
    if (st == DP_OK)
        dp_saved_logs_read(c->o->cluster, &c->logs);
    if (st == DP_OK)
        st = finish(c, err);
    if (st == DP_OK)
        st = await_missing(c, err);
    out->wait_ms = lap(&since_ms);
    if (st == DP_OK)
        st = await(c, DP_CHECKPOINT_COPIED, "copying", err);
    out->copy_ms = lap(&since_ms);
    if (st == DP_OK)
        st = publish(c, err);
    return st;
}

static enum dp_status make(struct checkpoint_course *c, struct dp_course_result *out, struct dp_error *err)
{
    struct dp_error ignored;
    enum dp_status st = go(c, out, err);
    if (st ==
        DP_OK) { /* an order that is not ended here ends by itself: the checkpoint is there all the same */
        (void)order(c, DP_CHECKPOINT_END, &ignored);
        return DP_OK;
    }
    (void)order(c, DP_CHECKPOINT_ABANDON, &ignored);
    if (c->manifest.number == 0 && dp_checkpoint_abandon(c->o->directory, c->order, &ignored) != DP_OK)
        return st; /* the next checkpoint sweeps it */
    return st;
}

enum dp_status dp_course_run(const struct dp_course_options *options, struct dp_course_result *out,
                             struct dp_error *err)
{
    struct checkpoint_course c = {.o = options, .shards = dp_client_shards(options->client)};
    uint64_t began_ms = dp_now_ms();
    int lock = -1;
    *out = (struct dp_course_result){0};
    c.machine = dp_dead_orders_machine();
    c.order = dp_dead_orders_draw(options->cluster->id, c.machine);
    c.asks = calloc(c.shards, sizeof *c.asks);
    c.answers = calloc(c.shards, sizeof *c.answers);
    c.cut_of_all.lacking = calloc(c.shards, sizeof *c.cut_of_all.lacking);
    c.cut_of_all.shards = c.shards;
    enum dp_status st = c.asks && c.answers && c.cut_of_all.lacking
                            ? dp_checkpoint_place_check(options->directory, err)
                            : dp_fail(err, DP_NOMEM, "no memory for a checkpoint");
    if (st == DP_OK)
        st = dp_checkpoint_lock(options->directory, &lock, err);
    if (st == DP_OK)
        st = make(&c, out, err);
    out->number = c.manifest.number;
    out->partial = c.manifest.partial.count;
    out->bytes = c.manifest.bytes;
    out->bytes_new = c.manifest.bytes_new;
    out->run = c.manifest.position.run;
    out->epoch = c.manifest.position.epoch;
    out->took_ms = dp_now_ms() - began_ms;
    dp_checkpoint_unlock(&lock);
    dp_saved_logs_clear(&c.logs);
    dp_manifest_clear(&c.manifest);
    free(c.known.before.push);
    dp_union_clear(&c.cut_of_all);
    dp_register_value_clear(&c.registered);
    if (c.answers)
        dp_client_checkpoint_clear(c.answers, c.shards);
    free(c.answers);
    free(c.asks);
    return st;
}
