#include "server/coordinator/coordination.h"

#include "common/base/deadline.h"
#include "common/base/json.h"
#include "common/base/log.h"
#include "common/client/checkpoint.h"
#include "common/wire/reply.h"
#include "server/checkpoint/listing.h"
#include "server/checkpoint/making.h"
#include "server/checkpoint/manifest.h"
#include "server/checkpoint/prune.h"
#include "server/checkpoint/union.h"
#include "server/checkpoint/verify.h"
#include "server/coordinator/partial_pushes.h"
#include "server/coordinator/saved_files.h"
#include "server/coordinator/saved_register.h"

#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#define ASK_MS     20000u /* until a shard answers an order */
#define ABANDON_MS 5000u
#define LOOK_MS    50u
#define STILL_MS   120000u /* nothing moves: a disk or a server hangs */
#define PREPARE_MS 600000u /* no message says how far a write-back is */
#define CUTS_MAX   5u
#define NOTES_MS   2000u

struct order_under_way {
    const struct dp_coordination_options *o;
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

static enum dp_status check_answers(const struct order_under_way *c, struct dp_error *err)
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

static enum dp_status order(struct order_under_way *c, enum dp_checkpoint_action action, struct dp_error *err)
{
    for (uint32_t i = 0; i < c->shards; i++) {
        struct dp_checkpoint_ask *ask = &c->asks[i];
        memset(ask, 0, sizeof *ask);
        ask->action = action;
        ask->order = c->o->asked->order;
        ask->cut = action == DP_CHECKPOINT_CUT || action == DP_CHECKPOINT_FINISH ? c->cut : 0;
        if (action == DP_CHECKPOINT_BEGIN) {
            (void)snprintf(ask->directory, sizeof ask->directory, "%s", c->o->asked->directory);
            ask->full = c->o->asked->full;
            ask->link = c->o->asked->run > 0;
            ask->rate = c->o->asked->rate;
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

static void show(const struct order_under_way *c, enum dp_checkpoint_stage stage, uint32_t behind,
                 const char *what)
{
    struct dp_checkpoint_state all = {.stage = stage, .order = c->o->asked->order, .cut = c->cut};
    for (uint32_t i = 0; i < c->shards; i++) {
        all.done_bytes += c->answers[i].state.done_bytes;
        all.all_bytes += c->answers[i].state.all_bytes;
    }
    (void)snprintf(all.why, sizeof all.why, c->shards > 1 ? "%s (shard %" PRIu32 ")" : "%s", what, behind);
    c->o->show(c->o->context, &all);
}

static enum dp_status look(struct order_under_way *c, enum dp_checkpoint_stage stage, uint32_t behind,
                           const char *what, struct dp_error *err)
{
    const struct timespec pause = {.tv_nsec = LOOK_MS * 1000000L};
    show(c, stage, behind, what);
    (void)nanosleep(&pause, NULL);
    if (c->o->stopped(c->o->context))
        return dp_fail(err, DP_STOPPING, "interrupted while %s", what);
    return order(c, DP_CHECKPOINT_LOOK, err);
}

/* The first shard that is not there yet; shards: none. */
static uint32_t find_behind(const struct order_under_way *c, enum dp_checkpoint_stage stage)
{
    uint32_t i = 0;
    while (i < c->shards && c->answers[i].state.stage >= stage &&
           (stage != DP_CHECKPOINT_IS_CUT || c->answers[i].state.cut == c->cut))
        i++;
    return i;
}

/* What changes as long as anything goes on. */
static uint64_t movement(const struct order_under_way *c)
{
    uint64_t sum = 0;
    for (uint32_t i = 0; i < c->shards; i++)
        sum += c->answers[i].state.done_bytes + c->answers[i].state.stage;
    return sum;
}

/* Until all shards have left `during` for `stage`. */
static enum dp_status await(struct order_under_way *c, enum dp_checkpoint_stage during,
                            enum dp_checkpoint_stage stage, const char *what, struct dp_error *err)
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
        st = look(c, during, behind, what, err);
    }
    return st;
}

static enum dp_status fail_waiting(const struct order_under_way *c, uint32_t shard, struct dp_error *err)
{
    const struct dp_checkpoint_state *state = &c->answers[shard].state;
    const struct dp_copy_push lacking = {state->lack_stream, state->lack_number};
    const struct dp_partial_wait wait = {.training = &c->o->cluster->training,
                                         .has_sync = c->cut_of_all.has_sync,
                                         .shard = shard,
                                         .wait_ms = c->o->asked->wait_ms,
                                         .lacking = state->lacking > 0 ? &lacking : NULL};
    return dp_partial_fail(&wait, err);
}

/* By the shards' own positions, which a restart keeps. Ids differ where a store was replaced. The end of a
 * run is no push. One that lacks files is none. */
static bool has_all(const struct order_under_way *c, const struct dp_manifest *last)
{
    const struct dp_verify_options verify = {.directory = c->o->asked->directory, .number = last->number};
    struct dp_verify seen;
    struct dp_checkpoint_path at;
    struct dp_checksum of;
    char ids[DP_CHECKSUM_TEXT];
    bool same = last->shards == c->shards;
    for (uint32_t i = 0; same && i < c->shards; i++)
        same = last->shard[i].lsn == c->answers[i].state.lsn;
    dp_checksum_begin(&of);
    dp_checksum_put(&of, c->cut_of_all.ids, c->cut_of_all.ids_bytes);
    dp_checksum_end(&of, ids);
    /* Of partial pushes the manifest has the ids as they were given up, not as they were cut. */
    return same && (c->known.before.count > 0 || strcmp(last->ids.checksum, ids) == 0) &&
           dp_checkpoint_path_of(verify.directory, verify.number, &at, NULL) == DP_OK &&
           dp_saved_register_has_runs(at.text, &c->registered) &&
           dp_checkpoint_verify(&verify, &seen, NULL) == DP_OK;
}

/* Where the last checkpoint cannot be read, what it gave up is waited for again. */
static enum dp_status look_before(struct order_under_way *c, struct dp_error *err)
{
    struct dp_checkpoint_list list = {0};
    struct dp_manifest last = {0};
    uint64_t generation, history;
    enum dp_status st = DP_OK;
    dp_client_generation(c->o->client, &generation, &history);
    if (dp_checkpoint_list_read(c->o->asked->directory, &list, NULL) == DP_OK && list.count > 0 &&
        dp_manifest_read_numbered(c->o->asked->directory, list.number[list.count - 1], &last, NULL) ==
            DP_OK &&
        last.cluster == c->o->cluster->id && last.generation == generation && last.history == history) {
        c->known.before = last.partial;
        last.partial = (struct dp_copy_pushes){0};
        if (c->o->if_new && has_all(c, &last))
            st = dp_fail(err, DP_EXISTS, "no push came since checkpoint %" PRIu32 " in %.300s", last.number,
                         c->o->asked->directory);
    }
    dp_manifest_clear(&last);
    dp_checkpoint_list_clear(&list);
    return st;
}

/* A push that has come to all shards since the cut is acknowledged, so the checkpoint must have it: those are taken off the list. */
static enum dp_status keep_partial(const struct order_under_way *c, struct dp_copy_pushes *gone,
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
static enum dp_status give_up(struct order_under_way *c,
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

static enum dp_status finish(struct order_under_way *c, struct dp_error *err)
{
    c->known.last_run = c->cut_of_all.last_run;
    return give_up(c, dp_partial_is_over, err);
}

/* Pushes of clients that do not train. The shards then lack pushes of workers only. */
static enum dp_status give_up_clients(struct order_under_way *c, struct dp_error *err)
{
    enum dp_status st = give_up(c, dp_partial_is_of_client, err);
    for (uint32_t i = 0; i < c->shards && st == DP_OK; i++)
        if (c->answers[i].state.lacking > 0)
            st = fail_waiting(c, i, err);
    return st;
}

/* A push is on all shards or on none: what only some shards had at the cut arrives within moments, or is recomputed when its worker is back.
 * In a synchronous run a step that one shard has closed is closed on all. */
static enum dp_status await_missing(struct order_under_way *c, struct dp_error *err)
{
    uint64_t end_ms = dp_now_ms() + c->o->asked->wait_ms;
    uint32_t behind;
    bool gave_up = false;
    enum dp_status st = DP_OK;
    while (st == DP_OK && (behind = find_behind(c, DP_CHECKPOINT_COPYING)) < c->shards) {
        if (!gave_up && !c->o->is_watched(c->o->context))
            end_ms = 0;
        if (dp_now_ms() >= end_ms && gave_up)
            return fail_waiting(c, behind, err);
        if (dp_now_ms() >= end_ms) {
            gave_up = true;
            end_ms = dp_now_ms() + dp_partial_grace_ms(c->cut_of_all.has_sync);
            st = give_up_clients(c, err);
        }
        if (st == DP_OK)
            st = look(c, DP_CHECKPOINT_WAITING, behind, "waiting for pushes under way", err);
    }
    return st;
}

/* ---- the cut */

static enum dp_status unite(struct order_under_way *c, struct dp_error *err)
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

/* A worker that asks for an epoch's end may have been suspended since: the checkpoint that is there stays. */
static enum dp_status check_best(const struct order_under_way *c, struct dp_error *err)
{
    const struct dp_union *of = &c->cut_of_all;
    if (c->o->asked->run == 0 ||
        (of->last_run == c->o->asked->run && of->last_epoch + 1 == c->o->asked->epoch))
        return DP_OK;
    return dp_fail(err, DP_INVALID,
                   "epoch %" PRIu32 " of run %" PRIu32
                   " was asked for, and the last push is of epoch %" PRIu32 " of run %" PRIu32,
                   c->o->asked->epoch, c->o->asked->run, of->last_epoch + 1, of->last_run);
}

/* DP_AGAIN: the register changed, an epoch or a run begins, or a worker has ended within the open step. */
static enum dp_status cut_once(struct order_under_way *c, struct dp_error *err)
{
    struct dp_register_value before = {0}, after = {0};
    dp_register_value_clear(&c->registered);
    c->cut++;
    enum dp_status st = dp_client_register_copy(c->o->client, ASK_MS, &before, err);
    if (st == DP_OK)
        st = order(c, DP_CHECKPOINT_CUT, err);
    if (st == DP_OK)
        st = await(c, DP_CHECKPOINT_CUTTING, DP_CHECKPOINT_IS_CUT, "cutting", err);
    if (st == DP_OK)
        st = dp_client_register_copy(c->o->client, ASK_MS, &after, err);
    if (st == DP_OK)
        st = unite(c, err);
    const struct dp_saved_register_position position = {c->cut_of_all.last_run, c->cut_of_all.last_epoch};
    if (st == DP_OK)
        st = check_best(c, err);
    if (st == DP_OK)
        st = dp_saved_register(&before, &after, &position, c->cut < CUTS_MAX, &c->registered, err);
    dp_register_value_clear(&before);
    dp_register_value_clear(&after);
    return st;
}

/* What changes takes its time: the first wait is LOOK_MS, each further one twice the one before. */
static enum dp_status wait_between(struct order_under_way *c, struct dp_error *err)
{
    enum dp_status st = DP_OK;
    for (uint32_t i = 0; i < 1u << (c->cut - 1) && st == DP_OK; i++)
        st = look(c, DP_CHECKPOINT_CUTTING, 0, "waiting for a moment to cut", err);
    return st;
}

static enum dp_status cut(struct order_under_way *c, struct dp_error *err)
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

static enum dp_status take_shards(struct order_under_way *c, struct dp_error *err)
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

static enum dp_status put_files(struct order_under_way *c, struct dp_error *err)
{
    const struct dp_union *of = &c->cut_of_all;
    const struct dp_checkpoint_ask *asked = c->o->asked;
    struct dp_manifest *m = &c->manifest;
    enum dp_status st =
        dp_checkpoint_put(asked->directory, asked->order, "ids", of->ids, of->ids_bytes, &m->ids, NULL, err);
    if (st == DP_OK && of->steps)
        st = dp_checkpoint_put(asked->directory, asked->order, "steps", of->steps, of->steps_bytes, &m->steps,
                               NULL, err);
    if (st == DP_OK)
        st = dp_checkpoint_put(asked->directory, asked->order, "register", c->registered.bytes,
                               c->registered.size, &m->register_file, NULL, err);
    if (st == DP_OK)
        st = dp_saved_files_put(c->o->cluster, c->o->file, asked, m, err);
    return st == DP_OK ? dp_saved_logs_put(&c->logs, asked, m, err) : st;
}

struct seen_loss {
    uint64_t epoch, examples; /* the earliest that a worker reports: over all workers in it */
    double sum;
};

/* A worker's progress (worker/telemetry/progress.h). */
static void visit_note(void *context, const char *name, const void *bytes, size_t size)
{
    struct seen_loss *seen = context;
    json_t *root = json_loadb(bytes, size, 0, NULL);
    const json_t *loss = json_object_get(root, "loss");
    uint64_t epoch = dp_json_get_u64(root, "first_epoch") + dp_json_get_u64(root, "epoch"),
             examples = dp_json_get_u64(root, "loss_examples");
    (void)name;
    if (json_is_number(loss) && examples > 0 && (seen->examples == 0 || epoch < seen->epoch))
        *seen = (struct seen_loss){.epoch = epoch};
    if (json_is_number(loss) && epoch == seen->epoch) {
        seen->sum += json_number_value(loss) * (double)examples;
        seen->examples += examples;
    }
    json_decref(root);
}

/* For a person: where training stood. */
static void take_position(struct order_under_way *c)
{
    struct dp_manifest_position *at = &c->manifest.position;
    struct seen_loss seen = {0};
    char prefix[64];
    *at = (struct dp_manifest_position){.known = c->cut_of_all.last_run > 0,
                                        .run = c->cut_of_all.last_run,
                                        .epoch = c->cut_of_all.last_epoch,
                                        .step = c->cut_of_all.pushes,
                                        .loss = NAN};
    (void)snprintf(prefix, sizeof prefix, "run/%" PRIu32 "/progress/", at->run);
    if (at->known && dp_client_notes(c->o->client, prefix, visit_note, &seen, NOTES_MS, NULL) == DP_OK &&
        seen.examples > 0)
        at->loss = seen.sum / (double)seen.examples;
}

/* For a person, too: as the servers count now, with the rows of pushes after the cut. A table that one server does not know stays
 * uncounted. */
static void take_rows(struct order_under_way *c)
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

static enum dp_status fill_manifest(struct order_under_way *c, struct dp_error *err)
{
    struct dp_manifest *m = &c->manifest;
    char made[32];
    struct tm tm;
    time_t now = time(NULL);
    (void)strftime(made, sizeof made, "%Y-%m-%dT%H:%M:%SZ", gmtime_r(&now, &tm));
    m->order = c->o->asked->order;
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

static enum dp_status publish(struct order_under_way *c, struct dp_error *err)
{
    struct dp_verify seen;
    enum dp_status st = fill_manifest(c, err);
    if (st == DP_OK)
        st = dp_checkpoint_publish(c->o->asked->directory, &c->manifest, err);
    if (st != DP_OK)
        return st;
    /* Checksums were read back as each file was written. */
    const struct dp_verify_options verify = {.directory = c->o->asked->directory,
                                             .number = c->manifest.number};
    st = dp_checkpoint_verify(&verify, &seen, err);
    if (st == DP_OK)
        return st;
    st = dp_wrap(err, st, "checkpoint %" PRIu32, verify.number);
    struct dp_error why;
    if (dp_checkpoint_remove(verify.directory, verify.number, &why) == DP_OK)
        c->manifest.number = 0;
    else
        dp_log(DP_LOG_ERROR, "checkpoint %" PRIu32 " is damaged, and stays: %s", verify.number, why.text);
    return st;
}

/* ---- all */

static uint64_t lap(uint64_t *since_ms)
{
    uint64_t before = *since_ms;
    *since_ms = dp_now_ms();
    return *since_ms - before;
}

static void sweep(const struct dp_checkpoint_ask *asked)
{
    struct dp_error err;
    if (dp_checkpoint_sweep(asked->directory, asked->order, &err) != DP_OK)
        dp_log(DP_LOG_WARN, "%s; the next checkpoint tries again", err.text);
}

static enum dp_status go(struct order_under_way *c, struct dp_checkpoint_made *out, struct dp_error *err)
{
    const struct dp_checkpoint_ask *asked = c->o->asked;
    uint64_t since_ms = dp_now_ms();
    enum dp_status st = dp_checkpoint_begin(asked->directory, asked->order, err);
    if (st == DP_OK)
        st = order(c, DP_CHECKPOINT_BEGIN, err);
    if (st == DP_OK) /* now no shard copies for another order */
        sweep(asked);
    if (st == DP_OK)
        st = await(c, DP_CHECKPOINT_PREPARING, DP_CHECKPOINT_PREPARED, "writing back changed rows", err);
    out->prepare_ms = lap(&since_ms);
    if (st == DP_OK)
        st = cut(c, err);
    out->cut_ms = lap(&since_ms);
    if (st == DP_OK)
        st = look_before(c, err);
    if (st == DP_OK)
        dp_saved_logs_read(c->o->cluster, c->cut_of_all.last_run, &c->logs);
    if (st == DP_OK)
        st = finish(c, err);
    if (st == DP_OK)
        st = await_missing(c, err);
    out->wait_ms = lap(&since_ms);
    if (st == DP_OK)
        st = await(c, DP_CHECKPOINT_COPYING, DP_CHECKPOINT_COPIED, "copying", err);
    out->copy_ms = lap(&since_ms);
    if (st == DP_OK)
        st = publish(c, err);
    return st;
}

static enum dp_status make(struct order_under_way *c, struct dp_checkpoint_made *out, struct dp_error *err)
{
    struct dp_error ignored;
    enum dp_status st = go(c, out, err);
    if (st ==
        DP_OK) { /* an order that is not ended here ends by itself: the checkpoint is there all the same */
        (void)order(c, DP_CHECKPOINT_END, &ignored);
        return DP_OK;
    }
    *c->o->leaves = order(c, DP_CHECKPOINT_ABANDON, &ignored) != DP_OK;
    if (c->manifest.number == 0 &&
        dp_checkpoint_abandon(c->o->asked->directory, c->o->asked->order, &ignored) != DP_OK)
        *c->o->leaves = true;
    return st;
}

static void clear(struct order_under_way *c)
{
    dp_saved_logs_clear(&c->logs);
    dp_manifest_clear(&c->manifest);
    free(c->known.before.push);
    dp_union_clear(&c->cut_of_all);
    dp_register_value_clear(&c->registered);
    if (c->answers)
        dp_client_checkpoint_clear(c->answers, c->shards);
    free(c->answers);
    free(c->asks);
}

enum dp_status dp_coordination_run(const struct dp_coordination_options *options,
                                   struct dp_checkpoint_made *out, struct dp_error *err)
{
    struct order_under_way c = {.o = options, .shards = dp_client_shards(options->client)};
    uint64_t began_ms = dp_now_ms();
    int lock = -1;
    *out = (struct dp_checkpoint_made){0};
    c.asks = calloc(c.shards, sizeof *c.asks);
    c.answers = calloc(c.shards, sizeof *c.answers);
    c.cut_of_all.lacking = calloc(c.shards, sizeof *c.cut_of_all.lacking);
    c.cut_of_all.shards = c.shards;
    enum dp_status st = c.asks && c.answers && c.cut_of_all.lacking
                            ? dp_checkpoint_place_check(options->asked->directory, err)
                            : dp_fail(err, DP_NOMEM, "no memory for a checkpoint");
    if (st == DP_OK)
        st = dp_checkpoint_lock(options->asked->directory, &lock, err);
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
    clear(&c);
    return st;
}
