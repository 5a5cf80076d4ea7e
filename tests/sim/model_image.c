#include "tests/sim/model_image.h"

#include "common/model/mix.h"
#include "common/model/range.h"
#include "common/model/row.h"
#include "server/ids/push_ids.h"
#include "tests/sim/model_inner.h"

#include <inttypes.h>
#include <stdlib.h>

struct sim_image {
    struct sim_model *model; /* with these records only; of each shard as they have it */
    uint32_t uses, shards;
    uint64_t open; /* sync */
    struct sim_steps steps;
    struct sim_image_push {
        uint64_t stream, number;
        bool partial;    /* given up: the checkpoint lists it */
        bool everywhere; /* on all shards */
    } * push;            /* that some shard had at its cut */
    uint32_t pushes;
};

static bool is_push(const struct sim_record *record)
{
    return !record->again && (record->kind == DP_RECORD_PUSH || record->kind == DP_RECORD_KEPT_PUSH);
}

static struct sim_image_push *find(const struct sim_image *image, uint64_t stream, uint64_t number)
{
    for (uint32_t i = 0; i < image->pushes; i++)
        if (image->push[i].stream == stream && image->push[i].number == number)
            return &image->push[i];
    return NULL;
}

static bool is_asked_for(const struct sim_cut *cut, const struct sim_image_push *push)
{
    for (uint32_t i = 0; i < cut->missing_count; i++)
        if (cut->missing[i].stream == push->stream && cut->missing[i].number == push->number)
            return true;
    return false;
}

/* Behind the cut of its shard: what another one had, unless it was given up before it came. */
static bool is_taken_behind(const struct sim_image *image, const struct sim_cut *cut,
                            const struct sim_record *record)
{
    const struct sim_image_push *push = find(image, record->stream, record->number);
    return push && (!push->partial || is_asked_for(cut, push));
}

/* ---- what is in it */

/* The step that was open there. */
static uint64_t open_at(const struct sim_model *model, uint32_t shard, uint64_t lsn)
{
    const struct sim_model_shard *s = &model->shard[shard];
    uint64_t open = model->base ? model->base->open : model->world->plan.first_step;
    for (uint64_t i = s->base; i < lsn; i++)
        if (s->record[i].kind == DP_RECORD_CLOSE && s->record[i].closes)
            open = s->record[i].step + 1;
    return open;
}

static void add_push(struct sim_image *image, uint64_t stream, uint64_t number)
{
    image->push = sim_resized(image->push, (image->pushes + 1) * sizeof image->push[0]);
    image->push[image->pushes++] = (struct sim_image_push){.stream = stream, .number = number};
}

static void add_pushes(struct sim_image *image, const struct sim_model *model, uint32_t shard, uint64_t lsn,
                       uint64_t open)
{
    for (uint64_t i = 0; i < lsn; i++) {
        const struct sim_record *record = &model->shard[shard].record[i];
        bool kept = record->kind == DP_RECORD_KEPT_PUSH && !record->restored;
        if (is_push(record) && !(kept && record->step >= open) &&
            !find(image, record->stream, record->number))
            add_push(image, record->stream, record->number);
    }
}

static bool is_here(const struct sim_image *image, const struct sim_model *model, uint32_t shard,
                    const struct sim_cut *cut, const struct sim_image_push *push)
{
    for (uint64_t i = 0; i < cut->until; i++) {
        const struct sim_record *record = &model->shard[shard].record[i];
        if (is_push(record) && record->stream == push->stream && record->number == push->number &&
            (i < cut->lsn || is_taken_behind(image, cut, record)))
            return true;
    }
    return false;
}

/* Members' pushes are never given up. */
static void find_places(struct sim_image *image, const struct sim_model *model,
                        const struct sim_cut cut[SIM_SERVERS_MAX], struct sim_image_push *push)
{
    push->everywhere = true;
    for (uint32_t shard = 0; shard < image->shards && model->world->plan.mode == DP_ASYNC; shard++)
        push->everywhere &= is_here(image, model, shard, &cut[shard], push);
    if (!push->everywhere && !push->partial)
        sim_fail(model->world,
                 "push %" PRIu64 " of stream %016" PRIx64
                 " is not on all shards of a checkpoint, which does not list it",
                 push->number, push->stream);
}

static void take_partial(struct sim_image *image, const struct sim_model *model,
                         const struct dp_copy_pushes *partial)
{
    for (uint32_t i = 0; i < partial->count; i++) {
        struct sim_image_push *push = find(image, partial->push[i].stream, partial->push[i].number);
        if (!push || dp_stream_is_training(push->stream))
            sim_fail(model->world, "push %" PRIu64 " of stream %016" PRIx64 " is listed as a client's",
                     partial->push[i].number, partial->push[i].stream);
        push->partial = true;
    }
}

static void check_ids(const struct sim_image *image, const struct sim_model *model, const void *bytes,
                      size_t size)
{
    struct dp_push_ids *ids = NULL;
    struct dp_error err = {0};
    if (dp_push_ids_new(&ids) != DP_OK || dp_push_ids_unpack(ids, bytes, size, &err) != DP_OK)
        sim_fail(model->world, "a checkpoint's ids: %s", err.text);
    for (uint32_t shard = 0; shard < image->shards; shard++)
        for (uint64_t i = 0; i < model->shard[shard].last; i++) {
            const struct sim_record *record = &model->shard[shard].record[i];
            enum dp_status status = DP_OK;
            if (!is_push(record))
                continue;
            enum dp_push_seen seen = dp_push_ids_look(ids, record->stream, record->number, &status);
            bool refused = seen == DP_PUSH_REFUSED && status == DP_PARTIAL,
                 there = seen == DP_PUSH_REPEATED || refused;
            const struct sim_image_push *push = find(image, record->stream, record->number);
            if (push && push->partial && !refused)
                sim_fail(model->world,
                         "a checkpoint's ids do not refuse push %" PRIu64 " of stream %016" PRIx64
                         ", which was given up",
                         record->number, record->stream);
            if (there != (push != NULL))
                sim_fail(model->world,
                         "a checkpoint's ids say that push %" PRIu64 " of stream %016" PRIx64
                         " is %s in it, and by the records it is%s",
                         record->number, record->stream, there ? "" : "not", there ? " not" : "");
        }
    dp_push_ids_free(&ids);
}

static bool is_taken(const struct sim_image *image, const struct sim_cut *cut,
                     const struct sim_record *record, bool behind)
{
    bool sync = image->model->world->plan.mode == DP_SYNC;
    switch (record->kind) {
    case DP_RECORD_PUSH:
        return !behind || is_taken_behind(image, cut, record);
    case DP_RECORD_KEPT_PUSH:
        return record->step < image->open;
    case DP_RECORD_CLOSE:
        return sync && record->step < image->open;
    case DP_RECORD_VIEW:
        return !behind;
    case DP_RECORD_VOID:
        return false;
    }
    return false;
}

/* ---- its records */

static void append(struct sim_image *image, uint32_t shard, const struct sim_record *record)
{
    struct sim_model_shard *s = &image->model->shard[shard];
    struct dp_record head;
    if (s->last == s->room) {
        s->room = s->room ? 2 * s->room : 64;
        s->record = sim_resized(s->record, s->room * sizeof s->record[0]);
    }
    s->record[s->last] = *record;
    s->record[s->last++].data = record->data ? sim_resized(NULL, record->bytes) : NULL;
    if (!record->data)
        return;
    memcpy(s->record[s->last - 1].data, record->data, record->bytes);
    sim_model_decode(image->model, &s->record[s->last - 1], &head);
    sim_model_fold(image->model, shard, s->last, &head, UINT64_MAX);
}

static void note_steps(struct sim_image *image, const struct sim_steps *steps)
{
    if (image->steps.view == 0 || steps->view > image->steps.view)
        image->steps = *steps;
}

/* Behind the cut a view has no record, and who pushes by it has been let in. One that no shard had at its cut is not in the image. */
static void take_view(struct sim_image *image, uint32_t shard, const struct sim_record *record, uint64_t view)
{
    struct sim_model *own = image->model;
    struct dp_record head;
    if (record->view > view && own->shard[shard].steps.view <= view)
        note_steps(image, &own->shard[shard].steps);
    sim_model_decode(own, record, &head);
    sim_steps_fold(own->world, &own->members, &own->shard[shard].steps, &head, &own->request,
                   (struct sim_record_place){shard, own->shard[shard].last, UINT64_MAX});
}

static void fill(struct sim_image *image, const struct sim_model *model, uint32_t shard, struct sim_cut cut,
                 uint64_t view)
{
    const struct sim_record nothing = {.kind = DP_RECORD_VOID, .restored = true};
    for (uint64_t i = model->shard[shard].base; i < cut.until; i++) {
        const struct sim_record *record = &model->shard[shard].record[i];
        bool behind = i >= cut.lsn;
        if (is_taken(image, &cut, record, behind))
            append(image, shard, record);
        else if (!behind)
            append(image, shard, &nothing);
        else if (record->kind == DP_RECORD_VIEW)
            take_view(image, shard, record, view);
    }
    if (image->model->shard[shard].steps.view <= view)
        note_steps(image, &image->model->shard[shard].steps);
}

static uint64_t view_at(const struct sim_model *model, uint32_t shard, uint64_t lsn)
{
    uint64_t view = model->base ? model->base->steps.view : 0;
    for (uint64_t i = model->shard[shard].base; i < lsn; i++)
        if (model->shard[shard].record[i].kind == DP_RECORD_VIEW)
            view = model->shard[shard].record[i].view;
    return view;
}

/* Of all shards: what members are known to have done. */
static void unite_steps(struct sim_image *image)
{
    const struct sim_plan *plan = &image->model->world->plan;
    image->steps.viewed = image->steps.close = 0;
    memset(image->steps.step, 0, sizeof image->steps.step);
    for (uint32_t rank = 0; rank < plan->workers && image->steps.view > 0; rank++) {
        uint64_t count = 0;
        for (uint32_t i = 0; i < image->pushes; i++)
            count += image->push[i].stream == (UINT64_C(1) << 63 | (rank + 1));
        image->steps.next[rank] = plan->first_step + count;
    }
    if (plan->mode == DP_SYNC && image->steps.view > 0)
        image->steps.open = image->open;
}

struct sim_image *sim_image_new(struct sim_model *model, const struct sim_cut cut[SIM_SERVERS_MAX],
                                const void *ids, size_t ids_bytes, const struct dp_copy_pushes *partial)
{
    struct sim_image *image = calloc(1, sizeof *image);
    uint64_t view = 0;
    DP_ASSERT(image);
    image->uses = 1;
    image->shards = model->world->plan.servers;
    image->model = sim_model_new(model->world);
    image->model->members = model->members;
    for (uint32_t i = 0; i < image->shards; i++) {
        uint64_t open = open_at(model, i, cut[i].lsn), own = view_at(model, i, cut[i].lsn);
        image->open = open > image->open ? open : image->open;
        view = own > view ? own : view;
        add_pushes(image, model, i, cut[i].lsn, open);
    }
    take_partial(image, model, partial);
    for (uint32_t i = 0; i < image->pushes; i++)
        find_places(image, model, cut, &image->push[i]);
    check_ids(image, model, ids, ids_bytes);
    for (uint32_t i = 0; i < image->shards; i++) {
        struct sim_model_shard *own = &image->model->shard[i];
        for (uint64_t k = 0; k < model->shard[i].base; k++) /* of a restore before */
            append(image, i, &model->shard[i].record[k]);
        image->model->base = model->base;
        if (model->base)
            model->base->uses++;
        own->base = model->shard[i].base;
        sim_model_rewind(image->model, i);
        fill(image, model, i, cut[i], view);
        if (model->base)
            model->base->uses--;
    }
    image->model->base = NULL;
    unite_steps(image);
    return image;
}

void sim_image_free(struct sim_image **out)
{
    struct sim_image *image = *out;
    *out = NULL;
    if (!image || --image->uses > 0)
        return;
    sim_model_free(&image->model);
    free(image->push);
    free(image);
}

void sim_image_compare(const struct sim_image *image, uint32_t shard, const struct sim_store *store)
{
    sim_model_compare(image->model, shard, image->shards, store, "a restored shard's");
}

/* ---- the model after a restore */

static void put_push(struct sim_model *model, uint32_t shard, uint64_t *at, uint64_t stream, uint64_t number)
{
    struct sim_model_shard *s = &model->shard[shard];
    if (*at == s->last)
        sim_fail(model->world, "shard %" PRIu32 " goes on from lsn %" PRIu64 ", which is below its pushes",
                 shard, s->last);
    s->record[*at].kind = model->world->plan.mode == DP_SYNC ? DP_RECORD_KEPT_PUSH : DP_RECORD_PUSH;
    s->record[*at].stream = stream;
    s->record[(*at)++].number = number;
}

/* Nobody pushes it again: what its shards have of it is in their rows. */
static bool is_torn(const struct sim_image *image, const struct sim_record *record)
{
    const struct sim_image_push *push = find(image, record->stream, record->number);
    return push && !push->everywhere;
}

static void put_records(struct sim_model *model, uint32_t shard, const struct sim_image *image, uint64_t lsn,
                        bool same)
{
    struct sim_model_shard *s = &model->shard[shard];
    const struct sim_model_shard *old = &image->model->shard[shard];
    uint64_t at = 0;
    s->record = sim_resized(NULL, lsn * sizeof s->record[0]);
    s->base = s->last = s->room = s->answered = lsn;
    for (uint64_t i = 0; i < lsn; i++)
        s->record[i] = (struct sim_record){.kind = DP_RECORD_VOID, .restored = true};
    for (uint32_t i = 0; i < image->pushes && !same; i++)
        if (image->push[i].everywhere)
            put_push(model, shard, &at, image->push[i].stream, image->push[i].number);
    for (uint64_t i = 0; same && i < old->last; i++)
        if (is_push(&old->record[i]) && !is_torn(image, &old->record[i]))
            put_push(model, shard, &at, old->record[i].stream, old->record[i].number);
}

void sim_model_rewind(struct sim_model *model, uint32_t shard)
{
    struct sim_model_shard *s = &model->shard[shard];
    const struct sim_image *base = model->base;
    s->streams = 0;
    memset(s->leased, 0, sizeof s->leased);
    s->steps = base ? base->steps : (struct sim_steps){0};
    for (uint64_t i = 0; i < s->base; i++)
        if (is_push(&s->record[i]))
            sim_model_count_restored(model, shard, &s->record[i]);
    for (uint32_t t = 0; t < model->world->plan.tables; t++)
        for (uint32_t k = 0; k < model->world->plan.keys; k++) {
            struct sim_history *history = &model->history[t][k];
            const void *was = base ? base->model->history[t][k].row : NULL;
            if (dp_shard_of(dp_mix(k), model->world->plan.servers) != shard)
                continue;
            free(history->row);
            history->row = NULL;
            if (!was)
                continue;
            size_t bytes = dp_row_bytes(&model->world->plan.table[t]);
            history->row = sim_resized(NULL, bytes);
            memcpy(history->row, was, bytes);
        }
}

static void forget_views(struct sim_model *model, uint64_t view, uint64_t open)
{
    const struct sim_plan *plan = &model->world->plan;
    for (uint64_t number = view + 1; number < SIM_VIEWS_MAX; number++)
        model->members.view[number].known = false;
    for (uint64_t index = open - plan->first_step; plan->mode == DP_SYNC && index < SIM_STEPS_MAX; index++)
        model->members.closed[index] = 0;
    for (uint32_t rank = 0; rank < plan->workers; rank++) {
        /* (The register may have the first view, and no shard yet at its cut.) */
        model->pushed[rank] =
            model->base->steps.view > 0 ? model->base->steps.next[rank] - plan->first_step : 0;
        model->left[rank] = view > 0 && model->members.view[view].member[rank].until < UINT64_MAX;
    }
}

static void forget_acks(struct sim_model *model, const struct sim_image *image)
{
    uint32_t kept = 0;
    for (uint32_t i = 0; i < model->acks; i++) {
        const struct sim_record as = {.stream = model->acknowledged[i].stream,
                                      .number = model->acknowledged[i].number};
        const struct sim_image_push *push = find(image, as.stream, as.number);
        if (push && push->everywhere)
            model->acknowledged[kept++] = model->acknowledged[i];
    }
    model->acks = kept;
    model->sents = 0;
}

void sim_model_restore(struct sim_model *model, struct sim_image *image, const uint64_t lsn[SIM_SERVERS_MAX],
                       bool same, uint64_t view)
{
    const struct sim_plan *plan = &model->world->plan;
    if (view < image->steps.view)
        sim_fail(model->world, "a checkpoint's register has view %" PRIu64 ", and its shards view %" PRIu64,
                 view, image->steps.view);
    image->uses++;
    sim_image_free(&model->base);
    model->base = image;
    for (uint32_t i = 0; i < SIM_SERVERS_MAX; i++) {
        sim_model_shard_clear(model, i);
        if (i < plan->servers)
            put_records(model, i, image, lsn[i], same);
    }
    for (uint32_t t = 0; t < plan->tables; t++)
        for (uint32_t k = 0; k < plan->keys; k++)
            sim_history_clear(&model->history[t][k]);
    for (uint32_t i = 0; i < plan->servers; i++)
        sim_model_rewind(model, i);
    for (uint32_t t = 0; t < plan->tables; t++)
        for (uint32_t k = 0; k < plan->keys; k++)
            if (model->history[t][k].row)
                sim_history_add(&model->history[t][k], &plan->table[t], k);
    forget_views(model, view, image->open);
    forget_acks(model, image);
}

double sim_model_base_sum(const struct sim_model *model, uint32_t table, uint32_t key)
{
    const void *row = model->base ? model->base->model->history[table][key].row : NULL;
    return row ? -(double)dp_row_weights_const(row)[0] : 0;
}
