#include "tests/sim/model_inner.h"

#include "common/base/bf16.h"
#include "common/base/bytes.h"
#include "tests/sim/sequential.h"

#include <inttypes.h>
#include <stdlib.h>

void sim_model_asked(struct sim_model *model, uint32_t shard, const struct dp_message *message)
{
    struct sim_model_shard *s = &model->shard[shard];
    struct dp_request *request = &model->request;
    struct dp_error err = {0};
    if (dp_request_decode(message, request, &err) != DP_OK)
        sim_fail(model->world, "a worker's request: %s", err.text);
    if (request->kind == DP_REQUEST_CHECKPOINT)
        return;
    struct sim_asked *asked = &s->asked[s->asks++ % SIM_ASKED];
    free(asked->key);
    *asked = (struct sim_asked){.session = request->session,
                                .id = request->id,
                                .stream = request->stream,
                                .number = request->number,
                                .kind = request->kind,
                                .member = request->member};
    for (uint32_t i = 0; i < request->sections && request->kind == DP_REQUEST_PULL; i++) {
        const struct dp_section *section = &request->section[i];
        asked->type = section->type;
        asked->key = sim_resized(asked->key, (asked->keys + section->rows) * sizeof asked->key[0]);
        for (uint32_t r = 0; r < section->rows; r++)
            asked->key[asked->keys++] =
                sim_model_table_of(model, section->table) << 16 | sim_model_key_at(model, section, r);
    }
}

/* Whether the mode lets it go, and which rows it is to show. */
static bool shows_old(struct sim_model *model, uint32_t shard, const struct sim_asked *asked)
{
    const struct dp_membership *member = &asked->member;
    if (!member->given)
        return false;
    enum sim_step_verdict verdict = sim_steps_pull(model->world, &model->shard[shard].steps, member->step);
    if (verdict == SIM_STEP_HELD)
        sim_fail(model->world,
                 "shard %" PRIu32 " answers worker %" PRIu32 "'s pull of step %" PRIu64
                 ", and others have not come as far",
                 shard, member->rank, member->step);
    return verdict == SIM_STEP_OLD;
}

/* In sync it says of which step its rows are; and with backups no crash takes back what it shows. */
static void check_open(struct sim_model *model, uint32_t shard, const struct sim_asked *asked, uint64_t open)
{
    struct sim_model_shard *s = &model->shard[shard];
    const struct sim_plan *plan = &model->world->plan;
    if (plan->mode != DP_SYNC || s->steps.view == 0)
        return;
    uint64_t want = shows_old(model, shard, asked) ? asked->member.step : s->steps.open;
    if (open != want)
        sim_fail(model->world,
                 "shard %" PRIu32 " answers a pull with rows of step %" PRIu64 " as those of step %" PRIu64,
                 shard, want, open);
    if (!asked->member.given && !sim_model_may_be_late(plan) &&
        sim_steps_must_close(model->world, &s->steps, s->answered))
        sim_fail(model->world,
                 "shard %" PRIu32 " answers a pull of nobody, and step %" PRIu64
                 ", whose pushes it has answered, is not closed",
                 shard, s->steps.open);
    if (sim_has_backups(plan) && s->steps.close > s->answered)
        s->answered = s->steps.close;
}

static void check_pushed(struct sim_model *model, uint32_t shard, const struct sim_asked *asked,
                         const struct dp_reply *reply)
{
    struct sim_model_shard *s = &model->shard[shard];
    uint64_t lsn = sim_model_find(model, shard, asked->stream, asked->number);
    if (lsn == 0)
        sim_fail(model->world,
                 "shard %" PRIu32 " answers push %" PRIu64 " of stream %016" PRIx64
                 ", which it does not have",
                 shard, asked->number, asked->stream);
    bool dropped = asked->member.given && model->world->plan.mode == DP_SYNC &&
                   s->record[lsn - 1].kind == DP_RECORD_PUSH;
    if (!reply->repeated && reply->dropped != dropped)
        sim_fail(model->world, "shard %" PRIu32 " answers push %" PRIu64 " of stream %016" PRIx64 " as %s",
                 shard, asked->number, asked->stream,
                 dropped ? "kept, and dropped it" : "dropped, and kept it");
    if (reply->repeated && asked->member.given)
        sim_steps_repeated(&s->steps, asked->member.rank, asked->member.step);
    s->answered = lsn > s->answered ? lsn : s->answered;
}

static void check_held(struct sim_model *model, uint32_t shard, const struct sim_asked *asked)
{
    const struct sim_steps *steps = &model->shard[shard].steps;
    if (!asked->member.given || sim_steps_pull(model->world, steps, asked->member.step) != SIM_STEP_HELD)
        sim_fail(model->world, "shard %" PRIu32 " holds a pull of step %" PRIu64 " that may go", shard,
                 asked->member.step);
}

static void check_pull(struct sim_model *model, uint32_t shard, const struct sim_asked *asked,
                       const struct dp_message *answer)
{
    float scratch[256];
    char halves[512];
    bool old = shows_old(model, shard, asked);
    uint32_t frame = 0, before = UINT32_MAX;
    size_t at = 0;
    for (uint32_t i = 0; i < asked->keys; i++) {
        uint32_t t = asked->key[i] >> 16, k = asked->key[i] & 0xffff;
        size_t bytes = model->world->plan.table[t].dim * dp_value_bytes(asked->type);
        if (t != before) { /* a section */
            while (++frame < answer->frames && answer->frame[frame].size == 0)
                ;
            before = t;
            at = 0;
        }
        if (old)
            sim_history_touch(&model->history[t][k], &model->world->plan.table[t], k);
        const void *want =
            old ? sim_history_before(&model->history[t][k], model->shard[shard].steps.close)
                : sim_history_weights(&model->history[t][k], &model->world->plan.table[t], k, scratch);
        if (asked->type == DP_BF16) {
            dp_bf16_put(want, halves, model->world->plan.table[t].dim);
            want = halves;
        }
        if (frame >= answer->frames || at + bytes > answer->frame[frame].size ||
            memcmp((const char *)answer->frame[frame].data + at, want, bytes) != 0)
            sim_fail(model->world,
                     "shard %" PRIu32
                     " answers a pull with other values than its records give: table %" PRIu32
                     ", key %" PRIu32 " (lsn %" PRIu64 ")",
                     shard, t, k, sim_history_lsn(&model->history[t][k]));
        at += bytes;
    }
}

void sim_model_answered(struct sim_model *model, uint32_t shard, const struct dp_message *answer)
{
    struct sim_model_shard *s = &model->shard[shard];
    struct dp_reply *reply = &model->reply;
    struct dp_error err = {0};
    const struct sim_asked *asked = NULL;
    if (dp_reply_decode(answer, reply, &err) != DP_OK)
        sim_fail(model->world, "shard %" PRIu32 "'s answer: %s", shard, err.text);
    sim_say(model->world, "s%" PRIu32 ": answers %" PRIu64 " of session %" PRIu64 ": kind %d %s%s %s", shard,
            reply->id, reply->session, (int)reply->kind, dp_status_name((int)reply->status),
            reply->repeated ? " repeated" : "", reply->reason);
    for (uint64_t i = s->asks; i > 0 && i + SIM_ASKED > s->asks && !asked; i--)
        if (s->asked[(i - 1) % SIM_ASKED].id == reply->id &&
            s->asked[(i - 1) % SIM_ASKED].session == reply->session)
            asked = &s->asked[(i - 1) % SIM_ASKED];
    if (asked && reply->kind == DP_REPLY_PULLED && reply->status == DP_OK) {
        check_pull(model, shard, asked, answer);
        check_open(model, shard, asked, reply->open);
    }
    if (asked && reply->status == DP_HELD)
        check_held(model, shard, asked);
    if (asked && reply->kind == DP_REPLY_PUSHED && reply->status == DP_OK)
        check_pushed(model, shard, asked, reply);
    dp_reply_clear(reply);
}

void sim_model_closed(struct sim_model *model, uint32_t shard)
{
    struct sim_model_shard *s = &model->shard[shard];
    for (uint32_t i = 0; i < SIM_ASKED; i++) {
        free(s->asked[i].key);
        s->asked[i] = (struct sim_asked){0};
    }
    s->asks = 0;
}
